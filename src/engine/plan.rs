//! The plan of a page: everything that will happen to it, decided from its header before a pixel is read. A plan is plain
//! data and prints as text. It decides the sample types, the metadata, the warnings, and how the page is traversed.

mod depth;
mod metadata;
mod text;

use super::destination::Destination;
use super::shared::SharedStatistics;
use super::task::{Form, Task, device_work};
use crate::formats::gpu::{self, decode};
use crate::formats::{Bands as EncoderBands, Format, Writer};
use crate::gpu::Devices;
use crate::image::metadata::{Alpha, Diagnostics, Effect, Metadata};
use crate::image::number::Number;
use crate::image::{Depth, Region, Shape, Values};
use crate::ops::fit::Fit;
use crate::ops::symmetry::Symmetry;
use crate::ops::{self, Access, Operation, Position, SampleTypes, Statistic, Summary, chain};
use anyhow::{Result, ensure};

pub use depth::InputConversion;

/// Pages of at least this many bytes are summed block by block.
const MIN_BYTES_FOR_BLOCKS: usize = 4 << 20;

/// Pages of at least this many bytes are processed in bands of rows, if that is asked for or memory is short.
const MIN_BYTES_FOR_ROWS: usize = 2 << 20;

/// Bytes of a band of rows for each thread.
const BAND_BYTES_PER_THREAD: usize = 1 << 20;

/// A page as its header describes it.
#[derive(Clone, Debug)]
pub struct PageHeader {
    /// Its index in the file, counted from 0.
    pub page: usize,
    /// Its position on the axis of channels, counted from 0.
    pub channel: usize,
    /// Its position among all images that are processed; `None` if it is unknown or ambiguous.
    pub position: Option<Position>,
    /// Its shape as it is stored.
    pub shape: Shape,
    /// The format of its file.
    pub format: &'static Format,
    /// Whether a preview shows its first row at the bottom.
    pub is_bottom_up: bool,
    /// Its metadata as they are stored.
    pub metadata: Metadata,
    /// Messages about metadata that cannot be kept.
    pub diagnostics: Diagnostics,
    /// How its decoder can return it.
    pub decoder: DecoderCapabilities,
    /// How the decoder decodes the whole page.
    pub decoding: String,
    /// The region that the first operation takes, if the decoder can decode only that region.
    pub region: Option<RegionParts>,
    /// Bytes of the file; `None` for a store, whose chunks are files of their own.
    pub file_bytes: Option<u64>,
}

impl PageHeader {
    /// The orientation for display: that of the metadata, or else for previews that of the format's convention, unless `output`
    /// has the same convention.
    fn orientation(&self, output: Option<&Format>) -> Option<u16> {
        /// The first row is at the bottom, and the first column at the left.
        const BOTTOM_LEFT: u16 = 4;
        let is_bottom_up = self.is_bottom_up && !output.is_some_and(|format| format.is_bottom_up);
        let by_convention = is_bottom_up.then_some(BOTTOM_LEFT);
        self.metadata.orientation.or(by_convention)
    }
}

/// A region of a page, and the part of the page that the decoder reads for it.
#[derive(Clone, Debug)]
pub struct RegionParts {
    /// The region.
    pub region: Region,
    /// The part of the page that is read, as text for the plan.
    pub parts: String,
}

/// How a decoder can return a page, other than as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecoderCapabilities {
    /// Compressed, for a GPU to decode.
    pub packed: bool,
    /// In blocks of whole rows, in any order and on any thread.
    pub blocks: bool,
    /// In rows from top to bottom.
    pub rows: bool,
}

/// What the plans of all pages of a file have in common.
#[derive(Clone, Copy)]
pub struct FilePlan<'a> {
    /// The operations, in order.
    pub ops: &'a [&'a dyn Operation],
    /// The statistics that pages share.
    pub shared: &'a SharedStatistics,
    /// Where the result goes, and how it is written; `None` for numbers.
    pub output: Option<&'a Destination>,
    /// Pages of the output.
    pub pages: usize,
    /// Whether the metadata of the input describe all pages of the output and no others.
    pub describes_all_pages: bool,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub row_bands: bool,
}

