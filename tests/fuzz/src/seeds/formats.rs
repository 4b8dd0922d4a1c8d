//! Small files of the formats that have no target of their own.

use super::images;
use crate::dicom_files::{self, Build};
use crate::lossless_files::Coder;
use crate::recipe::written;
use crate::tiled_files::{self, Tiled};
use gpuimg::internals::formats::{FORMATS, encode};
use std::io::Cursor;

/// OpenEXR files of each compression, of scan lines and of tiles.
fn openexr() -> impl Iterator<Item = Vec<u8>> {
    use exr::prelude::*;
    let compressions = [
        Compression::Uncompressed,
        Compression::RLE,
        Compression::ZIP1,
        Compression::ZIP16,
        Compression::PIZ,
        Compression::PXR24,
        Compression::B44,
        Compression::B44A,
    ];
    let blocks = [Blocks::ScanLines, Blocks::Tiles(Vec2(8, 8))];
    compressions
        .into_iter()
        .flat_map(move |compression| blocks.map(|blocks| openexr_file(compression, blocks)))
}

fn openexr_file(compression: exr::prelude::Compression, blocks: exr::prelude::Blocks) -> Vec<u8> {
    use exr::prelude::*;
    let channels = SpecificChannels::rgba(|Vec2(x, y): Vec2<usize>| {
        (x as f32, y as f32, f16::from_f32(0.5), 1f32)
    });
    let encoding = Encoding {
        compression,
        blocks,
        line_order: LineOrder::Increasing,
    };
    let layer = Layer::new((13, 11), LayerAttributes::default(), encoding, channels);
    let mut file = Cursor::new(Vec::new());
    let written = Image::from_layer(layer).write().to_buffered(&mut file);
    written.expect("memory takes every byte");
    file.into_inner()
}

/// NumPy's arrays, of every type and form.
fn arrays() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let dictionary = |descr, shape| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [
            b"\x93NUMPY\x01\0",
            &(text.len() as u16).to_le_bytes()[..],
            text.as_bytes(),
            &[7; 96],
        ]
        .concat()
    };
    for descr in [
        "|u1", "|i1", "|b1", "<u2", ">i2", "<u4", ">i4", "<f4", ">f8",
    ] {
        for shape in ["(4, 3)", "(4, 3, 2)", "(2, 2, 3, 4)", "(2, 3, 7)"] {
            all.push(dictionary(descr, shape));
        }
    }
    all
}

/// DICOM of every syntax, and of every kind of pixels.
fn dicom() -> Vec<Vec<u8>> {
    let plain = Build::default();
    let scaled = Build {
        bits: (16, 12),
        signed: true,
        ..Build::default()
    };
    // Places, a window, a slope.
    let scaled = [
        (0x1050, "40"),
        (0x1051, "400"),
        (0x1052, "-1024"),
        (0x1053, "1"),
    ]
    .into_iter()
    .fold(scaled, |build, (element, text)| {
        build.text((0x28, element), text)
    });
    let colours = |planar| Build {
        channels: 3,
        photometric: "RGB",
        bits: (8, 8),
        columns: 2,
        rows: 1,
        planar,
        ..Build::default()
    };
    let inverted = Build {
        photometric: "MONOCHROME1",
        bits: (8, 8),
        ..Build::default()
    };
    let wide = Build {
        bits: (32, 32),
        ..Build::default()
    };
    let jpeg_ls = Build {
        syntax: dicom_files::JPEG_LS,
        columns: 4,
        rows: 4,
        bits: (8, 8),
        ..Build::default()
    };
    let mut all = vec![
        jpeg_ls.file(b"", Some(&[b"", dicom_files::EXAMPLE])),
        scaled.file(b"abcdefghijkl", None),
        inverted.text((0x28, 8), "2").file(b"abcdefghijkl", None),
        wide.file(b"abcdefghijklmnopqrstuvwx", None),
    ];
    all.extend([false, true].map(|planar| colours(planar).file(b"abcdef", None)));
    for syntax in [
        dicom_files::EXPLICIT,
        dicom_files::IMPLICIT,
        dicom_files::BIG,
    ] {
        let build = Build {
            syntax,
            ..plain.clone()
        };
        all.push(build.words(&[0, 1, 2, 300, 4000, 65535]));
    }
    let runs = [
        &[2, 0, 0, 0, 64, 0, 0, 0, 68][..],
        &[0; 55],
        b"\xFB\x01\x80\x80\x02\0\x01\x02\xFE\x09",
    ]
    .concat();
    let build = Build {
        syntax: dicom_files::RLE,
        ..plain.clone()
    };
    all.push(build.file(b"", Some(&[b"", &runs])));
    let mut lossy = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new(&mut lossy);
    let encoded =
        image::ImageEncoder::write_image(encoder, &[77; 6], 3, 2, image::ExtendedColorType::L8);
    encoded.expect("memory takes every byte");
    let build = Build {
        syntax: dicom_files::JPEG,
        bits: (8, 8),
        ..plain
    };
    all.push(build.file(b"", Some(&[b"", &lossy])));
    all.extend(lossless());
    all
}

