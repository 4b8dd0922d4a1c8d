//! Copies properties of a replaced file to its successor: its mode and, if the system permits, its
//! owner and access control list (acl(5)). Never the set-user-ID and set-group-ID bits.

use super::fault::{self, Kind};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

/// The extended attribute in which Linux stores the list.
const ACL: &str = "system.posix_acl_access";

/// The largest extended attribute in bytes (xattr(7)).
const MOST: usize = 64 << 10;

/// Makes `file` as accessible as the file at `path`, whose metadata are `about`, and not more.
pub fn inherit(file: &File, path: &Path, about: &Metadata) -> io::Result<()> {
    fault::point(Kind::Stat, path)?;
    let new = file.metadata()?;
    let mut mode = about.mode() & 0o777;
    if (new.uid(), new.gid()) != (about.uid(), about.gid()) {
        // Only root can change the owner; a user can change the group to one of the user's own.
        let both = fchown(file, Some(about.uid()), Some(about.gid()));
        if both.is_err() && fchown(file, None, Some(about.gid())).is_err() {
            // The rights of the old group do not pass to another group, which gets the rights of
            // all others.
            mode = mode & 0o707 | (mode & 0o007) << 3;
        }
    }
    // The list's mask is a part of the mode, so the mode is set last.
    copy_acl(file, path)?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn copy_acl(file: &File, path: &Path) -> io::Result<()> {
    let mut list = vec![0; MOST];
    let copied = match rustix::fs::getxattr(path, ACL, &mut list[..]) {
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

    #[test]
    fn the_mode_is_that_of_the_replaced_file_without_its_privileges() -> io::Result<()> {
        for (mode, expected) in [
            (0o640, 0o640),
            (0o777, 0o777),
            (0o6755, 0o755),
            (0o1607, 0o607),
        ] {
            let (old, new) = (
                tempfile::NamedTempFile::new()?,
                tempfile::NamedTempFile::new()?,
            );
            old.as_file()
                .set_permissions(Permissions::from_mode(mode))?;
            let about = old.as_file().metadata()?;
            assert_eq!(about.mode() & 0o7777, mode);
            inherit(new.as_file(), old.path(), &about)?;
            assert_eq!(
                new.as_file().metadata()?.mode() & 0o7777,
                expected,
                "{mode:o}"
            );
        }
        Ok(())
    }
}
