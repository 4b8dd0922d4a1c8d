//! The standard streams. Everything is printed through this module, since the functions of `std`
//! fail in two ways that lose work: `eprintln!` panics if standard error is closed, and writing to
//! a closed standard output succeeds. File names are untrusted, so control characters are escaped.

use crate::os::reason;
use anyhow::{Context, Result, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::termios::{isatty, tcgetwinsize};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Whether standard output was closed when the process began.
static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds addresses of functions that the loader calls before `main`. This
// function makes one system call and writes an atomic, which need no initialisation by `std`.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = note_closed;

/// Records whether standard output is closed. Before `main`, `std` opens /dev/null in place of a
/// closed standard stream; afterwards the two cases cannot be distinguished, so this runs earlier.
extern "C" fn note_closed() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Marks an error as "the reader of standard output has closed it", as `head` does.
#[derive(Debug, Error)]
#[error("standard output was closed by its reader")]
pub struct ReaderGone;

/// A text with its control characters escaped as in JSON, so that a JSON object remains one.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Lines of text with all other control characters escaped.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, is_layout)
}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let escapes = |c: char| c.is_control() && !kept(c);
    if !text.contains(escapes) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            _ if !escapes(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
        }
    }
    safe.into()
}

/// Whether a control character is allowed in text of several lines.
fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Prints one line on standard error; does nothing if standard error is closed.
pub fn tell(line: &str) {
    error_bytes(format!("{}\n", printable(line)).as_bytes());
}

/// Prints lines of text on standard error, as `tell` does.
pub fn tell_lines(text: &str) {
    error_bytes(escaped(text, is_layout).as_bytes());
}

/// Prints one line on standard error if that needs no waiting: for a process that is about to end,
/// and must not wait for a terminal or a pipe that nobody reads.
pub fn tell_without_waiting(line: &str) {
    let stream = rustix::stdio::stderr();
    let mut streams = [PollFd::new(&stream, PollFlags::OUT)];
    let ready = rustix::event::poll(&mut streams, Some(&Timespec::default()));
    if ready.is_ok_and(|count| count > 0) && streams[0].revents() == PollFlags::OUT {
        tell(line);
    }
}

fn error_bytes(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stderr(), bytes) {
            Ok(written) => bytes = &bytes[written.max(1)..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The columns of the terminal that standard error is; `None` if it is none.
pub fn columns() -> Option<usize> {
    let size = tcgetwinsize(rustix::stdio::stderr()).ok()?;
    // A terminal whose size was never set reports 0.
    Some(match size.ws_col {
        0 => 80,
        columns => columns.into(),
    })
}

/// Whether both standard streams are the same terminal.
pub fn is_one_terminal() -> bool {
    let output = rustix::stdio::stdout();
    let device = |stream| fstat(stream).map(|about| about.st_rdev).ok();
    isatty(output) && device(output) == device(rustix::stdio::stderr())
}

/// Fails if standard output was closed when the process started.
pub fn check_output() -> io::Result<()> {
    if CLOSED.load(Ordering::Relaxed) {
        Err(io::Error::other("it is closed"))
    } else {
        Ok(())
    }
}

/// Writes bytes to standard output.
///
/// # Errors
/// Standard output is closed, its reader has closed it, or its disk is full.
pub fn output_bytes(mut bytes: &[u8]) -> io::Result<()> {
    check_output()?;
    // Not through `std`, which reports success for a descriptor that cannot be written.
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Prints one line on standard output.
///
/// # Errors
/// As `output_bytes`; an output that its reader has closed is marked as `ReaderGone`.
pub fn print(line: &str) -> Result<()> {
    print_bytes(format!("{}\n", printable(line)).as_bytes())
}

/// Prints lines of text on standard output, as `print` does.
pub fn print_lines(text: &str) -> Result<()> {
    print_bytes(escaped(text, is_layout).as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    match output_bytes(bytes) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error).context(ReaderGone),
        other => other.map_err(|error| {
            let reason = reason::reason(&error);
            anyhow!("cannot write to standard output: {reason}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_others_are_not() {
        assert_eq!(printable("größe 3 µm/a b.png"), "größe 3 µm/a b.png");
        let hostile = "a\u{1b}[2J\nb\r\t\u{7f}\u{9b}";
        let safe = printable(hostile);
        assert_eq!(safe, r"a\u001b[2J\nb\r\t\u007f\u009b");
        // In JSON the escapes stand for the characters that they replace.
        let object = serde_json::json!({ "name": hostile }).to_string();
        let read: serde_json::Value =
            serde_json::from_str(&printable(&object)).expect("still JSON");
        assert_eq!(read["name"], hostile);
        assert_eq!(escaped("a\n\tb\u{7}", is_layout), "a\n\tb\\u0007");
    }
}
