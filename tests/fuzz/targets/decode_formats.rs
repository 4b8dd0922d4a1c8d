//! A whole file of any format but PNG, TIFF and PNM, which have targets of their own: no panic, memory
//! within bounds; and what is read is written to NumPy's format and read back the same.

#![no_main]

use gpuimg::internals::formats::format::HEAD;
use gpuimg::internals::formats::{FORMATS, Reader, Reading, npy};
use gpuimg::internals::image::Image;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{opinion, recipe, seeds};
use libfuzzer_sys::fuzz_target;

/// Pages of more pixels are refused, as a user's limit would.
const PIXELS: u64 = 1 << 20;

/// Formats of uncompressed samples: a byte of file makes at most one of image, a bit eight.
const PLAIN: [&str; 3] = ["pam", "npy", "farbfeld"];

fn pages(file: &[u8]) -> anyhow::Result<Vec<Image>> {
    let source = Source::memory(file.to_vec());
    let reading = Reading {
        max_pixels: PIXELS,
        ..Reading::default()
    };
    let mut reader = Reader::open(&source, &reading)?;
    let mut pages = Vec::new();
    for index in 0..reader.pages().len().min(3) {
        reader.turn_to(index)?;
        reader.metadata(&mut Default::default())?;
        pages.push(reader.decode()?);
    }
    Ok(pages)
}

fuzz_target!(init: seeds::write(seeds::of_formats), |file: &[u8]| {
    let head = &file[..file.len().min(HEAD)];
    let Some(format) = FORMATS.iter().find(|format| (format.sniff)(head)) else {
        return;
    };
    if ["png", "tiff", "pnm"].contains(&format.id) {
        return;
    }
    let pages = pages(file);
    opinion::parts(file, pages.as_ref().ok().and_then(|pages| pages.first()));
    let Ok(pages) = pages else {
        return;
    };
    for page in &pages {
        if PLAIN.contains(&format.id) {
            opinion::bounded(page, file, 1);
        }
        let written = recipe::written(|target| gpuimg::internals::formats::encode(page, &npy::FORMAT, &Default::default(), target));
        let back = self::pages(&written).expect("we read what we write");
        opinion::same(&back[0], page, "our decoder");
    }
});
