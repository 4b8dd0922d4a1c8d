//! What is to be told of the pages of a file; the same about several is told once.

use crate::metadata::Remarks;

/// Warnings and notes, with the pages that they are about.
pub struct Diagnostics {
    pages: usize,
    /// Sentence, whether it is a warning, and its pages, counted from 1.
    sentences: Vec<(String, bool, Vec<usize>)>,
}

impl Diagnostics {
    /// Nothing about any of so many pages yet, but what was left out of the file.
    pub fn new(left_out: Option<String>, pages: usize) -> Diagnostics {
        Diagnostics {
            pages,
            sentences: Vec::from_iter(left_out.map(|sentence| (sentence, true, Vec::new()))),
        }
    }

    /// Adds what is to be told of a page.
    pub fn add(&mut self, page: usize, remarks: Remarks) {
        let warnings = remarks.warnings.into_iter().map(|text| (text, true));
        let notes = remarks.notes.into_iter().map(|text| (text, false));
        for (text, warns) in warnings.chain(notes) {
            let same = |known: &&mut (String, bool, Vec<usize>)| known.0 == text;
            match self.sentences.iter_mut().find(same) {
                Some(known) => known.2.push(page),
                None => self.sentences.push((text, warns, vec![page])),
            }
        }
    }

    /// All of them, each with its pages where the file has several.
    pub fn finish(self) -> Remarks {
        let mut remarks = Remarks::default();
        for (text, warns, pages) in self.sentences {
            let text = match pages[..] {
                _ if self.pages == 1 => text,
                [] => text,
                [page] => format!("page {page}: {text}"),
                _ if pages.len() == self.pages => format!("every page: {text}"),
                [first, ..] => format!("{} pages, the first is {first}: {text}", pages.len()),
            };
            match warns {
                true => remarks.warnings.push(text),
                false => remarks.notes.push(text),
            }
        }
        remarks
    }
}
