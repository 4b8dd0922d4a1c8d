//! The digest of a file's content. It separates a file that the system reports with another inode, time or
//! device from another file in its place.
//!
//! XXH3 of 128 bits: it is computed of every input of a batch, so it has to cost next to nothing, and it
//! guards against mistakes alone; who may write to the inputs and to the journal needs no collision.

use super::fault::{self, Kind};
use crate::reason::plain;
use anyhow::Result;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use twox_hash::XxHash3_128;

/// Bytes that are read at once where nobody else reads them: they stay in a core's cache.
const CHUNK: usize = 128 << 10;

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
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(XxHash3_128::oneshot(bytes).to_be_bytes())
    }
}

/// The digest of the first bytes of a file, which grows while the file is read from its beginning on.
pub struct Prefix {
    hasher: XxHash3_128,
    length: u64,
}

impl Prefix {
    /// Of no bytes.
    pub fn new() -> Prefix {
        Prefix {
            hasher: XxHash3_128::new(),
            length: 0,
        }
    }

    /// Adds `bytes`, which were read at `offset`, if they follow those that are there.
    pub fn add(&mut self, bytes: &[u8], offset: u64) {
        let known = self.length.checked_sub(offset);
        let known = known.and_then(|known| usize::try_from(known).ok());
        if let Some(new) = known.and_then(|known| bytes.get(known..)) {
            self.hasher.write(new);
            self.length += new.len() as u64;
        }
    }

    /// The digest of the whole file, of `length` bytes, whose rest is read now.
    ///
    /// # Errors
    /// The rest cannot be read.
    pub fn finish(&mut self, file: &File, path: &Path, length: u64) -> Result<Digest> {
        let mut chunk = vec![0; CHUNK.min(usize::try_from(length - self.length)?)];
        while self.length < length {
            let left = usize::try_from(length - self.length).unwrap_or(CHUNK);
            let size = left.min(chunk.len());
            let chunk = &mut chunk[..size];
            fault::point(Kind::Read, path).map_err(plain)?;
            file.read_exact_at(chunk, self.length).map_err(plain)?;
            self.add(chunk, self.length);
        }
        Ok(Digest(self.hasher.finish_128().to_be_bytes()))
    }
}

impl std::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "a digest of {} bytes", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_digest_is_that_of_the_whole_file_in_whatever_order_it_was_read() {
        let bytes: Vec<u8> = (0..300_000u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(&bytes).expect("write");
        let reads: [&[(usize, usize)]; 5] = [
            &[],
            &[(0, 300_000)],
            &[(0, 8), (299_000, 1000), (8, 1000), (500, 200_000), (0, 5)],
            &[(7, 100), (0, 50), (40, 0), (50, 1)],
            &[(299_999, 1), (0, 299_999), (0, 300_000)],
        ];
        for reads in reads {
            let mut prefix = Prefix::new();
            for &(start, size) in reads {
                prefix.add(&bytes[start..start + size], start as u64);
            }
            let digest = prefix.finish(file.as_file(), file.path(), bytes.len() as u64);
            assert_eq!(digest.expect("reads"), Digest::of(&bytes), "{reads:?}");
        }
        assert_ne!(Digest::of(b"a"), Digest::of(b"b"));
        let text = serde_json::to_string(&Digest::of(b"")).expect("text");
        // By xxhsum.
        assert_eq!(text, "\"99aa06d3014798d86001c324468d497f\"");
        let digest: Digest = serde_json::from_str(&text).expect("a digest");
        assert_eq!(digest, Digest::of(b""));
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
