//! A list of operations, and the calls that run it on images in memory or in files.

use super::device::Device;
use super::error::{Error, Result};
use super::image::Image;
use super::options::{Format, ReadOptions, WriteOptions, no_path};
use super::report::Report;
use crate::engine::{
    Destination, MemoryJob, NamedSource, Resources, RunRecord, plan_file, process_file,
};
use crate::formats::{Reading, memory::Page};
use crate::gpu::Devices;
use crate::image::{Depth, Region, Shape};
use crate::ops::calibrate::{Calibrate, FlatField, Frame, FrameSet, ResultType, Settings};
use crate::ops::convert::Convert;
use crate::ops::crop::Crop;
use crate::ops::debayer::Debayer;
pub use crate::ops::debayer::{Method as DebayerMethod, Pattern as BayerPattern};
use crate::ops::fit::Fit;
use crate::ops::lut::Lut;
pub use crate::ops::lut::Palette;
use crate::ops::normalize::{self, InputRange, Range};
use crate::ops::restore::Restore;
use crate::ops::symmetry::Symmetry;
use crate::ops::{Operation, Position, Scope, Verb, chain};
use crate::os::Source;
use crate::os::name::Shown;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::DerefMut;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Operations on images, one after the other. They are exact, and give the bytes of `gpuimg run` with the same operations.
///
/// Build them by methods, or parse the text that `gpuimg run` takes:
///
/// ```
/// use gpuimg::{Device, Image, Normalize, Operations};
///
/// let built = Operations::new().normalize(Normalize::new()).rotate90();
/// let parsed: Operations = "normalize + rotate 90".parse()?;
///
/// let image = Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?;
/// let result = built.run(image.clone(), &Device::cpu())?;
/// assert_eq!((result.width(), result.height()), (2, 3));
/// assert_eq!(result.to_vec::<u16>()?, [19661, 0, 26214, 6554, 65535, 13107]);
/// assert_eq!(parsed.run(image, &Device::cpu())?, result);
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Operations {
    ops: Vec<Arc<dyn Operation>>,
    depth: Option<Depth>,
    auto_orient: bool,
    fit: Option<Fit>,
}

impl Operations {
    /// No operation yet: the result has the pixels of the image.
    pub fn new() -> Operations {
        Operations::default()
    }

    /// Adds an operation of the engine.
    pub(crate) fn then(mut self, op: Box<dyn Operation>) -> Operations {
        self.ops.push(op.into());
        self
    }

    /// Scales the range of values to the full depth, correctly rounded: `out = ⌊(p − min)·full / (max − min) + 1/2⌋`. Samples of
    /// 32 and 64 bits become 16 bits. Alpha is not measured, and kept.
    pub fn normalize(self, options: Normalize) -> Operations {
        self.then(options.options.operation())
    }

    /// Rotates by a quarter turn clockwise.
    pub fn rotate90(self) -> Operations {
        self.then(Box::new(Symmetry::Rotate90))
    }

    /// Rotates by a half turn.
    pub fn rotate180(self) -> Operations {
        self.then(Box::new(Symmetry::Rotate180))
    }

    /// Rotates by a quarter turn anticlockwise.
    pub fn rotate270(self) -> Operations {
        self.then(Box::new(Symmetry::Rotate270))
    }

    /// Swaps rows and columns.
    pub fn transpose(self) -> Operations {
        self.then(Box::new(Symmetry::Transpose))
    }

    /// Swaps left and right.
    pub fn flip_horizontal(self) -> Operations {
        self.then(Box::new(Symmetry::FlipHorizontal))
    }

    /// Swaps top and bottom.
    pub fn flip_vertical(self) -> Operations {
        self.then(Box::new(Symmetry::FlipVertical))
    }

    /// Takes a rectangle of `width` × `height` pixels, whose upper left one is in the column `left` and the row `top`, counted
    /// from 0.
    ///
    /// # Errors
    /// A side of 0. Whether the rectangle lies in an image is checked when it is run.
    pub fn crop(self, left: usize, top: usize, width: usize, height: usize) -> Result<Operations> {
        if width == 0 || height == 0 {
            return Err(Error::argument(format!(
                "a rectangle has one pixel or more, not {width}×{height}"
            )));
        }
        let region = Region {
            left,
            top,
            width,
            height,
        };
        Ok(self.then(Box::new(Crop { region })))
    }

