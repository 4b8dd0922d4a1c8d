//! Names of files in output. A name is bytes, and not all of them are text: each name is printed in a
//! form of its own, so that two files are never confused. The address of a server is printed without its secrets.

use crate::os::{console, system, url};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// A path in messages.
pub trait Shown {
    /// The path as it is, or, if it has bytes that are not UTF-8, control characters or `\x`, with these
    /// bytes as `\xFF` and each backslash as `\\`.
    fn shown(&self) -> Cow<'_, str>;
}

impl Shown for Path {
    fn shown(&self) -> Cow<'_, str> {
        if let Some(address) = url::shown(self) {
            return console::printable(&address).into_owned().into();
        }
        match self.to_str() {
            Some(text) if !text.contains(char::is_control) && !text.contains("\\x") => text.into(),
            _ => escaped(self).into(),
        }
    }
}

/// A path as one word of a command that can be pasted into a shell: as it is, or in quotes where the shell would read it otherwise.
/// It is never an option.
pub fn in_shell(path: &Path) -> String {
    let is_option = path
        .to_str()
        .is_some_and(|text| text.starts_with('-') && text != "-");
    let before = if is_option { "./" } else { "" };
    format!("{before}{}", as_word(path))
}

/// As `in_shell`, also of an option with its value.
pub fn as_word(word: &Path) -> String {
    let address = url::shown(word);
    let word = address.as_deref().map_or(word, Path::new);
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match word.to_str() {
        Some(text) if text.contains(char::is_control) => ansi_quoted(word),
        None => ansi_quoted(word),
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.into(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A path in the quotes in which bash, zsh and others read `\xFF`.
fn ansi_quoted(path: &Path) -> String {
    let mut text = String::from("$'");
    for &byte in system::bytes_of(path.as_os_str()) {
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(byte.into());
            }
            b' '..=b'~' => text.push(byte.into()),
            _ => escape(&mut text, &[byte]),
        }
    }
    text.push('\'');
    text
}

/// A name in JSON, which has escapes of its own: as it is, or as in messages if it is not UTF-8.
pub fn in_json(path: &Path) -> Cow<'_, str> {
    if let Some(address) = url::shown(path) {
        return address.into();
    }
    match path.to_str() {
        Some(text) => text.into(),
        None => escaped(path).into(),
    }
}

/// The bytes of a name that is not UTF-8, in hexadecimal digits; `None` for one that is.
pub fn hex(path: &Path) -> Option<String> {
    path.to_str().is_none().then(|| {
        let mut digits = String::new();
        for byte in system::bytes_of(path.as_os_str()) {
            // Writing to a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    })
}

fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in system::bytes_of(path.as_os_str()).utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                _ if c.is_control() => escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => text.push(c),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\x{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn words_of_a_command_are_read_as_they_were_meant() {
        for (name, word) in [
            (&b"in/a-b_1.tif"[..], "in/a-b_1.tif"),
            ("größe.png".as_bytes(), "größe.png"),
            (b"a b.png", "'a b.png'"),
            (b"it's.png", r"'it'\''s.png'"),
            (b"$HOME*.png", "'$HOME*.png'"),
            (b"", "''"),
            (b"-v.png", "./-v.png"),
            (b"-v a.png", "./'-v a.png'"),
            (b"-", "-"),
            (b"a\n'\xff.png", r"$'a\x0A\'\xFF.png'"),
        ] {
            assert_eq!(in_shell(Path::new(OsStr::from_bytes(name))), word);
        }
    }

    #[test]
    fn no_two_names_are_shown_alike() {
        let mut texts = HashSet::new();
        for (name, text) in [
            (&b"a b.png"[..], "a b.png"),
            ("größe µ.png".as_bytes(), "größe µ.png"),
            (b"a\\b.png", "a\\b.png"),
            (b"caf\xe9.png", "caf\\xE9.png"),
            (b"caf\\xE9.png", "caf\\\\xE9.png"),
            (b"caf\xe9\\.png", "caf\\xE9\\\\.png"),
            ("caf\u{fffd}.png".as_bytes(), "caf\u{fffd}.png"),
            (b"a\n\x1b.png", "a\\x0A\\x1B.png"),
            ("\u{9b}".as_bytes(), "\\xC2\\x9B"),
        ] {
            let name = Path::new(OsStr::from_bytes(name));
            assert_eq!(name.shown(), text);
            assert!(texts.insert(text));
        }
        let name = Path::new(OsStr::from_bytes(b"\xffa"));
        assert_eq!(hex(name).as_deref(), Some("ff61"));
        assert_eq!(hex(Path::new("a\n")), None);
        assert_eq!(in_json(Path::new("a\n")), "a\n");
    }
}
