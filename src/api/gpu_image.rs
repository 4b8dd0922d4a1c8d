//! Images in the memory of a GPU.

use super::device::Device;
use super::error::{Error, Result};
use super::image::{Image, SampleType, checked_shape};
use super::metadata::Metadata;
use super::numbers::{Histogram, Sums, histogram_of, sum_operation, sums_of};
use super::operations::Operations;
use super::options::{Format, ReadOptions, WriteOptions, no_path};
use super::report::Report;
use super::stack::Stack;
use crate::engine::{DeviceInput, Done, MemoryJob};
use crate::formats::Reading;
use crate::formats::format;
use crate::formats::memory::{Page, Pages};
use crate::gpu::Devices;
use crate::gpu::cast::DeviceArray;
use crate::gpu::driver::{Buffer, ForeignMemory, ForeignStream, Gpu, Readers};
use crate::image::{Samples, Shape, Values};
use crate::ops::{self, DeviceImage, Operation};
use crate::timing::Timeline;
use anyhow::Context;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An image in the memory of a GPU: its samples, row by row with the channels of a pixel side by side, and its metadata.
///
/// PNGs and TIFFs with deflate or LZW are decoded on the GPU; other files are decoded on the CPU and copied there. Operations run
/// on the GPU that has the image, and fail if they have no kernel. All work on an image has ended when a call returns it. A clone
/// is the same image.
///
/// ```no_run
/// use gpuimg::{Device, GpuImage, Operations, ReadOptions};
///
/// let gpu = Device::gpu();
/// let image = GpuImage::read("scan.png", &ReadOptions::new(), &gpu)?;
/// let operations: Operations = "normalize --clip 0.1:99.9 + rotate 90".parse()?;
/// let result = operations.run_on_gpu(&image)?;
/// println!("{} samples at {:#x}", result.sample_type(), result.address(gpuimg::GpuReader::DefaultStream)?);
/// let on_host: gpuimg::Image = result.download()?;
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone)]
pub struct GpuImage {
    shared: Arc<Shared>,
}

/// What the clones of an image share.
struct Shared {
    page: Page<DeviceImage>,
    /// The file that it is from; empty if there is none.
    path: PathBuf,
    report: Report,
    device: Device,
    /// The number of the GPU.
    ordinal: usize,
    /// The samples as other programs have them, if they are stored in another form.
    converted: OnceLock<Buffer>,
    readers: Mutex<Readers>,
}

/// Who reads the memory of a [`GpuImage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuReader {
    /// Work on CUDA's legacy default stream, which CuPy and PyTorch use unless another one is selected.
    DefaultStream,
    /// Work on any stream.
    AnyStream,
}

/// An array in the memory of a GPU that belongs to another library.
#[derive(Clone, Copy, Debug)]
pub struct GpuArray {
    /// The address of the first sample.
    pub address: u64,
    /// Samples in a column, in a row, and in a pixel.
    pub sides: [usize; 3],
    /// The type of the samples.
    pub sample_type: SampleType,
    /// Bytes from one row, column and channel to the next; they may be negative.
    pub strides: [isize; 3],
    /// The CUDA stream whose queued work uses the array: its address, 1 for the legacy default stream, or 2 for that of the
    /// calling thread. `None` if no queued work does.
    pub stream: Option<usize>,
}

impl GpuArray {
    /// The samples, in the form of files.
    fn samples(&self) -> DeviceArray {
        DeviceArray {
            address: self.address,
            strides: self.strides,
            values: self.sample_type.values(),
            is_stored: false,
        }
    }

    /// The rows, if the samples of each lie side by side and are stored as images in memory are.
    fn rows(&self) -> Option<ForeignMemory> {
        let [height, width, channels] = self.sides;
        let [down, across, deep] = self.strides;
        let item = self.sample_type.bytes();
        let (pixel, row) = (channels * item, width * channels * item);
        let has_dense_rows = (channels <= 1 || deep == item as isize)
            && (width <= 1 || across == pixel as isize)
            && (height <= 1 || down >= row as isize);
        let pitch = if height <= 1 { row } else { down as usize };
        let is_copied = has_dense_rows && !self.sample_type.is_converted();
        is_copied.then_some(ForeignMemory {
            address: self.address,
            pitch,
            row,
        })
    }

