//! A whole PNM file: no panic, memory within bounds, and the image crate sees the same samples.

#![no_main]

use gpuimg::internals::formats::pnm;
use gpuimg::internals::image::Samples;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{opinion, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seeds::write(seeds::of_pnm), |file: &[u8]| {
    let decoded = pnm::decode(&Source::memory(file.to_vec()));
    opinion::parts(file, decoded.as_ref().ok());
    let Ok(image) = decoded else {
        return;
    };
    // A byte of a packed bitmap holds eight pixels.
    opinion::bounded(&image, file, 8);
    // Numbers, bits and packed bits are no raster that could be compared byte by byte.
    if !matches!(file, [b'P', b'5' | b'6', ..]) {
        return;
    }
    let shape = image.shape();
    let (start, maxval) = header(file).expect("a whole header");
    let raster = &file[start..][..shape.bytes()];
    let read = match image.samples() {
        Samples::U8(samples) => samples.to_vec(),
        Samples::U16(samples) => samples.iter().flat_map(|s| s.to_be_bytes()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("PNM has no samples of 32 bits"),
    };
    assert!(read == raster, "other samples than those of the file");
    // To the image crate a comment's end is not a white space, and it scales samples that do not
    // reach up to 255 or 65535; we keep them.
    if maxval == shape.depth.full() && !file[..start].contains(&b'#') {
        if let Some(theirs) = opinion::pnm(file) {
            opinion::same(&image, &theirs, "the image crate");
        }
    }
});

/// Where the raster starts, and the maximum: after four words, each ended by white space or a
/// comment, which netpbm takes for its line's end.
fn header(file: &[u8]) -> Option<(usize, u16)> {
    let (mut words, mut word, mut comment) = (0, String::new(), false);
    for (at, &byte) in file.iter().enumerate() {
        comment = (comment || byte == b'#') && !matches!(byte, b'\n' | b'\r');
        if comment {
        } else if !byte.is_ascii_whitespace() {
            word.push(byte.into());
        } else if !word.is_empty() {
            words += 1;
            if words == 4 {
                return Some((at + 1, word.parse().ok()?));
            }
            word.clear();
        }
    }
    None
}
