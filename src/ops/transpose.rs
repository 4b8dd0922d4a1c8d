//! Transpose: exchanges rows and columns.

use super::symmetry::Symmetry;
use super::{Operation, Verb};

/// Exchange rows and columns
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[group(skip)]
pub struct Transpose;

impl Verb for Transpose {
    const NAME: &'static str = "transpose";

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