    /// Lets the stream of a GPU wait for the work that is queued on that of the array.
    ///
    /// # Safety
    /// The stream of the array exists.
    unsafe fn wait_for_its_stream(&self, gpu: &Gpu) -> anyhow::Result<()> {
        gpu.check_foreign(self.address)?;
        match self.stream {
            // SAFETY: the caller's promise.
            Some(stream) => unsafe { gpu.wait_for_foreign(ForeignStream(stream)) },
            None => Ok(()),
        }
    }

    /// Queues a copy of the array to `samples`, in the form of memory, after the work of its stream.
    ///
    /// # Safety
    /// The stream of the array exists, and its samples are in memory that stays allocated until the stream of the GPU has been waited
    /// for. `samples` has as many samples.
    unsafe fn queue_copy(
        &self,
        gpu: &Gpu,
        shape: &Shape,
        samples: &mut Buffer,
    ) -> anyhow::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.wait_for_its_stream(gpu)? };
        if let Some(rows) = self.rows() {
            // SAFETY: the caller's promise.
            return unsafe { gpu.copy_foreign(&rows, samples) };
        }
        let values = self.sample_type.values();
        let to = DeviceArray::of_buffer(samples, shape, values, true);
        // SAFETY: the caller's promise for the array; the buffer has the same sides and type.
        unsafe { gpu.cast(self.sides, &self.samples(), &to) }
    }
}

impl GpuImage {
    /// Reads the first page of a file, or the one that `options` select, into the memory of the GPU.
    ///
    /// # Errors
    /// Those of [`read`](crate::read), a device that is not a GPU, and those of the GPU.
    pub fn read(
        path: impl AsRef<Path>,
        options: &ReadOptions,
        device: &Device,
    ) -> Result<GpuImage> {
        Operations::new().run_file_to_gpu(path, options, device)
    }

    /// Copies an image to the memory of the GPU.
    ///
    /// # Errors
    /// A device that is not a GPU, and those of the GPU.
    pub fn upload(image: Image, device: &Device) -> Result<GpuImage> {
        Operations::new().run_to_gpu(image, device)
    }

    /// Copies an array of another library, after the work that is queued on its stream. The copy has ended when this returns.
    ///
    /// # Errors
    /// Sides of 0, other numbers of channels than 1 to 4, an array that is not on this GPU, and those of the GPU.
    ///
    /// # Safety
    /// The samples are in memory that stays allocated during the call, and the stream exists.
    pub unsafe fn copy_array(array: &GpuArray, device: &Device) -> Result<GpuImage> {
        let [height, width, channels] = array.sides;
        let shape = checked_shape(width, height, channels, array.sample_type)?;
        let copied = device.on_stream(|devices| {
            let gpu = opened(devices)?;
            let mut samples = gpu.alloc(shape.bytes())?;
            // SAFETY: the caller's promise; the stream is waited for below, whatever the result.
            let queued = unsafe { array.queue_copy(gpu, &shape, &mut samples) };
            gpu.wait()?;
            queued?;
            Ok((samples, gpu.ordinal()))
        });
        let (samples, ordinal) = copied.map_err(Error::new)?;
        let page = Page {
            image: DeviceImage { shape, samples },
            metadata: array.sample_type.metadata(),
            metadata_bytes: 0,
            described: 1,
        };
        let report = Report::default();
        Ok(GpuImage::new(page, no_path(), report, device, ordinal))
    }

    /// Copies the samples to an array of another library, after the work that is queued on its stream. The copy has ended when this
    /// returns.
    ///
    /// # Errors
    /// An array of other sides or of another sample type, one that is not on this GPU, and those of the GPU.
    ///
    /// # Safety
    /// The samples of the array are in memory that stays allocated during the call, can be written, and is not that of this image; and
    /// the stream exists.
    pub unsafe fn copy_to(&self, array: &GpuArray) -> Result<()> {
        let shape = self.shape();
        let (sides, sample_type) = (
            [shape.height, shape.width, shape.channels],
            self.sample_type(),
        );
        if (array.sides, array.sample_type) != (sides, sample_type) {
            let [height, width, channels] = array.sides;
            return Err(Error::argument(format!(
                "the array has {height} × {width} × {channels} samples of {}, not {} × {} × {} of {sample_type}",
                array.sample_type, shape.height, shape.width, shape.channels
            )));
        }
        self.on_stream(|devices| {
            let gpu = opened(devices)?;
            // SAFETY: the caller's promise.
            unsafe { array.wait_for_its_stream(gpu)? };
            // SAFETY: the caller's promise for the array, and the image has its samples as long as it exists. The stream is waited for
            // below, whatever the result.
            let queued = unsafe { gpu.cast(sides, &self.stored(), &array.samples()) };
            gpu.wait()?;
            queued
        })
    }

