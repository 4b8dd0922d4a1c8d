//! The text of the page.

use super::survey::{BINS, Survey};
use super::{Entry, FAILED, FAR, FAR_OF_RANGE, File, FileRecord, REPORT, SERIES};
use crate::os::count::plural;
use crate::os::name::Shown;
use crate::timing::html::{PageKind, escaped, head};
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = include_str!("sheet.css");
const SCRIPT: &str = include_str!("sheet.js");

/// Files of a section. A browser lays out whole sections, so scrolling is slow if they are very small or very large.
const SECTION: usize = 50;

/// A button that sorts the files: the label, the attribute, and whether its values are numbers.
type Key = (&'static str, &'static str, bool);

/// The buttons of every page.
const KEYS: [Key; 9] = [
    ("name", "name", false),
    ("type", "type", false),
    ("pixels", "pixels", true),
    ("pages", "pages", true),
    ("bytes", "bytes", true),
    ("minimum", "min", true),
    ("maximum", "max", true),
    ("mean", "mean", true),
    ("warnings", "warnings", true),
];

/// The buttons of a report.
const REPORT_KEYS: [Key; 2] = [("status", "status", false), ("seconds", "seconds", true)];

/// The page.
pub fn page(kind: &PageKind, files: &[File]) -> String {
    let is_report = kind.mark == REPORT.mark;
    let (title, keys) = if is_report {
        ("gpuimg report", &REPORT_KEYS[..])
    } else {
        ("gpuimg info", &[][..])
    };
    let mut out = format!("{}\n{}", kind.mark, head(title, STYLE));
    let warned = files.iter().filter(|file| file.warnings().next().is_some());
    let _ = writeln!(
        out,
        "<p>{}, {}, {} with warnings.</p>\n\
         <p class=\"soft\">Pictures, values and histograms are those of the first page, without alpha. A histogram has {BINS} bins from the \
         minimum to the maximum, and square roots of the counts as heights. Saturated: at least 0.1 % of the samples have the largest \
         value of their type. Mostly dark: 99 % of the samples are in the lowest sixteenth of the range. Outlier, among {SERIES} \
         or more images of one folder and type: the mean or the range differs from its median by more than {FAR} times the median \
         difference, and by more than {} % of the median range.</p>\n<nav>",
        plural(files.len(), "file"),
        counts(files, is_report),
        warned.count(),
        FAR_OF_RANGE * 100.0
    );
    for (label, key, is_number) in KEYS.iter().chain(keys) {
        let kind = if *is_number { "number" } else { "text" };
        let _ = write!(
            out,
            "<button type=\"button\" data-key=\"{key}\" data-kind=\"{kind}\">{label}</button>"
        );
    }
    out.push_str("</nav>\n<main id=\"files\">\n");
    for section in files.chunks(SECTION) {
        out.push_str("<section>\n");
        for file in section {
            file_box(&mut out, file);
        }
        out.push_str("</section>\n");
    }
    let _ = write!(
        out,
        "</main>\n<script>\n{SCRIPT}</script>\n</body></html>\n"
    );
    out
}

