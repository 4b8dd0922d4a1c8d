//! Decoding our own files on all cores: their image data are segments that refer to nothing
//! outside themselves, and a private chunk says where each starts. What it says is checked: the
//! segments' lengths against the chunks, their rows, filters and CRCs, and the joined Adler-32.

use super::chunks::Chunks;
use super::data::ImageData;
use super::header::Prelude;
use super::inflate::{Block, Inflater, Part, Place, joined};
use super::unfilter::{Layout, Rows, SUB};
use crate::files::Source;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// Decodes the segments that `index` promises into `image`. After an error `image` is of no use.
pub fn decode(
    source: &Source,
    prelude: &Prelude,
    index: &[u8],
    image: &mut [u8],
    layout: Layout,
) -> Result<()> {
    let (rows, places) = parse(index, prelude.header.height as usize)?;
    let mut start = prelude.data;
    let starts = places.iter().map(|place| {
        let this = start;
        start += place.chunk_len();
        this
    });
    let starts: Vec<u64> = starts.collect();
    let worker = || {
        let inflater = Inflater::new(ImageData::new(source));
        (inflater, Block::new(rows * (layout.row + 1)))
    };
    let parts: Result<Vec<Part>> = image
        .par_chunks_mut(rows * layout.row)
        .zip(&places)
        .zip(&starts)
        .map_init(worker, |(inflater, block), ((image, &place), &start)| {
            let len = image.len() / layout.row * (layout.row + 1);
            let mut rows = Rows::new(image, layout);
            let mut first = true;
            inflater.segment(start, place, len, block, |bytes| {
                ensure!(
                    !first || bytes[0] <= SUB,
                    "the first row needs the one above"
                );
                first = false;
                rows.push(bytes)
            })
        })
        .collect();
    let parts = parts?;
    let adler = parts
        .iter()
        .fold(1, |sum, part| joined(sum, part.adler, part.len));
    let stated = parts.last().context("no segments")?.stated;
    ensure!(adler == stated, "wrong Adler-32");
    Chunks::new(source).finish(start)
}

/// The rows of a segment and where each stands, if the index fits an image of `height` rows.
fn parse(index: &[u8], height: usize) -> Result<(usize, Vec<Place>)> {
    let (head, lengths) = index.split_first_chunk::<5>().context("short index")?;
    let (lengths, rest) = lengths.as_chunks::<4>();
    let [version, rows @ ..] = *head;
    let rows = u32::from_be_bytes(rows) as usize;
    ensure!(version == 1 && rest.is_empty(), "index of another version");
    ensure!(
        rows > 0 && lengths.len() == height.div_ceil(rows) && lengths.len() > 1,
        "index of another image"
    );
    let count = lengths.len();
    let place = |(i, len): (usize, &[u8; 4])| Place {
        first: i == 0,
        last: i + 1 == count,
        len: u32::from_be_bytes(*len),
    };
    Ok((rows, lengths.iter().enumerate().map(place).collect()))
}