    /// The image with its samples in another type, in which every value is the same; the image itself if it has that type.
    ///
    /// # Errors
    /// A type that does not [hold every value](SampleType::holds) of the samples, and those of the GPU.
    pub fn with_sample_type(&self, wanted: SampleType) -> Result<GpuImage> {
        let given = self.sample_type();
        if given == wanted {
            return Ok(self.clone());
        }
        if !wanted.holds(given) {
            let why = format!("samples of {wanted} do not hold every value of {given}");
            return Err(Error::argument(why));
        }
        let values = wanted.values();
        let shape = Shape {
            depth: values.depth,
            ..self.shape()
        };
        let samples = self.cast(&shape, values, true)?;
        let metadata = self.metadata();
        let page = Page {
            image: DeviceImage { shape, samples },
            metadata_bytes: metadata.bytes,
            described: metadata.described.max(1),
            metadata: metadata.fields_for(shape.channels, values),
        };
        let Shared {
            path,
            report,
            device,
            ordinal,
            ..
        } = &*self.shared;
        let (path, report) = (path.clone(), report.clone());
        Ok(GpuImage::new(page, path, report, device, *ordinal))
    }

    /// The samples in a new buffer, in another type, or in the form of files.
    fn cast(&self, shape: &Shape, values: Values, is_stored: bool) -> Result<Buffer> {
        self.on_stream(|devices| {
            let gpu = opened(devices)?;
            let samples = gpu.alloc(shape.bytes())?;
            let to = DeviceArray::of_buffer(&samples, shape, values, is_stored);
            let sides = [shape.height, shape.width, shape.channels];
            // SAFETY: both buffers have samples of these sides, and are kept until the stream has been waited for, whatever the result.
            let queued = unsafe { gpu.cast(sides, &self.stored(), &to) };
            gpu.wait()?;
            queued?;
            Ok(samples)
        })
    }

    /// The samples, in the form of memory.
    fn stored(&self) -> DeviceArray {
        let DeviceImage { shape, samples } = &self.shared.page.image;
        DeviceArray::of_buffer(samples, shape, self.sample_type().values(), true)
    }

    fn new(
        page: Page<DeviceImage>,
        path: PathBuf,
        report: Report,
        device: &Device,
        ordinal: usize,
    ) -> GpuImage {
        GpuImage {
            shared: Arc::new(Shared {
                page,
                path,
                report,
                device: device.clone(),
                ordinal,
                converted: OnceLock::new(),
                readers: Mutex::default(),
            }),
        }
    }

    /// Width, height and channels, and the depth of the samples.
    pub fn shape(&self) -> Shape {
        self.shared.page.image.shape
    }

    /// The type of the samples.
    pub fn sample_type(&self) -> SampleType {
        SampleType::new(self.shared.page.metadata.values(self.shape().depth))
    }

    /// What the file says of the pixels.
    pub fn metadata(&self) -> Metadata {
        let page = &self.shared.page;
        Metadata::of_page(page, self.shape())
    }

    /// The file that it was read from, also after operations.
    pub fn path(&self) -> Option<&Path> {
        Some(&*self.shared.path).filter(|path| !path.as_os_str().is_empty())
    }

    /// What is to be known of how it was read, or of the operations that made it.
    pub fn report(&self) -> &Report {
        &self.shared.report
    }

    /// The number of the GPU that has it, counted from 0 as the driver does.
    pub fn gpu_number(&self) -> usize {
        self.shared.ordinal
    }

    /// The address of the samples in the memory of the GPU, which stays valid while a clone of the image exists. Work
    /// that writes there changes the image and its clones; signed and floating-point samples are a copy. When the last clone is dropped,
    /// the GPU waits for the queued work of all `reader`s before it uses the memory again.
    ///
    /// # Errors
    /// Those of the GPU, for samples that are stored in another form than others expect: signed and floating-point ones.
    pub fn address(&self, reader: GpuReader) -> Result<u64> {
        let samples = match self.sample_type().is_converted() {
            true => self.converted()?,
            false => &self.shared.page.image.samples,
        };
        let readers = self.shared.readers.lock();
        let mut readers = readers.unwrap_or_else(PoisonError::into_inner);
        match reader {
            GpuReader::DefaultStream => readers.default_stream = true,
            GpuReader::AnyStream => readers.others = true,
        }
        Ok(samples.address())
    }

