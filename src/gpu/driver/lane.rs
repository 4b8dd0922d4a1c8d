//! A stream that runs one set after the other (`sets.rs`).

use super::arguments::Packed;
use super::clock::{Anchor, EventPool, elapsed};
use super::commands::{Command, Outcome, Span, Submission, Work};
use super::error::{bind, in_words};
use super::kernel::{Grid, RawKernel};
use anyhow::{Context, Result};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaStream, sys};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use std::{ptr, vec};

/// Bytes of the parameter of a kernel for several images: the limit for `Set` in kernels/launch.py.
const SET_BYTES: usize = 4096;

/// A stream, and the set that it runs.
pub(super) struct Lane {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// The images of the set; none if the stream is free.
    images: Vec<Image>,
    /// The events before and after the timed work of the set.
    pairs: Vec<(CudaEvent, CudaEvent)>,
    /// Launches and copies of the set.
    calls: u64,
}

/// An image of a set.
struct Image {
    commands: vec::IntoIter<Command>,
    anchor: Anchor,
    answer: Sender<Outcome>,
    timed: Vec<Timed>,
    error: Option<String>,
}

/// Work of an image whose time is wanted.
struct Timed {
    stage: usize,
    /// The index of the pair of events around it.
    pair: usize,
    /// The blocks of other images before it in the same launch, its own, and those of all.
    blocks: [u32; 3],
}

/// A launch of one image.
struct Part {
    image: usize,
    blocks: u32,
    arguments: Packed,
    stage: Option<usize>,
}

