//! Every format of the list: files that are read and written, and small files by hand.

use crate::support::dicom::{Build, EXAMPLE};
use crate::support::tiled;
use crate::support::{Kind, image};
use gpuimg::internals::formats::{FORMATS, Format, Options, PageSurvey, Reader, Reading, Writer};
use gpuimg::internals::image::metadata::{Diagnostics, Effect, Metadata};
use gpuimg::internals::image::{Depth, Image};
use gpuimg::internals::os::{Source, Target};
use std::collections::BTreeSet;
use std::fs;

/// The formats whose files are written: not those of folders, which `tests/zarr.rs` tests.
pub fn formats_of_files() -> impl Iterator<Item = &'static Format> {
    let written = FORMATS.iter().filter(|format| format.is_written());
    written.copied().filter(|format| !format.is_folder)
}

/// A file's first page, its metadata, and the sentences about it.
pub fn read(file: &[u8]) -> anyhow::Result<(Image, Metadata, Diagnostics)> {
    let (mut images, metadata, diagnostics) = read_pages(file)?;
    Ok((images.remove(0), metadata, diagnostics))
}

/// All pages of a file, the last one's metadata, and the sentences about all of them. Files of more
/// than a megapixel are refused.
pub fn read_pages(file: &[u8]) -> anyhow::Result<(Vec<Image>, Metadata, Diagnostics)> {
    let source = Source::memory(file.to_vec());
    let reading = Reading {
        max_pixels: 1 << 20,
        ..Reading::default()
    };
    let mut reader = Reader::open(&source, &reading)?;
    let (mut images, mut metadata) = (Vec::new(), Metadata::default());
    let mut diagnostics = Diagnostics::default();
    for index in 0..reader.pages().len() {
        reader.turn_to(index)?;
        images.push(reader.decode()?);
        metadata = reader.metadata(&mut diagnostics)?;
    }
    Ok((images, metadata, diagnostics))
}

/// The file that a format writes of pages with the same metadata.
pub fn written(
    format: &'static Format,
    pages: &[Image],
    metadata: &Metadata,
) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("out");
    let target = Target::create(&path, false)?;
    let surveys: Vec<PageSurvey> = pages.iter().map(|page| page.shape().into()).collect();
    let mut writer = Writer::new(format, &Options::default(), &target, &surveys)?;
    for page in pages {
        let (page, metadata) = (page.clone(), metadata.clone());
        writer.page(page, metadata, Effect::Numbers, &mut Diagnostics::default())?;
    }
    let length = writer.length();
    drop(writer);
    target.commit(length)?;
    let bytes = fs::read(&path)?;
    assert_eq!(bytes.len() as u64, length, "{}", format.id);
    Ok(bytes)
}

pub fn format(id: &str) -> &'static Format {
    let found = FORMATS.iter().find(|format| format.id == id);
    found.expect("a format of the list")
}

pub fn refused(file: &[u8], words: &str) {
    match read(file) {
        Ok((image, ..)) => panic!("{words:?}: {} was read", image.shape()),
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains(words), "{text:?} has no {words:?}");
        }
    }
}

/// A WebP of 5 × 4 pixels, from the image crate.
pub fn webp(channels: usize) -> Vec<u8> {
    let image = image(5, 4, channels, Depth::Eight, Kind::Noise);
    let colours = match channels {
        3 => image::ExtendedColorType::Rgb8,
        _ => image::ExtendedColorType::Rgba8,
    };
    let mut file = Vec::new();
    let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut file);
    encoder
        .encode(image.samples().as_bytes(), 5, 4, colours)
        .unwrap();
    file
}

/// HDF5 of h5py 3.16, for the oldest library: the dataset `/image` of 2 × 3 words with a sign, the most significant byte first, and a
/// text.
pub const SIGNED: &[u8] = include_bytes!("../files/signed.h5");

/// NeXus of h5py 3.16, for the newest library: the datasets `/entry/data/counts` of 2 × 5 × 7 words (i × 901 modulo 65536), in chunks
/// of 1 × 3 × 4 with gzip, shuffle and Fletcher-32, to which `default` and `signal` lead; and `/entry/data/mask` of ones.
pub const STACK: &[u8] = include_bytes!("../files/stack.nxs");

/// A JP2 of OpenJPEG and a JPEG XL of libjxl, both lossless, of the samples `RAMP`.
pub const JP2: &[u8] = include_bytes!("../files/ramp.jp2");
pub const JXL: &[u8] = include_bytes!("../files/ramp.jxl");

/// 5 × 4 samples of 16 bits: those from 7 on, in steps of 3276.
pub const RAMP: [u16; 20] = [
    7, 3283, 6559, 9835, 13111, 16387, 19663, 22939, 26215, 29491, 32767, 36043, 39319, 42595,
    45871, 49147, 52423, 55699, 58975, 62251,
];

