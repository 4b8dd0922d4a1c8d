//! Compressed data inflate to the same bytes, in pieces of any size and by every decoder. The data are small enough for Miri.

use super::compress::{BitWriter, Fast, Matcher, QuickMatcher, Shortest, flush, stored};
use super::inflate::parallel::{self, Input};
use super::inflate::{Inflater, Step, Stream, read_both};
use super::zlib;
use anyhow::{Context, Result, anyhow, ensure};

/// Bytes of texts: few for an interpreter.
const LENGTHS: &[usize] = if cfg!(miri) {
    &[900]
} else {
    &[2, 300, 3_000, 200_000]
};

/// Bytes of several kinds: noise, few values, runs, a ramp, and a period longer than any match.
fn texts() -> Vec<Vec<u8>> {
    let mut state = 7u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let period: Vec<u8> = (0..701).map(|_| noise()).collect();
    let mut texts = vec![Vec::new(), vec![7]];
    for &len in LENGTHS {
        texts.push((0..len).map(|_| noise()).collect());
        texts.push((0..len).map(|_| noise() & 3).collect());
        texts.push((0..len).map(|i| (i / 100 % 3) as u8).collect());
        texts.push((0..len).map(|i| (i / 2) as u8).collect());
        texts.push(period.iter().cycle().take(len).copied().collect());
    }
    texts
}

/// A way to compress a text to deflate blocks.
type Method = fn(&[u8], &mut BitWriter);

const METHODS: [Method; 5] = [
    |text, out| Fast::default().compress(text, out),
    |text, out| Matcher::default().compress(text, 0..text.len(), Shortest::Four, out),
    |text, out| Matcher::default().compress(text, 0..text.len(), Shortest::Six, out),
    |text, out| QuickMatcher::default().compress(text, out),
    stored,
];

/// The deflate stream of a text.
fn stream(text: &[u8], method: Method) -> Vec<u8> {
    let mut out = BitWriter::default();
    method(text, &mut out);
    flush(true, &mut out);
    out.bytes().to_vec()
}

/// Inflates with `feed` bytes of input and `room` symbols of output at a time.
fn inflated(stream: &[u8], len: usize, feed: usize, room: usize) -> Result<Vec<u8>> {
    // The end of the last block needs room, too.
    let (mut inflater, mut out) = (Inflater::default(), vec![0xa5u8; len + 1 + 64]);
    let (mut used, mut made) = (0, 0);
    while !inflater.is_done() {
        let input = &stream[used..stream.len().min(used + feed)];
        let to = (made + room).min(len + 1);
        let step = inflater.read(input, &mut out[..to], made);
        let step = step.map_err(|fault| anyhow!(fault))?;
        (used, made) = (used + step.used, made + step.made);
        ensure!(!(step.needs_input && used == stream.len()), "no end");
    }
    let is_rest_untouched = out[len + 1..].iter().all(|&byte| byte == 0xa5);
    ensure!(is_rest_untouched && made == len, "{made} of {len}");
    out.truncate(made);
    Ok(out)
}

/// A stream that comes in pieces.
struct Pieces<'a>(std::slice::Chunks<'a, u8>, &'a [u8]);

impl Input for Pieces<'_> {
    fn peek(&mut self) -> Result<&[u8]> {
        while self.1.is_empty() {
            match self.0.next() {
                Some(piece) => self.1 = piece,
                None => break,
            }
        }
        Ok(self.1)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        self.1 = &self.1[count..];
        Ok(())
    }
}

#[test]
fn texts_come_back() -> Result<()> {
    for text in texts() {
        for stream in METHODS.map(|method| stream(&text, method)) {
            for (feed, room) in [(1, 1000), (1 << 20, 7), (13, 300), (1 << 20, 1 << 20)] {
                ensure!(inflated(&stream, text.len(), feed, room)? == text);
            }
        }
        let packed = zlib::Encoder::default().encode(&text);
        let mut out = vec![0; text.len()];
        let found = zlib::Decoder::default().decode(&packed, &mut out);
        ensure!(found == Ok(Some(text.len())) && out == text);
        let mut joined = Vec::new();
        let pieces = Pieces(packed.chunks(1000), &[]);
        let rest = parallel::inflate(pieces, text.len(), 3, |bytes| {
            joined.extend_from_slice(bytes);
            Ok(())
        });
        ensure!(rest?.peek()?.is_empty() && joined == text);
    }
    Ok(())
}

#[test]
fn two_streams_are_inflated_in_turns() -> Result<()> {
    let texts = texts();
    let methods = METHODS.into_iter().cycle();
    let streams: Vec<_> = texts
        .iter()
        .zip(methods)
        .map(|(text, method)| stream(text, method))
        .collect();
    for (pair, streams) in texts.windows(2).zip(streams.windows(2)) {
        let mut inflaters: [Inflater; 2] = Default::default();
        let mut outputs = [&pair[0], &pair[1]].map(|text| vec![0; text.len() + 1]);
        let (mut used, mut made) = ([0; 2], [0; 2]);
        while !inflaters.iter().all(Inflater::is_done) {
            let mut all = inflaters.iter_mut().zip(&mut outputs).enumerate();
            let mut stream = || {
                let (i, (inflate, output)) = all.next().context("two streams")?;
                anyhow::Ok(Stream {
                    inflate,
                    input: &streams[i][used[i]..],
                    output,
                    from: made[i],
                })
            };
            let mut steps = read_both([stream()?, stream()?]);
            let still = |step: &Result<Step, _>| matches!(step, Ok(it) if it.used + it.made == 0);
            if steps.iter().all(still) {
                // Only one still has ample data: each continues alone.
                let [one, two] = &mut inflaters;
                let [a, b] = &mut outputs;
                steps = [
                    one.read(&streams[0][used[0]..], a, made[0]),
                    two.read(&streams[1][used[1]..], b, made[1]),
                ];
            }
            for (i, step) in steps.into_iter().enumerate() {
                let step = step.map_err(|fault| anyhow!(fault))?;
                (used[i], made[i]) = (used[i] + step.used, made[i] + step.made);
            }
        }
        for i in 0..2 {
            ensure!(made[i] == pair[i].len() && outputs[i][..made[i]] == pair[i]);
        }
    }
    Ok(())
}
