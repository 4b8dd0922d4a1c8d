//! Numbers of a page that is never in memory as a whole: it is decoded piece by piece, and each piece is added up while a core's cache
//! has it.

use super::{PageProcessor, operate, read};
use crate::exec::Pixels;
use crate::metadata::{Diagnostics, Metadata};
use crate::ops::{Executed, Operation};
use crate::pipeline::stack::StackStatistics;

/// Bytes of a page from which on it is not decoded as a whole.
const LEAST: usize = 4 << 20;

/// The numbers that the operations give for the page at `index` among the selected pages, and its metadata. `None`: the page is to
/// be decoded as a whole, since it is small, its format or the operations take no pieces, a GPU works on it, or something is wrong,
/// which is reported then.
pub fn run(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    stack: &StackStatistics,
    index: usize,
    diagnostics: &mut Diagnostics,
) -> Option<(Executed<Pixels>, Metadata)> {
    let [op] = ops else { return None };
    processor.reader.turn_to(index).ok()?;
    let shape = processor.reader.shape();
    let small = shape.bytes() < LEAST || shape.depth.is_wide();
    if small || !op.takes_pieces() || read::gpu(processor, ops).ok()?.is_some() {
        return None;
    }
    let mut found = Diagnostics::default();
    let metadata = processor.reader.metadata(&mut found).ok()?;
    let warning = operate::warning(ops, &metadata, &shape).ok()?;
    let tasks = operate::tasks(processor, ops, stack, &metadata, (shape, shape));
    let reader = &processor.reader;
    let done = processor
        .executor
        .run_on_pieces(tasks.first()?, &shape, |take| reader.pieces(take));
    let done = done.ok()??;
    read::tell_decoded(processor, shape);
    diagnostics.warnings.append(&mut found.warnings);
    diagnostics.warnings.extend(warning);
    diagnostics.notes.append(&mut found.notes);
    Some((done, metadata))
}
