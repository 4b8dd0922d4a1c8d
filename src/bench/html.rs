//! The report as one HTML page: charts made of boxes and text only, without scripts or external
//! resources, readable on a phone and on paper.

use super::case::{Outcome, Row};
use super::figure::short;
use super::papers;
use super::papers::Topic;
use super::report::{Report, readable};
use super::table::Table;
use crate::html::escaped;
use std::fmt::Write;

const STYLE: &str = "
:root { --ink: #1a1c1e; --soft: #5c636a; --paper: #fff; --line: #d9dde1; --here: #1f6f8b; --then: #c98a2b; --bad: #b3261e; --box: #f4f6f7 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a0a8b0; --paper: #15181a; --line: #33393e; --here: #5db5d4; --then: #e0ae5c; --bad: #ff8a80; --box: #1e2326 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem }
p { margin: .3rem 0 } .soft { color: var(--soft); font-size: .875rem }
.row { display: grid; grid-template-columns: minmax(0, 21rem) minmax(0, 1fr); gap: .1rem .8rem; padding: .3rem 0; border-top: 1px solid var(--line); break-inside: avoid }
.name { overflow-wrap: anywhere } .facts { color: var(--soft); font-size: .8125rem }
.bars { align-self: center; min-width: 0 } .bar { display: flex; align-items: center; gap: .4rem; font-size: .8125rem; font-variant-numeric: tabular-nums; white-space: nowrap }
.track { flex: 1 1 auto; min-width: 3rem; height: .7rem; background: var(--box) } .fill { height: 100%; background: var(--here) } .then .fill { background: var(--then) } .then { color: var(--soft) }
.value { flex: 0 0 11.5rem; white-space: normal; line-height: 1.2 } .failed { color: var(--bad); font-weight: 600 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums } th { font-weight: 500; color: var(--soft); padding: .15rem .35rem } td { padding: .3rem .35rem; text-align: right; min-width: 2.6rem }
pre { font: .8125rem/1.3 ui-monospace, monospace; background: var(--box); padding: .5rem .7rem; overflow-x: auto; margin: .3rem 0 }
.topic { break-inside: avoid; margin: .9rem 0 } .verdict { font-weight: 600 } .key { display: inline-block; width: .8rem; height: .8rem; vertical-align: -1px }
@media (max-width: 40rem) { .row { grid-template-columns: minmax(0, 1fr) } .value { flex-basis: 9.5rem } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; color: #000; background: #fff } * { print-color-adjust: exact; -webkit-print-color-adjust: exact } pre { white-space: pre-wrap } }
";

/// The whole page.
pub fn page(report: &Report) -> String {
    let gpu = report.machine.gpu.as_deref().unwrap_or("no GPU");
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>gpuimg bench: {0}</title><style>{STYLE}</style></head><body>\n\
         <h1>gpuimg bench: {0}</h1>\n<p class=\"soft\">{1}</p>\n",
        escaped(gpu),
        escaped(&report.machine.text()).replace('\n', "<br>")
    );
    let _ = write!(
        out,
        "<p class=\"soft\">gpuimg {}; {} rows, each result checked before its time was taken; {} failed; {:.0} s in all.</p>\n\
         <p class=\"soft\"><span class=\"key\" style=\"background:var(--here)\"></span> here \
         <span class=\"key\" style=\"background:var(--then)\"></span> published. \
         Bars are logarithmic: equal lengths are equal ratios.</p>\n",
        env!("CARGO_PKG_VERSION"),
        report.rows.len(),
        report.failures(),
        report.wall.as_secs_f64()
    );
    if let Some(left_out) = &report.left_out {
        let _ = writeln!(out, "<p>{}</p>", escaped(left_out));
    }
    for (table, rows) in report.tables() {
        section(&mut out, report, table, &rows);
    }
    out.push_str("</body></html>\n");
    out
}

fn section(out: &mut String, report: &Report, table: Table, rows: &[&Row]) {
    let _ = writeln!(
        out,
        "<section id=\"{}\"><h2>{}</h2>",
        table.name(),
        escaped(table.title())
    );
    let scales = [Scale::of(rows, true), Scale::of(rows, false)];
    for row in rows {
        // The cells of the block-shape sweep are shown as a map instead.
        if row.about.topic.key != "transpose-sweep" {
            chart(out, row, &scales[usize::from(row.about.bytes == 0)]);
        }
    }
    for topic in papers::topics() {
        if rows.iter().any(|row| std::ptr::eq(row.about.topic, topic)) {
            described(out, report, topic);
        }
    }
    out.push_str("</section>\n");
}

/// A logarithmic scale over the rates of a table, beginning a decade below the smallest.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[&Row], bytes: bool) -> Scale {
        let rates = rows
            .iter()
            .filter(|row| (row.about.bytes > 0) == bytes)
            .flat_map(|row| [row.rate(), row.published_rate()])
            .flatten();
        let (low, high) = rates.fold((f64::MAX, 0f64), |(low, high), rate| {
            (low.min(rate), high.max(rate))
        });
        Scale {
            low: low.log10().floor() - 0.5,
            high: high.log10(),
        }
    }

    fn percent(&self, rate: f64) -> f64 {
        let part = (rate.log10() - self.low) / (self.high - self.low).max(1e-9);
        (100.0 * part).clamp(0.5, 100.0)
    }
}

fn chart(out: &mut String, row: &Row, scale: &Scale) {
    let unit = if row.about.bytes == 0 {
        "calls/s"
    } else {
        "GB/s"
    };
    let mut facts = Vec::new();
    if let Some(time) = row.time() {
        facts.push(format!(
            "{} ± {:.1} %",
            readable(time.median),
            100.0 * time.spread
        ));
    }
    facts.extend(
        row.percent()
            .map(|percent| format!("{percent:.0} % of ceiling")),
    );
    facts.extend(
        row.ratio()
            .map(|ratio| format!("{}× published", short(ratio))),
    );
    let failed = matches!(row.outcome, Outcome::Failed(_));
    let diagnostics = row.diagnostics();
    if !diagnostics.is_empty() {
        facts.push(diagnostics);
    }
    let class = if failed { " failed" } else { "" };
    let _ = write!(
        out,
        "<div class=\"row\"><div><div class=\"name{class}\">{}{}</div><div class=\"facts\">{}</div></div><div class=\"bars\">",
        if failed { "FAILED: " } else { "" },
        escaped(&row.about.name),
        escaped(&facts.join(" · "))
    );
    let mut bar = |class: &str, rate: f64, label: String| {
        let _ = write!(
            out,
            "<div class=\"bar{class}\"><div class=\"track\"><div class=\"fill\" style=\"width:{:.1}%\"></div></div><div class=\"value\">{}</div></div>",
            scale.percent(rate),
            escaped(&label)
        );
    };
    if let Some(rate) = row.rate() {
        bar("", rate, format!("{} {unit}", short(rate)));
    }
    if let Some(then) = row.published_rate() {
        bar(" then", then, row.published());
    }
    out.push_str("</div></div>\n");
}

fn described(out: &mut String, report: &Report, topic: &Topic) {
    let _ = writeln!(
        out,
        "<div class=\"topic\"><h3>{}: {}</h3><pre>{}</pre><p>{}</p>",
        topic.paper.title(),
        escaped(topic.system),
        escaped(topic.picture),
        escaped(topic.lesson)
    );
    for judgement in report.judgements() {
        if judgement.claim.topic == topic.key {
            let _ = writeln!(
                out,
                "<p class=\"verdict\">{}</p>",
                escaped(&judgement.verdict_text())
            );
        }
    }
    out.push_str("</div>\n");
}
