//! Consecutive images in a stream: binary Netpbm files (P4 to P7) and PNGs, as from `cat *.pgm` and
//! ffmpeg's `image2pipe`, and samples without a header. This module only finds their ends; one frame at a
//! time is in memory. Anything else is one frame to the end of the stream.

use super::Source;
use super::fault::Reads;
use super::traffic::Traffic;
use crate::os::limits;
use crate::os::reason::plain;
use anyhow::{Context, Result, ensure};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

/// The most bytes of a header, comments included.
const MOST_HEADER: usize = 64 << 10;

/// Frames of a stream, in order.
#[derive(Debug)]
pub struct Frames<R> {
    stream: R,
    /// Bytes of each frame, of samples without a header.
    fixed: Option<u64>,
    /// The most bytes of a frame.
    most: u64,
    /// The number of frames that have been read.
    count: usize,
}

impl<R: BufRead> Frames<R> {
    /// The frames of a stream; samples without a header have a fixed number of bytes per frame.
    pub fn new(stream: R, fixed: Option<u64>) -> Frames<R> {
        Frames {
            stream,
            fixed,
            most: limits::free_memory(),
            count: 0,
        }
    }

    /// The next frame, which may be cut off at the end of the stream; `None` after the last one. A
    /// stream without any has an empty one.
    ///
    /// # Errors
    /// A stream that cannot be read, a frame that does not fit in memory, and other data after a frame.
    pub fn next_frame(&mut self) -> Result<Option<Source>> {
        let traffic = Traffic::default();
        let mut frame = Vec::new();
        let is_image = traffic
            .count(0, || Ok(self.read(&mut frame)))
            .map_err(plain)??;
        if frame.is_empty() && self.count > 0 {
            return Ok(None);
        }
        self.count += 1;
        ensure!(is_image, "expected a binary PNM, PAM or PNG image here");
        traffic.bytes.store(frame.len() as u64, Ordering::Relaxed);
        Ok(Some(Source::drained(frame, traffic)))
    }

    /// Reads a frame, and returns whether it may be one.
    fn read(&mut self, frame: &mut Vec<u8>) -> Result<bool> {
        if let Some(bytes) = self.fixed {
            self.fill(frame, bytes)?;
            return Ok(true);
        }
        self.fill(frame, 1)?;
        // An editor may have put a line's end after a file.
        while self.count > 0 && matches!(frame[..], [b' ' | b'\t' | b'\r' | b'\n']) {
            frame.clear();
            self.fill(frame, 1)?;
        }
        self.fill(frame, 1)?;
        let body = match frame[..] {
            [b'P', b'4'] => self.numbers::<2>(frame)?.and_then(|[width, height]| {
                let row = width.div_ceil(8);
                row.checked_mul(height)
            }),
            [b'P', kind @ (b'5' | b'6')] => {
                let numbers = self.numbers::<3>(frame)?;
                let channels = if kind == b'6' { 3 } else { 1 };
                numbers
                    .and_then(|[width, height, maxval]| samples([width, height, channels, maxval]))
            }
            [b'P', b'7'] => self.pam(frame)?,
            [0x89, b'P'] => {
                self.chunks(frame)?;
                Some(0)
            }
            _ if self.count > 0 => return Ok(frame.is_empty()),
            _ => None,
        };
        // The end of other data is unknown, so everything is read; the decoder reports what is wrong.
        self.fill(frame, body.unwrap_or(u64::MAX))?;
        Ok(true)
    }

    /// Appends a number of bytes to a frame, or fewer at the end of the stream.
    fn fill(&mut self, frame: &mut Vec<u8>, bytes: u64) -> Result<()> {
        let most = self.most;
        let mut taken = (&mut self.stream).take(bytes.min(most + 1));
        taken.read_to_end(frame).map_err(plain)?;
        ensure!(
            frame.len() as u64 <= most,
            "it is longer than {most} bytes, half of the free memory"
        );
        Ok(())
    }

