//! Images for batches, and what a run leaves in a folder.

use crate::support::{Numbers, Run, folder, listing, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const JOURNAL: &str = ".gpuimg-journal";

/// A PGM of noise, another for every seed.
pub fn pgm(width: usize, height: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed + 1);
    let mut file = format!("P5\n{width} {height}\n65535\n").into_bytes();
    file.extend((0..2 * width * height).map(|_| (numbers.next() >> 40) as u8 & 0x3f));
    file
}

/// All files below a folder with their bytes, but for the journals.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for name in listing(&folder) {
            let path = folder.join(name);
            if path.is_dir() {
                folders.push(path);
            } else if !is_journal(&path) {
                let below = path.strip_prefix(root).expect("below").to_path_buf();
                files.insert(below, fs::read(&path).expect("file"));
            }
        }
    }
    files
}

fn is_journal(path: &Path) -> bool {
    let name = path.file_name().expect("name").to_string_lossy();
    name.starts_with(JOURNAL)
}

pub fn names(root: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    tree(root).into_keys().map(name).collect()
}

/// A folder `in` of `count` images of 160×120, and what becomes of them in a run that nothing disturbs.
pub fn series(count: usize) -> (tempfile::TempDir, BTreeMap<PathBuf, Vec<u8>>) {
    let root = folder(&[("in/0/x", b"")]);
    fs::remove_file(root.path().join("in/0/x")).expect("remove");
    for i in 0..count {
        let path = root.path().join(format!("in/{}/{i:03}.pgm", i % 3));
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, pgm(160, 120, i as u64)).expect("file");
    }
    let args = ["normalize", "--format", "png", "-q", "in", "expected"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let expected = tree(&root.path().join("expected"));
    assert_eq!(expected.len(), count);
    (root, expected)
}
