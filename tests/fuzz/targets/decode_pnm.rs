//! A whole PNM file: no panic, memory within bounds, and the image crate sees the same samples.

#![no_main]

use gpuimg::codec::pnm;
use gpuimg::files::Source;
use gpuimg_fuzz::{opinion, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seeds::write(seeds::of_pnm), |file: &[u8]| {
    let Ok(image) = pnm::decode(&Source::memory(file.to_vec())) else {
        return;
    };
    opinion::bounded(&image, file, 1);
    if let Some(theirs) = opinion::pnm(file) {
        assert_eq!(image.shape(), theirs.shape());
        // With another maximum than 255 or 65535 the image crate scales samples; we keep them.
        let full = image.shape().depth.full().to_string();
        let header = String::from_utf8_lossy(&file[..file.len() - image.shape().bytes()]).into_owned();
        if header.trim_end().ends_with(&full) {
            opinion::same(&image, &theirs, "the image crate");
        }
    }
});