    /// Computes an RGB image from the mosaic of a sensor, whose upper left 2×2 pixels see the colours of `pattern`.
    pub fn debayer(self, pattern: BayerPattern, method: DebayerMethod) -> Operations {
        self.then(Box::new(Debayer { pattern, method }))
    }

    /// Shows grey images of 8 or 16 bits in the colours of a table: RGB of 8 bits, or interpolated colours of 16 bits with
    /// [`Operations::to_sixteen_bits`]. The table covers all values that samples can have, so that most images need
    /// [`Operations::normalize`] first.
    ///
    /// ```
    /// use gpuimg::{Device, Image, Normalize, Operations, Palette};
    ///
    /// let image = Image::new(3, 1, 1, vec![100u16, 200, 300])?;
    /// let coloured = Operations::new().normalize(Normalize::new()).lut(Palette::Fire);
    /// let result = coloured.run(image, &Device::cpu())?;
    /// assert_eq!(result.to_vec::<u8>()?, [0, 0, 0, 240, 79, 0, 255, 255, 255]);
    /// # Ok::<(), gpuimg::Error>(())
    /// ```
    pub fn lut(self, palette: Palette) -> Operations {
        self.then(Box::new(Lut { palette }))
    }

    /// Subtracts a dark frame and divides by a flat field.
    ///
    /// # Errors
    /// No frame, frames of different shapes or types, samples of more than 16 bits, and an offset beyond ±65535.
    pub fn calibrate(self, calibration: Calibration) -> Result<Operations> {
        Ok(self.then(Box::new(calibration.operation()?)))
    }

    /// Restores the values from before a `normalize` with [`Normalize::undo`]. It must be the only operation. With `nearest`,
    /// values that were clamped or rounded become the nearest one; otherwise they are an error.
    pub fn restore(self, nearest: bool) -> Operations {
        let mut restore = Restore::default();
        restore.nearest = nearest;
        self.then(Box::new(restore))
    }

    /// Converts the result to 8 bits.
    pub fn to_eight_bits(mut self) -> Operations {
        self.depth = Some(Depth::Eight);
        self
    }

    /// Converts 8-bit images to 16 bits before the first operation.
    pub fn to_sixteen_bits(mut self) -> Operations {
        self.depth = Some(Depth::Sixteen);
        self
    }

    /// Brings the image upright, as its orientation says, before the first operation.
    pub fn auto_orient(mut self) -> Operations {
        self.auto_orient = true;
        self
    }

    /// Makes the result smaller, so that its longer side has at most so many pixels; each is the exact average of the area that
    /// it covers. 8- and 16-bit samples only.
    pub fn fit(mut self, longer_side: NonZeroUsize) -> Operations {
        // A positive number is always read.
        self.fit = longer_side.to_string().parse().ok();
        self
    }

    /// Runs the operations on an image in memory. The samples are changed in place where nothing else needs them. The report of the result has warnings, ranges, and the device.
    ///
    /// # Errors
    /// An image that the operations do not support, and those of the device.
    pub fn run(&self, image: Image, device: &Device) -> Result<Image> {
        let mut results = self.run_stack(vec![image], device)?;
        let result = results.pop();
        result.ok_or_else(|| Error::argument("the operations make no image"))
    }

    /// Runs the operations like [`run`](Operations::run), and offers them memory for the samples of the result: the first operation that needs
    /// new memory uses it, if its samples have exactly as many bytes. If the result is in that memory, [`Image::to_bytes`] gives its
    /// address. It is not where a GPU runs the operations, where they keep the samples of the input, and where a later operation
    /// needs new memory too. The values in the memory are undefined then, and after an error.
    ///
    /// ```
    /// use gpuimg::{Device, Image, Operations};
    /// let image = Image::new(2, 1, 1, vec![10u16, 20])?;
    /// let kept = image.clone();
    /// let memory = vec![0u8; 4];
    /// let address = memory.as_ptr();
    /// let result = Operations::new().flip_horizontal().run_into(image, memory, &Device::cpu())?;
    /// assert_eq!(result.as_slice(), Some(&[20u16, 10][..]));
    /// assert_eq!(result.to_bytes().as_ptr(), address);
    /// # Ok::<(), gpuimg::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `run`.
    pub fn run_into(
        &self,
        mut image: Image,
        memory: impl DerefMut<Target = [u8]> + Send + Sync + 'static,
        device: &Device,
    ) -> Result<Image> {
        image.offer(Box::new(memory));
        let mut result = self.run(image, device)?;
        result.drop_offer();
        Ok(result)
    }

