//! Processes a folder on all cores and GPUs, with the operations of `gpuimg run`, and shows the progress:
//!
//! ```sh
//! cargo run --release --features examples --example batch_with_progress 'normalize --clip 0.1:99.9 + rotate 90' in/ out/
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a lost line or a name that prints like another does no harm here"
)]

use gpuimg::Operations;
use gpuimg::batch::{BatchOptions, FileStatus, process};
use std::ops::ControlFlow;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verbs, input, output] = &arguments[..] else {
        eprintln!("expected verbs, an input folder and an output folder");
        return ExitCode::from(2);
    };
    match run(verbs, input, output) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} files failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns how many files failed.
fn run(verbs: &str, input: &str, output: &str) -> gpuimg::Result<usize> {
    let operations: Operations = verbs.parse()?;
    let options = BatchOptions::new().resume();
    let results = process(&[input], output, &operations, &options, |file| {
        let what = match &file.status {
            FileStatus::Done(report) => format!("done on {}", report.device),
            FileStatus::Skipped => "done before".into(),
            FileStatus::Failed(error) => error.to_string(),
            _ => "finished".into(),
        };
        let (finished, files) = (file.finished, file.files);
        println!("{finished} of {files}: {}: {what}", file.input.display());
        // ControlFlow::Break(()) would stop after the files in progress.
        ControlFlow::Continue(())
    })?;
    let failed = results.iter().filter(|file| file.error().is_some());
    Ok(failed.count())
}
