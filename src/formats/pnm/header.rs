//! The header of a Netpbm file: numbers, white space and comments.

use crate::os::Source;
use anyhow::{Context, Result, ensure};

/// Reads the header a character at a time through a small buffer.
pub struct Header<'a> {
    source: &'a Source,
    /// Bytes of the source from `start` on.
    block: Vec<u8>,
    start: u64,
    /// Offset of the byte to read next.
    pub next: u64,
}

impl<'a> Header<'a> {
    /// A reader at the beginning of the source.
    pub fn new(source: &'a Source) -> Header<'a> {
        Header {
            source,
            block: Vec::new(),
            start: 0,
            next: 0,
        }
    }

    /// The next byte.
    ///
    /// # Errors
    /// The end of the file.
    pub fn byte(&mut self) -> Result<u8> {
        if self.next >= self.start + self.block.len() as u64 {
            self.block.resize(4096, 0);
            self.start = self.next;
            let read = self.source.read_up_to(&mut self.block, self.start)?;
            self.block.truncate(read);
            ensure!(
                read > 0,
                "truncated at byte {}, within the header",
                self.next
            );
        }
        let byte = self.block[(self.next - self.start) as usize];
        self.next += 1;
        Ok(byte)
    }

    /// The next character; a comment (`#` to the end of its line) counts as the end of that line.
    ///
    /// # Errors
    /// The end of the file.
    pub fn character(&mut self) -> Result<u8> {
        let mut byte = self.byte()?;
        if byte == b'#' {
            while !matches!(byte, b'\n' | b'\r') {
                byte = self.byte()?;
            }
        }
        Ok(byte)
    }

    /// Reads a decimal number, the white space before it, and the single white-space character
    /// after it.
    ///
    /// # Errors
    /// Anything else than a number, and one of more than 64 bits.
    pub fn number(&mut self, name: &str) -> Result<u64> {
        let mut character = self.character()?;
        while is_space(character) {
            character = self.character()?;
        }
        let mut number: Option<u64> = None;
        while character.is_ascii_digit() {
            let digit = u64::from(character - b'0');
            let grown = number
                .unwrap_or(0)
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit));
            number = Some(grown.with_context(|| format!("the {name} is too large"))?);
            character = self.character()?;
        }
        number
            .filter(|_| is_space(character))
            .with_context(|| format!("the {name} is not a number (byte {})", self.next - 1))
    }
}

/// Whether a character separates words.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
