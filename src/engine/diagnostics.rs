//! Collects warnings and notes about the pages of a file. A message about several pages is printed once.

use super::done::Warning;
use crate::image::metadata::{Diagnostics, Hint};

/// Warnings and notes, each with the numbers of its pages.
pub struct FileDiagnostics {
    pages: usize,
    /// Whether warnings without a hint are notes: those about metadata do not matter to a preview.
    is_preview: bool,
    messages: Vec<Message>,
}

struct Message {
    text: String,
    severity: Severity,
    /// Its pages, counted from 1; none if it is about the whole file.
    pages: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Severity {
    Warning(Option<Hint>),
    Note,
}

impl FileDiagnostics {
    /// Empty diagnostics for a file of `pages` pages, or for a preview of it.
    pub fn new(pages: usize, is_preview: bool) -> FileDiagnostics {
        FileDiagnostics {
            pages,
            is_preview,
            messages: Vec::new(),
        }
    }

    /// Adds a warning about the whole file, once.
    pub fn add_about_file(&mut self, warning: Option<String>) {
        let Some(text) = warning else { return };
        if self.messages.iter().all(|known| known.text != text) {
            self.messages.push(Message {
                text,
                severity: Severity::Warning(None),
                pages: Vec::new(),
            });
        }
    }

    /// Adds the diagnostics of one page.
    pub fn add(&mut self, page: usize, diagnostics: Diagnostics) {
        let warnings = diagnostics.warnings.into_iter();
        let warnings = warnings.map(|text| (text, Severity::Warning(None)));
        let hints = diagnostics.hints.into_iter();
        let hints = hints.map(|hint| (hint.to_string(), Severity::Warning(Some(hint))));
        let notes = diagnostics
            .notes
            .into_iter()
            .map(|text| (text, Severity::Note));
        for (text, severity) in warnings.chain(hints).chain(notes) {
            match self.messages.iter_mut().find(|known| known.text == text) {
                Some(known) => known.pages.push(page),
                None => self.messages.push(Message {
                    text,
                    severity,
                    pages: vec![page],
                }),
            }
        }
    }

    /// Returns all warnings and all notes. If the file has several pages, each message names its pages.
    pub fn finish(self) -> (Vec<Warning>, Vec<String>) {
        let (mut warnings, mut notes) = (Vec::new(), Vec::new());
        for Message {
            text,
            severity,
            pages,
        } in self.messages
        {
            let text = match pages[..] {
                _ if self.pages == 1 => text,
                [] => text,
                [page] => format!("page {page}: {text}"),
                _ if pages.len() == self.pages => format!("every page: {text}"),
                [first, ..] => format!("{} pages, the first is {first}: {text}", pages.len()),
            };
            match severity {
                Severity::Warning(None) if self.is_preview => notes.push(text),
                Severity::Warning(hint) => warnings.push(Warning { text, hint }),
                Severity::Note => notes.push(text),
            }
        }
        (warnings, notes)
    }
}