    /// The samples as other programs have them.
    fn converted(&self) -> Result<&Buffer> {
        if let Some(converted) = self.shared.converted.get() {
            return Ok(converted);
        }
        let converted = self.cast(&self.shape(), self.sample_type().values(), false)?;
        Ok(self.shared.converted.get_or_init(|| converted))
    }

    /// Copies the image to host memory.
    ///
    /// # Errors
    /// Those of the GPU, and too little memory.
    pub fn download(&self) -> Result<Image> {
        let page = &self.shared.page;
        let samples = self.on_stream(|devices| {
            let mut samples = Samples::any(&self.shape())?;
            let mut timeline = Timeline::default();
            opened(devices)?.job(samples.as_bytes_mut(), &mut timeline, |job| {
                job.download_first(&page.image.samples)
            })?;
            // Memory of the stream is for its next call.
            let mut own = Samples::zeroed(&self.shape())?;
            own.as_bytes_mut().copy_from_slice(samples.as_bytes());
            Ok(own)
        })?;
        let page = Page {
            image: crate::image::Image::new(self.shape(), samples),
            metadata: page.metadata.clone(),
            metadata_bytes: page.metadata_bytes,
            described: page.described,
        };
        Ok(Image::of_page(
            page,
            &self.shared.path,
            self.shared.report.clone(),
        ))
    }

    /// Adds up the samples exactly, as [`sum()`](crate::sum()) does. `nan` takes the place of NaN and infinite samples.
    ///
    /// # Errors
    /// NaN and infinite samples without `nan`, and those of the GPU.
    pub fn sum(&self, nan: Option<f64>) -> Result<Sums> {
        sums_of(self.numbers(sum_operation(nan)?)?)
    }

    /// Counts how often each value occurs, as [`histogram()`](crate::histogram()) does.
    ///
    /// # Errors
    /// Samples of 32 and 64 bits, and those of the GPU.
    pub fn histogram(&self) -> Result<Histogram> {
        histogram_of(self.numbers(Box::new(ops::histogram::Histogram))?)
    }

    fn numbers(&self, op: Box<dyn Operation>) -> Result<Done> {
        let operations = Operations::new().then(op);
        self.on_stream(|devices| {
            let pages = self.pages(devices)?;
            let run = |job: &MemoryJob| job.to_pages(pages);
            let ran =
                operations.job_with(devices, Reading::default(), &self.shared.path, None, run);
            Ok(ran?.1)
        })
    }

    /// Encodes the image as the bytes of a file. The GPU compresses large PNGs.
    ///
    /// # Errors
    /// A format that is only read, an image that the format cannot store, and those of the GPU.
    pub fn encode(&self, format: Format, options: &WriteOptions) -> Result<Vec<u8>> {
        format::check_written(format.0).map_err(Error::new)?;
        let destination = format.destination(&no_path(), options);
        self.on_stream(|devices| {
            let pages = self.pages(devices)?;
            let (reading, path) = (Reading::default(), &self.shared.path);
            let run = |job: &MemoryJob| job.to_bytes(pages);
            let encoded = Operations::new();
            let encoded = encoded.job_with(devices, reading, path, Some(&destination), run);
            Ok(encoded?.0)
        })
    }

