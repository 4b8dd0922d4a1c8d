//! `man`: writes the manual, a page for each subcommand.

use crate::cli::Cli;
use crate::outcome::Outcome;
use crate::reason::plain;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::fs;
use std::path::Path;

/// Writes the pages to `folder`, which is created if it is missing.
pub fn run(folder: &Path) -> Result<Outcome> {
    let unwritten = || format!("cannot write to {}", folder.display());
    fs::create_dir_all(folder)
        .map_err(plain)
        .with_context(unwritten)?;
    let written = clap_mangen::generate_to(Cli::command(), folder);
    written.map_err(plain).with_context(unwritten)?;
    Ok(Outcome::Done)
}
