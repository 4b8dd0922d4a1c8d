//! An image to PNG and back: by our decoder, by the png crate, and its stream by libdeflate.

#![no_main]

use gpuimg::internals::formats::png::{self, Mode};
use gpuimg::internals::os::Source;
use gpuimg_fuzz::recipe::{self, written};
use gpuimg_fuzz::{mutate_png, opinion, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seeds::write(seeds::recipes), |input: &[u8]| {
    let Some((image, choice)) = recipe::image(input) else {
        return;
    };
    if image.shape().depth.is_wide() {
        return;
    }
    let mode = [Mode::Fast, Mode::Small, Mode::Store][usize::from(choice % 3)];
    let file = written(|target| png::encode(&image, mode, target));
    let ours = png::decode(&Source::memory(file.clone())).expect("we read what we write");
    opinion::same(&ours, &image, "our decoder");
    let theirs = opinion::png(&file).expect("the png crate reads what we write");
    opinion::same(&theirs, &image, "the png crate");
    // The png crate ignores the Adler-32; and fdeflate is but one inflater.
    let shape = image.shape();
    let bytes = shape.height * (1 + shape.row() * shape.depth.bytes());
    mutate_png::inflated(&file, bytes).expect("libdeflate reads what we write");
});