/// Everything that will happen to a page.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The page as its header describes it.
    pub header: PageHeader,
    /// The conversion of samples before the first step.
    pub input_conversion: InputConversion,
    /// The steps in order, each with the types of its samples. With `--auto-orient` the first one rotates the page upright.
    pub steps: Vec<Task<'a>>,
    /// Whether the first step rotates the page upright.
    pub first_step_orients: bool,
    /// The region that is decoded; `None` for the whole page. If there is a region, the first step has nothing left to do.
    pub region: Option<RegionParts>,
    /// The shape of the first step's input.
    pub first_input_shape: Shape,
    /// The shape of the result before `fit`. For numbers, it is that of the last step's input.
    pub result_shape: Shape,
    /// If 16-bit samples are converted to 8 bits after the last step, the largest value that they can have.
    pub to_eight_bits: Option<u16>,
    /// The reduction of the result (`--fit`), if it makes the image smaller.
    pub fit: Option<Fit>,
    /// How the page passes through memory.
    pub traversal: Traversal,
    /// Whether a GPU that runs the steps can decode the page too.
    pub gpu_can_decode: bool,
    /// The form in which a GPU returns the result of the last step.
    pub step_form: Form,
    /// The form in which a GPU returns the output.
    pub output_form: Form,
    /// The device that is expected to run the steps, and why.
    pub device_line: String,
    /// Warnings and notes that are known from the header.
    pub diagnostics: Diagnostics,
    /// The metadata after all steps but the last.
    metadata: Metadata,
    /// The shape that `metadata` describe. Until the first operation it has the depth that the file stores.
    described_shape: Shape,
    output: Option<&'a Destination>,
    pages: usize,
    describes_all_pages: bool,
}

/// How a page passes through memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traversal {
    /// As a whole.
    Whole,
    /// In blocks of whole rows, in any order and on all threads: for numbers that need no statistic.
    Blocks,
    /// In bands of rows from top to bottom. The file is decoded twice: the first pass checks all of it and measures the
    /// statistic.
    Rows {
        /// Rows of a band.
        rows: usize,
        /// Which rows the encoder needs.
        encoder: EncoderBands,
    },
}

/// Plans a page of a file, whose result `writer` encodes. Nothing is read, and no device is started.
///
/// # Errors
/// A page that the operations can neither keep nor change.
pub fn plan_page<'a>(
    header: PageHeader,
    file: &FilePlan<'a>,
    writer: Option<&Writer>,
    devices: &Devices,
) -> Result<Plan<'a>> {
    let FilePlan { ops, output, .. } = *file;
    let mut diagnostics = header.diagnostics.clone();
    let warning = check_extra_channel(ops, &header.metadata, &header.shape)?;
    diagnostics.warnings.extend(warning);
    let input_conversion =
        InputConversion::choose(output, &header.metadata, header.shape.depth, ops);
    let first_input_shape = Shape {
        depth: input_conversion.output(header.shape.depth),
        ..header.shape
    };
    let format = writer.map(Writer::format);
    let upright = output
        .filter(|output| output.auto_orient)
        .and(header.orientation(format))
        .and_then(Symmetry::upright);
    let steps = steps(&header, file, upright, first_input_shape, format);
    let mut result_shape = first_input_shape;
    let first_operation = usize::from(upright.is_some());
    for (index, step) in steps.iter().enumerate() {
        // The operations were checked when the file was opened, but not with the rotation of this page.
        // The first operation is checked with the depth that the file stores: `first_input_shape` may have another.
        let depth = if index <= first_operation {
            header.shape.depth
        } else {
            result_shape.depth
        };
        ops::check(
            step.op,
            &Shape {
                depth,
                ..result_shape
            },
        )?;
        result_shape = step.output(result_shape);
    }
    let region = header.region.clone().filter(|_| upright.is_none());
    let first_input_shape = region.as_ref().map_or(first_input_shape, |decoded| {
        decoded.region.output(first_input_shape)
    });
    let mut plan = Plan {
        gpu_can_decode: region.is_none() && gpu_can_decode(&header, output),
        step_form: step_form(output, writer, &first_input_shape),
        output_form: Form::Samples,
        metadata: header.metadata.clone(),
        described_shape: header.shape,
        header,
        input_conversion,
        steps,
        first_step_orients: upright.is_some(),
        region,
        first_input_shape,
        result_shape,
        to_eight_bits: None,
        fit: output
            .and_then(|output| output.fit)
            .filter(|fit| fit.output(result_shape) != result_shape),
        traversal: Traversal::Whole,
        device_line: String::new(),
        diagnostics,
        output,
        pages: file.pages,
        describes_all_pages: file.describes_all_pages,
    };
    plan.update_metadata_between_steps();
    plan.to_eight_bits = depth::to_eight_bits(output, &plan.metadata, result_shape.depth);
    if plan.to_eight_bits.is_some() {
        plan.result_shape.depth = Depth::Eight;
    }
    plan.choose_traversal(file.row_bands, writer);
    plan.output_form = output_form(writer, &plan.output_shape());
    let work = device_work(&plan.steps, &plan.first_input_shape, plan.step_form);
    plan.device_line = devices.foresee(&work);
    Ok(plan)
}

