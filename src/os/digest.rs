//! The digest of a file's content. It separates a file that the system reports with another inode, time or
//! device from another file in its place.
//!
//! It is computed of every input of a batch, so it has to cost next to nothing: the threads that read the file
//! add the blocks that they read, in any order and while these are in a core's cache. Each block has an XXH3 of
//! 128 bits, seeded with its number, and the digest is their sum. It guards against mistakes alone; who may
//! write to the inputs and to the journal needs no collision.

use super::fault::{self, Kind};
use super::system;
use crate::os::reason::plain;
use crate::os::sync::{Mutex, MutexGuard, PoisonError};
use anyhow::Result;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fs::File;
use std::io;
use std::path::Path;
use twox_hash::XxHash3_128;

/// Bytes of a block. Reads that begin and end at multiples of it leave nothing to be read again.
const BLOCK: u64 = 16 << 10;

/// The most blocks that are read at once: they stay in a core's cache.
const TOGETHER: u64 = 8;

/// A digest of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 16]);

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{:032x}", u128::from_be_bytes(self.0)))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(from)?;
        let number = u128::from_str_radix(&text, 16).ok();
        let number = number.filter(|number| format!("{number:032x}") == text);
        let number = number.ok_or_else(|| de::Error::custom("not 32 hexadecimal digits"))?;
        Ok(Digest(number.to_be_bytes()))
    }
}

impl Digest {
    /// The digest of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Digest {
        Digest(XxHash3_128::oneshot(bytes).to_be_bytes())
    }

    /// The digest of a file with these bytes.
    pub fn of_content(bytes: &[u8]) -> Digest {
        let blocks = Blocks::new(bytes.len() as u64);
        blocks.add(bytes, 0);
        blocks.digest()
    }

    /// The digest of a file of `length` bytes, which is read to compute it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_file(file: &File, length: u64, path: &Path) -> Result<Digest> {
        Blocks::new(length).finish(file, path)
    }
}

/// The blocks of a file whose digests have been added.
pub struct Blocks {
    length: u64,
    added: Mutex<Added>,
}

struct Added {
    sum: u128,
    /// A bit for each block.
    blocks: Vec<u64>,
}

