//! Addresses of images inside a file: the path `scan.h5:/entry/data` means the image `/entry/data` in the file `scan.h5`.

use super::url::is_url;
use super::{fault, system};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Component, Path};

/// The file and the address in a path such as `scan.h5:/entry/data`. `None` if the path has no address: it names no file
/// before a `:/`, or a file has the whole path as its name.
pub fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    if is_url(path) {
        return None;
    }
    let bytes = system::bytes_of(path.as_os_str());
    // Few paths contain the mark, so most cost no system call.
    let mut marks = bytes
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == b":/")
        .map(|(at, _)| at)
        .peekable();
    marks.peek()?;
    if fault::symlink_metadata(path).is_ok() {
        return None;
    }
    marks.find_map(|at| {
        let file = Path::new(system::name_of_bytes(&bytes[..at]).ok()?);
        let address = system::name_of_bytes(&bytes[at + 1..]).ok()?;
        let is_file = fault::metadata(file).is_ok_and(|about| about.is_file());
        is_file.then_some((file, address))
    })
}

/// The file that a path names: the path without the address of an image in the file.
pub fn file_of(path: &Path) -> &Path {
    split(path).map_or(path, |(file, _)| file)
}

/// A path without special meaning, after which a result can be named: `in/scan-entry-data.h5` for
/// `in/scan.h5:/entry/data`, and any other path as it is.
pub fn as_file_name(path: &Path) -> Cow<'_, Path> {
    let Some((file, address)) = split(path) else {
        return path.into();
    };
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    for part in Path::new(address).components() {
        if let Component::Normal(part) = part {
            name.push("-");
            name.push(part);
        }
    }
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_address_follows_the_name_of_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("scan.h5"), b"x").expect("a file");
        let address = path("scan.h5:/entry/data");
        let parts = split(&address).expect("an address");
        assert_eq!(parts, (&*path("scan.h5"), OsStr::new("/entry/data")));
        assert_eq!(file_of(&address), path("scan.h5"));
        assert_eq!(as_file_name(&address), path("scan-entry-data.h5"));
        let root = path("scan.h5:/");
        assert_eq!(
            split(&root).map(|(_, address)| address),
            Some(OsStr::new("/"))
        );
        assert_eq!(as_file_name(&root), path("scan.h5"));
    }

    #[test]
    fn a_file_of_the_whole_name_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("scan.h5"), b"x").expect("a file");
        fs::create_dir(path("scan.h5:")).expect("a folder");
        fs::write(path("scan.h5:/data"), b"y").expect("a file");
        for whole in ["scan.h5:/data", "scan.h5", "none.h5:/data"] {
            let whole = path(whole);
            assert_eq!(split(&whole), None);
            assert_eq!(file_of(&whole), whole);
            assert_eq!(as_file_name(&whole), whole);
        }
        assert!(split(&path("scan.h5:/other")).is_some());
    }
}
