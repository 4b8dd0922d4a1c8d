//! The PNG decoder against plainly written files, the png crate, and damage of every kind.

use crate::support::png::{
    Plain, channels, chunk, idats, index, kinds, segments, sync_flushed, zlib,
};
use crate::support::{folder, run};
use gpuimg::internals::formats::png::decode;
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::image::metadata::Diagnostics;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::os::Source;
use rayon::ThreadPool;
use std::sync::LazyLock;

/// Widths and heights that leave every kind of rest in blocks of 2 to 16.
const SIZES: [(usize, usize); 12] = [
    (1, 1),
    (1, 37),
    (41, 1),
    (2, 2),
    (3, 5),
    (7, 9),
    (8, 8),
    (15, 17),
    (16, 33),
    (31, 16),
    (61, 19),
    (129, 67),
];

/// Decodes on one thread and on three: the image is the same, or the error.
fn open(file: &[u8]) -> anyhow::Result<Image> {
    static POOLS: LazyLock<[ThreadPool; 2]> = LazyLock::new(|| {
        [1, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().expect("threads")
        })
    });
    let [one, three] = POOLS
        .each_ref()
        .map(|pool| pool.install(|| decode(&Source::memory(file.to_vec()))));
    match (&one, &three) {
        (Ok(one), Ok(three)) => assert!(one == three, "one thread gives another image"),
        (Err(one), Err(three)) => assert_eq!(format!("{one:#}"), format!("{three:#}")),
        (one, three) => panic!("one thread: {one:?}; three: {three:?}"),
    }
    one
}

fn why(file: &[u8]) -> String {
    format!("{:#}", open(file).expect_err("it is damaged"))
}

fn palette() -> Vec<u8> {
    (0..=255u8)
        .flat_map(|i| [i, i ^ 0x55, i.reverse_bits()])
        .collect()
}

fn with_palette(mut plain: Plain) -> Plain {
    if plain.colour == 3 {
        let entries = 3 << plain.bits;
        plain.before.push((*b"PLTE", palette()[..entries].to_vec()));
    }
    plain
}

/// What the specification says a file of these samples shows, from first principles.
fn expected(plain: &Plain) -> Image {
    let shape = Shape {
        width: plain.width,
        height: plain.height,
        channels: if plain.colour == 3 {
            3
        } else {
            plain.channels()
        },
        depth: if plain.bits == 16 {
            Depth::Sixteen
        } else {
            Depth::Eight
        },
    };
    let scale = if plain.bits < 8 {
        255 / ((1 << plain.bits) - 1)
    } else {
        1
    };
    let samples = match (plain.bits, plain.colour) {
        (16, _) => plain.samples.clone().into(),
        (_, 3) => {
            let entry = |&i: &u16| palette()[3 * usize::from(i)..][..3].to_vec();
            plain
                .samples
                .iter()
                .flat_map(entry)
                .collect::<Vec<u8>>()
                .into()
        }
        _ => {
            let scaled = |&s: &u16| (s * scale) as u8;
            plain.samples.iter().map(scaled).collect::<Vec<u8>>().into()
        }
    };
    Image::new(shape, samples)
}

/// What the png crate makes of a file.
fn oracle(file: &[u8]) -> Image {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0xA5; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let samples = match info.bit_depth {
        png::BitDepth::Sixteen => Samples::U16(
            bytes
                .chunks_exact(2)
                .map(|b| u16::from_be_bytes([b[0], b[1]]))
                .collect(),
        ),
        _ => bytes.into(),
    };
    let shape = Shape {
        width: info.width as usize,
        height: info.height as usize,
        channels: info.color_type.samples(),
        depth: match samples {
            Samples::U8(_) => Depth::Eight,
            _ => Depth::Sixteen,
        },
    };
    Image::new(shape, samples)
}

