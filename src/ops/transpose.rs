//! Transpose: rows become columns.

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

    /// The other transposition, too, which only `--auto-orient` asks for.
    fn examples() -> Vec<Box<dyn Operation>> {
        vec![
            Box::new(Symmetry::Transpose),
            Box::new(Symmetry::Transverse),
        ]
    }
}
