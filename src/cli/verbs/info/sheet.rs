//! `info --html`: one page with a small picture, the facts, a histogram and warnings for each image. It needs no other file.

use super::About;
use super::survey::{BINS, Survey};
use crate::batch::item::{Item, Items};
use crate::cli::print_error;

use crate::engine::options::Common;
use crate::engine::{Destination, MemoryJob, Resources};
use crate::formats::memory::Page;
use crate::formats::{self, Format, Reader};
use crate::gpu::{Choice, Devices};
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Depth, Image};
use crate::ops::normalize::Preview;
use crate::ops::{Operation, Verb};
use crate::os::count::plural;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::timing::html::{PageKind, escaped, head};
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const KIND: PageKind = PageKind {
    mark: "<!DOCTYPE html>\n<!-- gpuimg info --html -->",
    name: "a page of info --html",
};

const STYLE: &str = include_str!("sheet.css");
const SCRIPT: &str = include_str!("sheet.js");

/// The longer side of a picture, in pixels.
const PICTURE: &str = "160";

/// Files of a folder from which on one of them can be far from the others.
const SERIES: usize = 5;

/// A value is far from the median if it differs by more than this many times the median of all such differences…
const FAR: f64 = 5.0;

/// … and by more than this part of the median range.
const FAR_OF_RANGE: f64 = 0.05;

/// The buttons that sort the files: the label, the attribute, and whether its values are numbers.
const KEYS: [(&str, &str, bool); 9] = [
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

/// An image on the page.
struct Entry {
    path: PathBuf,
    about: About,
    survey: Survey,
    /// The picture as a data URL, or why there is none.
    picture: Result<String>,
    warnings: Vec<String>,
}

/// A file on the page.
enum File {
    Image(Box<Entry>),
    Unread { path: PathBuf, error: String },
}

/// Writes the page. A file that cannot be read is on it with its error, and is reported as without a page.
///
/// # Errors
/// A page that cannot be written.
pub fn write(found: &Items, path: &Path, common: &Common) -> Result<Outcome> {
    KIND.check(path)?;
    let mut files = Vec::with_capacity(found.items.len() + found.unread.len());
    for unread in &found.unread {
        print_error(&unread.error());
        files.push(File::Unread {
            path: unread.path.clone(),
            error: format!("{:#}", unread.error()),
        });
    }
    for item in &found.items {
        files.push(match Entry::read(item, common) {
            Ok(entry) => File::Image(Box::new(entry)),
            Err(error) => {
                let shown = format!("cannot read {}", item.input.shown());
                let text = format!("{error:#}");
                print_error(&error.context(shown));
                File::Unread {
                    path: item.input.clone(),
                    error: text,
                }
            }
        });
    }
    warn_of_outliers(&mut files);
    KIND.write(path, &page(&files))?;
    let is_unread = |file: &File| matches!(file, File::Unread { .. });
    Ok(if files.iter().any(is_unread) {
        Outcome::SomeFailed
    } else {
        Outcome::Done
    })
}

impl Entry {
    /// Decodes the first page of an image.
    fn read(item: &Item, common: &Common) -> Result<Entry> {
        let source = item.source()?;
        let about = About::read(&source, common)?;
        let mut reader = Reader::open(&source, &common.reading)?;
        let metadata = reader.metadata(&mut Diagnostics::default())?;
        let image = reader.decode()?;
        let survey = Survey::new(&image, &metadata);
        let mut warnings = survey.warnings();
        warnings.extend(reader.damage().map(|damage| format!("damaged: {damage}")));
        Ok(Entry {
            path: item.input.clone(),
            picture: picture(&item.input, image, metadata, common),
            about,
            survey,
            warnings,
        })
    }
}

/// A picture with the contrast of `preview`, as a data URL: a JPEG, or a PNG if there is alpha.
fn picture(path: &Path, image: Image, metadata: Metadata, common: &Common) -> Result<String> {
    let format: &Format = if image.shape().has_alpha() {
        &formats::png::FORMAT
    } else {
        &formats::jpeg::FORMAT
    };
    let devices = Devices::new(Choice::Cpu);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        require_regular_file: false,
        gpu_times: false,
    };
    let destination = Destination {
        path: path.into(),
        folder: None,
        format: formats::FORMATS
            .iter()
            .find(|known| **known == format)
            .copied(),
        options: formats::Options::default(),
        overwrite: false,
        sync: false,
        depth: Some(Depth::Eight),
        auto_orient: false,
        fit: Some(PICTURE.parse().map_err(|error: String| anyhow!(error))?),
        low_memory: false,
    };
    let preview = Preview::default().operation();
    let ops: [&dyn Operation; 1] = [&*preview];
    let job = MemoryJob {
        ops: &ops,
        name: path,
        destination: Some(&destination),
        resources: &resources,
    };
    let page = Page {
        image,
        // Whatever the file says of its pixels besides their values is not for the picture.
        metadata: Metadata {
            signed: metadata.signed,
            alpha: metadata.alpha,
            maxval: metadata.maxval,
            ..Metadata::default()
        },
        metadata_bytes: 0,
        described: 1,
    };
    let (bytes, _) = job.to_bytes(vec![page]).context("there is no picture")?;
    Ok(format!(
        "data:image/{};base64,{}",
        format.id,
        base64(&bytes)
    ))
}

/// Bytes as base 64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * i)) as usize & 63];
            text.push(if i > group.len() { '=' } else { digit.into() });
        }
    }
    text
}

