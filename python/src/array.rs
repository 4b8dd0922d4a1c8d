//! Arrays of Python: lent to the library or copied through the buffer protocol, from any strides, and written the same way.
//!
//! Two facts make the access sound. An array that exports a buffer neither frees nor moves its memory until the buffer is released,
//! which `Array` does when its last owner is dropped. And the caller leaves the samples alone during a call, as with every library
//! that releases the interpreter's lock; `docs/PYTHON.md` says so. No unsafe code of the
//! library depends on the values of samples, so that a caller that breaks this rule gets wrong samples.

use crate::errors::argument;
use crate::image::Image;
use gpuimg::{SampleType, Shape};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::Arc;

/// Bytes that a thread copies at a time.
const PIECE: usize = 1 << 20;

/// An image that was given to a function.
pub enum Input {
    /// An image of this module.
    Image(Arc<gpuimg::Image>),
    /// An array.
    Array(Array),
}

impl Input {
    /// An `Image`, or anything that is or can be an array in host memory.
    pub fn new(object: &Bound<PyAny>) -> PyResult<Input> {
        match object.cast::<Image>() {
            Ok(image) => Ok(Input::Image(image.get().engine()?.clone())),
            Err(_) => Ok(Input::Array(Array::new(object)?)),
        }
    }

    /// The bytes of its samples.
    pub fn bytes(&self) -> usize {
        match self {
            Input::Image(image) => image.shape().bytes(),
            Input::Array(array) => array.bytes(),
        }
    }

    /// The image, which may refer to the memory of the array: it must not outlive the call.
    pub fn load(&self) -> gpuimg::Result<gpuimg::Image> {
        match self {
            Input::Image(image) => Ok(gpuimg::Image::clone(image)),
            Input::Array(array) => array.load(),
        }
    }

    /// The image, which does not refer to the memory of the array.
    pub fn copy(&self) -> gpuimg::Result<gpuimg::Image> {
        self.load()?.detached()
    }

    /// Whether it is an array whose memory overlaps with that of another one.
    pub fn overlaps(&self, other: &Array) -> bool {
        match self {
            Input::Image(_) => false,
            Input::Array(array) => {
                let (ours, theirs) = (array.extent(), other.extent());
                ours.start < theirs.end && theirs.start < ours.end
            }
        }
    }
}

/// An array of height × width samples, or height × width × channels.
pub struct Array {
    buffer: Arc<PyUntypedBuffer>,
    layout: Layout,
    sample_type: SampleType,
    /// Whether the bytes of a sample are in the order that this machine does not have.
    is_swapped: bool,
}

impl Array {
    /// The memory of an array. The array cannot free or resize it until this is dropped.
    pub fn new(object: &Bound<PyAny>) -> PyResult<Array> {
        let buffer = match PyUntypedBuffer::get(object) {
            Ok(buffer) => buffer,
            Err(error) => PyUntypedBuffer::get(&with_numpy(object, error)?)?,
        };
        let (sample_type, is_swapped) = sample_type(&buffer)?;
        let (shape, strides) = (buffer.shape(), buffer.strides());
        let item = buffer.item_size();
        let layout = match (shape, strides) {
            (&[height, width], &[down, across]) => Layout {
                sides: [height, width, 1],
                strides: [down, across, item as isize],
                item,
            },
            (&[height, width, channels], &[down, across, deep]) => Layout {
                sides: [height, width, channels],
                strides: [down, across, deep],
                item,
            },
            _ => {
                return Err(argument(format!(
                    "an image is an array of height × width or height × width × channels, not of {} dimensions",
                    shape.len()
                )));
            }
        };
        if buffer
            .suboffsets()
            .is_some_and(|offsets| offsets.iter().any(|&it| it >= 0))
        {
            return Err(argument("arrays of pointers are not supported"));
        }
        Ok(Array {
            buffer: Arc::new(buffer),
            layout,
            sample_type,
            is_swapped,
        })
    }

    fn bytes(&self) -> usize {
        let sides = self.layout.sides.iter();
        sides.fold(self.layout.item, |bytes, side| bytes.saturating_mul(*side))
    }

    /// The samples without gaps, if they lie so in memory and have the byte order of this machine.
    fn lent(&self) -> Option<LentSamples> {
        let is_plain = self.layout.is_dense() && !self.is_swapped;
        is_plain.then(|| LentSamples {
            buffer: self.buffer.clone(),
            bytes: self.bytes(),
        })
    }

    /// The memory of the samples for a result, if it lies so and takes samples as the library stores them.
    pub fn room(&self) -> Option<Room> {
        use SampleType::{U8, U16, U32};
        let is_stored = matches!(self.sample_type, U8 | U16 | U32) && !self.buffer.readonly();
        self.lent().filter(|_| is_stored).map(Room)
    }

