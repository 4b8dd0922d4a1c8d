//! Inflating one stream of any origin on many cores.
//!
//! The compressed data are cut into parts. A thread looks for the first block that starts in its
//! part and inflates from there to the first block that starts in the next part, with markers for
//! what it cannot know. In the order of the stream, one thread then joins the parts: where a part
//! starts as the one before ended, its markers are looked up; where not, its start was an illusion,
//! and the part is inflated anew from the right place. (The method of rapidgzip: Knespel and Brunst,
//! HPDC 2023.)

use super::data::ImageData;
use super::finder::find_block;
use super::inflate::{HISTORY, is_zlib};
use super::part::{Buffers, Inflated, Job, PART, Run};
use crate::codec::png::adler::joined;
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Parts that a worker inflates at once.
const AT_ONCE: usize = 2;

/// Parts whose start may turn out an illusion, or that have none, before all is left to one thread;
/// for each of these, as many others must have been right.
const ILLUSIONS: usize = 4;

/// The bit of the stream at which the first block starts.
const ZLIB_HEADER: u64 = 16;

/// Whether a stream of so many bytes can gain from this; one that is hardly compressed cannot.
pub fn is_worth(compressed: u64, inflated: usize, threads: usize) -> bool {
    let inflated = inflated as u64;
    threads > 1
        && compressed > 2 * (threads.min(4) * PART) as u64
        && compressed < inflated / 16 * 15
        && inflated < 6 * compressed
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
    for _ in 0..AT_ONCE * (threads + 2) {
        let _ = give.send(Buffers::default());
    }
    let idle = Mutex::new(idle);
    thread::scope(|scope| {
        let (send, finished) = channel();
        for seat in 0..threads {
            let send = send.clone();
            let (parts, idle) = (&parts, &idle);
            let seated = thread::Builder::new().spawn_scoped(scope, move || {
                // A panic must not leave the joining thread waiting.
                let worked = catch_unwind(AssertUnwindSafe(|| work(parts, idle, &send)));
                let worked = worked.unwrap_or_else(|_| Err(anyhow!("a thread failed")));
                if let Err(error) = worked {
                    let _ = send.send(Err(error));
                }
            });
            match seated {
                Ok(_) => {}
                // Fewer threads take all parts, too.
                Err(_) if seat > 0 => break,
                Err(error) => return Err(error).context("no thread could be started"),
            }
        }
        drop(send);
        // Dropped at the end of this closure, also after an error: then the workers stop.
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
            illusions: 0,
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

/// A part that a worker is done with.
struct Done {
    job: Job,
    /// What it became, if a start was found.
    found: Option<Inflated>,
    buffers: Buffers,
}

/// Inflates parts until there are no more, or nobody waits for them.
fn work(
    parts: &Mutex<Parts>,
    idle: &Mutex<Receiver<Buffers>>,
    send: &Sender<Result<Done>>,
) -> Result<()> {
    loop {
        let mut jobs = Vec::with_capacity(AT_ONCE);
        let waiting = idle.lock().map_err(poisoned)?;
        // Buffers first, so that the part that is needed next always has some; and no waiting for
        // the second, which may come only when the first is done.
        let mut free = waiting.recv().ok();
        while let Some(buffers) = free {
            match parts.lock().map_err(poisoned)?.take()? {
                Some(job) => jobs.push((job, buffers)),
                None => break,
            }
            free = match jobs.len() < AT_ONCE {
                true => waiting.try_recv().ok(),
                false => None,
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

/// What parts become, where they do: an error may mean no more than that a start is an illusion.
fn inflate(jobs: &mut [(Job, Buffers)]) -> Vec<Option<Inflated>> {
    let mut runs: Vec<Option<Run>> = Vec::with_capacity(AT_ONCE);
    for (job, buffers) in jobs {
        runs.push(match job.index {
            0 => Some(Run::new(job, ZLIB_HEADER, Some(&[]), buffers)),
            _ => find_block(&job.part, 0)
                .map(|bit| Run::new(job, job.start() + bit as u64, None, buffers)),
        });
    }
    match &mut runs[..] {
        [one @ Some(_), two @ Some(_)] => {
            let pair = one.take().zip(two.take());
            let found = pair.map(|(one, two)| Run::both([one, two]));
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
    give: Sender<Buffers>,
    out: Out<F>,
    /// The bit of the stream that is reached.
    at: u64,
    illusions: usize,
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
                let _ = self.give.send(buffers);
                return Ok(false);
            }
            _ => {
                self.illusions += 1;
                ensure!(
                    self.illusions <= ILLUSIONS + job.index / 2,
                    "blocks cannot be found"
                );
                let window = out.window.clone();
                Run::new(&job, self.at, Some(&window), &mut buffers)
                    .hand_on(|bytes| out.hand_on(bytes, simd_adler32::adler32(&bytes)))?
            }
        };
        let _ = self.give.send(buffers);
        self.at = part.end;
        if let Some(stated) = part.stated {
            ensure!(out.made == out.total, "the image data are too short");
            ensure!(out.adler == stated, "wrong Adler-32");
        }
        Ok(part.stated.is_some())
    }
}

/// Where inflated bytes go.
struct Out<F> {
    take: F,
    /// Up to 32 KiB before what comes next.
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
        self.adler = joined(self.adler, adler, bytes.len());
        self.made += bytes.len();
        let last = &bytes[bytes.len().saturating_sub(HISTORY)..];
        let surplus = (self.window.len() + last.len()).saturating_sub(HISTORY);
        self.window.drain(..surplus);
        self.window.extend_from_slice(last);
        Ok(())
    }
}
