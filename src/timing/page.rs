//! `--stats=FILE.html`: the timeline as one HTML page of boxes and text, without scripts or external
//! resources. It has a lane for each thread of the host, for the GPU's start, for its kernels, and for both
//! directions of the link.

use super::report::{Report, Track};
use super::{Limit, START, Span, in_millis, millis};
use crate::timing::html::{self, PageKind, escaped};
use anyhow::Result;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What every page begins with: a page that does not is not replaced.
const KIND: PageKind = PageKind {
    mark: "<!DOCTYPE html>\n<!-- gpuimg --stats -->",
    name: "a --stats page",
};

/// The most spans that are drawn; a browser is slow with more.
const MOST: usize = 20_000;

const STYLE: &str = include_str!("page.css");

/// A span with the file that it is of.
type Drawn<'a> = (&'a Track, &'a Span);

/// Says whether a span stands in a lane.
type Chosen<'a> = &'a dyn Fn(&Span) -> bool;

/// A row of the page.
struct Lane<'a> {
    name: String,
    spans: Vec<Drawn<'a>>,
}

/// Refuses a page that would replace another file.
///
/// # Errors
/// What to do instead.
pub fn check(path: &Path) -> Result<()> {
    KIND.check(path)
}

/// Writes the page of a finished run.
///
/// # Errors
/// A file that cannot be written.
pub fn write(report: &Report, path: &Path) -> Result<()> {
    KIND.write(path, &page(report))
}

fn page(report: &Report) -> String {
    let mut out = format!("{}\n{}", KIND.mark, html::head(&report.title, STYLE));
    for device in report.device_lines() {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escaped(&device));
    }
    let _ = writeln!(
        out,
        "<p>{}</p>\n<p class=\"soft\">\
         <span class=\"key file\"></span> files <span class=\"key code\"></span> decode, encode \
         <span class=\"key work\"></span> the operation <span class=\"key up\"></span> to the GPU \
         <span class=\"key down\"></span> from the GPU <span class=\"key idle\"></span> preparation. \
         Point at a box for its time and bytes.</p>",
        escaped(&report.sentence())
    );
    let (drawn, left_out) = drawn(&report.tracks);
    let lanes = lanes(&drawn);
    if let Some((zero, end)) = bounds(&drawn) {
        let whole = end.duration_since(zero).max(Duration::from_nanos(1));
        for lane in &lanes {
            row(&mut out, lane, zero, whole);
        }
        axis(&mut out, whole);
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"soft\">The last {left_out} files are not drawn; the table includes all files.</p>"
        );
    }
    table(&mut out, report);
    out.push_str("</body></html>\n");
    out
}

/// The files whose spans are drawn, and how many are left out.
fn drawn(tracks: &[Track]) -> (Vec<&Track>, usize) {
    let mut room = MOST;
    let drawn: Vec<&Track> = tracks
        .iter()
        .take_while(|track| {
            let needed = track.timeline.spans().len();
            let fits = needed <= room || room == MOST;
            room = room.saturating_sub(needed);
            fits
        })
        .collect();
    let left_out = tracks.len() - drawn.len();
    (drawn, left_out)
}

fn spans<'a>(tracks: &[&'a Track]) -> impl Iterator<Item = Drawn<'a>> {
    let mut drawn = Vec::new();
    for track in tracks {
        drawn.extend(
            track
                .timeline
                .spans()
                .into_iter()
                .map(|span| (*track, span)),
        );
    }
    drawn.into_iter()
}

/// The time of the first beginning and of the last end.
fn bounds(tracks: &[&Track]) -> Option<(Instant, Instant)> {
    let ends = |(track, span): Drawn| {
        let began = track.timeline.began(span);
        (began, began + span.time)
    };
    let both = |a: (Instant, Instant), b: (Instant, Instant)| (a.0.min(b.0), a.1.max(b.1));
    spans(tracks).map(ends).reduce(both)
}

