//! `info`: prints what each image is, from its header: size, sample type, pages, axes and metadata. A bad file is named, and
//! the others are described.

use crate::batch::failures::Failures;
use crate::batch::info;
use crate::batch::inputs::{self, Selection};
use crate::batch::item::Items;
use crate::batch::sheet::{self, Sheet};
use crate::cli::print_error;
use crate::engine::options::Common;
use crate::formats::Reading;
use crate::os::console;
use crate::os::interrupt;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Error, Result};
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
        interrupt::hold(failures.line());
        outcome = Outcome::SomeFailed;
    };
    for unread in &found.unread {
        fail(&mut failures, &unread.error());
    }
    for item in &found.items {
        for described in info::describe(&item.input, item.source(), &common.reading, range) {
            let (name, about) = match described {
                Ok(described) => described,
                Err(error) => {
                    fail(&mut failures, &error);
                    continue;
                }
            };
            print_lines(failures.release());
            interrupt::hold([]);
            if json {
                console::print(&about.json(&name).to_string())?;
            } else {
                console::print(&about.line(&name))?;
            }
        }
    }
    interrupt::hold([]);
    print_lines(failures.line());
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
    for error in sheet.add_images(&found.items, reading) {
        print_error(&error);
    }
    sheet.write(&sheet::INFO, path)?;
    Ok(if sheet.has_unread() {
        Outcome::SomeFailed
    } else {
        Outcome::Done
    })
}
