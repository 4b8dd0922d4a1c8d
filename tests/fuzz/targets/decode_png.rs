//! A whole PNG file: no panic, memory within bounds, and where we decode it, the png crate and
//! libdeflate agree; an index of segments changes nothing.

#![no_main]

use gpuimg::internals::formats::png;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{mutate_png, opinion, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// Deflate makes at most 1032 bytes of one; a palette with alpha makes 4 bytes of one bit.
const EXPANSION: usize = 1032 * 32;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_png::mutate(data, size, max_size, seed)
});

fuzz_target!(init: seeds::write(seeds::of_png), |file: &[u8]| {
    let decode = |file: &[u8]| png::decode(&Source::memory(file.to_vec()));
    let decoded = decode(file);
    opinion::parts(file, decoded.as_ref().ok());
    let Ok(image) = decoded else {
        return;
    };
    opinion::bounded(&image, file, EXPANSION);
    // The png crate makes alpha of every tRNS chunk; we ignore one that does not fit the image, as
    // libpng does.
    let opaque = image.shape().channels % 2 == 1;
    let judged = opaque.then(|| mutate_png::without(file, b"tRNS")).flatten();
    let theirs = opinion::png(judged.as_deref().unwrap_or(file));
    let theirs = theirs.expect("the png crate decodes what we decode");
    opinion::same(&image, &theirs, "the png crate");
    if let Some(plain) = mutate_png::without(file, b"gpIS") {
        let plain = decode(&plain).expect("it decodes without its index");
        opinion::same(&image, &plain, "the file without its index");
    }
    // Interlaced files and packed samples have other sizes; those go through the png crate.
    let shape = image.shape();
    let (bits, colour, interlaced) = (file[24], file[25], file[28]);
    if bits >= 8 && colour != 3 && interlaced == 0 {
        let channels = [1, 0, 3, 0, 2, 0, 4][usize::from(colour)];
        let row = shape.width * channels * shape.depth.bytes();
        let inflated = mutate_png::inflated(file, shape.height * (1 + row));
        inflated.expect("libdeflate inflates what we decode");
    }
});
