//! Writes PNG files in the slow, plain way (PNG specification, sections 5–11), for testing
//! decoders.

use gpuimg::internals::image::Image;
use std::io::Write;

/// The header and the samples of a PNG.
#[derive(Clone, Debug)]
pub struct Plain {
    pub width: usize,
    pub height: usize,
    pub bits: u8,
    /// The colour type of IHDR: 0, 2, 3, 4 or 6.
    pub colour: u8,
    pub interlaced: bool,
    /// Interleaved samples, each below 2^bits.
    pub samples: Vec<u16>,
    /// Chunks between IHDR and IDAT.
    pub before: Vec<([u8; 4], Vec<u8>)>,
}

impl Plain {
    /// An image of similar neighbours, with noise from a fixed generator.
    pub fn noisy(width: usize, height: usize, bits: u8, colour: u8) -> Plain {
        let channels = channels(colour);
        let mut state = (width * 31 + height * 17 + usize::from(bits)) as u64 + 1;
        let mask = ((1u32 << bits) - 1) as u16;
        let samples = (0..width * height * channels)
            .map(|i| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let noise = (state >> 40) as u16;
                let slope = (i / channels) as u16;
                // One sample in eleven is extreme, so that predictions wrap.
                match state % 11 {
                    0 => mask * (state >> 20 & 1) as u16,
                    _ => slope.wrapping_mul(3).wrapping_add(noise & (mask >> 3)) & mask,
                }
            })
            .collect();
        Plain {
            width,
            height,
            bits,
            colour,
            interlaced: false,
            samples,
            before: Vec::new(),
        }
    }

    pub fn channels(&self) -> usize {
        channels(self.colour)
    }

    /// Bytes between a sample and the one to its left.
    pub fn step(&self) -> usize {
        (self.channels() * usize::from(self.bits)).div_ceil(8)
    }

    /// The reduced images of the file in order, each as rows of packed bytes.
    fn passes(&self) -> Vec<Vec<Vec<u8>>> {
        // Written from section 8.2 independently of the decoder's table, so that an error in either
        // is found.
        const ADAM7: [(usize, usize, usize, usize); 7] = [
            (0, 0, 8, 8),
            (4, 0, 8, 8),
            (0, 4, 4, 8),
            (2, 0, 4, 4),
            (0, 2, 2, 4),
            (1, 0, 2, 2),
            (0, 1, 1, 2),
        ];
        let passes = if self.interlaced {
            &ADAM7[..]
        } else {
            &[(0, 0, 1, 1)]
        };
        let row = |y: usize, x0: usize, dx: usize| {
            let pixels = (x0..self.width).step_by(dx);
            pack(pixels.flat_map(|x| self.pixel(x, y)).copied(), self.bits)
        };
        passes
            .iter()
            .filter(|&&(x0, ..)| x0 < self.width)
            .map(|&(x0, y0, dx, dy)| {
                (y0..self.height)
                    .step_by(dy)
                    .map(|y| row(y, x0, dx))
                    .collect()
            })
            .collect()
    }

    fn pixel(&self, x: usize, y: usize) -> &[u16] {
        let at = (y * self.width + x) * self.channels();
        &self.samples[at..at + self.channels()]
    }

    /// The scanlines with their filter bytes; `filter` gives the filter of each row.
    pub fn scanlines(&self, filter: impl Fn(usize) -> u8) -> Vec<u8> {
        let mut out = Vec::new();
        for pass in self.passes() {
            let mut above = vec![0; pass.first().map_or(0, Vec::len)];
            for (y, row) in pass.into_iter().enumerate() {
                out.push(filter(y));
                out.extend(filtered(filter(y), &row, &above, self.step()));
                above = row;
            }
        }
        out
    }

    /// The file around a zlib stream cut into IDAT chunks.
    pub fn file<'a>(&self, idats: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        header.extend([self.bits, self.colour, 0, 0, self.interlaced.into()]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut file, b"IHDR", &header);
        for (kind, data) in &self.before {
            chunk(&mut file, kind, data);
        }
        for idat in idats {
            chunk(&mut file, b"IDAT", idat);
        }
        chunk(&mut file, b"IEND", &[]);
        file
    }

    /// A whole file with one IDAT, every row filtered by `filter`.
    pub fn encoded(&self, filter: u8) -> Vec<u8> {
        self.file([&zlib(&self.scanlines(|_| filter), 6)[..]])
    }
}

pub fn channels(colour: u8) -> usize {
    [1, 0, 3, 1, 2, 0, 4][usize::from(colour)]
}

/// Appends a chunk with its length and CRC.
pub fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend((data.len() as u32).to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    let crc = crc32fast::hash(&file[start..]);
    file.extend(crc.to_be_bytes());
}