/// Warns of images whose mean or range is far from those of the other images of the same folder and type.
fn warn_of_outliers(files: &mut [File]) {
    let mut series: BTreeMap<(PathBuf, String), Vec<&mut Entry>> = BTreeMap::new();
    for file in files {
        if let File::Image(entry) = file {
            let folder = entry.path.parent().unwrap_or(Path::new("")).into();
            let kind = entry.about.type_text();
            series.entry((folder, kind)).or_default().push(entry);
        }
    }
    for entries in series.values_mut().filter(|all| all.len() >= SERIES) {
        let ranges: Vec<f64> = entries.iter().map(|entry| entry.survey.width()).collect();
        let means: Vec<f64> = entries.iter().map(|entry| entry.survey.mean).collect();
        let least = FAR_OF_RANGE * median(&ranges);
        for (values, what) in [(means, "mean"), (ranges, "range")] {
            let middle = median(&values);
            let differences: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
            let limit = (FAR * median(&differences)).max(least);
            for (entry, (value, difference)) in
                entries.iter_mut().zip(values.iter().zip(&differences))
            {
                if *difference > limit {
                    entry.warnings.push(format!(
                        "outlier: its {what} is {}, and the median of the folder is {}",
                        short(*value),
                        short(middle)
                    ));
                }
            }
        }
    }
}

/// The median of one or more numbers, the mean of both in the middle of an even count.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// A number with at most six digits.
fn short(value: f64) -> String {
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

fn page(files: &[File]) -> String {
    let mut out = format!("{}\n{}", KIND.mark, head("gpuimg info", STYLE));
    let unread = files
        .iter()
        .filter(|file| matches!(file, File::Unread { .. }))
        .count();
    let warned = files
        .iter()
        .filter(|file| !file.warnings().is_empty())
        .count();
    let _ = writeln!(
        out,
        "<p>{}, {unread} that cannot be read, {warned} with warnings.</p>\n\
         <p class=\"soft\">Pictures, values and histograms are those of the first page, without alpha. A histogram has {BINS} bins from the \
         minimum to the maximum, and square roots of the counts as heights. Saturated: at least 0.1 % of the samples have the largest \
         value of their type. Mostly dark: 99 % of the samples are in the lowest sixteenth of the range. Outlier, among {SERIES} \
         or more images of one folder and type: the mean or the range differs from its median by more than {FAR} times the median \
         difference, and by more than {} % of the median range.</p>\n<nav>",
        plural(files.len(), "file"),
        FAR_OF_RANGE * 100.0
    );
    for (label, key, is_number) in KEYS {
        let kind = if is_number { "number" } else { "text" };
        let _ = write!(
            out,
            "<button type=\"button\" data-key=\"{key}\" data-kind=\"{kind}\">{label}</button>"
        );
    }
    out.push_str("</nav>\n<main id=\"files\">\n");
    for file in files {
        match file {
            File::Image(entry) => image(&mut out, entry),
            File::Unread { path, error } => {
                let _ = writeln!(
                    out,
                    "<div class=\"file\" data-name=\"{0}\"><div class=\"picture\"></div><div><div class=\"name\">{0}</div>\
                     <div class=\"error\">cannot be read: {1}</div></div></div>",
                    escaped(path.shown().as_ref()),
                    escaped(error)
                );
            }
        }
    }
    let _ = write!(
        out,
        "</main>\n<script>\n{SCRIPT}</script>\n</body></html>\n"
    );
    out
}

impl File {
    fn warnings(&self) -> &[String] {
        match self {
            File::Image(entry) => &entry.warnings,
            File::Unread { .. } => &[],
        }
    }
}

/// An image on the page.
fn image(out: &mut String, entry: &Entry) {
    let Entry { about, survey, .. } = entry;
    let name = escaped(entry.path.shown().as_ref());
    let _ = write!(
        out,
        "<div class=\"file\" data-name=\"{name}\" data-type=\"{}\" data-pixels=\"{}\" data-pages=\"{}\" data-bytes=\"{}\" \
         data-min=\"{}\" data-max=\"{}\" data-mean=\"{}\" data-warnings=\"{}\"><div class=\"picture\">",
        escaped(&about.type_text()),
        about.shape.pixels(),
        about.pages,
        about.bytes,
        survey.min,
        survey.max,
        survey.mean,
        entry.warnings.len()
    );
    match &entry.picture {
        Ok(url) => {
            let _ = write!(
                out,
                "<img loading=\"lazy\" decoding=\"async\" alt=\"\" src=\"{url}\">"
            );
        }
        Err(error) => {
            let _ = write!(
                out,
                "<span class=\"error\">{}</span>",
                escaped(&format!("{error:#}"))
            );
        }
    }
    let _ = write!(
        out,
        "</div><div><div class=\"name\">{name}</div><div class=\"facts\">{}</div><div class=\"facts\">mean {}, the file has {} % of the bytes of \
         its samples</div>",
        escaped(&about.facts()),
        short(survey.mean),
        short(about.share_of_samples() * 100.0)
    );
    for warning in &entry.warnings {
        let _ = write!(out, "<div class=\"warning\">{}</div>", escaped(warning));
    }
    out.push_str("</div>");
    histogram(out, survey);
    out.push_str("</div>\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn base_64_of_the_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"fooba", "Zm9vYmE="),
            (b"foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

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

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }
}
