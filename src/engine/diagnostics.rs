//! Collects warnings and notes about the pages of a file; one sentence about several pages is
//! printed once.

use super::done::Warning;
use crate::image::metadata::{Diagnostics, Hint};

/// Warnings and notes, each with the numbers of its pages.
pub struct FileDiagnostics {
    pages: usize,
    sentences: Vec<Sentence>,
}

struct Sentence {
    text: String,
    kind: Kind,
    /// Its pages, counted from 1; none if it is about the whole file.
    pages: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Kind {
    Warning(Option<Hint>),
    Note,
}

impl Sentence {
    fn of_file(warning: String) -> Sentence {
        Sentence {
            text: warning,
            kind: Kind::Warning(None),
            pages: Vec::new(),
        }
    }
}

impl FileDiagnostics {
    /// Starts with no diagnostics for a file of `pages` pages, but a note about skipped pages, if
    /// any.
    pub fn new(left_out: Option<String>, pages: usize) -> FileDiagnostics {
        FileDiagnostics {
            pages,
            sentences: left_out.map(Sentence::of_file).into_iter().collect(),
        }
    }

    /// Adds a warning about the whole file, once.
    pub fn add_of_file(&mut self, warning: String) {
        if self.sentences.iter().all(|known| known.text != warning) {
            self.sentences.push(Sentence::of_file(warning));
        }
    }

    /// Adds the diagnostics of one page.
    pub fn add(&mut self, page: usize, diagnostics: Diagnostics) {
        let warnings = diagnostics.warnings.into_iter();
        let warnings = warnings.map(|text| (text, Kind::Warning(None)));
        let hints = diagnostics.hints.into_iter();
        let hints = hints.map(|hint| (hint.to_string(), Kind::Warning(Some(hint))));
        let notes = diagnostics.notes.into_iter().map(|text| (text, Kind::Note));
        for (text, kind) in warnings.chain(hints).chain(notes) {
            match self.sentences.iter_mut().find(|known| known.text == text) {
                Some(known) => known.pages.push(page),
                None => self.sentences.push(Sentence {
                    text,
                    kind,
                    pages: vec![page],
                }),
            }
        }
    }

    /// All warnings and all notes; in a file of several pages, each names its pages.
    pub fn finish(self) -> (Vec<Warning>, Vec<String>) {
        let (mut warnings, mut notes) = (Vec::new(), Vec::new());
        for Sentence { text, kind, pages } in self.sentences {
            let text = match pages[..] {
                _ if self.pages == 1 => text,
                [] => text,
                [page] => format!("page {page}: {text}"),
                _ if pages.len() == self.pages => format!("every page: {text}"),
                [first, ..] => format!("{} pages, the first is {first}: {text}", pages.len()),
            };
            match kind {
                Kind::Warning(hint) => warnings.push(Warning { text, hint }),
                Kind::Note => notes.push(text),
            }
        }
        (warnings, notes)
    }
}
