//! Heat maps of sweeps over two numbers: here and in the paper, in the paper's unit, with the best
//! cell marked.

use crate::bench::report::Report;
use crate::bench::table::Table;
use crate::bench::transpose::shapes::PUBLISHED;
use crate::timing::html::escaped;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Numbers along x and y, and a time in ms.
type Cell = (u32, u32, f64);

/// The cells whose ids begin so, and end in `8x32`.
fn cells(report: &Report, prefix: &str) -> Vec<Cell> {
    let cell = |row: &crate::bench::case::Row| {
        let (x, y) = row.about.id.strip_prefix(prefix)?.split_once('x')?;
        let ms = row.time()?.median * 1e3;
        Some((x.parse().ok()?, y.parse().ok()?, ms))
    };
    report.rows.iter().filter_map(cell).collect()
}

/// The maps of a table; nothing if its sweeps were not run.
pub(super) fn charts(table: Table, report: &Report) -> String {
    let here = |prefix| cells(report, prefix);
    let quadro = PUBLISHED.map(|(x, y, quadro, _)| (x, y, quadro));
    let geforce = PUBLISHED.map(|(x, y, _, geforce)| (x, y, geforce));
    let (heading, maps) = match table {
        Table::Transpose => (
            "Variant 1 by shape of block, in ms: threads along x to the right, along y downwards",
            vec![
                ("here, 1024², as listed", here("transpose/naive-1024-")),
                ("Quadro, published, 1024²", quadro.to_vec()),
                ("GeForce 8800, published, 1024²", geforce.to_vec()),
                ("here, 8192², as listed", here("transpose/naive-8192-")),
                ("here, 1024², mirrored", here("transpose/mirrored-1024-")),
                ("here, 8192², mirrored", here("transpose/mirrored-8192-")),
            ],
        ),
        Table::Memory => (
            "A quarter of the input read, in ms: blocks to the right, threads of a block downwards (the paper's 160 × 96 is among them)",
            vec![("here", here("memory/launch-"))],
        ),
        _ => return String::new(),
    };
    if maps[0].1.is_empty() {
        return String::new();
    }
    let mut out = format!("<h3>{}</h3><div class=\"maps\">", escaped(heading));
    for (name, cells) in &maps {
        map(&mut out, name, cells);
    }
    out.push_str("</div>\n");
    out
}

fn map(out: &mut String, name: &str, cells: &[Cell]) {
    let times = || cells.iter().map(|cell| cell.2);
    let (best, worst) = (
        times().fold(f64::MAX, f64::min),
        times().fold(f64::MIN_POSITIVE, f64::max),
    );
    let (columns, rows): (BTreeSet<u32>, BTreeSet<u32>) =
        cells.iter().map(|cell| (cell.0, cell.1)).unzip();
    let _ = write!(
        out,
        "<div><h4>{}</h4><div class=\"scroll\"><table class=\"map\"><tr><th></th>",
        escaped(name)
    );
    for x in &columns {
        let _ = write!(out, "<th>{x}</th>");
    }
    for y in &rows {
        let _ = write!(out, "</tr>\n<tr><th>{y}</th>");
        for x in &columns {
            let Some(cell) = cells.iter().find(|cell| (cell.0, cell.1) == (*x, *y)) else {
                out.push_str("<td></td>");
                continue;
            };
            // From dark, the best, to pale, the worst, by the ratio of times; the text changes with
            // the background, to stay readable.
            let part = (cell.2 / best).ln() / (worst / best).ln().max(1e-9);
            let light = 32.0 + 60.0 * part;
            let ink = if light < 58.0 { "#fff" } else { "#111" };
            let class = if cell.2 <= best {
                " class=\"best\""
            } else {
                ""
            };
            let _ = write!(
                out,
                "<td{class} style=\"background:hsl(196 55% {light:.0}%);color:{ink}\">{}</td>",
                ms(cell.2)
            );
        }
    }
    out.push_str("</tr></table></div></div>\n");
}

/// A time in ms with two or three digits; a short one without its zero, for the cells are narrow.
fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 0.1 => format!("{ms:.2}"),
        ms if ms >= 0.01 => format!("{ms:.3}"),
        ms => format!("{ms:.4}").trim_start_matches('0').into(),
    }
}