/// DICOM of JPEG's lossless process: predictors, precisions, colours, intervals, codes.
fn lossless() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for predictor in 1..=7 {
        for (channels, precision) in [(1, 8), (1, 12), (3, 8), (3, 16)] {
            let coder = Coder {
                width: 3,
                channels,
                precision,
                predictor,
                shift: u32::from(predictor == 2),
                restart: usize::from(predictor % 3),
                long: predictor % 2 == 0,
                apart: predictor > 4,
            };
            let samples =
                (0..3 * 5 * channels as u16).map(|i| i.wrapping_mul(40_503) >> (16 - precision));
            let samples: Vec<u16> = samples.map(|it| it >> coder.shift << coder.shift).collect();
            let build = Build {
                syntax: "1.2.840.10008.1.2.4.57",
                rows: 5,
                channels: channels as u16,
                photometric: if channels == 3 { "RGB" } else { "MONOCHROME2" },
                bits: (if precision > 8 { 16 } else { 8 }, precision as u16),
                ..Build::default()
            };
            all.push(build.file(b"", Some(&[b"", &coder.file(&samples)])));
        }
    }
    all
}

/// NRRD and MetaImage of every type: planes, colours, bytes and lines to skip.
fn volumes() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let types = [
        ("uint8", "MET_UCHAR"),
        ("signed char", "MET_CHAR"),
        ("unsigned short", "MET_USHORT"),
        ("int16", "MET_SHORT"),
        ("uint32", "MET_UINT"),
        ("int", "MET_INT"),
        ("float", "MET_FLOAT"),
        ("double", "MET_DOUBLE"),
    ];
    for (nrrd, meta) in types {
        for (endian, msb) in [("big", "True"), ("little", "False")] {
            let samples = [0; 96];
            let head = format!(
                "NRRD0004\n# a comment\ntype: {nrrd}\ndimension: 2\nsizes: 3 2\nencoding: raw\nendian: {endian}\n\n"
            );
            all.push([head.as_bytes(), &samples].concat());
            let head = format!(
                "ObjectType = Image\nNDims = 2\nDimSize = 3 2\nElementType = {meta}\nBinaryDataByteOrderMSB = {msb}\nElementDataFile = LOCAL\n"
            );
            all.push([head.as_bytes(), &samples].concat());
        }
    }
    let cube =
        "NRRD0005\ntype: uint8\ndimension: 3\nsizes: 3 2 4\nencoding: raw\nspacings: 1 1 2\n";
    for more in [
        "kinds: RGB-color domain domain\n\n",
        "byte skip: -1\n\nany bytes",
        "byte skip: 4\n\nskip",
        "line skip: 2\n\none\ntwo\n",
        "data file: other.raw\n",
    ] {
        all.push([cube.as_bytes(), more.as_bytes(), &[7; 24]].concat());
    }
    for more in [
        "ElementNumberOfChannels = 2\n",
        "HeaderSize = -1\n",
        "CompressedData = False\n",
    ] {
        let head = format!(
            "NDims = 3\nDimSize = 3 2 2\n{more}ElementType = MET_UCHAR\nElementDataFile = LOCAL\n"
        );
        all.push([head.as_bytes(), &[7; 24]].concat());
    }
    all
}

/// Formats that are not written by hand: HDF5 as it is and in compressed chunks, JPEG 2000, JPEG XL and JPEG-LS.
const OF_OTHERS: [&[u8]; 5] = [
    include_bytes!("../../../files/signed.h5"),
    include_bytes!("../../../files/stack.nxs"),
    include_bytes!("../../../files/ramp.jp2"),
    include_bytes!("../../../files/ramp.jxl"),
    dicom_files::EXAMPLE,
];

/// NIfTI of every type and of both versions, as it is and compressed.
fn nifti() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for datatype in [2u8, 4, 8, 16, 64, 128, 0] {
        let mut first = vec![0; 352];
        first[..2].copy_from_slice(&[0x5C, 1]);
        first[40..50].copy_from_slice(&[4, 0, 3, 0, 2, 0, 2, 0, 1, 0]);
        first[70] = datatype;
        first[71] = u8::from(datatype == 0);
        first[123] = 10;
        first[254] = 1;
        first[344..347].copy_from_slice(b"n+1");
        let mut second = vec![0; 544];
        second[2..7].copy_from_slice(&[2, 0x1C, b'n', b'+', b'2']);
        second[12] = u8::from(datatype == 0);
        second[13] = datatype;
        for (axis, length) in [3, 3, 2, 2].into_iter().enumerate() {
            second[23 + 8 * axis] = length;
        }
        for header in [first, second] {
            let file = [header, vec![7; 96]].concat();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, &file).expect("memory takes every byte");
            all.extend([file, gzip.finish().expect("memory takes every byte")]);
        }
    }
    all
}