    /// The addresses from the first to the last byte of all samples.
    fn extent(&self) -> Range<usize> {
        let start = self.buffer.buf_ptr().addr();
        let reach = self.layout.sides.iter().zip(&self.layout.strides);
        let reach = reach.map(|(&side, &stride)| side.saturating_sub(1) as isize * stride);
        let reach: Vec<isize> = reach.collect();
        let down: isize = reach.iter().filter(|&&it| it < 0).sum();
        let up: isize = reach.iter().filter(|&&it| it > 0).sum();
        start.wrapping_add_signed(down)..start.wrapping_add_signed(up) + self.layout.item
    }

    fn load(&self) -> gpuimg::Result<gpuimg::Image> {
        let [height, width, channels] = self.layout.sides;
        if let Some(samples) = self.lent() {
            return gpuimg::Image::of_memory(width, height, channels, self.sample_type, samples);
        }
        let memory = Memory(self.buffer.buf_ptr().cast());
        gpuimg::Image::of_bytes(width, height, channels, self.sample_type, |bytes| {
            // SAFETY: the exporter of the buffer guarantees its layout, and keeps the memory until the buffer is released.
            unsafe { self.layout.gather(memory, bytes) };
            if self.is_swapped {
                let item = self.layout.item;
                bytes.chunks_exact_mut(item).for_each(<[u8]>::reverse);
            }
        })
    }

    /// Refuses an array that cannot take this image; the error says why.
    pub fn check_fits(&self, image: &gpuimg::Image) -> Result<(), String> {
        let (shape, wanted) = (image.shape(), image.sample_type());
        if self.buffer.readonly() {
            return Err("out is read-only".into());
        }
        if self.is_swapped {
            return Err("out has not the byte order of this machine".into());
        }
        check_out(self.layout.sides, self.sample_type, shape, wanted)
    }

    /// Writes the samples of an image that fits. Its samples must not be in memory that overlaps with the array, unless they are
    /// there already.
    pub fn store(&self, image: &gpuimg::Image) {
        if let Some(LentSamples { buffer, bytes }) = self.lent() {
            let start: *mut u8 = buffer.buf_ptr().cast();
            if let Cow::Borrowed(samples) = image.to_bytes()
                && samples.as_ptr() == start
            {
                return;
            }
            // SAFETY: the buffer guarantees its layout, and keeps the memory until it is released. `check_fits` has compared the
            // sizes and found the memory writable, and the samples of the image are elsewhere.
            image.copy_bytes(unsafe { slice::from_raw_parts_mut(start, bytes) });
            return;
        }
        let memory = Memory(self.buffer.buf_ptr().cast());
        // SAFETY: as in `load`; `check_fits` has compared the sizes, and the memory may be written.
        unsafe { self.layout.scatter(memory, &image.to_bytes()) };
    }
}

/// Refuses an array of other sides or another type than the result has; the error says why.
pub fn check_out(
    sides: [usize; 3],
    sample_type: SampleType,
    shape: Shape,
    wanted: SampleType,
) -> Result<(), String> {
    let Shape {
        height,
        width,
        channels,
        ..
    } = shape;
    if (sides, sample_type) == ([height, width, channels], wanted) {
        return Ok(());
    }
    let [out_height, out_width, out_channels] = sides;
    Err(format!(
        "out has {out_height} × {out_width} × {out_channels} samples of {sample_type}, but the result has {height} × {width} × {channels} of {wanted}"
    ))
}

/// The samples of a contiguous array, and its buffer, which keeps them where they are.
struct LentSamples {
    buffer: Arc<PyUntypedBuffer>,
    bytes: usize,
}

impl Deref for LentSamples {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: a contiguous buffer of so many bytes, which its exporter keeps until `buffer` is released.
        unsafe { slice::from_raw_parts(self.buffer.buf_ptr().cast(), self.bytes) }
    }
}

/// The memory of a contiguous array that can be written. Nothing else refers to it during a call: see `Input::overlaps`.
pub struct Room(LentSamples);

impl Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.0.bytes == 0 {
            return &mut [];
        }
        // SAFETY: as in `LentSamples`; `Array::room` has found the memory writable.
        unsafe { slice::from_raw_parts_mut(self.0.buffer.buf_ptr().cast(), self.0.bytes) }
    }
}

