//! Literals and matches, and the symbols that deflate has for them (RFC 1951, section 3.2.5).

/// Distance symbols that can occur.
pub const DISTANCES: usize = 30;

/// Length symbols.
pub const LENGTHS: usize = 29;

/// Bytes of the shortest and of the longest match.
pub const SHORTEST: usize = 3;
pub const LONGEST: usize = 258;

/// A literal, or a match by its length and distance, in one number.
#[derive(Clone, Copy)]
pub struct Token(u32);

impl Token {
    const MATCH: u32 = 1 << 31;

    /// One byte.
    pub fn literal(byte: u8) -> Token {
        Token(byte.into())
    }

    /// `len` 3..=258 bytes from `distance` 1..=32768 bytes before.
    pub fn matched(len: usize, distance: usize) -> Token {
        Token(Token::MATCH | (len as u32) << 16 | (distance as u32 - 1))
    }

    /// Length and distance of a match, or the byte.
    pub fn split(self) -> Result<(usize, usize), u8> {
        match self.0 & Token::MATCH {
            0 => Err(self.0 as u8),
            _ => Ok((
                (self.0 >> 16 & 0x1ff) as usize,
                (self.0 & 0x7fff) as usize + 1,
            )),
        }
    }
}

/// The symbol of a match of 3..=258 bytes and the value of its extra bits (RFC 1951, section 3.2.5).
pub fn length_code(len: usize) -> (usize, u32) {
    let over = len as u32 - 3;
    match over {
        255 => (285, 0),
        0..8 => (257 + over as usize, 0),
        // Four symbols to each power of two: the two bits under the leading one tell them apart.
        _ => {
            let extra = over.ilog2() - 2;
            let symbol = 257 + 4 * extra + (over >> extra);
            (symbol as usize, over & ((1 << extra) - 1))
        }
    }
}

/// How many extra bits follow a symbol of the literal and length alphabet.
pub fn extra_bits(symbol: usize) -> u32 {
    match symbol {
        265..285 => (symbol as u32 - 261) / 4,
        _ => 0,
    }
}

/// The symbol of a distance of 1..=32768 and the value of its extra bits.
pub fn distance_code(distance: usize) -> (usize, u32) {
    let over = distance as u32 - 1;
    match over {
        0..4 => (over as usize, 0),
        // Two symbols to each power of two.
        _ => {
            let extra = over.ilog2() - 1;
            let symbol = 2 * extra + (over >> extra);
            (symbol as usize, over & ((1 << extra) - 1))
        }
    }
}

/// How many extra bits follow a distance symbol.
pub fn distance_extra_bits(symbol: usize) -> u32 {
    (symbol as u32 / 2).saturating_sub(1)
}