impl<'a> Plan<'a> {
    /// The operations that were asked for: all steps except the one that rotates the page upright.
    pub fn operations(&self) -> &[Task<'a>] {
        &self.steps[usize::from(self.first_step_orients)..]
    }

    /// The shape of the output.
    pub fn output_shape(&self) -> Shape {
        let result = self.result_shape;
        self.fit.map_or(result, |fit| fit.output(result))
    }

    /// The effect of the last operation.
    pub fn last_effect(&self) -> Effect {
        let last = self.steps.last();
        last.map_or(Effect::Numbers, |step| step.op.properties().effect)
    }

    /// The ranges that the last operation scaled values from; empty if it did not scale. Ranges of earlier operations do not
    /// apply to the samples that are converted to 8 bits.
    pub fn scaled_ranges<'s>(&self, summary: &'s Summary) -> &'s [(Number, Number)] {
        match self.last_effect() {
            Effect::Values => &summary.ranges,
            _ => &[],
        }
    }

    /// The shape of what is decoded, as the file stores it.
    pub fn decoded_shape(&self) -> Shape {
        let whole = self.header.shape;
        let region = self.region.as_ref();
        region.map_or(whole, |decoded| decoded.region.output(whole))
    }

    /// The statistic that the first pass measures, for a page in bands of rows.
    pub fn first_pass_statistic(&self) -> Statistic {
        let Some(step) = self.steps.last() else {
            return Statistic::None;
        };
        if step.op.properties().statistic == Statistic::None
            && step.op.properties().effect == Effect::Values
        {
            // The user gave the range. The minimum and maximum are needed only to warn if no sample is in it.
            return Statistic::MinMax;
        }
        step.statistic()
    }

    /// Whether the input samples of the last operation are signed.
    pub fn last_input_is_signed(&self) -> bool {
        let last = self.steps.last();
        last.map_or(self.header.metadata.signed, |step| step.types.read.signed)
    }

    /// Chooses how the page passes through memory. If it should be processed in bands of rows and cannot, a warning gives the
    /// reason.
    fn choose_traversal(&mut self, row_bands: bool, writer: Option<&Writer>) {
        if self.region.is_some() {
            return;
        }
        let bytes = self.header.shape.bytes();
        if bytes >= MIN_BYTES_FOR_BLOCKS && self.can_be_in_blocks() {
            self.traversal = Traversal::Blocks;
        } else if row_bands {
            match self.row_bands(writer) {
                Ok(bands) if bytes >= MIN_BYTES_FOR_ROWS => self.traversal = bands,
                Ok(_) => {}
                Err(reason) => {
                    let warning = self.whole_image_warning(reason);
                    self.diagnostics.warnings.push(warning);
                }
            }
        }
    }

    /// The warning that the whole page is in memory, although `--low-memory` was asked for or memory is short.
    pub fn whole_image_warning(&self, reason: &str) -> String {
        let asked = self.output.is_some_and(|output| output.low_memory);
        let why = if asked {
            "--low-memory"
        } else {
            "more memory than --mem-limit, or half of the free memory"
        };
        format!("{why}: the whole image is in memory because {reason}")
    }

    /// Whether the page can be processed in blocks whose numbers are merged.
    fn can_be_in_blocks(&self) -> bool {
        let [step] = &self.steps[..] else {
            return false;
        };
        step.op.properties().merges_cheaply
            && self.header.decoder.blocks
            && !self.header.shape.depth.is_wide()
    }

    /// The bands of rows in which the page can be processed.
    ///
    /// # Errors
    /// Why it must be in memory as a whole.
    fn row_bands(&self, writer: Option<&Writer>) -> Result<Traversal, &'static str> {
        let shape = self.header.shape;
        let [step] = &self.steps[..] else {
            let only_orients = self.first_step_orients && self.steps.len() == 2;
            return Err(if only_orients {
                "--auto-orient rotates it"
            } else {
                "several verbs are applied"
            });
        };
        let encoder = match writer {
            Some(writer) => writer.bands(&self.result_shape),
            None if self.output.is_some() => Some(EncoderBands {
                unit: 1,
                trial: Vec::new(),
            }),
            None => return Err("numbers need the whole page"),
        };
        let encoder = encoder.ok_or("the output format needs whole images")?;
        if mixes_rows(step.op) {
            return Err("it moves pixels from row to row");
        }
        if step.op.properties().statistic == Statistic::Sampled {
            return Err("its range depends on the positions of its samples");
        }
        if needs_all_wide_samples(step.op, &shape) {
            return Err("these options need all 32-bit samples at once");
        }
        if self.fit.is_some() {
            return Err("--fit shrinks it");
        }
        if !self.header.decoder.rows {
            return Err("its rows cannot be read in order");
        }
        let row_bytes = shape.row() * shape.depth.bytes();
        let band_bytes = BAND_BYTES_PER_THREAD * rayon::current_num_threads();
        let rows = band_bytes.div_ceil(encoder.unit * row_bytes) * encoder.unit;
        Ok(Traversal::Rows { rows, encoder })
    }
}

