//! Pixels in memory, with their metadata.

use super::error::{Error, Result};
use super::metadata::Metadata;
use super::report::Report;
use crate::formats::memory::Page;
use crate::formats::raw;
use crate::image::{self, Depth, Samples, Shape, Values, buffer, metadata};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Bytes that a thread converts at a time.
const PIECE: usize = 256 << 10;

/// The type of the samples of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleType {
    /// 0 to 255
    U8,
    /// −128 to 127
    I8,
    /// 0 to 65535
    U16,
    /// −32768 to 32767
    I16,
    /// 0 to 2³² − 1
    U32,
    /// −2³¹ to 2³¹ − 1
    I32,
    /// 32-bit floating point
    F32,
    /// 64-bit floating point
    F64,
}

impl SampleType {
    pub(crate) fn new(values: Values) -> SampleType {
        match (values.depth, values.signed) {
            (Depth::Eight, false) => SampleType::U8,
            (Depth::Eight, true) => SampleType::I8,
            (Depth::Sixteen, false) => SampleType::U16,
            (Depth::Sixteen, true) => SampleType::I16,
            (Depth::ThirtyTwo, false) => SampleType::U32,
            (Depth::ThirtyTwo, true) => SampleType::I32,
            (Depth::Float, _) => SampleType::F32,
            (Depth::Double, _) => SampleType::F64,
        }
    }

    pub(super) fn values(self) -> Values {
        let (depth, signed) = match self {
            SampleType::U8 => (Depth::Eight, false),
            SampleType::I8 => (Depth::Eight, true),
            SampleType::U16 => (Depth::Sixteen, false),
            SampleType::I16 => (Depth::Sixteen, true),
            SampleType::U32 => (Depth::ThirtyTwo, false),
            SampleType::I32 => (Depth::ThirtyTwo, true),
            SampleType::F32 => (Depth::Float, false),
            SampleType::F64 => (Depth::Double, false),
        };
        Values { depth, signed }
    }

    /// Whether samples of this type have another form in memory than in files.
    pub(super) fn is_converted(self) -> bool {
        is_converted(self.values())
    }

    /// The metadata of an image that has only samples of this type.
    pub(super) fn metadata(self) -> metadata::Metadata {
        metadata::Metadata {
            signed: self.values().signed,
            ..metadata::Metadata::default()
        }
    }

    /// Whether every value of `other` is one of this type.
    ///
    /// ```
    /// use gpuimg::SampleType::{F32, I16, I32, U16};
    /// assert!(F32.holds(U16) && I32.holds(I16) && !F32.holds(I32) && !I16.holds(U16));
    /// ```
    pub fn holds(self, other: SampleType) -> bool {
        let (this, other) = (self.values(), other.values());
        match (this.depth.is_float(), other.depth.is_float()) {
            (true, true) => this.depth.bytes() >= other.depth.bytes(),
            (true, false) => this.depth.bytes() > other.depth.bytes(),
            (false, true) => false,
            (false, false) if this.signed == other.signed => {
                this.depth.bytes() >= other.depth.bytes()
            }
            (false, false) => this.signed && this.depth.bytes() > other.depth.bytes(),
        }
    }

    /// Bytes of a sample: 1, 2, 4 or 8.
    pub fn bytes(self) -> usize {
        self.values().depth.bytes()
    }
}

/// As Rust and NumPy name it: `u16`, `f32`.
impl fmt::Display for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            SampleType::U8 => "u8",
            SampleType::I8 => "i8",
            SampleType::U16 => "u16",
            SampleType::I16 => "i16",
            SampleType::U32 => "u32",
            SampleType::I32 => "i32",
            SampleType::F32 => "f32",
            SampleType::F64 => "f64",
        })
    }
}

mod sealed {
    use crate::image::Samples;
    use bytemuck::Pod;

    /// A type of samples, and how it is stored.
    pub trait Stored: Pod + Send + Sync {
        /// The same bytes as the unsigned numbers of memory.
        fn store(samples: Vec<Self>) -> Samples;
    }
}

/// The Rust types of samples: `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32` and `f64`.
pub trait Sample: sealed::Stored {
    /// The type as a value.
    const TYPE: SampleType;
}

macro_rules! samples {
    ($($sample:ty, $memory:ty, $name:ident;)*) => {$(
        impl sealed::Stored for $sample {
            fn store(samples: Vec<$sample>) -> Samples {
                bytemuck::cast_vec::<$sample, $memory>(samples).into()
            }
        }

        impl Sample for $sample {
            const TYPE: SampleType = SampleType::$name;
        }
    )*};
}

