//! Zarr stores: folders that are one image. A folder is one if its name ends in `.zarr`, and an address is one.

use super::url::is_url;
use std::ops::Range;
use std::path::Path;

/// The files that describe the node of a Zarr store in whose folder they are: of Zarr v3, and of groups and arrays of v2.
pub const DESCRIPTIONS: [&str; 3] = ["zarr.json", ".zgroup", ".zarray"];

/// The part of a file of a store that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    All,
    /// These bytes.
    Bytes(Range<u64>),
    /// So many of its last bytes, or all if it has fewer.
    Last(u64),
}

/// What was read of a file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The length of the file.
    pub length: u64,
}

/// Whether a path is that of a Zarr store, by its name.
pub fn is_store_name(path: &Path) -> bool {
    let extension = path.extension();
    is_url(path) || extension.is_some_and(|extension| extension.eq_ignore_ascii_case("zarr"))
}

/// Whether a path leads to a folder of files, and not to a Zarr store.
pub fn is_folder_of_files(path: &Path) -> bool {
    path.is_dir() && !is_store_name(path)
}
