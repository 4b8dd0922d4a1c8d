//! Windows. A folder is its path here: a program that may write to a folder can redirect a run by swapping a name in it.
//! An unfinished output has a temporary name, which remains if the process is killed; a later run removes it. A
//! new file has the access rights that its folder passes on.

use super::{About, FileId, FileKind};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use winapi_util::file::information;
use winapi_util::{Handle, HandleRef};

// Names.

/// The name with these bytes.
///
/// # Errors
/// They are not UTF-8.
pub fn name_of_bytes(bytes: &[u8]) -> io::Result<&OsStr> {
    let name = std::str::from_utf8(bytes);
    let name = name.map_err(|_| io::Error::other("a file name is not UTF-8"))?;
    Ok(name.as_ref())
}

// Properties of files.

impl From<&Metadata> for About {
    fn from(about: &Metadata) -> About {
        let modified = since_1970(about.last_write_time());
        About {
            kind: kind_of(about.file_type()),
            mode: 0o666,
            owner: 0,
            group: 0,
            id: FileId {
                device: 0,
                inode: about.creation_time(),
            },
            links: 1,
            size: about.len(),
            modified,
            status_changed: modified,
        }
    }
}

/// Seconds since 1970 and nanoseconds of a time in units of 100 ns since 1601.
fn since_1970(time: u64) -> (i64, i64) {
    const SECONDS: i64 = 11_644_473_600;
    let (seconds, rest) = (time / 10_000_000, time % 10_000_000);
    (seconds as i64 - SECONDS, rest as i64 * 100)
}

/// The type of a file as `std` has it.
pub fn kind_of(kind: FileType) -> FileKind {
    match () {
        () if kind.is_symlink() => FileKind::Symlink,
        () if kind.is_dir() => FileKind::Directory,
        () if kind.is_file() => FileKind::Regular,
        () => FileKind::Unknown,
    }
}

/// The file to which a path leads, through links.
pub fn id_at(path: &Path) -> io::Result<FileId> {
    id_of_handle(Handle::from_path_any(path)?)
}

/// The file at a path, or the link itself.
pub fn id_of_entry(path: &Path) -> io::Result<FileId> {
    match path.symlink_metadata()?.is_symlink() {
        true => Err(io::Error::other("it is a symbolic link")),
        false => id_at(path),
    }
}

/// An open file.
pub fn id_of(file: &File) -> io::Result<FileId> {
    id_of_handle(Handle::from_file(file.try_clone()?))
}

fn id_of_handle(handle: Handle) -> io::Result<FileId> {
    let about = information(&handle)?;
    Ok(FileId {
        device: about.volume_serial_number(),
        inode: about.file_index(),
    })
}

/// Whether this process may create files in a folder.
///
/// # Errors
/// It may not.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    // Access control lists can only be tried; the read-only attribute of a folder does not protect it.
    fs::metadata(folder).map(drop)
}

/// Whether standard input is a terminal or another device.
pub fn stdin_is_device() -> io::Result<bool> {
    Ok(io::stdin().is_terminal())
}

// Files.

/// Fills `buffer` with the bytes from `offset` on.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes `bytes` at `offset`.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Parts that `write_parts_at` writes, at most: each is a call of its own.
pub const MOST_PARTS: usize = 1024;

/// Writes parts, one after the other, from `offset` on. Returns how many bytes it wrote.
pub fn write_parts_at(file: &File, parts: &[IoSlice], offset: u64) -> io::Result<usize> {
    let mut written = 0;
    for part in parts {
        write_all_at(file, part, offset + written as u64)?;
        written += part.len();
    }
    Ok(written)
}

/// Reserves `len` bytes on the disk: NTFS does so when the length is set.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)
}

/// Closes a file: the system reports no error then.
pub fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Has these options open a FIFO without waiting for its other end: there are none in a folder here.
pub fn without_waiting(_: &mut OpenOptions) {}

/// Has these options open a link itself, which then is no regular file.
pub fn only_itself(options: &mut OpenOptions) {
    const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
}

/// Opens a device for writing.
pub fn open_to_stream(path: &Path) -> io::Result<Option<File>> {
    Ok(Some(File::options().write(true).open(path)?))
}

/// Makes writes to a stream wait for its reader: they do.
pub fn wait_for_reader(_: &File) -> io::Result<()> {
    Ok(())
}

/// Whether an error says that a link stands where a file or a folder was expected.
pub fn is_link(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
}

/// Whether an error says that a folder stands where a file was expected.
pub fn is_no_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::IsADirectory
}

