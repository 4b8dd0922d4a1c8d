//! Deflate blocks (RFC 1951, section 3.2.3): stored, with Huffman codes and runs of zeros, or with
//! given matches.

use super::bit_writer::BitWriter;
use super::dynamic_header::DynamicHeader;
use super::huffman::{self, LITLEN};
use super::put_simd;
use super::token::{
    DISTANCES, LONGEST, SHORTEST, Token, distance_code, distance_extra_bits, extra_bits,
    length_code,
};
use crate::image::simd::per_level;

/// Bytes of one block: long enough to make the header's 100 bytes and 5 µs small, short enough to
/// follow the image.
const BLOCK: usize = 128 << 10;

/// Bits of the longest code in use. Deflate allows 15; with 14, four symbols fit into one `put`. A
/// sampled block gives every literal a code, and the longer the codes of those that do not occur, the
/// shorter the others: with 12, images of few values are 3 to 9 % larger.
const LIMIT: usize = 14;

/// The symbol that ends a block.
const END: usize = 256;

/// A symbol's code: its length in the low byte, its bits above.
type PackedCode = u32;

/// The codes of a block.
struct Codes {
    table: [PackedCode; LITLEN],
    /// For each literal its code's length, low byte and high byte.
    planes: [[u8; 256]; 3],
}

impl Codes {
    fn new(lengths: &[u8; LITLEN]) -> Codes {
        let mut codes = [0; LITLEN];
        huffman::codes(lengths, &mut codes);
        Codes {
            table: std::array::from_fn(|at| u32::from(codes[at]) << 8 | u32::from(lengths[at])),
            planes: [
                std::array::from_fn(|at| lengths[at]),
                std::array::from_fn(|at| codes[at] as u8),
                std::array::from_fn(|at| (codes[at] >> 8) as u8),
            ],
        }
    }
}

/// Appends bytes in blocks of `BLOCK`.
pub fn fast_all(bytes: &[u8], out: &mut BitWriter) {
    for block in bytes.chunks(BLOCK) {
        fast(block, out);
    }
}

/// Appends one block of 1..=`BLOCK` bytes.
///
/// The bytes are divided into groups of 8 from the block's start; up to 7 at its end are the tail.
/// 1. If at least one group in 64 is zero, *runs are coded*: k neighbouring zero groups become one
///    literal 0, then matches of distance 1 and length 258 while at least 258 of the other 8 k − 1
///    bytes are left, and for the rest one match if it has at least 3 bytes, else literals. Every
///    other byte is a literal.
/// 2. Weights: with runs coded, or in a block of less than 32 KiB, each symbol's frequency. Otherwise
///    a sample: of every four groups (quadruple i = 0, 1, …; whole ones only) the group number
///    (i · 0x9e37_79b1 mod 2³²) >> 30 is counted, and a literal's weight is 4 × its count and 1 more,
///    so that each has a code. The end of the block has weight 1.
/// 3. Codes by `huffman::lengths` with at most 14 bits; the header by `DynamicHeader::new`.
/// 4. If runs are not coded and the bits of header and weights × lengths are 8 or more for each byte
///    weighed, the block is stored instead.
fn fast(block: &[u8], out: &mut BitWriter) {
    let (groups, tail) = block.as_chunks::<8>();
    let zero = groups.iter().filter(|group| **group == [0; 8]).count();
    let runs = zero * 64 >= groups.len().max(1);
    let mut weights = [0; LITLEN];
    if runs {
        weigh_runs(groups, tail, &mut weights);
    } else if block.len() >= 32 << 10 {
        weigh_sample(groups, &mut weights);
    } else {
        weigh_bytes(block, &mut weights);
    }
    weights[END] = 1;
    let mut lengths = [0; LITLEN];
    huffman::lengths(&weights, LIMIT, &mut lengths);
    let header = DynamicHeader::new(&lengths, &[1]);
    let mut bits = header.bits();
    let mut weighed = 0;
    for symbol in 0..LITLEN {
        let (weight, extra) = (u64::from(weights[symbol]), u64::from(extra_bits(symbol)));
        bits += weight * (u64::from(lengths[symbol]) + extra);
        weighed += weight;
    }
    if !runs && bits >= 8 * weighed {
        return stored(block, out);
    }
    out.reserve(header.bits() as usize / 8 + (block.len() * LIMIT).div_ceil(8) + 64);
    header.put(out);
    let codes = Codes::new(&lengths);
    if runs {
        put_runs(groups, &codes, out);
    } else {
        put_literals(groups, &codes, out);
    }
    for &byte in tail {
        put(codes.table[usize::from(byte)], out);
    }
    put(codes.table[END], out);
}

