//! A GPU joins image data from chunks of any lengths, and checks the CRC of each.

use crate::support::gpu;
use crate::support::png_gpu_decode::{compare, on_gpu, plain};
use std::iter::repeat_n;

/// The file with its image data in chunks of these lengths, the last of which take the rest.
fn in_chunks(file: &[u8], mut lengths: impl Iterator<Item = usize>) -> Vec<u8> {
    let (mut out, mut data, mut at) = (file[..8].to_vec(), Vec::new(), 8);
    while at + 12 <= file.len() {
        let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let chunk = &file[at..at + 12 + len];
        match &chunk[4..8] {
            b"IDAT" => data.extend(&chunk[8..8 + len]),
            b"gpIS" => {}
            b"IEND" => {
                let mut rest = &data[..];
                while !rest.is_empty() {
                    let len = lengths.next().unwrap_or(rest.len()).min(rest.len());
                    let (now, later) = rest.split_at(len);
                    let body = [b"IDAT", now].concat();
                    out.extend((len as u32).to_be_bytes());
                    out.extend(&body);
                    out.extend(crc32fast::hash(&body).to_be_bytes());
                    rest = later;
                }
                out.extend(chunk);
            }
            _ => out.extend(chunk),
        }
        at += 12 + len;
    }
    out
}

/// Noise of 300×200 as one zlib stream of some 100 kB.
fn noise() -> Vec<u8> {
    plain(300, 200, 16, 0, false).encoded(1)
}

#[test]
fn chunks_of_any_lengths() {
    let Some(gpu) = gpu(60) else { return };
    let file = noise();
    for len in (1..=20).chain([
        127, 128, 129, 8191, 8192, 8193, 8444, 8445, 8448, 8452, 30_000,
    ]) {
        // So many short chunks are the CPU's.
        let count = if len < 128 { 700 } else { usize::MAX };
        let chunks = in_chunks(&file, repeat_n(len, count));
        compare(gpu, &chunks, &format!("chunks of {len}"));
    }
    let uneven = in_chunks(&file, (0..900).map(|i| i * 7919 % 301));
    compare(gpu, &uneven, "uneven and empty chunks");
    let empty = in_chunks(&file, repeat_n(0, 9));
    compare(gpu, &empty, "empty chunks first");
    let small = plain(1, 1, 1, 0, false).encoded(0);
    compare(gpu, &in_chunks(&small, repeat_n(1, 99)), "bytes as chunks");
    let many = in_chunks(&file, repeat_n(1, usize::MAX));
    assert!(on_gpu(gpu, &many).is_err_and(|why| why.contains("too many chunks")));
}

#[test]
fn a_wrong_crc_is_found() {
    let Some(gpu) = gpu(120) else { return };
    let file = noise();
    for len in [1000, 8192, 20_000, usize::MAX] {
        let chunks = in_chunks(&file, repeat_n(len, usize::MAX));
        let (mut at, mut tried) = (8, 0);
        while at + 12 <= chunks.len() {
            let len = u32::from_be_bytes(chunks[at..at + 4].try_into().unwrap()) as usize;
            let crc = at + 8 + len;
            let ends = at < 200 || chunks.len() - at < 20_000;
            for place in [crc, crc + 3]
                .into_iter()
                .filter(|_| ends && &chunks[at + 4..at + 8] == b"IDAT")
            {
                for bit in [1, 128] {
                    let mut wrong = chunks.clone();
                    wrong[place] ^= bit;
                    assert!(on_gpu(gpu, &wrong).is_err(), "byte {place}, {len}");
                    tried += 1;
                }
            }
            at += 12 + len;
        }
        assert!(tried > 0);
    }
}
