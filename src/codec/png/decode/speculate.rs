//! Inflating one stream of any origin on many cores.
//!
//! The compressed data are cut into parts. A thread looks for the first block that starts in its
//! part and inflates from there to the first block that starts in the next part. What matches take
//! from before its start is not known yet; in its place stand markers, numbers from `MARKER` on that
//! say which byte of the 32 KiB before. As soon as 32 KiB are free of them, plain bytes follow. In
//! the order of the stream, one thread then joins the parts: where a part starts as the one before
//! ended, its markers are looked up; where not, its start was an illusion, and the part is inflated
//! anew from the right place. (The method of rapidgzip: Knespel and Brunst, HPDC 2023.)

use super::block_header::Bits;
use super::data::ImageData;
use super::deflate::{Inflate, Symbol};
use super::finder::find_block;
use super::inflate::{HISTORY, is_zlib, joined};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Compressed bytes of a part.
const PART: usize = 512 << 10;

/// Inflated bytes that a part may become; a stream that makes more is left to one thread.
const MOST: usize = 8 * PART;

/// Symbols inflated between two looks for markers.
const STRIDE: usize = HISTORY;

/// The symbol for the first byte of the unknown history.
const MARKER: u16 = 0x8000;

/// Whether a stream of so many bytes can gain from this: on two threads it is worth a third only.
pub fn is_worth(compressed: u64, inflated: usize, threads: usize) -> bool {
    threads > 1 && compressed > 8 * PART as u64 && (inflated as u64) < 4 * compressed
}

/// Inflates exactly `total` bytes of `data` on `threads` threads and hands them to `take` in order;
/// then checks the Adler-32 and the rest of the file. After an error the stream is to be inflated
/// by one thread, which says what is wrong with it, if anything is.
pub fn each(
    data: ImageData,
    total: usize,
    threads: usize,
    take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut parts = Parts {
        data,
        index: 0,
        next: None,
    };
    parts.next = parts.read()?;
    let head = parts.next.as_ref().and_then(|part| part.first_chunk());
    ensure!(head.is_some_and(is_zlib), "not a zlib stream");
    let parts = Mutex::new(parts);
    let (give, idle) = channel();
    for _ in 0..threads + 2 {
        let _ = give.send(Buffers::default());
    }
    let idle = Mutex::new(idle);
    thread::scope(|scope| {
        let (send, finished) = channel();
        for _ in 0..threads {
            let send = send.clone();
            let (parts, idle) = (&parts, &idle);
            thread::Builder::new()
                .spawn_scoped(scope, move || work(parts, idle, send))
                .context("no thread could be started")?;
        }
        drop(send);
        // Dropped at the end of this closure, also after an error: then the workers stop.
        let mut join = Join {
            give,
            take,
            window: Vec::new(),
            at: 16,
            made: 0,
            adler: 1,
            total,
        };
        join.all(finished)
    })?;
    let parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut data = parts.data;
    data.finish()
}

/// The compressed data, cut into parts.
struct Parts<'a> {
    data: ImageData<'a>,
    /// Number of the next part.
    index: usize,
    /// The next part itself, if there is one.
    next: Option<Arc<Vec<u8>>>,
}

impl Parts<'_> {
    fn read(&mut self) -> Result<Option<Arc<Vec<u8>>>> {
        let mut part = Vec::with_capacity(PART);
        while part.len() < PART {
            let bytes = self.data.peek()?;
            let bytes = &bytes[..bytes.len().min(PART - part.len())];
            if bytes.is_empty() {
                break;
            }
            part.extend_from_slice(bytes);
            let count = bytes.len();
            self.data.consume(count)?;
        }
        Ok((!part.is_empty()).then(|| Arc::new(part)))
    }

    /// The next part with the one after it, into which its last block may reach.
    fn take(&mut self) -> Result<Option<Job>> {
        let Some(part) = self.next.take() else {
            return Ok(None);
        };
        self.next = self.read()?;
        let job = Job {
            index: self.index,
            part,
            beyond: self.next.clone().unwrap_or_default(),
        };
        self.index += 1;
        Ok(Some(job))
    }
}

/// A part to be inflated.
struct Job {
    index: usize,
    part: Arc<Vec<u8>>,
    /// The part after it, empty if there is none.
    beyond: Arc<Vec<u8>>,
}

impl Job {
    /// The bit of the stream at which the part starts.
    fn start(&self) -> u64 {
        (self.index * PART) as u64 * 8
    }

    /// The bit of the stream at which the next part starts.
    fn end(&self) -> u64 {
        self.start() + self.part.len() as u64 * 8
    }
}

