//! Copies properties of a replaced file to its successor: its mode and, if the system permits, its
//! owner and access control list (acl(5)). Never the set-user-ID and set-group-ID bits.

use super::fault::{self, Kind};
use super::held::Folder;
use rustix::fs::{Mode, Stat, XattrFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// The extended attribute in which Linux stores the list.
const ACL: &str = "system.posix_acl_access";

/// The largest extended attribute in bytes (xattr(7)).
const MOST: usize = 64 << 10;

/// Makes `file` as accessible as the file `name`, about which `about` is known, and not more.
pub fn inherit(file: &File, folder: &Folder, name: &OsStr, about: &Stat) -> io::Result<()> {
    fault::point(Kind::Stat, &folder.path().join(name))?;
    let new = file.metadata()?;
    let mut mode = Mode::from_raw_mode(about.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    if (new.uid(), new.gid()) != (about.st_uid, about.st_gid) {
        // Only root can change the owner; a user can change the group to one of the user's own.
        let both = fchown(file, Some(about.st_uid), Some(about.st_gid));
        if both.is_err() && fchown(file, None, Some(about.st_gid)).is_err() {
            // The rights of the old group do not pass to another group, which gets the rights of
            // all others.
            let others = Mode::from_raw_mode((mode & Mode::RWXO).bits() << 3);
            mode = (mode - Mode::RWXG) | others;
        }
    }
    // The list's mask is a part of the mode, so the mode is set last.
    copy_acl(file, &folder.own_path(name))?;
    Ok(rustix::fs::fchmod(file, mode)?)
}

fn copy_acl(file: &File, path: &Path) -> io::Result<()> {
    let mut list = vec![0; MOST];
    let copied = match rustix::fs::lgetxattr(path, ACL, &mut list[..]) {
        Ok(size) => rustix::fs::fsetxattr(file, ACL, &list[..size], XattrFlags::empty()),
        // The new file may have inherited a list from the folder.
        Err(Errno::NODATA) => rustix::fs::fremovexattr(file, ACL),
        Err(_) => Ok(()),
    };
    match copied {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_mode_is_that_of_the_replaced_file_without_its_privileges() -> io::Result<()> {
        for (mode, expected) in [
            (0o640, 0o640),
            (0o777, 0o777),
            (0o6755, 0o755),
            (0o1607, 0o607),
        ] {
            let place = tempfile::tempdir()?;
            let folder = Folder::open(place.path())?;
            let old = File::create(place.path().join("old"))?;
            let new = File::create(place.path().join("new"))?;
            old.set_permissions(Permissions::from_mode(mode))?;
            let name = OsStr::new("old");
            let about = folder.look(name)?.ok_or(io::ErrorKind::NotFound)?;
            inherit(&new, &folder, name, &about)?;
            assert_eq!(new.metadata()?.mode() & 0o7777, expected, "{mode:o}");
        }
        Ok(())
    }
}
