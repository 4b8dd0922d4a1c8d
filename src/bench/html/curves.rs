//! Which rows are drawn as curves: a line for the rows whose ids begin alike, against the number
//! with which they end.

use super::svg::{Axis, Line, Style, chart};
use crate::bench::case::Row;
use crate::bench::report::Report;
use crate::bench::table::Table;

/// What is drawn upwards.
#[derive(Clone, Copy)]
enum Y {
    /// GB/s.
    Rate,
    /// The time in µs.
    Micros,
    /// GB/s at the time that the paper gives.
    Published,
}

/// The rows of a line: its name, how their ids begin and end, what is drawn, and by what the number
/// between is multiplied.
struct Series(&'static str, &'static str, &'static str, Y, f64);

/// A chart: its table, title, axes, and lines.
struct Curve {
    table: Table,
    title: &'static str,
    x: Axis<'static>,
    y: &'static str,
    series: &'static [Series],
}

const fn curve(
    table: Table,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    series: &'static [Series],
) -> Curve {
    let x = Axis {
        label: x,
        bytes: matches!(table, Table::Transfer),
        steps: false,
    };
    Curve {
        table,
        title,
        x,
        y,
        series,
    }
}

#[rustfmt::skip]
const CURVES: &[Curve] = &[
    curve(Table::Transfer, "Copies to the GPU", "bytes of a copy", "GB/s", &[
        Series("pageable, synchronous", "transfer/up-sync-", "", Y::Rate, 1.0),
        Series("pageable, asynchronous", "transfer/up-async-", "", Y::Rate, 1.0),
        Series("pinned", "transfer/up-pinned-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Transfer, "Copies to the host", "bytes of a copy", "GB/s", &[
        Series("pageable, synchronous", "transfer/down-sync-", "", Y::Rate, 1.0),
        Series("pageable, asynchronous", "transfer/down-async-", "", Y::Rate, 1.0),
        Series("pinned", "transfer/down-pinned-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Transfer, "Until an upload returns, behind 2 ms of work", "bytes of a copy", "µs", &[
        Series("synchronous", "transfer/returns-up-sync-", "", Y::Micros, 1.0),
        Series("asynchronous, pageable", "transfer/returns-up-async-", "", Y::Micros, 1.0),
    ]),
    curve(Table::Memory, "Rate against threads of a multiprocessor", "threads", "GB/s", &[
        Series("read, 4 bytes a thread", "memory/threads-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Memory, "Rate against the number of blocks", "blocks of 256 threads", "GB/s", &[
        Series("read, 16 bytes a thread", "memory/blocks-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Memory, "Rate against the number of multiprocessors", "multiprocessors that read", "GB/s", &[
        Series("read, 16 bytes a thread", "memory/multiprocessors-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Memory, "Rate against the width of accesses, one loop", "bytes of an access", "GB/s", &[
        Series("copy", "memory/copy-by-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Memory, "A warp's 32 words out of several lines", "lines of 128 bytes", "GB/s of useful bytes", &[
        Series("kept in the L1", "memory/scattered-l1-", "", Y::Rate, 1.0),
        Series("past the L1", "memory/scattered-l2-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Memory, "An array l[N] of each thread", "N", "GB/s", &[
        Series("in registers", "memory/local-registers-", "", Y::Rate, 1.0),
        Series("in local memory", "memory/local-spilled-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Threads, "Bank conflicts", "words from lane to lane", "µs", &[
        Series("reading shared memory", "threads/banks-", "", Y::Micros, 1.0),
    ]),
    curve(Table::Minmax, "Minimum and maximum after nested conditionals", "depth", "µs", &[
        Series("GPU filled", "minmax/nested-", "-filled", Y::Micros, 1.0),
    ]),
    curve(Table::Reduce, "Seven steps to a sum, and five more", "step", "GB/s", &[
        Series("here, 2²⁶ integers", "reduce/step-", "", Y::Rate, 1.0),
        Series("here, 2²² integers", "reduce/step-", "-paper", Y::Rate, 1.0),
        Series("more steps, 2²⁶ integers", "reduce/further-", "", Y::Rate, 1.0),
        Series("more steps, 2²² integers", "reduce/further-", "-paper", Y::Rate, 1.0),
        Series("published, 2²² integers, G80", "reduce/step-", "-paper", Y::Published, 1.0),
    ]),
    curve(Table::Reduce, "Step 6 by size of block", "threads of a block", "GB/s", &[
        Series("2²⁶ integers", "reduce/block-", "", Y::Rate, 1.0),
    ]),
    curve(Table::Production, "gpuimg's kernels by size of image", "pixels of 16 bits", "GB/s", &[
        Series("copy", "production/copy-", "", Y::Rate, 0.5),
        Series("scale", "production/scale-", "", Y::Rate, 1.0),
        Series("read", "production/read-", "", Y::Rate, 0.5),
        Series("minmax", "production/minmax-", "", Y::Rate, 1.0),
        Series("sum", "production/sum-", "", Y::Rate, 1.0),
        Series("normalize", "production/normalize-", "", Y::Rate, 1.0),
        Series("normalize in one launch", "production/fused-", "", Y::Rate, 1.0),
    ]),
];

/// A number at the end of an id: `64`, `64K`, `1M`.
fn parsed(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        'k' | 'K' => 1024.0,
        'M' => 1024.0 * 1024.0,
        _ => 1.0,
    };
    let number: f64 = text.trim_end_matches(['k', 'K', 'M']).parse().ok()?;
    Some(number * unit)
}

impl Series {
    fn line(&self, report: &Report) -> Line {
        let &Series(name, prefix, suffix, y, scale) = self;
        let point = |row: &Row| {
            let id = row.about.id.strip_prefix(prefix)?.strip_suffix(suffix)?;
            let x = match id {
                "large" => row.about.bytes as f64,
                _ => parsed(id)?,
            };
            let y = match y {
                // Calls are no rate of bytes.
                Y::Rate => row.rate().filter(|_| row.about.bytes > 0)?,
                Y::Micros => row.time()?.median * 1e6,
                Y::Published => row.published_rate()?,
            };
            Some((x * scale, y))
        };
        let mut points: Vec<(f64, f64)> = report.rows.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line {
            name: name.into(),
            points,
            labels: Vec::new(),
            style: match y {
                Y::Published => Style::Dashed,
                _ => Style::Solid,
            },
        }
    }
}

/// The charts of a table.
pub(super) fn charts(table: Table, report: &Report) -> Vec<String> {
    let mut charts: Vec<String> = CURVES
        .iter()
        .filter(|curve| curve.table == table)
        .filter_map(|curve| {
            let lines = curve.series.iter().map(|series| series.line(report));
            let lines: Vec<Line> = lines.collect();
            let y = Axis {
                label: curve.y,
                bytes: false,
                steps: false,
            };
            let drawn = lines.iter().any(|line| line.points.len() > 1);
            let x = Axis {
                steps: matches!(curve.x.label, "step" | "depth"),
                ..curve.x
            };
            drawn.then(|| chart(curve.title, &x, &y, &lines))
        })
        .collect();
    if table == Table::Threads {
        charts.extend(roofline(report));
    }
    charts
}

/// Operations for each byte that gpuimg's kernels move, counted from their definitions: two
/// comparisons or one addition for a sample of 16 bits; difference, product, sum and cut for one
/// that is read and written.
#[rustfmt::skip]
const KERNELS: [(&str, &str, f64); 4] = [
    ("reduce/production", "sum, 32 bits", 0.25),
    ("reduce/production-u16", "sum, 16 bits", 0.5),
    ("minmax/production", "minmax, scale", 1.0),
    ("normalize/production", "", 1.0),
];

/// The operations that the GPU does in a second against those for each byte, and gpuimg's kernels.
fn roofline(report: &Report) -> Option<String> {
    let rate = |id: &str| {
        let row = report.rows.iter().find(|row| row.about.id == id)?;
        row.rate()
    };
    let measured: Vec<(f64, f64)> = (0..9)
        .filter_map(|power| {
            let times = 1u32 << power;
            // A multiply-add is two operations, a word four bytes.
            let intensity = f64::from(times) / 2.0;
            Some((
                intensity,
                intensity * rate(&format!("threads/fma-{times}"))?,
            ))
        })
        .collect();
    let top = measured.iter().map(|point| point.1).fold(0.0, f64::max);
    let slope = rate("ceilings/read").or(measured.first().map(|point| point.1 / point.0))?;
    if measured.len() < 2 {
        return None;
    }
    let (first, last) = (0.25, 128.0);
    let ridge = (top / slope).clamp(first, last);
    let kernels: Vec<(f64, f64, &str)> = KERNELS
        .iter()
        .filter_map(|&(id, name, intensity)| Some((intensity, intensity * rate(id)?, name)))
        .collect();
    let line = |name: &str, points, style| Line {
        name: name.into(),
        points,
        labels: Vec::new(),
        style,
    };
    let roof = vec![(first, first * slope), (ridge, ridge * slope), (last, top)];
    let lines = [
        line(
            "measured: so many multiply-adds a word",
            measured,
            Style::Solid,
        ),
        line(
            "the memory's rate, and the most that was reached",
            roof,
            Style::Dashed,
        ),
        Line {
            name: "gpuimg's kernels, operations counted from their definitions".into(),
            points: kernels.iter().map(|kernel| (kernel.0, kernel.1)).collect(),
            labels: kernels.iter().map(|kernel| kernel.2.into()).collect(),
            style: Style::Dots,
        },
    ];
    let x = Axis {
        label: "operations for each byte",
        bytes: false,
        steps: false,
    };
    let y = Axis {
        label: "10⁹ operations/s",
        bytes: false,
        steps: false,
    };
    Some(chart("Arithmetic for each byte: roofline", &x, &y, &lines))
}
