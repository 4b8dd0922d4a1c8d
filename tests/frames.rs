//! Frames of standard input: one after the other to standard output or to numbered files, in constant
//! memory, and frames that are bad or cut off.

use crate::support::{Run, binary, folder, listing, told};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

fn pgm(width: usize, values: &[u8]) -> Vec<u8> {
    let height = values.len() / width;
    [format!("P5\n{width} {height}\n255\n").as_bytes(), values].concat()
}

/// A run with `input` on standard input; its standard output as bytes.
fn piped(place: &Path, input: &[u8], args: &[&str]) -> (Run, Vec<u8>) {
    let mut child = Command::new(binary())
        .args(args)
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writing = thread::spawn(move || drop(stdin.write_all(&input)));
    let mut output = child.wait_with_output().expect("an end");
    writing.join().expect("written");
    let stdout = std::mem::take(&mut output.stdout);
    (told(output), stdout)
}

/// Each frame has its own range: by hand.
#[test]
fn frames_go_through_one_by_one() {
    let place = folder(&[]);
    let frames = [pgm(2, &[0, 5, 10, 5]), pgm(3, &[9, 8, 7]), pgm(1, &[1, 2])];
    let (run, out) = piped(
        place.path(),
        &frames.concat(),
        &["normalize", "-", "-", "--format", "pgm"],
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = [
        pgm(2, &[0, 128, 255, 128]),
        pgm(3, &[255, 128, 0]),
        pgm(1, &[0, 255]),
    ];
    assert_eq!(out, expected.concat());
    // Kinds may change, and PNGs follow one another, too.
    let args = ["rotate", "180", "-", "-", "--format", "png"];
    let (run, pngs) = piped(place.path(), &frames.concat(), &args);
    assert_eq!(run.code, 0);
    let mixed = [pngs.clone(), frames[0].clone(), pngs].concat();
    let args = ["rotate", "180", "-", "-", "--format", "pgm"];
    let (run, back) = piped(place.path(), &mixed, &args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let turned = pgm(2, &[5, 10, 5, 0]);
    assert_eq!(
        back,
        [&frames.concat()[..], &turned, &frames.concat()].concat()
    );
}

#[test]
fn frames_become_numbered_files() {
    let place = folder(&[]);
    let raw: Vec<u8> = (0..36).collect();
    let args = [
        "flip",
        "h",
        "-",
        "out/",
        "--raw",
        "3x2:u16be",
        "--name",
        "f{n:04}.pgm",
    ];
    let (run, _) = piped(place.path(), &raw, &args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(
        listing(&place.path().join("out")),
        ["f0001.pgm", "f0002.pgm", "f0003.pgm"]
    );
    let second = fs::read(place.path().join("out/f0002.pgm")).unwrap();
    assert!(second.ends_with(&[16, 17, 14, 15, 12, 13, 22, 23, 20, 21, 18, 19]));
    // They are there already: each is named, and nothing is replaced.
    let (run, _) = piped(place.path(), &raw, &args);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.lines().count() == 3 && run.stderr.contains("frame 3"),
        "{}",
        run.stderr
    );
    for wrong in [
        &["flip", "h", "-", "out/", "--name", "f{n}.pgm", "--resume"][..],
        &["flip", "h", "out/", "out/", "--name", "f{n}.pgm"],
        &["flip", "h", "-", "out/", "--name", "f{m}.pgm"],
    ] {
        let (run, _) = piped(place.path(), &raw, wrong);
        assert_eq!(run.code, 2, "{wrong:?}: {}", run.stderr);
    }
}

/// The frames before are whole, and the message has the number.
#[test]
fn a_bad_frame_is_named_by_its_number() {
    let place = folder(&[]);
    let good = pgm(2, &[0, 5, 10, 5]);
    let cut = &good[..good.len() - 1];
    let args = ["rotate", "180", "-", "-", "--format", "pgm"];
    let (run, out) = piped(place.path(), &[&good, &good, cut].concat(), &args);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("frame 3") && run.stderr.contains("truncated"),
        "{}",
        run.stderr
    );
    let turned = pgm(2, &[5, 10, 5, 0]);
    assert_eq!(out, [&turned[..], &turned].concat());
    // One that no verb can take, and one after it.
    let odd = b"P5 1 1 70000 ab".to_vec();
    let (run, out) = piped(place.path(), &[&good, &odd[..], &good].concat(), &args);
    assert_eq!((run.code, out.len()), (1, 2 * turned.len()));
    assert!(run.stderr.contains("frame 2"), "{}", run.stderr);
    // What is no frame ends it.
    let (run, out) = piped(place.path(), &[&good[..], b"junk"].concat(), &args);
    assert_eq!((run.code, &out), (1, &turned));
    assert!(
        run.stderr.contains("frame 2") && run.stderr.contains("expected a binary PNM"),
        "{}",
        run.stderr
    );
    let (run, _) = piped(place.path(), cut, &args);
    assert!(
        run.code == 1 && !run.stderr.contains("frame"),
        "{}",
        run.stderr
    );
    let (run, _) = piped(place.path(), b"", &args);
    assert_eq!(
        (run.code, run.stderr.lines().count()),
        (1, 1),
        "{}",
        run.stderr
    );
    // With --keep-going the cut frame is as far as it goes.
    let args = ["rotate", "180", "-", "-", "--format", "pgm", "--keep-going"];
    let (run, out) = piped(place.path(), &[&good, cut].concat(), &args);
    assert_eq!(run.code, 1);
    assert_eq!(out, [&turned[..], &pgm(2, &[0, 10, 5, 0])].concat());
}

/// The most memory that a process has had, in bytes.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line
        .and_then(|line| line.split_whitespace().nth(1))
        .unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

/// 100 frames of 1 MB take no more memory than 10 of them.
#[test]
fn a_stream_takes_the_memory_of_a_frame() {
    let mut child = Command::new(binary())
        .args(["normalize", "-", "-", "--format", "pgm", "--device", "cpu"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let values: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    let frame = pgm(1024, &values);
    let mut result = vec![0; frame.len()];
    let mut peaks = Vec::new();
    for number in 0..100 {
        stdin.write_all(&frame).unwrap();
        // A frame comes out before the next one goes in.
        stdout.read_exact(&mut result).unwrap();
        assert!(result.starts_with(b"P5\n1024 1024\n255\n"), "{number}");
        peaks.push(peak(child.id()));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(
        peaks[99] < peaks[9] + (8 << 20),
        "{} and {}",
        peaks[9],
        peaks[99]
    );
}

/// A reader that goes away ends the stream; not a message a frame.
#[test]
fn nothing_is_read_for_a_reader_that_has_gone() {
    let mut child = Command::new(binary())
        .args(["rotate", "90", "-", "-", "--format", "pgm"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let frame = pgm(2, &[1, 2, 3, 4]);
    for _ in 0..50 {
        // The program may have ended.
        let _ = stdin.write_all(&frame);
    }
    drop(stdin);
    let run = told(child.wait_with_output().unwrap());
    assert_eq!(
        (run.code, run.stderr.lines().count()),
        (1, 1),
        "{}",
        run.stderr
    );
}

/// PNM after PNM was refused, but of streams with PNGs every frame but the first was lost without a word.
#[test]
fn the_frames_after_a_png_were_lost() {
    let place = folder(&[]);
    let grey = pgm(2, &[0, 5, 10, 5]);
    let args = ["rotate", "180", "-", "-", "--format", "png"];
    let (_, png) = piped(place.path(), &grey, &args);
    let pam = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\x07\x08".to_vec();
    for frames in [
        [&png, &png],
        [&png, &grey],
        [&grey, &png],
        [&pam, &png],
        [&png, &pam],
    ] {
        let stream = frames.map(|frame| frame.as_slice()).concat();
        for args in [
            &["convert", "-", "o.tif"][..],
            &["convert", "-", "-", "--format", "npy"],
            &["sum", "-"],
            &["info", "-"],
            &["info", "-", "--range"],
            &["histogram", "-", "-o", "o.hist"],
            &["normalize", "-", "out/", "--format", "png"],
            &["rotate", "90", "-", "o.zarr"],
        ] {
            let (run, stdout) = piped(place.path(), &stream, args);
            let told = "it holds several images (gpuimg normalize - - --format p";
            assert!(
                run.code == 1 && run.stderr.contains(told) && stdout.is_empty(),
                "{args:?}: {} {}",
                run.code,
                run.stderr
            );
        }
        // Other bytes may follow a PNG.
        let (run, _) = piped(place.path(), &[&png[..], b"P\0"].concat(), &["sum", "-"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    // Plain files, which are no frames of a stream.
    let (run, _) = piped(
        place.path(),
        &[b"P2 1 1 9 7\n", &png[..]].concat(),
        &["convert", "-", "o.tif"],
    );
    assert!(
        run.code == 1 && run.stderr.contains("it holds several images"),
        "{}",
        run.stderr
    );
    let images = listing(place.path());
    assert!(images.iter().all(|name| name == "out"), "{images:?}");
    assert!(
        listing(&place.path().join("out"))
            .iter()
            .all(|name| name.starts_with('.'))
    );
}