/// What numpy makes of an object without a buffer.
fn with_numpy<'py>(object: &Bound<'py, PyAny>, error: PyErr) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let has = |name: &str| object.hasattr(name).unwrap_or(false);
    let is_on_gpu = || -> PyResult<bool> {
        if !has("__dlpack_device__") {
            return Ok(has("__cuda_array_interface__"));
        }
        let device = object.call_method0("__dlpack_device__")?.extract()?;
        Ok(crate::dlpack::gpu_of(device).is_some())
    };
    if is_on_gpu()? {
        return Err(argument(
            "the array is in the memory of a GPU, but this needs arrays in host memory: copy it first (tensor.cpu() in PyTorch, \
             array.get() in CuPy)",
        ));
    }
    let function = if has("__array_interface__") || has("__array__") {
        "asarray"
    } else if has("__dlpack__") {
        "from_dlpack"
    } else if error.is_instance_of::<PyTypeError>(py) {
        return Err(PyTypeError::new_err(format!(
            "expected an Image or an array (buffer protocol, __array_interface__, __array__ or __dlpack__), not {}",
            object.get_type().name()?
        )));
    } else {
        return Err(error);
    };
    py.import("numpy")?.call_method1(function, (object,))
}

/// The type of the samples of a buffer, and whether their bytes must be swapped.
fn sample_type(buffer: &PyUntypedBuffer) -> PyResult<(SampleType, bool)> {
    let format = buffer.format().to_bytes();
    let (order, letter) = match format {
        [order @ (b'<' | b'>' | b'=' | b'@' | b'!'), letter] => (*order, *letter),
        [letter] => (b'@', *letter),
        _ => (b'@', b'?'),
    };
    let is_big = match order {
        b'<' => false,
        b'>' | b'!' => true,
        _ => cfg!(target_endian = "big"),
    };
    let found = match (letter, buffer.item_size()) {
        (b'b', 1) => SampleType::I8,
        (b'B' | b'c', 1) => SampleType::U8,
        (b'h', 2) => SampleType::I16,
        (b'H', 2) => SampleType::U16,
        (b'i' | b'l', 4) => SampleType::I32,
        (b'I' | b'L', 4) => SampleType::U32,
        (b'f', 4) => SampleType::F32,
        (b'd', 8) => SampleType::F64,
        (letter, size) => {
            let name = match (letter, size) {
                (b'?', 1) => "bool",
                (b'e', 2) => "float16",
                (b'q' | b'l' | b'n', 8) => "int64",
                (b'Q' | b'L' | b'N', 8) => "uint64",
                _ => &String::from_utf8_lossy(format),
            };
            return Err(argument(format!(
                "samples of {name} are not supported: convert them to uint8, int8, uint16, int16, uint32, int32, float32 or float64"
            )));
        }
    };
    Ok((
        found,
        is_big != cfg!(target_endian = "big") && found.bytes() > 1,
    ))
}

/// The type of samples with this name in `__cuda_array_interface__`, which has the byte order of the machine: `<u2`.
pub fn type_of_interface(name: &str) -> Option<SampleType> {
    let types = [
        ("u1", SampleType::U8),
        ("i1", SampleType::I8),
        ("u2", SampleType::U16),
        ("i2", SampleType::I16),
        ("u4", SampleType::U32),
        ("i4", SampleType::I32),
        ("f4", SampleType::F32),
        ("f8", SampleType::F64),
    ];
    let plain = name.strip_prefix(['<', '|', '='])?;
    let row = types.iter().find(|row| row.0 == plain);
    row.map(|row| row.1)
}

/// The address of the first sample of an array.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

// SAFETY: it is only an address. Python code in another thread may write there while it is read, as with every library that releases
// the interpreter's lock: the copy then has old and new samples, all of which are valid.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn at(self, offset: isize) -> *mut u8 {
        self.0.wrapping_offset(offset)
    }
}

/// Where the samples of an array are.
struct Layout {
    /// Height, width and channels.
    sides: [usize; 3],
    /// Bytes from one row, column and channel to the next.
    strides: [isize; 3],
    /// Bytes of a sample.
    item: usize,
}

impl Layout {
    /// Bytes of a row without gaps.
    fn row(&self) -> usize {
        self.sides[1] * self.sides[2] * self.item
    }

    /// Whether the samples lie row by row without gaps.
    fn is_dense(&self) -> bool {
        self.has_dense_rows() && (self.sides[0] <= 1 || self.strides[0] == self.row() as isize)
    }

    fn has_dense_rows(&self) -> bool {
        let [_, width, channels] = self.sides;
        let pixel = channels * self.item;
        (channels == 1 || self.strides[2] == self.item as isize)
            && (width == 1 || self.strides[1] == pixel as isize)
    }

