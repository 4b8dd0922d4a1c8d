//! What seven new users type first. Each answer must say how to go on, and a command that it suggests must succeed as it
//! stands.

use crate::support::axes::{HYPERSTACK, file as hyperstack};
use crate::support::{dicom, folder, run, run_on_cpu, sample};
use std::fs;
use std::path::Path;

/// Types a command line, without a shell's patterns. Returns the exit status and all that is printed.
fn types(root: &Path, line: &str) -> (i32, String) {
    let words = shlex::split(line).expect("a command line");
    assert_eq!(words[0], "gpuimg", "{line}");
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let done = run_on_cpu(root, &words);
    (done.code, done.stdout + &done.stderr)
}

/// Types command lines, each with its exit status and a text that must be in the answer.
fn session(root: &Path, lines: &[(&str, i32, &str)]) {
    for (line, code, expected) in lines {
        let (status, said) = types(root, line);
        assert_eq!(status, *code, "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
}

/// Types a command line that is wrong, and then the last command in its answer, which succeeds.
fn pasted(root: &Path, line: &str, command: &str) {
    let (status, said) = types(root, line);
    assert_eq!(status, 2, "{line}: {said}");
    assert_eq!(said.lines().count(), 1, "{line}: {said}");
    let start = said
        .rfind("gpuimg ")
        .filter(|_| !said.contains("(see gpuimg"));
    let start = start.or_else(|| said[..said.rfind(" (see gpuimg")?].rfind("gpuimg "));
    let rest = &said[start.unwrap_or_else(|| panic!("{line}: no command in {said}"))..];
    let ends = [" (see ", " scales the range", ")", "\n"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    let found = &rest[..end.expect("an end")];
    assert_eq!(found, command, "{line}: {said}");
    let (status, said) = types(root, found);
    assert_eq!(status, 0, "{found}: {said}");
}

/// A PGM of 3 × 2 samples of 16 bits.
fn pgm(first: u16) -> Vec<u8> {
    let samples = (0..6).map(|i| first + 1000 * i);
    let samples = samples.flat_map(u16::to_be_bytes);
    b"P5 3 2 65535\n".iter().copied().chain(samples).collect()
}

/// A FITS file of 4 × 2 samples, with one more record.
fn fits(record: &str) -> Vec<u8> {
    let records = [
        "SIMPLE  =                    T",
        "BITPIX  =                   16",
        "NAXIS   =                    2",
        "NAXIS1  =                    4",
        "NAXIS2  =                    2",
        record,
        "END",
    ];
    let lines = records.iter().map(|record| format!("{record:<80}"));
    let mut file = lines.collect::<String>().into_bytes();
    file.resize(2880, b' ');
    file.extend((0..8u16).flat_map(|i| (100 * i).to_be_bytes()));
    file.resize(2 * 2880, 0);
    file
}

/// An array of NumPy with a NaN.
fn npy_with_nan() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let mut file = b"\x93NUMPY\x01\0\x76\0".to_vec();
    file.extend(format!("{header:<117}\n").bytes());
    file.extend(
        [1.5f32, f32::NAN, 3.0, -2.0]
            .iter()
            .flat_map(|it| it.to_le_bytes()),
    );
    file
}

#[test]
fn a_microscopist() {
    let root = folder(&[("my cells.tif", &hyperstack(12, HYPERSTACK))]);
    let root = root.path();
    for name in ["nuclei.tif", "nuclei-stack.tif"] {
        fs::copy(sample(name), root.join(name)).expect("a sample");
    }
    pasted(
        root,
        "gpuimg nuclei.tif bright.png",
        "gpuimg normalize nuclei.tif bright.png",
    );
    session(
        root,
        &[
            (
                "gpuimg normalize nuclei-stack.tif pages.png",
                1,
                "31 pages do not fit into one PNG file: --pages N selects one, --split writes a file for each",
            ),
            (
                "gpuimg normalize nuclei-stack.tif pages --split --format png",
                0,
                "",
            ),
            (
                "gpuimg preview nuclei-stack.tif look.jpg",
                0,
                "page 16 of 31, ",
            ),
            (
                "gpuimg max nuclei-stack.tif max.tif",
                2,
                "gpuimg project max IN... OUT",
            ),
            ("gpuimg project max nuclei-stack.tif max.tif", 0, ""),
            (
                "gpuimg extract nuclei-stack.tif one.tif",
                2,
                "gpuimg convert --pages N IN OUT",
            ),
            (
                "gpuimg convert 'my cells.tif' second.tif --channel 2",
                1,
                "--axes C=2 selects a channel of a stack",
            ),
            ("gpuimg convert 'my cells.tif' second.tif --axes C=2", 0, ""),
            (
                "gpuimg combine nuclei.tif max.tif max.tif rgb.tif",
                1,
                "they must have the same size and type (gpuimg crop 0,0,57x61 takes the part that both have)",
            ),
        ],
    );
    pasted(
        root,
        "gpuimg combine 'my cells.tif' rgb.tif",
        "gpuimg combine 'my cells.tif' rgb.tif --colours C1=red,C2=green",
    );
    pasted(
        root,
        "gpuimg combine nuclei-stack.tif other.tif",
        "gpuimg convert --split nuclei-stack.tif pages/",
    );
}

#[test]
fn a_ct_technician() {
    let slice = |first: u16| {
        let samples = (0..6).flat_map(|i| (first + 100 * i).to_le_bytes());
        dicom::Build::default().file(&samples.collect::<Vec<u8>>(), None)
    };
    let root = folder(&[
        ("series/IM1.dcm", &slice(10)),
        ("series/IM2.dcm", &slice(20)),
    ]);
    session(
        root.path(),
        &[
            (
                "gpuimg window 40:400 series/IM1.dcm ct.png",
                2,
                "gpuimg normalize --window CENTER:WIDTH IN OUT",
            ),
            (
                "gpuimg normalize --window 40,400 series/IM1.dcm ct.png",
                2,
                "e.g. 40:400",
            ),
            (
                "gpuimg normalize --window 40HU:400HU series/IM1.dcm ct.png",
                2,
                "'40HU': write 40, without a unit",
            ),
            (
                "gpuimg normalize --window soft series/IM1.dcm ct.png",
                2,
                "--range auto-window uses the window of each file",
            ),
            (
                "gpuimg normalize --range auto series/IM1.dcm ct.png",
                2,
                "use --auto to ignore outliers",
            ),
            (
                "gpuimg normalize --window 240:400 series/IM1.dcm ct.png",
                0,
                "",
            ),
            (
                "gpuimg normalize series out",
                1,
                "cannot write 2 files (first: out/IM1.dcm): DICOM is read-only (choose another with --format: png, ",
            ),
            (
                "gpuimg normalize series pngs --format png --across",
                0,
                "2 of 2 files done",
            ),
            ("gpuimg preview series looks", 0, "2 of 2 files done"),
            (
                "gpuimg convert series volume.tif",
                2,
                "give an output folder last, e.g. volume/; or --stack to write all pages to one file",
            ),
            ("gpuimg convert series volume.tif --stack", 0, ""),
            (
                "gpuimg convert series/IM1.dcm png",
                2,
                "name the output, e.g. series/IM1.png",
            ),
        ],
    );
}

#[test]
fn a_camera_engineer() {
    let raw: Vec<u8> = (0..6u16).flat_map(|i| (300 * i).to_le_bytes()).collect();
    let mosaic = fits("BAYERPAT= 'GRBG    '");
    let root = folder(&[("frame.raw", &raw), ("my mosaic.fits", &mosaic)]);
    let root = root.path();
    session(
        root,
        &[
            (
                "gpuimg convert frame.raw frame.tif",
                1,
                "--raw reads samples without a header",
            ),
            (
                "gpuimg convert --raw 3x2 frame.raw frame.tif",
                2,
                "missing sample type",
            ),
            ("gpuimg convert --raw 3x2:u16le frame.raw frame.tif", 0, ""),
            (
                "gpuimg normalize frame.tif small.png --depth 12",
                2,
                "expected 8 or 16",
            ),
            (
                "gpuimg debayer frame.tif rgb.tif",
                2,
                "expected RGGB, BGGR, GRBG or GBRG first, got 'frame.tif' (the colours of the upper left 2×2 pixels",
            ),
            ("gpuimg debayer RGGB frame.tif rgb.tif", 0, ""),
            (
                "gpuimg run 'normalize, rotate 90' frame.tif turned.png",
                2,
                "+ separates two verbs",
            ),
        ],
    );
    pasted(
        root,
        "gpuimg debayer 'my mosaic.fits' colours.tif",
        "gpuimg debayer GRBG 'my mosaic.fits' colours.tif",
    );
    pasted(
        root,
        "gpuimg run normalize rotate 90 frame.tif turned.png",
        "gpuimg run 'normalize + rotate 90' frame.tif turned.png",
    );
}

#[test]
fn an_astronomer() {
    let frame = fits("OBJECT  = 'M 31    '");
    let root = folder(&[
        ("lights/a.fits", &frame),
        ("lights/b.fits", &frame),
        ("my light.fits", &frame),
        ("nan.npy", &npy_with_nan()),
    ]);
    let root = root.path();
    session(
        root,
        &[
            (
                "gpuimg stretch lights/a.fits a.png",
                2,
                "use gpuimg normalize IN OUT",
            ),
            (
                "gpuimg preview lights/a.fits a.jpg",
                0,
                "scaled from the range 0:700",
            ),
            (
                "gpuimg stack lights master.fits",
                2,
                "gpuimg project median IN... OUT combines them into one image",
            ),
            (
                "gpuimg normalize nan.npy nan.png",
                1,
                "use --nan VALUE to replace them, e.g. --nan 0",
            ),
            ("gpuimg normalize nan.npy nan.png --nan 0", 0, ""),
            (
                "gpuimg preview nan.npy nan.jpg",
                0,
                "scaled from the range -2:3",
            ),
            ("gpuimg preview lights looks", 0, "2 of 2 files done"),
            (
                "gpuimg normalize lights lights/norm",
                0,
                "2 of 2 files done",
            ),
            (
                "gpuimg rotate 90 lights turned",
                0,
                "lights/norm has results of an earlier run, which are inputs, too (--exclude norm leaves them out)",
            ),
            (
                "gpuimg rotate 90 lights again --exclude norm",
                0,
                "2 of 2 files done",
            ),
            ("gpuimg sum lights/norm", 0, "2 of 2 files done"),
        ],
    );
    let said = types(root, "gpuimg sum lights/norm").1;
    assert!(!said.contains("earlier run"), "{said}");
    let in_place = "gpuimg normalize lights lights --overwrite --exclude norm";
    assert!(!types(root, in_place).1.contains("earlier run"));
    session(
        root,
        &[(
            in_place,
            0,
            "lights has results of an earlier run, which are inputs, too (write results to another folder)",
        )],
    );
    for (line, command) in [
        (
            "gpuimg normalize 'my light.fits'",
            "gpuimg normalize 'my light.fits' out.fits",
        ),
        (
            "gpuimg normalize --clip 1:99 'my light.fits'",
            "gpuimg normalize --clip=1:99 'my light.fits' out.fits",
        ),
        (
            "gpuimg project median lights",
            "gpuimg project median lights out.tif",
        ),
        (
            "gpuimg calibrate lights --dark lights/a.fits",
            "gpuimg calibrate --dark=lights/a.fits lights out/",
        ),
    ] {
        pasted(root, line, command);
        let _ = fs::remove_file(root.join("out.fits"));
    }
}

#[test]
fn a_python_engineer() {
    let root = folder(&[
        ("mixed/a.pgm", &pgm(1)),
        ("mixed/b.ppm", b"P6 1 1 255\n123"),
        ("alike/a.pgm", &pgm(1)),
        ("alike/it's b.pgm", b"P5 1 1 255\n1"),
    ]);
    let root = root.path();
    session(
        root,
        &[
            ("gpuimg convert mixed/a.pgm a.npy", 0, ""),
            ("gpuimg info a.npy", 0, "a.npy: NumPy, 3×2 grey, 16 bits"),
            ("gpuimg stats a.npy", 2, "use gpuimg sum --all IN"),
            (
                "gpuimg sum --all --json a.npy",
                0,
                "\"min\":1,\"max\":5001,",
            ),
            (
                "gpuimg normalize a.npy b.npy --dtype float32",
                2,
                "use --depth 8 or --depth 16",
            ),
            (
                "gpuimg normalize a.npy -",
                2,
                "choose a format, e.g. --format png",
            ),
            (
                "gpuimg compare a.npy b.npy",
                1,
                "cannot read b.npy: no such file",
            ),
            (
                "gpuimg normalize mixed out --across -j 1",
                1,
                "cannot count mixed/b.ppm: it has 3 channels of 8 bits without sign, but mixed/a.pgm has 1 channel of 16 bits without \
                 sign: they cannot share a range (process each type in a run of its own, e.g. with --exclude '*.ppm')",
            ),
            (
                "gpuimg normalize mixed out --across -j 1 --exclude '*.ppm'",
                0,
                "1 of 1 file done",
            ),
            (
                "gpuimg normalize alike out --across -j 1",
                1,
                "--exclude 'it'\\''s b.pgm')",
            ),
        ],
    );
    pasted(
        root,
        "gpuimg normalize a.npy",
        "gpuimg normalize a.npy out.npy",
    );
}

#[test]
fn a_casual_user() {
    let photo = b"P6 2 2 255\n\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a\x64\x6e\x78";
    let root = folder(&[("my photo.ppm", photo), ("photos/a.ppm", photo)]);
    let root = root.path();
    pasted(
        root,
        "gpuimg 'my photo.ppm'",
        "gpuimg normalize 'my photo.ppm' bright.png",
    );
    pasted(root, "gpuimg photos", "gpuimg normalize photos out/");
    pasted(
        root,
        "gpuimg photos 'my results'",
        "gpuimg normalize photos 'my results'",
    );
    pasted(
        root,
        "gpuimg 'my photo.ppm' better.png",
        "gpuimg normalize 'my photo.ppm' better.png",
    );
    session(
        root,
        &[
            ("gpuimg help", 0, "normalize"),
            (
                "gpuimg brighten 'my photo.ppm' b.jpg",
                2,
                "gpuimg normalize --auto IN OUT",
            ),
            (
                "gpuimg resize 50% 'my photo.ppm' b.jpg",
                2,
                "gpuimg convert IN OUT --fit 1024",
            ),
            (
                "gpuimg rotate left 'my photo.ppm' b.jpg",
                2,
                "expected 90, 180 or 270 first",
            ),
            (
                "gpuimg convert 'my photo.ppm' jpg",
                2,
                "jpg is a format, not the name of a file: name the output, e.g. 'my photo.jpg'",
            ),
            (
                "gpuimg convert 'my photo.ppm' .jpg",
                2,
                "name the output, e.g. 'my photo.jpg'",
            ),
            ("gpuimg convert 'my photo.ppm' 'my photo.jpg'", 0, ""),
            (
                "gpuimg convert 'my photo.ppm' 'my photo.jpg'",
                1,
                "use --overwrite to replace it",
            ),
            (
                "gpuimg normalize photos/a.ppm 'my photo.ppm' my.png",
                2,
                "give an output folder last, e.g. my/",
            ),
            (
                "gpuimg normalize photos/a.ppm 'my photo.ppm' 'my photo.jpg'",
                2,
                "give an output folder last, e.g. out/",
            ),
            (
                "gpuimg normalize photos 'my b.png'",
                2,
                "give an output folder last, e.g. 'my b/'",
            ),
        ],
    );
    assert!(!root.join("jpg").exists());
}

#[test]
fn an_administrator() {
    let unsupported = [&b"ZISRAWFILE"[..], &[0; 600]].concat();
    let root = folder(&[
        ("in/a.pgm", &pgm(1)),
        ("bad/1.tif", &unsupported),
        ("bad/2.tif", &unsupported),
        ("bad/3.tif", &unsupported),
        ("some/1.tif", &unsupported),
        ("some/2.tif", &unsupported),
        ("some/3.pgm", &pgm(1)),
    ]);
    let root = root.path();
    session(
        root,
        &[
            ("gpuimg --version", 0, "gpuimg "),
            ("gpuimg version", 2, "use gpuimg --version"),
            ("gpuimg devices", 2, "gpuimg doctor shows the hardware"),
            ("gpuimg normalize in out --threads 4", 2, "use --jobs N"),
            (
                "gpuimg normalize in out --memory 4G",
                2,
                "use --mem-limit SIZE",
            ),
            ("gpuimg normalize in out --gpu 0", 2, "use --device gpu"),
            ("gpuimg normalize in out --log run.log", 2, "--report FILE"),
            (
                "gpuimg normalize in /proc/out",
                1,
                "cannot create the folder /proc/out",
            ),
            (
                "gpuimg normalize in out --dry-run",
                0,
                "1 folder would be created (out)",
            ),
        ],
    );
    // One line for all files that fail for one reason, and one each if other files are done.
    for (line, refusals) in [
        ("gpuimg normalize bad out", 1),
        ("gpuimg sum bad", 1),
        ("gpuimg info bad", 1),
        ("gpuimg project max bad max.tif", 1),
        ("gpuimg normalize bad out --across", 1),
        ("gpuimg normalize bad out -v", 3),
        ("gpuimg normalize some out", 2),
        ("gpuimg info some", 2),
    ] {
        let (status, said) = types(root, line);
        assert_eq!(status, 1, "{line}: {said}");
        assert_eq!(
            said.matches("is a Zeiss CZI file").count(),
            refusals,
            "{line}: {said}"
        );
        let counted =
            said.contains("cannot read 3 files (first: bad/1.tif): it is a Zeiss CZI file");
        assert_eq!(counted, refusals == 1, "{line}: {said}");
    }
    // The short help fits the screen of a terminal.
    let helps = types(root, "gpuimg -h").1;
    let verbs = helps
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: Vec<&str> = verbs
        .filter(|verb| verb.chars().all(char::is_alphabetic) && !verb.is_empty())
        .collect();
    assert!(verbs.len() > 9, "{helps}");
    for verb in std::iter::once("").chain(verbs) {
        let words = [verb, "-h"].into_iter().filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        let done = run(root, &words, &[("COLUMNS", "80")]);
        assert_eq!(done.code, 0, "{verb}");
        let said = done.stdout;
        assert!(said.lines().count() <= 24, "{said}");
        assert!(
            said.lines().all(|line| line.chars().count() <= 80),
            "{said}"
        );
    }
}

/// The answers to words that led nowhere: each names what to type.
#[test]
fn words_of_other_programs_for_stacks_and_samples() {
    let root = folder(&[
        ("a.pgm", &pgm(1)),
        ("b.pgm", &pgm(2)),
        ("frame.raw", &[0; 12]),
    ]);
    session(
        root.path(),
        &[
            (
                "gpuimg project --max a.pgm b.pgm o.pgm",
                2,
                "the method comes first: gpuimg project max IN... OUT",
            ),
            (
                "gpuimg project max a.pgm b.pgm -o o.pgm",
                2,
                "the output comes last: gpuimg project max IN... OUT",
            ),
            (
                "gpuimg convert --slices 2-4 a.pgm o.pgm",
                2,
                "use --pages N-M",
            ),
            (
                "gpuimg convert --pages 2,4 a.pgm o.pgm",
                2,
                "invalid page '2,4': expected a page, as 3, or a range of pages, as 2-9",
            ),
            (
                "gpuimg convert --raw 3x2:u16 frame.raw o.pgm",
                2,
                "the byte order of 'u16' is missing: use u16le or u16be",
            ),
            (
                "gpuimg crop a.pgm o.pgm",
                2,
                "crop: expected X,Y,WxH, as 100,50,640x480, first, got 'a.pgm'",
            ),
            (
                "gpuimg convert --size 3x2 frame.raw o.pgm",
                2,
                "--raw WIDTHxHEIGHT:u16le",
            ),
        ],
    );
}