/// Memory of a part, used again and again.
#[derive(Default)]
struct Buffers {
    inflate: Inflate,
    /// Symbols that may be markers, after the markers of the whole history.
    marked: Vec<u16>,
    /// Plain bytes after their history.
    plain: Vec<u8>,
}

/// A part that a worker is done with.
struct Done {
    job: Job,
    /// What it became, if a start was found.
    found: Option<Inflated>,
    buffers: Buffers,
}

/// What a part became; the rest is in its buffers.
struct Inflated {
    /// Bits of the stream at which it starts and ends.
    start: u64,
    end: u64,
    /// How much of `Buffers::marked` counts.
    marked: usize,
    /// Which of `Buffers::plain` counts, and its Adler-32.
    plain: Range<usize>,
    adler: u32,
    /// The Adler-32 that stands after the last block, if that was in the part.
    stated: Option<u32>,
}

fn work(parts: &Mutex<Parts>, idle: &Mutex<Receiver<Buffers>>, send: Sender<Result<Done>>) {
    loop {
        // Buffers first, so that the part that is needed next always has some.
        let job = {
            let Ok(idle) = idle.lock() else { return };
            let Ok(buffers) = idle.recv() else { return };
            let Ok(mut parts) = parts.lock() else { return };
            parts.take().map(|job| job.map(|job| (job, buffers)))
        };
        let done = match job {
            Ok(None) => return,
            Ok(Some((job, mut buffers))) => {
                let start = match job.index {
                    0 => Some(16),
                    _ => find_block(&job.part, 0).map(|bit| job.start() + bit as u64),
                };
                let history = (job.index == 0).then_some(&[][..]);
                // An error may mean no more than that the start is an illusion.
                let found = start.and_then(|at| inflate(&job, at, history, &mut buffers).ok());
                Ok(Done {
                    job,
                    found,
                    buffers,
                })
            }
            Err(error) => Err(error),
        };
        if send.send(done).is_err() {
            return;
        }
    }
}

/// Inflates a part from bit `start` to the first block that starts in the next part, or to the end
/// of the stream. Without `history` there are markers instead.
fn inflate(
    job: &Job,
    start: u64,
    history: Option<&[u8]>,
    buffers: &mut Buffers,
) -> Result<Inflated> {
    let Buffers {
        inflate,
        marked: symbols,
        plain: bytes,
    } = buffers;
    let mut input = Input::new(job, start);
    inflate.restart(input.bits);
    if symbols.is_empty() {
        *symbols = vec![0; HISTORY + MOST];
        *bytes = vec![0; HISTORY + MOST];
        for (symbol, marker) in symbols.iter_mut().zip(MARKER..=u16::MAX) {
            *symbol = marker;
        }
    }
    let mut end = None;
    let mut at = HISTORY;
    let mut clean = history.is_some();
    while end.is_none() && !clean {
        let from = at;
        end = input.run(inflate, symbols, &mut at, from + STRIDE)?;
        clean = symbols[at - HISTORY..at]
            .iter()
            .all(|&symbol| symbol < MARKER);
    }
    let kept = history.map_or(HISTORY, <[u8]>::len);
    match history {
        Some(history) => bytes[..kept].copy_from_slice(history),
        None => {
            for (byte, &symbol) in bytes.iter_mut().zip(&symbols[at - HISTORY..at]) {
                *byte = symbol as u8;
            }
        }
    }
    let mut plain = kept..kept;
    if end.is_none() {
        end = input.run(inflate, bytes, &mut plain.end, usize::MAX)?;
    }
    Ok(Inflated {
        start,
        end: end.context("the part becomes too large")?,
        marked: at - HISTORY,
        adler: simd_adler32::adler32(&&bytes[plain.clone()]),
        plain,
        stated: match inflate.is_done() {
            true => Some(input.word(inflate.rest())?),
            false => None,
        },
    })
}

/// The compressed bytes of a part and of the one after it, from some bit on.
struct Input<'a> {
    /// Bits of the first byte.
    bits: Bits,
    rest: [&'a [u8]; 2],
    /// Bit of the stream at which all this ends, and at which the next part starts.
    all: u64,
    end: u64,
}

