//! Mutations of TIFF files: of any bytes, or of one entry of the first directory.

use crate::random::Random;
use libfuzzer_sys::fuzzer_mutate;

/// Tags that are read (see `formats/tiff/ifd.rs`).
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
    if seed % 2 == 0 || change_entry(&mut data[..size], seed / 2).is_none() {
        return fuzzer_mutate(data, size, max);
    }
    size
}

/// Numbers of a TIFF file, and where its first directory is.
struct Directory {
    little: bool,
    wide: usize,
    /// Byte of the first entry, and how many there are.
    start: usize,
    count: usize,
}

impl Directory {
    fn of(file: &[u8]) -> Option<Directory> {
        let mut directory = Directory {
            little: file.starts_with(b"II"),
            wide: 4,
            start: 0,
            count: 0,
        };
        let mut count_size = 2;
        if directory.number(file.get(2..4)?) == 43 {
            (directory.wide, count_size) = (8, 8);
        }
        let offset = directory.number(file.get(directory.wide..2 * directory.wide)?);
        let offset = usize::try_from(offset).ok().filter(|&at| at < file.len())?;
        directory.start = offset + count_size;
        let count = directory.number(file.get(offset..directory.start)?);
        directory.count = usize::try_from(count).ok()?;
        Some(directory)
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.little {
            true => bytes.iter().rev().fold(0, join),
            false => bytes.iter().fold(0, join),
        }
    }

    fn entry(&self, i: usize) -> std::ops::Range<usize> {
        let size = 4 + 2 * self.wide;
        self.start + i * size..self.start + (i + 1) * size
    }
}

/// Whether a tag stands in the first directory twice.
pub fn repeats_tags(file: &[u8]) -> bool {
    let Some(directory) = Directory::of(file) else {
        return false;
    };
    let mut seen = std::collections::HashSet::new();
    (0..directory.count)
        .map_while(|i| file.get(directory.entry(i)))
        .any(|entry| !seen.insert(directory.number(&entry[..2])))
}

/// Whether a tag of the first directory has a kind of values that is none: the tiff crate loses its place after
/// such an entry of a BigTIFF.
pub fn has_unknown_kinds(file: &[u8]) -> bool {
    let Some(directory) = Directory::of(file) else {
        return false;
    };
    let kinds = (0..directory.count).map_while(|i| file.get(directory.entry(i)));
    let mut kinds = kinds.map(|entry| directory.number(&entry[2..4]));
    kinds.any(|kind| !(1..=13).contains(&kind) && !(16..=18).contains(&kind))
}

fn change_entry(file: &mut [u8], seed: u32) -> Option<()> {
    let mut random = Random(seed.into());
    let directory = Directory::of(file)?;
    let wide = directory.wide;
    let len = file.len();
    let entry = file.get_mut(directory.entry(random.below(directory.count.min(20))))?;
    let (place, value) = match random.below(8) {
        0 => (0..2, TAGS[random.below(TAGS.len())].into()),
        1 => (2..4, KINDS[random.below(KINDS.len())].into()),
        2 => (4..4 + wide, VALUES[random.below(VALUES.len())]),
        3 => (4 + wide..4 + 2 * wide, random.below(len) as u64),
        _ => (4 + wide..4 + 2 * wide, VALUES[random.below(VALUES.len())]),
    };
    let short = directory.number(&entry[2..4]) == 3 && place.start > 4;
    let size = if short { 2 } else { place.len() };
    let place = &mut entry[place.start..place.start + size];
    match directory.little {
        true => place.copy_from_slice(&value.to_le_bytes()[..size]),
        false => place.copy_from_slice(&value.to_be_bytes()[8 - size..]),
    }
    Some(())
}
