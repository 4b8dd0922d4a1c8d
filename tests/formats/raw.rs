//! `--raw`: samples without a header.

use crate::support::{folder, run};

/// Every type, by its totals: the first sample, the last and their sum tell order and sign.
#[test]
fn every_type() {
    let root = folder(&[("a.bin", b"skip\x01\0\x02\0\xFF\xFE\0\x80\x05\0\x06\0")]);
    for (raw, samples, sum, min, max) in [
        ("3x2:u16le+4", 6, 1 + 2 + 0xFEFF + 0x8000 + 5 + 6, 1, 0xFEFF),
        (
            "3x2:u16be+4",
            6,
            0x100 + 0x200 + 0xFFFE + 0x80 + 0x500 + 0x600,
            0x80,
            0xFFFE,
        ),
        ("3x2:i16le:1+4", 6, 1 + 2 - 257 - 32768 + 5 + 6, -32768, 6),
        (
            "3x2:i16be+4",
            6,
            0x100 + 0x200 - 2 + 0x80 + 0x500 + 0x600,
            -2,
            0x600,
        ),
        ("12x1:u8+4", 12, 1 + 2 + 0xFF + 0xFE + 0x80 + 5 + 6, 0, 0xFF),
        ("12x1:i8+4", 12, 1 + 2 - 1 - 2 - 128 + 5 + 6, -128, 6),
    ] {
        let made = run(
            root.path(),
            &["sum", "--all", "--json", "a.bin", "--raw", raw],
            &[],
        );
        assert_eq!(made.code, 0, "{raw}: {}", made.stderr);
        let found: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        assert_eq!(found["sum"], sum, "{raw}: {found}");
        let of = |what: &str| found[what].clone();
        assert_eq!(
            (of("min"), of("max")),
            (min.into(), max.into()),
            "{raw}: {found}"
        );
        assert_eq!(
            found["width"].as_u64().unwrap() * found["height"].as_u64().unwrap(),
            samples
        );
    }
}

#[test]
fn pages_channels_and_what_is_wrong() {
    let root = folder(&[
        ("a.bin", &[7; 60]),
        ("in/b.bin", &[7; 12]),
        ("in/c.txt", b"no"),
    ]);
    for (line, code, words) in [
        ("sum a.bin --raw 5x4:u8", 0, "page 3"),
        ("sum a.bin --raw 5x4:u8:2", 0, "page 2"),
        ("flip vertical a.bin a.tif --raw 2x2x3:u8", 0, ""),
        ("flip vertical a.bin b.npy --raw 5x3x4:u8", 0, ""),
        (
            "transpose in out --raw 3x2:u16le --format png --include *.bin",
            0,
            "",
        ),
        (
            "sum a.bin --raw 7x4:u8",
            1,
            "60 bytes are not a whole number of pages of 28 bytes",
        ),
        ("sum a.bin --raw 5x4:u8:4", 1, "truncated at byte 60 of 80"),
        ("sum a.bin --raw 5x4:u8+70", 1, "truncated at byte 60 of 90"),
        (
            "sum a.bin --raw 9999999999x9999999999:u8",
            1,
            "do not fit in memory",
        ),
        (
            "flip vertical a.bin out3/ --raw 5x4:u8",
            1,
            "raw is read-only (choose another with --format:",
        ),
        (
            "sum a.bin --raw 5x4:f32",
            2,
            "unknown sample type 'f32': expected u8, i8, or u16, i16, u32, i32, f32, f64 followed by le or be",
        ),
        ("sum a.bin --raw 5:u8", 2, "expected WIDTHxHEIGHT"),
        ("sum a.bin --raw 5x4x5:u8", 2, "expected WIDTHxHEIGHT"),
        (
            "sum a.bin --raw 0x4:u8",
            2,
            "width and height must not be 0",
        ),
        ("sum a.bin --raw 5x4:u8:0", 2, "0 pages"),
        ("sum a.bin --raw 5x4:u8:1:2", 2, "unexpected ':2'"),
        ("sum a.bin --raw 5x4:u8+x", 2, "'x' is not a number"),
        ("sum a.bin --raw 5x4", 2, "unknown sample type ''"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let made = run(root.path(), &args, &[]);
        assert_eq!(made.code, code, "{line}: {}", made.stderr);
        let said = made.stdout + &made.stderr;
        assert!(said.contains(words), "{line}: {said}");
    }
    let verified = run(root.path(), &["sum", "a.tif", "--json"], &[]);
    assert_eq!(verified.stdout.lines().count(), 5, "{}", verified.stdout);
}