/// The steps for a page: the symmetry that rotates it `upright`, and the operations. Each has its types and the statistic that
/// pages share.
fn steps<'a>(
    header: &PageHeader,
    file: &FilePlan<'a>,
    upright: Option<&'a Symmetry>,
    first_input_shape: Shape,
    format: Option<&'static Format>,
) -> Vec<Task<'a>> {
    let metadata = &header.metadata;
    let mut steps = Vec::with_capacity(file.ops.len() + 1);
    steps.extend(upright.map(|symmetry| Task::plain(symmetry, &first_input_shape)));
    let wanted = file.output.and_then(|output| output.depth);
    let format_has_sign = format.is_none_or(|format| format.capabilities.signed);
    let mut depth = first_input_shape.depth;
    let mut channels = header.shape.channels;
    let mut values = metadata.values(header.shape.depth);
    let mut window = metadata.window;
    let mut stretch = metadata.stretch.clone().and_then(Result::ok);
    for (index, op) in file.ops.iter().enumerate() {
        let is_last = index + 1 == file.ops.len();
        // Only the last step depends on the output's format. The other steps give what a file between two steps would hold.
        let mut output_type = op.output_type(Values {
            depth,
            signed: values.signed && (format_has_sign || !is_last),
        });
        if wanted == Some(Depth::Sixteen) && output_type.depth == Depth::Eight {
            output_type.depth = Depth::Sixteen;
        }
        let types = SampleTypes {
            channels,
            depth,
            read: values,
            written: Values {
                depth: wanted.filter(|_| is_last).unwrap_or(output_type.depth),
                signed: output_type.signed,
            },
            window,
            stretch: stretch.take(),
            position: header.position,
        };
        if !op.properties().effect.keeps_values() {
            window = None;
        }
        channels = op.output_channels(channels);
        if output_type.depth != depth {
            depth = types.written.depth;
        }
        // As in a file between the two steps.
        values = Values {
            depth,
            signed: output_type.signed,
        };
        steps.push(Task {
            op: *op,
            types,
            statistics: file.shared.get(index, *op, &types, header.channel),
        });
    }
    steps
}

