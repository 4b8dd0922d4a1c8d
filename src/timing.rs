//! The time of each stage: spans in the order of their start, with bytes, GB/s, and the share of
//! the peak rate of the resource that they use; as text and as one JSON object.

pub(crate) mod html;
mod latency;
pub mod page;
mod report;
mod totals;

use crate::os::Traffic;
pub use latency::{Latencies, Watched};
pub use report::{FileCounts, Report, Track};
use serde::Serialize;
use std::ops::Add;
use std::time::{Duration, Instant};

/// The resource that limits a span, and so the peak that its rate is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The host: processor, memory, disk. Their peaks cannot be read, so none is shown.
    Host,
    /// The link between host and GPU.
    Pcie,
    /// The GPU's device memory.
    DeviceMemory,
}

/// The name of the stage in which a GPU is started.
pub const START: &str = "device start";

/// What the names of stages begin with in the pass that measures the range of a stack.
const MEASURING: &str = "measure ";

/// One stage of the processing of an image.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name: `read`, `decode`, `upload`, a kernel's name, …; with `measure` before it in the pass
    /// that measures the range of a stack.
    pub name: String,
    /// The page that it processed, counted from 1 in the file; `None` outside a file.
    pub page: Option<usize>,
    /// Its start, counted from the timeline's origin.
    pub start: Duration,
    /// Its duration; for copies and kernels on the GPU's own clock (CUDA events).
    pub time: Duration,
    /// Additional time, counted in another span, during which this one may have run concurrently.
    pub beside: Duration,
    /// Bytes that it had to move: read plus written for a kernel, payload for a copy or a file.
    pub bytes: u64,
    /// The resource whose peak its rate is compared with.
    pub limit: Limit,
}

impl Span {
    /// GB/s over all the time in which it may have run. `None` if nothing measurable was moved.
    fn rate(&self) -> Option<f64> {
        rate(self.bytes, self.time + self.beside)
    }

    /// Its name without the pass.
    fn bare(&self) -> &str {
        self.name.strip_prefix(MEASURING).unwrap_or(&self.name)
    }
}

/// GB/s: 10⁹ bytes per second; `None` if nothing measurable was moved.
fn rate(bytes: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds / 1e9)
}

/// Whether `beside` is so much of the time in which a stage may have run that its rate is only a lower bound.
fn is_lower_bound(time: Duration, beside: Duration) -> bool {
    beside > (time + beside) / 20
}

/// A rate as tables have it, and a remark on it: a stage that may also have run during file I/O, whose time is another
/// stage's, had at least this rate.
fn rate_text(rate: Option<f64>, time: Duration, beside: Duration) -> (String, String) {
    match rate {
        Some(rate) if is_lower_bound(time, beside) => (
            format!("≥ {rate:.2}"),
            format!("with up to {} more during file I/O", millis(beside)),
        ),
        Some(rate) => (format!("{rate:.2}"), String::new()),
        None => Default::default(),
    }
}

/// The sets of images on which the GPUs of a batch worked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SetCounts {
    /// How many sets there were.
    pub sets: u64,
    /// The images of all sets. An image counts in each set that worked on it.
    pub images: u64,
    /// Launches and copies of all sets.
    pub calls: u64,
}

impl Add for SetCounts {
    type Output = SetCounts;

    fn add(self, other: SetCounts) -> SetCounts {
        SetCounts {
            sets: self.sets + other.sets,
            images: self.images + other.images,
            calls: self.calls + other.calls,
        }
    }
}

/// The theoretical peaks of a GPU, from the properties that it reports.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    /// Device memory in GB/s: memory clock × 2 × bus width.
    pub memory: Option<f64>,
    /// The PCIe link in one direction, in GB/s, and its description: generation × lanes.
    pub pcie: Option<(f64, String)>,
}

impl Peaks {
    fn ceiling(&self, limit: Limit) -> Option<(f64, String)> {
        match limit {
            Limit::Host => None,
            Limit::Pcie => self.pcie.clone(),
            Limit::DeviceMemory => self.memory.map(|peak| (peak, "device memory".into())),
        }
    }
}

/// The spans of one image, and the peaks that they are compared with.
#[derive(Clone, Debug)]
pub struct Timeline {
    origin: Instant,
    spans: Vec<Span>,
    /// Whether copies and kernels on a GPU are timed too. That takes four calls of the driver for
    /// each, so it is left out where nobody reads the times.
    pub gpu_times: bool,
    /// The page that is processed, counted from 1.
    pub page: Option<usize>,
    /// Whether the range of a stack is being measured.
    pub measuring: bool,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::starting(Instant::now())
    }
}

impl Timeline {
    /// An empty timeline whose clock starts at `origin`.
    pub fn starting(origin: Instant) -> Timeline {
        Timeline {
            origin,
            spans: Vec::new(),
            gpu_times: true,
            page: None,
            measuring: false,
        }
    }

