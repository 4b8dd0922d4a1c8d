//! Unix.

use super::{About, FileId, FileKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getpid, getrlimit, kill_process};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

// Names.

/// The name with these bytes.
pub fn name_of_bytes(bytes: &[u8]) -> io::Result<&OsStr> {
    Ok(OsStr::from_bytes(bytes))
}

// Properties of files.

impl From<&Metadata> for About {
    fn from(about: &Metadata) -> About {
        About {
            kind: kind_of_type(FileType::from_raw_mode(about.mode() as _)),
            mode: about.mode() & 0o7777,
            owner: about.uid(),
            group: about.gid(),
            id: FileId {
                device: about.dev(),
                inode: about.ino(),
            },
            links: about.nlink(),
            size: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            status_changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

// The types of these fields differ between systems.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn about_stat(about: &Stat) -> About {
    About {
        kind: kind_of_type(FileType::from_raw_mode(about.st_mode)),
        mode: u32::from(about.st_mode) & 0o7777,
        owner: about.st_uid,
        group: about.st_gid,
        id: FileId {
            device: about.st_dev as u64,
            inode: about.st_ino as u64,
        },
        links: about.st_nlink as u64,
        size: about.st_size as u64,
        modified: (about.st_mtime as i64, about.st_mtime_nsec as i64),
        status_changed: (about.st_ctime as i64, about.st_ctime_nsec as i64),
    }
}

/// The type of a file as `std` has it.
pub fn kind_of(kind: std::fs::FileType) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_file() => FileKind::Regular,
        () if kind.is_dir() => FileKind::Directory,
        () if kind.is_symlink() => FileKind::Symlink,
        () if kind.is_fifo() => FileKind::Fifo,
        () if kind.is_socket() => FileKind::Socket,
        () if kind.is_char_device() => FileKind::CharacterDevice,
        () if kind.is_block_device() => FileKind::BlockDevice,
        () => FileKind::Unknown,
    }
}

fn kind_of_type(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Unknown => FileKind::Unknown,
    }
}

/// The file to which a path leads, through links.
pub fn id_at(path: &Path) -> io::Result<FileId> {
    Ok(About::from(&fs::metadata(path)?).id)
}

/// The file at a path, or the link itself.
pub fn id_of_entry(path: &Path) -> io::Result<FileId> {
    Ok(About::from(&fs::symlink_metadata(path)?).id)
}

/// An open file.
pub fn id_of(file: &File) -> io::Result<FileId> {
    Ok(About::from(&file.metadata()?).id)
}

/// Whether this process may create files in a folder.
///
/// # Errors
/// It may not.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Whether standard input is a terminal or another device.
pub fn stdin_is_device() -> io::Result<bool> {
    let about = rustix::fs::fstat(rustix::stdio::stdin())?;
    Ok(FileType::from_raw_mode(about.st_mode).is_char_device())
}

// Files.

/// Fills `buffer` with the bytes from `offset` on.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Writes `bytes` at `offset`.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Parts that `write_parts_at` writes, at most: IOV_MAX of Linux.
pub const MOST_PARTS: usize = 1024;

/// Writes parts, one after the other, from `offset` on, with one system call. Returns how many bytes it wrote.
pub fn write_parts_at(file: &File, parts: &[IoSlice], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, parts, offset)?)
}

/// Reserves `len` bytes on the disk. Does nothing on a file system that cannot reserve space.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, len) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}

/// Closes a file, and returns the error that dropping it would ignore.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: `into_raw_fd` gives the descriptor away, so that it belongs to nothing else.
    Ok(unsafe { rustix::io::try_close(file.into_raw_fd()) }?)
}

/// Has these options open a FIFO without waiting for its other end.
pub fn without_waiting(options: &mut OpenOptions) {
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
}

/// Has these options refuse a link, and open a FIFO or a terminal without waiting for it or being controlled by it.
pub fn only_itself(options: &mut OpenOptions) {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits() as i32);
}

/// Opens a FIFO or a device for writing; `None` if it is a FIFO without a reader.
pub fn open_to_stream(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NXIO) if kind_at(path) == Some(FileKind::Fifo) => Ok(None),
        opened => Ok(Some(opened?.into())),
    }
}

fn kind_at(path: &Path) -> Option<FileKind> {
    let about = path.metadata().ok()?;
    Some(About::from(&about).kind)
}

/// Makes writes to a stream wait for its reader.
pub fn wait_for_reader(stream: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(stream)?;
    Ok(rustix::fs::fcntl_setfl(stream, flags - OFlags::NONBLOCK)?)
}

/// Whether an error says that a link stands where a file or a folder was expected.
pub fn is_link(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NOTDIR, Errno::LOOP])
}

/// Whether an error says that a folder, or a FIFO without a reader, stands where a file was expected.
pub fn is_no_file(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::ISDIR, Errno::NXIO])
}

/// Whether a system or file system lacks a call or its flags.
pub fn is_lacking(error: &io::Error) -> bool {
    is_one_of(
        error,
        &[Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP],
    )
}