    /// Runs the operations on the pages of a stack in memory. Pages with the same channels and sample type share one range,
    /// unless [`Normalize::per_page`] says otherwise. The report of every result is that of the stack.
    ///
    /// # Errors
    /// No image, one that the operations do not support, and those of the device.
    pub fn run_stack(&self, images: Vec<Image>, device: &Device) -> Result<Vec<Image>> {
        let Some(first) = images.first() else {
            return Err(Error::argument("there is no image"));
        };
        let name = first.name().to_path_buf();
        let pages: Vec<Page> = images.into_iter().map(Image::into_page).collect();
        let destination = self.memory_destination();
        let run = |job: &MemoryJob| job.to_pages(pages);
        let (pages, done) = self.in_memory(&name, Some(&destination), device, run)?;
        let report = Report::of_job(done);
        let pages = pages.into_iter();
        Ok(pages
            .map(|page| Image::of_page(page, &name, report.clone()))
            .collect())
    }

    /// Runs the operations from file to file, with all pages of a stack, as the command line does: `-` is standard input or
    /// output, and the output gets its name when it is complete.
    ///
    /// # Errors
    /// A file that cannot be read or written, an image that the operations or the format do not support, and those of the
    /// device. Then there is no output.
    pub fn run_file(
        &self,
        input: impl AsRef<Path>,
        output: impl AsRef<Path>,
        reading: &ReadOptions,
        writing: &WriteOptions,
        device: &Device,
    ) -> Result<Report> {
        let (input, output) = (input.as_ref(), output.as_ref());
        let format = writing.format_of(output)?;
        let mut destination = self.destination(writing.destination(output, Some(format)));
        destination.depth = format.depth(self.depth);
        let devices = device.devices();
        let resources = resources(&devices, reading.reading);
        let done = process_file(
            &self.list(),
            input,
            Some(&destination),
            &resources,
            RunRecord::NONE,
        );
        done.map(Report::of_job).map_err(Error::new)
    }

    /// What [`run_stack`](Operations::run_stack) would do with each of these images. Nothing is computed, and no GPU is started.
    ///
    /// # Errors
    /// An image that the operations do not support.
    pub fn plan(&self, images: &[Image], device: &Device) -> Result<Vec<Plan>> {
        let name = images.first().map_or(Path::new(""), Image::name);
        let pages: Vec<&Page> = images.iter().map(Image::page).collect();
        if pages.is_empty() {
            return Err(Error::argument("there is no image"));
        }
        let destination = self.memory_destination();
        let devices = Devices::idle(device.choice());
        let job = MemoryJob {
            ops: &self.list(),
            name,
            destination: Some(&destination),
            resources: &resources(&devices, Reading::default()),
        };
        let plans = job.plans(&pages).map_err(Error::new)?.into_iter();
        let plan = |(shape, text)| Plan {
            shape: Some(shape),
            text,
        };
        Ok(plans.map(plan).collect())
    }

    /// What [`run_file`](Operations::run_file) would do with each page of a file, from its header alone.
    ///
    /// # Errors
    /// A file that cannot be read, and one that the operations do not support.
    pub fn plan_file(
        &self,
        input: impl AsRef<Path>,
        reading: &ReadOptions,
        device: &Device,
    ) -> Result<Vec<Plan>> {
        let input = input.as_ref();
        let source = Source::open(input).map_err(|error| {
            Error::new(error.context(crate::engine::Failure::new("read", input)))
        })?;
        let destination = self.memory_destination();
        let devices = Devices::idle(device.choice());
        let resources = resources(&devices, reading.reading);
        let named = NamedSource {
            path: input,
            source: &source,
        };
        let plans = plan_file(&self.list(), named, Some(&destination), &resources);
        let plans = plans.map_err(Error::new)?.plans.into_iter();
        Ok(plans.map(|text| Plan { shape: None, text }).collect())
    }