pub fn zlib(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn pack(samples: impl Iterator<Item = u16>, bits: u8) -> Vec<u8> {
    if bits == 16 {
        return samples.flat_map(u16::to_be_bytes).collect();
    }
    let samples: Vec<u16> = samples.collect();
    samples
        .chunks(8 / usize::from(bits))
        .map(|byte| {
            let packed = byte.iter().fold(0, |byte, s| byte << bits | s);
            (packed << (8 - byte.len() * usize::from(bits))) as u8
        })
        .collect()
}

fn filtered(filter: u8, row: &[u8], above: &[u8], step: usize) -> Vec<u8> {
    (0..row.len())
        .map(|i| {
            let a = if i < step { 0 } else { row[i - step] };
            let c = if i < step { 0 } else { above[i - step] };
            row[i].wrapping_sub(predict(filter, a, above[i], c))
        })
        .collect()
}

/// The prediction of a filter type (section 9.2): a left, b above, c above left.
pub fn predict(filter: u8, a: u8, b: u8, c: u8) -> u8 {
    match filter {
        0 => 0,
        1 => a,
        2 => b,
        3 => ((u16::from(a) + u16::from(b)) / 2) as u8,
        4 => {
            let p = i32::from(a) + i32::from(b) - i32::from(c);
            let away = |x: u8| (p - i32::from(x)).abs();
            if away(a) <= away(b) && away(a) <= away(c) {
                a
            } else if away(b) <= away(c) {
                b
            } else {
                c
            }
        }
        _ => panic!("no filter {filter}"),
    }
}

/// Scanlines as segments of a zlib stream in the form of our encoder; without `reset`, segments may
/// refer to earlier ones. Returns the deflate data of each.
pub fn segments(scanlines: &[u8], size: usize, reset: bool) -> Vec<Vec<u8>> {
    use flate2::{Compress, Compression, FlushCompress};
    let mut encoder = Compress::new(Compression::new(6), false);
    let count = scanlines.len().div_ceil(size);
    let segment = |(i, bytes): (usize, &[u8])| {
        if reset {
            encoder = Compress::new(Compression::new(6), false);
        }
        let mut out = Vec::with_capacity(2 * bytes.len() + 100);
        encoder
            .compress_vec(bytes, &mut out, FlushCompress::Sync)
            .unwrap();
        if i + 1 == count {
            // The final block is an empty stored block.
            let flush = out.len() - 5;
            assert_eq!(out[flush + 1..], [0, 0, 0xFF, 0xFF]);
            out.extend([1, 0, 0, 0xFF, 0xFF]);
        }
        out
    };
    scanlines.chunks(size).enumerate().map(segment).collect()
}

/// The IDAT data of segments: zlib's header before the first, the Adler-32 after the last.
pub fn idats(segments: &[Vec<u8>], scanlines: &[u8]) -> Vec<Vec<u8>> {
    let mut idats = segments.to_vec();
    idats[0].splice(..0, [0x78, 0x01]);
    let adler = simd_adler32::adler32(&scanlines);
    idats.last_mut().unwrap().extend(adler.to_be_bytes());
    idats
}

/// The private chunk with the lengths of the segments.
pub fn index(rows: usize, segments: &[Vec<u8>]) -> ([u8; 4], Vec<u8>) {
    let mut data = vec![1];
    data.extend((rows as u32).to_be_bytes());
    for segment in segments {
        data.extend((segment.len() as u32).to_be_bytes());
    }
    (*b"gpIS", data)
}

/// Deflate data of `bytes` that end on a byte boundary, without the final block of the stream.
pub fn sync_flushed(bytes: &[u8], level: u32) -> Vec<u8> {
    use flate2::{Compress, Compression, FlushCompress};
    let mut out = Vec::with_capacity(2 * bytes.len() + 1000);
    Compress::new(Compression::new(level), false)
        .compress_vec(bytes, &mut out, FlushCompress::Sync)
        .unwrap();
    out
}

/// Every colour type with each depth that it allows.
const KINDS: [(u8, &[u8]); 5] = [
    (0, &[1, 2, 4, 8, 16]),
    (2, &[8, 16]),
    (3, &[1, 2, 4, 8]),
    (4, &[8, 16]),
    (6, &[8, 16]),
];

/// Every colour type (PNG specification, section 11.2.1) with each of its depths: 15 pairs.
pub fn kinds() -> impl Iterator<Item = (u8, u8)> {
    KINDS
        .iter()
        .flat_map(|&(colour, depths)| depths.iter().map(move |&bits| (colour, bits)))
}

/// A PNG of another writer, with these samples, its rows filtered in all ways.
pub fn foreign(image: &Image) -> Vec<u8> {
    let shape = image.shape();
    let bits = shape.depth.bits() as u8;
    let colour = [0, 0, 4, 2, 6][shape.channels];
    let mut plain = Plain::noisy(1, 1, bits, colour);
    (plain.width, plain.height) = (shape.width, shape.height);
    let bytes = image.samples().as_bytes();
    plain.samples = match bits {
        8 => bytes.iter().map(|&byte| byte.into()).collect(),
        _ => (bytes.as_chunks().0.iter())
            .map(|&pair| u16::from_ne_bytes(pair))
            .collect(),
    };
    plain.file([&zlib(&plain.scanlines(|y| (y * 7 % 5) as u8), 6)[..]])
}