/// Whether a system or file system lacks a call.
pub fn is_lacking(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// Whether a file system cannot link files.
pub fn lacks_links(error: &io::Error) -> bool {
    // ERROR_INVALID_FUNCTION, as FAT answers.
    is_lacking(error) || error.raw_os_error() == Some(1)
}

// Folders.

/// A folder.
#[derive(Debug)]
pub struct OpenFolder(PathBuf);

impl OpenFolder {
    /// Opens a folder, through links.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(OpenFolder(path.into())),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a folder in this one; a link is no folder.
    pub fn enter(&self, name: &OsStr) -> io::Result<OpenFolder> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => Ok(OpenFolder(path)),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Creates a folder in this one.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    /// Waits until the entries are on the disk: NTFS keeps a journal of them, and has no such call.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// The properties of a file, without following a link.
    pub fn look(&self, name: &OsStr) -> io::Result<About> {
        Ok(About::from(&fs::symlink_metadata(self.0.join(name))?))
    }

    /// The names in the folder, and what each is.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = (OsString, FileKind)>> {
        let entries = fs::read_dir(&self.0)?.flatten();
        Ok(entries.map(|entry| {
            let kind = entry.file_type().map_or(FileKind::Unknown, kind_of);
            (entry.file_name(), kind)
        }))
    }

    /// Opens a file, and `to_write` too; a link itself, which is no regular file.
    pub fn open_file(&self, name: &OsStr, to_write: bool) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(to_write);
        only_itself(&mut options);
        options.open(self.0.join(name))
    }

    /// A new empty file.
    pub fn create_new(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        options.open(self.0.join(name))
    }

    /// An empty file, which replaces the content of one that has the name.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        File::create(self.0.join(name))
    }

    /// There are no files without a name.
    pub fn nameless(&self, _mode: u32) -> Option<File> {
        None
    }

    /// There are no files without a name.
    pub fn link_nameless(&self, _: &File, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a file a second name, which must be free.
    pub fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))
    }

    /// Renames a file, over one that has the name, or over a link.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// The standard library has no rename that replaces nothing.
    pub fn rename_new(&self, _: &OsStr, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is no call that exchanges two names.
    pub fn exchange(&self, _: &OsStr, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    /// The folder as a file, for its properties: it cannot be locked here.
    pub fn open_itself(&self) -> io::Result<File> {
        const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
        let mut options = File::options();
        options.read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        options.open(&self.0)
    }

    /// Removes a name.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    /// The file has the rights that its folder passes on.
    pub fn inherit_access(&self, _: &File, _: &OsStr, _: &About) -> io::Result<()> {
        Ok(())
    }
}

/// There is no list of locks.
pub fn name_in_lock_table(_: &File) -> Option<String> {
    None
}

// Standard streams.

/// Whether standard output was closed when the process began: writing tells.
pub fn output_was_closed() -> bool {
    false
}

/// Writes to standard output. Returns how many bytes it took.
pub fn write_output(bytes: &[u8]) -> io::Result<usize> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()?;
    Ok(bytes.len())
}

/// Writes to standard error. Returns how many bytes it took.
pub fn write_error(bytes: &[u8]) -> io::Result<usize> {
    io::stderr().write_all(bytes)?;
    Ok(bytes.len())
}

/// Whether a write to standard error needs no waiting.
pub fn error_is_ready() -> bool {
    true
}

/// The columns of the terminal that standard error is, 0 if they are not known; `None` if it is no terminal.
pub fn columns() -> Option<usize> {
    let handle = HandleRef::stderr();
    io::stderr().is_terminal().then(|| {
        let screen = winapi_util::console::screen_buffer_info(&handle);
        screen.map_or(0, |screen| usize::try_from(screen.size().0).unwrap_or(0))
    })
}

/// Whether both standard streams are the same terminal.
pub fn is_one_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

// Processes.

/// The name of this machine in the network.
pub fn machine_name() -> Vec<u8> {
    let name = std::env::var_os("COMPUTERNAME").unwrap_or_default();
    name.as_encoded_bytes().to_vec()
}

/// There is no limit on address space.
pub fn address_space_limit() -> Option<u64> {
    None
}

/// Bytes of free memory.
pub fn free_memory() -> Option<u64> {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
    let mut status = MEMORYSTATUSEX {
        dwLength: size_of::<MEMORYSTATUSEX>() as u32,
        ..Default::default()
    };
    // SAFETY: the call fills a structure of the length that the structure states.
    let filled = unsafe { GlobalMemoryStatusEx(&mut status) } != 0;
    filled.then_some(status.ullAvailPhys)
}

/// Ctrl-C and the request to terminate.
pub struct Signals([(i32, Arc<AtomicBool>); 2]);

/// How often the signals are checked.
const PAUSE: Duration = Duration::from_millis(50);

impl Signals {
    /// Installs the handlers. A second signal ends the process at once.
    pub fn install() -> io::Result<Signals> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;
        let requested = Arc::new(AtomicBool::new(false));
        let mut signals =
            [SIGINT, SIGTERM].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        for (signal, heard) in &mut signals {
            flag::register_conditional_shutdown(*signal, 128 + *signal, Arc::clone(&requested))?;
            flag::register(*signal, Arc::clone(&requested))?;
            flag::register(*signal, Arc::clone(heard))?;
        }
        Ok(Signals(signals))
    }

    /// Waits for the first signal.
    pub fn wait(self) -> Option<i32> {
        loop {
            if let Some((signal, _)) = self
                .0
                .iter()
                .find(|(_, heard)| heard.load(Ordering::Relaxed))
            {
                return Some(*signal);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// What the end of a run says after "interrupted".
pub fn signal_name(_: i32) -> &'static str {
    ""
}

// Faults that tests request: tests of this kind run on Unix.

/// No error can be requested.
pub fn error_number(_: &str) -> Option<i32> {
    None
}

/// The process cannot be stopped.
pub fn stop() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