    /// Runs `work` on the host and records it as a span that moves `bytes`.
    pub fn host<T>(&mut self, name: &str, bytes: u64, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.push(name, start, start.elapsed(), bytes, Limit::Host);
        result
    }

    /// Adds a span that was measured elsewhere.
    pub fn push(&mut self, name: &str, start: Instant, time: Duration, bytes: u64, limit: Limit) {
        let start = start.saturating_duration_since(self.origin);
        let beside = Duration::ZERO;
        self.spans.push(Span {
            name: self.name(name),
            page: self.page,
            start,
            time,
            beside,
            bytes,
            limit,
        });
    }

    /// The name of a span that begins now.
    fn name(&self, name: &str) -> String {
        if self.measuring && name != START {
            format!("{MEASURING}{name}")
        } else {
            name.into()
        }
    }

    /// Records a decoder that read a file and gave `bytes` of samples. Reading and decoding alternate: `read` gets the time of
    /// the system calls, `decode` the rest.
    pub fn decoded(&mut self, clock: CodecClock, bytes: u64, file: &Traffic) {
        self.record_reading("decode", clock, bytes, file);
    }

    /// Records the reading and checking of `bytes` of a file's compressed data, which a GPU decodes.
    pub fn packed(&mut self, clock: CodecClock, bytes: u64, file: &Traffic) {
        self.record_reading("check", clock, bytes, file);
    }

    fn record_reading(&mut self, name: &str, clock: CodecClock, bytes: u64, file: &Traffic) {
        let calls = file.time().min(clock.time);
        self.push("read", clock.start(), calls, file.bytes(), Limit::Host);
        self.push_codec(name, clock, bytes, calls);
    }

    /// Records an encoder of `bytes` of samples likewise: `encode` and `write`.
    pub fn encoded(&mut self, clock: CodecClock, bytes: u64, file: &Traffic) {
        let calls = file.time().min(clock.time);
        self.push_codec("encode", clock, bytes, calls);
        self.push("write", clock.start(), calls, file.bytes(), Limit::Host);
    }

    fn push_codec(&mut self, name: &str, clock: CodecClock, bytes: u64, beside: Duration) {
        let own = clock.time.saturating_sub(beside);
        self.push(name, clock.start(), own, bytes, Limit::Host);
        if let Some(span) = self.spans.last_mut() {
            span.beside = beside;
        }
    }

    /// Adds the spans of concurrent timelines: spans of the same name become one, whose time is
    /// that in which at least one of them ran.
    pub fn join(&mut self, beside: &[Timeline]) {
        let mut joined: Vec<(Span, Stretches)> = Vec::new();
        for timeline in beside {
            for span in &timeline.spans {
                let began = timeline.began(span);
                let start = began.saturating_duration_since(self.origin);
                let same = |(known, _): &(Span, _)| known.name == span.name;
                let index = joined.iter().position(same).unwrap_or_else(|| {
                    let first = Span {
                        start,
                        bytes: 0,
                        ..span.clone()
                    };
                    joined.push((first, Stretches::default()));
                    joined.len() - 1
                });
                let (known, stretches) = &mut joined[index];
                known.start = known.start.min(start);
                known.bytes += span.bytes;
                stretches.add(began, span.time);
            }
        }
        for (span, stretches) in joined {
            let time = stretches.time();
            self.spans.push(Span {
                name: self.name(&span.name),
                page: self.page,
                time,
                ..span
            });
        }
    }

    /// The instant when one of its spans began.
    pub fn began(&self, span: &Span) -> Instant {
        self.origin + span.start
    }

    /// The spans, in the order they began.
    pub fn spans(&self) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| span.start);
        spans
    }

    /// Time since the timeline's origin.
    pub fn wall(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// The clock of a decoder or an encoder. It runs during `run` alone, so no other stage's time is counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodecClock {
    time: Duration,
    /// When it stopped last.
    stopped: Option<Instant>,
}

impl CodecClock {
    /// Runs the decoder or the encoder.
    pub fn run<R>(&mut self, codec: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = codec();
        let stopped = Instant::now();
        self.time += stopped - start;
        self.stopped = Some(stopped);
        result
    }

    /// The time that it has run.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The start of a span of its time that ends where it stopped last.
    fn start(&self) -> Instant {
        let stopped = self.stopped.unwrap_or_else(Instant::now);
        stopped.checked_sub(self.time).unwrap_or(stopped)
    }
}

/// The clocks of work on the bands of an image. Each band is processed and encoded as soon as it is decoded.
#[derive(Default)]
pub struct BandClock {
    /// The encoder's clock.
    pub encoder: CodecClock,
    /// The time in which the decoder waited for the work on a band.
    decoder_waited: Duration,
    timelines: Vec<Timeline>,
}

