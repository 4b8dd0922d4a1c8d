//! Normalize: scales the range of the colour samples to the full depth, with exact rounding. The
//! two kernels come from "CUDA: performance aspects of typical tasks" (habr.com post 119435,
//! 2011). The first finds minimum and maximum in one pass; the second scales, and rounds with "+ 0.5".
//!
//! Exact definition, for a sample p of a channel whose range is min..=max, with d = max − min and
//! x = clamp(p, min, max) − min: `out = lo + floor(x·(hi − lo) / d + 1/2)`, which in integers is
//! `lo + (x·(hi − lo) + ⌊d/2⌋) / d` and cannot overflow 32 bits (65535² + 32767 < 2³²).
//! The range is the minimum and maximum of the samples, two of their percentiles (`--clip`), or a range that the
//! user gives. Values of `--ignore` are not measured.
//! `--curve` changes values after they are scaled to 0…1 and before they are scaled to the output range (`curve`).
//! `--range zscale` and `--range stf` have their own modules.
//! Alpha is not measured and does not change. A flat channel (d = 0) keeps its values. The same formula
//! converts 32-bit and 64-bit samples to 16 or 8 bits (`wide`).

mod curve;
mod curve_tables;
mod lanes;
mod medians;
mod narrow;
mod range;
mod scale;
mod stf;
mod wide;
mod zscale;

use super::clip::Clip;
use super::counts::Counts;
use super::wide::finite;
use super::{
    Access, Bound, MinMax, Operation, Properties, SampleTypes, Scope, Statistic, Statistics, Verb,
};
use crate::image::metadata::{Diagnostics, Effect, Metadata};
use crate::image::number::{self, Number};
use crate::image::{Depth, Image, Shape, Values};
use anyhow::{Result, anyhow, bail, ensure};
pub use curve::Curve;
use curve_tables::CurveTables;
pub use medians::Medians;
use narrow::{BoundNormalize, RangeSource};
pub use range::{InputRange, Range};
pub use zscale::Sampled;

/// Scale the range of values to the full depth, correctly rounded
#[derive(clap::Args, Clone, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Normalize {
    /// Use this input range instead of the image's minimum and maximum; values outside are clamped. Signed images have signed values. auto-window uses the window stored in each file (DICOM). zscale and stf measure each image as astropy's ZScaleInterval and Siril's autostretch do
    #[arg(long, value_name = "MIN:MAX|auto-window|zscale|stf", allow_hyphen_values = true, conflicts_with_all = ["range_from", "across"])]
    pub range: Option<InputRange>,

    /// Use this window as the input range: WIDTH values around CENTER, as for CT images
    #[arg(long, value_name = "CENTER:WIDTH", allow_hyphen_values = true, conflicts_with_all = ["range", "range_from", "across"], value_parser = Range::parse_window)]
    #[serde(skip)]
    pub window: Option<Range>,

    /// Scale to this output range instead of the full depth (0:65535, or 0:255 for 8 bits; -32768:32767 or -128:127 for signed images)
    #[arg(long, value_name = "LO:HI", allow_hyphen_values = true, value_parser = Range::parse_output)]
    pub to: Option<Range>,

    /// Change the values x between both ranges, 0 to 1: gamma:G is x^(1/G), asinh:A (default 0.1) is asinh(x/A)/asinh(1/A), log is ln(1000x+1)/ln(1001)
    #[arg(long, value_name = "gamma:G|asinh[:A]|log")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,

    /// Replace NaN and infinite samples with this value; they do not count in the range. Without this option they are refused
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, value_parser = finite)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<f64>,

    /// Measure and scale each colour channel separately; in a stack whose metadata name a channel axis, also the pages of each channel
    #[arg(long, conflicts_with_all = ["range", "window"])]
    pub per_channel: bool,

    /// Ignore the darkest LOW percent and the brightest 100 − HIGH percent when measuring the range, e.g. 0.1:99.9
    #[arg(long, value_name = "LOW:HIGH", conflicts_with_all = ["range", "window"])]
    pub clip: Option<Clip>,

    /// Ignore outliers, as --clip 0.1:99.9 does, and print the range that was used
    #[arg(long, conflicts_with_all = ["range", "window", "clip"])]
    #[serde(skip)]
    pub auto: bool,

    /// Ignore samples with these no-data values when measuring the range, e.g. 0 or 0,65535
    #[arg(long, value_name = "VALUES", value_delimiter = ',', allow_hyphen_values = true, conflicts_with_all = ["range", "window"])]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Number>,

    /// Write signed images as unsigned (the minimum becomes 0)
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unsigned: bool,

    /// Store the range in the file, so that gpuimg restore can restore the original values (PNG, TIFF and FITS)
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,

    /// Measure one range for all pages of a stack (no flicker) or one for each page
    #[arg(long, value_name = "SCOPE", default_value = "stack")]
    pub scope: Scope,

    /// Whether the no-data values of each file are ignored, too.
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignores_no_data: bool,
}

