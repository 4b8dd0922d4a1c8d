//! What the pages of `bench`, of `--stats` and of `info` share.

use crate::os::console;
use crate::os::fault::{self, Kind};
use crate::os::name::Shown;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::Read;
use std::path::Path;

/// A kind of page that replaces earlier pages of its kind, and no other file.
#[derive(Clone, Copy, Debug)]
pub struct PageKind {
    /// The bytes at its beginning by which it is recognised.
    pub mark: &'static str,
    /// Its name in messages: `a --stats page`.
    pub name: &'static str,
}

impl PageKind {
    /// Refuses a page that would replace another file, and one that cannot be written there. `-` is standard output.
    ///
    /// # Errors
    /// What to do instead.
    pub fn check(&self, path: &Path) -> Result<()> {
        if path == Path::new("-") {
            return Ok(());
        }
        let cannot_write = || format!("cannot write {}", path.shown());
        ensure!(
            !path.is_dir(),
            "{}: it is a folder: name a file in it",
            cannot_write()
        );
        let folder = crate::os::parent(path);
        ensure!(
            folder.is_dir(),
            "{}: there is no folder {}: create it first",
            cannot_write(),
            folder.shown()
        );
        let mut head = Vec::new();
        let there = fault::metadata(path).is_ok_and(|about| about.is_file());
        if there {
            let file = fault::open(path).map_err(crate::os::reason::plain)?;
            file.take(self.mark.len() as u64).read_to_end(&mut head)?;
        }
        ensure!(
            !there || head == self.mark.as_bytes(),
            "{}: it exists but is not {}: choose another name",
            cannot_write(),
            self.name
        );
        Ok(())
    }

    /// Writes a page, which begins with the mark.
    ///
    /// # Errors
    /// A file that cannot be written, and those of `check`.
    pub fn write(&self, path: &Path, page: &str) -> Result<()> {
        if path == Path::new("-") {
            return console::print_lines(page);
        }
        self.check(path)?;
        fault::point(Kind::Create, path)
            .and_then(|()| fs::write(path, page))
            .map_err(crate::os::reason::plain)
            .with_context(|| format!("cannot write {}", path.shown()))
    }
}

/// Text for an HTML page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The beginning of a page, after its doctype: up to its heading.
pub fn head(title: &str, style: &str) -> String {
    let title = escaped(title);
    format!(
        "<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>{title}</title><style>\n{style}</style></head><body>\n<h1>{title}</h1>\n"
    )
}