#[test]
fn every_kind_filter_and_size() {
    let mut cases = 0;
    for (colour, bits) in kinds() {
        for (width, height) in SIZES {
            for interlaced in [false, true] {
                let mut plain = with_palette(Plain::noisy(width, height, bits, colour));
                plain.interlaced = interlaced;
                for filter in 0..=5 {
                    // 5 stands for a mixture.
                    let of = |y: usize| {
                        if filter == 5 {
                            (y * 7 % 5) as u8
                        } else {
                            filter
                        }
                    };
                    let file = plain.file([&zlib(&plain.scanlines(of), 6)[..]]);
                    let image = open(&file).unwrap();
                    let case = format!("{colour}/{bits} {width}×{height} {interlaced} {filter}");
                    assert_eq!(image.shape(), expected(&plain).shape(), "{case}");
                    assert!(image == expected(&plain), "{case}");
                    assert!(image == oracle(&file), "{case}");
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 15 * SIZES.len() * 2 * 6);
}

/// Large enough for a second thread, and for inflating in parts.
#[test]
fn large_interlaced_images() {
    for (colour, bits) in [(0, 16), (2, 8), (6, 16)] {
        let mut plain = Plain::noisy(1201, 1003, bits, colour);
        plain.interlaced = true;
        let file = plain.file([&zlib(&plain.scanlines(|y| (y * 7 % 5) as u8), 6)[..]]);
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let image = pool.unwrap().install(|| open(&file).unwrap());
            assert!(
                image == expected(&plain),
                "{colour}/{bits}, {threads} threads"
            );
        }
    }
}

#[test]
fn six_pixels_by_hand() {
    // 3×2, 16-bit grey. Row 0 by Sub, row 1 by Paeth.
    let plain = Plain {
        width: 3,
        height: 2,
        bits: 16,
        colour: 0,
        interlaced: false,
        samples: vec![],
        before: vec![],
    };
    let scanlines = [
        1, 0x01, 0x02, 0x01, 0x01, 0xFF, 0xFE, // 0x0102, 0x0203, 0x0101
        4, 0x00, 0x01, 0x01, 0x00, 0x00, 0x10, // 0x0103, then a=0103 b=0203 c=0102: b; …
    ];
    let image = open(&plain.file([&zlib(&scanlines, 6)[..]])).unwrap();
    assert_eq!(
        image.samples(),
        &Samples::from(vec![0x0102u16, 0x0203, 0x0101, 0x0103, 0x0303, 0x0211])
    );
}

#[test]
fn transparency_becomes_alpha() {
    let mut grey = Plain::noisy(9, 5, 16, 0);
    grey.samples[7] = 0x1234;
    grey.before.push((*b"tRNS", vec![0x12, 0x34]));
    let image = open(&grey.encoded(2)).unwrap();
    let Samples::U16(samples) = image.samples() else {
        panic!("16 bits stay 16")
    };
    assert_eq!(image.shape().channels, 2);
    for (pixel, &grey) in samples.chunks(2).zip(&grey.samples) {
        assert_eq!(pixel, [grey, if grey == 0x1234 { 0 } else { 65535 }]);
    }

    let mut rgb = Plain::noisy(9, 5, 8, 2);
    rgb.samples[6..9].copy_from_slice(&[1, 2, 3]);
    rgb.before.push((*b"tRNS", vec![0, 1, 0, 2, 0, 3]));
    let image = open(&rgb.encoded(1)).unwrap();
    assert_eq!(image.shape().channels, 4);
    for (pixel, rgb) in image
        .samples()
        .as_bytes()
        .chunks(4)
        .zip(rgb.samples.chunks(3))
    {
        assert_eq!(
            pixel[..3].iter().map(|&s| s.into()).collect::<Vec<u16>>(),
            rgb
        );
        assert_eq!(pixel[3], if rgb == [1, 2, 3] { 0 } else { 255 });
    }

    let mut mapped = with_palette(Plain::noisy(9, 5, 4, 3));
    mapped.before.push((*b"tRNS", vec![0, 100, 200]));
    let image = open(&mapped.encoded(0)).unwrap();
    assert_eq!(image.shape().channels, 4);
    for (pixel, &index) in image.samples().as_bytes().chunks(4).zip(&mapped.samples) {
        assert_eq!(pixel[..3], palette()[3 * usize::from(index)..][..3]);
        assert_eq!(
            pixel[3],
            *[0, 100, 200].get(usize::from(index)).unwrap_or(&255)
        );
    }
}

#[test]
fn image_data_may_be_cut_anywhere() {
    let plain = Plain::noisy(61, 19, 16, 2);
    let stream = zlib(&plain.scanlines(|_| 4), 6);
    for size in [1, 2, 3, 7, 100, 4096] {
        assert!(
            open(&plain.file(stream.chunks(size))).unwrap() == expected(&plain),
            "{size}"
        );
    }
    let empty: &[u8] = &[];
    assert!(
        open(&plain.file([empty, &stream[..9], empty, &stream[9..], empty])).unwrap()
            == expected(&plain)
    );
}

/// Small files of both paths of the decoder, with an ancillary chunk each.
fn small_files() -> Vec<(Plain, Vec<u8>)> {
    let mut files = Vec::new();
    for (colour, bits, interlaced) in [(0, 16, false), (2, 8, false), (0, 16, true), (3, 4, false)]
    {
        let mut plain = with_palette(Plain::noisy(5, 4, bits, colour));
        plain.interlaced = interlaced;
        plain.before.push((*b"tEXt", b"Title\0small".to_vec()));
        let file = plain.encoded(4);
        files.push((plain, file));
    }
    files
}

#[test]
fn cut_short_is_an_error() {
    for (plain, file) in small_files() {
        assert!(open(&file).unwrap() == expected(&plain));
        for len in 0..file.len() {
            let error = why(&file[..len]);
            let told = if len < 8 {
                "not a PNG"
            } else {
                "truncated at byte"
            };
            assert!(error.starts_with(told), "{len}: {error}");
        }
    }
}

/// But for one in a text, of which a warning tells.
#[test]
fn a_flipped_byte_is_an_error() {
    for (plain, file) in small_files() {
        let text = file.windows(4).position(|four| four == b"tEXt").unwrap() + 4;
        let text = text..text + b"Title\0small".len() + 4;
        for at in 0..file.len() {
            for mask in [0x01, 0x20, 0x80, 0xFF] {
                let mut damaged = file.clone();
                damaged[at] ^= mask;
                match open(&damaged) {
                    Ok(image) => {
                        assert!(text.contains(&at) && image == expected(&plain), "byte {at}")
                    }
                    Err(_) => assert!(!text.contains(&at), "byte {at} ^ {mask:#x}"),
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_the_stream_is_an_error_or_harmless() {
    // CRCs are right here, so that the deflate stream itself is met with every kind of damage.
    for (colour, bits, interlaced) in [(0, 16, false), (2, 8, false), (0, 16, true), (3, 4, false)]
    {
        let mut plain = with_palette(Plain::noisy(7, 5, bits, colour));
        plain.interlaced = interlaced;
        for level in [0, 1, 9] {
            let stream = zlib(&plain.scanlines(|y| (y % 5) as u8), level);
            let mut refused = 0;
            for bit in 0..stream.len() * 8 {
                let mut damaged = stream.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                match open(&plain.file([&damaged[..]])) {
                    Err(_) => refused += 1,
                    Ok(image) => assert!(image == expected(&plain), "level {level}, bit {bit}"),
                }
            }
            assert!(
                refused > stream.len() * 8 - 16,
                "{refused} of {}",
                stream.len() * 8
            );
            // The stream cut short, in a file that is whole.
            for len in 0..stream.len() {
                assert!(
                    open(&plain.file([&stream[..len]])).is_err(),
                    "level {level}, {len}"
                );
            }
        }
    }
}

#[test]
fn lies_are_told_clearly() {
    let plain = Plain::noisy(5, 4, 16, 0);
    let stream = zlib(&plain.scanlines(|_| 2), 6);
    let good = plain.file([&stream[..]]);

    assert_eq!(why(b""), "not a PNG");
    assert_eq!(why(b"just some text, long enough"), "not a PNG");

    let mut crc = good.clone();
    crc[41] ^= 1;
    assert_eq!(why(&crc), "bad CRC in chunk IDAT at byte 33");

    let mut long = good.clone();
    long[33..37].copy_from_slice(&1000u32.to_be_bytes());
    assert!(
        why(&long).starts_with("truncated at byte"),
        "{}",
        why(&long)
    );

    let mut vast = plain.clone();
    (vast.width, vast.height) = (1_000_000_000, 1_000_000_000);
    assert!(why(&vast.file([&stream[..]])).contains("more than a file of"));
    (vast.width, vast.height) = (usize::MAX >> 32, 1);
    assert!(why(&vast.file([&stream[..]])).contains("impossible size"));
    (vast.width, vast.height) = (0, 4);
    assert!(why(&vast.file([&stream[..]])).contains("impossible size"));

    // A row too few and a row too many in the stream.
    let mut other = plain.clone();
    other.height = 5;
    assert!(open(&other.file([&stream[..]])).is_err());
    other.height = 3;
    assert!(open(&other.file([&stream[..]])).is_err());

    let mut adler = stream.clone();
    *adler.last_mut().unwrap() ^= 1;
    let error = why(&plain.file([&adler[..]]));
    assert!(error.contains("Adler-32"), "{error}");

    let mut filter = plain.scanlines(|_| 0);
    filter[11 * 2] = 9;
    let error = why(&plain.file([&zlib(&filter, 6)[..]]));
    assert!(
        error.contains("filter type 9") && error.contains("row 2"),
        "{error}"
    );

    let mut unknown = plain.clone();
    unknown.before.push((*b"ABCD", vec![1, 2, 3]));
    assert!(why(&unknown.file([&stream[..]])).contains("chunk ABCD at byte 33"));

    let no_data = plain.file([]);
    assert!(why(&no_data).contains("no image data"));

    let mut apart = plain.file([&stream[..20]]);
    apart.truncate(apart.len() - 12);
    chunk(&mut apart, b"tEXt", b"x\0y");
    chunk(&mut apart, b"IDAT", &stream[20..]);
    chunk(&mut apart, b"IEND", &[]);
    assert!(open(&apart).is_err());

    for (bits, colour) in [(3, 0), (16, 3), (4, 2), (8, 5), (8, 7)] {
        let mut odd = good.clone();
        odd.truncate(8);
        let mut header = [0; 13];
        (header[3], header[7], header[8], header[9]) = (5, 4, bits, colour);
        chunk(&mut odd, b"IHDR", &header);
        assert!(why(&odd).contains("colour type"), "{}", why(&odd));
    }
    assert_eq!(channels(6), 4);
}

/// The pieces of a file in segments of `rows` rows.
struct Segmented {
    plain: Plain,
    rows: usize,
    scanlines: Vec<u8>,
    segments: Vec<Vec<u8>>,
}

impl Segmented {
    /// Segments whose rows are filtered by `filter` of their place in the segment.
    fn new(plain: Plain, rows: usize, reset: bool, filter: impl Fn(usize) -> u8) -> Segmented {
        let scanlines = plain.scanlines(|y| filter(y % rows));
        let row = scanlines.len() / plain.height;
        let segments = segments(&scanlines, rows * row, reset);
        Segmented {
            plain,
            rows,
            scanlines,
            segments,
        }
    }

    fn file(&self) -> Vec<u8> {
        self.file_with(index(self.rows, &self.segments), &self.idats())
    }

    fn idats(&self) -> Vec<Vec<u8>> {
        idats(&self.segments, &self.scanlines)
    }

    fn file_with(&self, index: ([u8; 4], Vec<u8>), idats: &[Vec<u8>]) -> Vec<u8> {
        let mut plain = self.plain.clone();
        plain.before.push(index);
        plain.file(idats.iter().map(Vec::as_slice))
    }

    fn is_right(&self, file: &[u8]) -> bool {
        open(file).unwrap() == expected(&self.plain)
    }
}

#[test]
fn segments_of_every_kind() {
    for (colour, bits) in kinds().filter(|&(colour, bits)| colour != 3 && bits >= 8) {
        for (width, height, rows) in [(1, 2, 1), (7, 9, 4), (61, 40, 10), (129, 67, 33)] {
            for filter in 0..=4 {
                let plain = Plain::noisy(width, height, bits, colour);
                let of = |y: usize| if y == 0 { filter % 2 } else { filter };
                let parts = Segmented::new(plain, rows, true, of);
                let file = parts.file();
                assert!(
                    parts.is_right(&file),
                    "{colour}/{bits} {width}×{height} {filter}"
                );
                assert!(oracle(&file) == expected(&parts.plain));
            }
        }
    }
}

#[test]
fn what_is_not_in_segments_is_read_as_one_stream() {
    let plain = || Plain::noisy(40, 30, 16, 0);
    // References to rows and bytes of the segment before.
    let above = Segmented::new(plain(), 10, true, |_| 2);
    assert!(above.is_right(&above.file()));
    let paeth = Segmented::new(plain(), 10, true, |_| 4);
    assert!(paeth.is_right(&paeth.file()));
    let mut even = plain();
    even.samples.fill(300);
    let behind = Segmented::new(even, 10, false, |_| 0);
    assert!(behind.is_right(&behind.file()));

    // An index that lies about a file that is right.
    let good = Segmented::new(plain(), 10, true, |y| u8::from(y > 0) + 1);
    assert!(good.is_right(&good.file()));
    let truth = index(10, &good.segments).1;
    assert_eq!(truth.len(), 5 + 3 * 4);
    let mut lies = vec![
        Vec::new(),
        truth[..4].to_vec(),
        truth[..16].to_vec(),
        truth[..13].to_vec(),
    ];
    lies.push([&truth[..], &[0; 4]].concat());
    lies.push([&truth[..5], &truth[9..], &truth[5..9]].concat());
    for at in 0..truth.len() {
        for mask in [1, 0x80, 0xFF] {
            let mut lie = truth.clone();
            lie[at] ^= mask;
            lies.push(lie);
        }
    }
    for (i, lie) in lies.into_iter().enumerate() {
        assert!(
            good.is_right(&good.file_with((*b"gpIS", lie), &good.idats())),
            "lie {i}"
        );
    }

    // Image data cut elsewhere than the index says, or with an IDAT more.
    let all = good.idats().concat();
    for cut in [1, 2, 100, all.len() - 3] {
        let cuts = [all[..cut].to_vec(), all[cut..].to_vec()];
        assert!(good.is_right(&good.file_with((*b"gpIS", truth.clone()), &cuts)));
    }
    let mut more = good.idats();
    more.push(Vec::new());
    assert!(good.is_right(&good.file_with((*b"gpIS", truth.clone()), &more)));
}

#[test]
fn damaged_segments_are_errors() {
    let good = Segmented::new(Plain::noisy(6, 6, 16, 0), 2, true, |y| u8::from(y > 0) + 1);
    let file = good.file();
    assert!(good.is_right(&file));
    for len in 0..file.len() {
        assert!(open(&file[..len]).is_err(), "{len}");
    }
    for at in 0..file.len() {
        for mask in [0x01, 0x20, 0x80, 0xFF] {
            let mut damaged = file.clone();
            damaged[at] ^= mask;
            assert!(open(&damaged).is_err(), "byte {at} ^ {mask:#x}");
        }
    }
    // With right CRCs: every bit of every segment, and of the Adler-32.
    for i in 0..3 {
        for bit in 0..good.idats()[i].len() * 8 {
            let mut idats = good.idats();
            idats[i][bit / 8] ^= 1 << (bit % 8);
            let file = good.file_with(index(2, &good.segments), &idats);
            if let Ok(image) = open(&file) {
                assert!(image == expected(&good.plain), "segment {i}, bit {bit}");
            }
        }
    }
    let mut adler = good.idats();
    *adler[2].last_mut().unwrap() ^= 1;
    let error = why(&good.file_with(index(2, &good.segments), &adler));
    assert!(error.contains("Adler-32"), "{error}");
    // Segments that change places are whole, each by itself, but not the image.
    let mut swapped = good.segments.clone();
    swapped.swap(0, 1);
    let file = good.file_with(index(2, &swapped), &idats(&swapped, &good.scanlines));
    assert!(why(&file).contains("Adler-32"));
}

#[test]
fn rows_of_all_filters_at_every_width() {
    for (colour, bits) in kinds().filter(|&(colour, bits)| colour != 3 && bits >= 8) {
        for width in 1..=70 {
            let plain = Plain::noisy(width, 53, bits, colour);
            let file = plain.file([&zlib(&plain.scanlines(|y| (y * y / 3 % 5) as u8), 1)[..]]);
            assert!(
                open(&file).unwrap() == expected(&plain),
                "{colour}/{bits} {width}"
            );
        }
    }
}

#[test]
fn large_streams_of_any_make_up() {
    // Large enough to be inflated from several places at once, where cores allow.
    let plain = Plain::noisy(1700, 1700, 16, 0);
    let scanlines = plain.scanlines(|y| (y / 5 % 5) as u8);
    let streams = [
        zlib(&scanlines, 0),
        zlib(&scanlines, 1),
        zlib(&scanlines, 6),
        // Compressed blocks, then stored ones, then compressed ones again.
        joined_streams(&scanlines, &[(2_000_000, 6), (300_000, 0), (usize::MAX, 1)]),
        // Stored ones where the parts start, compressed ones between.
        joined_streams(&scanlines, &[(150_000, 1); 40]),
        joined_streams(
            &scanlines,
            &[(700_000, 0), (700_000, 6), (700_000, 0), (usize::MAX, 9)],
        ),
    ];
    for (i, stream) in streams.iter().enumerate() {
        for size in [8192, usize::MAX] {
            assert!(
                open(&plain.file(stream.chunks(size))).unwrap() == expected(&plain),
                "{i}"
            );
        }
    }
    // Damage in the middle, with right CRCs, is found; so is a stream that ends too early or late.
    for at in [5, 700_000, 1_500_000, 2_500_000] {
        let mut damaged = streams[2].clone();
        damaged[at] ^= 4;
        assert!(open(&plain.file([&damaged[..]])).is_err(), "byte {at}");
        assert!(
            open(&plain.file([&streams[2][..at]])).is_err(),
            "{at} bytes"
        );
    }
    for height in [1699, 1701] {
        let mut other = plain.clone();
        other.height = height;
        assert!(
            open(&other.file([&streams[2][..]])).is_err(),
            "{height} rows"
        );
    }
}

/// One zlib stream of the bytes, so many of them at a level, then so many at another.
fn joined_streams(bytes: &[u8], levels: &[(usize, u32)]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut rest = bytes;
    for &(count, level) in levels {
        let (part, later) = rest.split_at(count.min(rest.len()));
        if !part.is_empty() {
            stream.extend(&sync_flushed(part, level));
        }
        rest = later;
    }
    assert!(rest.is_empty());
    stream.extend([1, 0, 0, 0xFF, 0xFF]);
    stream.extend(simd_adler32::adler32(&bytes).to_be_bytes());
    stream
}

/// A zlib stream of one block with the fixed code: literals below 144, and matches of 10 bytes from 8 bytes before.
fn one_fixed_block(bytes: &[u8]) -> Vec<u8> {
    let (mut stream, mut waiting, mut count) = (vec![0x78, 0x01], 0u64, 0u32);
    let mut put = |bits: u32, len: u32| {
        waiting |= u64::from(bits) << count;
        count += len;
        while count >= 8 {
            stream.push(waiting as u8);
            waiting >>= 8;
            count -= 8;
        }
    };
    // A code word begins with its highest bit.
    let word = |word: u32, len: u32| word.reverse_bits() >> (32 - len);
    put(0b011, 3);
    let mut at = 0;
    while at < bytes.len() {
        if at >= 8 && bytes[at..].starts_with(&bytes[at - 8..at]) && at + 10 <= bytes.len() {
            // Length 10 is symbol 264; distance 8 is symbol 5 with the extra bit 1.
            assert_eq!(bytes[at..at + 10], bytes[at - 8..at + 2]);
            put(word(8, 7), 7);
            put(word(5, 5), 5);
            put(1, 1);
            at += 10;
        } else {
            assert!(bytes[at] < 144);
            put(word(0x30 + u32::from(bytes[at]), 8), 8);
            at += 1;
        }
    }
    put(0, 7);
    put(0, 7);
    stream.extend(simd_adler32::adler32(&bytes).to_be_bytes());
    stream
}

#[test]
fn a_fast_method_that_fails_is_noted_with_verbose() {
    // An index of other segments, in a file whose stream is right.
    let good = Segmented::new(Plain::noisy(40, 30, 16, 0), 10, true, |_| 0);
    let mut lie = index(10, &good.segments);
    lie.1.swap(8, 12);
    let wrong_index = good.file_with(lie, &good.idats());

    // A single block, which parts of a stream cannot share.
    let mut plain = Plain::noisy(2015, 2200, 8, 0);
    let mut state = 1u32;
    for row in plain.samples.chunks_exact_mut(2015) {
        // With the filter byte 0, groups of eight literals and their repetition.
        let mut group = [0u16; 8];
        for (x, sample) in (1..).zip(row) {
            if x % 18 < 8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                group[x % 18] = (state >> 25) as u16;
            }
            if x % 18 == 0 {
                group[0] = 0;
            }
            *sample = group[x % 18 % 8];
        }
    }
    let one_block = plain.file([&one_fixed_block(&plain.scanlines(|_| 0))[..]]);
    assert!(open(&one_block).unwrap() == expected(&plain));

    let files: [(&str, &[u8], Option<&str>); 3] = [
        ("good.png", &good.file(), None),
        (
            "index.png",
            &wrong_index,
            Some("decoded without its index of segments, because decoding by the index failed: "),
        ),
        (
            "block.png",
            &one_block,
            Some("inflated on one thread, because inflating on several threads failed: "),
        ),
    ];
    let root = folder(&files.map(|(name, file, _)| (name, file)));
    for (name, _, note) in files {
        for verbose in [false, true] {
            let mut args = vec![
                "rotate",
                "180",
                name,
                "out.png",
                "--device",
                "cpu",
                "--overwrite",
            ];
            args.extend(verbose.then_some("-v"));
            let done = run(root.path(), &args, &[("RAYON_NUM_THREADS", "2")]);
            assert_eq!(done.code, 0, "{}", done.stderr);
            let failed = done.stderr.contains(", because ") && done.stderr.contains(" failed: ");
            assert_eq!(failed, verbose && note.is_some(), "{name}: {}", done.stderr);
            if let Some(note) = note.filter(|_| verbose) {
                assert_eq!(
                    done.stderr.matches(note).count(),
                    1,
                    "{name}: {}",
                    done.stderr
                );
            }
        }
    }
}

/// The facts of a file, whichever way its image data were found: the metadata, the messages about them, and the image.
#[derive(Debug, PartialEq)]
struct Found {
    metadata: String,
    messages: String,
    packed: Result<Vec<u8>, String>,
    image: Result<Image, String>,
}

fn found(file: &[u8], read_ahead: bool) -> Found {
    let source = Source::memory(file.to_vec());
    let mut reader = Reader::open(&source, &Reading::default()).expect("a header");
    if read_ahead {
        reader.read_ahead();
    }
    let mut diagnostics = Diagnostics::default();
    let metadata = reader.metadata(&mut diagnostics).expect("metadata");
    let packed = reader.packed();
    Found {
        metadata: format!("{metadata:?}"),
        messages: format!("{diagnostics:?}"),
        packed: (packed.map(|mut packed| packed.split().1.to_vec())).map_err(|why| why.to_string()),
        image: reader.decode().map_err(|error| format!("{error:#}")),
    }
}

/// Before a GPU decodes a page its data are read ahead, which must change nothing: chunks after many chunks of image data, chunks
/// between them, damage at every byte of a tail, and files that end early.
#[test]
fn a_page_that_was_read_ahead_is_the_same() {
    let plain = Plain::noisy(31, 40, 16, 0);
    let stream = zlib(&plain.scanlines(|y| (y % 5) as u8), 6);
    let file = plain.file(stream.chunks(37));
    let (body, end) = file.split_at(file.len() - 12);
    let mut texts = Vec::new();
    chunk(&mut texts, b"tEXt", b"Title\0after the image");
    chunk(&mut texts, b"tIME", &[7, 234, 11, 25, 12, 0, 0]);
    let tailed = [body, &texts, end].concat();
    let first_chunk_of_data = file.windows(4).position(|word| word == b"IDAT");
    let between = first_chunk_of_data.expect("image data") + 4 + 37 + 4;
    let split = [&tailed[..between], &texts, &tailed[between..]].concat();
    let mut files = vec![file.clone(), tailed.clone(), split];
    for at in tailed.len() - texts.len() - 70..tailed.len() {
        let mut damaged = tailed.clone();
        damaged[at] ^= 0x11;
        files.push(damaged);
        files.push(tailed[..at].to_vec());
    }
    let mut sound = 0;
    for (number, file) in files.iter().enumerate() {
        let before = found(file, false);
        assert_eq!(found(file, true), before, "file {number}");
        sound += usize::from(before.image.is_ok() && before.packed.is_ok());
    }
    assert!(sound >= 2 && sound < files.len() / 2, "{sound}");
}