/// How many files cannot be read, or have each status.
fn counts(files: &[File], is_report: bool) -> String {
    if !is_report {
        let unread = files.iter().filter(|file| file.image.is_err()).count();
        return format!("{unread} that cannot be read");
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in files.iter().filter_map(|file| file.outcome.as_ref()) {
        *counts.entry(outcome.status).or_default() += 1;
    }
    let counts = counts
        .iter()
        .map(|(status, count)| format!("{count} {status}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// A file on the page.
fn file_box(out: &mut String, file: &File) {
    let name = escaped(file.path.shown().as_ref());
    let _ = write!(out, "<div class=\"file\" data-name=\"{name}\"");
    if let Ok(Entry { about, survey, .. }) = file.image.as_deref() {
        let _ = write!(
            out,
            " data-type=\"{}\" data-pixels=\"{}\" data-pages=\"{}\" data-bytes=\"{}\" data-min=\"{}\" data-max=\"{}\" \
             data-mean=\"{}\" data-warnings=\"{}\"",
            escaped(&about.type_text()),
            about.shape.pixels(),
            about.pages,
            about.bytes.map_or(String::new(), |bytes| bytes.to_string()),
            survey.min,
            survey.max,
            survey.mean,
            file.warnings().count()
        );
    }
    if let Some(outcome) = &file.outcome {
        let FileRecord {
            status, seconds, ..
        } = outcome;
        let _ = write!(
            out,
            " data-status=\"{status}\" data-seconds=\"{seconds:.6}\""
        );
    }
    out.push_str("><div class=\"picture\">");
    match file.image.as_deref().map(|entry| &entry.picture) {
        Ok(Ok(url)) => {
            let _ = write!(
                out,
                "<img loading=\"lazy\" decoding=\"async\" alt=\"\" src=\"{url}\">"
            );
        }
        Ok(Err(error)) => error_text(out, "span", &format!("{error:#}")),
        Err(_) => {}
    }
    let _ = write!(out, "</div><div><div class=\"name\">{name}</div>");
    if let Some(outcome) = &file.outcome {
        outcome_line(out, outcome);
    }
    match &file.image {
        Ok(entry) => {
            let Entry { about, survey, .. } = &**entry;
            let share = about.share_of_samples().map_or(String::new(), |share| {
                let percent = short(share * 100.0);
                format!(", the file has {percent} % of the bytes of its samples")
            });
            let _ = write!(
                out,
                "<div class=\"facts\">{}</div><div class=\"facts\">mean {}{share}</div>",
                escaped(&about.facts()),
                short(survey.mean)
            );
        }
        Err(error) => error_text(out, "div", error),
    }
    for warning in file.warnings() {
        let _ = write!(out, "<div class=\"warning\">{}</div>", escaped(warning));
    }
    out.push_str("</div>");
    if let Ok(entry) = &file.image {
        histogram(out, &entry.survey);
    }
    out.push_str("</div>\n");
}

/// What a run did with a file: its status, its time, and the input of its result.
fn outcome_line(out: &mut String, outcome: &FileRecord) {
    let FileRecord {
        input,
        output,
        status,
        seconds,
        error,
        warnings: _,
    } = outcome;
    let source = match output {
        Some(_) if *status != FAILED => format!(" from {}", input.shown()),
        _ => String::new(),
    };
    let _ = write!(
        out,
        "<div class=\"facts\">{status}{} in {seconds:.3} s</div>",
        escaped(&source)
    );
    if let Some(damage) = error.as_ref().filter(|_| *status != FAILED) {
        error_text(out, "div", damage);
    }
}

fn error_text(out: &mut String, element: &str, text: &str) {
    let text = escaped(text);
    let _ = write!(out, "<{element} class=\"error\">{text}</{element}>");
}

/// The histogram as bars.
fn histogram(out: &mut String, survey: &Survey) {
    let most = survey.bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let _ = write!(
        out,
        "<figure><svg viewBox=\"0 0 {BINS} 100\" preserveAspectRatio=\"none\"><path d=\""
    );
    for (bin, &count) in survey
        .bins
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        let height = (count as f64 / most).sqrt() * 100.0;
        let _ = write!(out, "M{bin} 100v-{height:.1}h1V100z");
    }
    let _ = write!(
        out,
        "\"/></svg><figcaption><span>{}</span><span>{}</span></figcaption></figure>",
        escaped(&survey.min.to_string()),
        escaped(&survey.max.to_string())
    );
}

/// A number with at most six digits.
pub fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        let digits = 5 - value.abs().max(1.0).log10() as usize;
        let text = format!("{value:.digits$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').into(),
            false => text,
        }
    } else {
        format!("{value:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (65535.0, "65535"),
            (1234.5678, "1234.57"),
            (0.25, "0.25"),
            (-3.0, "-3"),
            (1.5e9, "1.500e9"),
            (2e-5, "2.000e-5"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
