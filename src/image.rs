//! An image in memory: interleaved native-endian samples of 8, 16, 32 or 64 bits. This module depends
//! only on its own submodules.

pub mod buffer;
mod dynamic;
pub mod metadata;
pub mod number;
mod region;
pub mod simd;
mod values;

use buffer::{Block, Buffer, LentMemory};
pub use region::Region;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
pub use values::{Depth, Values};

/// The dimensions and the depth of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pixels in a row; at least 1.
    pub width: usize,
    /// Rows; at least 1.
    pub height: usize,
    /// Samples per pixel: 1 grey, 2 grey + alpha, 3 RGB, 4 RGB + alpha.
    pub channels: usize,
    /// Bits per sample.
    pub depth: Depth,
}

impl Shape {
    /// Pixels in the image.
    pub fn pixels(&self) -> usize {
        self.width * self.height
    }

    /// The indices of the pixels on a grid: at most 4,096, and at most a 256th of a large image. They show what most of
    /// the image is like at almost no cost. Steps are odd, because even steps would hit one colour of a Bayer mosaic.
    #[doc(hidden)]
    pub fn lattice(&self) -> impl Iterator<Item = usize> + use<> {
        let side = (self.pixels().isqrt() / 16).clamp(32, 64);
        let width = self.width;
        let columns = (0..width).step_by(width.div_ceil(side) | 1);
        let rows = (0..self.height).step_by(self.height.div_ceil(side) | 1);
        rows.flat_map(move |row| columns.clone().map(move |column| row * width + column))
    }

    /// Samples in a row.
    pub fn row(&self) -> usize {
        self.width * self.channels
    }

    /// Samples in the image.
    pub fn samples(&self) -> usize {
        self.pixels() * self.channels
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> usize {
        self.samples() * self.depth.bytes()
    }

    /// The suffix for its depth and channel count in the names of kernels: `u16_c3`.
    #[doc(hidden)]
    pub fn sample_form(&self) -> String {
        format!("{}_c{}", self.depth.form(), self.channels)
    }

    /// Bytes of a pixel: 1, 2, 3, 4, 6, 8, 12, 16, 24 or 32.
    pub fn pixel_bytes(&self) -> usize {
        self.channels * self.depth.bytes()
    }

    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        self.channels.is_multiple_of(2)
    }

    /// Channels that carry colour: all but alpha.
    pub fn colours(&self) -> usize {
        self.channels - usize::from(self.has_alpha())
    }

    /// The shape given by the header of a file. Errors: a side of 0, or more bytes than memory can
    /// address.
    #[doc(hidden)]
    pub fn checked(
        width: u64,
        height: u64,
        channels: usize,
        depth: Depth,
    ) -> anyhow::Result<Shape> {
        anyhow::ensure!(
            width > 0 && height > 0,
            "the image is empty ({width}×{height})"
        );
        let bytes = width
            .checked_mul(height)
            .and_then(|pixels| pixels.checked_mul(channels as u64))
            .and_then(|samples| samples.checked_mul(depth.bytes() as u64))
            .filter(|&bytes| bytes <= isize::MAX as u64);
        anyhow::ensure!(
            bytes.is_some(),
            "{width}×{height} pixels do not fit in memory"
        );
        Ok(Shape {
            width: width as usize,
            height: height as usize,
            channels,
            depth,
        })
    }
}

impl Shape {
    /// A description of the channels: grey, grey + alpha, RGB or RGB + alpha.
    pub fn kind(&self) -> &'static str {
        ["grey", "grey + alpha", "RGB", "RGB + alpha"][(self.channels - 1).min(3)]
    }

    /// The names of the channels, in order.
    pub fn channel_names(&self) -> &'static [&'static str] {
        match self.channels {
            1 => &["grey"],
            2 => &["grey", "alpha"],
            3 => &["red", "green", "blue"],
            _ => &["red", "green", "blue", "alpha"],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}×{} {}, {}",
            self.width,
            self.height,
            self.kind(),
            self.depth
        )
    }
}

/// The samples of an image, row by row, channels interleaved, in the machine's byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Samples {
    /// 8-bit samples.
    U8(Buffer<u8>),
    /// 16-bit samples.
    U16(Buffer<u16>),
    /// 32-bit samples: integers, or keys of floating point.
    U32(Buffer<u32>),
    /// 64-bit samples: keys of floating point.
    U64(Buffer<u64>),
}

