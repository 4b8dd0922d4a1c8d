//! The command: a result becomes an exit status, an error is printed once.

use clap::Parser;
use gpuimg::cli::Cli;
use gpuimg::{Outcome, complain, nobody_listens, run, status};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => ExitCode::FAILURE,
        // Who reads our output may stop when they have enough.
        Err(error) if nobody_listens(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            status(&error).into()
        }
    }
}