    /// Writes the image to a file, as [`write_stack`](crate::write_stack) does. The GPU compresses large PNGs.
    ///
    /// # Errors
    /// Those of [`write_stack`](crate::write_stack), and those of the GPU.
    pub fn write(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<Report> {
        let path = path.as_ref();
        let destination = options.format_of(path)?.destination(path, options);
        let done = self.on_stream(|devices| {
            let pages = self.pages(devices)?;
            let run = |job: &MemoryJob| job.to_file(pages);
            let (reading, name) = (Reading::default(), &self.shared.path);
            Operations::new().job_with(devices, reading, name, Some(&destination), run)
        });
        done.map(Report::of_job)
    }

    /// Runs `work` on a stream of the GPU that has the image.
    pub(super) fn with_gpu<R>(
        &self,
        work: impl FnOnce(&Devices, &Gpu) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let device = self.device();
        device.on_stream(|devices| work(devices, opened(devices)?))
    }

    /// The GPU that has the image.
    pub(super) fn device(&self) -> &Device {
        &self.shared.device
    }

    /// The image of the engine.
    pub(super) fn page(&self) -> &Page<DeviceImage> {
        &self.shared.page
    }

    /// Runs `work` on a stream of the GPU that has the image.
    fn on_stream<R>(&self, work: impl FnOnce(&Devices) -> anyhow::Result<R>) -> Result<R> {
        self.shared.device.on_stream(work).map_err(Error::new)
    }

    /// A copy of the image that operations may change.
    fn pages(&self, devices: &Devices) -> anyhow::Result<Pages> {
        let page = &self.shared.page;
        let DeviceImage { shape, samples } = &page.image;
        let gpu = opened(devices)?;
        let samples = gpu.job(&mut [], &mut Timeline::default(), |job| {
            job.duplicate(samples)
        })?;
        let copy = Page {
            image: DeviceImage {
                shape: *shape,
                samples,
            },
            metadata: page.metadata.clone(),
            metadata_bytes: page.metadata_bytes,
            described: page.described,
        };
        Ok(copy.into())
    }
}

/// The GPU that a call works on.
fn opened(devices: &Devices) -> anyhow::Result<&Gpu> {
    let gpu = devices.opened();
    gpu.context("internal error: an image for a GPU that is not in use")
}

impl Drop for Shared {
    fn drop(&mut self) {
        let readers = *self
            .readers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let converted = self.converted.get();
        let lent = converted.unwrap_or(&self.page.image.samples);
        lent.wait_for_readers(readers);
    }
}

impl fmt::Debug for GpuImage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("GpuImage")
            .field("shape", &self.shape())
            .field("sample_type", &self.sample_type())
            .field("gpu_number", &self.gpu_number())
            .finish()
    }
}

impl Operations {
    /// Runs the operations on an image in the memory of a GPU, which has the result, too. The image stays as it is.
    ///
    /// # Errors
    /// An image that the operations do not support, operations without a kernel, and those of the GPU.
    pub fn run_on_gpu(&self, image: &GpuImage) -> Result<GpuImage> {
        let Shared { path, device, .. } = &*image.shared;
        self.to_gpu(path, Reading::default(), device, |devices| {
            Ok(DeviceInput::Memory(image.pages(devices)?))
        })
    }

    /// Copies an image to the memory of a GPU and runs the operations there.
    ///
    /// # Errors
    /// Those of [`run_on_gpu`](Operations::run_on_gpu), and a device that is not a GPU.
    pub fn run_to_gpu(&self, image: Image, device: &Device) -> Result<GpuImage> {
        let name = image.name().to_path_buf();
        self.to_gpu(&name, Reading::default(), device, |_| {
            Ok(DeviceInput::Memory(vec![image.into_page()].into()))
        })
    }

    /// Reads a file into the memory of a GPU, as [`GpuImage::read`] does, and runs the operations there.
    ///
    /// # Errors
    /// Those of [`GpuImage::read`] and [`run_on_gpu`](Operations::run_on_gpu).
    pub fn run_file_to_gpu(
        &self,
        path: impl AsRef<Path>,
        options: &ReadOptions,
        device: &Device,
    ) -> Result<GpuImage> {
        let stack = Stack::open_with(path, options)?;
        let input = |_: &Devices| Ok(DeviceInput::File(stack.source()));
        self.to_gpu(stack.path(), stack.reading_of_first_page(), device, input)
    }

    fn to_gpu<'a>(
        &self,
        name: &Path,
        reading: Reading,
        device: &Device,
        input: impl FnOnce(&Devices) -> anyhow::Result<DeviceInput<'a>>,
    ) -> Result<GpuImage> {
        let destination = self.memory_destination();
        let made = device.on_stream(|devices| {
            let ordinal = opened(devices)?.ordinal();
            let input = input(devices)?;
            let run = |job: &MemoryJob| job.to_device(input);
            let (page, done) = self.job_with(devices, reading, name, Some(&destination), run)?;
            Ok((page, done, ordinal))
        });
        let (page, done, ordinal) = made.map_err(Error::new)?;
        let report = Report::of_job(done);
        Ok(GpuImage::new(
            page,
            name.to_path_buf(),
            report,
            device,
            ordinal,
        ))
    }
}