    /// Copies all samples to `into`, row by row without gaps.
    ///
    /// # Safety
    /// Every sample of the layout lies in memory that can be read, and `into` has room for all.
    unsafe fn gather(&self, from: Memory, into: &mut [u8]) {
        self.for_rows(into, |row, bytes| {
            let start = row as isize * self.strides[0];
            if self.has_dense_rows() {
                // SAFETY: a dense row is one run of memory, which the caller lets us read.
                unsafe {
                    from.at(start)
                        .copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len())
                };
                return;
            }
            for (sample, offset) in bytes.chunks_exact_mut(self.item).zip(self.offsets(start)) {
                // SAFETY: a sample of the layout.
                unsafe { copy(from.at(offset), sample.as_mut_ptr(), self.item) };
            }
        });
    }

    /// Copies `samples`, which are as those of `gather`, to the memory.
    ///
    /// # Safety
    /// Every sample of the layout lies in memory that can be written, and `samples` has all.
    unsafe fn scatter(&self, to: Memory, samples: &[u8]) {
        let rows = samples
            .par_chunks(self.row())
            .with_min_len(self.rows_at_a_time());
        rows.enumerate().for_each(|(row, bytes)| {
            let start = row as isize * self.strides[0];
            if self.has_dense_rows() {
                // SAFETY: a dense row is one run of memory, which the caller lets us write.
                unsafe {
                    to.at(start)
                        .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
                };
                return;
            }
            for (sample, offset) in bytes.chunks_exact(self.item).zip(self.offsets(start)) {
                // SAFETY: a sample of the layout.
                unsafe { copy(sample.as_ptr(), to.at(offset), self.item) };
            }
        });
    }

    fn for_rows(&self, into: &mut [u8], each: impl Fn(usize, &mut [u8]) + Sync) {
        let rows = into.par_chunks_mut(self.row());
        let rows = rows.with_min_len(self.rows_at_a_time());
        rows.enumerate().for_each(|(row, bytes)| each(row, bytes));
    }

    fn rows_at_a_time(&self) -> usize {
        (PIECE / self.row()).max(1)
    }

    /// The offsets of the samples of a row that starts at `start`.
    fn offsets(&self, start: isize) -> impl Iterator<Item = isize> {
        let [_, width, channels] = self.sides;
        let [_, across, deep] = self.strides;
        (0..width as isize).flat_map(move |column| {
            (0..channels as isize).map(move |channel| start + column * across + channel * deep)
        })
    }
}

/// Copies a sample.
///
/// # Safety
/// Both addresses have `bytes` bytes, the first to read and the second to write.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. The sizes are written out, so that each becomes one move.
    unsafe {
        match bytes {
            1 => *to = *from,
            2 => to
                .cast::<[u8; 2]>()
                .write_unaligned(from.cast::<[u8; 2]>().read_unaligned()),
            4 => to
                .cast::<[u8; 4]>()
                .write_unaligned(from.cast::<[u8; 4]>().read_unaligned()),
            _ => to
                .cast::<[u8; 8]>()
                .write_unaligned(from.cast::<[u8; 8]>().read_unaligned()),
        }
    }
}

/// An image with the samples of another one in a type that holds all values exactly; `None` if it does not.
pub fn cast(image: gpuimg::Image, wanted: SampleType) -> gpuimg::Result<Option<gpuimg::Image>> {
    use SampleType::{F32, F64, I8, I16, I32, U8, U16, U32};
    let given = image.sample_type();
    let bytes = image.to_bytes();
    let shape = image.shape();
    macro_rules! convert {
        ($from:ty, $to:ty) => {
            gpuimg::Image::of_bytes(shape.width, shape.height, shape.channels, wanted, |into| {
                let samples = bytes.par_chunks(size_of::<$from>() << 16);
                let pairs = samples.zip(into.par_chunks_mut(size_of::<$to>() << 16));
                pairs.for_each(|(samples, into)| {
                    let (samples, _) = samples.as_chunks();
                    let (into, _) = into.as_chunks_mut();
                    for (sample, into) in samples.iter().zip(into) {
                        *into = <$to>::from(<$from>::from_ne_bytes(*sample)).to_ne_bytes();
                    }
                });
            })?
        };
    }
    let mut result = match (given, wanted) {
        (U8, U16) => convert!(u8, u16),
        (U8, I16) => convert!(u8, i16),
        (U8, U32) => convert!(u8, u32),
        (U8, I32) => convert!(u8, i32),
        (I8, I16) => convert!(i8, i16),
        (I8, I32) => convert!(i8, i32),
        (U16, U32) => convert!(u16, u32),
        (U16, I32) => convert!(u16, i32),
        (I16, I32) => convert!(i16, i32),
        (U8, F32) => convert!(u8, f32),
        (I8, F32) => convert!(i8, f32),
        (U16, F32) => convert!(u16, f32),
        (I16, F32) => convert!(i16, f32),
        (U8, F64) => convert!(u8, f64),
        (I8, F64) => convert!(i8, f64),
        (U16, F64) => convert!(u16, f64),
        (I16, F64) => convert!(i16, f64),
        (U32, F64) => convert!(u32, f64),
        (I32, F64) => convert!(i32, f64),
        (F32, F64) => convert!(f32, f64),
        _ => return Ok(None),
    };
    result.set_metadata(image.metadata());
    result.set_path(image.path().unwrap_or("".as_ref()));
    Ok(Some(result))
}
