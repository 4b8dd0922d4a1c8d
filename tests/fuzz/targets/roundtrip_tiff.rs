//! An image to TIFF and back, by our decoder and by the tiff crate.

#![no_main]

use gpuimg::internals::formats::tiff::{self, Compression};
use gpuimg::internals::os::Source;
use gpuimg_fuzz::recipe::{self, written};
use gpuimg_fuzz::{opinion, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seeds::write(seeds::recipes), |input: &[u8]| {
    use Compression::*;
    let Some((image, choice)) = recipe::image(input) else {
        return;
    };
    let compression = [None, Deflate, Lzw, Zstd][usize::from(choice % 4)];
    let file = written(|target| tiff::encode(&image, compression, target));
    let ours = tiff::decode(&Source::memory(file.clone())).expect("we read what we write");
    opinion::same(&ours, &image, "our decoder");
    let shape = image.shape();
    let (size, bytes) =
        opinion::tiff(&file, shape.depth).expect("the tiff crate reads what we write");
    assert_eq!(size, (shape.width, shape.height));
    assert!(bytes == image.samples().as_bytes(), "the tiff crate sees other samples of {shape}");
});
