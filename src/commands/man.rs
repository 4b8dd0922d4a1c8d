//! `man`: writes the manual, a page for each subcommand.

use crate::cli::Cli;
use crate::outcome::Outcome;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::fs;
use std::path::Path;

/// Writes the pages to `folder`, which is created if it is missing.
pub fn run(folder: &Path) -> Result<Outcome> {
    let unwritten = || format!("cannot write to {}", folder.display());
    fs::create_dir_all(folder).with_context(unwritten)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(unwritten)?;
    Ok(Outcome::Done)
}
