//! `man`: writes the manual, a page for each subcommand.

use crate::cli::help;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::os::reason::plain;
use anyhow::{Context, Result};
use clap_mangen::Man;
use std::fs;
use std::iter;
use std::path::Path;

/// Writes the pages to `folder`, which is created if it is missing.
pub fn run(folder: &Path) -> Result<Outcome> {
    let unwritten = || format!("cannot write to {}", folder.shown());
    fs::create_dir_all(folder)
        .map_err(plain)
        .with_context(unwritten)?;
    let mut program = help::command(&[]).disable_help_subcommand(true);
    program.build();
    for command in iter::once(&program).chain(program.get_subcommands()) {
        let page = Man::new(command.clone());
        let mut text = Vec::new();
        page.render(&mut text)?;
        let text = with_lines_of_examples(&String::from_utf8(text)?);
        let written = fs::write(folder.join(page.get_filename()), text);
        written.map_err(plain).with_context(unwritten)?;
    }
    Ok(Outcome::Done)
}

/// A page whose examples, which are its last text, keep their lines: roff fills them otherwise.
fn with_lines_of_examples(page: &str) -> String {
    let Some((before, examples)) = page.split_once(".SH EXTRA\nExamples:\n") else {
        return page.into();
    };
    let (examples, after) = match examples.find("\n.SH") {
        Some(end) => examples.split_at(end + 1),
        None => (examples, ""),
    };
    let examples = examples.trim_end();
    format!("{before}.SH EXAMPLES\n.nf\n{examples}\n.fi\n{after}")
}
