//! The standard streams. Everything is printed through this module, since the functions of `std`
//! fail in two ways that lose work: `eprintln!` panics if standard error is closed, and writing to
//! a closed standard output succeeds. File names are untrusted, so control characters are escaped.

use crate::os::{reason, system};
use anyhow::{Context, Result, anyhow};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use thiserror::Error;

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
    if system::error_is_ready() {
        tell(line);
    }
}

fn error_bytes(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match system::write_error(bytes) {
            Ok(written) => bytes = &bytes[written.max(1)..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The columns of the terminal that standard error is; `None` if it is none.
pub fn columns() -> Option<usize> {
    // A terminal whose size was never set reports 0.
    Some(match system::columns()? {
        0 => 80,
        columns => columns,
    })
}

/// Whether both standard streams are the same terminal.
pub fn is_one_terminal() -> bool {
    system::is_one_terminal()
}

/// Fails if standard output was closed when the process started.
pub fn check_output() -> io::Result<()> {
    if system::output_was_closed() {
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
    while !bytes.is_empty() {
        match system::write_output(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
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
