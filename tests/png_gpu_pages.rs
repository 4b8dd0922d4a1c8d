//! PNG files that a GPU decodes, processes and writes, against the same on the CPU: the bytes of
//! every output, and the message for every damaged file.

use crate::support::gpu_pages::{processed, started};
use crate::support::png::{Plain, zlib};
use crate::support::png_gpu_decode::{damaged, plain};
use crate::support::{Numbers, folder, gpu, listing, run};
use gpuimg::internals::engine::{Resources, RunRecord, process_file};
use gpuimg::internals::formats::Decoder;
use gpuimg::internals::formats::Reading;
use gpuimg::internals::formats::png::PngDecoder;
use gpuimg::internals::gpu::{Choice, Devices};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::os::Source;
use std::fs;

/// A little more than a megapixel, from which on a GPU decodes.
const SIDES: (usize, usize) = (1103, 1009);

const KINDS: [(u8, u8); 8] = [
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 8),
    (4, 16),
    (6, 8),
    (6, 16),
];

fn foreign(colour: u8, bits: u8) -> Vec<u8> {
    let plain = plain(SIDES.0, SIDES.1, bits, colour, false);
    let stream = zlib(&plain.scanlines(|y| [1, 2, 4, 3, 0][y % 5]), 6);
    plain.file(stream.chunks(8192))
}

#[test]
fn pages_decoded_on_the_gpu_give_the_bytes_of_the_cpu() {
    let Some(_) = gpu(3 * KINDS.len()) else {
        return;
    };
    let (on_gpu, on_cpu) = (started(), Devices::new(Choice::Cpu));
    let ops: [&dyn Operation; 3] = [
        &Normalize::default(),
        &Symmetry::Rotate90,
        &Symmetry::FlipVertical,
    ];
    for (colour, bits) in KINDS {
        let root = folder(&[("a.png", &foreign(colour, bits))]);
        let path = |name: &str| root.path().join(name);
        for op in ops {
            for extension in ["png", "tif"] {
                let what = format!(
                    "{}, colour {colour}, {bits} bits, {extension}",
                    op.properties().name
                );
                let outputs = ["gpu", "cpu"].map(|name| path(&format!("{name}.{extension}")));
                let input = path("a.png");
                let done = processed(op, &input, &outputs[0], &on_gpu).expect(&what);
                assert!(
                    done.device.contains("was decoded"),
                    "{what}: {:?}",
                    done.notes
                );
                let expected = processed(op, &input, &outputs[1], &on_cpu).expect(&what);
                assert_eq!(done.warnings, expected.warnings, "{what}");
                assert_eq!(done.results.pages, expected.results.pages, "{what}");
                let [found, expected] = outputs.map(|path| fs::read(path).unwrap());
                assert!(found == expected, "{what}");
            }
        }
        let sum = Sum {
            all: true,
            nan: None,
        };
        let totals = [&on_gpu, &on_cpu].map(|devices| {
            let resources = Resources {
                devices,
                budget: None,
                reading: Reading::default(),
                require_regular_file: false,
                position: None,
                gpu_times: true,
            };
            process_file(&[&sum], &path("a.png"), None, &resources, RunRecord::NONE)
                .unwrap()
                .results
                .totals
        });
        assert_eq!(totals[0], totals[1]);
    }
}

/// Files whose data, checksums or chunks are wrong, and what is cut off.
fn wrong_files() -> Vec<Vec<u8>> {
    let file = foreign(0, 16);
    let mut numbers = Numbers::new(5);
    let mut files: Vec<Vec<u8>> = (0..12)
        .map(|variant| damaged(&file, &mut numbers, variant % 4))
        .collect();
    files.push(file[..file.len() / 2].to_vec());
    files.push(file[..file.len() - 3].to_vec());
    let mut crc = file.clone();
    crc[file.len() / 2] ^= 4;
    files.push(crc);
    files.push([&file[..], b"more"].concat());
    files
}

