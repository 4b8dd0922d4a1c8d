//! The names of results.

use super::item::Item;
use crate::formats::{Format, format};
use crate::image::metadata::Place;
use crate::os::name::Shown;
use crate::os::parent;
use crate::os::system;
use anyhow::{Result, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// The name of the journal in the output folder, and the prefix of the names of the parts' journals.
pub const JOURNAL: &str = ".gpuimg-journal";

/// How results are named.
#[derive(Clone, Debug)]
pub enum Naming {
    /// A single output file; `-` is standard output.
    File(PathBuf),
    /// Names derived from the inputs.
    Folder {
        /// The output folder.
        folder: PathBuf,
        /// The pattern of the file names.
        pattern: Pattern,
        /// The requested format, whose extension the names get.
        format: Option<&'static Format>,
    },
}

/// A pattern for file names with placeholders for parts of the input's name, as `{stem}_n.{ext}`;
/// it may contain folders, and stays below the output folder. `{{` and `}}` stand for single
/// braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Stem,
    Ext,
    /// A number with a minimum number of digits.
    Number(Counted, usize),
}

/// What a number in a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Frame,
    Page,
    C,
    Z,
    T,
}

/// The numbers that names can have, all counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// That of a frame of standard input.
    pub frame: usize,
    /// Those of a page of a stack.
    pub place: Place,
}

impl Numbers {
    /// Those of a frame, or of the first page of a file.
    pub fn for_frame(frame: usize) -> Numbers {
        let place = Place {
            page: 1,
            c: 1,
            z: 1,
            t: 1,
        };
        Numbers { frame, place }
    }

    fn get(&self, counted: Counted) -> usize {
        match counted {
            Counted::Frame => self.frame,
            Counted::Page => self.place.page,
            Counted::C => self.place.c,
            Counted::Z => self.place.z,
            Counted::T => self.place.t,
        }
    }
}

impl Default for Pattern {
    /// The input's own name, with the extension of the output's format.
    fn default() -> Pattern {
        Pattern(vec![Piece::Stem, Piece::Text(".".into()), Piece::Ext])
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal += &rest[..at];
            let (brace, behind) = rest[at..].split_at(1);
            if let Some(behind) = behind.strip_prefix(brace) {
                literal += brace;
                rest = behind;
                continue;
            }
            let Some((name, behind)) = behind.split_once('}').filter(|_| brace == "{") else {
                return Err(format!(
                    "unmatched {brace} (write {brace}{brace} for a literal brace)"
                ));
            };
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
            pieces.push(match name {
                "stem" => Piece::Stem,
                "ext" => Piece::Ext,
                _ => match number(name) {
                    Some((counted, digits)) => Piece::Number(counted, digits),
                    None => {
                        return Err(format!(
                            "unknown placeholder {{{name}}}; use {{stem}}, {{ext}}, {{n}} for frames of standard input, or {{page}}, {{c}}, {{z}}, {{t}} with --split; {{n:05}} has five digits"
                        ));
                    }
                },
            });
            rest = behind;
        }
        pieces.push(Piece::Text(literal + rest));
        let pattern = Pattern(pieces);
        let example = pattern.fill(OsStr::new("a"), OsStr::new("b"), &Numbers::for_frame(1));
        if stays_below(Path::new(&example)) {
            Ok(pattern)
        } else {
            Err("a name must stay within the output folder: it cannot start or end with / or contain .."
                .into())
        }
    }
}

/// A counter with its minimum number of digits: `n`, `page:03`.
fn number(name: &str) -> Option<(Counted, usize)> {
    let (name, digits) = name.split_once(':').unwrap_or((name, "1"));
    let counted = match name {
        "n" => Counted::Frame,
        "page" => Counted::Page,
        "c" => Counted::C,
        "z" => Counted::Z,
        "t" => Counted::T,
        _ => return None,
    };
    let digits = digits.parse().ok().filter(|&digits| digits <= 20)?;
    Some((counted, digits))
}

impl Pattern {
    /// The default names of the pages of a stack: `{stem}-{page:04}.{ext}`, which sort in the order of the
    /// pages.
    pub fn for_pages() -> Pattern {
        let page = Piece::Number(Counted::Page, 4);
        let text = |text: &str| Piece::Text(text.into());
        Pattern(vec![Piece::Stem, text("-"), page, text("."), Piece::Ext])
    }

    /// Whether names have the number of a frame.
    pub fn has_number(&self) -> bool {
        self.numbers().any(|counted| counted == Counted::Frame)
    }

    /// Whether names have a number of a page.
    pub fn has_page(&self) -> bool {
        self.numbers().any(|counted| counted != Counted::Frame)
    }

    fn numbers(&self) -> impl Iterator<Item = Counted> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Number(counted, _) => Some(*counted),
            _ => None,
        })
    }

    /// The name for an input's `stem` and `extension`, with numbers; bytes that are not UTF-8 are kept.
    fn fill(&self, stem: &OsStr, extension: &OsStr, numbers: &Numbers) -> OsString {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.into(),
            Piece::Stem => stem.to_owned(),
            Piece::Ext => extension.to_owned(),
            Piece::Number(counted, digits) => {
                let (number, digits) = (numbers.get(*counted), *digits);
                format!("{number:0digits$}").into()
            }
        });
        let mut name = PathBuf::from(pieces.collect::<OsString>());
        // A file without an extension gets none.
        while extension.is_empty() && name.extension() == Some(OsStr::new("")) {
            name.set_extension("");
        }
        name.into()
    }
}

/// Whether a relative path stays at or below the folder where it begins.
fn stays_below(path: &Path) -> bool {
    let normal = |part| matches!(part, Component::Normal(_));
    path.components().all(normal)
        && path.file_name().is_some()
        && !system::ends_with_separator(path)
}