/// Whether a file system cannot link files. Some object stores' file systems say EPERM or EMLINK.
pub fn lacks_links(error: &io::Error) -> bool {
    is_lacking(error) || is_one_of(error, &[Errno::PERM, Errno::MLINK])
}

fn is_one_of(error: &io::Error, errors: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|error| errors.contains(&error))
}

// Folders.

/// A folder that is held open.
#[derive(Debug)]
pub struct OpenFolder(OwnedFd);

// Linux holds a folder that may not be read; macOS opens folders for reading.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::RDONLY;

impl OpenFolder {
    /// Opens a folder, through links.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        let flags = HOLD | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(OpenFolder(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens a folder in this one, without following a link.
    pub fn enter(&self, name: &OsStr) -> io::Result<OpenFolder> {
        let flags = HOLD | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(OpenFolder(self.openat(name, flags, 0)?))
    }

    fn openat(
        &self,
        name: impl rustix::path::Arg,
        flags: OFlags,
        mode: u32,
    ) -> io::Result<OwnedFd> {
        let mode = Mode::from_raw_mode(mode as _);
        Ok(rustix::fs::openat(&self.0, name, flags, mode)?)
    }

    /// Creates a folder in this one.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(
            &self.0,
            name,
            Mode::from_raw_mode(0o777),
        )?)
    }

    /// The folder, opened so that its entries can be read, and it can be locked.
    pub fn open_itself(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(self.openat(".", flags, 0)?.into())
    }

    /// Waits until the entries are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(self.open_itself()?) {
            // Some file systems do not support this call for folders.
            Err(Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The properties of a file, without following a link.
    pub fn look(&self, name: &OsStr) -> io::Result<About> {
        let about = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(about_stat(&about))
    }

    /// The names in the folder, and what each is as far as the file system says it here.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = (OsString, FileKind)>> {
        let entries = Dir::new(self.open_itself()?)?.flatten();
        let entries = entries.filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."));
        Ok(entries.map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            (name, kind_of_type(entry.file_type()))
        }))
    }

    /// Opens a file, and `to_write` too, without following a link and without waiting for the writer of a FIFO.
    pub fn open_file(&self, name: &OsStr, to_write: bool) -> io::Result<File> {
        let access = if to_write {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(self.openat(name, flags, 0)?.into())
    }

    /// A new empty file.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        Ok(self.openat(name, flags, mode)?.into())
    }

    /// An empty file, which replaces the content of one that has the name.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(self.openat(name, flags, 0o666)?.into())
    }

    /// A new empty file without a name, if this file system supports that; only Linux does.
    pub fn nameless(&self, mode: u32) -> Option<File> {
        #[cfg(target_os = "linux")]
        return Some(
            self.openat(".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)
                .ok()?
                .into(),
        );
        #[cfg(not(target_os = "linux"))]
        return {
            let _ = mode;
            None
        };
    }

    /// Gives a file without a name this name, which must be free.
    pub fn link_nameless(&self, file: &File, name: &OsStr) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(
            CWD,
            own,
            &self.0,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }

    /// Gives a file a second name, which must be free.
    pub fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(
            &self.0,
            from,
            &self.0,
            to,
            AtFlags::empty(),
        )?)
    }

    /// Renames a file, over one that has the name, or over a link.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames a file to a name that must be free.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(
            &self.0, from, &self.0, to, flags,
        )?)
    }

    /// Exchanges two names.
    pub fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::EXCHANGE;
        Ok(rustix::fs::renameat_with(
            &self.0, one, &self.0, other, flags,
        )?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a name.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes `file` as accessible as the file `name`, about which `about` is known, and not more: its mode and, if the system
    /// permits, its owner and access control list (acl(5)). Never the set-user-ID and set-group-ID bits.
    pub fn inherit_access(&self, file: &File, name: &OsStr, about: &About) -> io::Result<()> {
        let new = file.metadata()?;
        let mut mode = about.mode & 0o777;
        if (new.uid(), new.gid()) != (about.owner, about.group) {
            // Only root can change the owner; a user can change the group to one of the user's own.
            let both = fchown(file, Some(about.owner), Some(about.group));
            if both.is_err() && fchown(file, None, Some(about.group)).is_err() {
                // The rights of the old group do not pass to another group, which gets the rights of
                // all others.
                mode = (mode & !0o070) | (mode & 0o007) << 3;
            }
        }
        // The list's mask is a part of the mode, so the mode is set last.
        copy_acl(file, &self.path_through(name))?;
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as _))?)
    }

    /// A path to `name` through the open folder, for calls that need a path; without `/proc`, the path does
    /// not exist.
    fn path_through(&self, name: &OsStr) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.0.as_raw_fd())).join(name)
    }
}

/// The extended attribute in which Linux stores an access control list.
const ACL: &str = "system.posix_acl_access";

/// The largest extended attribute in bytes (xattr(7)).
const MOST_ATTRIBUTE: usize = 64 << 10;