impl From<Vec<u8>> for Samples {
    fn from(samples: Vec<u8>) -> Samples {
        Samples::U8(samples.into())
    }
}

impl From<Vec<u16>> for Samples {
    fn from(samples: Vec<u16>) -> Samples {
        Samples::U16(samples.into())
    }
}

impl From<Vec<u32>> for Samples {
    fn from(samples: Vec<u32>) -> Samples {
        Samples::U32(samples.into())
    }
}

impl From<Vec<u64>> for Samples {
    fn from(samples: Vec<u64>) -> Samples {
        Samples::U64(samples.into())
    }
}

impl Samples {
    /// Zeroed samples for an image of this shape. Errors: the memory cannot be allocated.
    pub fn zeroed(shape: &Shape) -> anyhow::Result<Samples> {
        Ok(match shape.depth {
            Depth::Eight => Samples::U8(Buffer::zeroed(shape.samples())?),
            Depth::Sixteen => Samples::U16(Buffer::zeroed(shape.samples())?),
            Depth::ThirtyTwo | Depth::Float => Samples::U32(Buffer::zeroed(shape.samples())?),
            Depth::Double => Samples::U64(Buffer::zeroed(shape.samples())?),
        })
    }

    /// Samples with undefined values for an image of this shape, for callers that write every
    /// sample.
    pub fn any(shape: &Shape) -> anyhow::Result<Samples> {
        Samples::any_of(shape, None)
    }

    /// The same, in the offered memory if that has exactly the size of the samples.
    fn any_of(shape: &Shape, offer: Option<Block>) -> anyhow::Result<Samples> {
        let count = shape.samples();
        Ok(match shape.depth {
            Depth::Eight => Samples::U8(Buffer::any_of(count, offer)?),
            Depth::Sixteen => Samples::U16(Buffer::any_of(count, offer)?),
            Depth::ThirtyTwo | Depth::Float => Samples::U32(Buffer::any_of(count, offer)?),
            Depth::Double => Samples::U64(Buffer::any_of(count, offer)?),
        })
    }

    /// Memory for the result of an operation on these samples, with undefined values, for callers that write every sample. Errors:
    /// no memory.
    pub fn memory_for_result(&mut self, shape: &Shape) -> anyhow::Result<Samples> {
        Samples::any_of(shape, self.take_offer())
    }

    /// The memory that was offered.
    pub fn take_offer(&mut self) -> Option<Block> {
        match self {
            Samples::U8(samples) => samples.take_offer(),
            Samples::U16(samples) => samples.take_offer(),
            Samples::U32(samples) => samples.take_offer(),
            Samples::U64(samples) => samples.take_offer(),
        }
    }

    /// Offers memory for the result of an operation on these samples.
    pub fn offer(&mut self, memory: Block) {
        match self {
            Samples::U8(samples) => samples.offer(memory),
            Samples::U16(samples) => samples.offer(memory),
            Samples::U32(samples) => samples.offer(memory),
            Samples::U64(samples) => samples.offer(memory),
        }
    }

    /// The samples of an image of this shape in memory of another owner; `None` if its length or alignment is not theirs. They
    /// are copied before they are changed.
    pub fn lent(shape: &Shape, memory: LentMemory) -> Option<Samples> {
        let lent = match shape.depth {
            Depth::Eight => Samples::U8(Buffer::lent(memory)?),
            Depth::Sixteen => Samples::U16(Buffer::lent(memory)?),
            Depth::ThirtyTwo | Depth::Float => Samples::U32(Buffer::lent(memory)?),
            Depth::Double => Samples::U64(Buffer::lent(memory)?),
        };
        (lent.len() == shape.samples()).then_some(lent)
    }

    /// The same samples, whose clones share their memory until one of them is changed.
    pub fn shared(self) -> Samples {
        match self {
            Samples::U8(samples) => Samples::U8(samples.shared()),
            Samples::U16(samples) => Samples::U16(samples.shared()),
            Samples::U32(samples) => Samples::U32(samples.shared()),
            Samples::U64(samples) => Samples::U64(samples.shared()),
        }
    }

    /// Whether they are in memory that another owner lends.
    pub fn is_lent(&self) -> bool {
        match self {
            Samples::U8(samples) => samples.is_lent(),
            Samples::U16(samples) => samples.is_lent(),
            Samples::U32(samples) => samples.is_lent(),
            Samples::U64(samples) => samples.is_lent(),
        }
    }

