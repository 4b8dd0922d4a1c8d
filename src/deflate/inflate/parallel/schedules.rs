//! The parallel inflater under every schedule.

use super::{Input, PART, inflate};
use crate::deflate::compress::{BitWriter, Matcher, Shortest, flush};
use crate::deflate::zlib::HEADER;
use crate::os::sync::explore::explore;
use anyhow::{Result, ensure};
use std::sync::LazyLock;

/// A zlib stream, and the bytes that it inflates to.
struct Stream {
    plain: Vec<u8>,
    compressed: Vec<u8>,
}

/// Noise, and matches far and near: parts refer to the ones before them.
static STREAM: LazyLock<Stream> = LazyLock::new(|| {
    let (mut plain, mut state) = (Vec::new(), 7u32);
    while plain.len() < 90_000 {
        plain.extend((0..600).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 & 31
        }));
        for back in [70, 500, plain.len() / 2] {
            let from = plain.len() - back;
            plain.extend_from_within(from..from + 50);
        }
    }
    let mut stream = BitWriter::default();
    stream.extend(&HEADER);
    Matcher::default().compress(&plain, 0..plain.len(), Shortest::Four, &mut stream);
    flush(true, &mut stream);
    stream.extend(&simd_adler32::adler32(&&plain[..]).to_be_bytes());
    let compressed = stream.bytes().to_vec();
    assert!(compressed.len() > 11 * PART, "{} bytes", compressed.len());
    Stream { plain, compressed }
});

/// The stream in pieces of odd sizes, which ends, or fails at a byte.
struct Pieces {
    at: usize,
    fails: Option<usize>,
}

impl Input for Pieces {
    fn peek(&mut self) -> Result<&[u8]> {
        ensure!(self.fails.is_none_or(|at| self.at < at), "cannot be read");
        let rest = &STREAM.compressed[self.at..];
        Ok(&rest[..rest.len().min(777)])
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        self.at += count;
        Ok(())
    }
}

/// Inflates it on three threads; `take` fails when it has this many bytes.
fn inflated(fails: Option<usize>, most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let take = |bytes: &[u8]| {
        ensure!(out.len() + bytes.len() <= most, "enough");
        out.extend_from_slice(bytes);
        Ok(())
    };
    inflate(Pieces { at: 0, fails }, STREAM.plain.len(), 3, take)?;
    Ok(out)
}

/// Every part comes out once, in order, however the workers come to it.
#[test]
fn parts_are_joined_in_order() {
    LazyLock::force(&STREAM);
    explore(60, || {
        assert!(inflated(None, usize::MAX).expect("whole") == STREAM.plain);
    });
}

/// A failure in a worker or in the joining thread ends all of them.
#[test]
fn a_failure_ends_all_threads() {
    LazyLock::force(&STREAM);
    explore(60, || {
        let error = inflated(Some(9 * PART), usize::MAX).expect_err("not all is read");
        assert_eq!(error.to_string(), "cannot be read");
    });
    explore(60, || {
        let error = inflated(None, STREAM.plain.len() / 2).expect_err("not all is taken");
        assert_eq!(error.to_string(), "enough");
    });
}
