//! The plan of a page: everything that will happen to it, decided from its header before a pixel is read. A plan is plain
//! data and prints as text. The sample types, the metadata, the warnings, and how the page passes through memory are decided
//! here and nowhere else.

mod depth;
mod metadata;
mod text;

use super::destination::Destination;
use super::stack::SharedStatistics;
use super::task::{Form, Task, device_work};
use crate::formats::gpu::decode;
use crate::formats::{Bands as RowBands, Format, Writer};
use crate::gpu::Devices;
use crate::image::metadata::{Alpha, Diagnostics, Effect, Metadata};
use crate::image::number::Number;
use crate::image::{Depth, Shape, Values};
use crate::ops::fit::Fit;
use crate::ops::symmetry::Symmetry;
use crate::ops::{self, Access, Operation, SampleTypes, Statistic, Summary, chain};
use anyhow::{Result, ensure};

pub use depth::InputDepth;

/// Bytes of a page from which on its numbers are found block by block.
const LEAST_IN_BLOCKS: usize = 4 << 20;

/// Bytes of a page from which on it is processed in bands of rows, where memory is short.
const LEAST_IN_ROWS: usize = 2 << 20;

/// Pixels of a page from which on a GPU compresses it, after the GPU has changed or reduced the result of the steps.
const LEAST_TO_COMPRESS: usize = 1 << 20;

/// Bytes of a band of rows for each thread.
const BAND_OF_A_THREAD: usize = 1 << 20;

/// A page as its header describes it.
#[derive(Clone, Debug)]
pub struct PageHeader {
    /// Its index in the file, counted from 0.
    pub page: usize,
    /// Its position on the axis of channels, counted from 0.
    pub channel: usize,
    /// Its shape as it is stored.
    pub shape: Shape,
    /// The format of its file.
    pub format: &'static Format,
    /// Its metadata as they are stored.
    pub metadata: Metadata,
    /// Which of its metadata cannot be kept.
    pub diagnostics: Diagnostics,
    /// The ways in which its decoder can give it.
    pub decoder: DecoderWays,
}

/// The ways in which a decoder can give a page, other than as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecoderWays {
    /// Compressed, for a GPU to decode.
    pub packed: bool,
    /// In blocks of whole rows, in any order and on any thread.
    pub blocks: bool,
    /// In rows from top to bottom.
    pub rows: bool,
    /// Bytes of the file.
    pub file_bytes: u64,
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
    pub whole: bool,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub row_bands: bool,
}

/// Everything that will happen to a page.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The page as its header describes it.
    pub header: PageHeader,
    /// The change of depth before the first step.
    pub input_depth: InputDepth,
    /// The steps in order, each with the types of its samples. With `--auto-orient` the first one turns the page upright.
    pub steps: Vec<Task<'a>>,
    /// Whether the first step turns the page upright.
    pub upright: bool,
    /// The shape that the first step is given.
    pub prepared: Shape,
    /// The shape of the result before `fit`; that of the last step's input for numbers.
    pub result: Shape,
    /// The largest of the 16-bit samples that become 8 bits after the last step, if they do.
    pub to_eight_bits: Option<u16>,
    /// The reduction of the result, if it makes the image smaller.
    pub fit: Option<Fit>,
    /// How the page passes through memory.
    pub bands: Bands,
    /// Whether a GPU that runs the steps can decode the page too.
    pub gpu_can_decode: bool,
    /// The form in which a GPU returns the result of the last step.
    pub step_form: Form,
    /// The form in which a GPU returns the output.
    pub output_form: Form,
    /// The device that will run the steps by today's estimate, and why.
    pub device: String,
    /// What the user should know before anything is done.
    pub diagnostics: Diagnostics,
    /// The metadata after all steps but the last, and the shape, at its stored depth, that they describe.
    metadata: Metadata,
    described: Shape,
    output: Option<&'a Destination>,
    pages: usize,
    whole: bool,
}

