//! The report as one HTML page: the claims with their verdicts first, then the experiments, table by
//! table; charts are drawn here, without scripts or external resources, readable on a phone and on
//! paper.

mod curves;
mod maps;
mod svg;

use super::case::{Outcome, Row};
use super::claims::{self, Judgement, Verdict};
use super::figure::short;
use super::papers::{Paper, Topic};
use super::report::{Report, SPREAD, readable};
use super::table::Table;
use crate::timing::html::{escaped, head};
use std::fmt::Write;
use svg::Scale;

const STYLE: &str = include_str!("html/style.css");

/// The whole page.
pub fn page(report: &Report) -> String {
    let gpu = report.machine.gpu.as_deref().unwrap_or("no GPU");
    let mut out = format!(
        "<!DOCTYPE html>\n{}<p class=\"soft\">{}<br>{}<br>{}</p>\n",
        head(&format!("gpuimg bench: {gpu}"), STYLE),
        escaped(&report.machine.text()).replace('\n', "<br>"),
        escaped(&row_counts(report)),
        escaped(SPREAD),
    );
    if let Some(left_out) = &report.left_out {
        let _ = writeln!(out, "<p>{}</p>", escaped(left_out));
    }
    let judgements = report.judgements();
    contents(&mut out, report, &judgements);
    // The link first: what most visitors look for.
    let (link, others): (Vec<_>, Vec<_>) = report
        .tables()
        .partition(|(table, _)| *table == Table::Link);
    for (table, rows) in link {
        section(&mut out, report, table, &rows, &judgements);
    }
    if !judgements.is_empty() {
        verdicts(&mut out, &judgements);
    }
    let _ = writeln!(out, "<p class=\"note\">{KEY}</p>");
    for (table, rows) in others {
        section(&mut out, report, table, &rows, &judgements);
    }
    out.push_str("</body></html>\n");
    out
}

fn row_counts(report: &Report) -> String {
    format!(
        "{} rows, each result checked before its time was taken; {} failed; {:.0} s in all",
        report.rows.len(),
        report.failures(),
        report.wall.as_secs_f64()
    )
}

/// How to read the experiments.
const KEY: &str = "Below, each experiment. Of bars the longer is the faster: <span class=\"key\" style=\"background:var(--here);height:.7rem;vertical-align:-1px\"></span>here, <span class=\"key\" style=\"background:var(--then);height:.7rem;vertical-align:-1px\"></span>published. They begin at zero where the rates of an experiment differ by less than a factor of three, and are logarithmic else.";

fn contents(out: &mut String, report: &Report, judgements: &[Judgement]) {
    out.push_str("<nav>");
    if !judgements.is_empty() {
        out.push_str("<a href=\"#verdicts\">verdicts</a>");
    }
    for (table, _) in report.tables() {
        let _ = write!(out, "<a href=\"#{0}\">{0}</a>", table.name());
    }
    out.push_str("</nav>\n");
}

/// The groups of verdicts, by colour, in words.
const GROUPS: [(&str, &str); 4] = [
    ("holds", "hold"),
    ("weaker", "hold, but weaker"),
    ("gone", "no longer matter, or were not judged"),
    ("against", "are different or reversed"),
];

/// The first screen: how many claims of the papers hold, and each with what was stated, what was
/// measured, and the verdict, linked to its experiment.
fn verdicts(out: &mut String, judgements: &[Judgement]) {
    let papers = claims::statements(judgements);
    let _ = write!(
        out,
        "<section id=\"verdicts\"><div class=\"counts\"><span>Of {} statements of the papers</span>",
        papers.len()
    );
    for (class, words) in GROUPS {
        let count = papers.iter().filter(|it| it.verdict.class() == class);
        let _ = write!(
            out,
            "<span class=\"{class}\"><b style=\"color:var(--tone)\">{}</b> {words}</span>",
            count.count()
        );
    }
    out.push_str("</div><div class=\"strip\">");
    for judgement in &papers {
        let _ = write!(
            out,
            "<a class=\"{}\" href=\"#claim-{}\" title=\"{}\"></a>",
            judgement.verdict.class(),
            judgement.claim.key,
            escaped(&format!(
                "{}: {}",
                judgement.verdict_text(),
                judgement.claim.says
            ))
        );
    }
    out.push_str("</div>\n");
    for paper in Paper::ALL.into_iter().chain([Paper::Own]) {
        let is_on = |judgement: &&Judgement| judgement.claim.topic().paper == paper;
        let on_paper: Vec<&Judgement> = judgements.iter().filter(is_on).collect();
        if on_paper.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "<h3>{}</h3><div class=\"claims\"><div class=\"claim head\"><div>claim</div><div>then</div><div>here</div><div>verdict</div></div>",
            escaped(paper.cited())
        );
        for judgement in on_paper {
            claim(out, judgement, true);
        }
        out.push_str("</div>\n");
    }
    out.push_str("</section>\n");
}

/// A claim in a line: on the first screen with a link to its experiment, there without.
fn claim(out: &mut String, judgement: &Judgement, linked: bool) {
    let origin = judgement.claim.origin;
    let mark = if origin.counts() {
        String::new()
    } else {
        format!(" <small>({})</small>", origin.name())
    };
    let says = escaped(judgement.claim.says) + &mark;
    let key = judgement.claim.key;
    let (id, what) = if linked {
        (
            format!(" id=\"claim-{key}\""),
            format!("<a href=\"#{}\">{says}</a>", judgement.claim.topic),
        )
    } else {
        (String::new(), says)
    };
    let rows = match judgement.verdict {
        Verdict::NotJudged => String::new(),
        _ => judgement.rows.join(" : "),
    };
    let _ = writeln!(
        out,
        "<div class=\"claim {}\"{id} title=\"{}\"><div class=\"what\">{what}</div><div class=\"then\">{}</div><div class=\"number\">{}</div><div class=\"verdict\">{}</div></div>",
        judgement.verdict.class(),
        escaped(&rows),
        escaped(&judgement.claim.then()),
        escaped(&judgement.here()),
        escaped(&judgement.verdict_text())
    );
}