samples! {
    u8, u8, U8;
    i8, u8, I8;
    u16, u16, U16;
    i16, u16, I16;
    u32, u32, U32;
    i32, u32, I32;
    f32, u32, F32;
    f64, u64, F64;
}

/// An image in memory: its samples, row by row with the channels of a pixel side by side, and its metadata.
///
/// ```
/// use gpuimg::{Image, SampleType};
/// let image = Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?;
/// assert_eq!((image.width(), image.height(), image.channels()), (3, 2, 1));
/// assert_eq!(image.sample_type(), SampleType::U16);
/// assert_eq!(image.as_slice::<u16>().unwrap()[5], 20);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// A clone shares the memory of the samples, which are copied before one of the two changes them.
#[derive(Clone, Debug)]
pub struct Image {
    page: Page,
    /// The file that it is from; empty if it was made in memory.
    path: PathBuf,
    report: Report,
}

impl Image {
    /// An image of `width` × `height` pixels with 1 to 4 channels (grey, grey and alpha, RGB, RGB and alpha), and no metadata.
    /// `samples` has `width · height · channels` samples. Those of `u8`, `u16` and `u32` are not copied or changed; the others
    /// are converted in place.
    ///
    /// # Errors
    /// Sides of 0, other numbers of channels, and another number of samples.
    pub fn new<T: Sample>(
        width: usize,
        height: usize,
        channels: usize,
        samples: Vec<T>,
    ) -> Result<Image> {
        let shape = checked_shape(width, height, channels, T::TYPE)?;
        if shape.samples() != samples.len() {
            return Err(Error::argument(format!(
                "an image of {width}×{height} pixels with {channels} channels has {} samples, not {}",
                shape.samples(),
                samples.len()
            )));
        }
        Ok(Image::of_samples(shape, T::TYPE, T::store(samples)))
    }

