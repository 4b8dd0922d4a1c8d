//! Removes files that a killed run left under a temporary name: recognised by the name, and by the
//! missing lock.
//!
//! The name is `.gpuimg-tmp-HOST-RANDOM`, HOST being the CRC-32 of the machine's name. A run holds
//! a lock on each of its own temporary files. Some network file systems keep locks within one
//! machine, so another machine's file must also be unchanged for an hour.

use super::fault;
use super::held::Folder;
use super::system::{self, About, FileKind};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = ".gpuimg-tmp-";

/// Random letters and digits at the end of a name, as `unfinished` adds them.
pub const RANDOM: usize = 6;

/// How long another machine's file must be unchanged.
const REST: Duration = Duration::from_secs(3600);

/// The prefix of this machine's temporary names.
pub fn prefix() -> String {
    let host = crc32fast::hash(&system::machine_name());
    format!("{PREFIX}{host:08x}-")
}

/// Whether a name is that of a temporary file, and if so, whether of this machine.
fn is_temporary(name: &OsStr) -> Option<bool> {
    let (host, random) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = host.len() == 8
        && host.bytes().all(hex)
        && random.len() == RANDOM
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    fits.then(|| name.as_encoded_bytes().starts_with(prefix().as_bytes()))
}

/// Removes leftovers of killed runs in these folders, and in the folders of links in them. Files
/// that cannot be read or removed remain.
pub fn remove_leftovers(folders: BTreeSet<PathBuf>) {
    let mut linked = BTreeSet::new();
    for folder in &folders {
        sweep(folder, |link| {
            let file = fault::canonicalize(&folder.join(link)).ok();
            linked.extend(file.and_then(|file| Some(file.parent()?.to_path_buf())));
        });
    }
    for folder in linked {
        sweep(&folder, |_| ());
    }
}

/// The folder is held: nobody can have a file of another folder removed by exchanging a name on the way.
fn sweep(path: &Path, mut link: impl FnMut(&OsStr)) {
    let Ok(folder) = Folder::open(path) else {
        return;
    };
    let Ok(entries) = folder.entries() else {
        return;
    };
    for (name, kind) in entries {
        if let Some(own) = is_temporary(&name) {
            remove(&folder, &name, own);
        } else if kind == FileKind::Symlink {
            link(&name);
        }
    }
}

/// Removes an unfinished file, unless a run holds its lock. Failures are ignored: another run may
/// just have renamed or removed it.
fn remove(folder: &Folder, name: &OsStr, own: bool) -> Option<()> {
    let file = folder.open_to_lock(name).ok()?;
    let about = file.metadata().ok()?;
    if !own && about.modified().ok()?.elapsed().ok()? < REST {
        return None;
    }
    file.try_lock().ok()?;
    // The name may belong to another file by now.
    let named = folder.look(name).ok()??;
    if named.id == About::from(&about).id {
        folder.unlink(name).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    /// Each of these lacks one property of such a name.
    #[test]
    fn names_that_are_almost_temporary_are_those_of_others() {
        let own = format!("{}aB3dE6", prefix());
        assert_eq!(is_temporary(own.as_ref()), Some(true));
        let other = ".gpuimg-tmp-0123abcf-aB3dE6";
        assert_eq!(is_temporary(other.as_ref()), Some(false));
        for name in [
            "gpuimg-tmp-0123abcf-aB3dE6",
            ".gpuimg-tmp-0123abcf",
            ".gpuimg-tmp-0123abc-aB3dE6",
            ".gpuimg-tmp-0123abcg-aB3dE6",
            ".gpuimg-tmp-0123ABCF-aB3dE6",
            ".gpuimg-tmp-0123abcf-aB3dE",
            ".gpuimg-tmp-0123abcf-aB3dE67",
            ".gpuimg-tmp-0123abcf-aB3.E6",
        ] {
            assert_eq!(is_temporary(name.as_ref()), None, "{name}");
        }
    }

    #[test]
    fn only_unfinished_files_nobody_holds_are_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        let (dead, held) = (format!("{}aB3dE6", prefix()), format!("{}held00", prefix()));
        let other = ".gpuimg-tmp-00000000-aB3dE6";
        let strangers = [
            ".gpuimg-tmp-notes",
            ".gpuimg-tmp-0123abcd-",
            ".gpuimg-tmp-0123abcd-aB3dE6.tif",
            ".gpuimg-journal",
            ".gpuimg-journal.1-of-2",
        ];
        for name in strangers.iter().chain([&dead.as_str(), &&*held, &other]) {
            fs::write(at(name), b"x").expect("file");
        }
        let holder = File::options().write(true).open(at(&held)).expect("file");
        holder.lock().expect("lock");
        remove_leftovers([folder.path().to_path_buf()].into());
        assert!(!at(&dead).exists());
        assert!(at(&held).exists() && strangers.iter().all(|name| at(name).exists()));
        assert!(at(other).exists(), "another machine may be at it");
        let hours_ago = std::time::SystemTime::now() - 2 * REST;
        let file = File::options().write(true).open(at(other)).expect("file");
        file.set_modified(hours_ago).expect("time");
        drop((file, holder));
        // Through a link in a folder of results, too.
        let results = tempfile::tempdir().expect("folder");
        fs::write(at("a.tif"), b"x").expect("file");
        std::os::unix::fs::symlink(at("a.tif"), results.path().join("a.tif")).expect("link");
        remove_leftovers([results.path().to_path_buf()].into());
        assert!(!at(other).exists() && !at(&held).exists());
        assert!(at("a.tif").exists());
    }
}
