//! Decodes a page: on the GPU that will run the operations, if its compressed data are such that a GPU decodes them and it is
//! large enough, else on the host.

use super::{Page, PageProcessor, write};
use crate::device::cuda::Gpu;
use crate::exec::{Pixels, decode};
use crate::image::{Depth, Image, Shape};
use crate::metadata::Diagnostics;
use crate::ops::Operation;
use anyhow::{Context, Result};
use std::time::Instant;

/// Decodes the page at `index` among the selected pages.
pub fn page(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    index: usize,
    diagnostics: &mut Diagnostics,
) -> Result<Page> {
    let unread = || processor.sentences.unread();
    processor.reader.turn_to(index).with_context(unread)?;
    if let Some(page) = decode_on_gpu(processor, ops, index, diagnostics)? {
        return Ok(page);
    }
    let image = decode_on_host(processor)?;
    if processor.reader.gives_packed() {
        let shape = image.shape();
        processor.executor.decoded_on_host(&shape, processor.since);
    }
    let metadata = processor.reader.metadata(diagnostics);
    let mut metadata = metadata.with_context(|| processor.sentences.unread())?;
    metadata.check_maxval(image.samples());
    tell_decoded(processor, image.shape());
    Ok(Page {
        pixels: Pixels::Host(image),
        metadata,
        index: processor.reader.pages()[index],
    })
}

/// Decodes the selected page on the host.
pub fn decode_on_host(processor: &mut PageProcessor) -> Result<Image> {
    let image = processor.reader.decode();
    image.with_context(|| processor.sentences.unread())
}

/// Records the time since the codec step began as that of decoding an image of this shape.
pub fn tell_decoded(processor: &mut PageProcessor, shape: Shape) {
    let traffic = processor.source.traffic.take();
    let timeline = &mut processor.executor.timeline;
    timeline.decoded(processor.since, shape.bytes() as u64, &traffic);
}

/// The GPU that will run the operations on the selected page and decodes it too. `None`: the host decodes
/// it, since the CPU runs the operations, the image is small, or something is done to its samples before them.
///
/// # Errors
/// A requested GPU that cannot be used.
pub fn gpu<'d>(
    processor: &mut PageProcessor<'d, '_>,
    ops: &[&dyn Operation],
) -> Result<Option<&'d Gpu>> {
    let output = processor.output.map(|(output, _)| output);
    let shape = processor.reader.shape();
    let widens =
        |wanted: Option<Depth>| wanted.is_some_and(|wanted| wanted.bits() > shape.depth.bits());
    if !processor.reader.gives_packed()
        || output.is_some_and(|output| output.auto_orient || widens(output.depth))
        || shape.pixels() < decode::MIN_PIXELS
        || processor.source.len() < decode::MIN_BYTES
    {
        return Ok(None);
    }
    let form = write::form(processor, shape);
    processor.executor.decoder(ops, &shape, form)
}

/// Decodes the selected page on a GPU. `None`: the host decodes it, for a reason of `gpu`, or since its file does
/// not suit, which a note then says.
fn decode_on_gpu(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    index: usize,
    diagnostics: &mut Diagnostics,
) -> Result<Option<Page>> {
    let sentences = processor.sentences;
    let Some(gpu) = gpu(processor, ops).map_err(|error| sentences.failed(error))? else {
        return Ok(None);
    };
    let mut found = Diagnostics::default();
    let metadata = processor.reader.metadata(&mut found);
    // A largest value must be compared with the samples. The decoder reports errors.
    let Some(metadata) = metadata.ok().filter(|known| known.maxval.is_none()) else {
        return Ok(None);
    };
    let decoded = match processor.reader.packed() {
        Ok(packed) => {
            let traffic = processor.source.traffic.take();
            let timeline = &mut processor.executor.timeline;
            timeline.packed(processor.since, packed.len() as u64, &traffic);
            let decoded = processor.executor.decode_packed(packed, gpu);
            processor.since = Instant::now();
            decoded.map_err(|error| sentences.failed(error))?
        }
        Err(unsuited) => Err(unsuited),
    };
    match decoded {
        Ok(image) => {
            diagnostics.warnings.append(&mut found.warnings);
            diagnostics.notes.append(&mut found.notes);
            Ok(Some(Page {
                pixels: Pixels::Device(image),
                metadata,
                index: processor.reader.pages()[index],
            }))
        }
        Err(unsuited) => {
            let note = format!("decoded on the CPU instead of the GPU: {unsuited}");
            diagnostics.notes.push(note);
            Ok(None)
        }
    }
}