impl Verb for Normalize {
    const NAME: &'static str = "normalize";
    const ALIASES: &'static [&'static str] = &["normalise"];
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg normalize in.png out.png                   scale to 0…65535\n\
\x20 gpuimg normalize in.tif preview.jpg --depth 8 --clip 0.1:99.9 --fit 1024\n\
\x20 gpuimg normalize --clip 0.1:99.9 in.tif out.tif   ignore outliers\n\
\x20 gpuimg normalize --range 400:3700 in.tif out.tif  use a fixed input range\n\
\x20 gpuimg normalize --window 40:400 ct.tif ct.png    use a CT window\n\
\x20 gpuimg normalize --range zscale sky.fits sky.png  as astropy's ZScaleInterval\n\
\x20 gpuimg normalize --range stf sky.fits stf.png     as Siril's autostretch\n\
\x20 gpuimg normalize --curve gamma:2 in.tif out.tif   brighten dark values\n\
\x20 gpuimg normalize --ignore 0 in.tif out.tif        ignore no-data pixels\n\
\x20 gpuimg normalize series/ out/ --across            use one range for all\n\
\x20 gpuimg normalize - - --format png < in.tif > out.png";
    const MEASURES: bool = true;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(Normalize {
            range: self.range.or(self.window.map(InputRange::Values)),
            clip: if self.auto {
                Some(Clip::AUTO)
            } else {
                self.clip
            },
            ..self
        })
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let range = Some(Range::from_integers(100, 201).into());
        let to = Some(Range::from_integers(7, 250));
        let clip = Some(Clip::from_percentages(5, 90));
        let options = |range, to, clip, per_channel| Normalize {
            range,
            to,
            clip,
            per_channel,
            ..Normalize::default()
        };
        let examples = [
            options(None, None, None, false),
            options(range, None, None, false),
            options(None, to, None, false),
            options(None, None, None, true),
            options(None, to, None, true),
            options(None, None, clip, false),
            options(None, None, clip, true),
        ];
        let ignore = |clip, per_channel| Normalize {
            ignore: [0, 17].map(Number::Whole).into(),
            ..options(None, None, clip, per_channel)
        };
        let examples = examples
            .into_iter()
            .chain([ignore(None, true), ignore(clip, false)]);
        examples.map(Verb::operation).collect()
    }
}

/// Make a small 8-bit image to look at, ignoring outliers: normalize --auto --fit 1024 --depth 8
///
/// Images are upright, without alpha, and 0 is black. FITS is shown with its first row at the bottom. Of a stack, the middle page is shown; --pages selects others. NaN and the no-data values of the file (GDAL's NODATA, BLANK of FITS, padding of DICOM) do not count in the range. In a folder, each preview is a JPEG.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Preview {
    /// Replace NaN and infinite samples with this value (default: the least value); they do not count in the range
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, value_parser = finite)]
    pub nan: Option<f64>,

    /// Measure one range for all pages of a stack (no flicker) or one for each page
    #[arg(long, value_name = "SCOPE", default_value = "stack")]
    pub scope: Scope,
}

