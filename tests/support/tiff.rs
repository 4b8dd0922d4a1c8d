//! A plain TIFF writer for the tests: any byte order, BigTIFF, strips or tiles, any compression
//! and predictor, any tag replaced. Works one sample at a time, as the specification describes it.

use gpuimg::internals::image::number::{bits, bits64};
use gpuimg::internals::image::{Depth, Image, Samples};

/// A file to write; a test changes the fields that it is about.
#[derive(Clone)]
pub struct Build {
    pub big_endian: bool,
    pub big_tiff: bool,
    /// Rows of a strip, or width and height of a tile.
    pub strip: usize,
    pub tile: Option<(usize, usize)>,
    /// The Compression tag: 1, 5, 8, 32773 or 50000; and what makes a zlib stream for 8.
    pub compression: u64,
    pub zlib: fn(&[u8]) -> Vec<u8>,
    pub predictor: bool,
    /// Whether the predictor is that of the bytes of floating point (3).
    pub bytewise: bool,
    /// Whether the last strip is padded to the length of the others.
    pub padded: bool,
    /// Tags that replace those of the image or are added to them: tag, type, values.
    pub tags: Vec<(u16, u16, Vec<u64>)>,
    /// Offset of a next directory.
    pub next: u64,
}

/// A zlib stream that libdeflate makes.
pub fn libdeflate<const LEVEL: i32>(raw: &[u8]) -> Vec<u8> {
    let level = libdeflater::CompressionLvl::new(LEVEL).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut packed = vec![0; compressor.zlib_compress_bound(raw.len())];
    let size = compressor.zlib_compress(raw, &mut packed).unwrap();
    packed.truncate(size);
    packed
}

impl Default for Build {
    fn default() -> Build {
        Build {
            big_endian: false,
            big_tiff: false,
            strip: usize::MAX,
            tile: None,
            compression: 1,
            zlib: libdeflate::<6>,
            predictor: false,
            bytewise: false,
            padded: false,
            tags: Vec::new(),
            next: 0,
        }
    }
}

impl Build {
    pub fn tag(mut self, tag: u16, kind: u16, values: &[u64]) -> Build {
        self.tags.push((tag, kind, values.to_vec()));
        self
    }

    fn put(&self, file: &mut Vec<u8>, number: u64, size: usize) {
        let bytes = number.to_le_bytes();
        if self.big_endian {
            file.extend(bytes[..size].iter().rev());
        } else {
            file.extend(&bytes[..size]);
        }
    }

    /// A sample, of floating point its bits; 0 outside the image.
    fn sample(image: &Image, x: usize, y: usize, channel: usize) -> u64 {
        let shape = image.shape();
        if x >= shape.width || y >= shape.height {
            return 0;
        }
        let i = (y * shape.width + x) * shape.channels + channel;
        match image.samples() {
            Samples::U8(samples) => samples[i].into(),
            Samples::U16(samples) => samples[i].into(),
            Samples::U32(samples) if shape.depth == Depth::Float => bits(samples[i]).into(),
            Samples::U32(samples) => samples[i].into(),
            Samples::U64(samples) => bits64(samples[i]),
        }
    }

