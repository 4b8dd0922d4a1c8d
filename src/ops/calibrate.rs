//! Calibrate: subtracts a dark frame and divides by a flat field, sample by sample. Results have the type of the images
//! (`whole`), or 32-bit floating point (`real`).
//!
//! In both, p is a sample of a colour channel, and d, f and b are the samples of the dark frame, the flat field and the bias
//! frame at its position. b is subtracted from f; without a bias frame, d is in its place, and without a dark frame, b is in
//! the place of d. Alpha is not calibrated. With `--hot`, each result that exceeds the median of its neighbours by more than
//! a threshold is then replaced by that median (`hot`). The flat field of an image may depend on its position (`series`).

mod hot;
mod logarithm;
mod real;
mod series;
mod whole;

use super::{Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::gpu::launch::calibrate as launch;
use crate::image::metadata::{Diagnostics, Effect, Hint};
use crate::image::{Depth, Image, Shape, Values};
use crate::os::Digest;
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use real::Real;
use serde::{Serialize, Serializer};
use series::Series;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use whole::Whole;

pub(crate) use whole::factors::factor;

/// A dark frame, a bias frame or a flat field.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its name in messages: its path.
    pub name: String,
    /// Its pixels, of the type `values`, or already in 32-bit floating point.
    pub image: Image,
    /// The type of the samples in its file.
    pub values: Values,
}

/// The frames of a calibration.
#[derive(Debug, Default)]
pub struct FrameSet {
    /// The bias frame, which the dark frame and the flat field still contain.
    pub bias: Option<Frame>,
    /// The dark frame.
    pub dark: Option<Frame>,
    /// The flat field.
    pub flat: Option<FlatField>,
}

/// The flat field of the images.
#[derive(Debug)]
pub enum FlatField {
    /// One for all images.
    Constant(Frame),
    /// Interpolated between those at the start and at the end of a series of images.
    Changing {
        /// The flat field of the first image.
        start: Frame,
        /// The flat field of the last image.
        end: Frame,
    },
}

/// The options of a calibration besides its frames.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Settings {
    /// Added to every result.
    pub offset: i32,
    /// The threshold of hot pixels.
    pub hot: Option<u16>,
    /// The type of the results; `None` for that of the images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<ResultType>,
    /// Whether the results are logarithms.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
}

/// The type of results that are not of the type of the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub enum ResultType {
    /// 32-bit floating point: not rounded to whole numbers, and not clamped
    #[value(name = "f32")]
    #[serde(rename = "f32")]
    Float,
}

/// The operation with its frames.
pub struct Calibrate {
    settings: Settings,
    /// The names of all images of the series, in their order.
    order: Option<Digest>,
    /// The shape of the frames.
    shape: Shape,
    /// The type of the frames of integers, if there is one.
    integers: Option<Values>,
    /// The name of a frame, for messages.
    name: String,
    corrections: CorrectionSource,
}

/// How images are corrected.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one an image")]
enum Corrections {
    Whole(Whole),
    Real(Real),
}

/// The corrections of an image.
#[allow(clippy::large_enum_variant, reason = "there is one a run")]
enum CorrectionSource {
    /// The same for all images.
    Constant(Arc<Corrections>),
    /// Those of the image's position in a series.
    Changing(Series),
}

/// The frames of one image, which have the same size. The clones of each share its samples.
#[derive(Clone, Debug)]
struct ImageFrames {
    /// What is subtracted from the image.
    dark: Option<Image>,
    /// What is subtracted from the flat field.
    below: Option<Image>,
    flat: Option<Image>,
    /// The name of the flat field, for messages.
    flat_name: String,
}

impl Calibrate {
    /// With a dark frame or a flat field, or both.
    ///
    /// # Errors
    /// No frame, frames of different types, and a flat field that is not brighter than the dark frame.
    pub fn new(
        dark: Option<Frame>,
        flat: Option<Frame>,
        offset: i32,
        hot: Option<u16>,
    ) -> Result<Calibrate> {
        let frames = FrameSet {
            dark,
            flat: flat.map(FlatField::Constant),
            bias: None,
        };
        let settings = Settings {
            offset,
            hot,
            ..Settings::default()
        };
        Calibrate::with_frames(frames, settings)
    }