impl Verb for Preview {
    const NAME: &'static str = "preview";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg preview in.tif look.jpg                 1024 pixels at most, 8 bits\n\
\x20 gpuimg preview in/ looks/                      a JPEG of every image below in/\n\
\x20 gpuimg preview in.fits look.png --fit 4000     larger";
    const CHAINS: bool = false;
    const PREVIEWS: bool = true;
    const FILE_DEFAULTS: &'static [(&'static str, &'static str)] =
        &[("fit", "1024"), ("depth", "8")];

    fn operation(self) -> Box<dyn Operation> {
        let auto = Normalize {
            auto: true,
            nan: Some(self.nan.unwrap_or(f32::MIN.into())),
            ignores_no_data: true,
            scope: self.scope,
            ..Normalize::default()
        };
        auto.operation()
    }

    /// There are none, because those of `normalize` cover every branch.
    fn examples() -> Vec<Box<dyn Operation>> {
        Vec::new()
    }
}

impl Operation for Normalize {
    fn properties(&self) -> Properties {
        let clip = self.clip.unwrap_or(Clip::NONE);
        let statistic = match self.range {
            Some(InputRange::Values(_) | InputRange::Window) => Statistic::None,
            Some(InputRange::Zscale) => Statistic::Sampled,
            Some(InputRange::Stf) => Statistic::Medians,
            // A histogram is slower than min/max, but min/max cannot ignore values.
            None if self.clip.is_some() || !self.ignore.is_empty() => {
                Statistic::Percentiles(clip, self.per_channel)
            }
            None => Statistic::MinMax,
        };
        Properties {
            wide_samples: true,
            statistic,
            scope: match self.range {
                // zscale is defined for the samples of one image.
                Some(InputRange::Zscale) => Scope::Page,
                _ => self.scope,
            },
            per_channel: self.per_channel,
            ..Properties::new(Normalize::NAME, Access::Pointwise, Effect::Values)
        }
    }