#[test]
fn damaged_pages_get_the_sentence_of_the_cpu() {
    let files = wrong_files();
    let Some(_) = gpu(files.len()) else { return };
    let (on_gpu, on_cpu) = (started(), Devices::new(Choice::Cpu));
    let mut refused = 0;
    for (index, file) in files.iter().enumerate() {
        let root = folder(&[("a.png", file)]);
        let results = [&on_gpu, &on_cpu].map(|devices| {
            let output = root.path().join("b.png");
            let done = processed(
                &Symmetry::Rotate90,
                &root.path().join("a.png"),
                &output,
                devices,
            );
            let bytes = fs::read(&output).ok();
            fs::remove_file(&output).ok();
            (done.map(|done| done.warnings), bytes)
        });
        refused += usize::from(results[1].0.is_err());
        assert!(results[0] == results[1], "file {index}: {:?}", results[1].0);
    }
    assert!(refused > files.len() / 2, "{refused} refused");
}

/// A batch with enough device memory, and with so little that images are decoded on the host or
/// processed in bands.
#[test]
fn a_batch_of_foreign_files_gives_the_bytes_of_the_cpu() {
    let Some(_) = gpu(3 * KINDS.len()) else {
        return;
    };
    let mut files: Vec<(String, Vec<u8>)> = (KINDS.iter().cycle().take(24).enumerate())
        .map(|(i, &(colour, bits))| (format!("in/{i:02}.png"), foreign(colour, bits)))
        .collect();
    let wrong = wrong_files().swap_remove(12);
    files.push(("in/wrong.png".into(), wrong));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (&n[..], &b[..])).collect();
    let root = folder(&files);
    for verb in ["normalize", "transpose"] {
        let cpu = run(root.path(), &[verb, "in", "cpu", "--device", "cpu"], &[]);
        for limit in ["40G", "40M", "12M"] {
            let env = [("GPUIMG_DEVICE_MEMORY", limit)];
            // Alone on a small GPU: workers beside it could take the memory that a band needs.
            let jobs = if limit == "40G" { "4" } else { "1" };
            let args = [verb, "in", "gpu", "--device", "gpu", "-j", jobs];
            let gpu = run(root.path(), &args, &env);
            assert_eq!((gpu.code, cpu.code), (1, 1), "{}", gpu.stderr);
            let wrong = |stderr: &str| {
                let lines = stderr.lines().filter(|line| line.contains("wrong.png"));
                lines.map(String::from).collect::<Vec<_>>()
            };
            assert_eq!(wrong(&gpu.stderr), wrong(&cpu.stderr));
            let names = listing(&root.path().join("cpu"));
            assert_eq!(listing(&root.path().join("gpu")), names);
            // The journals tell which files these are.
            for name in names.iter().filter(|name| !name.starts_with('.')) {
                let bytes = |folder: &str| fs::read(root.path().join(folder).join(name)).unwrap();
                assert!(bytes("gpu") == bytes("cpu"), "{verb}, {limit}, {name}");
            }
            fs::remove_dir_all(root.path().join("gpu")).unwrap();
        }
        fs::remove_dir_all(root.path().join("cpu")).unwrap();
    }
}

/// Without alpha in the shape, a kernel that writes alpha would write past the samples.
#[test]
fn an_ignored_transparency_chunk_leaves_a_palette_to_the_cpu() {
    let mut paletted: Plain = plain(7, 5, 4, 3, false);
    let packed = |plain: &Plain| {
        let source = Source::memory(plain.encoded(1));
        let decoder = PngDecoder::open(&source, false).unwrap();
        decoder.packed().map(|packed| packed.len())
    };
    assert!(packed(&paletted).is_ok());
    paletted.before.push((*b"tRNS", Vec::new()));
    assert!(packed(&paletted).is_err());
    // Before the palette it is ignored too.
    paletted.before.pop();
    paletted.before.insert(0, (*b"tRNS", vec![9]));
    assert!(packed(&paletted).is_err());
}