/// Whether a GPU that runs the steps can decode the page too: its format allows it, it is large enough, and its samples need no
/// conversion or check on the host.
fn gpu_can_decode(header: &PageHeader, output: Option<&Destination>) -> bool {
    let needs_host = |output: &Destination| {
        let output_bits = output.depth.map_or(0, Depth::bits);
        output.auto_orient || output_bits > header.shape.depth.bits()
    };
    header.decoder.packed
        && header.shape.pixels() >= gpu::MIN_PIXELS
        && header
            .file_bytes
            .is_none_or(|bytes| bytes >= decode::MIN_BYTES)
        && header.metadata.maxval.is_none()
        && !output.is_some_and(needs_host)
}

/// The form in which a GPU returns the output: deflated for a large PNG. The host compresses a small one in less time.
fn output_form(writer: Option<&Writer>, shape: &Shape) -> Form {
    match writer {
        Some(writer) if writer.keeps_on_gpu() => Form::Device,
        Some(writer) if writer.is_for_gpu() && shape.pixels() >= gpu::MIN_PIXELS => Form::Png,
        _ => Form::Samples,
    }
}

/// The form in which a GPU returns the result of the steps. The result stays in device memory if it is still to be converted to
/// 8 bits or reduced.
fn step_form(output: Option<&Destination>, writer: Option<&Writer>, shape: &Shape) -> Form {
    let depth = output.and_then(|output| output.depth);
    let loses_bits = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
    if loses_bits || output.is_some_and(|output| output.fitted(*shape) != *shape) {
        return Form::Device;
    }
    output_form(writer, shape)
}

/// Whether the rows of an operation's result depend on other rows of its input.
fn mixes_rows(op: &dyn Operation) -> bool {
    match op.properties().access {
        Access::Permutation(map) => map.transposed || map.mirror_y,
        Access::Region(_) | Access::WholeImage => true,
        Access::Pointwise | Access::Reduction => false,
    }
}

/// Whether an operation on samples of 32 or 64 bits needs all of them at once, because the statistics of bands cannot be
/// merged.
fn needs_all_wide_samples(op: &dyn Operation, shape: &Shape) -> bool {
    let merges = op.properties().statistic == Statistic::MinMax && op.gpu_obstacle(shape).is_none();
    shape.depth.is_wide()
        && match op.properties().effect {
            Effect::Moves(_) | Effect::Cropped { .. } | Effect::Kept => false,
            Effect::Values => !merges,
            _ => true,
        }
}

/// The operations that get all channels of the file: those up to the first one that leaves some out (`convert --channel`).
fn with_all_channels<'a, 'o>(
    ops: &'a [&'o dyn Operation],
    channels: usize,
) -> &'a [&'o dyn Operation] {
    let takes = |op: &&dyn Operation| {
        op.properties().effect.keeps_values() && op.output_channels(channels) != channels
    };
    &ops[..ops.iter().position(takes).unwrap_or(ops.len())]
}

/// Checks the operations against the meaning of the channels. Returns a warning if the result may be unexpected.
///
/// # Errors
/// A channel that the operations can neither keep nor change.
fn check_extra_channel(
    ops: &[&dyn Operation],
    metadata: &Metadata,
    shape: &Shape,
) -> Result<Option<String>> {
    ensure!(
        !metadata.white_is_zero || chain::output_channels(ops, shape.channels) == shape.channels,
        "0 is white in it, but black in RGB: make an image where 0 is black first"
    );
    let ops = with_all_channels(ops, shape.channels);
    ensure!(
        chain::output_depth(ops, shape.depth) == shape.depth
            || metadata.alpha != Alpha::Unspecified,
        "its last channel has an unspecified meaning and {}, so it cannot be converted to {}",
        shape.depth,
        chain::output_depth(ops, shape.depth)
    );
    ensure!(
        metadata.alpha != Alpha::Black
            || ops.iter().all(|op| op.properties().effect.keeps_values()),
        "CMYK images can only be rotated, flipped, transposed, cropped and converted: convert to RGB first"
    );
    let warning = match metadata.alpha {
        Alpha::Associated => "the colours are premultiplied by alpha, and are scaled as they are",
        Alpha::Unspecified => "its last channel has an unspecified meaning and is left unchanged",
        Alpha::Independent | Alpha::Black => return Ok(None),
    };
    let scales = ops
        .iter()
        .any(|op| op.properties().effect == Effect::Values);
    Ok(scales.then(|| warning.into()))
}