    /// Memory for changed samples, with undefined values, if they cannot be changed where they are without a copy. Errors: no
    /// memory.
    pub fn memory_for_change(&mut self) -> anyhow::Result<Option<Samples>> {
        Ok(match self {
            Samples::U8(samples) => samples.memory_for_change()?.map(Samples::U8),
            Samples::U16(samples) => samples.memory_for_change()?.map(Samples::U16),
            Samples::U32(samples) => samples.memory_for_change()?.map(Samples::U32),
            Samples::U64(samples) => samples.memory_for_change()?.map(Samples::U64),
        })
    }

    /// Bytes per sample: 1, 2, 4 or 8.
    pub fn sample_bytes(&self) -> usize {
        match self {
            Samples::U8(_) => 1,
            Samples::U16(_) => 2,
            Samples::U32(_) => 4,
            Samples::U64(_) => 8,
        }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        match self {
            Samples::U8(samples) => samples.len(),
            Samples::U16(samples) => samples.len(),
            Samples::U32(samples) => samples.len(),
            Samples::U64(samples) => samples.len(),
        }
    }

    /// The sample at `index`: an unsigned number, or the key of a floating-point number.
    pub fn at(&self, index: usize) -> u64 {
        match self {
            Samples::U8(samples) => samples[index].into(),
            Samples::U16(samples) => samples[index].into(),
            Samples::U32(samples) => samples[index].into(),
            Samples::U64(samples) => samples[index],
        }
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the samples, in the machine's byte order.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Samples::U8(samples) => samples,
            Samples::U16(samples) => bytemuck::cast_slice(samples),
            Samples::U32(samples) => bytemuck::cast_slice(samples),
            Samples::U64(samples) => bytemuck::cast_slice(samples),
        }
    }

    /// The memory of the samples, to be written in the machine's byte order.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Samples::U8(samples) => samples,
            Samples::U16(samples) => bytemuck::cast_slice_mut(samples),
            Samples::U32(samples) => bytemuck::cast_slice_mut(samples),
            Samples::U64(samples) => bytemuck::cast_slice_mut(samples),
        }
    }
}

/// An image: its shape and its samples, which always agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    shape: Shape,
    samples: Samples,
}

impl Image {
    /// An image of a shape and its samples; panics if they disagree, which is a bug in the caller.
    pub fn new(shape: Shape, samples: Samples) -> Image {
        assert_eq!(shape.samples(), samples.len(), "samples of a {shape:?}");
        let bytes = samples.sample_bytes();
        assert_eq!(shape.depth.bytes(), bytes, "samples of a {shape:?}");
        Image { shape, samples }
    }

    /// Width, height, channels and depth.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The samples, for changing their values.
    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// The same image, whose clones share its memory until one of them is changed.
    pub fn shared(self) -> Image {
        Image {
            shape: self.shape,
            samples: self.samples.shared(),
        }
    }

    /// A copy of some rows.
    pub fn rows(&self, rows: Range<usize>) -> Image {
        let part = rows.start * self.shape.row()..rows.end * self.shape.row();
        let shape = Shape {
            height: rows.len(),
            ..self.shape
        };
        let samples = match &self.samples {
            Samples::U8(samples) => samples[part].to_vec().into(),
            Samples::U16(samples) => samples[part].to_vec().into(),
            Samples::U32(samples) => samples[part].to_vec().into(),
            Samples::U64(samples) => samples[part].to_vec().into(),
        };
        Image::new(shape, samples)
    }

    /// The samples, for reuse of their memory.
    pub fn into_samples(self) -> Samples {
        self.samples
    }
}

/// The memory of samples as uninterpreted bytes: devices copy to and from it.
#[derive(Debug)]
pub struct HostMemory(Samples);

impl From<Samples> for HostMemory {
    fn from(samples: Samples) -> HostMemory {
        HostMemory(samples)
    }
}

impl HostMemory {
    /// Whether it has the type and the number of samples of an image of this shape.
    pub fn matches(&self, shape: Shape) -> bool {
        self.0.len() == shape.samples() && self.len() == shape.bytes()
    }

    /// The bytes as the samples of an image of this shape, which has as many bytes and the same
    /// depth.
    pub fn into_image(self, shape: Shape) -> Image {
        Image::new(shape, self.0)
    }
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_bytes_mut()
    }
}