    /// An image like that of [`new`](Image::new) whose sample type is known only when the program runs. `fill` writes the samples, in
    /// the byte order of the machine; those that it leaves are 0.
    ///
    /// ```
    /// use gpuimg::{Image, SampleType};
    /// let image = Image::of_bytes(2, 1, 1, SampleType::I16, |bytes| bytes[..2].copy_from_slice(&(-5i16).to_ne_bytes()))?;
    /// assert_eq!(image.to_vec::<i16>()?, [-5, 0]);
    /// assert_eq!(image.to_bytes()[..2], (-5i16).to_ne_bytes());
    /// # Ok::<(), gpuimg::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sides of 0, other numbers of channels than 1 to 4, and too little memory ([`Error::io_kind`] is `OutOfMemory`).
    pub fn of_bytes(
        width: usize,
        height: usize,
        channels: usize,
        sample_type: SampleType,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Image> {
        let shape = checked_shape(width, height, channels, sample_type)?;
        let mut samples = Samples::zeroed(&shape).map_err(Error::new)?;
        fill(samples.as_bytes_mut());
        Ok(Image::of_samples(shape, sample_type, samples))
    }

    /// An image whose samples are in memory that another owner lends, in the byte order of the machine. Samples of `u8`, `u16` and
    /// `u32` in aligned memory are not copied: the image and its clones hold `memory`, and copy the samples before they change them.
    /// Others are copied once, and `memory` is dropped.
    ///
    /// The result of an operation that changes no sample may still be in that memory: see [`detached`](Image::detached).
    ///
    /// ```
    /// use gpuimg::{Device, Image, SampleType, SumValue};
    /// let memory: Vec<u8> = [1u16, 2, 3].map(u16::to_ne_bytes).concat();
    /// let image = Image::of_memory(3, 1, 1, SampleType::U16, memory)?;
    /// assert_eq!(gpuimg::sum(&image, &Device::cpu())?.total.sum, SumValue::Whole(6));
    /// # Ok::<(), gpuimg::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sides of 0, other numbers of channels than 1 to 4, another number of bytes, and too little memory for a copy.
    pub fn of_memory(
        width: usize,
        height: usize,
        channels: usize,
        sample_type: SampleType,
        memory: impl Deref<Target = [u8]> + Send + Sync + 'static,
    ) -> Result<Image> {
        let shape = checked_shape(width, height, channels, sample_type)?;
        if memory.len() != shape.bytes() {
            return Err(Error::argument(format!(
                "an image of {width}×{height} pixels with {channels} channels of {sample_type} has {} bytes, not {}",
                shape.bytes(),
                memory.len()
            )));
        }
        let values = sample_type.values();
        let is_aligned = memory.as_ptr().align_offset(sample_type.bytes()) == 0;
        if is_aligned && !is_converted(values) {
            let samples = Samples::lent(&shape, Box::new(memory));
            let samples = samples.ok_or_else(|| Error::argument("the memory cannot be lent"))?;
            return Ok(Image::of_stored(shape, sample_type, samples));
        }
        let mut samples = Samples::any(&shape).map_err(Error::new)?;
        copy_pieces(&memory, samples.as_bytes_mut(), |piece| {
            raw::to_memory(piece, values.depth, values.signed);
        });
        Ok(Image::of_stored(shape, sample_type, samples))
    }

    /// The same image, with a copy of its samples if they are in memory that another owner lends.
    ///
    /// # Errors
    /// Too little memory.
    pub fn detached(mut self) -> Result<Image> {
        let samples = self.page.image.samples();
        if samples.is_lent() {
            let shape = self.shape();
            let mut copy = Samples::any(&shape).map_err(Error::new)?;
            copy_pieces(samples.as_bytes(), copy.as_bytes_mut(), |_| ());
            self.page.image = image::Image::new(shape, copy.shared());
        }
        Ok(self)
    }

    /// An image of samples in the form of files.
    pub(super) fn of_samples(shape: Shape, sample_type: SampleType, mut samples: Samples) -> Image {
        convert(&mut samples, sample_type.values(), raw::to_memory);
        Image::of_stored(shape, sample_type, samples)
    }

    /// An image of samples in the form of memory.
    fn of_stored(shape: Shape, sample_type: SampleType, samples: Samples) -> Image {
        let page = Page {
            image: image::Image::new(shape, samples),
            metadata: sample_type.metadata(),
            metadata_bytes: 0,
            described: 1,
        };
        Image::of_page(page, Path::new(""), Report::default())
    }

    pub(super) fn of_page(page: Page, path: &Path, report: Report) -> Image {
        let page = Page {
            image: page.image.shared(),
            ..page
        };
        Image {
            page,
            path: path.into(),
            report,
        }
    }

    pub(super) fn into_page(self) -> Page {
        self.page
    }

    /// Offers memory for the samples of a result.
    pub(super) fn offer(&mut self, memory: buffer::Block) {
        self.page.image.samples_mut().offer(memory);
    }

    /// Gives back offered memory that was not used.
    pub(super) fn drop_offer(&mut self) {
        drop(self.page.image.samples_mut().take_offer());
    }

    pub(super) fn page(&self) -> &Page {
        &self.page
    }

    /// Width, height and channels, and the depth of the samples.
    pub fn shape(&self) -> Shape {
        self.page.image.shape()
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.shape().width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.shape().height
    }

    /// Samples in a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub fn channels(&self) -> usize {
        self.shape().channels
    }

    /// The type of the samples.
    pub fn sample_type(&self) -> SampleType {
        SampleType::new(self.values())
    }

    fn values(&self) -> Values {
        self.page.metadata.values(self.shape().depth)
    }

    /// The samples, if they are of the type `T` and that is `u8`, `u16` or `u32`. Others are stored in another form, which
    /// sorts as unsigned numbers: [`to_vec`](Image::to_vec) converts a copy.
    pub fn as_slice<T: Sample>(&self) -> Option<&[T]> {
        let is_stored = matches!(T::TYPE, SampleType::U8 | SampleType::U16 | SampleType::U32);
        let bytes = self.page.image.samples().as_bytes();
        (is_stored && T::TYPE == self.sample_type()).then(|| bytemuck::cast_slice(bytes))
    }

    /// The samples, for changing their values, if [`as_slice`](Image::as_slice) gives them.
    pub fn as_mut_slice<T: Sample>(&mut self) -> Option<&mut [T]> {
        self.as_slice::<T>()?;
        let bytes = self.page.image.samples_mut().as_bytes_mut();
        Some(bytemuck::cast_slice_mut(bytes))
    }

    /// A copy of the samples.
    ///
    /// # Errors
    /// Samples of another type than `T`.
    pub fn to_vec<T: Sample>(&self) -> Result<Vec<T>> {
        if T::TYPE != self.sample_type() {
            return Err(Error::argument(format!(
                "the samples of the image are {}, not {}",
                self.sample_type(),
                T::TYPE
            )));
        }
        let mut values = bytemuck::cast_slice(self.page.image.samples().as_bytes()).to_vec();
        pieces(bytemuck::cast_slice_mut(&mut values), |piece| {
            raw::to_file(piece, self.values().depth, self.values().signed);
        });
        Ok(values)
    }