fn copy_acl(file: &File, path: &Path) -> io::Result<()> {
    let mut list = vec![0; MOST_ATTRIBUTE];
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

/// A file as `/proc/locks` names it; `None` on systems without that list.
pub fn name_in_lock_table(file: &File) -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{fstat, major, minor};
        let about = fstat(file).ok()?;
        let (major, minor) = (major(about.st_dev), minor(about.st_dev));
        Some(format!("{major:02x}:{minor:02x}:{}", about.st_ino))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

// Standard streams. Not through `std`, which reports success for a descriptor that cannot be written.

/// Whether standard output was closed when the process began.
static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds addresses of functions that the loader calls before `main`. This
// function makes one system call and writes an atomic, which need no initialisation by `std`.
#[cfg(target_os = "linux")]
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = note_closed;

/// Records whether standard output is closed. Before `main`, `std` opens /dev/null in place of a
/// closed standard stream; afterwards the two cases cannot be distinguished, so this runs earlier.
#[cfg(target_os = "linux")]
extern "C" fn note_closed() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    OUTPUT_WAS_CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the process began.
pub fn output_was_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Writes to standard output. Returns how many bytes it took.
pub fn write_output(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
}

/// Writes to standard error. Returns how many bytes it took.
pub fn write_error(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(rustix::stdio::stderr(), bytes)?)
}

/// Whether a write to standard error needs no waiting.
pub fn error_is_ready() -> bool {
    let stream = rustix::stdio::stderr();
    let mut streams = [PollFd::new(&stream, PollFlags::OUT)];
    let ready = rustix::event::poll(&mut streams, Some(&Timespec::default()));
    ready.is_ok_and(|count| count > 0) && streams[0].revents() == PollFlags::OUT
}

/// The columns of the terminal that standard error is, 0 if its size was never set; `None` if it is no terminal.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok()?;
    Some(size.ws_col.into())
}

/// Whether both standard streams are the same terminal.
pub fn is_one_terminal() -> bool {
    let output = rustix::stdio::stdout();
    let device = |stream| rustix::fs::fstat(stream).map(|about| about.st_rdev).ok();
    rustix::termios::isatty(output) && device(output) == device(rustix::stdio::stderr())
}

// Processes.

/// The name of this machine in the network.
pub fn machine_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Bytes of address space that `ulimit -v` allows; `None` without a limit.
pub fn address_space_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Bytes of free memory that only this system's own call reports; elsewhere they are in `/proc`.
pub fn free_memory() -> Option<u64> {
    None
}

/// SIGINT, SIGTERM and SIGHUP. A signal that was ignored when the process started (`nohup`, background jobs of a shell)
/// stays ignored.
pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    /// Installs the handlers. A second signal ends the process at once, and a write beyond the limit on file sizes
    /// (`ulimit -f`) fails like any other write.
    pub fn install() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
        use signal_hook::flag;
        // With any handler installed, the write fails instead of the process being killed.
        flag::register(SIGXFSZ, Arc::default())?;
        let ignored = ignored_signals();
        let heard = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let heard: Vec<i32> = heard
            .filter(|signal| ignored >> (signal - 1) & 1 == 0)
            .collect();
        // If the orderly end takes long, a second signal ends the process at once.
        let requested = Arc::new(AtomicBool::new(false));
        for &signal in &heard {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&requested))?;
            flag::register(signal, Arc::clone(&requested))?;
        }
        Ok(Signals(signal_hook::iterator::Signals::new(heard)?))
    }

    /// Waits for the first signal.
    pub fn wait(mut self) -> Option<i32> {
        self.0.forever().next()
    }
}

/// What the end of a run says after "interrupted".
pub fn signal_name(signal: i32) -> &'static str {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    match signal {
        SIGTERM => " by SIGTERM",
        SIGHUP => " by SIGHUP",
        _ => "",
    }
}

/// The signals that the process ignores, with signal 1 in the lowest bit, as Linux reports them.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

// Faults that tests request.

/// The number of an error by its name in C.
pub fn error_number(name: &str) -> Option<i32> {
    let error = match name {
        "EACCES" => Errno::ACCESS,
        "EAGAIN" => Errno::AGAIN,
        "EDQUOT" => Errno::DQUOT,
        "EEXIST" => Errno::EXIST,
        "EINTR" => Errno::INTR,
        "EINVAL" => Errno::INVAL,
        "EIO" => Errno::IO,
        "ELOOP" => Errno::LOOP,
        "EMFILE" => Errno::MFILE,
        "ENOENT" => Errno::NOENT,
        "ENOMEM" => Errno::NOMEM,
        "ENOSPC" => Errno::NOSPC,
        "ENOSYS" => Errno::NOSYS,
        "ENOTDIR" => Errno::NOTDIR,
        "EOPNOTSUPP" => Errno::OPNOTSUPP,
        "EPERM" => Errno::PERM,
        "EROFS" => Errno::ROFS,
        "ESTALE" => Errno::STALE,
        _ => return None,
    };
    Some(error.raw_os_error())
}

/// Stops this process until somebody sends SIGCONT.
pub fn stop() -> io::Result<()> {
    kill_process(getpid(), Signal::STOP)?;
    // Another thread may get the signal, and this one stop a moment later.
    thread::sleep(Duration::from_millis(20));
    Ok(())
}