    /// The packed bytes of the part of the image at (left, top).
    fn chunk(
        &self,
        image: &Image,
        left: usize,
        top: usize,
        width: usize,
        height: usize,
    ) -> Vec<u8> {
        let shape = image.shape();
        let mut raw = Vec::new();
        for y in top..top + height {
            if self.bytewise {
                raw.extend(Build::byte_row(image, left..left + width, y));
                continue;
            }
            for x in left..left + width {
                for channel in 0..shape.channels {
                    let mut sample = Build::sample(image, x, y, channel);
                    if self.predictor && x > left {
                        sample = sample.wrapping_sub(Build::sample(image, x - 1, y, channel));
                    }
                    self.put(&mut raw, sample, shape.depth.bytes());
                }
            }
        }
        match self.compression {
            5 => weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8)
                .encode(&raw)
                .unwrap(),
            8 => (self.zlib)(&raw),
            32773 => pack_bits(&raw),
            50000 => zstd::bulk::compress(&raw, 3).unwrap(),
            _ => raw,
        }
    }

    /// A row of predictor 3: the bytes of each weight together, the most significant ones first, and
    /// of each the difference from the one as many channels before.
    fn byte_row(image: &Image, columns: std::ops::Range<usize>, y: usize) -> Vec<u8> {
        let channels = image.shape().channels;
        let places = columns.flat_map(|x| (0..channels).map(move |channel| (x, channel)));
        let samples: Vec<u64> = places
            .map(|(x, channel)| Build::sample(image, x, y, channel))
            .collect();
        let bytes: Vec<u8> = (8 - image.shape().depth.bytes()..8)
            .flat_map(|weight| samples.iter().map(move |s| s.to_be_bytes()[weight]))
            .collect();
        let before = |i: usize| if i < channels { 0 } else { bytes[i - channels] };
        (0..bytes.len())
            .map(|i| bytes[i].wrapping_sub(before(i)))
            .collect()
    }

    /// A file of the shape of an image with this one strip, whatever its samples are.
    pub fn with_strip(&self, image: &Image, strip: &[u8]) -> Vec<u8> {
        self.with_strips(image, &[strip])
    }

    /// As `with_strip`, of several strips, or of planes of one strip each.
    pub fn with_strips(&self, image: &Image, strips: &[&[u8]]) -> Vec<u8> {
        let lengths: Vec<u64> = strips.iter().map(|strip| strip.len() as u64).collect();
        let build = |start: usize| {
            let ends = lengths.iter().scan(start as u64, |end, length| {
                *end += length;
                Some(*end)
            });
            let starts: Vec<u64> = ends.zip(&lengths).map(|(end, len)| end - len).collect();
            let build = self.clone().tag(273, 4, &starts);
            build.tag(279, 4, &lengths).file(image)
        };
        let head = build(build(0).len());
        [&head[..], &strips.concat()].concat()
    }

    pub fn file(&self, image: &Image) -> Vec<u8> {
        let shape = image.shape();
        let wide = if self.big_tiff { 8 } else { 4 };
        let (width, height) = self
            .tile
            .unwrap_or((shape.width, self.strip.min(shape.height)));
        let mut file = Vec::new();
        file.extend_from_slice(if self.big_endian { b"MM" } else { b"II" });
        if self.big_tiff {
            self.put(&mut file, 43, 2);
            self.put(&mut file, 8, 2);
            self.put(&mut file, 0, 2);
        } else {
            self.put(&mut file, 42, 2);
        }
        let pointer = file.len();
        self.put(&mut file, 0, wide);

        let (mut offsets, mut counts) = (Vec::new(), Vec::new());
        for top in (0..shape.height).step_by(height) {
            for left in (0..shape.width).step_by(width) {
                let rows = if self.tile.is_some() || self.padded {
                    height
                } else {
                    height.min(shape.height - top)
                };
                let packed = self.chunk(image, left, top, width, rows);
                offsets.push(file.len() as u64);
                counts.push(packed.len() as u64);
                file.extend(packed);
            }
        }
        if file.len() % 2 == 1 {
            file.push(0);
        }

        let bits = u64::from(shape.depth.bits());
        let list = if self.big_tiff { 16 } else { 4 };
        let mut fields = vec![
            (256, 3, vec![shape.width as u64]),
            (257, 4, vec![shape.height as u64]),
            (258, 3, vec![bits; shape.channels]),
            (259, 3, vec![self.compression]),
            (262, 3, vec![if shape.channels > 2 { 2 } else { 1 }]),
            (277, 3, vec![shape.channels as u64]),
        ];
        if self.tile.is_some() {
            fields.push((322, 3, vec![width as u64]));
            fields.push((323, 3, vec![height as u64]));
            fields.push((324, list, offsets));
            fields.push((325, list, counts));
        } else {
            fields.push((273, list, offsets));
            fields.push((278, 4, vec![height as u64]));
            fields.push((279, list, counts));
        }
        if self.predictor {
            fields.push((317, 3, vec![if self.bytewise { 3 } else { 2 }]));
        }
        if shape.has_alpha() {
            fields.push((338, 3, vec![2]));
        }
        for field in &self.tags {
            fields.retain(|old| old.0 != field.0);
            if !field.2.is_empty() {
                fields.push(field.clone());
            }
        }
        fields.sort_by_key(|field| field.0);

        let mut behind = Vec::new();
        let start = file.len();
        let mut directory = Vec::new();
        let count_size = if self.big_tiff { 8 } else { 2 };
        let behind_start = start + count_size + fields.len() * (4 + 2 * wide) + wide;
        self.put(&mut directory, fields.len() as u64, count_size);
        for (tag, kind, values) in &fields {
            let size =
                [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8][usize::from(*kind)];
            let mut bytes = Vec::new();
            for &value in values {
                self.put(&mut bytes, value, size);
            }
            self.put(&mut directory, (*tag).into(), 2);
            self.put(&mut directory, (*kind).into(), 2);
            self.put(&mut directory, values.len() as u64, wide);
            if bytes.len() <= wide {
                bytes.resize(wide, 0);
                directory.extend(bytes);
            } else {
                self.put(&mut directory, (behind_start + behind.len()) as u64, wide);
                behind.extend(bytes);
            }
        }
        self.put(&mut directory, self.next, wide);
        let mut here = Vec::new();
        self.put(&mut here, start as u64, wide);
        file[pointer..pointer + wide].copy_from_slice(&here);
        file.extend(directory);
        file.extend(behind);
        file
    }
}

/// PackBits: repeats runs of three and more equal bytes, copies the rest, and begins with a no-op.
fn pack_bits(raw: &[u8]) -> Vec<u8> {
    let run = |i: usize| {
        raw[i..]
            .iter()
            .take(128)
            .take_while(|&&byte| byte == raw[i])
            .count()
    };
    let mut packed = vec![128];
    let mut i = 0;
    while i < raw.len() {
        let repeated = run(i);
        if repeated >= 3 {
            packed.extend([(257 - repeated) as u8, raw[i]]);
            i += repeated;
        } else {
            let start = i;
            while i < raw.len() && i - start < 128 && run(i) < 3 {
                i += 1;
            }
            packed.push((i - start - 1) as u8);
            packed.extend(&raw[start..i]);
        }
    }
    packed
}
