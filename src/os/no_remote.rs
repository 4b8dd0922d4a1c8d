//! Stores on servers, in a program that is built without the feature `remote`: there is none.

use super::store::{Part, Span};
use super::store_record::Record;
use super::url::{NO_FEATURE, Url};
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
        bail!("this gpuimg reads no URLs: {NO_FEATURE}")
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

/// A store that is written to a server.
#[derive(Debug)]
pub enum Upload {}

impl Upload {
    /// Refuses an address.
    ///
    /// # Errors
    /// Always: names the feature.
    pub fn new(_url: &Url, _overwrite: bool) -> Result<Upload> {
        bail!("this gpuimg writes no URLs: {NO_FEATURE}")
    }

    /// Replaces nothing: there is no store.
    pub fn replaces(&self) -> Result<bool> {
        match *self {}
    }

    /// Begins nothing: there is no store.
    pub fn begin(&self) -> Result<()> {
        match *self {}
    }

    /// Writes nothing: there is no store.
    pub fn write(&self, _name: &str, _bytes: &[u8]) -> Result<()> {
        match *self {}
    }

    /// Completes nothing: there is no store.
    pub fn finish(self) -> Result<()> {
        match self {}
    }

    /// Records nothing: there is no store.
    pub fn record(&self) -> &Record {
        match *self {}
    }

    /// Runs nothing: there is no store.
    pub fn in_parallel<T>(&self, _work: impl FnOnce() -> T) -> T {
        match *self {}
    }
}

/// The addresses of the stores that remain unfinished: none.
pub fn unfinished_uploads() -> Vec<String> {
    Vec::new()
}