impl<'a> Input<'a> {
    fn new(job: &'a Job, start: u64) -> Input<'a> {
        let skip = (start - job.start().min(start)) as usize;
        let (byte, bit) = (skip / 8, skip as u32 % 8);
        let mut rest = [&job.part[..], &job.beyond[..]];
        rest[0] = rest[0].get(byte..).unwrap_or(&[]);
        let mut bits = Bits::default();
        if let Some((&first, later)) = rest[0].split_first() {
            bits = Bits {
                buffer: u64::from(first) >> bit,
                count: 8 - bit,
            };
            rest[0] = later;
        }
        Input {
            bits,
            rest,
            all: job.end() + job.beyond.len() as u64 * 8,
            end: job.end(),
        }
    }

    /// Inflates to `output` from `at` on, till it is full or `most` is reached (nothing), or a block
    /// ends where the next part goes on: gives that bit.
    fn run<T: Symbol>(
        &mut self,
        inflate: &mut Inflate,
        output: &mut [T],
        at: &mut usize,
        most: usize,
    ) -> Result<Option<u64>> {
        let most = most.min(output.len());
        loop {
            if inflate.between_blocks() {
                let left = (self.rest[0].len() + self.rest[1].len()) as u64 * 8;
                let bit = self.all - left - u64::from(inflate.rest().count);
                if inflate.is_done() || bit >= self.end {
                    return Ok(Some(bit));
                }
            }
            if *at == most {
                return Ok(None);
            }
            let step = inflate.read(self.rest[0], &mut output[..most], *at);
            let step = step.map_err(|fault| anyhow!(fault))?;
            *at += step.made;
            self.rest[0] = &self.rest[0][step.used..];
            if step.hungry {
                ensure!(!self.rest[1].is_empty(), "the last block is too long");
                self.rest.swap(0, 1);
                self.rest[1] = &[];
            }
        }
    }

    /// The word after the last block.
    fn word(&self, mut bits: Bits) -> Result<u32> {
        bits.align();
        let mut rest = self.rest[0].iter().chain(self.rest[1]);
        let mut word = 0;
        for _ in 0..4 {
            let byte = match bits.count {
                0 => *rest.next().context("the Adler-32 is missing")?,
                _ => bits.take(8) as u8,
            };
            word = word << 8 | u32::from(byte);
        }
        Ok(word)
    }
}

/// The thread that joins the parts.
struct Join<F> {
    give: Sender<Buffers>,
    take: F,
    /// Up to 32 KiB before the bit that is reached.
    window: Vec<u8>,
    /// The bit of the stream that is reached.
    at: u64,
    /// Bytes inflated so far, and their Adler-32.
    made: usize,
    adler: u32,
    total: usize,
}

impl<F: FnMut(&[u8]) -> Result<()>> Join<F> {
    fn all(&mut self, finished: Receiver<Result<Done>>) -> Result<()> {
        let mut early = BTreeMap::new();
        let mut index = 0;
        for done in finished {
            let done = done?;
            early.insert(done.job.index, done);
            while let Some(done) = early.remove(&index) {
                index += 1;
                if self.one(done)? {
                    return Ok(());
                }
            }
        }
        bail!("the last block is missing")
    }

    /// Takes in the next part; says whether it was the last.
    fn one(&mut self, done: Done) -> Result<bool> {
        let Done {
            job,
            found,
            mut buffers,
        } = done;
        let part = match found {
            Some(part) if part.start == self.at => part,
            // A block of the part before covers all of this one.
            _ if self.at >= job.end() => {
                let _ = self.give.send(buffers);
                return Ok(false);
            }
            _ => inflate(&job, self.at, Some(&self.window), &mut buffers)?,
        };
        self.at = part.end;
        if part.marked > 0 {
            let symbols = &buffers.marked[HISTORY..HISTORY + part.marked];
            let known = HISTORY - self.window.len();
            let mut bytes = Vec::with_capacity(symbols.len());
            for &symbol in symbols {
                bytes.push(match symbol.checked_sub(MARKER) {
                    None => symbol as u8,
                    Some(place) => *(usize::from(place).checked_sub(known))
                        .and_then(|place| self.window.get(place))
                        .context("a reference to before the start")?,
                });
            }
            let adler = simd_adler32::adler32(&&bytes[..]);
            self.hand_on(&bytes, adler)?;
        }
        self.hand_on(&buffers.plain[part.plain], part.adler)?;
        let _ = self.give.send(buffers);
        if let Some(stated) = part.stated {
            ensure!(self.made == self.total, "the image data are too short");
            ensure!(self.adler == stated, "wrong Adler-32");
        }
        Ok(part.stated.is_some())
    }

    fn hand_on(&mut self, bytes: &[u8], adler: u32) -> Result<()> {
        ensure!(
            bytes.len() <= self.total - self.made,
            "the image data are too long"
        );
        (self.take)(bytes)?;
        self.adler = joined(self.adler, adler, bytes.len());
        self.made += bytes.len();
        if bytes.len() >= HISTORY {
            self.window.clear();
        }
        self.window
            .extend_from_slice(&bytes[bytes.len().saturating_sub(HISTORY)..]);
        let surplus = self.window.len().saturating_sub(HISTORY);
        self.window.drain(..surplus);
        Ok(())
    }
}