/// How a page passes through memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bands {
    /// As a whole.
    Whole,
    /// In blocks of whole rows, in any order and on all threads: for numbers that need no statistic.
    Blocks,
    /// In bands of rows from top to bottom. The file is decoded twice: the first pass checks all of it and measures the
    /// statistic.
    Rows {
        /// Rows of a band.
        rows: usize,
        /// How the encoder takes them.
        encoder: RowBands,
    },
}

/// Plans a page of a file, whose result `writer` encodes. Nothing is read, and no device is started.
///
/// # Errors
/// A page that the operations can neither keep nor change.
pub fn plan<'a>(
    header: PageHeader,
    file: &FilePlan<'a>,
    writer: Option<&Writer>,
    devices: &Devices,
) -> Result<Plan<'a>> {
    let FilePlan { ops, output, .. } = *file;
    let mut diagnostics = header.diagnostics.clone();
    let warning = alpha_warning(ops, &header.metadata, &header.shape)?;
    diagnostics.warnings.extend(warning);
    let input_depth = InputDepth::choose(output, &header.metadata, header.shape.depth, ops);
    let prepared = Shape {
        depth: input_depth.output(header.shape.depth),
        ..header.shape
    };
    let format = writer.map(Writer::format);
    let upright = output
        .filter(|output| output.auto_orient)
        .and(header.metadata.orientation)
        .and_then(Symmetry::upright);
    let steps = steps(&header, file, upright, prepared, format);
    let mut result = prepared;
    let first = usize::from(upright.is_some());
    for (index, step) in steps.iter().enumerate() {
        // Only here is it known whether the page is turned upright. The first operation is asked about samples as the
        // file stores them: `prepared` may have another depth.
        let asked = Shape {
            depth: if index <= first {
                header.shape.depth
            } else {
                result.depth
            },
            ..result
        };
        ops::check(step.op, &asked)?;
        result = chain::output(step.op, result);
    }
    let mut plan = Plan {
        gpu_can_decode: gpu_can_decode(&header, output),
        step_form: step_form(output, writer, &prepared),
        output_form: Form::Samples,
        metadata: header.metadata.clone(),
        described: header.shape,
        header,
        input_depth,
        steps,
        upright: upright.is_some(),
        prepared,
        result,
        to_eight_bits: None,
        fit: output
            .and_then(|output| output.fit)
            .filter(|fit| fit.output(result) != result),
        bands: Bands::Whole,
        device: String::new(),
        diagnostics,
        output,
        pages: file.pages,
        whole: file.whole,
    };
    plan.update_metadata_between_steps();
    plan.to_eight_bits = depth::to_eight_bits(output, &plan.metadata, result.depth);
    if plan.to_eight_bits.is_some() {
        plan.result.depth = Depth::Eight;
    }
    plan.choose_bands(file.row_bands, writer);
    plan.output_form = output_form(writer, &plan.output_shape());
    plan.device = devices.foresee(&device_work(&plan.steps, &plan.prepared, plan.step_form));
    Ok(plan)
}

impl<'a> Plan<'a> {
    /// The operations that were asked for: the steps but for the one that turns the page upright.
    pub fn operations(&self) -> &[Task<'a>] {
        &self.steps[usize::from(self.upright)..]
    }

    /// The shape of the output.
    pub fn output_shape(&self) -> Shape {
        self.fit.map_or(self.result, |fit| fit.output(self.result))
    }

    /// The effect of the last operation.
    pub fn last_effect(&self) -> Effect {
        let last = self.steps.last();
        last.map_or(Effect::Numbers, |step| step.op.properties().effect)
    }