    /// With any frames and options.
    ///
    /// # Errors
    /// Those of `new`, and options that cannot be combined. If there is a bias frame, the flat field must be brighter than that.
    pub fn with_frames(frames: FrameSet, settings: Settings) -> Result<Calibrate> {
        settings.check()?;
        ensure!(
            !settings.log || frames.flat.is_some(),
            "--log divides the flat field by the image: add --flat"
        );
        let FrameSet { bias, dark, flat } = frames;
        let (start, end) = match flat {
            None => (None, None),
            Some(FlatField::Constant(flat)) => (Some(flat), None),
            Some(FlatField::Changing { start, end }) => (Some(start), Some(end)),
        };
        let all = [&dark, &start, &end, &bias];
        let first = all.into_iter().flatten().next();
        let first = first.context("a dark frame, a bias frame or a flat field is required")?;
        let (name, shape) = (first.name.clone(), first.image.shape());
        for frame in all.into_iter().flatten() {
            frame.check(settings.to)?;
            frame.check_same_size(first)?;
        }
        let integers = integer_type(all.into_iter().flatten())?;
        let changing = start.as_ref().zip(end.as_ref());
        let flat_name = changing.map(|(start, end)| format!("{} and {}", start.name, end.name));
        let flat_name = flat_name.or(start.as_ref().map(|flat| flat.name.clone()));
        let image = |frame: Option<Frame>| {
            frame.map(|frame| match settings.to {
                Some(ResultType::Float) => real::as_real(frame.image, frame.values).shared(),
                None => frame.image.shared(),
            })
        };
        let (bias, dark, start, end) = (image(bias), image(dark), image(start), image(end));
        let frames = ImageFrames {
            dark: dark.clone().or(bias.clone()),
            below: bias.or(dark),
            flat: start,
            flat_name: flat_name.unwrap_or_default(),
        };
        let corrections = match end {
            None => {
                CorrectionSource::Constant(Arc::new(Corrections::new(frames, settings, integers)?))
            }
            Some(end) => CorrectionSource::Changing(Series::new(frames, end, settings, integers)?),
        };
        Ok(Calibrate {
            settings,
            order: None,
            shape,
            integers,
            name,
            corrections,
        })
    }

    /// The same for a series whose names, in their order, have this digest. If a flat field changes from image to image, a
    /// resumed run keeps results only of the same series.
    pub fn in_series(self, order: Digest) -> Calibrate {
        let order = self.properties().needs_position.then_some(order);
        Calibrate { order, ..self }
    }

    /// The corrections of an image with samples of these types.
    ///
    /// # Errors
    /// An interpolated flat field that is not brighter than the dark frame.
    fn corrections(&self, types: &SampleTypes) -> Result<Arc<Corrections>> {
        match &self.corrections {
            CorrectionSource::Constant(corrections) => Ok(corrections.clone()),
            CorrectionSource::Changing(series) => {
                let frames = series.at(types.position)?;
                let corrections = Corrections::new(frames, self.settings, self.integers);
                Ok(Arc::new(corrections?))
            }
        }
    }

    /// The hint for images of which 1 % of the samples or more are clamped. Only the pixels of a lattice are checked,
    /// since checking all would cost a pass.
    fn clamping_hint(&self, image: &Image, types: &SampleTypes) -> Option<Hint> {
        let CorrectionSource::Constant(corrections) = &self.corrections else {
            return None;
        };
        let shape = image.shape();
        if self.check_shape(&shape).is_err() {
            return None;
        }
        let is_clamped: &dyn Fn(usize) -> bool = match &**corrections {
            Corrections::Whole(whole) if whole.has_dark() => &|i| whole.unclamped(image, i) < 0,
            Corrections::Real(real) if self.settings.log => {
                &|i| real.is_clamped(image, types.read, i)
            }
            _ => return None,
        };
        let colours = shape.lattice().flat_map(|pixel| {
            let first = pixel * shape.channels;
            first..first + shape.colours()
        });
        let (mut all, mut clamped) = (0, 0);
        for i in colours {
            all += 1;
            clamped += usize::from(is_clamped(i));
        }
        // Noise alone puts single samples below a dark frame.
        let percent = 100 * clamped / all;
        (percent >= 1).then_some(match self.settings.log {
            true => Hint::ClampedToOne(percent),
            false => Hint::Clamped(percent),
        })
    }
}

