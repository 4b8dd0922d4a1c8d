//! A run from file to file: a verb, a format to write, options of the output, and a file of any format with its metadata. No panic,
//! no file where there is an error, and what is written can be read.

#![no_main]

use gpuimg::internals::engine::{Destination, NamedSource, Resources, process_source};
use gpuimg::internals::formats::{FORMATS, Format, Reader, Reading};
use gpuimg::internals::gpu::{Choice, Devices};
use gpuimg::internals::image::Depth;
use gpuimg::internals::ops;
use gpuimg::internals::os::Source;
use gpuimg_fuzz::{mutate_png, mutate_tiff, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::path::Path;
use tempfile::TempDir;

/// Bytes before the file: the verb, the format, and options.
const CHOICES: usize = 3;

/// Pages of more pixels are refused, as a user's limit would.
const PIXELS: u64 = 1 << 18;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let is = |magic: &[u8]| size > CHOICES + 8 && data[CHOICES..size].starts_with(magic);
    let mutate = match seed % 8 {
        0 => None,
        _ if is(b"\x89PNG") => {
            Some(mutate_png::mutate as fn(&mut [u8], usize, usize, u32) -> usize)
        }
        _ if is(b"II") || is(b"MM") => Some(mutate_tiff::mutate as _),
        _ => None,
    };
    match mutate {
        Some(mutate) => {
            let file = &mut data[CHOICES..];
            CHOICES + mutate(file, size - CHOICES, max_size - CHOICES, seed / 8)
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "." }).expect("a folder");
    static DEVICES: Devices = Devices::new(Choice::Cpu);
}

fuzz_target!(init: seeds::write(seeds::of_runs), |input: &[u8]| {
    let Some((&[verb, format, options], file)) = input.split_first_chunk::<CHOICES>() else {
        return;
    };
    let verbs = ops::examples();
    let op = &*verbs[usize::from(verb) % verbs.len()];
    let formats: Vec<&'static Format> =
        FORMATS.iter().copied().filter(|format| format.is_written() && !format.is_folder).collect();
    let format = formats[usize::from(format) % formats.len()];
    let makes_images = ops::OPS.iter().any(|entry| entry.name == op.properties().name && entry.makes_images);
    let bit = |bit: u8| options >> bit & 1 != 0;
    FOLDER.with(|folder| DEVICES.with(|devices| {
        let path = folder.path().join("out");
        let destination = Destination {
            path: path.clone(),
            folder: None,
            format: Some(format),
            options: Default::default(),
            overwrite: true,
            sync: false,
            depth: [None, Some(Depth::Eight), Some(Depth::Sixteen), None][usize::from(options & 3)],
            auto_orient: bit(2),
            fit: bit(3).then(|| "3".parse().expect("a number")),
            low_memory: bit(4),
            store: Default::default(),
        };
        let reading = Reading {
            max_pixels: PIXELS,
            keep_going: bit(5),
            ..Reading::default()
        };
        let resources = Resources {
            devices,
            budget: None,
            reading,
            require_regular_file: false,
            position: None,
            gpu_times: false,
        };
        let source = Source::memory(file.to_vec());
        let output = makes_images.then_some(&destination);
        let input = NamedSource {
            path: Path::new("in"),
            source: &source,
        };
        let done = process_source(&[op], input, output, &resources);
        let made = std::fs::read(&path).ok();
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, usize::from(made.is_some()), "files under other names are left");
        let Some(made) = made else {
            assert!(done.is_err() || !makes_images, "an image without a file");
            return;
        };
        assert!(done.is_ok(), "a file in spite of {:?}", done.err());
        std::fs::remove_file(&path).expect("it is there");
        let source = Source::memory(made);
        let mut reader = Reader::open(&source, &Reading::default()).expect("we open what we write");
        for index in 0..reader.pages().len() {
            reader.turn_to(index).expect("a page");
            reader.metadata(&mut Default::default()).expect("its metadata");
            reader.decode().expect("its pixels");
        }
    }));
});
