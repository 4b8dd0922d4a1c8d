//! A Zarr store, all files of which are in the input: no panic, memory within bounds; each level is read, and what is read is
//! written to NumPy's format and read back the same.

#![no_main]

use gpuimg::internals::formats::{Reader, Reading, encode, npy};
use gpuimg::internals::image::Image;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{opinion, recipe, seeds, store};
use libfuzzer_sys::fuzz_target;

/// Pages of more pixels are refused, as a user's limit would.
const PIXELS: u64 = 1 << 20;

fn pages(source: &Source, reading: Reading) -> anyhow::Result<Vec<Image>> {
    let mut reader = Reader::open(source, &reading)?;
    let mut pages = Vec::new();
    for index in 0..reader.pages().len().min(3) {
        reader.turn_to(index)?;
        reader.metadata(&mut Default::default())?;
        // The data that a GPU gets.
        if let Ok(mut packed) = reader.packed() {
            packed.split();
        }
        pages.push(reader.decode()?);
    }
    Ok(pages)
}

fuzz_target!(init: seeds::write(seeds::of_zarr), |input: &[u8]| {
    let Ok(source) = Source::store_in_memory(store::unpacked(input)) else {
        return;
    };
    for (level, keep_going) in [(0, false), (1, false), (0, true)] {
        let reading = Reading {
            max_pixels: PIXELS,
            level,
            keep_going,
            ..Reading::default()
        };
        for page in pages(&source, reading).unwrap_or_default() {
            let written = recipe::written(|target| encode(&page, &npy::FORMAT, &Default::default(), target));
            let plain = Reading { max_pixels: PIXELS, ..Reading::default() };
            let back = pages(&Source::memory(written), plain).expect("we read what we write");
            opinion::same(&back[0], &page, "our decoder");
        }
    }
});