impl Settings {
    /// Refuses options that cannot be combined.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<()> {
        if !self.log {
            return Ok(());
        }
        ensure!(
            self.to == Some(ResultType::Float),
            "--log gives fractions, which integers cannot hold: add --to f32"
        );
        ensure!(
            self.offset == 0 && self.hot.is_none(),
            "--log gives logarithms, to which --offset and --hot do not apply: remove them"
        );
        Ok(())
    }
}

impl Frame {
    /// A frame of integers as they are in its file, with or without sign, or of floating-point numbers.
    pub fn new(name: &str, image: Image, signed: bool) -> Frame {
        Frame {
            name: name.into(),
            values: Values {
                depth: image.shape().depth,
                signed,
            },
            image,
        }
    }

    /// Refuses samples that results of type `to` cannot be computed from.
    fn check(&self, to: Option<ResultType>) -> Result<()> {
        let Frame { name, values, .. } = self;
        match (to, values.depth) {
            (_, Depth::Eight | Depth::Sixteen) | (Some(ResultType::Float), Depth::Float) => {}
            (None, Depth::Float) => anyhow::bail!(
                "{name} has samples of {}, but frames have 8 or 16 bits: add --to f32 for results in floating point",
                values.depth
            ),
            _ => anyhow::bail!(
                "{name} has samples of {}: frames have 8 or 16 bits, or 32-bit floating point with --to f32",
                values.depth
            ),
        }
        let nonfinite = real::nonfinite(&self.image);
        ensure!(
            nonfinite == 0,
            "{nonfinite} of the samples of {name} are NaN or infinite (gpuimg project mean --nan VALUE replaces them)"
        );
        ensure!(
            self.image.shape().pixels() as u64 <= whole::factors::MOST_PIXELS,
            "{name} has more than 2³⁶ pixels, too many for an exact mean"
        );
        Ok(())
    }

    /// Refuses a frame of another size than the `first`.
    fn check_same_size(&self, first: &Frame) -> Result<()> {
        let (own, other) = (self.image.shape(), first.image.shape());
        ensure!(
            is_same_size(&own, &other),
            "{} is {own}, but {} is {other}: the frames must have the same size and type",
            self.name,
            first.name
        );
        Ok(())
    }
}

/// The type of the frames of integers, which have one type.
///
/// # Errors
/// Two frames of different types.
fn integer_type<'a>(frames: impl Iterator<Item = &'a Frame>) -> Result<Option<Values>> {
    let mut integers = frames.filter(|frame| !frame.values.depth.is_float());
    let Some(first) = integers.next() else {
        return Ok(None);
    };
    for frame in integers {
        ensure!(
            frame.values == first.values,
            "{} has {}, but {} has {}: the frames must have the same size and type",
            frame.name,
            frame.values,
            first.name,
            first.values
        );
    }
    Ok(Some(first.values))
}

fn is_same_size(a: &Shape, b: &Shape) -> bool {
    (a.width, a.height, a.channels) == (b.width, b.height, b.channels)
}

impl Corrections {
    /// Those of an image with these frames; `integers` is the type of frames of integers.
    ///
    /// # Errors
    /// A flat field that is not brighter than what is subtracted from it.
    fn new(
        frames: ImageFrames,
        settings: Settings,
        integers: Option<Values>,
    ) -> Result<Corrections> {
        let flat_name = frames.flat_name.clone();
        let corrections = match (settings.to, integers) {
            (None, Some(values)) => Whole::new(frames, settings, values).map(Corrections::Whole),
            _ => Real::new(frames, settings).map(Corrections::Real),
        };
        corrections.with_context(|| format!("cannot divide by {flat_name}"))
    }
}

/// Serializes only what decides the result; the frames as their CRC-32.
impl Serialize for Calibrate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = match &self.corrections {
            CorrectionSource::Constant(corrections) => match &**corrections {
                Corrections::Whole(whole) => whole.digests(),
                Corrections::Real(real) => real.digests(),
            },
            CorrectionSource::Changing(series) => series.digests(),
        };
        let key = serde_json::json!({
            "frames": frames,
            "width": self.shape.width,
            "integers": self.integers,
            "settings": self.settings,
            "order": self.order,
        });
        key.serialize(serializer)
    }
}

/// The CRC-32 of the samples of an image.
fn digest(image: &Option<Image>) -> Option<u32> {
    let image = image.as_ref();
    image.map(|image| crc32fast::hash(image.samples().as_bytes()))
}