impl Added {
    fn has(&self, block: u64) -> bool {
        self.blocks[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn add(&mut self, block: u64, digest: u128) {
        if !self.has(block) {
            self.blocks[(block / 64) as usize] |= 1 << (block % 64);
            self.sum = self.sum.wrapping_add(digest);
        }
    }
}

impl Blocks {
    /// None yet, of a file of `length` bytes.
    pub fn new(length: u64) -> Blocks {
        let words = length.div_ceil(BLOCK).div_ceil(64);
        Blocks {
            length,
            added: Mutex::new(Added {
                sum: 0,
                blocks: vec![0; words as usize],
            }),
        }
    }

    fn added(&self) -> MutexGuard<'_, Added> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `buffer` from `offset` on, and adds its whole blocks.
    ///
    /// # Errors
    /// The file cannot be read, or ends before.
    pub fn read(&self, file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        const PIECE: u64 = TOGETHER * BLOCK;
        while !buffer.is_empty() {
            // The blocks of a piece are added while they are in a core's cache. It ends with a whole block.
            let size = (PIECE - offset % PIECE).min(buffer.len() as u64);
            let (piece, rest) = buffer.split_at_mut(size as usize);
            system::read_exact_at(file, piece, offset)?;
            self.add(piece, offset);
            (buffer, offset) = (rest, offset + size);
        }
        Ok(())
    }

    /// Adds the whole blocks in `bytes`, which were read at `offset`.
    pub fn add(&self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        let last = match end == self.length {
            true => end.div_ceil(BLOCK),
            false => end / BLOCK,
        };
        let missing: Vec<u64> = {
            let added = self.added();
            let blocks = offset.div_ceil(BLOCK)..last;
            blocks.filter(|&block| !added.has(block)).collect()
        };
        // No thread waits for another one's digests. Blocks that two of them read are added once.
        let digests = missing.into_iter().map(|block| {
            let start = (block * BLOCK - offset) as usize;
            let end = bytes.len().min(start + BLOCK as usize);
            (
                block,
                XxHash3_128::oneshot_with_seed(block, &bytes[start..end]),
            )
        });
        let digests: Vec<(u64, u128)> = digests.collect();
        let mut added = self.added();
        for (block, digest) in digests {
            added.add(block, digest);
        }
    }

    /// The digest of the whole file, whose other blocks are read now.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn finish(&self, file: &File, path: &Path) -> Result<Digest> {
        let count = self.length.div_ceil(BLOCK);
        let mut chunk = Vec::new();
        let mut block = 0;
        while block < count {
            let missing = {
                let added = self.added();
                let most = count.min(block + TOGETHER);
                (block..most).take_while(|&block| !added.has(block)).count() as u64
            };
            if missing > 0 {
                let start = block * BLOCK;
                let end = self.length.min(start + missing * BLOCK);
                chunk.resize((end - start) as usize, 0);
                fault::point(Kind::Read, path).map_err(plain)?;
                self.read(file, &mut chunk, start).map_err(plain)?;
            }
            block += missing.max(1);
        }
        Ok(self.digest())
    }

    /// The digest of the blocks that have been added.
    fn digest(&self) -> Digest {
        Digest(self.added().sum.to_be_bytes())
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "the digest of {} bytes", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::thread;

    #[test]
    fn the_digest_is_that_of_the_whole_file_in_whatever_order_it_was_read() {
        let bytes: Vec<u8> = (0..300_000u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(&bytes).expect("write");
        let digest = |blocks: &Blocks| blocks.finish(file.as_file(), file.path()).expect("reads");
        let expected = bytes.chunks(16384).zip(0..).map(|(block, number)| {
            // The definition: the journals of other runs have it.
            XxHash3_128::oneshot_with_seed(number, block)
        });
        let expected = Digest(expected.fold(0, u128::wrapping_add).to_be_bytes());
        let reads: [&[(usize, usize)]; 6] = [
            &[],
            &[(0, 300_000)],
            &[(0, 8), (299_000, 1000), (8, 1000), (500, 200_000), (0, 5)],
            &[(7, 100_000), (0, 50_000), (40_000, 0), (50_000, 1)],
            &[(299_999, 1), (0, 299_999), (0, 300_000), (16384, 16384)],
            &[
                (16384, 16383),
                (16383, 16385),
                (294_912, 5087),
                (294_912, 5088),
            ],
        ];
        for reads in reads {
            let blocks = Blocks::new(bytes.len() as u64);
            for &(start, size) in reads {
                blocks.add(&bytes[start..start + size], start as u64);
            }
            assert_eq!(digest(&blocks), expected, "{reads:?}");
        }
        let blocks = Blocks::new(bytes.len() as u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for (start, part) in (0..).step_by(40_000).zip(bytes.chunks(40_000)) {
                        blocks.add(part, start);
                    }
                });
            }
        });
        assert_eq!(digest(&blocks), expected);
    }

    #[test]
    fn reading_adds_the_blocks_that_are_read() -> io::Result<()> {
        let bytes: Vec<u8> = (0..300_000u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&bytes)?;
        for (start, size) in [
            (0, 300_000),
            (5, 299_995),
            (131_071, 2),
            (16_384, 131_072),
            (9, 0),
        ] {
            let (read, added) = (Blocks::new(300_000), Blocks::new(300_000));
            let mut buffer = vec![0; size];
            read.read(file.as_file(), &mut buffer, start as u64)?;
            assert!(buffer == bytes[start..start + size], "{start} {size}");
            added.add(&buffer, start as u64);
            assert_eq!(read.added().blocks, added.added().blocks, "{start} {size}");
            assert_eq!(read.digest(), added.digest(), "{start} {size}");
        }
        let beyond = Blocks::new(300_000).read(file.as_file(), &mut [0; 9], 299_992);
        assert_eq!(
            beyond.map_err(|error| error.kind()),
            Err(io::ErrorKind::UnexpectedEof)
        );
        Ok(())
    }

    #[test]
    fn contents_that_differ_in_a_bit_or_in_their_order_have_other_digests() {
        let digest = |bytes: &[u8]| {
            let blocks = Blocks::new(bytes.len() as u64);
            blocks.add(bytes, 0);
            blocks.added().sum
        };
        let bytes: Vec<u8> = (0..40_000u32).map(|i| (i >> 8) as u8).collect();
        let mut exchanged = bytes.clone();
        exchanged[..32_768].rotate_left(16_384);
        let mut digests = vec![
            digest(&bytes),
            digest(&exchanged),
            digest(&[]),
            digest(&[0]),
        ];
        for bit in [0, 7, 16_383 * 8, 16_384 * 8, 39_999 * 8 + 7] {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            digests.push(digest(&other));
        }
        let mut distinct = digests.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), digests.len());
    }

    #[test]
    fn digests_are_32_hexadecimal_digits() {
        assert_ne!(Digest::from_bytes(b"a"), Digest::from_bytes(b"b"));
        let text = serde_json::to_string(&Digest::from_bytes(b"")).expect("text");
        // Computed with xxhsum.
        assert_eq!(text, "\"99aa06d3014798d86001c324468d497f\"");
        let digest: Digest = serde_json::from_str(&text).expect("a digest");
        assert_eq!(digest, Digest::from_bytes(b""));
        for wrong in [
            "\"\"",
            "\"99aa\"",
            "\"+9aa06d3014798d86001c324468d497f\"",
            "5",
        ] {
            assert!(serde_json::from_str::<Digest>(wrong).is_err(), "{wrong}");
        }
    }
}
