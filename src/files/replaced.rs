//! What a file that is replaced leaves to its successor: its mode, and where the system permits it its
//! owner and its access control list (acl(5)). Never the bits that run a program as another user.

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

/// Where Linux keeps the list.
const ACL: &str = "system.posix_acl_access";

/// The most bytes that an extended attribute has (xattr(7)).
const MOST: usize = 64 << 10;

/// Makes `file` as accessible as the file at `path` was, which `about` tells of, and not more.
pub fn inherit(file: &File, path: &Path, about: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = about.mode() & 0o777;
    if (new.uid(), new.gid()) != (about.uid(), about.gid()) {
        // Only root gives files away; a user may give them to the groups that the user is in.
        let both = fchown(file, Some(about.uid()), Some(about.gid()));
        if both.is_err() && fchown(file, None, Some(about.gid())).is_err() {
            // What was the old group's is not this group's: it gets what all others have.
            mode = mode & 0o707 | (mode & 0o007) << 3;
        }
    }
    // The list's mask is a part of the mode, which therefore comes last.
    copy_acl(file, path)?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn copy_acl(file: &File, path: &Path) -> io::Result<()> {
    let mut list = vec![0; MOST];
    let copied = match rustix::fs::getxattr(path, ACL, &mut list[..]) {
        Ok(size) => rustix::fs::fsetxattr(file, ACL, &list[..size], XattrFlags::empty()),
        // The folder may have given the new file one.
        Err(Errno::NODATA) => rustix::fs::fremovexattr(file, ACL),
        Err(_) => Ok(()),
    };
    match copied {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
