//! What the fuzz targets share: second opinions, recipes of images, mutators that keep checksums
//! right, and the seeds of the corpora.

pub mod mutate_png;
pub mod mutate_tiff;
pub mod opinion;
pub mod random;
pub mod recipe;
pub mod seeds;
pub mod store;

#[path = "../../support/dicom.rs"]
pub mod dicom_files;
#[path = "../../support/lossless.rs"]
pub mod lossless_files;
#[path = "../../support/png.rs"]
pub mod png_files;
#[path = "../../support/tiff.rs"]
pub mod tiff_files;
#[path = "../../support/tiled.rs"]
pub mod tiled_files;
