//! Inflating one stream of any origin on many cores, by the method of rapidgzip (Knespel and Brunst,
//! "Rapidgzip: Parallel Decompression and Seeking in Gzip Files Using Cache Prefetching", HPDC 2023).
//!
//! The compressed data are cut into parts. A worker finds the first block that starts in its part and
//! inflates from there to the first block that starts in the next part, with markers in place of the
//! bytes that it cannot know. One thread joins the parts in the order of the stream. If a part starts
//! where the one before ended, its markers are replaced by the bytes that they stand for. If not, the
//! worker took other bits for a block's header, a false start, and the part is inflated again from
//! the right place.

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
const AT_ONCE: usize = 2;

/// Parts that may have a false start, or none, before the whole stream is left to one thread; each
/// further one is allowed after two parts more.
const FALSE_STARTS: usize = 4;

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

/// Compressed bytes that come piece by piece.
pub trait Input {
    /// The bytes that come next, as many as are at hand; none at the end.
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

/// Inflates a zlib stream of exactly `total` bytes on `threads` threads, hands them to `take` in
/// order, checks the Adler-32, and returns the input with what follows the stream.
///
/// # Errors
/// The input's and `take`'s; a damaged stream; a stream that this method does not suit. The caller
/// inflates the stream on one thread then, which says what is wrong with it, if anything is.
pub fn each<I: Input + Send>(
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
    parts.next = parts.read(Vec::new())?;
    let head = parts.next.as_ref().and_then(|part| part.first_chunk());
    ensure!(head.is_some_and(is_zlib), "not a zlib stream");
    let parts = Mutex::new(parts);
    let (give, idle) = channel();
    for _ in 0..AT_ONCE * (threads + 2) {
        let _ = give.send(PartBuffers::default());
    }
    let idle = Mutex::new(idle);
    thread::scope(|scope| {
        let (send, finished) = channel();
        for worker in 0..threads {
            let send = send.clone();
            let (parts, idle) = (&parts, &idle);
            let started = thread::spawn_scoped(scope, move || {
                // A panic must not leave the joining thread waiting.
                let worked = catch_unwind(AssertUnwindSafe(|| work(parts, idle, &send)));
                let worked = worked.unwrap_or_else(|_| Err(anyhow!("a thread failed")));
                if let Err(error) = worked {
                    let _ = send.send(Err(error));
                }
            });
            match started {
                Ok(_) => {}
                // Fewer threads take all parts, too.
                Err(_) if worker > 0 => break,
                Err(error) => return Err(error).context("no thread could be started"),
            }
        }
        drop(send);
        // Dropped at the end of this closure, also after an error; the workers stop then.
        let mut join = Join {
            give,
            out: Out {
                take,
                window: Vec::new(),
                made: 0,
                adler: 1,
                total,
            },
            at: ZLIB_HEADER,
            false_starts: 0,
        };
        join.all(finished)
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
    /// Reads the next part, into memory that is used again.
    fn read(&mut self, mut part: Vec<u8>) -> Result<Option<Arc<Vec<u8>>>> {
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

    fn take(&mut self, buffers: &mut PartBuffers) -> Result<Option<PartInput>> {
        let Some(part) = self.next.take() else {
            return Ok(None);
        };
        self.next = self.read(std::mem::take(&mut buffers.input))?;
        let job = PartInput {
            index: self.index,
            part,
            beyond: self.next.clone().unwrap_or_default(),
        };
        self.index += 1;
        Ok(Some(job))
    }
}

/// A part that a worker has finished.
struct Done {
    job: PartInput,
    /// Its bytes, if a start was found and they could be inflated.
    found: Option<InflatedPart>,
    buffers: PartBuffers,
}

/// A worker: inflates parts until there are no more, or the joining thread has ended.
fn work(
    parts: &Mutex<Parts<impl Input>>,
    idle: &Mutex<Receiver<PartBuffers>>,
    send: &Sender<Result<Done>>,
) -> Result<()> {
    loop {
        let mut jobs = Vec::with_capacity(AT_ONCE);
        let waiting = idle.lock().map_err(poisoned)?;
        // Buffers are taken before the part, so that the part that is needed next always has some.
        // The second are not waited for: they may come only when the first part is done.
        let mut free = waiting.recv().ok();
        while let Some(mut buffers) = free {
            match parts.lock().map_err(poisoned)?.take(&mut buffers)? {
                Some(job) => jobs.push((job, buffers)),
                None => break,
            }
            free = if jobs.len() < AT_ONCE {
                waiting.try_recv().ok()
            } else {
                None
            };
        }
        drop(waiting);
        if jobs.is_empty() {
            return Ok(());
        }
        let found = inflate(&mut jobs);
        for ((job, buffers), found) in jobs.into_iter().zip(found) {
            let done = Done {
                job,
                found,
                buffers,
            };
            if send.send(Ok(done)).is_err() {
                return Ok(());
            }
        }
    }
}

fn poisoned<T>(_: T) -> Error {
    anyhow!("another thread failed")
}

/// Inflates up to two parts. None stands for an error, which may mean no more than a false start.
fn inflate(jobs: &mut [(PartInput, PartBuffers)]) -> Vec<Option<InflatedPart>> {
    let mut runs: Vec<Option<PartInflater>> = Vec::with_capacity(AT_ONCE);
    for (job, buffers) in jobs {
        runs.push(match job.index {
            0 => Some(PartInflater::new(job, ZLIB_HEADER, Some(&[]), buffers)),
            _ => find_block(&job.part, 0)
                .map(|bit| PartInflater::new(job, job.start() + bit as u64, None, buffers)),
        });
    }
    match &mut runs[..] {
        [one @ Some(_), two @ Some(_)] => {
            let pair = one.take().zip(two.take());
            let found = pair.map(|(one, two)| PartInflater::both([one, two]));
            found.into_iter().flatten().map(Result::ok).collect()
        }
        _ => runs
            .into_iter()
            .map(|run| run.and_then(|run| run.all().ok()))
            .collect(),
    }
}

/// The thread that joins the parts.
struct Join<F> {
    give: Sender<PartBuffers>,
    out: Out<F>,
    /// The bit of the stream up to which the parts are joined.
    at: u64,
    false_starts: usize,
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

    /// Joins the next part; returns whether it was the last.
    fn one(&mut self, done: Done) -> Result<bool> {
        let Done {
            job,
            found,
            mut buffers,
        } = done;
        let out = &mut self.out;
        let part = match found {
            Some(part) if part.start == self.at => {
                let bytes = part.resolved(&buffers, &out.window)?;
                out.hand_on(&bytes, simd_adler32::adler32(&&bytes[..]))?;
                out.hand_on(part.plain(&buffers), part.adler)?;
                part
            }
            // A block of the part before covers all of this one.
            _ if self.at >= job.end() => {
                self.give_back(job, buffers);
                return Ok(false);
            }
            _ => {
                self.false_starts += 1;
                ensure!(
                    self.false_starts <= FALSE_STARTS + job.index / 2,
                    "blocks cannot be found"
                );
                let window = out.window.clone();
                PartInflater::new(&job, self.at, Some(&window), &mut buffers)
                    .hand_on(|bytes| out.hand_on(bytes, simd_adler32::adler32(&bytes)))?
            }
        };
        self.give_back(job, buffers);
        self.at = part.end;
        if let Some(stated) = part.stated {
            let out = &self.out;
            ensure!(out.made == out.total, "the image data are too short");
            ensure!(out.adler == stated, "wrong Adler-32");
        }
        Ok(part.stated.is_some())
    }
}

impl<F> Join<F> {
    /// Gives a worker the memory of a part that is done. The part before is done, too, so that nobody else has this one.
    fn give_back(&self, job: PartInput, mut buffers: PartBuffers) {
        buffers.input = Arc::into_inner(job.part).unwrap_or_default();
        // The workers may have ended.
        let _ = self.give.send(buffers);
    }
}

/// The receiver of inflated bytes.
struct Out<F> {
    take: F,
    /// The last inflated bytes, up to 32 KiB.
    window: Vec<u8>,
    /// Bytes so far, their Adler-32, and how many there must be.
    made: usize,
    adler: u32,
    total: usize,
}

impl<F: FnMut(&[u8]) -> Result<()>> Out<F> {
    fn hand_on(&mut self, bytes: &[u8], adler: u32) -> Result<()> {
        ensure!(
            bytes.len() <= self.total - self.made,
            "the image data are too long"
        );
        (self.take)(bytes)?;
        self.adler = combine(self.adler, adler, bytes.len());
        self.made += bytes.len();
        let last = &bytes[bytes.len().saturating_sub(WINDOW)..];
        let surplus = (self.window.len() + last.len()).saturating_sub(WINDOW);
        self.window.drain(..surplus);
        self.window.extend_from_slice(last);
        Ok(())
    }
}
