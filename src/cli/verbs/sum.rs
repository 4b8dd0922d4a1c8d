//! `sum`: prints the totals of each image, a line each, in order; a bad file is named and the
//! others are processed.

use super::single::single;
use crate::batch::{self, options::Options};
use crate::engine::Done;
use crate::engine::options::Common;
use crate::gpu::Unusable;
use crate::ops::sum::{self, Sum};
use crate::os::outcome::Outcome;
use crate::os::{console, is_folder_of_files};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Prints the totals of every image.
pub fn run(
    op: &Sum,
    inputs: &[PathBuf],
    json: bool,
    options: &Options,
    common: &Common,
) -> Result<Outcome> {
    common.check()?;
    let print = |input: &Path, done: Result<&Done, &str>| -> Result<()> {
        let done = match done {
            Ok(done) => done,
            Err(error) if json => return console::print(&sum::failure(input, error)?),
            // It is named on standard error.
            Err(_) => return Ok(()),
        };
        for totals in &done.results.totals {
            let line = if json {
                totals.json(input)?
            } else {
                totals.text(input)
            };
            console::print(&line)?;
        }
        Ok(())
    };
    match inputs {
        [input] if !is_folder_of_files(input) && !options.wanted() => {
            let done = single(&[op], input, None, common, options, None);
            if let Err(error) = &done
                && !error.is::<Unusable>()
            {
                print(input, Err(&format!("{error:#}")))?;
            }
            let done = done?;
            print(input, Ok(&done))?;
            Ok(done.outcome())
        }
        _ => batch::measure(op, inputs, options, common, print),
    }
}
