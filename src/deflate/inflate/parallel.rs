//! Inflating one stream of any origin on many cores, by the method of rapidgzip (Knespel and Brunst,
//! "Rapidgzip: Parallel Decompression and Seeking in Gzip Files Using Cache Prefetching", HPDC 2023).
//!
//! The compressed data are cut into parts. A worker finds the first block that starts in its part and
//! inflates from there to the first block that starts in the next part, with markers in place of the
//! bytes that it cannot know. One thread joins the parts in the order of the stream. If a part starts
//! where the one before ended, its markers are replaced by the bytes that they stand for. If not, the
//! worker mistook other bits for a block's header, a false start, and the part is inflated again from
//! the right bit.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use super::block_finder::find_block;
use super::part::{InflatedPart, PART, PartBuffers, PartInflater, PartInput};
use crate::deflate::WINDOW;
use crate::deflate::adler::combine;
use crate::deflate::zlib::is_zlib;
use crate::os::sync::mpsc::{Receiver, Sender, channel};
use crate::os::sync::{Mutex, PoisonError, thread};
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Parts that a worker inflates in turns.
const PARTS_AT_ONCE: usize = 2;

/// So many parts may have a false start, or none, and one more for every two parts of the stream.
/// With more of them, one thread inflates faster.
const MIN_ALLOWED_FALSE_STARTS: usize = 4;

/// The bit of the stream at which the first block starts.
const ZLIB_HEADER: u64 = 16;

/// Whether a stream of `compressed` bytes that becomes `inflated` bytes gains from several threads;
/// one that is hardly compressed does not.
pub fn is_worth(compressed: u64, inflated: usize, threads: usize) -> bool {
    let inflated = inflated as u64;
    threads > 1
        && compressed > 2 * (threads.min(4) * PART) as u64
        && compressed < inflated / 16 * 15
        && inflated < 6 * compressed
}

/// A source of compressed bytes.
pub trait Input {
    /// The next bytes, as many as are in memory; none at the end.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn peek(&mut self) -> Result<&[u8]>;

    /// Moves past the first `count` of the bytes that `peek` gave.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn consume(&mut self, count: usize) -> Result<()>;
}

