//! What is to be done with damage: it ends the reading, or it is noted, and the rest is read.

use crate::image::{Samples, Shape};
use anyhow::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// What to do with damage in a file, and the damage that was found where the reading goes on.
#[derive(Debug, Default)]
pub struct ErrorPolicy {
    goes_on: bool,
    found: Mutex<Vec<Error>>,
}

impl ErrorPolicy {
    /// Damage is noted if it `goes_on`, else it is an error.
    pub fn new(goes_on: bool) -> ErrorPolicy {
        ErrorPolicy {
            goes_on,
            found: Mutex::default(),
        }
    }

    /// Whether the reading goes on after damage.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Memory for the samples of an image: what damage leaves unread is 0.
    pub fn samples(&self, shape: &Shape) -> Result<Samples> {
        if self.goes_on {
            Samples::zeroed(shape)
        } else {
            Samples::any(shape)
        }
    }

    /// Lets an error through, or notes it and goes on.
    pub fn take(&self, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if self.goes_on => {
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push(error);
                Ok(())
            }
            other => other,
        }
    }

    /// A sentence of all that was found, none if nothing was.
    pub fn damage(&self) -> Option<String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sentences: Vec<String> = found.iter().map(|error| format!("{error:#}")).collect();
        // Threads find it in any order.
        sentences.sort();
        let first = sentences.first()?;
        Some(match sentences.len() {
            1 => first.clone(),
            more => format!("{first}, and {} more such places", more - 1),
        })
    }
}