impl Lane {
    /// A free stream.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Lane> {
        Ok(Lane {
            context: context.clone(),
            stream: context.new_stream().map_err(in_words)?,
            images: Vec::new(),
            pairs: Vec::new(),
            calls: 0,
        })
    }

    /// Whether it has no set.
    pub(super) fn is_free(&self) -> bool {
        self.images.is_empty()
    }

    /// The outcome of its set, if it has one that is done.
    pub(super) fn outcome(&self) -> Option<Result<()>> {
        if self.is_free() {
            return None;
        }
        // SAFETY: the stream is live.
        match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => None,
            // What was queued uses the images' memory until the stream has ended. If waiting fails too, the context is dead, and
            // its work has ended.
            state => Some(state.result().map_err(|error| {
                let _ = self.stream.synchronize();
                in_words(error)
            })),
        }
    }

    /// Queues all commands of a set. Returns the number of launches and copies for that.
    pub(super) fn begin(&mut self, set: Vec<Submission>, events: &mut EventPool) -> u64 {
        self.images = set.into_iter().map(Image::new).collect();
        self.calls = 0;
        if let Err(error) = bind(&self.context) {
            let fail = |image: &mut Image| image.fail(format!("{error:#}"));
            self.images.iter_mut().for_each(fail);
        }
        while let Some(first) = self.longest() {
            self.run_next(first, events);
        }
        self.calls
    }

    /// Tells the workers of the set, which is done, and frees the stream.
    pub(super) fn end(&mut self, outcome: Result<()>, events: &mut EventPool) {
        let times = outcome.and_then(|()| self.times());
        for image in self.images.drain(..) {
            let outcome = match (image.error, &times) {
                (Some(error), _) => Err(error),
                (None, Err(error)) => Err(format!("{error:#}")),
                (None, Ok(times)) => {
                    Ok(image.timed.iter().filter_map(|it| it.span(times)).collect())
                }
            };
            // A worker that has gone needs no answer.
            let _ = image.answer.send(outcome);
        }
        for (before, after) in self.pairs.drain(..) {
            events.keep(before);
            events.keep(after);
        }
    }

    /// The start of the work between each pair of events, and its time.
    fn times(&self) -> Result<Vec<(Instant, Duration)>> {
        // All images have the clock anchor of their GPU.
        let anchor = self.images.iter().find_map(|image| image.anchor.get());
        let Some((origin, origin_event)) = anchor else {
            return Ok(Vec::new());
        };
        let time = |(before, after): &(CudaEvent, CudaEvent)| {
            let start = *origin + elapsed(origin_event, before)?;
            Ok((start, elapsed(before, after)?))
        };
        self.pairs.iter().map(time).collect()
    }

    /// The image with the most commands left. It decides what is launched next, since the others can catch up with it.
    fn longest(&self) -> Option<usize> {
        let left = |index: &usize| self.images[*index].commands.len();
        let indices = (0..self.images.len()).filter(|index| left(index) > 0);
        indices.max_by_key(left)
    }

    /// Queues the next command of image `first`, and the same kernel of all images that have come to it.
    fn run_next(&mut self, first: usize, events: &mut EventPool) {
        let Some(Command { work, stage }) = self.images[first].commands.next() else {
            return;
        };
        match work {
            Work::Copy(copy) => {
                let stream = self.stream.cu_stream();
                // SAFETY: the worker keeps the memory until it knows the outcome.
                let queued = self.timed(stage.is_some(), events, |_| unsafe { copy.queue(stream) });
                match queued.and_then(|(copied, pair)| copied.map(|()| pair)) {
                    Ok(pair) => self.images[first].note_time(stage, pair, [0, 1, 1]),
                    Err(error) => self.images[first].fail(format!("{error:#}")),
                }
            }
            Work::Launch {
                kernel,
                grid,
                arguments,
            } => {
                let mut parts = vec![Part {
                    image: first,
                    blocks: grid.blocks[0],
                    arguments,
                    stage,
                }];
                if kernel.set.is_some() && grid.blocks[1] == 1 {
                    let others = self.images.iter_mut().enumerate();
                    let others = others.filter(|(index, _)| *index != first);
                    parts.extend(
                        others.filter_map(|(index, it)| it.take_launch(index, &kernel, &grid)),
                    );
                }
                let most = kernel.set.as_ref().map_or(1, |set| set.images as usize);
                while !parts.is_empty() {
                    let rest = parts.split_off(parts.len().min(most));
                    self.launch(&kernel, &grid, parts, events);
                    parts = rest;
                }
            }
        }
    }

    /// Launches a kernel for several images.
    fn launch(
        &mut self,
        kernel: &RawKernel,
        grid: &Grid,
        parts: Vec<Part>,
        events: &mut EventPool,
    ) {
        let is_timed = parts.iter().any(|part| part.stage.is_some());
        let launched = self.timed(is_timed, events, |lane| {
            lane.launch_parts(kernel, grid, &parts)
        });
        let all = parts.iter().map(|part| part.blocks).sum();
        let mut before = 0;
        for (index, part) in parts.iter().enumerate() {
            let image = &mut self.images[part.image];
            match &launched {
                Ok((outcomes, pair)) => match &outcomes[index] {
                    Ok(()) => image.note_time(part.stage, *pair, [before, part.blocks, all]),
                    Err(error) => image.fail(format!("{}: {error:#}", kernel.name)),
                },
                Err(error) => image.fail(format!("{}: {error:#}", kernel.name)),
            }
            before += part.blocks;
        }
    }

    /// Launches a kernel once for all parts. If the driver refuses, it launches the kernel for each part alone, so that one image
    /// does not fail with another. Returns the outcome of each part.
    fn launch_parts(&self, kernel: &RawKernel, grid: &Grid, parts: &[Part]) -> Vec<Result<()>> {
        if parts.len() > 1 && self.launch_set(kernel, grid, parts).is_ok() {
            return parts.iter().map(|_| Ok(())).collect();
        }
        let alone = parts.iter().map(|part| self.launch_one(kernel, grid, part));
        alone.collect()
    }

    fn launch_one(&self, kernel: &RawKernel, grid: &Grid, part: &Part) -> Result<()> {
        let mut pointers = part.arguments.pointers();
        // SAFETY: the arguments are those of the kernel, and were checked when they were recorded (`Gpu::queue`). The worker keeps
        // their memory until it knows the outcome.
        unsafe { self.call(&kernel.function, grid.blocks, grid.threads, &mut pointers) }
    }

    fn launch_set(&self, kernel: &RawKernel, grid: &Grid, parts: &[Part]) -> Result<()> {
        let set = kernel
            .set
            .as_ref()
            .context("internal error: no kernel of sets")?;
        let mut table = [0_u64; SET_BYTES / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut table);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let arguments_from = (4 * (set.images as usize + 2)).next_multiple_of(8);
        let mut first = 0_u32;
        put(0, &(parts.len() as u32).to_ne_bytes());
        for (index, part) in parts.iter().enumerate() {
            let arguments = &part.arguments.bytes;
            put(arguments_from + index * arguments.len(), arguments);
            first = first.checked_add(part.blocks).context("too many blocks")?;
            put(4 * (index + 2), &first.to_ne_bytes());
        }
        let mut pointers = [table.as_mut_ptr().cast::<c_void>()];
        // SAFETY: as in `launch_one`, for each image of the table, which has the layout of the kernel's `Set`: kernels/launch.py
        // counts the images that it holds.
        unsafe { self.call(&set.function, [first, 1], grid.threads, &mut pointers) }
    }

    /// Launches a function.
    ///
    /// # Safety
    /// The arguments are those of the function, and their memory is there until it has run.
    unsafe fn call(
        &self,
        function: &CudaFunction,
        [x, y]: [u32; 2],
        [across, down]: [u32; 2],
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let (stream, arguments) = (self.stream.cu_stream(), arguments.as_mut_ptr());
        let function = function.cu_function();
        let none = ptr::null_mut();
        // SAFETY: the caller's.
        let launched = unsafe {
            sys::cuLaunchKernel(
                function, x, y, 1, across, down, 1, 0, stream, arguments, none,
            )
        };
        launched.result().map_err(in_words)
    }

    /// Queues work, between two events if its time is wanted. Returns the result of `queue`, and the index of the pair of events.
    ///
    /// # Errors
    /// An event cannot be recorded. The work may have been queued.
    fn timed<R>(
        &mut self,
        is_wanted: bool,
        events: &mut EventPool,
        queue: impl FnOnce(&Lane) -> R,
    ) -> Result<(R, usize)> {
        self.calls += 1;
        if !is_wanted {
            return Ok((queue(self), 0));
        }
        let before = events.record(&self.stream)?;
        let queued = queue(self);
        self.pairs.push((before, events.record(&self.stream)?));
        Ok((queued, self.pairs.len() - 1))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Queued work may still use the memory of images, whose workers go on once their answers are dropped.
        let _ = self.stream.synchronize();
    }
}

