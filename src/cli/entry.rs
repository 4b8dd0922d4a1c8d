//! The program: a command line becomes an exit status, and an error is printed once.

use super::typed::typed_command;
use super::{Cli, help, sentence, verbs, version};
use crate::gpu::visible::Demand;
use crate::gpu::{self, visible};
use crate::image::simd;
use crate::os::outcome::{Outcome, Usage, usage};
use crate::os::{console, interrupt, limits, url};
use anyhow::{Error, Result, anyhow};
use clap::FromArgMatches;
use clap::error::ErrorKind;
use rayon::ThreadPoolBuilder;
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Runs the program `gpuimg` with the arguments of this process, and returns its exit status.
///
/// It prints, handles signals, and starts the global thread pool, as a program does. Code that works on images calls the
/// functions at the root of this crate instead.
///
/// # Safety
/// No other thread may run: it sets environment variables for the GPU's driver. Call it first in `main`.
pub unsafe fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().collect();
    // SAFETY: the caller guarantees the same.
    unsafe { main_with(&args) }.into()
}

/// As [`main`], with arguments that another program has received, the name of the program first; returns the exit status.
///
/// # Safety
/// That of [`main`].
pub unsafe fn main_with(args: &[OsString]) -> u8 {
    let mut command = help::command(&typed(args));
    let parsed = command.try_get_matches_from_mut(args).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.record(typed_command(&command, &matches));
        Ok(cli)
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return not_run(&error, args),
    };
    if let Some(sentence) = super::misread(&typed(args)) {
        console::tell(&format!("gpuimg: {}", url::redacted(&sentence)));
        return 2;
    }
    let variables = cli.demand().as_ref().map(visible::variables);
    for (name, value) in variables.unwrap_or_default() {
        #[allow(clippy::disallowed_methods, reason = "there is no other thread yet")]
        // SAFETY: the caller guarantees that this is the only thread, and nothing above starts one.
        unsafe {
            env::set_var(name, value)
        };
    }
    match run(&cli) {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::SomeFailed) => 1,
        // A reader of standard output may close the pipe early, as `head` does: no error.
        Err(error) if error.is::<console::ReaderGone>() => 0,
        Err(error) => {
            print_error(&error);
            status(&error)
        }
    }
}

/// Runs the command that was typed.
fn run(cli: &Cli) -> Result<Outcome> {
    simd::check().map_err(usage)?;
    interrupt::listen()?;
    start_threads(cli)?;
    verbs::run(cli)
}

/// Starts the global thread pool: one thread for each core that this process may use and its input can occupy, or
/// `RAYON_NUM_THREADS`.
fn start_threads(cli: &Cli) -> Result<()> {
    // With 0 threads rayon reads the variable itself.
    let threads = match env::var_os("RAYON_NUM_THREADS") {
        Some(_) => 0,
        None => limits::cores().min(useful_threads(cli)),
    };
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| anyhow!(interrupt::NO_THREAD))
}

/// A file gets at least this many threads, and more if it has `BYTES_PER_THREAD` for each. On 64 cores a PNG of 8192² (110 MB)
/// took 0.20 s with all of them, 0.16 s with 32 and 0.17 s with 16; one of 16384² took 0.21 s with 64 and 0.24 s with 16.
const MIN_USEFUL_THREADS: usize = 32;
const BYTES_PER_THREAD: u64 = 4 << 20;

/// The number of threads that are useful for the input: for a single file they depend on its length.
fn useful_threads(cli: &Cli) -> usize {
    match cli.demand() {
        Some(Demand {
            inputs: [input], ..
        }) => match input.metadata() {
            Ok(file) if file.is_file() => {
                MIN_USEFUL_THREADS.max((file.len() / BYTES_PER_THREAD) as usize)
            }
            _ => usize::MAX,
        },
        _ => usize::MAX,
    }
}

/// Prints an error on standard error, in one line.
pub fn print_error(error: &Error) {
    console::tell(&format!("gpuimg: {error:#}"));
}

/// The exit status for an error: 2 for wrong usage, 3 if the requested GPU cannot be used, 1 for
/// everything else.
pub fn status(error: &Error) -> u8 {
    if error.is::<gpu::Unusable>() {
        3
    } else if error.is::<Usage>() {
        2
    } else {
        1
    }
}

/// The words after the program's name.
fn typed(args: &[OsString]) -> Vec<String> {
    let words = args.iter().skip(1);
    words.map(|word| word.to_string_lossy().into()).collect()
}

/// Prints help and the version on standard output, and what is wrong with the command line on standard
/// error, in one message; the help too if nothing was typed.
fn not_run(said: &clap::Error, args: &[OsString]) -> u8 {
    let text = said.render().to_string();
    if said.use_stderr() {
        match said.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => console::tell_lines(&text),
            _ => {
                let sentence = sentence(said, &typed(args));
                console::tell(&format!("gpuimg: {}", url::redacted(&sentence)));
            }
        }
        return 2;
    }
    let longer = match said.kind() {
        ErrorKind::DisplayVersion => version::text(args),
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
            1
        }
        _ => 0,
    }
}
