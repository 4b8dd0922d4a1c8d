//! Flip: mirrors the image, left to right or top to bottom.

use super::symmetry::Symmetry;
use super::{Operation, Verb};

/// Mirror left to right (horizontal) or top to bottom (vertical)
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Flip {
    /// The direction
    pub axis: Axis,
}

/// The axes of `flip`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Axis {
    /// Swap left and right
    #[value(alias = "h")]
    Horizontal,
    /// Swap top and bottom
    #[value(alias = "v")]
    Vertical,
}

impl Verb for Flip {
    const NAME: &'static str = "flip";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg flip horizontal in.png out.png  swap left and right\n\
\x20 gpuimg flip v in/ out/                 every image below in/, upside down";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(match self.axis {
            Axis::Horizontal => Symmetry::FlipHorizontal,
            Axis::Vertical => Symmetry::FlipVertical,
        })
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let axes = [Axis::Horizontal, Axis::Vertical];
        axes.map(|axis| Flip { axis }.operation()).into()
    }
}