    /// Runs a job whose input is in memory.
    pub(super) fn in_memory<R>(
        &self,
        name: &Path,
        destination: Option<&Destination>,
        device: &Device,
        run: impl FnOnce(&MemoryJob) -> anyhow::Result<R>,
    ) -> Result<R> {
        let devices = device.devices();
        self.job_with(&devices, Reading::default(), name, destination, run)
            .map_err(Error::new)
    }

    /// Runs a job whose input and output are in memory, or whose input is a file that is read in this way.
    pub(super) fn job_with<R>(
        &self,
        devices: &Devices,
        reading: Reading,
        name: &Path,
        destination: Option<&Destination>,
        run: impl FnOnce(&MemoryJob) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        run(&MemoryJob {
            ops: &self.list(),
            name,
            destination,
            resources: &resources(devices, reading),
        })
    }

    /// The operations as the engine has them; `convert`, which changes nothing, if there is none.
    pub(crate) fn list(&self) -> Vec<&dyn Operation> {
        match &self.ops[..] {
            [] => vec![&Convert { channel: None }],
            ops => ops.iter().map(|op| &**op).collect(),
        }
    }

    /// The depth that was asked for, whether the image is brought upright, and the most pixels of its longer side.
    pub(crate) fn shape_options(&self) -> (Option<Depth>, bool, Option<Fit>) {
        (self.depth, self.auto_orient, self.fit)
    }

    /// The destination of a result that stays in memory.
    pub(super) fn memory_destination(&self) -> Destination {
        self.destination(WriteOptions::new().destination(&no_path(), None))
    }

    /// The destination of a result of these operations.
    pub(super) fn destination(&self, plain: Destination) -> Destination {
        Destination {
            depth: self.depth,
            auto_orient: self.auto_orient,
            fit: self.fit,
            ..plain
        }
    }
}

/// The names of the operations, as in `normalize + rotate`.
impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&chain::title(&self.list()))
    }
}

/// What the jobs of this library may use: the devices, and memory without a limit.
fn resources(devices: &Devices, reading: Reading) -> Resources<'_> {
    Resources {
        position: Some(Position::ONLY),
        ..Resources::new(devices, reading)
    }
}

/// The options of [`Operations::normalize`].
///
/// A constructor says which range of values is scaled: [`new`](Normalize::new), [`clip`](Normalize::clip),
/// [`range`](Normalize::range), [`window`](Normalize::window), [`zscale`](Normalize::zscale) or [`stf`](Normalize::stf). Options without a method here, such as `--ignore` and `--nan`,
/// can be parsed: `"normalize --ignore 0".parse::<Operations>()`.
#[derive(Clone, Debug, Default)]
pub struct Normalize {
    options: normalize::Normalize,
}

impl Normalize {
    /// From the smallest to the largest value.
    pub fn new() -> Normalize {
        Normalize::default()
    }

    /// From one percentile to another, 0 to 100: `clip(0.1, 99.9)` ignores the darkest and the brightest 0.1 percent.
    ///
    /// # Errors
    /// Percentages outside of 0 to 100 or with more than 6 decimals, and a first one that is not below the second.
    pub fn clip(low: f64, high: f64) -> Result<Normalize> {
        let mut normalize = Normalize::default();
        let clip = format!("{low}:{high}").parse();
        normalize.options.clip = Some(clip.map_err(Error::argument)?);
        Ok(normalize)
    }

    /// From `min` to `max`, in the values of the image; those outside are clamped.
    ///
    /// # Errors
    /// Numbers that are not finite, and a minimum that is not below the maximum.
    pub fn range(min: f64, max: f64) -> Result<Normalize> {
        let range: InputRange = format!("{min}:{max}").parse().map_err(Error::argument)?;
        Ok(Normalize::of_range(range))
    }

