//! A baseline JPEG of 8 × 8 pixels of one colour, put together so that every component has exactly the level that is asked for.

/// A file of components of these levels and names, with more segments (marker and content) before the frame.
pub fn flat(levels: &[u8], names: &[u8], more: &[(u8, &[u8])]) -> Vec<u8> {
    let components = levels.len() as u8;
    let mut file = b"\xFF\xD8".to_vec();
    let mut segment = |marker: u8, content: &[u8]| {
        file.extend([0xFF, marker]);
        file.extend((content.len() as u16 + 2).to_be_bytes());
        file.extend(content);
    };
    for (marker, content) in more {
        segment(*marker, content);
    }
    segment(0xDB, &[&[0][..], &[1; 64]].concat());
    let parts = names.iter().flat_map(|&name| [name, 0x11, 0]);
    let parts = parts.collect::<Vec<u8>>();
    segment(0xC0, &[&[8, 0, 8, 0, 8, components], &parts[..]].concat());
    // The number of bits of a mean as four bits, and one bit for the end of a block.
    let mut lengths = [0; 16];
    lengths[3] = 12;
    segment(
        0xC4,
        &[&[0], &lengths[..], &(0..12).collect::<Vec<u8>>()].concat(),
    );
    let mut lengths = [0; 16];
    lengths[0] = 1;
    segment(0xC4, &[&[0x10], &lengths[..], &[0]].concat());
    let parts = names.iter().flat_map(|&name| [name, 0]);
    let parts = parts.collect::<Vec<u8>>();
    segment(0xDA, &[&[components], &parts[..], &[0, 63, 0]].concat());
    let mut bits = String::new();
    for &level in levels {
        let mean = 8 * (i32::from(level) - 128);
        let count = 32 - mean.unsigned_abs().leading_zeros();
        let value = if mean < 0 { mean - 1 } else { mean };
        bits += &format!("{count:04b}");
        if count > 0 {
            bits += &format!("{value:032b}")[32 - count as usize..];
        }
        bits += "0";
    }
    bits += &"1".repeat(bits.len().next_multiple_of(8) - bits.len());
    for byte in bits.as_bytes().chunks(8) {
        let byte = byte.iter().fold(0, |byte, &bit| byte << 1 | (bit - b'0'));
        file.push(byte);
        if byte == 0xFF {
            file.push(0);
        }
    }
    file.extend(b"\xFF\xD9");
    file
}

/// The segment of JFIF, and that of Adobe with a transform.
pub const JFIF: (u8, &[u8]) = (0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
pub const ADOBE: [(u8, &[u8]); 3] = [
    (0xEE, b"Adobe\0\x64\0\0\0\0\0"),
    (0xEE, b"Adobe\0\x64\0\0\0\0\x01"),
    (0xEE, b"Adobe\0\x64\0\0\0\0\x02"),
];
