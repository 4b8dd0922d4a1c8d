//! Rotate: by quarter turns and half turns.

use super::symmetry::Symmetry;
use super::{Operation, Verb};

/// Rotate clockwise by 90, 180 or 270 degrees
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Rotate {
    /// Clockwise angle in degrees
    #[arg(value_name = "90|180|270")]
    pub angle: Angle,
}

/// The angles of `rotate`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Angle {
    /// A quarter turn clockwise
    #[value(name = "90")]
    Quarter,
    /// A half turn
    #[value(name = "180")]
    Half,
    /// A quarter turn anticlockwise
    #[value(name = "270")]
    ThreeQuarters,
}

impl Verb for Rotate {
    const NAME: &'static str = "rotate";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg rotate 90 in.tif out.tif              a quarter turn clockwise\n\
\x20 gpuimg rotate 270 in/ out/ --format png      every image below in/\n\
\x20 gpuimg rotate 180 in.tif in.tif --overwrite  in place";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(match self.angle {
            Angle::Quarter => Symmetry::Rotate90,
            Angle::Half => Symmetry::Rotate180,
            Angle::ThreeQuarters => Symmetry::Rotate270,
        })
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let angles = [Angle::Quarter, Angle::Half, Angle::ThreeQuarters];
        angles.map(|angle| Rotate { angle }.operation()).into()
    }
}
