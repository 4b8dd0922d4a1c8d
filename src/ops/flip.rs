//! Flip: mirrors the image, left to right or top to bottom.

use super::symmetry::Symmetry;
use super::{Operation, Verb};

/// Mirror left to right (horizontal) or top to bottom (vertical)
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Flip {
    /// Which way
    pub axis: Axis,
}

/// The axes of `flip`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Axis {
    /// Left and right change places
    #[value(alias = "h")]
    Horizontal,
    /// Top and bottom change places
    #[value(alias = "v")]
    Vertical,
}

impl Verb for Flip {
    const NAME: &'static str = "flip";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg flip horizontal in.png out.png  left and right change places\n\
\x20 gpuimg flip v in/ out/                 every image below in/, top to bottom";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(match self.axis {
            Axis::Horizontal => Symmetry::FlipHorizontal,
            Axis::Vertical => Symmetry::FlipVertical,
        })
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let axes = [Axis::Horizontal, Axis::Vertical];
        let of = |axis| Flip { axis }.operation();
        axes.map(of).into()
    }
}
