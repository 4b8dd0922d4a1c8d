//! Collects warnings and notes about the pages of a file; one sentence about several pages is
//! printed once.

use crate::metadata::Diagnostics;

/// Warnings and notes, each with the numbers of its pages.
pub struct FileDiagnostics {
    pages: usize,
    /// Each sentence, whether it is a warning, and its pages, counted from 1.
    sentences: Vec<(String, bool, Vec<usize>)>,
}

impl FileDiagnostics {
    /// Starts with no diagnostics for a file of `pages` pages, but a note about skipped pages, if
    /// any.
    pub fn new(left_out: Option<String>, pages: usize) -> FileDiagnostics {
        FileDiagnostics {
            pages,
            sentences: Vec::from_iter(left_out.map(|sentence| (sentence, true, Vec::new()))),
        }
    }

    /// Adds a warning about the whole file, once.
    pub fn add_of_file(&mut self, warning: String) {
        if self.sentences.iter().all(|(known, ..)| *known != warning) {
            self.sentences.push((warning, true, Vec::new()));
        }
    }

    /// Adds the diagnostics of one page.
    pub fn add(&mut self, page: usize, diagnostics: Diagnostics) {
        let warnings = diagnostics.warnings.into_iter().map(|text| (text, true));
        let notes = diagnostics.notes.into_iter().map(|text| (text, false));
        for (text, warns) in warnings.chain(notes) {
            let same = |known: &&mut (String, bool, Vec<usize>)| known.0 == text;
            match self.sentences.iter_mut().find(same) {
                Some(known) => known.2.push(page),
                None => self.sentences.push((text, warns, vec![page])),
            }
        }
    }

    /// All sentences; in a file of several pages, each names its pages.
    pub fn finish(self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for (text, warns, pages) in self.sentences {
            let text = match pages[..] {
                _ if self.pages == 1 => text,
                [] => text,
                [page] => format!("page {page}: {text}"),
                _ if pages.len() == self.pages => format!("every page: {text}"),
                [first, ..] => format!("{} pages, the first is {first}: {text}", pages.len()),
            };
            match warns {
                true => diagnostics.warnings.push(text),
                false => diagnostics.notes.push(text),
            }
        }
        diagnostics
    }
}