/// Appends one block of `tokens`, which stand for `bytes`; stored if that is not longer.
pub fn matched(bytes: &[u8], tokens: &[Token], out: &mut BitWriter) {
    let TokenWeights {
        litlen: weights,
        distance: distance_weights,
    } = weigh_tokens(tokens);
    let (mut lengths, mut distance_lengths) = ([0; LITLEN], [0; DISTANCES]);
    huffman::lengths(&weights, LIMIT, &mut lengths);
    huffman::lengths(&distance_weights, 15, &mut distance_lengths);
    if distance_lengths == [0; DISTANCES] {
        distance_lengths[0] = 1; // a code must have a word: as in `fast`
    }
    let header = DynamicHeader::new(&lengths, &distance_lengths);
    let mut bits = header.bits();
    let cost = |weights: &[u32], lengths: &[u8], extra: fn(usize) -> u32| -> u64 {
        let each = weights.iter().zip(lengths).enumerate();
        each.map(|(symbol, (&weight, &len))| {
            u64::from(weight) * u64::from(u32::from(len) + extra(symbol))
        })
        .sum()
    };
    bits += cost(&weights, &lengths, extra_bits);
    bits += cost(&distance_weights, &distance_lengths, distance_extra_bits);
    if bits >= 8 * bytes.len() as u64 {
        return stored(bytes, out);
    }
    let codes = Codes::new(&lengths);
    let mut distance_codes = [0; DISTANCES];
    huffman::codes(&distance_lengths, &mut distance_codes);
    // The code of each match length, with its extra bits.
    let len_codes: [PackedCode; LONGEST + 1] = std::array::from_fn(|len| {
        let (symbol, extra) = length_code(len.max(SHORTEST));
        let code = codes.table[symbol];
        code + (extra << (8 + (code & 0xff))) + extra_bits(symbol)
    });
    out.reserve(bits.div_ceil(8) as usize);
    header.put(out);
    let mut packer = out.packer();
    for token in tokens {
        let (code, distance) = match token.split() {
            Err(byte) => (codes.table[usize::from(byte)], None),
            Ok((len, distance)) => (len_codes[len], Some(distance)),
        };
        let (mut bits, mut count) = (u64::from(code >> 8), code & 0xff);
        if let Some(distance) = distance {
            // In all at most 14 + 5 + 15 + 13 bits.
            let (symbol, extra) = distance_code(distance);
            for (more, len) in [
                (
                    u32::from(distance_codes[symbol]),
                    distance_lengths[symbol].into(),
                ),
                (extra, distance_extra_bits(symbol)),
            ] {
                bits |= u64::from(more) << count;
                count += len;
            }
        }
        packer.put(bits, count);
    }
    drop(packer);
    put(codes.table[END], out);
}

/// Appends bytes in stored blocks of up to 65535, none of them the last of the stream.
pub fn stored(bytes: &[u8], out: &mut BitWriter) {
    for piece in bytes.chunks(u16::MAX.into()) {
        out.reserve(8);
        out.put(0, 3);
        out.align();
        let len = piece.len() as u16;
        out.put(u64::from(len) | u64::from(!len) << 16, 32);
        out.extend(piece);
    }
}

