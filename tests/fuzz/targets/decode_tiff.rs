//! A whole TIFF file: no panic, memory within bounds, and the tiff crate sees the same samples.

#![no_main]

use gpuimg::internals::formats::tiff;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{mutate_tiff, opinion, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

// The most that zstd makes of a byte.
const EXPANSION: usize = 32768;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_tiff::mutate(data, size, max_size, seed)
});

fuzz_target!(init: seeds::write(seeds::of_tiff), |file: &[u8]| {
    let decoded = tiff::decode(&Source::memory(file.to_vec()));
    opinion::parts(file, decoded.as_ref().ok());
    let Ok(image) = decoded else {
        return;
    };
    // Strips and tiles that are not in the file, of up to 64 MiB each: a few may make an image.
    if image.shape().bytes() > 256 << 20 {
        opinion::bounded(&image, file, EXPANSION);
    }
    // Of a tag that stands there twice the tiff crate takes the last, libtiff and we the first.
    if mutate_tiff::repeats_tags(file) || mutate_tiff::has_unknown_kinds(file) {
        return;
    }
    if let Some(expansion) = opinion::expansion_of_tiff(file, image.shape().depth) {
        opinion::bounded(&image, file, expansion);
    }
    let shape = image.shape();
    if let Some((size, bytes)) = opinion::tiff(file, shape.depth) {
        assert_eq!(size, (shape.width, shape.height));
        assert!(bytes == image.samples().as_bytes(), "the tiff crate sees other samples of {shape}");
    }
});