    /// `width` values around `center`, as for CT images.
    ///
    /// # Errors
    /// Numbers that are not finite, and a window of fewer than two values.
    pub fn window(center: f64, width: f64) -> Result<Normalize> {
        let window = Range::parse_window(&format!("{center}:{width}"));
        Ok(Normalize::of_range(window.map_err(Error::argument)?.into()))
    }

    /// The range of astropy's `ZScaleInterval`, measured in each page.
    pub fn zscale() -> Normalize {
        Normalize::of_range(InputRange::Zscale)
    }

    /// The range and the curve of Siril's and PixInsight's autostretch, which show the background of an astronomical image as a
    /// quarter of the full brightness. Another [`curve`](Normalize::curve) is refused when it is run.
    pub fn stf() -> Normalize {
        Normalize::of_range(InputRange::Stf)
    }

    /// Changes values by a curve after they are scaled to 0…1 and before they are scaled to the output range. The CPU runs it.
    ///
    /// ```
    /// use gpuimg::{Curve, Device, Image, Normalize, Operations};
    ///
    /// let image = Image::new(3, 1, 1, vec![0u16, 1, 4])?;
    /// let brighter = Operations::new().normalize(Normalize::new().curve(Curve::gamma(2.0)?));
    /// let result = brighter.run(image, &Device::cpu())?;
    /// assert_eq!(result.to_vec::<u16>()?, [0, 32768, 65535]);
    /// # Ok::<(), gpuimg::Error>(())
    /// ```
    pub fn curve(mut self, curve: Curve) -> Normalize {
        self.options.curve = Some(curve.0);
        self
    }

    fn of_range(range: InputRange) -> Normalize {
        let mut normalize = Normalize::default();
        normalize.options.range = Some(range);
        normalize
    }

    /// Scales to `low` to `high` instead of the full depth.
    ///
    /// # Errors
    /// Numbers outside of −32768 to 65535, and a first one that is not below the second.
    pub fn to(mut self, low: i32, high: i32) -> Result<Normalize> {
        let range = Range::parse_output(&format!("{low}:{high}"));
        self.options.to = Some(range.map_err(Error::argument)?);
        Ok(self)
    }

    /// Measures and scales each colour channel separately. A range that is given stays the same for all.
    pub fn per_channel(mut self) -> Normalize {
        self.options.per_channel = self.options.range.is_none();
        self
    }

    /// Measures one range for each page of a stack, instead of one for all.
    pub fn per_page(mut self) -> Normalize {
        self.options.scope = Scope::Page;
        self
    }

    /// Makes signed images unsigned: the minimum becomes 0.
    pub fn unsigned(mut self) -> Normalize {
        self.options.unsigned = true;
        self
    }

    /// Records the range in the metadata, so that [`Operations::restore`] can restore the original values. PNG, TIFF and FITS
    /// store it.
    pub fn undo(mut self) -> Normalize {
        self.options.undo = true;
        self
    }
}

/// A curve for [`Normalize::curve`], from 0…1 to 0…1. Results are correctly rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve(normalize::Curve);

impl Curve {
    /// x^(1/`gamma`): more than 1 brightens dark values.
    ///
    /// # Errors
    /// Numbers outside of 0.01 to 100, or with more than 6 decimals.
    pub fn gamma(gamma: f64) -> Result<Curve> {
        format!("gamma:{gamma}").parse()
    }

    /// asinh(x/`softening`)/asinh(1/`softening`): nearly linear below `softening`, and logarithmic above it.
    ///
    /// # Errors
    /// Numbers outside of 0.000001 to 1000, or with more than 6 decimals.
    pub fn asinh(softening: f64) -> Result<Curve> {
        format!("asinh:{softening}").parse()
    }

    /// ln(1000x + 1)/ln(1001).
    pub fn log() -> Curve {
        Curve(normalize::Curve::Log)
    }
}

/// Parses the text that `--curve` takes: `gamma:2.2`, `asinh`, `asinh:0.1` or `log`.
impl FromStr for Curve {
    type Err = Error;

    fn from_str(text: &str) -> Result<Curve> {
        text.parse().map(Curve).map_err(Error::argument)
    }
}

