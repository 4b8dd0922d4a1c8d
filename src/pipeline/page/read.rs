//! Decodes a page: on the GPU that will run the operations, if it is the only page of a PNG and large
//! enough, else on the host.

use super::{Page, PageProcessor, write};
use crate::exec::{Pixels, png_decode};
use crate::image::{Depth, Image, Shape};
use crate::metadata::Diagnostics;
use crate::ops::Operation;
use anyhow::{Context, Result};
use std::time::Instant;

/// Decodes the page at `index` among the selected pages.
pub fn decode(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    index: usize,
    diagnostics: &mut Diagnostics,
) -> Result<Page> {
    if let Some(page) = decode_on_gpu(processor, ops, diagnostics)? {
        return Ok(page);
    }
    let unread = || processor.sentences.unread();
    processor.reader.turn_to(index).with_context(unread)?;
    let image = decode_on_host(processor)?;
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

/// Decodes the only page of a PNG on the GPU that will run the operation. `None`: the host
/// decodes it, since the CPU runs the operation, the image is small, or something is done to
/// its samples before the operation; or since its file does not suit, which a note then says.
fn decode_on_gpu(
    processor: &mut PageProcessor,
    ops: &[&dyn Operation],
    diagnostics: &mut Diagnostics,
) -> Result<Option<Page>> {
    let output = processor.output.map(|(output, _)| output);
    let shape = processor.reader.shape();
    let widens =
        |wanted: Option<Depth>| wanted.is_some_and(|wanted| wanted.bits() > shape.depth.bits());
    if !processor.reader.gives_packed()
        || processor.reader.pages().len() > 1
        || output.is_some_and(|output| output.auto_orient || widens(output.depth))
        || shape.pixels() < png_decode::MIN_PIXELS
        || processor.source.len() < png_decode::MIN_BYTES
    {
        return Ok(None);
    }
    let sentences = processor.sentences;
    let gpu = processor
        .executor
        .decoder(ops, &shape, write::form(processor, shape));
    let Some(gpu) = gpu.map_err(|error| sentences.failed(error))? else {
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
            let decoded = processor.executor.decode_png(packed, gpu);
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
                index: processor.reader.pages()[0],
            }))
        }
        Err(unsuited) => {
            let note = format!("decoded on the CPU instead of the GPU: {unsuited}");
            diagnostics.notes.push(note);
            Ok(None)
        }
    }
}
