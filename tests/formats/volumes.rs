//! NRRD and MetaImage: samples after the header, and in a file beside it.

use crate::support::formats::{metaimage, nrrd};
use crate::support::formats::{read, read_pages, refused};
use crate::support::{folder, run};
use gpuimg::internals::image::{Image, Samples};

fn values(image: &Image) -> Vec<u16> {
    match image.samples() {
        Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U16(samples) => samples.to_vec(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// Both formats, every type in both byte orders.
#[test]
fn every_type() {
    let words = b"\x80\0\xFF\xFF\0\0\0\x01\x01\x02\x7F\xFF";
    let swapped: Vec<u8> = words
        .chunks(2)
        .flat_map(|pair| [pair[1], pair[0]])
        .collect();
    let unsigned = vec![0x8000, 0xFFFF, 0, 1, 0x0102, 0x7FFF];
    let signed: Vec<u16> = unsigned.iter().map(|value| value ^ 0x8000).collect();
    let bytes = [0u8, 1, 127, 128, 254, 255];
    let mut files = Vec::new();
    for (big, data) in [(true, &words[..]), (false, &swapped)] {
        let (endian, msb) = if big {
            ("big", "True")
        } else {
            ("little", "False")
        };
        for (nrrd_type, meta_type, sign) in [
            ("unsigned short", "MET_USHORT", false),
            ("int16", "MET_SHORT", true),
        ] {
            let expected = if sign {
                signed.clone()
            } else {
                unsigned.clone()
            };
            let fields = format!("type: {nrrd_type}\nendian: {endian}\n");
            files.push((nrrd(&fields, data), sign, expected.clone()));
            let fields = format!("ElementType = {meta_type}\nBinaryDataByteOrderMSB = {msb}\n");
            files.push((metaimage(&fields, data), sign, expected));
        }
    }
    for (nrrd_type, meta_type, flip, sign) in [
        ("uchar", "MET_UCHAR", 0, false),
        ("signed char", "MET_CHAR", 0x80, true),
    ] {
        let expected: Vec<u16> = bytes.iter().map(|&byte| u16::from(byte ^ flip)).collect();
        files.push((
            nrrd(&format!("type: {nrrd_type}\n"), &bytes),
            sign,
            expected.clone(),
        ));
        files.push((
            metaimage(&format!("ElementType = {meta_type}\n"), &bytes),
            sign,
            expected,
        ));
    }
    assert_eq!(files.len(), 12);
    for (file, signed, expected) in files {
        let (image, metadata, _) = read(&file).unwrap();
        assert_eq!(
            (values(&image), metadata.signed),
            (expected, signed),
            "{}",
            file.escape_ascii()
        );
        assert_eq!((image.shape().width, image.shape().height), (3, 2));
    }
}

#[test]
fn pages_colours_and_skipping() {
    let samples: Vec<u8> = (0..24).collect();
    let head =
        "NRRD0005\ntype: uint8\ndimension: 3\nsizes: 3 2 4\nencoding: raw\nspacings: 1 1 2\n";
    let kinds = format!("{head}kinds: RGB-color domain domain\n\n");
    let (pages, _, said) = read_pages(&[kinds.as_bytes(), &samples].concat()).unwrap();
    assert_eq!(
        (
            pages.len(),
            pages[0].shape().channels,
            pages[0].shape().height
        ),
        (1, 3, 4)
    );
    assert_eq!(said.notes, ["a field of the header is left out: spacings"]);
    for skip in [
        "byte skip: -1\n\nany bytes",
        "byte skip: 4\n\nskip",
        "line skip: 2\n\none\ntwo\n",
        "\n",
    ] {
        let head = format!("{head}{skip}");
        let (pages, ..) = read_pages(&[head.as_bytes(), &samples].concat()).unwrap();
        assert_eq!(pages.len(), 4, "{skip}");
        assert_eq!(values(&pages[3]), [18, 19, 20, 21, 22, 23], "{skip}");
    }
    let head = "NDims = 3\nDimSize = 3 2 2\nElementNumberOfChannels = 2\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n";
    let (pages, ..) = read_pages(&[head.as_bytes(), &samples].concat()).unwrap();
    assert_eq!(
        (pages.len(), pages[1].shape().channels, values(&pages[1])[0]),
        (2, 2, 12)
    );
}

/// The samples in a file of their own, in the same folder and nowhere else.
#[test]
fn detached_samples() {
    let head = |name: &str| {
        format!("NRRD0004\ntype: uint8\nsizes: 3 2\nencoding: raw\ndata file: {name}\n")
    };
    let meta = |name: &str| {
        format!("NDims = 2\nDimSize = 3 2\nElementType = MET_UCHAR\nElementDataFile = {name}\n")
    };
    let root = folder(&[
        ("in/a.raw", b"abcdef"),
        ("in/a.nhdr", head("a.raw").as_bytes()),
        ("in/a.mhd", meta("a.raw").as_bytes()),
        ("b.nhdr", head("in/a.raw").as_bytes()),
        ("c.mhd", meta("../a.raw").as_bytes()),
        ("d.mhd", meta("/etc/passwd").as_bytes()),
        ("e.mhd", meta("none.raw").as_bytes()),
        ("f.raw", b"abc"),
        ("f.nhdr", head("f.raw").as_bytes()),
    ]);
    let both = run(root.path(), &["verify", "in/a.nhdr", "in/a.mhd"], &[]);
    assert_eq!(
        (both.code, both.stdout.as_str()),
        (0, "equal\n"),
        "{}",
        both.stderr
    );
    // In a folder, the file of the samples is not an image.
    let all = run(
        root.path(),
        &[
            "transpose",
            "in",
            "out",
            "--format",
            "png",
            "--name",
            "{stem}_{ext}.png",
        ],
        &[],
    );
    assert_eq!(all.code, 2, "two results of one name: {}", all.stderr);
    let sums = run(root.path(), &["sum", "in"], &[]);
    assert_eq!(
        (sums.code, sums.stdout.lines().count()),
        (0, 2),
        "{}{}",
        sums.stdout,
        sums.stderr
    );
    for (name, why) in [
        (
            "b.nhdr",
            "its samples are in the separate file in/a.raw, which is not in the same folder",
        ),
        (
            "c.mhd",
            "its samples are in the separate file ../a.raw, which is not in the same folder",
        ),
        (
            "d.mhd",
            "its samples are in the separate file /etc/passwd, which is not in the same folder",
        ),
        ("e.mhd", "none.raw: "),
        ("f.nhdr", "f.raw: truncated at byte 3 of 6"),
    ] {
        let sum = run(root.path(), &["sum", name], &[]);
        assert_eq!(sum.code, 1, "{name}");
        assert!(sum.stderr.contains(why), "{name}: {}", sum.stderr);
    }
    refused(
        head("a.raw").as_bytes(),
        "which cannot be found from a stream",
    );
}

#[test]
fn refusals() {
    for (file, why) in [
        (
            nrrd("type: int64\nendian: little\n", &[0; 96]),
            "samples of the type int64 are not supported",
        ),
        (
            nrrd("type: ushort\n", &[0; 12]),
            "does not say the byte order",
        ),
        (nrrd("", &[0; 12]), "no type of samples"),
        (
            nrrd("type: uchar\nencoding: bzip2\n", &[0; 12]),
            "the encoding bzip2 are not supported",
        ),
        (
            nrrd("type: uchar\nsizes: 3\n", &[0; 12]),
            "less than two axes",
        ),
        (
            nrrd("type: uchar\nsizes: 3 x\n", &[0; 12]),
            "values that are not numbers: \"3 x\"",
        ),
        (
            nrrd("type: uchar\nsizes: 0 2\n", &[0; 12]),
            "the image is empty",
        ),
        (
            nrrd("type: uchar\nsizes: 9 9 0\n", &[0; 12]),
            "do not form an image",
        ),
        (
            nrrd("type: uchar\nsizes: 9999999 9999999\n", &[0; 12]),
            "truncated at byte",
        ),
        (
            nrrd("type: uchar\nsizes: 9999999 9999999 99999999\n", &[0; 12]),
            "do not fit in a file",
        ),
        (
            nrrd("type: uchar\nbyte skip: 18446744073709551615\n", &[0; 12]),
            "too many bytes to skip",
        ),
        (
            nrrd("type: uchar\nline skip: 99\n", &[0; 12]),
            "within the lines to skip",
        ),
        (
            b"NRRD0004\ntype: uchar\nsizes: 3 2\nencoding: raw\n".to_vec(),
            "within the header",
        ),
        (
            metaimage("ElementType = MET_LONG\n", &[0; 96]),
            "samples of the type MET_LONG are not supported",
        ),
        (
            metaimage("BinaryData = False\nElementType = MET_UCHAR\n", b""),
            "truncated: ",
        ),
        (
            metaimage("ElementType = MET_CHAR\nElementNumberOfChannels = 5\n", b""),
            "pixels of 5 samples",
        ),
        (metaimage("nonsense\n", b""), "not a field: \"nonsense\""),
        (b"NDims = 2\nDimSize = 3 2\n".to_vec(), "within the header"),
    ] {
        refused(&file, why);
    }
}