    fn for_file(
        &self,
        first_page: &dyn Fn() -> Result<Metadata>,
    ) -> Result<Option<Box<dyn Operation>>> {
        if !self.ignores_no_data {
            return Ok(None);
        }
        let no_data = first_page()?.no_data;
        if no_data.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(Normalize {
            ignore: [&self.ignore[..], &no_data].concat(),
            ..self.clone()
        })))
    }

    fn output_type(&self, input: Values) -> Values {
        if input.depth.is_wide() {
            Values {
                depth: Depth::Sixteen,
                signed: false,
            }
        } else {
            Values {
                signed: input.signed && !self.unsigned,
                ..input
            }
        }
    }

    fn diagnose(&self, image: &Image, types: &SampleTypes) -> Diagnostics {
        let range = self.range(types).ok().flatten();
        let warning = range.and_then(|range| range.warn_if_empty(image, types, self.nan));
        Diagnostics {
            warnings: Vec::from_iter(warning),
            ..Diagnostics::default()
        }
    }

    fn gpu_obstacle(&self, shape: &Shape) -> Option<&'static str> {
        match self.range {
            Some(InputRange::Zscale) if shape.depth.is_wide() => {
                return Some("the GPU does not support --range zscale for 32-bit samples");
            }
            Some(InputRange::Stf) if shape.depth.is_wide() => {
                return Some("the GPU does not support --range stf for 32-bit samples");
            }
            _ => {}
        }
        if !self.ignore.is_empty() && shape.depth.is_wide() {
            return Some("the GPU does not support --ignore for 32-bit samples");
        }
        let checks_integers = self.undo && shape.depth == Depth::Float;
        checks_integers.then_some("the GPU does not support --undo for floating point")
    }

    fn check_types(&self, types: &SampleTypes) -> Result<()> {
        if let Some(range) = self.range(types)? {
            if self.window.is_some() {
                let fits = range.fits("--window: the range", types.read);
                fits.map_err(|error| {
                    anyhow!("{error} (unsigned CT images often have an offset of 1024: add it to CENTER)")
                })?;
            } else {
                range.fits("--range", types.read)?;
            }
        }
        let has_decimals = |number: &&Number| !matches!(number, Number::Whole(_));
        if let Some(number) = self.ignore.iter().find(has_decimals)
            && !self.ignores_no_data
        {
            ensure!(
                types.read.depth.is_float(),
                "--ignore {number} is not a whole number, but the samples are integers"
            );
        }
        if self.range == Some(InputRange::Stf) {
            ensure!(
                self.curve.is_none(),
                "--range stf has a curve of its own: remove --curve {}",
                self.curve.unwrap_or(Curve::Log)
            );
        }
        if self.undo {
            let curve = match self.range {
                Some(InputRange::Stf) => Some("--range stf".into()),
                _ => self.curve.map(|curve| format!("--curve {curve}")),
            };
            if let Some(curve) = curve {
                bail!("restore cannot undo {curve}: remove it or --undo");
            }
        }
        ensure!(
            !self.undo || types.read.depth != Depth::Double,
            "--undo cannot store ranges of 64-bit floating point: convert to 32 bits first (NumPy: astype('float32'))"
        );
        let to = self.to.map(|to| to.fits("--to", types.written));
        to.unwrap_or(Ok(()))
    }

    fn bind<'a>(
        &'a self,
        types: SampleTypes,
        statistics: &'a Statistics,
    ) -> Result<Box<dyn Bound + 'a>> {
        let read = types.read;
        if types.depth.is_wide() {
            return Ok(Box::new(wide::BoundNormalize::new(
                self, types, statistics,
            )?));
        }
        let (colours, per_channel) = (types.colours(), self.per_channel);
        let (mut warnings, mut inside) = (Vec::new(), false);
        let mut curve = self.curve;
        let (ranges, depth, measured) = match (self.range(&types)?, statistics) {
            (Some(range), _) => (vec![range.samples(read)], read.depth, false),
            (None, Statistics::Sampled(sampled)) => {
                let step = read.depth.steps(types.depth);
                let (range, warning) = zscale_of_integers(sampled, read, step.into());
                warnings.extend(warning);
                (vec![range.map(|sample| sample as u16)], types.depth, false)
            }
            (None, Statistics::Histogram(counts)) if self.range == Some(InputRange::Stf) => {
                let (range, midtones) = stf::range_and_midtones(&counts.in_depth(read.depth));
                curve = Some(midtones);
                (vec![range], read.depth, false)
            }
            (None, Statistics::MinMax(extremes)) => {
                (extremes.ranges(colours, per_channel), extremes.depth, true)
            }
            (None, Statistics::Histogram(counts) | Statistics::OtherHistogram(counts)) => {
                let ranges = self.ranges_from_counts(counts, read, &mut warnings);
                inside = matches!(statistics, Statistics::Histogram(_))
                    && ranges == counts.ranges(Clip::NONE, per_channel);
                (ranges, counts.depth, false)
            }
            (None, Statistics::OnDevice(extremes)) => {
                return Ok(Box::new(BoundNormalize {
                    op: self,
                    types,
                    ranges: RangeSource::OnDevice(extremes),
                    tables: CurveTables::new(curve),
                }));
            }
            (None, Statistics::None | Statistics::Wide(_) | Statistics::Medians(_)) => {
                bail!("the range was not measured")
            }
        };
        // A range given for 8 bits is converted to 16 bits in the same way as the samples.
        let step = depth.steps(types.depth);
        let ranges = ranges.into_iter();
        let ranges = ranges.map(|range| range.map(|sample| sample * step));
        Ok(Box::new(BoundNormalize {
            op: self,
            types,
            ranges: RangeSource::OnHost {
                ranges: ranges.collect(),
                measured,
                inside: inside || measured,
                warnings,
            },
            tables: CurveTables::new(curve),
        }))
    }
}

impl Normalize {
    /// The range for these sample types, if it comes from the user or from the file; `None` if it is measured.
    ///
    /// # Errors
    /// The user requested the window of the file, but the file has none.
    fn range(&self, types: &SampleTypes) -> Result<Option<Range>> {
        match self.range {
            Some(range) => range.resolve(types.window),
            None => Ok(None),
        }
    }

    /// Whether the range that was used is printed without `--verbose`.
    fn announces(&self) -> bool {
        self.auto || matches!(self.range, Some(InputRange::Zscale | InputRange::Stf))
    }

