//! Transpose: exchanges rows and columns.

use super::symmetry::Symmetry;
use super::{Operation, Verb};

/// Transpose (swap rows and columns)
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[group(skip)]
pub struct Transpose;

impl Verb for Transpose {
    const NAME: &'static str = "transpose";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg transpose in.pgm out.png         rows become columns\n\
\x20 gpuimg transpose in/ out/ --format tif  every image below in/";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(Symmetry::Transpose)
    }

    /// Includes `Transverse`, which only `--auto-orient` uses.
    fn examples() -> Vec<Box<dyn Operation>> {
        vec![
            Box::new(Symmetry::Transpose),
            Box::new(Symmetry::Transverse),
        ]
    }
}