/// FITS of every type, scaled, of three axes, and after an empty first part.
fn fits() -> Vec<Vec<u8>> {
    let block = |records: &[&str]| {
        let text = records
            .iter()
            .chain(&["END"])
            .map(|record| format!("{record:<80}"));
        let mut block = text.collect::<String>().into_bytes();
        block.resize(block.len().next_multiple_of(2880), b' ');
        block
    };
    let first = "SIMPLE  =                    T / conforms to FITS standard";
    let sides = [
        "NAXIS1  =                    3",
        "NAXIS2  =                    2",
    ];
    let mut all = Vec::new();
    for bits in [8, 16, 32, -32, -64] {
        let bits = format!("BITPIX  = {bits:20}");
        for zero in [
            "BZERO   =                32768",
            "BZERO   =                 -128",
            "BSCALE  =                  1.0",
        ] {
            let records = [
                first,
                &bits,
                "NAXIS   =                    2",
                sides[0],
                sides[1],
                zero,
                "DATAMAX = 9",
            ];
            all.push([block(&records), vec![0; 2880]].concat());
        }
        let cube = [
            first,
            &bits,
            "NAXIS   =                    3",
            sides[0],
            sides[1],
            "NAXIS3  =                    2",
        ];
        all.push([block(&cube), vec![0; 2880]].concat());
        let empty = [
            first,
            &bits,
            "NAXIS   =                    0",
            "EXTEND  =                    T",
        ];
        let part = [
            "XTENSION= 'IMAGE   '",
            &bits,
            "NAXIS   =                    2",
            sides[0],
            sides[1],
            "PCOUNT  =                    0",
            "GCOUNT  =                    1",
        ];
        all.push([block(&empty), block(&part), vec![0; 2880]].concat());
    }
    all
}

/// Samples without a header, after a line that says what they are.
pub fn of_raw() -> Vec<Vec<u8>> {
    let types = [
        "u8",
        "i8",
        "u16le",
        "u16be",
        "i16le",
        "i16be",
        "u32le",
        "u32be",
        "i32le",
        "i32be",
        "f32le",
        "f32be",
        "f64le",
        "f64be",
        "mono8",
        "mono12",
        "bayerrg8",
        "bayergb16",
        "mono10p",
        "mono12p",
        "mono14p",
        "mono10packed",
        "mono12packed",
        "bayerbg12p",
    ];
    let mut all = Vec::new();
    for kind in types {
        for line in [
            format!("3x2:{kind}"),
            format!("3x2x3:{kind}:2+5"),
            format!("2x2:{kind}+1"),
        ] {
            all.push([line.as_bytes(), b"\n", &[0; 300]].concat());
        }
    }
    all
}

/// Files of every other format: those that are written, and those that the image crate writes.
pub fn of_formats() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for image in images(true) {
        let shape = image.shape();
        for format in FORMATS {
            let can = format.capabilities;
            let takes = can.channels.contains(&shape.channels) && can.depths.contains(&shape.depth);
            if takes
                && format.is_written()
                && !format.is_folder
                && !["png", "tiff", "pnm"].contains(&format.id)
            {
                let options = Default::default();
                all.push(written(|target| encode(&image, *format, &options, target)));
            }
        }
        use image::ImageFormat::{Bmp, Jpeg, Qoi, Tga, WebP};
        for format in [Bmp, Jpeg, Qoi, Tga, WebP] {
            let mut file = Cursor::new(Vec::new());
            let Ok(image) = image::DynamicImage::try_from(&image) else {
                continue;
            };
            if image.write_to(&mut file, format).is_ok() {
                all.push(file.into_inner());
            }
        }
    }
    all.extend(openexr());
    all.push(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 3\n\x80\x40\x20\x81\x01\x02\x03\x80\0\0\0\0\x80\0\0\x01\x01\x01\x01\x02".to_vec());
    all.push(b"#?RGBE\n\n-Y 1 +X 8\n\x02\x02\0\x08\x88\x80\x08\x01\x02\x03\x04\x05\x06\x07\x08\x88\0\x88\x81".to_vec());
    let gif = b"GIF89a\x03\0\x02\0\xF0\0\0\x0a\x14\x1e\x28\x32\x3c!\xF9\x04\x01\0\0\x01\0,\0\0\0\0\x03\0\x02\0\0\x02\x03\x44\x34\x05\0;";
    all.push(gif.to_vec());
    all.extend([arrays(), dicom(), volumes(), nifti(), fits()].concat());
    all.extend(OF_OTHERS.map(<[u8]>::to_vec));
    all.extend(tiled_files::all().iter().map(Tiled::file));
    all
}
