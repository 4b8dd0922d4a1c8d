//! Reads an image, scales its values without the outliers, turns it, and writes it in another format:
//!
//! ```sh
//! cargo run --release --features examples --example read_normalize_write samples/nuclei.tif out.png
//! ```

#![allow(clippy::disallowed_macros, reason = "a lost line does no harm here")]

use gpuimg::{Device, Normalize, Operations};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        eprintln!("expected an input and an output");
        return ExitCode::from(2);
    };
    match convert(&input, &output) {
        Ok(()) => ExitCode::SUCCESS,
        // The sentence names the operation, the file and the reason.
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(input: &str, output: &str) -> gpuimg::Result<()> {
    let image = gpuimg::read(input)?;
    println!("{input}: {}, {}", image.shape(), image.sample_type());

    let operations = Operations::new()
        .normalize(Normalize::clip(0.1, 99.9)?)
        .rotate90();
    let result = operations.run(image, &Device::auto())?;
    let report = result.report();
    println!("{}", report.plan);
    for ranges in &report.ranges {
        println!("scaled from {ranges:?}");
    }
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }

    gpuimg::write(output, &result)?;
    Ok(())
}
