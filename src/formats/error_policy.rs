//! The policy for damage in a file: it is an error, or it is recorded and the rest of the file is read.

use crate::image::{Samples, Shape};
use anyhow::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// The policy for damage in a file, and the damage recorded so far.
#[derive(Debug, Default)]
pub struct ErrorPolicy {
    accepts_damage: bool,
    /// The damage accepted so far.
    damage: Mutex<Vec<Error>>,
    fallbacks: Mutex<Vec<String>>,
}

impl ErrorPolicy {
    /// With `accepts_damage`, damage is recorded; otherwise it is an error.
    pub fn new(accepts_damage: bool) -> ErrorPolicy {
        ErrorPolicy {
            accepts_damage,
            damage: Mutex::default(),
            fallbacks: Mutex::default(),
        }
    }

    /// Whether damage is recorded, and the rest of the file is read.
    pub fn accepts_damage(&self) -> bool {
        self.accepts_damage
    }

    /// Allocates the samples of an image; samples that damage leaves unread must be 0.
    pub fn samples(&self, shape: &Shape) -> Result<Samples> {
        if self.accepts_damage {
            Samples::zeroed(shape)
        } else {
            Samples::any(shape)
        }
    }

    /// Returns an error, or records it and returns `Ok` if damage is accepted.
    pub fn accept(&self, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if self.accepts_damage => {
                let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
                // A damaged part may be read twice.
                let sentence = format!("{error:#}");
                if !damage
                    .iter()
                    .any(|known| format!("{known:#}").contains(&sentence))
                {
                    damage.push(error);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Records that a fast method failed and a slower one is used, as a note about the selected page.
    pub fn add_fallback(&self, note: String) {
        let mut notes = self
            .fallbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The fast methods that failed on the selected page, a note each.
    pub fn fallbacks(&self) -> Vec<String> {
        let notes = self
            .fallbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }

    /// Forgets the fallbacks, because another page is selected.
    pub fn clear_fallbacks(&mut self) {
        self.fallbacks = Mutex::default();
    }

    /// A sentence with all recorded damage; `None` if there is none.
    pub fn damage(&self) -> Option<String> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sentences: Vec<String> = damage.iter().map(|error| format!("{error:#}")).collect();
        // Threads record damage in any order.
        sentences.sort();
        let first = sentences.first()?;
        Some(match sentences.len() {
            1 => first.clone(),
            more => format!("{first}, and {} more such places", more - 1),
        })
    }
}