fn section(
    out: &mut String,
    report: &Report,
    table: Table,
    rows: &[&Row],
    judgements: &[Judgement],
) {
    let _ = writeln!(
        out,
        "<section id=\"{}\"><h2>{}</h2>",
        table.name(),
        escaped(table.title())
    );
    if let Some(note) = table.note() {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    let charts = curves::charts(table, report);
    if !charts.is_empty() {
        let _ = write!(out, "<div class=\"charts\">{}</div>", charts.concat());
    }
    out.push_str(&maps::charts(table, report));
    let mut topics: Vec<&'static Topic> = Vec::new();
    for row in rows {
        if !topics.iter().any(|topic| topic.key == row.about.topic.key) {
            topics.push(row.about.topic);
        }
    }
    for topic in topics {
        let on_topic: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| row.about.topic.key == topic.key)
            .collect();
        experiment(out, report, topic, &on_topic, judgements);
    }
    out.push_str("</section>\n");
}

/// From this number of rows on they are folded away: a chart or a map shows them too.
const MANY: usize = 12;

/// A system: what it shows, the verdicts on it, and its rows.
fn experiment(
    out: &mut String,
    report: &Report,
    topic: &Topic,
    rows: &[&Row],
    judgements: &[Judgement],
) {
    // A system whose rows are in two tables is described where it is first.
    let first = report
        .rows
        .iter()
        .find(|row| row.about.topic.key == topic.key);
    let here = first.is_some_and(|first| first.about.table == rows[0].about.table);
    let id = if here {
        format!(" id=\"{}\"", topic.key)
    } else {
        String::new()
    };
    let _ = writeln!(out, "<div{id}><h3>{}</h3>", escaped(topic.system));
    if here {
        let _ = writeln!(
            out,
            "<p class=\"soft\">{}</p><pre>{}</pre><p>{}</p>",
            escaped(topic.paper.title()),
            escaped(topic.picture),
            escaped(topic.lesson)
        );
        let on_topic = judgements.iter().filter(|it| it.claim.topic == topic.key);
        let mut on_topic = on_topic.peekable();
        if on_topic.peek().is_some() {
            out.push_str("<div class=\"claims\">");
            on_topic.for_each(|judgement| claim(out, judgement, false));
            out.push_str("</div>");
        }
    }
    if rows.len() >= MANY {
        let _ = write!(out, "<details><summary>all {} rows</summary>", rows.len());
    }
    let scales = [true, false].map(|bytes| bar_scale(rows, bytes));
    for row in rows {
        bars(out, row, &scales[usize::from(row.about.bytes == 0)]);
    }
    if rows.len() >= MANY {
        out.push_str("</details>");
    }
    out.push_str("</div>\n");
}

/// The scale of the bars of a system: from zero on, or, where the rates differ by a factor of three
/// and more, logarithmic from half a decade below the smallest.
fn bar_scale(rows: &[&Row], bytes: bool) -> Scale {
    let rates = rows
        .iter()
        .filter(|row| (row.about.bytes > 0) == bytes)
        .flat_map(|row| [row.rate(), row.published_rate()])
        .flatten();
    let (low, high) = rates.fold((f64::MAX, 0f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    let log = high / low >= 3.0;
    Scale {
        low: if log { low / 3.0 } else { 0.0 },
        high,
        log,
    }
}

fn bars(out: &mut String, row: &Row, scale: &Scale) {
    let counts_calls = row.about.bytes == 0;
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
            .map(|ratio| format!("{}× as fast as published", short(ratio))),
    );
    let failed = matches!(row.outcome, Outcome::Failed(_));
    let diagnostics = row.diagnostics();
    if !diagnostics.is_empty() {
        facts.push(diagnostics);
    }
    let _ = write!(
        out,
        "<div class=\"row\"><div><div class=\"name{}\">{}{}</div><div class=\"facts\">{}</div></div><div class=\"bars\">",
        if failed { " failed" } else { "" },
        if failed { "FAILED: " } else { "" },
        escaped(&row.about.name),
        escaped(&facts.join(" · "))
    );
    let mut bar = |class: &str, rate: Option<f64>, label: String| {
        let fill = rate.map_or(String::new(), |rate| {
            let width = (100.0 * scale.position(rate)).clamp(0.5, 100.0);
            format!(
                "<div class=\"track\"><div class=\"fill\" style=\"width:{width:.1}%\"></div></div>"
            )
        });
        let _ = write!(
            out,
            "<div class=\"bar{class}\">{fill}<div class=\"value{}\">{}</div></div>",
            if fill.is_empty() { " words" } else { "" },
            escaped(&label)
        );
    };
    if let (Some(rate), Some(time)) = (row.rate(), row.time()) {
        // A row without bytes and without published calls is a time.
        let label = match (counts_calls, row.published_rate()) {
            (true, None) => readable(time.median),
            (true, Some(_)) => format!("{} calls/s", short(rate)),
            (false, _) => format!("{} GB/s", short(rate)),
        };
        bar("", Some(rate), label);
    }
    let published = row.published();
    if !published.is_empty() {
        bar(" published", row.published_rate(), published);
    }
    out.push_str("</div></div>\n");
}
