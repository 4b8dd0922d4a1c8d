//! The command: a result becomes an exit status, an error is printed once.

use clap::Parser;
use clap::error::ErrorKind;
use gpuimg::cli::version;
use gpuimg::cli::{self, Cli};
use gpuimg::internals::gpu::visible;
use gpuimg::internals::os::console;
use gpuimg::{Outcome, print_error, run, status};
use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_run(&error),
    };
    if let Some(sentence) = cli::misread(&typed()) {
        console::tell(&format!("gpuimg: {sentence}"));
        return ExitCode::from(2);
    }
    let variables = cli.demand().as_ref().map(visible::variables);
    for (name, value) in variables.unwrap_or_default() {
        #[allow(clippy::disallowed_methods, reason = "there is no other thread yet")]
        // SAFETY: this is the only thread: `run` starts the first of the others.
        unsafe {
            env::set_var(name, value)
        };
    }
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

/// The words after the program's name.
fn typed() -> Vec<String> {
    let words = env::args_os().skip(1);
    words.map(|word| word.to_string_lossy().into()).collect()
}

/// Prints help and the version on standard output, and what is wrong with the command line on standard
/// error, in one message; the help too if nothing was typed.
fn not_run(said: &clap::Error) -> ExitCode {
    let text = said.render().to_string();
    if said.use_stderr() {
        match said.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => console::tell_lines(&text),
            _ => {
                console::tell(&format!("gpuimg: {}", cli::sentence(said, &typed())));
            }
        }
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
