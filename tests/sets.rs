//! Images of a batch that share the launches of a GPU give what each gives alone on the CPU.

use crate::support::batch::tree;
use crate::support::png::{kinds, zlib};
use crate::support::png_gpu_decode::plain;
use crate::support::{Run, gpu, run};
use std::fs;
use std::path::Path;

/// Sides from which on a GPU decodes, with rests in tiles, words and lanes.
const SIZES: [(usize, usize); 2] = [(523, 517), (640, 512)];

/// PNGs of every kind with several filters, and TIFFs of each compression made of some of them.
fn write_images(root: &Path) {
    let folder = root.join("in");
    fs::create_dir_all(&folder).expect("a folder");
    for (width, height) in SIZES {
        for (colour, bits) in kinds() {
            let plain = plain(width, height, bits, colour, false);
            for filter in [0, 1, 2, 4, 5] {
                let scanlines = plain.scanlines(|y| match filter {
                    5 => (y * 7 % 5) as u8,
                    _ => filter,
                });
                let file = plain.file([&zlib(&scanlines, 6)[..]]);
                let name = format!("{width}-{colour}-{bits}-{filter}.png");
                fs::write(folder.join(name), file).expect("write");
            }
        }
    }
    for tiff in ["none", "lzw", "deflate"] {
        let name = format!("{{stem}}-{tiff}.tif");
        let made = run(
            root,
            &[
                "convert",
                "in",
                "tiff",
                "--include",
                "*-5.png",
                "--name",
                &name,
                "--tiff",
                tiff,
                "--device",
                "cpu",
            ],
            &[],
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    for entry in fs::read_dir(root.join("tiff")).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().ends_with(".tif") {
            fs::rename(entry.path(), folder.join(entry.file_name())).expect("rename");
        }
    }
    // Every fifth also damaged, in its middle or at its end.
    let names: Vec<_> = tree(&folder).into_iter().step_by(5).collect();
    for (index, (name, mut bytes)) in names.into_iter().enumerate() {
        let middle = bytes.len() / 2;
        match index % 2 {
            0 => bytes[middle] ^= 0x55,
            _ => bytes.truncate(middle),
        }
        let name = format!("damaged-{}", name.display());
        fs::write(folder.join(name), bytes).expect("write");
    }
}

/// The lines of a text in alphabetical order, without those that name a device or a time.
fn lines(text: &str) -> Vec<String> {
    let own =
        |line: &&str| !line.contains(" done") && !line.contains("threads") && !line.contains("GPU");
    let mut lines: Vec<String> = text.lines().filter(own).map(Into::into).collect();
    lines.sort();
    lines
}

#[test]
fn images_of_every_kind_share_sets() {
    let verbs = [
        "normalize",
        "normalize --clip 1:99",
        "rotate 90",
        "flip horizontal",
        "convert --depth 8",
        "sum",
    ];
    if gpu(2 * verbs.len()).is_none() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    write_images(root.path());
    for (number, verb) in verbs.into_iter().enumerate() {
        let go = |device: &str, jobs: &[&str]| -> Run {
            let out = format!("{device}{number}");
            let mut args: Vec<&str> = verb.split(' ').collect();
            args.push("in");
            if verb != "sum" {
                args.extend([&*out, "--format", "png"]);
            }
            args.extend(["--device", device, "-v"]);
            args.extend(jobs);
            run(root.path(), &args, &[])
        };
        let (cpu, gpu) = (go("cpu", &[]), go("gpu", &["-j", "64"]));
        assert_eq!(cpu.code, gpu.code, "{verb}: {}", gpu.stderr);
        assert_eq!(lines(&cpu.stdout), lines(&gpu.stdout), "{verb}");
        let failed = |run: &Run| {
            lines(&run.stderr)
                .into_iter()
                .filter(|line| line.contains("cannot"))
                .collect::<Vec<_>>()
        };
        assert_eq!(failed(&cpu), failed(&gpu), "{verb}");
        if verb != "sum" {
            let made =
                ["cpu", "gpu"].map(|device| tree(&root.path().join(format!("{device}{number}"))));
            assert!(made[0].len() > 200, "{verb}: {}", made[0].len());
            for (name, bytes) in &made[0] {
                assert!(
                    made[1].get(name) == Some(bytes),
                    "{verb}: {}",
                    name.display()
                );
            }
            assert_eq!(made[0].len(), made[1].len(), "{verb}");
        }
    }
}
