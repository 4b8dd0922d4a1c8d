//! Stores on servers, in a program that is built without the feature `remote`: there is none.

use super::store::{Part, Span};
use super::url::Url;
use anyhow::{Result, bail};

/// The parts of a store that are best read at the same time.
pub const READS: usize = 1;

/// A store on a server.
#[derive(Debug)]
pub enum Remote {}

impl Remote {
    /// Refuses an address.
    ///
    /// # Errors
    /// Always: names the feature.
    pub fn open(_url: &Url) -> Result<(Remote, Vec<u8>)> {
        bail!(
            "this gpuimg reads no URLs: it was built without the feature `remote` (build it with cargo install --path . --features remote)"
        )
    }

    /// Reads nothing: there is no store.
    pub fn read(&self, _name: &str, _span: Span, _most: u64) -> Result<Option<Part>> {
        match *self {}
    }

    /// Runs nothing: there is no store.
    pub fn in_parallel<T>(&self, _work: impl FnOnce() -> T) -> T {
        match *self {}
    }
}
