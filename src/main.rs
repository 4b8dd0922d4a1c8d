//! The command: a result becomes an exit status, an error is printed once.

use clap::Parser;
use clap::error::ErrorKind;
use gpuimg::cli::Cli;
use gpuimg::{Outcome, console, print_error, run, status, version};
use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_run(&error),
    };
    match run(&cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => ExitCode::FAILURE,
        // A reader of standard output may close the pipe early, as `head` does: no error.
        Err(error) if error.is::<console::ReaderGone>() => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            status(&error).into()
        }
    }
}

/// Prints clap's message: help and the version on standard output, wrong usage on standard error.
fn not_run(said: &clap::Error) -> ExitCode {
    let text = said.render().to_string();
    if said.use_stderr() {
        console::tell_lines(&text);
        return ExitCode::from(2);
    }
    let longer = match said.kind() {
        ErrorKind::DisplayVersion => version::text(env::args_os()),
        _ => None,
    };
    // Colours only on a terminal.
    let printed = match longer {
        Some(longer) => console::print_lines(&longer),
        None if io::stdout().is_terminal() => said.print().map_err(Into::into),
        None => console::print_lines(&text),
    };
    match printed {
        Err(error) if !error.is::<console::ReaderGone>() => {
            print_error(&error);
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