impl fmt::Debug for Calibrate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Calibrate")
            .field("shape", &self.shape)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Operation for Calibrate {
    fn properties(&self) -> Properties {
        Properties {
            // `check_shape` refuses those that are not supported.
            wide_samples: true,
            needs_position: matches!(self.corrections, CorrectionSource::Changing(_)),
            // A part of an image would need the same part of the frames, and neighbours.
            ..Properties::new("calibrate", Access::WholeImage, Effect::Arithmetic)
        }
    }

    fn output_type(&self, input: Values) -> Values {
        match self.settings.to {
            None => input,
            Some(ResultType::Float) => Values {
                depth: Depth::Float,
                signed: false,
            },
        }
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            touched: 4 * bytes,
            transferred: 2 * bytes,
            ..Work::default()
        }
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        let fits = match self.settings.to {
            None => *shape == self.shape,
            Some(ResultType::Float) => is_same_size(shape, &self.shape),
        };
        ensure!(
            fits,
            "it is {shape}, but {} is {}{}",
            self.name,
            self.shape,
            match shape.depth {
                Depth::Float if self.settings.to.is_none() => {
                    " (--to f32 calibrates images in floating point)"
                }
                _ => "",
            }
        );
        ensure!(
            matches!(shape.depth, Depth::Eight | Depth::Sixteen | Depth::Float),
            "its samples have {}: calibrate supports 8 and 16 bits and 32-bit floating point",
            shape.depth
        );
        Ok(())
    }

    fn check_types(&self, types: &SampleTypes) -> Result<()> {
        let depth = match self.settings.to {
            None => self.shape.depth,
            Some(ResultType::Float) => types.read.depth,
        };
        let is_integer = !types.read.depth.is_float();
        if let Some(values) = self.integers.filter(|_| is_integer) {
            ensure!(
                types.read == values && types.depth == depth,
                "it has {}, but {} has {values}",
                types.read,
                self.name
            );
        }
        if self.properties().needs_position {
            ensure!(
                types.position.is_some(),
                "its position in the series is unknown: --flat-start and --flat-end need files of one page each, or one file of several pages"
            );
        }
        Ok(())
    }

    fn gpu_obstacle(&self, _: &Shape) -> Option<&'static str> {
        if self.settings.to.is_some() {
            Some("the GPU does not support calibrate --to f32")
        } else if self.properties().needs_position {
            Some("the GPU does not support a flat field that changes from image to image")
        } else {
            None
        }
    }

    fn diagnose(&self, image: &Image, types: &SampleTypes) -> Diagnostics {
        Diagnostics {
            hints: Vec::from_iter(self.clamping_hint(image, types)),
            ..Diagnostics::default()
        }
    }

    fn bind<'a>(&'a self, types: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(BoundCalibrate {
            op: self,
            corrections: self.corrections(&types)?,
            read: types.read,
            clamped: AtomicU64::new(0),
        }))
    }
}

/// The operation bound to the corrections of an image.
struct BoundCalibrate<'a> {
    op: &'a Calibrate,
    corrections: Arc<Corrections>,
    /// The type of the image's samples.
    read: Values,
    /// How many samples have been clamped.
    clamped: AtomicU64,
}

impl Bound for BoundCalibrate<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        self.op.check_shape(&image.shape())?;
        Ok(OpResult::Image(match &*self.corrections {
            Corrections::Whole(whole) => whole.naive(image),
            Corrections::Real(real) => real.naive(image, self.read),
        }))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        self.op.check_shape(&image.shape())?;
        let out = match &*self.corrections {
            Corrections::Whole(whole) => whole.cpu(image, &self.clamped, timeline),
            Corrections::Real(real) => real.cpu(image, self.read, &self.clamped, timeline),
        };
        out.map(OpResult::Image)
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        self.op.check_shape(&image.shape)?;
        match &*self.corrections {
            Corrections::Whole(whole) => {
                let image = whole.cuda(image, &self.clamped, job)?;
                Ok(OpResult::Image(image))
            }
            Corrections::Real(_) => anyhow::bail!("internal error: a GPU was to compute f32"),
        }
    }

    fn clamped(&self) -> Option<u64> {
        Some(self.clamped.load(Ordering::Relaxed))
    }
}
