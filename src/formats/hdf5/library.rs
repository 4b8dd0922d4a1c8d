//! Calls the library: gives it the bytes of a source, and turns its errors and panics into sentences.

use super::filters;
use crate::os::panics::catch_panic;
use crate::os::{Source, limits};
use anyhow::{Result, anyhow, ensure};
use hdf5_reader::error::Error;
use hdf5_reader::group::Group;
use hdf5_reader::{Dataset, Hdf5File, OpenOptions, Storage, StorageBuffer};
use std::io;
use std::sync::Arc;

/// The most bytes that one byte of deflate data expands to.
pub const EXPANSION: u64 = 1032;

/// The most bytes of an object's header.
const MOST_HEADER: usize = 4 << 20;

/// The decoded chunks that the library keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    /// Their number.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The bytes of a file, as the library reads them.
struct Bytes(Source);

impl Storage for Bytes {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_range(&self, offset: u64, length: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let available = self.0.len().saturating_sub(offset);
        // Checked first, so that no memory is allocated for bytes that the file does not have.
        if length as u64 > available {
            return Err(Error::UnexpectedEof {
                offset,
                needed: length as u64,
                available,
            });
        }
        let mut bytes = vec![0; length];
        let read = self.0.read_at(&mut bytes, offset);
        read.map_err(|error| Error::Io(io::Error::other(error.to_string())))?;
        Ok(StorageBuffer::from_vec(bytes))
    }
}

/// An open file.
pub struct File<'a> {
    /// Its bytes.
    pub source: &'a Source,
    file: Hdf5File,
}

impl<'a> File<'a> {
    /// Opens a file. With `damaged`, it may be shorter than its header says.
    ///
    /// # Errors
    /// A file that is damaged or truncated, and one that cannot be read.
    pub fn open(source: &'a Source, kept: Kept, damaged: bool) -> Result<File<'a>> {
        let most = most_chunk(source) as usize;
        let mut options = OpenOptions::default()
            .with_filter_registry(filters::registry(most))
            .with_chunk_cache_bytes(kept.bytes as usize)
            .with_max_chunk_bytes(most)
            .with_max_object_header_bytes(MOST_HEADER);
        if kept.chunks > 0 {
            options = options.with_chunk_cache_slots(kept.chunks as usize);
        }
        let storage = Arc::new(Bytes(source.share()));
        let file = call(source, || {
            Hdf5File::from_storage_with_options(storage, options)
        })?;
        // Unlike other addresses, it is that in the whole file, with what precedes the signature.
        let (end, length) = (file.superblock().eof_address, source.len());
        ensure!(
            damaged || end <= length,
            "truncated at byte {length} of {end}"
        );
        Ok(File { source, file })
    }

    /// The dataset with an address; `None` if there is none.
    ///
    /// # Errors
    /// A damaged file, and a dataset of a kind that is not supported.
    pub fn dataset(&self, address: &str) -> Result<Option<Dataset>> {
        call(self.source, || if_there(self.file.dataset(address)))
    }

    /// The group with an address, of which an empty one is the root; `None` if there is none.
    ///
    /// # Errors
    /// A damaged file.
    pub fn group(&self, address: &str) -> Result<Option<Group>> {
        call(self.source, || if_there(self.file.group(address)))
    }
}

/// What the library found; `None` if it says that there is no such object.
fn if_there<T>(found: hdf5_reader::error::Result<T>) -> hdf5_reader::error::Result<Option<T>> {
    match found {
        Err(error) if is_absence(&error) => Ok(None),
        other => other.map(Some),
    }
}

/// The most bytes of a decoded chunk: what is free, and what the bytes of the file can expand to.
pub fn most_chunk(source: &Source) -> u64 {
    let expanded = source.len().saturating_mul(EXPANSION);
    limits::free_memory().min(expanded)
}

/// Calls the library. Its errors and panics become sentences.
///
/// # Errors
/// Those of the library.
pub fn call<T>(source: &Source, call: impl FnOnce() -> hdf5_reader::error::Result<T>) -> Result<T> {
    match catch_panic(call) {
        Ok(result) => result.map_err(|error| anyhow!(sentence(&error, source))),
        Err(_) => Err(anyhow!("its structure is damaged")),
    }
}

/// An error of the library in a sentence.
fn sentence(error: &Error, source: &Source) -> String {
    match error {
        Error::Context { source: cause, .. } => sentence(cause, source),
        // Only of `Bytes` and of `filters`, whose texts are sentences.
        Error::Io(error) => error.to_string(),
        Error::UnexpectedEof { .. } | Error::OffsetOutOfBounds(_) => format!(
            "it is damaged, or truncated at byte {}: a part of it lies beyond its end",
            source.len()
        ),
        Error::UnsupportedFilter(name) => {
            let name = match name.strip_prefix("filter id ") {
                Some("307") => "bzip2",
                Some("32000") => "LZF",
                Some("32013") => "ZFP",
                Some("32026") => "Blosc2",
                _ => name,
            };
            format!(
                "compression with {name} is not supported (deflate, bitshuffle, LZ4, Blosc, Zstandard and szip are): h5repack -f GZIP=1 compresses it again"
            )
        }
        Error::ResourceLimit(_) => format!(
            "a chunk or a header of it takes more memory than is free, or than its {} bytes can fill",
            source.len()
        ),
        Error::ChecksumMismatch { .. } => "a checksum of its structure is wrong".into(),
        Error::DecompressionError(_) | Error::FilterError(_) => {
            "the compressed data of a chunk are damaged".into()
        }
        Error::UnsupportedLayoutClass(3) => {
            "virtual datasets are not supported: h5repack or h5py writes an ordinary one".into()
        }
        Error::DatasetNotFound(_) | Error::GroupNotFound(_) => "there is no such dataset".into(),
        _ => "its structure is damaged, or of a kind that is not supported".into(),
    }
}

/// Whether an error says that an object does not exist.
fn is_absence(error: &Error) -> bool {
    match error {
        Error::Context { source, .. } => is_absence(source),
        other => matches!(other, Error::DatasetNotFound(_) | Error::GroupNotFound(_)),
    }
}
