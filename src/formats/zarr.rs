//! OME-Zarr (OME-NGFF 0.1 to 0.5) and plain arrays of Zarr v2 and v3: folders that are one image, with up to the axes t, c, z, y
//! and x. A page is a plane of y and x; the other axes become pages, the last of them fastest.
//!
//! The descriptions are read by own code, because the crate `zarrs` needs a newer Rust than this one and brings more than 100
//! crates; the codecs are those of other formats and `lz4_flex`.

mod array;
pub(super) mod blosc;
mod codecs;
mod decode;
mod json;
mod multiscales;
mod node;

use super::format::{Capabilities, Field, Format};

/// OME-Zarr.
pub static FORMAT: Format = Format {
    name: "Zarr",
    id: "zarr",
    title: "OME-Zarr",
    extensions: &["zarr"],
    is_folder: true,
    capabilities: Capabilities {
        channels: &[1, 3],
        alpha: &[],
        fields: &[Field::Resolution],
        ..Capabilities::ALL_SAMPLES
    },
    decoder: |source, _| Ok(Box::new(decode::ZarrDecoder::open(source)?)),
    ..Format::DEFAULTS
};
