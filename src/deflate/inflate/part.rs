//! A part of a deflate stream, inflated without knowing the bytes before it.
//!
//! Where a match refers to a byte before the start, the output has a marker: a number from `MARKER` on
//! that says which byte of the 32 KiB before. As soon as the last 32 KiB are free of markers, decoding
//! continues to plain bytes.

use super::{BitReader, Inflater, Step, Stream, read_both};
use crate::deflate::WINDOW;
use anyhow::{Context, Result, anyhow, ensure};
use std::sync::Arc;

/// Compressed bytes of a part; few where Miri runs, or thousands of schedules, so that a short stream
/// has many parts.
pub const PART: usize = if cfg!(any(miri, all(test, feature = "schedules"))) {
    4 << 10
} else {
    512 << 10
};

/// The most bytes that a part may inflate to on a worker. The thread that joins the parts inflates
/// larger ones.
const MAX_PART_OUTPUT: usize = 8 * PART;

/// Symbols inflated between two searches for markers.
const STRIDE: usize = WINDOW;

/// The marker of the first of the 32 KiB before the part.
const MARKER: u16 = 0x8000;

/// A part of the compressed data.
pub struct PartInput {
    pub index: usize,
    pub part: Arc<Vec<u8>>,
    /// The bytes of the next part, into which its last block may reach; empty if there is none.
    pub beyond: Arc<Vec<u8>>,
}

impl PartInput {
    /// The bit of the stream at which the part starts.
    pub fn start(&self) -> u64 {
        (self.index * PART) as u64 * 8
    }

    /// The bit of the stream at which the next part starts.
    pub fn end(&self) -> u64 {
        self.start() + self.part.len() as u64 * 8
    }
}

/// The memory that a part needs, reused for the next.
#[derive(Default)]
pub struct PartBuffers {
    inflate: Inflater,
    /// After the 32 KiB of markers: symbols, markers among them.
    marked: Vec<u16>,
    /// After 32 KiB of bytes that matches refer to: plain bytes.
    plain: Vec<u8>,
    /// Memory for compressed bytes.
    pub input: Vec<u8>,
}

impl PartBuffers {
    fn prepare(&mut self) {
        if self.marked.is_empty() {
            self.marked = vec![0; WINDOW + MAX_PART_OUTPUT];
            self.plain = vec![0; WINDOW + MAX_PART_OUTPUT];
            for (symbol, marker) in self.marked.iter_mut().zip(MARKER..=u16::MAX) {
                *symbol = marker;
            }
        }
    }
}

/// A part, inflated.
pub struct InflatedPart {
    /// The bits of the stream at which it starts and ends.
    pub start: u64,
    pub end: u64,
    /// How many symbols there are in `PartBuffers::marked`.
    marked: usize,
    /// The bytes after these symbols: their place in `PartBuffers::plain`, and their Adler-32.
    plain: std::ops::Range<usize>,
    pub adler: u32,
    /// The Adler-32 stated after the stream's last block, if the part holds it.
    pub stated: Option<u32>,
}

impl InflatedPart {
    /// The plain bytes, which come after the resolved ones.
    pub fn plain<'a>(&self, buffers: &'a PartBuffers) -> &'a [u8] {
        &buffers.plain[self.plain.clone()]
    }

    /// The bytes before the plain ones, every marker replaced by the byte that it stands for in
    /// `history`: the last bytes before the part, up to 32 KiB.
    pub fn resolved(&self, buffers: &PartBuffers, history: &[u8]) -> Result<Vec<u8>> {
        let symbols = &buffers.marked[WINDOW..WINDOW + self.marked];
        let mut all = vec![0; WINDOW];
        all[WINDOW - history.len()..].copy_from_slice(history);
        let mut least = u16::MAX;
        let resolve = |&symbol: &u16| {
            if symbol < MARKER {
                return symbol as u8;
            }
            least = least.min(symbol);
            all[usize::from(symbol - MARKER)]
        };
        let bytes = symbols.iter().map(resolve).collect();
        ensure!(
            least == u16::MAX || usize::from(least - MARKER) >= WINDOW - history.len(),
            "a reference to before the start"
        );
        Ok(bytes)
    }
}

/// The inflating of one part, from a given bit to the first block that starts in the next part, or to
/// the end of the stream.
pub struct PartInflater<'a> {
    start: u64,
    /// The remaining bytes of the part, and of the one after it.
    rest: [&'a [u8]; 2],
    /// The bits of the stream at which the next part ends, and at which it starts.
    all: u64,
    next: u64,
    buffers: &'a mut PartBuffers,
    /// How far `PartBuffers::marked` and `PartBuffers::plain` are filled.
    marked: usize,
    plain: usize,
    /// Where the part's own bytes start in `PartBuffers::plain`.
    fresh: usize,
    /// Whether the last 32 KiB are free of markers.
    is_plain: bool,
    end: Option<u64>,
}