/// The lanes: of the host's threads as many as files were processed at the same time.
fn lanes<'a>(tracks: &[&'a Track]) -> Vec<Lane<'a>> {
    let on_host = |span: &Span| span.limit == Limit::Host && span.name != START;
    let mut files: Vec<(Instant, Instant, &Track)> = tracks
        .iter()
        .filter_map(|track| {
            let (began, ended) = bounds(&[track])?;
            Some((began, ended, *track))
        })
        .collect();
    files.sort_by_key(|(began, ..)| *began);
    let mut threads: Vec<(Instant, Vec<Drawn>)> = Vec::new();
    for (began, ended, track) in files {
        let free = threads.iter().position(|(busy, _)| *busy <= began);
        let index = free.unwrap_or_else(|| {
            threads.push((began, Vec::new()));
            threads.len() - 1
        });
        let (busy, lane) = &mut threads[index];
        *busy = ended;
        lane.extend(spans(&[track]).filter(|(_, span)| on_host(span)));
    }
    let several = threads.len() > 1;
    let mut lanes: Vec<Lane> = (1..)
        .zip(threads)
        .map(|(number, (_, spans))| Lane {
            name: if several {
                format!("host, worker {number}")
            } else {
                "host".into()
            },
            spans,
        })
        .collect();
    let link =
        |span: &Span, direction| span.limit == Limit::Pcie && span.bare().starts_with(direction);
    let shared: [(&str, Chosen); 4] = [
        ("start of the GPU", &|span| span.name == START),
        ("host → GPU", &|span| link(span, "upload")),
        ("GPU kernels", &|span| span.limit == Limit::DeviceMemory),
        ("GPU → host", &|span| link(span, "download")),
    ];
    lanes.extend(shared.map(|(name, is_in)| Lane {
        name: name.into(),
        spans: spans(tracks).filter(|(_, span)| is_in(span)).collect(),
    }));
    lanes.retain(|lane| !lane.spans.is_empty());
    lanes
}

/// The colour of a span.
fn class(span: &Span) -> &'static str {
    match (span.limit, span.bare()) {
        (Limit::DeviceMemory, _) => "work",
        (Limit::Pcie, name) if name.starts_with("download") => "down",
        (Limit::Pcie, _) => "up",
        (Limit::Host, "read" | "write") => "file",
        (Limit::Host, "decode" | "encode" | "check") => "code",
        (Limit::Host, START | "pin" | "device memory" | "load kernels") => "idle",
        (Limit::Host, _) => "work",
    }
}

fn row(out: &mut String, lane: &Lane, zero: Instant, whole: Duration) {
    let _ = write!(
        out,
        "<div class=\"lane\"><div class=\"name\">{}</div><div class=\"track\">",
        lane.name
    );
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / whole.as_secs_f64();
    for (track, span) in &lane.spans {
        let began = track.timeline.began(span).duration_since(zero);
        let class = class(span);
        // Reading and writing alternate with the codec, in whose box they stand at the bottom.
        let beside = if class == "file" { " beside" } else { "" };
        let time = span.time
            + if class == "code" {
                span.beside
            } else {
                Duration::ZERO
            };
        let page = span
            .page
            .map_or(String::new(), |page| format!(", page {page}"));
        let rate = span
            .rate()
            .map_or(String::new(), |rate| format!(", {rate:.2} GB/s"));
        let wide = percent(time);
        let label = if wide > 6.0 && beside.is_empty() {
            span.name.as_str()
        } else {
            ""
        };
        let _ = write!(
            out,
            "<i class=\"{class}{beside}\" style=\"left:{:.3}%;width:{wide:.3}%\" title=\"{}: {}{page}: {} from {}{rate}\">{}</i>",
            percent(began),
            escaped(&span.name),
            escaped(&track.name),
            millis(span.time),
            millis(began),
            escaped(label)
        );
    }
    out.push_str("</div></div>\n");
}

/// Times below the lanes, at round steps.
fn axis(out: &mut String, whole: Duration) {
    let ms = in_millis(whole);
    let power = 10f64.powf((ms / 8.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = step.into_iter().find(|step| ms / step <= 8.0).unwrap_or(ms);
    out.push_str("<div class=\"lane\"><div class=\"name\"></div><div class=\"track axis\">");
    // The last one would stand outside.
    for tick in (0..9)
        .map(|index| f64::from(index) * step)
        .filter(|tick| tick / ms < 0.94)
    {
        let decimals = (-power.log10()).max(0.0) as usize;
        let _ = write!(
            out,
            "<b style=\"left:{:.3}%\">{tick:.decimals$} ms</b>",
            100.0 * tick / ms
        );
    }
    out.push_str("</div></div>\n");
}

fn table(out: &mut String, report: &Report) {
    out.push_str(
        "<div class=\"scroll\"><table><tr><th>stage</th><th>times</th><th>time</th><th>MB</th>\
         <th>GB/s</th></tr>\n",
    );
    for (name, count, time, bytes, rate) in report.totals.rows() {
        let rate = rate.map_or(String::new(), |rate| format!("{rate:.2}"));
        let bytes = if bytes > 0 {
            format!("{:.1}", bytes as f64 / 1e6)
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{count}</td><td>{}</td><td>{bytes}</td><td>{rate}</td></tr>",
            escaped(name),
            millis(time)
        );
    }
    let last = report.conclusion();
    let _ = write!(out, "</table></div>\n<p>{}</p>\n", escaped(last.trim_end()));
}
