//! The choice of how the samples of a TIFF are arranged.

/// How the samples of a TIFF are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Layout {
    /// Rows one after the other, in strips: fastest, and every program reads it
    #[default]
    Strips,
    /// Cloud-optimized (COG): tiles of 512 × 512 pixels with overviews of half the size, a quarter and so on; for one image
    Cog,
}