    /// The samples as bytes, in the byte order of the machine: lent out for `u8`, `u16` and `u32`, a converted copy for others.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        if !is_converted(self.values()) {
            return Cow::Borrowed(self.page.image.samples().as_bytes());
        }
        let mut copy = vec![0; self.shape().bytes()];
        self.copy_bytes(&mut copy);
        Cow::Owned(copy)
    }

    /// Copies the samples to `bytes`, in the byte order of the machine.
    ///
    /// # Panics
    /// Another number of bytes than the samples have.
    pub fn copy_bytes(&self, bytes: &mut [u8]) {
        let values = self.values();
        copy_pieces(self.page.image.samples().as_bytes(), bytes, |piece| {
            if is_converted(values) {
                raw::to_file(piece, values.depth, values.signed);
            }
        });
    }

    /// What the file says of the pixels.
    pub fn metadata(&self) -> Metadata {
        Metadata::of_page(&self.page, self.shape())
    }

    /// Gives the image the metadata of another one. Metadata about samples, such as their largest value, is dropped if the
    /// channels or the sample type differ. The rest must be true of these pixels: it may not be after a change of their positions
    /// outside of this library.
    pub fn set_metadata(&mut self, metadata: Metadata) {
        let (channels, values) = (self.channels(), self.values());
        self.page.metadata_bytes = metadata.bytes;
        self.page.described = metadata.described.max(1);
        self.page.metadata = metadata.fields_for(channels, values);
    }

    /// The file that it was read from, also after operations.
    pub fn path(&self) -> Option<&Path> {
        Some(&*self.path).filter(|path| !path.as_os_str().is_empty())
    }

    /// Names the file that the image stands for, which errors name.
    pub fn set_path(&mut self, path: impl Into<PathBuf>) {
        self.path = path.into();
    }

    pub(super) fn name(&self) -> &Path {
        &self.path
    }

    /// What is to be known of how it was read, or of the operations that made it.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl<'a> From<&'a Image> for Cow<'a, Image> {
    fn from(image: &'a Image) -> Cow<'a, Image> {
        Cow::Borrowed(image)
    }
}

impl From<Image> for Cow<'_, Image> {
    fn from(image: Image) -> Self {
        Cow::Owned(image)
    }
}

/// Whether the samples and the metadata are the same.
impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.page.image == other.page.image && self.page.metadata == other.page.metadata
    }
}

/// The shape of an image with these sides and channels.
pub(super) fn checked_shape(
    width: usize,
    height: usize,
    channels: usize,
    sample_type: SampleType,
) -> Result<Shape> {
    if !(1..=4).contains(&channels) {
        let why = format!("an image has 1 to 4 channels, not {channels}");
        return Err(Error::argument(why));
    }
    let depth = sample_type.values().depth;
    let shape = Shape::checked(width as u64, height as u64, channels, depth);
    shape.map_err(Error::new)
}

/// Whether samples of this type have another form in memory than in files.
fn is_converted(values: Values) -> bool {
    values.signed || values.depth.is_float()
}

/// Converts samples between the form of files and that of memory.
fn convert(samples: &mut Samples, values: Values, convert: fn(&mut [u8], Depth, bool)) {
    if is_converted(values) {
        pieces(samples.as_bytes_mut(), |piece| {
            convert(piece, values.depth, values.signed);
        });
    }
}

/// Runs `work` on pieces of the bytes, on all threads if there are several.
fn pieces(bytes: &mut [u8], work: impl Fn(&mut [u8]) + Sync + Send) {
    if bytes.len() <= PIECE {
        work(bytes);
    } else {
        bytes.par_chunks_mut(PIECE).for_each(work);
    }
}

/// Copies bytes, and runs `work` on each piece of the copy, on all threads if there are several.
fn copy_pieces(from: &[u8], to: &mut [u8], work: impl Fn(&mut [u8]) + Sync + Send) {
    assert_eq!(from.len(), to.len(), "bytes of the samples");
    let copy = |(to, from): (&mut [u8], &[u8])| {
        to.copy_from_slice(from);
        work(to);
    };
    if from.len() <= PIECE {
        copy((to, from));
    } else {
        let pieces = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
        pieces.for_each(copy);
    }
}

/// Keeps up to so many bytes of the memory of large images that are dropped, for the next ones on any thread. The first touch of
/// new memory takes longer than most operations, so that a program that processes one image after another is faster with it. By
/// default nothing is kept; 0 returns what is kept to the system.
pub fn keep_memory(bytes: usize) {
    buffer::keep_spare(bytes);
}