    /// The range of output samples.
    fn target(&self, written: Values) -> MinMax<u16> {
        let full_range = MinMax {
            min: 0,
            max: written.depth.full(),
        };
        self.to.map_or(full_range, |to| to.samples(written))
    }

    /// The ignored values as samples in memory, without values that samples of this type cannot have.
    fn ignored(&self, values: Values) -> Vec<u64> {
        let numbers = self.ignore.iter().copied();
        let key = |number: f64| match values.depth {
            Depth::Double => number::key64(number.to_bits()),
            _ => number::key((number as f32).to_bits()).into(),
        };
        let samples = numbers.flat_map(|number| match (values.limits(), number) {
            (None, number) if number.as_f64() == 0.0 => [0.0, -0.0].map(key).to_vec(),
            (None, number) => vec![key(number.as_f64())],
            (Some((least, most)), Number::Whole(value)) if (least..=most).contains(&value) => {
                vec![(value - least) as u64]
            }
            (Some(_), _) => Vec::new(),
        });
        samples.collect()
    }

    /// The ranges between the percentiles of the counted samples, without ignored values. If both percentiles of a
    /// channel are equal, the range of all its samples is used, with a warning.
    fn ranges_from_counts(
        &self,
        counts: &Counts,
        read: Values,
        warnings: &mut Vec<String>,
    ) -> Vec<MinMax<u16>> {
        let step = read.depth.steps(counts.depth);
        let ignored = self.ignored(read).into_iter();
        let ignored: Vec<u16> = ignored.map(|sample| sample as u16 * step).collect();
        let kept = counts.without(&ignored);
        let clip = self.clip.unwrap_or(Clip::NONE);
        let ranges = kept.ranges(clip, self.per_channel);
        let whole = kept.ranges(Clip::NONE, self.per_channel);
        let channels = ranges.len();
        let each = ranges.into_iter().zip(whole).enumerate();
        let chosen = each.map(|(channel, (range, whole))| {
            let collapsed = range.min == range.max && whole.min < whole.max;
            if collapsed {
                let value = |sample: u16| read.value(sample / step);
                warnings.push(clip_collapsed(
                    channel_description(channel, channels),
                    [range.min, whole.min, whole.max].map(value),
                ));
            }
            if collapsed { whole } else { range }
        });
        let chosen = chosen.collect();
        if !ignored.is_empty() && kept.bins.iter().all(|&count| count == 0) {
            warnings.push(ALL_IGNORED.into());
        }
        chosen
    }
}

/// The warning if `--ignore` excludes all samples.
const ALL_IGNORED: &str = "--ignore excludes every sample";

/// The range that zscale measures for integers, as samples in memory: each end is rounded to a value of the file, and multiplied
/// by `step`. If both ends are equal, the range of all measured samples is used instead, with a warning.
fn zscale_of_integers(sampled: &Sampled, read: Values, step: u64) -> (MinMax<u64>, Option<String>) {
    let whole = sampled.extremes().unwrap_or(MinMax::one(0));
    let range = sampled.range(|sample| (sample / step) as f64);
    let range = range.map(|range| range.map(|end| (end + 0.5).floor() as u64 * step));
    match range {
        Some(range) if range.min < range.max || whole.min == whole.max => (range, None),
        _ => {
            let [at, min, max] = [range.unwrap_or(whole).min, whole.min, whole.max]
                .map(|sample| read.number(sample / step));
            let warning =
                format!("zscale finds only the value {at}, so the range {min}:{max} is used");
            (whole, Some(warning))
        }
    }
}

/// The name of a channel in messages, given the number of channels with their own range.
fn channel_description(channel: usize, channels: usize) -> String {
    match channels {
        1 => "the image".into(),
        _ => format!("channel {}", channel + 1),
    }
}

/// The warning for equal percentiles of a channel that is not flat.
fn clip_collapsed(what: String, [at, min, max]: [impl std::fmt::Display; 3]) -> String {
    format!("both percentiles of {what} are {at}, so the full range {min}:{max} is used")
}