/// The text that `--curve` takes.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The frames of [`Operations::calibrate`], and its options.
///
/// ```
/// use gpuimg::{Calibration, Device, Image, Operations};
/// let dark = Image::new(3, 1, 1, vec![1u16, 2, 3])?;
/// let image = Image::new(3, 1, 1, vec![10u16, 20, 30])?;
/// let calibration = Calibration { dark: Some(dark), ..Calibration::default() };
/// let result = Operations::new().calibrate(calibration)?.run(image, &Device::cpu())?;
/// assert_eq!(result.to_vec::<u16>()?, [9, 18, 27]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The bias frame, which the dark frame and the flat field still contain: it is subtracted from the flat field in place of
    /// the dark frame, and from the image if there is no dark frame.
    pub bias: Option<Image>,
    /// The dark frame, which is subtracted.
    pub dark: Option<Image>,
    /// The flat field: images are divided by it (minus the dark frame) and multiplied by its mean, for each channel.
    pub flat: Option<Image>,
    /// Added to every result, so that samples below the dark frame are not clamped to 0; −65535 to 65535.
    pub offset: i32,
    /// Replaces each sample that exceeds the median of its 8 neighbours by more than this with that median.
    pub hot: Option<u16>,
    /// Gives results in 32-bit floating point, which are not rounded to whole numbers and not clamped. Images and frames may then
    /// be floating-point images, too.
    pub to_f32: bool,
    /// Gives the natural logarithm of the flat field divided by the image, both minus the dark frame. An image less than 1 above
    /// the dark frame counts as 1. Requires a flat field and `to_f32`.
    pub log: bool,
    /// In place of `flat`: the flat field of the first image of [`Operations::run_stack`]. Those of the others lie between it and
    /// `flat_end`, as their index says.
    pub flat_start: Option<Image>,
    /// The flat field of the last image.
    pub flat_end: Option<Image>,
}

impl Calibration {
    fn operation(self) -> Result<Calibrate> {
        let Calibration {
            bias,
            dark,
            flat,
            offset,
            hot,
            to_f32,
            log,
            flat_start,
            flat_end,
        } = self;
        if !(-65535..=65535).contains(&offset) {
            let why = format!("the offset {offset} is not in -65535 to 65535");
            return Err(Error::argument(why));
        }
        let frame = |image: Option<Image>, name: &str| {
            let Some(image) = image else { return Ok(None) };
            let name = image
                .path()
                .map_or(name.into(), |path| path.shown().into_owned());
            let page = image.into_page();
            Ok(Some(Frame {
                name,
                values: page.metadata.values(page.image.shape().depth),
                image: page.image,
            }))
        };
        let bias = frame(bias, "the bias frame")?;
        let dark = frame(dark, "the dark frame")?;
        let start = frame(flat_start, "the flat field at the start")?;
        let end = frame(flat_end, "the flat field at the end")?;
        let flat = match (frame(flat, "the flat field")?, start, end) {
            (None, Some(start), Some(end)) => Some(FlatField::Changing { start, end }),
            (flat, None, None) => flat.map(FlatField::Constant),
            _ => {
                let why = "flat_start and flat_end are given together, and without flat";
                return Err(Error::argument(why));
            }
        };
        let frames = FrameSet { bias, dark, flat };
        let settings = Settings {
            offset,
            hot,
            to: to_f32.then_some(ResultType::Float),
            log,
        };
        Calibrate::with_frames(frames, settings).map_err(Error::new)
    }
}

/// What would be done with a page, as text.
///
/// ```
/// use gpuimg::{Device, Image, Operations};
/// let image = Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?;
/// let operations: Operations = "normalize + rotate 90".parse()?;
/// let plans = operations.plan(&[image], &Device::cpu())?;
/// assert!(plans[0].to_string().contains("steps     normalize, rotate"));
/// assert_eq!(plans[0].output_shape().unwrap().width, 2);
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    shape: Option<Shape>,
    text: String,
}

impl Plan {
    /// The shape of the result; `None` in the plan of a file, whose text has it.
    pub fn output_shape(&self) -> Option<Shape> {
        self.shape
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Format {
    /// The destination of pixels in this format.
    pub(super) fn destination(self, path: &Path, options: &WriteOptions) -> Destination {
        let plain = options.destination(path, Some(self));
        Destination {
            depth: self.depth(None),
            ..plain
        }
    }
}
