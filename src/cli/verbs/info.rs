//! `info`: prints what each image is, from its header: size, sample type, pages, axes and metadata. A bad file is named, and
//! the others are described.

use crate::batch::about::About;
use crate::batch::failures::Failures;
use crate::batch::inputs::{self, Selection};
use crate::batch::item::{Item, Items};
use crate::batch::sheet::{self, Sheet};
use crate::cli::print_error;
use crate::engine::options::Common;
use crate::engine::{Failure, NamedSource, Resources, process_source};
use crate::formats::{self, Reading};
use crate::gpu::{Choice, Devices};
use crate::image::number::Number;
use crate::ops::sum::Sum;
use crate::os::Source;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Error, Result};
use std::path::{Path, PathBuf};

/// Prints a line or a JSON object for each image; with `range` the images are decoded, for their smallest and largest
/// values. With `html` it writes a page about all of them instead.
///
/// # Errors
/// A wrong use, and standard output that cannot be written; a file that cannot be read is named and counted.
pub fn run(
    inputs: &[PathBuf],
    selection: &Selection,
    json: bool,
    range: bool,
    html: Option<&Path>,
    common: &Common,
) -> Result<Outcome> {
    common.check()?;
    let found = inputs::collect(inputs, selection, &common.reading, None).map_err(usage)?;
    if let Some(path) = html {
        return sheet(&found, path, &common.reading);
    }
    let mut outcome = Outcome::Done;
    let mut failures = Failures::default();
    let mut fail = |failures: &mut Failures, error: &Error| {
        print_lines(failures.add(0, error));
        outcome = Outcome::SomeFailed;
    };
    for unread in &found.unread {
        fail(&mut failures, &unread.error());
    }
    for item in &found.items {
        for described in describe(item, range, common) {
            let (name, about) = match described {
                Ok(described) => described,
                Err(error) => {
                    fail(&mut failures, &error);
                    continue;
                }
            };
            print_lines(failures.release());
            if json {
                console::print(&about.json(&name).to_string())?;
            } else {
                console::print(&about.line(&name))?;
            }
        }
    }
    print_lines(failures.finish());
    Ok(outcome)
}

fn print_lines(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        console::tell(&format!("gpuimg: {line}"));
    }
}

/// Writes a page about the files. A file that cannot be read is on it with its error.
///
/// # Errors
/// A page that cannot be written.
fn sheet(found: &Items, path: &Path, reading: &Reading) -> Result<Outcome> {
    sheet::INFO.check(path)?;
    let mut sheet = Sheet::default();
    for unread in &found.unread {
        let error = unread.error();
        sheet.add_unread(&unread.path, &error);
        print_error(&error);
    }
    for item in &found.items {
        if let Err(error) = sheet.add_image(item, reading) {
            print_error(&error.context(format!("cannot read {}", item.input.shown())));
        }
    }
    sheet.write(&sheet::INFO, path)?;
    Ok(if sheet.has_unread() {
        Outcome::SomeFailed
    } else {
        Outcome::Done
    })
}

/// The names of the images of an input and what they are, or the errors, which have the name of the input. A file whose images
/// have addresses is described by all of them.
fn describe(item: &Item, range: bool, common: &Common) -> Vec<Result<(PathBuf, About)>> {
    let open = || -> Result<_> {
        let source = item.source()?;
        let addresses = match common.reading.raw {
            Some(_) => None,
            None => formats::addresses(&source)?,
        };
        Ok((source, addresses))
    };
    let (source, addresses) = match open() {
        Ok(opened) => opened,
        Err(error) => return vec![Err(error).with_context(|| cannot_read(&item.input))],
    };
    let Some(addresses) = addresses else {
        return vec![describe_image(&item.input, &source, range, common)];
    };
    let image = |address: &String| {
        let mut name = item.input.clone().into_os_string();
        name.push(":");
        name.push(address);
        describe_image(&PathBuf::from(name), &source.at(address), range, common)
    };
    addresses.iter().map(image).collect()
}

/// What an image is, with `range` also the range of its values.
///
/// # Errors
/// A file that cannot be read, with its name.
fn describe_image(
    name: &Path,
    source: &Source,
    range: bool,
    common: &Common,
) -> Result<(PathBuf, About)> {
    let mut about = About::read(source, &common.reading).with_context(|| cannot_read(name))?;
    if range {
        about.range = range_of_all_pages(name, source, common)?;
    }
    Ok((name.into(), about))
}

fn cannot_read(name: &Path) -> Failure {
    Failure::new("read", name)
}

/// The smallest and the largest value of all pages, without alpha and without values that are not finite; `None` if there are
/// none.
fn range_of_all_pages(
    input: &Path,
    source: &Source,
    common: &Common,
) -> Result<Option<(Number, Number)>> {
    let devices = Devices::new(Choice::Cpu);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        require_regular_file: false,
        position: None,
        gpu_times: false,
    };
    let all = Sum {
        all: true,
        // They count in the sum, which is not used, and not in the range.
        nan: Some(0.0),
    };
    let done = process_source(
        &[&all],
        NamedSource {
            path: input,
            source,
        },
        None,
        &resources,
    )?;
    let ranges = done
        .results
        .totals
        .iter()
        .filter_map(|totals| totals.range());
    Ok(ranges.reduce(|(min, max), (low, high)| {
        let less = |a: Number, b: Number| a.as_f64() < b.as_f64();
        (
            if less(low, min) { low } else { min },
            if less(max, high) { high } else { max },
        )
    }))
}