impl Image {
    fn new(submission: Submission) -> Image {
        let Submission {
            commands,
            kind: _,
            anchor,
            answer,
        } = submission;
        Image {
            commands: commands.into_iter(),
            anchor,
            answer,
            timed: Vec::new(),
            error: None,
        }
    }

    /// The image's next command, if it launches this kernel with blocks of the same shape.
    fn take_launch(&mut self, image: usize, same: &RawKernel, shape: &Grid) -> Option<Part> {
        let next = self.commands.as_slice().first()?;
        let Work::Launch { kernel, grid, .. } = &next.work else {
            return None;
        };
        if !kernel.is(same) || grid.threads != shape.threads || grid.blocks[1] != 1 {
            return None;
        }
        let blocks = grid.blocks[0];
        match self.commands.next()? {
            Command {
                work: Work::Launch { arguments, .. },
                stage,
            } => Some(Part {
                image,
                blocks,
                arguments,
                stage,
            }),
            Command { .. } => None,
        }
    }

    /// Notes the events around work whose time is wanted.
    fn note_time(&mut self, stage: Option<usize>, pair: usize, blocks: [u32; 3]) {
        self.timed.extend(stage.map(|stage| Timed {
            stage,
            pair,
            blocks,
        }));
    }

    /// Gives up the image: its other commands are not run.
    fn fail(&mut self, error: String) {
        self.commands = Vec::new().into_iter();
        self.error = Some(error);
    }
}

impl Timed {
    /// The time of the work, from those between the pairs of events. Images that share a launch share its time by their numbers of
    /// blocks.
    fn span(&self, times: &[(Instant, Duration)]) -> Option<Span> {
        let &(start, whole) = times.get(self.pair)?;
        let [earlier, own, all] = self.blocks.map(f64::from);
        Some(Span {
            stage: self.stage,
            start: start + whole.mul_f64(earlier / all),
            time: whole.mul_f64(own / all),
        })
    }
}