impl<'a> PartInflater<'a> {
    /// Starts at bit `start` of the stream. `history` are the last bytes before it, up to 32 KiB; none if
    /// they are not known.
    pub fn new(
        input: &'a PartInput,
        start: u64,
        history: Option<&[u8]>,
        buffers: &'a mut PartBuffers,
    ) -> PartInflater<'a> {
        buffers.prepare();
        let fresh = history.map_or(WINDOW, <[u8]>::len);
        if let Some(history) = history {
            buffers.plain[..fresh].copy_from_slice(history);
        }
        let skip = start.saturating_sub(input.start()) as usize;
        let mut first = input.part.get(skip / 8..).unwrap_or(&[]);
        let mut bits = BitReader::default();
        bits.refill_slowly(&mut first);
        bits.consume((skip as u32 % 8).min(bits.count));
        buffers.inflate.restart(bits);
        PartInflater {
            start,
            rest: [first, &input.beyond],
            all: input.end() + input.beyond.len() as u64 * 8,
            next: input.end(),
            buffers,
            marked: WINDOW,
            plain: fresh,
            fresh,
            is_plain: history.is_some(),
            end: None,
        }
    }

    /// Inflates all of the part.
    pub fn inflate_all(mut self) -> Result<InflatedPart> {
        while self.end.is_none() {
            self.step()?;
            self.check_room()?;
        }
        self.result()
    }

    /// Inflates two parts in turns.
    pub fn inflate_both(mut pair: [PartInflater; 2]) -> [Result<InflatedPart>; 2] {
        let mut faults = [const { None }; 2];
        let [one, two] = &mut pair;
        while one.end.is_none() && two.end.is_none() {
            let steps = match (one.is_plain, two.is_plain) {
                (true, true) => read_both([one.plain_stream(), two.plain_stream()]),
                (false, false) => read_both([one.marked_stream(), two.marked_stream()]),
                (false, true) => [one.marked_stream().read(), Ok(Step::default())],
                (true, false) => [Ok(Step::default()), two.marked_stream().read()],
            };
            let [first, second] = steps.map(|step| step.map_err(|fault| anyhow!(fault)));
            let advance = |run: &mut PartInflater, step: Result<Step>| {
                run.advance(step?)?;
                run.check_room()
            };
            faults = [advance(one, first).err(), advance(two, second).err()];
            if faults.iter().any(Option::is_some) {
                break;
            }
        }
        let [one, two] = pair;
        let [first, second] = faults;
        let rest = |run: PartInflater, fault: Option<anyhow::Error>| {
            fault.map_or_else(|| run.inflate_all(), Err)
        };
        [rest(one, first), rest(two, second)]
    }

    /// Inflates all of the part, whose history must be known, and passes all bytes to `take`, however many there are.
    pub fn inflate_to(mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<InflatedPart> {
        while self.end.is_none() {
            if self.plain == self.buffers.plain.len() {
                take(&self.buffers.plain[self.fresh..])?;
                self.buffers.plain.copy_within(self.plain - WINDOW.., 0);
                (self.fresh, self.plain) = (WINDOW, WINDOW);
            }
            self.step()?;
        }
        take(&self.buffers.plain[self.fresh..self.plain])?;
        self.fresh = self.plain;
        self.result()
    }

    fn step(&mut self) -> Result<()> {
        let step = if self.is_plain {
            self.plain_stream().read()
        } else {
            self.marked_stream().read()
        };
        self.advance(step.map_err(|fault| anyhow!(fault))?)
    }

    fn plain_stream(&mut self) -> Stream<'_, 'a, u8> {
        Stream {
            inflate: &mut self.buffers.inflate,
            input: self.rest[0],
            output: &mut self.buffers.plain,
            from: self.plain,
        }
    }

    /// A stream that ends where markers are searched for next.
    fn marked_stream(&mut self) -> Stream<'_, 'a, u16> {
        let most = (self.marked / STRIDE + 1) * STRIDE;
        let most = most.min(self.buffers.marked.len());
        Stream {
            inflate: &mut self.buffers.inflate,
            input: self.rest[0],
            output: &mut self.buffers.marked[..most],
            from: self.marked,
        }
    }

    /// Advances by a step of a stream.
    fn advance(&mut self, step: Step) -> Result<()> {
        self.rest[0] = &self.rest[0][step.used..];
        if step.needs_input {
            ensure!(!self.rest[1].is_empty(), "the last block is too long");
            self.rest = [self.rest[1], &[]];
        }
        if self.is_plain {
            self.plain += step.made;
        } else {
            self.marked += step.made;
            if step.made > 0 && self.marked.is_multiple_of(STRIDE) {
                self.switch_to_plain_if_possible();
            }
        }
        let inflate = &self.buffers.inflate;
        if inflate.between_blocks() {
            let left = (self.rest[0].len() + self.rest[1].len()) as u64 * 8;
            let bit = self.all - left - u64::from(inflate.rest().count);
            if inflate.is_done() || bit >= self.next {
                self.end = Some(bit);
            }
        }
        Ok(())
    }

    /// Continues with plain bytes if no match can refer to a marker any more.
    fn switch_to_plain_if_possible(&mut self) {
        let last = &self.buffers.marked[self.marked - WINDOW..self.marked];
        if last.iter().all(|&symbol| symbol < MARKER) {
            for (byte, &symbol) in self.buffers.plain.iter_mut().zip(last) {
                *byte = symbol as u8;
            }
            self.is_plain = true;
        }
    }

    /// Refuses a part that becomes too large.
    fn check_room(&self) -> Result<()> {
        let is_full = if self.is_plain {
            self.plain == self.buffers.plain.len()
        } else {
            self.marked == self.buffers.marked.len()
        };
        ensure!(!is_full, "the part becomes too large");
        Ok(())
    }

    fn result(self) -> Result<InflatedPart> {
        let inflate = &self.buffers.inflate;
        let stated = || {
            let mut rest = self.rest.into_iter().flatten();
            let word = inflate.rest().word(&mut rest);
            word.context("the Adler-32 is missing")
        };
        Ok(InflatedPart {
            start: self.start,
            end: self.end.context("the part has not ended")?,
            marked: self.marked - WINDOW,
            plain: self.fresh..self.plain,
            adler: simd_adler32::adler32(&&self.buffers.plain[self.fresh..self.plain]),
            stated: inflate.is_done().then(stated).transpose()?,
        })
    }
}