/// At least one small file of every format of the list, with the format's id.
pub fn small_files() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for format in formats_of_files() {
        let can = format.capabilities;
        let channels = can.channels[can.channels.len() - 1];
        let depth = can.depths[can.depths.len() - 1];
        let page = image(5, 4, channels, depth, Kind::Noise);
        let file = written(format, &[page], &Metadata::default()).unwrap();
        files.push((format.id.into(), file));
    }
    for (id, file) in [
        ("webp", webp(3)),
        ("webp-alpha", webp(4)),
        ("gif", gif(true, 0, 3)),
        (
            "tga",
            b"\0\0\x0A\0\0\0\0\0\0\0\0\0\x03\0\x02\0\x18\x20\x83\x01\x02\x03\x01abcdef".to_vec(),
        ),
        (
            "qoi",
            b"qoif\0\0\0\x03\0\0\0\x02\x03\0\xFE\x0a\x14\x1e\xC4\0\0\0\0\0\0\0\x01".to_vec(),
        ),
        ("nrrd", nrrd("type: ushort\nendian: big\n", b"abcdefghijkl")),
        (
            "metaimage",
            metaimage("ElementType = MET_SHORT\n", b"abcdefghijkl"),
        ),
        ("fits-tiled", tiled::rice_words().file()),
        ("nifti", nifti(false)),
        ("nifti-gzip", nifti(true)),
        ("hdf5", SIGNED.to_vec()),
        ("hdf5-chunks", STACK.to_vec()),
        ("jpegls", EXAMPLE.to_vec()),
        ("jpeg2000", JP2.to_vec()),
        ("jpegxl", JXL.to_vec()),
        ("dicom", small_dicom()),
        ("dicom-lossless", small_lossless()),
        ("exr", small_exr()),
        ("hdr", small_hdr()),
        ("pnm-ascii", b"P3 2 1 300 1 2 300 4 5 6".to_vec()),
        ("pnm-bitmap", b"P4 9 2 \x01\x02\x03\x04".to_vec()),
    ] {
        files.push((id.into(), file));
    }
    let ids: BTreeSet<&str> = files
        .iter()
        .map(|(id, _)| id.split('-').next().unwrap())
        .collect();
    // A store is no file.
    let kinds_of_files = FORMATS.iter().filter(|format| !format.is_folder);
    let list: BTreeSet<&str> = kinds_of_files.map(|format| format.id).collect();
    assert_eq!(ids, list, "a small file of every format");
    files
}

pub fn npy(version: u8, dictionary: &str, samples: &[u8]) -> Vec<u8> {
    let length = dictionary.len() as u32;
    let length = match version {
        1 => (length as u16).to_le_bytes().to_vec(),
        _ => length.to_le_bytes().to_vec(),
    };
    [
        b"\x93NUMPY",
        &[version, 0][..],
        &length,
        dictionary.as_bytes(),
        samples,
    ]
    .concat()
}

/// A dictionary as NumPy writes it.
pub fn dictionary(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n")
}

/// Three bits an index, the codes written out by hand: clear, the six indices, end.
pub fn gif(transparent: bool, left: u8, width: u8) -> Vec<u8> {
    let mut file = b"GIF89a\x03\0\x02\0\xF0\0\0".to_vec();
    file.extend([10, 20, 30, 40, 50, 60]);
    if transparent {
        file.extend(b"!\xF9\x04\x01\0\0\x01\0");
    }
    file.extend([b',', left, 0, 0, 0, width, 0, 2, 0, 0]);
    // Codes begin with 3 bits; clear (4) before every two keeps them at 3: 4 0 1 4 0 1 4 0 1 5.
    let pairs = usize::from(width);
    let mut codes: Vec<u8> = [4, 0, 1].repeat(pairs);
    codes.push(5);
    let mut packed = vec![0; (3 * codes.len()).div_ceil(8)];
    for (i, code) in codes.iter().enumerate() {
        for bit in 0..3 {
            let at = 3 * i + bit;
            packed[at / 8] |= (code >> bit & 1) << (at % 8);
        }
    }
    file.extend([2, packed.len() as u8]);
    file.extend(packed);
    file.extend(b"\0;");
    file
}

/// A NIfTI file of version 1 with 3 × 2 × 2 words, compressed with gzip or not.
pub fn nifti(compressed: bool) -> Vec<u8> {
    let mut file = vec![0; 352];
    let mut set = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, &348i32.to_le_bytes());
    for (axis, length) in [3i16, 3, 2, 2].into_iter().enumerate() {
        set(40 + 2 * axis, &length.to_le_bytes());
    }
    set(70, &4i16.to_le_bytes());
    set(72, &16i16.to_le_bytes());
    for (axis, distance) in [1f32, 0.5, 0.25, 2.0].into_iter().enumerate() {
        set(76 + 4 * axis, &distance.to_le_bytes());
    }
    set(108, &352f32.to_le_bytes());
    set(123, &[2]);
    set(344, b"n+1\0");
    file.extend((-6..6i16).flat_map(i16::to_le_bytes));
    if !compressed {
        return file;
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &file).unwrap();
    gzip.finish().unwrap()
}

/// An NRRD of 3 × 2 pixels with more fields.
pub fn nrrd(fields: &str, samples: &[u8]) -> Vec<u8> {
    let head =
        format!("NRRD0004\n# made by hand\ndimension: 2\nsizes: 3 2\nencoding: raw\n{fields}\n");
    [head.as_bytes(), samples].concat()
}

