//! Mutations of TIFF files: of any bytes, or of one entry of the first directory.

use libfuzzer_sys::fuzzer_mutate;

/// Tags that are read (see `codec/tiff/ifd.rs`).
const TAGS: [u16; 20] = [
    256, 257, 258, 259, 262, 266, 273, 274, 277, 278, 279, 284, 317, 322, 323, 324, 325, 338, 339,
    270,
];
const KINDS: [u16; 8] = [1, 3, 4, 5, 13, 16, 18, 9];
/// Sides, depths, compressions, and numbers at the edge of something.
const VALUES: [u64; 24] = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    13,
    16,
    17,
    32,
    64,
    255,
    256,
    1000,
    32773,
    50000,
    65535,
    65536,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    u64::MAX,
];

/// Mutates the file of `size` bytes in `data`; returns its new size.
pub fn mutate(data: &mut [u8], size: usize, max: usize, seed: u32) -> usize {
    if seed % 2 == 0 || entry(&mut data[..size], seed / 2).is_none() {
        return fuzzer_mutate(data, size, max);
    }
    size
}

fn entry(file: &mut [u8], seed: u32) -> Option<()> {
    let mut state = u64::from(seed) * 2 + 1;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) as usize % below.max(1)
    };
    let little = file.starts_with(b"II");
    let number = |bytes: &[u8]| {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match little {
            true => bytes.iter().rev().fold(0, join),
            false => bytes.iter().fold(0, join),
        }
    };
    let big = number(file.get(2..4)?) == 43;
    let (wide, count_size) = if big { (8, 8) } else { (4, 2) };
    let offset = usize::try_from(number(file.get(wide..2 * wide)?)).ok()?;
    let offset = if offset < file.len() {
        offset
    } else {
        return None;
    };
    let count = number(file.get(offset..offset + count_size)?);
    let at = offset + count_size + random(count.min(20) as usize) * (4 + 2 * wide);
    let entry = file.get_mut(at..at + 4 + 2 * wide)?;
    let (place, value) = match random(8) {
        0 => (0..2, TAGS[random(TAGS.len())].into()),
        1 => (2..4, KINDS[random(KINDS.len())].into()),
        2 => (4..4 + wide, VALUES[random(VALUES.len())]),
        3 => (4 + wide..4 + 2 * wide, random(offset + 512) as u64),
        _ => (4 + wide..4 + 2 * wide, VALUES[random(VALUES.len())]),
    };
    let size = if number(&entry[2..4]) == 3 && place.start > 4 {
        2
    } else {
        place.len()
    };
    let place = &mut entry[place.start..place.start + size];
    match little {
        true => place.copy_from_slice(&value.to_le_bytes()[..size]),
        false => place.copy_from_slice(&value.to_be_bytes()[8 - size..]),
    }
    Some(())
}
