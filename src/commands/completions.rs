//! `completions`: prints a script with which a shell completes the command line.

use crate::cli::Cli;
use crate::console;
use crate::outcome::Outcome;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script for `shell`.
pub fn run(shell: Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gpuimg", &mut script);
    console::print_lines(&String::from_utf8(script)?)?;
    Ok(Outcome::Done)
}