/// A MetaImage of 3 × 2 pixels with more fields.
pub fn metaimage(fields: &str, samples: &[u8]) -> Vec<u8> {
    let head =
        format!("ObjectType = Image\nNDims = 2\nDimSize = 3 2\n{fields}ElementDataFile = LOCAL\n");
    [head.as_bytes(), samples].concat()
}

pub fn attribute(file: &mut Vec<u8>, name: &str, kind: &str, value: &[u8]) {
    file.extend(format!("{name}\0{kind}\0").bytes());
    file.extend((value.len() as i32).to_le_bytes());
    file.extend(value);
}

/// Types of channels: 0 of 32-bit integers, 1 of half precision, 2 of floating point.
const BYTES: [usize; 3] = [4, 2, 4];

/// An uncompressed file of scan lines, as the format's description has it. Each row of `rows` has all
/// samples of the first channel, then those of the second.
pub fn exr(width: i32, channels: &[(&str, usize)], rows: &[&[u8]]) -> Vec<u8> {
    let mut file = b"\x76\x2f\x31\x01\x02\0\0\0".to_vec();
    let mut list = Vec::new();
    for &(name, kind) in channels {
        list.extend(format!("{name}\0").bytes());
        list.extend((kind as i32).to_le_bytes());
        list.extend([0; 4]);
        list.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    }
    list.push(0);
    let mut window = vec![0; 8];
    window.extend((width - 1).to_le_bytes());
    window.extend((rows.len() as i32 - 1).to_le_bytes());
    attribute(&mut file, "channels", "chlist", &list);
    attribute(&mut file, "compression", "compression", &[0]);
    attribute(&mut file, "dataWindow", "box2i", &window);
    attribute(&mut file, "displayWindow", "box2i", &window);
    attribute(&mut file, "lineOrder", "lineOrder", &[0]);
    attribute(&mut file, "pixelAspectRatio", "float", &1f32.to_le_bytes());
    attribute(&mut file, "screenWindowCenter", "v2f", &[0; 8]);
    attribute(&mut file, "screenWindowWidth", "float", &1f32.to_le_bytes());
    file.push(0);
    let row: usize = channels
        .iter()
        .map(|(_, kind)| width as usize * BYTES[*kind])
        .sum();
    let start = file.len() + 8 * rows.len();
    for y in 0..rows.len() {
        file.extend(((start + y * (8 + row)) as u64).to_le_bytes());
    }
    for (y, bytes) in rows.iter().enumerate() {
        assert_eq!(bytes.len(), row);
        file.extend((y as i32).to_le_bytes());
        file.extend((row as i32).to_le_bytes());
        file.extend(*bytes);
    }
    file
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A file of 3 × 2 grey pixels for the hostile tests.
pub fn small_exr() -> Vec<u8> {
    let rows = [floats(&[0.5, -1.0, 2.0]), floats(&[3.0, 4e9, 1e-9])];
    exr(3, &[("Y", 2)], &[&rows[0], &rows[1]])
}

/// A file of Radiance HDR with these bytes after the header.
pub fn hdr(lines: &str, sides: &str, rows: &[u8]) -> Vec<u8> {
    let header = format!("#?RADIANCE\n# by hand\nFORMAT=32-bit_rle_rgbe\n{lines}\n{sides}\n");
    [header.as_bytes(), rows].concat()
}

/// A file of 3 × 2 pixels for the hostile tests.
pub fn small_hdr() -> Vec<u8> {
    let rows = b"\x80\x40\x20\x81\x01\x02\x03\x80\0\0\0\0\x80\0\0\x01\x01\x01\x01\x02";
    hdr("", "-Y 2 +X 3", rows)
}

/// 3 × 2 pixels for the hostile tests.
pub fn small_dicom() -> Vec<u8> {
    Build::default().words(&[0, 1, 2, 300, 4000, 65535])
}

pub const FIRST_ORDER: &str = "1.2.840.10008.1.2.4.70";

/// 3 × 2 samples of 8 bits by hand: codes 00, 01 and 10 for differences of 0, 1 and 2 bits. The differences
/// 0, 1, −2 and 2, 0, 1 are 00 01·1 10·01 10·10 00 01·1; ones up to the byte make 0xFF, after which 0 is stuffed.
pub const BY_HAND: &[u8] = b"\xFF\xD8\xFF\xC3\0\x0B\x08\0\x02\0\x03\x01\x01\x11\0\
    \xFF\xC4\0\x16\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\
    \xFF\xDA\0\x08\x01\x01\0\x01\0\0\x1C\xD0\xFF\0\xFF\xD9";

pub fn eight_bits_of_lossless() -> Build {
    Build {
        syntax: FIRST_ORDER,
        bits: (8, 8),
        ..Build::default()
    }
}

/// A small file for the hostile tests.
pub fn small_lossless() -> Vec<u8> {
    eight_bits_of_lossless().file(b"", Some(&[b"", BY_HAND]))
}
