//! Zarr stores: folders that are one image. A folder is one if its name ends in `.zarr`.

use std::path::Path;

/// The files that describe the node of a Zarr store in whose folder they are: of Zarr v3, and of groups and arrays of v2.
pub const DESCRIPTIONS: [&str; 3] = ["zarr.json", ".zgroup", ".zarray"];

/// Whether a path is that of a Zarr store, by its name.
pub fn is_store_name(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("zarr"))
}

/// Whether a path leads to a folder of files, and not to a Zarr store.
pub fn is_folder_of_files(path: &Path) -> bool {
    path.is_dir() && !is_store_name(path)
}
