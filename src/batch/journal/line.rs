//! The format of a journal's lines, and of names in them.

use super::is_below;
use crate::batch::key::Job;
use crate::engine::CompleteOutput;
use crate::os::system;
use crate::os::{FileRecord, Identity, Samples};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Version of the line format.
const VERSION: u32 = 2;

/// The version of the program; another version may give other bytes.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The line for a file that was about to get an output's name.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line<'a> {
    v: u32,
    /// The program's version.
    by: Cow<'a, str>,
    verb: Cow<'a, str>,
    /// Path relative to the folder; `%` and bytes that are not UTF-8 are written as %XX.
    output: Cow<'a, str>,
    /// The identity of the output's file.
    pub made: Identity,
    /// The input.
    pub input: Option<FileRecord>,
    /// The file of its samples, if it is only a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Whether the input was damaged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    #[serde(borrow)]
    key: &'a RawValue,
}

impl<'a> Line<'a> {
    /// The line for an output.
    pub fn new(name: &Path, finished: &CompleteOutput, job: &'a Job) -> Line<'a> {
        let input = finished.input.as_ref();
        Line {
            v: VERSION,
            by: PROGRAM.into(),
            verb: job.verb.into(),
            output: escaped(name).into(),
            made: finished.output,
            input: input.map(|input| input.file),
            samples: input.and_then(|input| input.samples.clone()),
            damaged: finished.damaged,
            key: &job.key,
        }
    }

    /// The path and content of a line, if it is complete and its file lies below the folder.
    pub fn parse(line: &'a [u8]) -> Option<(PathBuf, Line<'a>)> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let name = unescaped(&line.output)?;
        (line.v == VERSION && is_below(&name)).then_some((name, line))
    }

    /// Whether subcommand, subcommand with options, and program are the same as those of `job`.
    pub fn compared(&self, job: &Job) -> (bool, bool, bool) {
        let verb = self.verb == job.verb;
        let key = self.key.get() == job.key.get();
        (verb, verb && key, self.by == PROGRAM)
    }
}

/// The marker line at the beginning of a run that does not resume another.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    v: u32,
    run: Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Run {
    Anew,
}

impl Marker {
    /// The only marker.
    pub const ANEW: Marker = Marker {
        v: VERSION,
        run: Run::Anew,
    };
}

/// A name as text: each `%` and each byte that is not UTF-8 becomes `%` and two hexadecimal digits.
/// Different names have different texts.
pub fn escaped(name: &Path) -> String {
    let mut text = String::new();
    for chunk in system::bytes_of(name.as_os_str()).utf8_chunks() {
        text += &chunk.valid().replace('%', "%25");
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// The name of a text that `escaped` has made; `None` for any other text.
pub fn unescaped(text: &str) -> Option<PathBuf> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(system::name_of_bytes(&bytes).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_keep_their_bytes() {
        let names: [&[u8]; 8] = [
            b"a/b.tif",
            b"caf\xe9.tif",
            b"caf%E9.tif",
            "café.tif".as_bytes(),
            "caf\u{fffd}.tif".as_bytes(),
            b"100%.tif",
            b"%25",
            b"\xff\xfe\n\"\\",
        ];
        let mut texts = HashSet::new();
        for name in names {
            let name = Path::new(OsStr::from_bytes(name));
            let text = escaped(name);
            assert_eq!(unescaped(&text).as_deref(), Some(name), "{text}");
            assert!(texts.insert(text));
        }
        for wrong in ["%", "%4", "%zz", "a%é"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }
}