    /// The numbers of a PNM header, up to the character after the last; `None` if they are invalid.
    fn numbers<const N: usize>(&mut self, frame: &mut Vec<u8>) -> Result<Option<[u64; N]>> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            let mut digits = String::new();
            loop {
                let before = frame.len();
                self.fill(frame, 1)?;
                if frame.len() == before || before > MOST_HEADER {
                    return Ok(None);
                }
                match frame[before] {
                    b'#' => self.line(frame)?,
                    digit @ b'0'..=b'9' => digits.push(char::from(digit)),
                    _ if !digits.is_empty() => break,
                    _ => {}
                }
            }
            match digits.parse() {
                Ok(value) => *number = value,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(numbers))
    }

    /// Appends the rest of a line.
    fn line(&mut self, frame: &mut Vec<u8>) -> Result<()> {
        let mut rest = (&mut self.stream).take(MOST_HEADER as u64);
        rest.read_until(b'\n', frame).map_err(plain)?;
        Ok(())
    }

    /// Appends a header of PAM; the bytes after it, if it names them.
    fn pam(&mut self, frame: &mut Vec<u8>) -> Result<Option<u64>> {
        let names = ["WIDTH", "HEIGHT", "DEPTH", "MAXVAL"];
        let mut numbers = [None; 4];
        loop {
            let before = frame.len();
            self.line(frame)?;
            let line = String::from_utf8_lossy(&frame[before..]);
            if !line.ends_with('\n') || frame.len() > MOST_HEADER {
                return Ok(None);
            }
            let mut words = line.split_whitespace();
            let word = words.next().unwrap_or_default();
            if word == "ENDHDR" {
                let [width, height, depth, maxval] = numbers;
                let all = || Some([width?, height?, depth?, maxval?]);
                return Ok(all().and_then(samples));
            }
            if let Some(index) = names.iter().position(|name| *name == word) {
                numbers[index] = words.next().and_then(|value| value.parse().ok());
            }
        }
    }

    /// Appends the chunks of a PNG, up to the last one.
    fn chunks(&mut self, frame: &mut Vec<u8>) -> Result<()> {
        self.fill(frame, 6)?;
        loop {
            let before = frame.len();
            self.fill(frame, 8)?;
            let Some((length, kind)) = frame[before..].split_first_chunk::<4>() else {
                return Ok(());
            };
            let (length, is_last) = (u32::from_be_bytes(*length), kind == b"IEND");
            // With its checksum.
            self.fill(frame, u64::from(length) + 4)?;
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The size of samples without padding, in bytes; `None` if it overflows.
fn samples([width, height, channels, maxval]: [u64; 4]) -> Option<u64> {
    let bytes = if maxval > 255 { 2 } else { 1 };
    let sides = width.checked_mul(height)?;
    sides.checked_mul(channels)?.checked_mul(bytes)
}

/// The frames of standard input.
///
/// # Errors
/// A terminal or another device.
pub fn from_stdin(fixed: Option<u64>) -> Result<Frames<impl BufRead>> {
    super::source::check_stdin().context("cannot read standard input")?;
    let stream = Reads::new(io::stdin().lock(), Path::new("-"));
    Ok(Frames::new(BufReader::new(stream), fixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(stream: &[u8], fixed: Option<u64>) -> Vec<Result<Vec<u8>, String>> {
        let mut frames = Frames::new(stream, fixed);
        let mut all = Vec::new();
        loop {
            match frames.next_frame() {
                Ok(None) => return all,
                Ok(Some(frame)) => all.push(frame.read_all().map_err(|error| error.to_string())),
                Err(error) => {
                    all.push(Err(error.to_string()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn frames_end_where_their_headers_say() {
        let images: [&[u8]; 5] = [
            b"P5\n# 9 9\n3 2 # width\n255\nabcdef",
            b"P6 1 1 65535 abcdef",
            b"P4 9 2\nabcd",
            b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 300\nTUPLTYPE X\nENDHDR\nabcdefgh",
            b"\x89PNG\r\n\x1a\n\0\0\0\x01IDATxcrc!\0\0\0\0IENDcrc!",
        ];
        let found = frames(&images.concat(), None);
        assert_eq!(found, images.map(|image| Ok(image.to_vec())));
        assert_eq!(frames(b"abcdefg", Some(3)).len(), 3);
        assert_eq!(frames(b"abcdefg", Some(3))[2], Ok(b"g".to_vec()));
        // What is cut off is a frame; of an unknown kind there is one.
        assert_eq!(
            frames(b"P5 3 2 255 abcdefP5 3 2 255 a", None)[1],
            Ok(b"P5 3 2 255 a".to_vec())
        );
        assert_eq!(frames(b"P5 3", None), [Ok(b"P5 3".to_vec())]);
        assert_eq!(frames(b"II*\0...", None), [Ok(b"II*\0...".to_vec())]);
        assert_eq!(frames(b"", None), [Ok(Vec::new())]);
        assert_eq!(
            frames(b"P5 1 1 255 a\r\n", None),
            [Ok(b"P5 1 1 255 a".to_vec())]
        );
        assert!(frames(b"P5 1 1 255 a!", None)[1].is_err());
    }

    #[test]
    fn frames_are_bounded() {
        let lengths = |most: u64| {
            let mut frames = Frames::new(&b"P5 3 2 255 abcdefP5 3 2 255 abcdef"[..], None);
            frames.most = most;
            let mut next = || frames.next_frame().map(|frame| frame.map(|it| it.len()));
            [next(), next(), next()].map(|it| it.map_err(|error| error.to_string()))
        };
        assert_eq!(lengths(17), [Ok(Some(17)), Ok(Some(17)), Ok(None)]);
        let told = "it is longer than 16 bytes, half of the free memory";
        assert_eq!(lengths(16)[0], Err(told.into()));
        // A header without an end is not read to the end of the stream.
        for head in ["P5 ", "P7\n"] {
            let endless = [head.as_bytes(), &b"# x\n".repeat(MOST_HEADER)].concat();
            let mut frames = Frames::new(&endless[..], None);
            let mut header = vec![b'P', endless[1]];
            frames.stream = &endless[2..];
            let read = match endless[1] {
                b'7' => frames.pam(&mut header),
                _ => frames.numbers::<3>(&mut header).map(|it| it.map(|_| 0)),
            };
            assert!(read.is_ok_and(|body| body.is_none()), "{head}");
            assert!(
                (MOST_HEADER..MOST_HEADER + 16).contains(&header.len()),
                "{head}"
            );
        }
    }
}
