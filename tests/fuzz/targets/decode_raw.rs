//! Samples without a header, after a line that says what they are: no panic, memory within bounds, and each sample is the one at
//! its place in the file.

#![no_main]

use gpuimg::internals::formats::{Headerless, Reader, Reading};
use gpuimg::internals::image::{Depth, Samples, number};
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{opinion, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seeds::write(seeds::of_raw), |input: &[u8]| {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
        return;
    };
    let (line, file) = (String::from_utf8_lossy(&input[..end]), &input[end + 1..]);
    let Ok(raw) = line.parse::<Headerless>() else {
        return;
    };
    // The names of types may have capital letters, which are not printed.
    let line = raw.to_string();
    assert_eq!(line.parse(), Ok(raw), "what is printed is read as the same");
    let source = Source::memory(file.to_vec());
    for keep_going in [false, true] {
        let reading = Reading {
            max_pixels: 1 << 20,
            raw: Some(raw),
            keep_going,
            ..Reading::default()
        };
        let Ok(mut reader) = Reader::open(&source, &reading) else {
            continue;
        };
        let last = reader.pages().len() - 1;
        for page in [0, last] {
            let read = reader.turn_to(page).and_then(|()| reader.decode());
            let Ok(image) = read else {
                continue;
            };
            if keep_going {
                continue;
            }
            let (kind, rest) = kind(&line);
            let is_packed = kind.ends_with('p') || kind.ends_with("packed");
            opinion::bounded(&image, file, if is_packed { 2 } else { 1 });
            if is_packed {
                continue;
            }
            let skip: usize = rest.parse().expect("a number of bytes");
            // `u16be`, and the `mono12` and `bayerrg8` of cameras.
            let bits = kind.trim_matches(|letter: char| letter.is_ascii_alphabetic());
            let bytes = bits.parse::<usize>().expect("bits").div_ceil(8);
            let shape = image.shape();
            let start = skip + page * shape.samples() * bytes;
            for (index, stored) in file[start..][..shape.samples() * bytes].chunks(bytes).enumerate() {
                let ours: u64 = match image.samples() {
                    Samples::U8(samples) => samples[index].into(),
                    Samples::U16(samples) => samples[index].into(),
                    Samples::U32(samples) => samples[index].into(),
                    Samples::U64(samples) => samples[index],
                };
                assert_eq!(ours, expected(stored, kind), "sample {index} of page {page} of {line}");
            }
            let float = kind.starts_with('f');
            assert_eq!(float, matches!(shape.depth, Depth::Float | Depth::Double));
        }
    }
});

/// The type that a line names, and the bytes to skip.
fn kind(line: &str) -> (&str, &str) {
    let (line, skip) = line.split_once('+').unwrap_or((line, "0"));
    (line.split(':').nth(1).unwrap_or_default(), skip)
}

/// A sample as it is in memory: signed integers from the least on, floating point as its key.
fn expected(stored: &[u8], kind: &str) -> u64 {
    let mut bytes = stored.to_vec();
    if !kind.ends_with("be") {
        bytes.reverse();
    }
    let value = bytes
        .iter()
        .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    match (kind.as_bytes()[0], bytes.len()) {
        (b'f', 4) => number::key(value as u32).into(),
        (b'f', _) => number::key64(value),
        (b'i', bytes) => value ^ 1 << (8 * bytes - 1),
        _ => value,
    }
}
