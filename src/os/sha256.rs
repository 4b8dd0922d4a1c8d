//! SHA-256 of files (FIPS 180-4), for `--report` and `prove`: who reads a report can compute it with any other program.

use super::fault::{self, Kind};
use super::system;
use crate::os::reason::plain;
use anyhow::Result;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Digest as _;
use std::fmt;
use std::fs::File;
use std::path::Path;

/// Bytes that are read at once: they stay in a core's cache.
const CHUNK: usize = 128 << 10;

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// That of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Sha256 {
        Sha256(sha2::Sha256::digest(bytes).into())
    }

    /// That of the first `len` bytes of a file.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn of_file(file: &File, len: u64, path: &Path) -> Result<Sha256> {
        let mut hasher = sha2::Sha256::new();
        let mut chunk = vec![0; CHUNK.min(usize::try_from(len)?)];
        let mut at = 0;
        while at < len {
            let size = chunk.len().min((len - at) as usize);
            fault::point(Kind::Read, path).map_err(plain)?;
            system::read_exact_at(file, &mut chunk[..size], at).map_err(plain)?;
            hasher.update(&chunk[..size]);
            at += size as u64;
        }
        Ok(Sha256(hasher.finalize().into()))
    }

    /// That of a set of files: of one file its own; of several that of the text that has the SHA-256 of each on a line, sorted.
    /// `sha256sum FILES | cut -c 1-64 | LC_ALL=C sort | sha256sum` prints it.
    pub fn of_set(mut members: Vec<Sha256>) -> Sha256 {
        if let [only] = members[..] {
            return only;
        }
        members.sort_unstable();
        Sha256::of_list(&members)
    }

    /// That of files in their order: that of the text that has the SHA-256 of each on a line.
    /// `sha256sum FILES | cut -c 1-64 | sha256sum` prints it.
    pub fn of_list(members: &[Sha256]) -> Sha256 {
        let lines = members.iter().map(|member| format!("{member}\n"));
        Sha256::of_bytes(lines.collect::<String>().as_bytes())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Sha256, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || de::Error::custom("not 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Sha256(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The examples of NIST.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(Sha256::of_bytes(b"abc").to_string(), ABC);
        assert_eq!(Sha256::of_bytes(b"").to_string(), NOTHING);
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(&vec![b'a'; 1_000_000]).expect("write");
        let digest = |len| Sha256::of_file(file.as_file(), len, file.path());
        assert_eq!(
            digest(1_000_000).expect("reads").to_string(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
        assert_eq!(digest(0).expect("reads").to_string(), NOTHING);
        assert!(digest(1_000_001).is_err());
    }

    #[test]
    fn a_set_has_the_digest_of_its_sorted_digests() {
        let members = [b"a", b"b"].map(|bytes| Sha256::of_bytes(bytes));
        let [a, b] = members;
        assert_eq!(Sha256::of_set(vec![a]), a);
        // `printf a | sha256sum` and `printf b | sha256sum`, cut to 64 columns, sorted, through sha256sum.
        assert_eq!(
            Sha256::of_set(vec![a, b]).to_string(),
            "e31b611bfa25cad7df113c6721feec788606f694069ced6d3d3f738a89d14e2a"
        );
        assert_eq!(Sha256::of_set(vec![a, b]), Sha256::of_set(vec![b, a]));
        assert_ne!(Sha256::of_set(vec![a, b]), Sha256::of_set(vec![a, b, b]));
    }

    #[test]
    fn a_list_has_the_digest_of_its_digests_in_their_order() {
        let [a, b] = [b"a", b"b"].map(|bytes| Sha256::of_bytes(bytes));
        // `printf a | sha256sum` and `printf b | sha256sum`, cut to 64 columns, through sha256sum.
        assert_eq!(
            Sha256::of_list(&[a, b]).to_string(),
            "bf75fafab8e46555836b92f1b04106b795a9ed36bd39b351f103b28819895f33"
        );
        assert_ne!(Sha256::of_list(&[a, b]), Sha256::of_list(&[b, a]));
        assert_ne!(Sha256::of_list(&[a]), a);
    }

    #[test]
    fn text_is_64_digits() {
        let text = format!("\"{ABC}\"");
        let digest: Sha256 = serde_json::from_str(&text).expect("a digest");
        assert_eq!(digest, Sha256::of_bytes(b"abc"));
        assert_eq!(serde_json::to_string(&digest).expect("text"), text);
        for wrong in [
            "\"\"",
            "5",
            &text.replace('b', "g"),
            &text.replace("ba", "+a"),
            &text.replace("ba", "é"),
        ] {
            assert!(serde_json::from_str::<Sha256>(wrong).is_err(), "{wrong}");
        }
    }
}
