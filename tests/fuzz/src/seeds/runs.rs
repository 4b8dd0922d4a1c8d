//! Files with metadata of every kind, for runs from file to file.

use super::{image, of_formats, of_png, of_pnm, of_tiff};
use crate::png_files::Plain;
use crate::tiff_files::Build;
use gpuimg::internals::image::Depth;

const OME: &str = "<?xml version=\"1.0\"?><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels \
    BigEndian=\"false\" DimensionOrder=\"XYZCT\" ID=\"Pixels:0\" SizeC=\"1\" SizeT=\"1\" SizeX=\"13\" SizeY=\"11\" SizeZ=\"1\" Type=\"uint16\" \
    PhysicalSizeX=\"0.5\"><Channel ID=\"Channel:0:0\"/><TiffData FirstC=\"0\" FirstZ=\"0\" IFD=\"0\" PlaneCount=\"1\"/></Pixels></Image></OME>";
const GDAL: &str = "<GDALMetadata>\n  <Item name=\"STATISTICS_MAXIMUM\" sample=\"0\">9</Item>\n  <Item name=\"GPUIMG_STRETCH\">\
    range 3:900 of 16 bits to 0:65535 of 16 bits</Item>\n</GDALMetadata>\n";
const XMP: &str = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
    <rdf:Description xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\" tiff:Orientation=\"6\" tiff:ImageWidth=\"13\"/></rdf:RDF></x:xmpmeta>";

fn text(words: &str) -> Vec<u64> {
    words.bytes().chain([0]).map(u64::from).collect()
}

fn doubles(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Exif data of one field, as in a PNG's chunk or after a tag.
fn exif() -> Vec<u8> {
    let mut exif = b"II*\0\x08\0\0\0\x01\0".to_vec();
    exif.extend([0x12, 0x01, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    exif
}

fn tiffs() -> Vec<Vec<u8>> {
    let descriptions = [
        "ImageJ=1.53t\nimages=1\nchannels=1\nslices=1\nmin=3.0\nmax=900.0\nspacing=2\nunit=micron\n",
        "{\"shape\": [11, 13], \"axes\": \"YX\"}",
        "SCIFIO=0.42\naxes=X,Y\nlengths=13,11\n",
        OME,
        "words",
    ];
    let mut all = Vec::new();
    for (index, description) in descriptions.iter().enumerate() {
        for big_endian in [false, true] {
            let build = Build {
                big_endian,
                big_tiff: index % 2 == 1,
                strip: 4,
                ..Build::default()
            };
            let build = build
                .tag(270, 2, &text(description))
                .tag(274, 3, &[6])
                .tag(305, 2, &text("a program"))
                .tag(306, 2, &text("2026:11:23 12:00:00"));
            all.push(build.file(&image(1, Depth::Sixteen, 13, 11, 3)));
        }
    }
    let keys = [
        1, 1, 0, 4, 1024, 0, 1, 1, 1025, 0, 1, 2, 3072, 0, 1, 32633, 3073, 34737, 4, 0,
    ];
    let places = [
        Build::default()
            .tag(33550, 12, &doubles(&[2., 2., 0.]))
            .tag(33922, 12, &doubles(&[0., 0., 0., 100., 200., 0.])),
        Build::default().tag(
            34264,
            12,
            &doubles(&[
                2., 0., 0., 100., 0., -2., 0., 200., 0., 0., 0., 0., 0., 0., 0., 1.,
            ]),
        ),
        Build::default().tag(50844, 12, &doubles(&[1.5; 92])),
    ];
    for place in places {
        let place = place
            .tag(34735, 3, &keys)
            .tag(34736, 12, &doubles(&[1., 2.]))
            .tag(34737, 2, &text("UTM|"))
            .tag(42112, 2, &text(GDAL))
            .tag(42113, 2, &text("-9999"))
            .tag(700, 1, &XMP.bytes().map(u64::from).collect::<Vec<_>>());
        all.push(place.file(&image(1, Depth::Sixteen, 13, 11, 3)));
    }
    all
}

fn pngs() -> Vec<Vec<u8>> {
    let zlib = |bytes: &[u8]| crate::png_files::zlib(bytes, 6);
    let chunks: [(&[u8; 4], Vec<u8>); 12] = [
        (b"tEXt", b"Title\0words".to_vec()),
        (
            b"tEXt",
            b"gpuimg:stretch\0range 3:900 of 16 bits to 0:65535 of 16 bits".to_vec(),
        ),
        (
            b"zTXt",
            [b"Comment\0\0", &zlib(b"packed words")[..]].concat(),
        ),
        (
            b"iTXt",
            b"XML:com.adobe.xmp\0\0\0\0\0<x:xmpmeta tiff:Orientation=\"6\"/>".to_vec(),
        ),
        (
            b"iTXt",
            [b"Author\0\x01\0de\0Autor\0", &zlib("Wörter".as_bytes())[..]].concat(),
        ),
        (b"eXIf", exif()),
        (b"iCCP", [b"profile\0\0", &zlib(&[7; 200])[..]].concat()),
        (b"pHYs", vec![0, 0, 0x0B, 0x13, 0, 0, 0x0B, 0x13, 1]),
        (b"sBIT", vec![5]),
        (b"tIME", vec![7, 0xEA, 11, 23, 12, 0, 0]),
        (b"gAMA", vec![0, 0, 0xB1, 0x8F]),
        (b"oFFs", vec![0, 0, 0, 1, 0, 0, 0, 2, 0]),
    ];
    let each = chunks.iter().map(|(kind, data)| {
        let mut plain = Plain::noisy(9, 7, 16, 0);
        plain.before.push((**kind, data.clone()));
        plain.encoded(1)
    });
    each.collect()
}

/// Verbs, formats and options in turn, and a file after them.
pub fn of_runs() -> Vec<Vec<u8>> {
    let plain = [of_png(), of_tiff(), of_pnm(), of_formats()].map(|seeds| {
        let step = seeds.len().div_ceil(24).max(1);
        seeds.into_iter().step_by(step).collect::<Vec<_>>()
    });
    let files = tiffs()
        .into_iter()
        .chain(pngs())
        .cycle()
        .take(200)
        .chain(plain.concat());
    files
        .enumerate()
        .map(|(index, file)| {
            let choices = [
                index as u8,
                (index / 3) as u8,
                [0, 0, 4, 8, 16, 1, 2][index % 7],
            ];
            [&choices[..], &file].concat()
        })
        .collect()
}