/// Inflates a zlib stream of exactly `total` bytes on `threads` threads, passes them to `take` in
/// order, checks the Adler-32, and returns the input with the bytes after the stream.
///
/// # Errors
/// The input's and `take`'s; a damaged stream; a stream that this method does not suit. Inflating the
/// stream on one thread then shows whether it is damaged.
pub fn inflate<I: Input + Send>(
    data: I,
    total: usize,
    threads: usize,
    take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<I> {
    let mut parts = Parts {
        data,
        index: 0,
        next: None,
    };
    parts.next = parts.read_part(Vec::new())?;
    let head = parts.next.as_ref().and_then(|part| part.first_chunk());
    ensure!(head.is_some_and(is_zlib), "not a zlib stream");
    let parts = Mutex::new(parts);
    let (give_back, idle) = channel();
    for _ in 0..PARTS_AT_ONCE * (threads + 2) {
        // The receiver is still there.
        let _ = give_back.send(PartBuffers::default());
    }
    let idle = Mutex::new(idle);
    thread::scope(|scope| {
        let (send, finished) = channel();
        for worker in 0..threads {
            let send = send.clone();
            let (parts, idle) = (&parts, &idle);
            let started = thread::spawn_scoped(scope, move || {
                // A panic must not leave the joining thread waiting.
                let worked = catch_unwind(AssertUnwindSafe(|| inflate_parts(parts, idle, &send)));
                let worked = worked.unwrap_or_else(|_| Err(anyhow!("a thread failed")));
                if let Err(error) = worked {
                    // The joining thread may have stopped already.
                    let _ = send.send(Err(error));
                }
            });
            match started {
                Ok(_) => {}
                // Fewer threads can inflate all parts, too.
                Err(_) if worker > 0 => break,
                Err(error) => return Err(error).context("no thread could be started"),
            }
        }
        drop(send);
        // Dropped at the end of this closure, also after an error: the workers stop then.
        let mut joiner = Joiner {
            give_back,
            output: Output {
                take,
                window: Vec::new(),
                len: 0,
                adler: 1,
                total,
            },
            at: ZLIB_HEADER,
            false_starts: 0,
        };
        joiner.join_all(finished)
    })?;
    let parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(parts.data)
}

/// The compressed data, cut into parts.
struct Parts<I> {
    data: I,
    /// The next part's number, counted from 0.
    index: usize,
    /// The next part's bytes; none after the last.
    next: Option<Arc<Vec<u8>>>,
}

impl<I: Input> Parts<I> {
    /// Reads the next part, into memory that is reused.
    fn read_part(&mut self, mut part: Vec<u8>) -> Result<Option<Arc<Vec<u8>>>> {
        part.clear();
        part.reserve_exact(PART);
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

    /// The next part, and the bytes of the one after it; `None` after the last.
    fn next_part(&mut self, buffers: &mut PartBuffers) -> Result<Option<PartInput>> {
        let Some(part) = self.next.take() else {
            return Ok(None);
        };
        self.next = self.read_part(std::mem::take(&mut buffers.input))?;
        let input = PartInput {
            index: self.index,
            part,
            beyond: self.next.clone().unwrap_or_default(),
        };
        self.index += 1;
        Ok(Some(input))
    }
}

/// A part that a worker inflates, and the memory for it.
struct Task {
    input: PartInput,
    buffers: PartBuffers,
}

/// A part that a worker has finished.
struct FinishedPart {
    task: Task,
    /// The result, if a start was found and the part could be inflated from there.
    inflated: Option<InflatedPart>,
}

/// The loop of a worker: inflates parts until there are no more, or until the joining thread has ended.
fn inflate_parts(
    parts: &Mutex<Parts<impl Input>>,
    idle: &Mutex<Receiver<PartBuffers>>,
    send: &Sender<Result<FinishedPart>>,
) -> Result<()> {
    loop {
        let mut tasks = Vec::with_capacity(PARTS_AT_ONCE);
        let waiting = idle.lock().map_err(poisoned)?;
        // A worker gets buffers before a part, so that the part that is needed next always has some.
        // It does not wait for a second pair: it may come only when the first part is finished.
        let mut free = waiting.recv().ok();
        while let Some(mut buffers) = free {
            match parts.lock().map_err(poisoned)?.next_part(&mut buffers)? {
                Some(input) => tasks.push(Task { input, buffers }),
                None => break,
            }
            free = if tasks.len() < PARTS_AT_ONCE {
                waiting.try_recv().ok()
            } else {
                None
            };
        }
        drop(waiting);
        if tasks.is_empty() {
            return Ok(());
        }
        let inflated = inflate_tasks(&mut tasks);
        for (task, inflated) in tasks.into_iter().zip(inflated) {
            if send.send(Ok(FinishedPart { task, inflated })).is_err() {
                return Ok(());
            }
        }
    }
}

fn poisoned<T>(_: T) -> Error {
    anyhow!("another thread failed")
}

/// Inflates up to two parts. The result is `None` after an error, which may only mean a false start: the joining thread
/// then inflates the part and reports the error.
fn inflate_tasks(tasks: &mut [Task]) -> Vec<Option<InflatedPart>> {
    let mut inflaters: Vec<Option<PartInflater>> = Vec::with_capacity(PARTS_AT_ONCE);
    for Task { input, buffers } in tasks {
        inflaters.push(match input.index {
            0 => Some(PartInflater::new(input, ZLIB_HEADER, Some(&[]), buffers)),
            _ => find_block(&input.part, 0)
                .map(|bit| PartInflater::new(input, input.start() + bit as u64, None, buffers)),
        });
    }
    match &mut inflaters[..] {
        [one @ Some(_), two @ Some(_)] => {
            let pair = one.take().zip(two.take());
            let inflated = pair.map(|(one, two)| PartInflater::inflate_both([one, two]));
            inflated.into_iter().flatten().map(Result::ok).collect()
        }
        _ => inflaters
            .into_iter()
            .map(|inflater| inflater.and_then(|inflater| inflater.inflate_all().ok()))
            .collect(),
    }
}

/// Joins the parts, on the caller's thread.
struct Joiner<F> {
    give_back: Sender<PartBuffers>,
    output: Output<F>,
    /// The bit of the stream up to which the parts are joined.
    at: u64,
    false_starts: usize,
}

impl<F: FnMut(&[u8]) -> Result<()>> Joiner<F> {
    /// Joins all parts in the order of the stream, whatever the order in which they are finished.
    fn join_all(&mut self, finished: Receiver<Result<FinishedPart>>) -> Result<()> {
        let mut early = BTreeMap::new();
        let mut index = 0;
        for part in finished {
            let part = part?;
            early.insert(part.task.input.index, part);
            while let Some(part) = early.remove(&index) {
                index += 1;
                if self.join_next(part)? {
                    return Ok(());
                }
            }
        }
        bail!("the last block is missing")
    }

    /// Joins the next part; returns whether it was the last.
    fn join_next(&mut self, part: FinishedPart) -> Result<bool> {
        let Task { input, mut buffers } = part.task;
        let output = &mut self.output;
        let inflated = match part.inflated {
            Some(inflated) if inflated.start == self.at => {
                let bytes = inflated.resolved(&buffers, &output.window)?;
                output.add(&bytes, simd_adler32::adler32(&&bytes[..]))?;
                output.add(inflated.plain(&buffers), inflated.adler)?;
                inflated
            }
            // A block of the part before covers all of this one.
            _ if self.at >= input.end() => {
                self.give_back(Task { input, buffers });
                return Ok(false);
            }
            _ => {
                self.false_starts += 1;
                ensure!(
                    self.false_starts <= MIN_ALLOWED_FALSE_STARTS + input.index / 2,
                    "the starts of too many blocks cannot be found"
                );
                let window = output.window.clone();
                PartInflater::new(&input, self.at, Some(&window), &mut buffers)
                    .inflate_to(|bytes| output.add(bytes, simd_adler32::adler32(&bytes)))?
            }
        };
        self.give_back(Task { input, buffers });
        self.at = inflated.end;
        if let Some(stated) = inflated.stated {
            let output = &self.output;
            ensure!(output.len == output.total, "the image data are too short");
            ensure!(output.adler == stated, "wrong Adler-32");
        }
        Ok(inflated.stated.is_some())
    }
}

impl<F> Joiner<F> {
    /// Returns the memory of a part that is finished to the workers. The part before is finished, too, so nobody else uses
    /// this one.
    fn give_back(&self, task: Task) {
        let mut buffers = task.buffers;
        buffers.input = Arc::into_inner(task.input.part).unwrap_or_default();
        // The workers may have ended.
        let _ = self.give_back.send(buffers);
    }
}

/// The inflated bytes.
struct Output<F> {
    take: F,
    /// The last inflated bytes, up to 32 KiB.
    window: Vec<u8>,
    /// The number of bytes so far, and their Adler-32.
    len: usize,
    adler: u32,
    /// The number of bytes that there must be.
    total: usize,
}

impl<F: FnMut(&[u8]) -> Result<()>> Output<F> {
    /// Adds bytes with this Adler-32.
    fn add(&mut self, bytes: &[u8], adler: u32) -> Result<()> {
        ensure!(
            bytes.len() <= self.total - self.len,
            "the image data are too long"
        );
        (self.take)(bytes)?;
        self.adler = combine(self.adler, adler, bytes.len());
        self.len += bytes.len();
        let last = &bytes[bytes.len().saturating_sub(WINDOW)..];
        let surplus = (self.window.len() + last.len()).saturating_sub(WINDOW);
        self.window.drain(..surplus);
        self.window.extend_from_slice(last);
        Ok(())
    }
}