    /// The ranges that the last operation scaled values from; none if it scaled none: those of an operation before it are
    /// not ranges of the samples that become 8 bits.
    pub fn scaled_ranges<'s>(&self, summary: &'s Summary) -> &'s [(Number, Number)] {
        match self.last_effect() {
            Effect::Values => &summary.ranges,
            _ => &[],
        }
    }

    /// The statistic that the first of two passes measures.
    pub fn statistic_of_bands(&self) -> Statistic {
        let Some(step) = self.steps.last() else {
            return Statistic::None;
        };
        match (step.op.properties().statistic, step.statistics) {
            // For a warning about the range that is given.
            (Statistic::None, _) if step.op.properties().effect == Effect::Values => {
                Statistic::MinMax
            }
            (wanted, None) => wanted,
            (_, Some(_)) => Statistic::None,
        }
    }

    /// Whether the last operation is given signed samples.
    pub fn last_is_given_signed(&self) -> bool {
        let last = self.steps.last();
        last.map_or(self.header.metadata.signed, |step| step.types.read.signed)
    }

    /// Chooses how the page passes through memory; a warning says why it does not in bands of rows where `--low-memory`
    /// asks for them.
    fn choose_bands(&mut self, row_bands: bool, writer: Option<&Writer>) {
        let bytes = self.header.shape.bytes();
        if bytes >= LEAST_IN_BLOCKS && self.can_be_in_blocks() {
            self.bands = Bands::Blocks;
        } else if row_bands {
            match self.row_bands(writer) {
                Ok(bands) if bytes >= LEAST_IN_ROWS => self.bands = bands,
                Ok(_) => {}
                Err(why) => self.is_whole_because(why),
            }
        }
    }

    /// Has the page in memory as a whole, for a reason which a warning gives if `--low-memory` was asked for.
    pub fn is_whole_because(&mut self, why: &str) {
        self.bands = Bands::Whole;
        if self.output.is_some_and(|output| output.low_memory) {
            let warning = format!("--low-memory: the whole image is in memory because {why}");
            self.diagnostics.warnings.push(warning);
        }
    }

    /// Whether the numbers of blocks can be joined to those of the page.
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
    fn row_bands(&self, writer: Option<&Writer>) -> Result<Bands, &'static str> {
        let shape = self.header.shape;
        let [step] = &self.steps[..] else {
            return Err(match self.upright {
                true if self.steps.len() == 2 => "--auto-orient rotates it",
                _ => "several verbs are applied",
            });
        };
        let encoder = match writer {
            Some(writer) => writer.bands(&self.result),
            None if self.output.is_some() => Some(RowBands {
                unit: 1,
                trial: Vec::new(),
            }),
            None => return Err("numbers are found in the whole page"),
        };
        let encoder = encoder.ok_or("the output format needs whole images")?;
        if !keeps_rows(step.op) {
            return Err("it moves pixels from row to row");
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
        let row = shape.row() * shape.depth.bytes();
        let band = BAND_OF_A_THREAD * rayon::current_num_threads();
        let rows = band.div_ceil(encoder.unit * row) * encoder.unit;
        Ok(Bands::Rows { rows, encoder })
    }
}

/// The steps for a page: the symmetry that turns it `upright`, and the operations, each with its types and the statistic
/// that pages share.
fn steps<'a>(
    header: &PageHeader,
    file: &FilePlan<'a>,
    upright: Option<&'a Symmetry>,
    prepared: Shape,
    format: Option<&'static Format>,
) -> Vec<Task<'a>> {
    let metadata = &header.metadata;
    let mut steps = Vec::with_capacity(file.ops.len() + 1);
    steps.extend(upright.map(|symmetry| Task::plain(symmetry, &prepared)));
    let wanted = file.output.and_then(|output| output.depth);
    let format_has_sign = format.is_none_or(|format| format.capabilities.signed);
    let mut depth = prepared.depth;
    let mut values = metadata.values(header.shape.depth);
    let mut window = metadata.window;
    let mut stretch = metadata.stretch.clone().and_then(Result::ok);
    for (index, op) in file.ops.iter().enumerate() {
        let is_last = index + 1 == file.ops.len();
        // Only the last step sees the output's format: those before it give what a file between two steps would hold.
        let output_type = op.output_type(Values {
            depth,
            signed: values.signed && (format_has_sign || !is_last),
        });
        let types = SampleTypes {
            channels: header.shape.channels,
            depth,
            read: values,
            written: Values {
                depth: wanted.filter(|_| is_last).unwrap_or(output_type.depth),
                signed: output_type.signed,
            },
            window,
            stretch: stretch.take(),
        };
        if !op.properties().effect.keeps_values() {
            window = None;
        }
        if output_type.depth != depth {
            depth = types.written.depth;
        }
        values = Values {
            depth,
            // As in a file between the two: the sign is meaningless once values are scaled.
            signed: match op.properties().effect {
                Effect::Values => types.written.signed,
                _ => values.signed,
            },
        };
        steps.push(Task {
            op: *op,
            types,
            statistics: file.shared.of((index, *op), &types, header.channel),
        });
    }
    steps
}

