//! The command line of a benchmark, in any order: kinds of image, a side, and words of its own.

use super::kinds::Kind;

/// The arguments after `--`.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// The arguments of this process; those that start with `--` come from cargo.
    pub fn new() -> Arguments {
        let words = std::env::args().skip(1);
        Arguments(words.filter(|word| !word.starts_with("--")).collect())
    }

    /// Whether this word is among them.
    pub fn names(&self, word: &str) -> bool {
        self.0.iter().any(|named| named == word)
    }

    /// The first argument that passes a test.
    pub fn find<T>(&self, test: impl FnMut(&String) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(test)
    }

    /// Width and height of the image; 2048 by default.
    pub fn side(&self) -> usize {
        self.find(|word| word.parse().ok()).unwrap_or(2048)
    }

    /// The kinds of image on the command line.
    pub fn kinds(&self) -> Vec<Kind> {
        let named = |kind: &Kind| self.names(&kind.name());
        Kind::ALL.into_iter().filter(named).collect()
    }
}