impl BandClock {
    /// The clock of the bands after an encoder has begun.
    pub fn new(encoder: CodecClock) -> BandClock {
        BandClock {
            encoder,
            ..BandClock::default()
        }
    }

    /// Processes a band that was just decoded.
    pub fn process<R>(&mut self, work: impl FnOnce(&mut Timeline) -> R) -> R {
        let (start, mut timeline) = (Instant::now(), Timeline::default());
        let result = work(&mut timeline);
        self.decoder_waited += start.elapsed();
        self.timelines.push(timeline);
        result
    }

    /// Encodes a band that was just processed.
    pub fn encode<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = self.encoder.run(work);
        self.decoder_waited += start.elapsed();
        result
    }

    /// Records the decoder, whose clock ran over all bands and which gave `bytes` of samples, and the work on the bands.
    /// The encoder is recorded when its file is complete.
    pub fn record(
        &self,
        mut decoder: CodecClock,
        timeline: &mut Timeline,
        bytes: u64,
        file: &Traffic,
    ) {
        decoder.time = decoder.time.saturating_sub(self.decoder_waited);
        timeline.decoded(decoder, bytes, file);
        timeline.join(&self.timelines);
    }
}

/// The most intervals that are kept apart.
const MOST_STRETCHES: usize = 1 << 16;

/// A set of time intervals, which may overlap.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    ends: Vec<(Instant, Instant)>,
    /// The time of intervals that are long past, which no later one overlaps.
    past: Duration,
    /// The number of intervals after overlapping ones were last merged.
    tidied: usize,
}

impl Stretches {
    /// Adds an interval.
    pub fn add(&mut self, start: Instant, time: Duration) {
        self.ends.push((start, start + time));
        if self.ends.len() > 2 * self.tidied + 1024 {
            self.ends = self.apart();
            // So that a run of days needs no more memory than one of hours.
            if self.ends.len() > MOST_STRETCHES {
                let past = self.ends.drain(..MOST_STRETCHES / 2);
                self.past += past.map(|(start, end)| end - start).sum::<Duration>();
            }
            self.tidied = self.ends.len();
        }
    }

    /// The same set without overlaps.
    fn apart(&self) -> Vec<(Instant, Instant)> {
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        ends.dedup_by(|next, last| {
            let touch = next.0 <= last.1;
            if touch {
                last.1 = last.1.max(next.1);
            }
            touch
        });
        ends
    }

    /// The total time covered by at least one interval.
    pub fn time(&self) -> Duration {
        let near = self.apart();
        self.past
            + near
                .iter()
                .map(|(start, end)| *end - *start)
                .sum::<Duration>()
    }
}

/// A time in milliseconds, as the JSON objects have it.
pub fn in_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A time in milliseconds, with more digits the shorter it is.
pub fn millis(time: Duration) -> String {
    let ms = in_millis(time);
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 1.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.4} ms"),
    }
}

/// A time in seconds: 0.25 s. Less than a tenth is in milliseconds.
fn seconds(time: Duration) -> String {
    if time < Duration::from_millis(100) {
        return millis(time);
    }
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock ran on from the decoder to the next call of a codec, until somebody started it again by hand.
    #[test]
    fn the_time_between_two_calls_of_a_codec_was_booked_to_it() {
        let mut clock = CodecClock::default();
        let inside = clock.run(|| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(2) {}
            start.elapsed()
        });
        let time = clock.time();
        assert!(time >= inside);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(2) {}
        assert_eq!(clock.time(), time);
        let mut bands = BandClock::default();
        let waited = Duration::from_millis(1);
        bands.decoder_waited = waited;
        let mut timeline = Timeline::default();
        bands.record(clock, &mut timeline, 7, &Traffic::default());
        let spans = timeline.spans();
        let decode = spans.iter().find(|span| span.name == "decode");
        assert_eq!(decode.expect("a span").time, time - waited);
    }

    #[test]
    fn what_ran_side_by_side_counts_once() {
        let ms = Duration::from_millis;
        let origin = Instant::now();
        let mut all = Timeline::starting(origin);
        all.push("copy", origin, ms(100), 1, Limit::Host);
        let beside = [(0, 10), (5, 20), (30, 40)].map(|(from, to)| {
            // Each timeline has its own origin.
            let mut timeline = Timeline::starting(origin + ms(3));
            timeline.push("copy", origin + ms(3 + from), ms(to - from), 7, Limit::Host);
            timeline
        });
        all.join(&beside);
        let found = all.spans();
        assert_eq!(found.len(), 2);
        let joined = found[1];
        assert_eq!(
            (joined.start, joined.time, joined.bytes),
            (ms(3), ms(30), 21)
        );
    }
}