/// Whether a GPU that runs the steps can decode the page too: its format is such, it is large enough, and its samples need
/// no change or check on the host.
fn gpu_can_decode(header: &PageHeader, output: Option<&Destination>) -> bool {
    let wider = |output: &Destination| {
        let wanted = output.depth.map_or(0, Depth::bits);
        output.auto_orient || wanted > header.shape.depth.bits()
    };
    header.decoder.packed
        && header.shape.pixels() >= decode::MIN_PIXELS
        && header.decoder.file_bytes >= decode::MIN_BYTES
        && header.metadata.maxval.is_none()
        && !output.is_some_and(wider)
}

/// The form in which a GPU returns the output: deflated for a large PNG. The host compresses a small one sooner.
fn output_form(writer: Option<&Writer>, shape: &Shape) -> Form {
    match writer {
        Some(writer) if writer.is_for_gpu() && shape.pixels() >= LEAST_TO_COMPRESS => Form::Png,
        _ => Form::Samples,
    }
}

/// The form in which a GPU returns the result of the steps: it stays there if its samples still need a change, and is
/// deflated if the output is a PNG.
fn step_form(output: Option<&Destination>, writer: Option<&Writer>, shape: &Shape) -> Form {
    let depth = output.and_then(|output| output.depth);
    let loses_bits = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
    if loses_bits || output.is_some_and(|output| output.fitted(*shape) != *shape) {
        return Form::Device;
    }
    match writer {
        Some(writer) if writer.is_for_gpu() => Form::Png,
        _ => Form::Samples,
    }
}

/// Whether the rows of an operation's result depend on the same rows of its input alone.
fn keeps_rows(op: &dyn Operation) -> bool {
    match op.properties().access {
        Access::Pointwise => true,
        Access::Permutation(map) => !map.transposed && !map.mirror_y,
        Access::Reduction | Access::Region(_) | Access::WholeImage => false,
    }
}

/// Whether an operation finds something in all samples of 32 bits that it does not find in bands.
fn needs_all_wide_samples(op: &dyn Operation, shape: &Shape) -> bool {
    let measured =
        op.properties().statistic == Statistic::MinMax && op.gpu_obstacle(shape).is_none();
    shape.depth.is_wide()
        && match op.properties().effect {
            Effect::Moves(_) | Effect::Cropped { .. } | Effect::Kept => false,
            Effect::Values => !measured,
            _ => true,
        }
}

/// A warning about operations whose result may surprise on pages with this metadata.
///
/// # Errors
/// A channel that the operations can neither keep nor change.
fn alpha_warning(
    ops: &[&dyn Operation],
    metadata: &Metadata,
    shape: &Shape,
) -> Result<Option<String>> {
    ensure!(
        chain::output_depth(ops, shape.depth) == shape.depth
            || metadata.alpha != Alpha::Unspecified,
        "its last channel has an unspecified meaning and {}, so it cannot be converted to 16 bits",
        shape.depth
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
