//! What a benchmark's command line names, in any order: kinds of image, a side, and words of its own.

use super::kinds::Kind;

/// The arguments after `--`.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Those of this process; what starts with `--` comes from cargo.
    pub fn new() -> Arguments {
        let words = std::env::args().skip(1);
        Arguments(words.filter(|word| !word.starts_with("--")).collect())
    }

    /// Whether this word is among them.
    pub fn names(&self, word: &str) -> bool {
        self.0.iter().any(|named| named == word)
    }

    /// The first that passes.
    pub fn find<T>(&self, test: impl FnMut(&String) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(test)
    }

    /// Width and height of the image: 2048 if no number is named.
    pub fn side(&self) -> usize {
        self.find(|word| word.parse().ok()).unwrap_or(2048)
    }

    /// The kinds of image that are named.
    pub fn kinds(&self) -> Vec<Kind> {
        let named = |kind: &Kind| self.names(&kind.name());
        Kind::ALL.into_iter().filter(named).collect()
    }
}