/// Appends an empty stored block, which ends at a whole byte, as zlib's sync flush does; `last` marks
/// it as the stream's last block.
pub fn flush(last: bool, out: &mut BitWriter) {
    out.reserve(8);
    out.put(last.into(), 3);
    out.align();
    out.put(0xffff_0000, 32);
}

/// The frequency of each symbol in tokens.
struct TokenWeights {
    litlen: [u32; LITLEN],
    distance: [u32; DISTANCES],
}

/// Counts the symbols of tokens, and one end of the block.
fn weigh_tokens(tokens: &[Token]) -> TokenWeights {
    let (mut litlen, mut distance) = ([0; LITLEN], [0; DISTANCES]);
    let mut len_counts = [0; LONGEST + 1];
    for token in tokens {
        match token.split() {
            Err(byte) => litlen[usize::from(byte)] += 1,
            Ok((len, from)) => {
                len_counts[len] += 1;
                distance[distance_code(from).0] += 1;
            }
        }
    }
    for len in SHORTEST..=LONGEST {
        litlen[length_code(len).0] += len_counts[len];
    }
    litlen[END] = 1;
    TokenWeights { litlen, distance }
}

/// Counts bytes.
fn weigh_bytes(bytes: &[u8], weights: &mut [u32; LITLEN]) {
    // Four tables in turn, since two increments of the same count must wait for each other.
    let mut tables = [[0u32; 256]; 4];
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for (table, &byte) in tables.iter_mut().zip(four) {
            table[usize::from(byte)] += 1;
        }
    }
    for &byte in rest {
        tables[0][usize::from(byte)] += 1;
    }
    for (symbol, weight) in weights.iter_mut().enumerate().take(256) {
        *weight += tables.iter().map(|table| table[symbol]).sum::<u32>();
    }
}

fn weigh_sample(groups: &[[u8; 8]], weights: &mut [u32; LITLEN]) {
    // A table for each byte of a group, as in `weigh_bytes`.
    let mut tables = [[0u32; 256]; 8];
    let quadruples = groups.as_chunks::<4>().0;
    for (index, four) in quadruples.iter().enumerate() {
        // Not the same group of each quadruple: an image may repeat itself every 32 bytes.
        let group = four[((index as u32).wrapping_mul(0x9e37_79b1) >> 30) as usize];
        for (table, byte) in tables.iter_mut().zip(group) {
            table[usize::from(byte)] += 1;
        }
    }
    for (symbol, weight) in weights.iter_mut().enumerate().take(256) {
        *weight = 4 * tables.iter().map(|table| table[symbol]).sum::<u32>() + 1;
    }
}

/// Neighbouring groups that are all zero, or all not.
struct GroupRun<'a> {
    is_zero: bool,
    groups: &'a [[u8; 8]],
}

fn group_runs(groups: &[[u8; 8]]) -> impl Iterator<Item = GroupRun<'_>> {
    groups
        .chunk_by(|a, b| (*a == [0; 8]) == (*b == [0; 8]))
        .map(|groups| GroupRun {
            is_zero: groups[0] == [0; 8],
            groups,
        })
}

/// The symbols of a run of zeros after its first literal.
struct ZeroRun {
    /// The number of matches of 258 bytes.
    full_matches: usize,
    /// The length of the match after them, or 0.
    last_match: usize,
    /// The number of literals after that.
    literals: usize,
}

impl ZeroRun {
    fn new(groups: &[[u8; 8]]) -> ZeroRun {
        let len = 8 * groups.len() - 1;
        let (last_match, literals) = match len % 258 {
            rest @ 0..3 => (0, rest),
            rest => (rest, 0),
        };
        ZeroRun {
            full_matches: len / 258,
            last_match,
            literals,
        }
    }
}

fn weigh_runs(groups: &[[u8; 8]], tail: &[u8], weights: &mut [u32; LITLEN]) {
    for run in group_runs(groups) {
        if run.is_zero {
            let zeros = ZeroRun::new(run.groups);
            weights[0] += 1 + zeros.literals as u32;
            weights[length_code(258).0] += zeros.full_matches as u32;
            if zeros.last_match > 0 {
                weights[length_code(zeros.last_match).0] += 1;
            }
        } else {
            for &byte in run.groups.as_flattened() {
                weights[usize::from(byte)] += 1;
            }
        }
    }
    weigh_bytes(tail, weights);
}

