//! The options for writing OME-Zarr.

use anyhow::{Result, ensure};
use std::ops::RangeInclusive;

/// The rows and columns that a chunk can have: up to 2 GiB of the largest samples, which Blosc and readers hold.
const CHUNK: RangeInclusive<usize> = 1..=16384;

/// The rows and columns that a shard can have.
const SHARD: RangeInclusive<usize> = 1..=1 << 20;

/// The levels that a pyramid can have: the reader's limit.
const LEVELS: RangeInclusive<usize> = 1..=64;

/// The level of zstd: noise, which most of a microscope's image is, becomes no smaller by a longer search.
pub const ZSTD_LEVEL: i32 = 1;

/// How an OME-Zarr is written.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[group(skip)]
pub struct Options {
    /// OME-Zarr compression
    #[arg(id = "zarr", long, value_name = "COMPRESSION", default_value = "zstd")]
    pub compression: Compression,

    /// Rows and columns of a chunk in an OME-Zarr
    #[arg(id = "zarr_chunk", long = "zarr-chunk", value_name = "N", default_value_t = 1024, value_parser = chunk_side)]
    pub chunk: usize,

    /// Put the chunks of N rows and columns of an OME-Zarr into one file, a shard; N must be a multiple of --zarr-chunk
    #[arg(id = "zarr_shard", long = "zarr-shard", value_name = "N", value_parser = shard_side)]
    pub shard: Option<usize>,

    /// Number of levels of an OME-Zarr (default: halve the image until it fits into one chunk)
    #[arg(id = "zarr_levels", long = "zarr-levels", value_name = "N", value_parser = level_count)]
    pub levels: Option<usize>,
}

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Compression {
    /// No compression
    None,
    /// Zstandard: small and fast, and every reader of Zarr v3 has it
    #[default]
    Zstd,
    /// Zstandard after a byte shuffle: smaller, for readers that support Blosc
    Blosc,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            compression: Compression::default(),
            chunk: 1024,
            shard: None,
            levels: None,
        }
    }
}

impl Options {
    /// Refuses shards that do not have whole chunks.
    ///
    /// # Errors
    /// Names both numbers.
    pub fn check(&self) -> Result<()> {
        let Options { chunk, shard, .. } = *self;
        ensure!(
            shard.is_none_or(|shard| shard.is_multiple_of(chunk)),
            "--zarr-shard {} is not a multiple of --zarr-chunk {chunk}: use {}",
            shard.unwrap_or(0),
            shard.unwrap_or(0).next_multiple_of(chunk)
        );
        Ok(())
    }
}

/// The rows and columns of a chunk as they are typed.
///
/// # Errors
/// Names the numbers that are possible.
pub fn chunk_side(text: &str) -> Result<usize, String> {
    within(text, CHUNK)
}

/// The rows and columns of a shard as they are typed.
///
/// # Errors
/// Names the numbers that are possible.
pub fn shard_side(text: &str) -> Result<usize, String> {
    within(text, SHARD)
}

/// The number of levels as it is typed.
///
/// # Errors
/// Names the numbers that are possible.
pub fn level_count(text: &str) -> Result<usize, String> {
    within(text, LEVELS)
}

fn within(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "expected a number from {} to {}",
            range.start(),
            range.end()
        )
    })
}
