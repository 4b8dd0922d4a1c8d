//! One run on one image: what it says, what it writes, and what is in that file.

use crate::support::tiff::Build;
use crate::support::{Run, folder, listing, run};
use gpuimg::internals::formats;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Source;
use std::fs;
use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag;

/// Runs the program on `input` and gives what it says and the output's bytes, if there is one.
pub fn outcome(name: &str, input: &[u8], args: &[&str], output: &str) -> (Run, Option<Vec<u8>>) {
    let folder = folder(&[(name, input)]);
    let mut all = args.to_vec();
    all.extend([name, output]);
    let run = run(folder.path(), &all, &[]);
    let written = fs::read(folder.path().join(output)).ok();
    // Neither an unfinished nor an unasked file is left.
    let files = if written.is_some() { 2 } else { 1 };
    assert_eq!(listing(folder.path()).len(), files, "{}", run.stderr);
    (run, written)
}

/// The output of a run that does it without a word.
pub fn made(name: &str, input: &[u8], args: &[&str], output: &str) -> Vec<u8> {
    let (run, written) = outcome(name, input, args, output);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    written.expect("an output")
}

/// That nothing is written, and why.
pub fn refused(name: &str, input: &[u8], args: &[&str], output: &str, words: &str) {
    let (run, written) = outcome(name, input, args, output);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains(words),
        "{:?} has no {words:?}",
        run.stderr
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(written.is_none());
}

/// The values of a tag as the `tiff` crate reads them.
pub fn tag(file: &[u8], number: u16) -> Option<Vec<u32>> {
    use tiff::{decoder::Decoder, tags::Tag};
    let mut decoder = Decoder::new(std::io::Cursor::new(file)).unwrap();
    let tag = Tag::from_u16_exhaustive(number);
    decoder.find_tag(tag).unwrap()?.into_u32_vec().ok()
}

pub fn grey<const N: usize>(width: usize, values: [u16; N]) -> Image {
    let shape = Shape {
        width,
        height: N / width,
        channels: 1,
        depth: Depth::Sixteen,
    };
    Image::new(shape, Samples::from(values.to_vec()))
}

pub fn words(file: &[u8]) -> Vec<u16> {
    match formats::decode(&Source::memory(file.to_vec()))
        .unwrap()
        .samples()
    {
        Samples::U16(words) => words.to_vec(),
        Samples::U8(bytes) => bytes.iter().map(|&byte| byte.into()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// −2, 300, −32768, 5 as a file has them: bit patterns.
pub fn signed() -> Vec<u8> {
    let image = grey(2, [0xfffe, 300, 0x8000, 5]);
    Build::default().tag(339, 3, &[2]).file(&image)
}

/// Bit patterns of the samples of an uncompressed little-endian file that we wrote.
pub fn stored(file: &[u8]) -> Vec<u16> {
    let (at, len) = (tag(file, 273).unwrap()[0], tag(file, 279).unwrap()[0]);
    let bytes = &file[at as usize..(at + len) as usize];
    let pairs = bytes.as_chunks::<2>().0.iter();
    pairs.map(|&pair| u16::from_le_bytes(pair)).collect()
}

/// The data of a chunk of a PNG.
pub fn chunk_of(png: &[u8], kind: &[u8; 4]) -> Option<Vec<u8>> {
    let mut at = 8;
    while at < png.len() {
        let len = u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        if &png[at + 4..at + 8] == kind {
            return Some(png[at + 8..at + 8 + len].to_vec());
        }
        at += 12 + len;
    }
    None
}

pub fn value(file: &[u8], number: u16) -> Option<Value> {
    let mut decoder = Decoder::new(std::io::Cursor::new(file)).unwrap();
    decoder.find_tag(Tag::from_u16_exhaustive(number)).unwrap()
}

pub fn text(file: &[u8], number: u16) -> Option<String> {
    value(file, number).map(|value| value.into_string().unwrap())
}

pub fn doubles(file: &[u8], number: u16) -> Option<Vec<f64>> {
    value(file, number).map(|value| value.into_f64_vec().unwrap())
}