#[inline(always)]
fn put(code: PackedCode, out: &mut BitWriter) {
    out.put((code >> 8).into(), code & 0xff);
}

/// Appends groups as literals.
fn put_literals(groups: &[[u8; 8]], codes: &Codes, out: &mut BitWriter) {
    let done = put_simd::put_literals(groups, &codes.planes, out);
    put_literals_plain(&groups[done..], &codes.table, out);
}

// For the shifts of BMI2, which take any register.
per_level! {
    highest Avx2;

    fn put_literals_plain(groups: &[[u8; 8]], table: &[PackedCode; LITLEN], out: &mut BitWriter) {
        let mut out = out.packer();
        for group in groups {
            for half in group.as_chunks::<4>().0 {
                let [a, b, c, d] = half.map(|byte| table[usize::from(byte)]);
                // Two pairs, then the pair of pairs: their shifts do not wait for each other.
                let (ab, ab_len) = join(a, b);
                let (cd, cd_len) = join(c, d);
                out.put(ab | cd << ab_len, ab_len + cd_len);
            }
        }
    }
}

#[inline(always)]
fn join(a: PackedCode, b: PackedCode) -> (u64, u32) {
    let len = a & 0xff;
    (
        u64::from(a >> 8) | u64::from(b >> 8) << len,
        len + (b & 0xff),
    )
}

fn put_runs(groups: &[[u8; 8]], codes: &Codes, out: &mut BitWriter) {
    for run in group_runs(groups) {
        if !run.is_zero {
            put_literals(run.groups, codes, out);
            continue;
        }
        let zeros = ZeroRun::new(run.groups);
        put(codes.table[0], out);
        for _ in 0..zeros.full_matches {
            put_match(258, codes, out);
        }
        if zeros.last_match > 0 {
            put_match(zeros.last_match, codes, out);
        }
        for _ in 0..zeros.literals {
            put(codes.table[0], out);
        }
    }
}

/// Appends a match of distance 1, the only distance in such a block: code 0, one bit.
fn put_match(len: usize, codes: &Codes, out: &mut BitWriter) {
    let (symbol, extra) = length_code(len);
    put(codes.table[symbol], out);
    out.put(extra.into(), extra_bits(symbol) + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_plain_loop_write_the_same_bits() {
        let mut state = 5u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as u32
        };
        for round in 0..200 {
            // From steep weights, which make many codes of 14 bits, to even ones.
            let steep = round % 12;
            let mut weights = [1; LITLEN];
            weights[..256].fill_with(|| 1 + ((next() & 0xffff) >> (next() % (steep + 1))));
            let mut lengths = [0; LITLEN];
            huffman::lengths(&weights, LIMIT, &mut lengths);
            let codes = Codes::new(&lengths);
            // Every other time bytes with long codes alone, so that eight do not fit into 64 bits.
            let long: Vec<u8> = (0..=255).filter(|&b| lengths[usize::from(b)] > 8).collect();
            let groups: Vec<[u8; 8]> = (0..round)
                .map(|_| {
                    std::array::from_fn(|_| match long.len() {
                        some @ 1.. if round % 2 == 0 => long[next() as usize % some],
                        _ => next() as u8,
                    })
                })
                .collect();
            let written = |put: &dyn Fn(&mut BitWriter)| {
                let mut out = BitWriter::default();
                out.reserve(groups.len() * 14 + 64);
                out.put(1, 1 + round % 8);
                put(&mut out);
                out.align();
                out.bytes().to_vec()
            };
            let vectors = written(&|out| put_literals(&groups, &codes, out));
            let plain = written(&|out| put_literals_plain(&groups, &codes.table, out));
            assert!(vectors == plain, "round {round}");
        }
    }
}