impl Naming {
    /// The output folder.
    pub fn folder(&self) -> &Path {
        match self {
            Naming::File(path) => parent(path),
            Naming::Folder { folder, .. } => folder,
        }
    }

    /// The format of all results, if their name or an option decides it and not their inputs.
    pub fn format(&self) -> Option<&'static Format> {
        match self {
            Naming::File(path) => format::of_extension(path).ok(),
            Naming::Folder {
                format: Some(format),
                ..
            } => Some(*format),
            Naming::Folder { pattern, .. } => {
                let frame = Numbers::for_frame(1);
                let example = pattern.fill(OsStr::new("a"), OsStr::new(""), &frame);
                format::of_extension(Path::new(&example)).ok()
            }
        }
    }

    /// The output: the file, or the folder.
    pub fn path(&self) -> &Path {
        match self {
            Naming::File(path) => path,
            Naming::Folder { folder, .. } => folder,
        }
    }

    /// Whether results have the names of their inputs, so that no two inputs of one folder have the
    /// same.
    pub fn keeps_names(&self) -> bool {
        match self {
            Naming::File(_) => false,
            Naming::Folder {
                pattern, format, ..
            } => *pattern == Pattern::default() && format.is_none(),
        }
    }

    /// Gives every item the path of its result.
    ///
    /// # Errors
    /// A name outside the folder, or one whose extension contradicts the requested format.
    pub fn name(&self, items: &mut [Item]) -> Result<()> {
        for item in items {
            item.output = Some(self.frame(item, 1)?);
        }
        Ok(())
    }

    /// The path of the result for a frame of an item, counted from 1.
    ///
    /// # Errors
    /// Those of `name`.
    pub fn frame(&self, item: &Item, number: usize) -> Result<PathBuf> {
        self.numbered(item, &Numbers::for_frame(number))
    }

    /// The path of a result of an item with these numbers.
    ///
    /// # Errors
    /// Those of `name`.
    pub fn numbered(&self, item: &Item, numbers: &Numbers) -> Result<PathBuf> {
        Ok(match self {
            Naming::File(path) => path.clone(),
            Naming::Folder {
                folder,
                pattern,
                format,
            } => folder.join(below(item, pattern, numbers, *format)?),
        })
    }
}

/// The path of an item's result relative to the output folder.
fn below(
    item: &Item,
    pattern: &Pattern,
    numbers: &Numbers,
    format: Option<&'static Format>,
) -> Result<PathBuf> {
    let key = &item.key;
    let extension = match format {
        Some(format) => OsStr::new(format.extensions[0]),
        None => key.extension().unwrap_or_default(),
    };
    let name = pattern.fill(key.file_stem().unwrap_or_default(), extension, numbers);
    let name = PathBuf::from(name);
    let subject = || format!("the result of {}", item.input.shown());
    ensure!(
        stays_below(&name) && !name.ends_with(JOURNAL),
        "{} cannot be named {}",
        subject(),
        name.shown()
    );
    // Checked for every item, since a stem can contain an extension.
    if let (Some(asked), Ok(named)) = (format, format::of_extension(&name))
        && asked != named
    {
        bail!(
            "{} would be named {}, which is {}, but --format is {}",
            subject(),
            name.shown(),
            named.name,
            asked.name
        );
    }
    Ok(key.parent().unwrap_or(Path::new("")).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{png, tiff};
    use std::os::unix::ffi::OsStrExt;

    fn named(pattern: &str, key: &[u8], format: Option<&'static Format>) -> Result<PathBuf> {
        let pattern = pattern
            .parse()
            .map_err(|error: String| anyhow::anyhow!(error))?;
        let key = PathBuf::from(OsStr::from_bytes(key));
        below(
            &Item::new(key.clone(), key),
            &pattern,
            &Numbers::for_frame(7),
            format,
        )
    }

    #[test]
    fn names_are_made_of_their_inputs() {
        for (pattern, key, expected) in [
            ("{stem}.{ext}", &b"a/b.tif"[..], &b"a/b.tif"[..]),
            ("{stem}_n.{ext}", b"scan", b"scan_n"),
            ("n/{ext}/{stem}.png", b"a/b.c.tif", b"a/n/tif/b.c.png"),
            ("{{{stem}}}.{ext}", b"b.tif", b"{b}.tif"),
            ("f_{n:03}.{ext}", b"a/b.pgm", b"a/f_007.pgm"),
            ("{n}.png", b"stdin", b"7.png"),
            ("{stem}.{ext}", b"\xff\xfe.t\xfff", b"\xff\xfe.t\xfff"),
        ] {
            let name = named(pattern, key, None).expect(pattern);
            assert_eq!(name.as_os_str().as_bytes(), expected, "{pattern}");
        }
        let name = named("{stem}.{ext}", b"b.png", Some(&tiff::FORMAT));
        assert_eq!(name.expect("valid"), Path::new("b.tif"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for pattern in [
            "", "/x", "../x", "a/../x", ".", "..", "x/", "{pages}", "{stem", "stem}", "{}",
            "./{stem}",
        ] {
            assert!(pattern.parse::<Pattern>().is_err(), "{pattern}");
        }
        // The stem of "..x" is a dot.
        assert!(named("{stem}{stem}", b"..x", None).is_err());
        assert!(named(".gpuimg-journal", b"a.tif", None).is_err());
        assert!(named("{stem}.png", b"a.tif", Some(&tiff::FORMAT)).is_err());
        assert!(named("{stem}.png", b"a.tif", Some(&png::FORMAT)).is_ok());
    }
}
