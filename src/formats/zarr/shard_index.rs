//! The indexes of shards (Zarr v3, sharding-indexed 1.0): the place of each inner chunk in the file.

use super::codecs::{self, Sharding};
use crate::os::{Part, Source, Span};
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of indexes that are kept.
const MOST_KEPT: usize = 16 << 20;

/// The index of a shard.
#[derive(Debug)]
pub struct ShardIndex {
    /// The offset and the length of each inner chunk.
    numbers: Vec<u64>,
    /// The length of the shard.
    length: u64,
}

/// The index of a shard, if the shard is stored. It is read by the first thread that needs it.
type Slot = Arc<Mutex<Option<Option<Arc<ShardIndex>>>>>;

/// The indexes of the shards that were read, by the names of their files.
#[derive(Debug, Default)]
pub struct Indexes(Mutex<HashMap<String, Slot>>);

impl Indexes {
    /// The index of a shard, which `read` reads if it is not kept; `None` if the shard is not stored.
    ///
    /// # Errors
    /// That of `read`.
    pub fn get(
        &self,
        key: &str,
        read: impl FnOnce() -> Result<Option<ShardIndex>>,
    ) -> Result<Option<Arc<ShardIndex>>> {
        let slot = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.entry(key.to_owned()).or_default().clone()
        };
        let mut index = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*index {
            return Ok(known.clone());
        }
        let new = read()?.map(Arc::new);
        *index = Some(new.clone());
        let bytes = new.as_ref().map_or(0, |index| index.numbers.len() * 8);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The shards of an array have indexes of one length.
        if bytes.saturating_mul(kept.len()) > MOST_KEPT {
            kept.clear();
        }
        Ok(new)
    }
}

impl ShardIndex {
    /// Reads the index of a shard of so many inner chunks; `None` if the shard is not stored.
    ///
    /// # Errors
    /// A file that is too short, a wrong checksum, and a file that cannot be read.
    pub fn read(
        source: &Source,
        key: &str,
        sharding: &Sharding,
        count: u64,
    ) -> Result<Option<ShardIndex>> {
        let checksum = if sharding.has_checksum { 4 } else { 0 };
        let bytes = count * 16 + checksum;
        let span = if sharding.is_at_end {
            Span::Last(bytes)
        } else {
            Span::Bytes(0..bytes)
        };
        let Some(part) = source.member(key, span, bytes)? else {
            return Ok(None);
        };
        let Part {
            bytes: index,
            length,
        } = part;
        ensure!(
            index.len() as u64 == bytes,
            "{key}: the shard is too short for its index"
        );
        let numbers = codecs::decode_index(sharding, index).with_context(|| key.to_owned())?;
        Ok(Some(ShardIndex { numbers, length }))
    }

    /// The bytes of an inner chunk; `None` if it is not stored.
    ///
    /// # Errors
    /// Bytes that the shard does not have.
    pub fn entry(&self, place: u64) -> Result<Option<Range<u64>>> {
        let entry = self.numbers.get(2 * place as usize..);
        let entry = entry.and_then(|entries| entries.first_chunk::<2>());
        match *entry.context("internal error: no entry in the index")? {
            [u64::MAX, u64::MAX] => Ok(None),
            [offset, length] => {
                let end = offset.checked_add(length);
                let end = end.filter(|&end| end <= self.length);
                let end = end.context("an entry of its index leads out of the shard")?;
                Ok(Some(offset..end))
            }
        }
    }
}
