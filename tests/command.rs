//! The command as a user meets it: files in and out, exit statuses, one message an error, and
//! nothing left after.

use crate::support::{
    Run, binary, folder, gpu, listing, on_small_disk, own_copy, run, sample, skipped,
};
use gpuimg::internals::gpu::driver::Gpu;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs in a folder of its own that holds `files`; the outcome must be `status`, with `sentence` in
/// the one line on standard error, and the folder as it was.
fn refused(files: &[(&str, &[u8])], args: &[&str], status: i32, sentence: &str) {
    let folder = folder(files);
    let before = listing(folder.path());
    let Run {
        code,
        stdout,
        stderr,
    } = run(folder.path(), args, &[]);
    assert_eq!(code, status, "{args:?}: {stderr}");
    assert!(
        stderr.contains(sentence),
        "{args:?}: {stderr:?} does not say {sentence:?}"
    );
    assert!(stdout.is_empty(), "{args:?} printed {stdout:?}");
    if status != 2 {
        assert_eq!(
            stderr.lines().count(),
            1,
            "{args:?}: more than a sentence: {stderr}"
        );
    }
    assert_eq!(
        listing(folder.path()),
        before,
        "{args:?} left something behind"
    );
}

fn png() -> Vec<u8> {
    fs::read(sample("photo-rgb16.png")).expect("sample")
}

fn tiff() -> Vec<u8> {
    fs::read(sample("thermal.tif")).expect("sample")
}

#[test]
fn a_text_file_is_no_image() {
    let args = ["normalize", "in.png", "out.png"];
    refused(
        &[("in.png", b"not pixels")],
        &args,
        1,
        "gpuimg: cannot read in.png: it is not a supported image format (see `gpuimg formats`; --raw reads samples without a header)",
    );
}

#[test]
fn an_empty_file_is_no_image() {
    refused(
        &[("in.png", b"")],
        &["normalize", "in.png", "out.png"],
        1,
        "cannot read in.png: the file is empty",
    );
}

#[test]
fn a_missing_file_is_named() {
    refused(
        &[],
        &["normalize", "in.png", "out.png"],
        1,
        "cannot read in.png: no such file",
    );
}

#[test]
fn a_directory_does_not_become_a_file() {
    refused(
        &[("in/x", b"")],
        &["normalize", "in", "out.png"],
        2,
        "in is a folder of images, but out.png is the name of one image: give an output folder last, e.g. out/",
    );
}

#[test]
fn a_truncated_png_says_where() {
    let png = &png()[..300_000];
    refused(
        &[("in.png", png)],
        &["normalize", "in.png", "out.png"],
        1,
        "cannot read in.png: truncated",
    );
}

#[test]
fn a_truncated_tiff_says_where() {
    let tiff = &tiff()[..600_000];
    refused(
        &[("in.tif", tiff)],
        &["rotate", "90", "in.tif", "out.tif"],
        1,
        "cannot read in.tif: truncated at byte 600000 of",
    );
}

#[test]
fn a_damaged_png_names_the_chunk() {
    let mut png = png();
    png[200_000] ^= 1;
    refused(
        &[("in.png", &png)],
        &["normalize", "in.png", "out.png"],
        1,
        "IDAT",
    );
}

#[test]
fn a_missing_output_is_wrong_usage() {
    refused(
        &[("in.png", &png())],
        &["normalize", "in.png"],
        2,
        "expected an input and an output",
    );
}

#[test]
fn a_missing_folder_is_named() {
    refused(
        &[("in.png", &png())],
        &["normalize", "in.png", "no/out.png"],
        1,
        "cannot write no/out.png: folder no does not exist",
    );
}

#[test]
fn an_unknown_extension_is_wrong_usage() {
    refused(
        &[("in.png", &png())],
        &["normalize", "in.png", "out.xyz"],
        2,
        ".xyz is not supported",
    );
}

#[test]
fn wrong_usage_was_called_an_error_twice() {
    let folder = folder(&[("in.pgm", b"P5 2 1 255\n\x10\x20")]);
    for (args, sentence) in [
        (
            &["normalize", "in.pgm", "out.xyz"][..],
            "gpuimg: cannot write out.xyz: the extension .xyz is not supported",
        ),
        (
            &["sum", "-", "-"],
            "gpuimg: standard input (-) is given twice",
        ),
        (&["verify", "in.pgm"], "gpuimg: verify takes two images"),
    ] {
        let Run { code, stderr, .. } = run(folder.path(), args, &[]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.starts_with(sentence), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn wrong_values_are_wrong_usage() {
    let files: [(&str, &[u8]); 1] = [("in.png", &png())];
    refused(
        &files,
        &["normalize", "--range", "5:5", "in.png", "out.png"],
        2,
        "the first value must be below the second",
    );
    refused(
        &files,
        &["normalize", "--to", "0:70000", "in.png", "out.png"],
        2,
        "not a whole number from -32768 to 65535",
    );
    refused(
        &files,
        &["rotate", "45", "in.png", "out.png"],
        2,
        "rotate: expected 90, 180 or 270 first, got '45'",
    );
    refused(
        &files,
        &["normalize", "--device", "tpu", "in.png", "out.png"],
        2,
        "expected auto, cpu, gpu or gpu:N",
    );
}

#[test]
fn a_range_beyond_eight_bits_is_refused_for_an_eight_bit_image() {
    let files: [(&str, &[u8]); 1] = [("in.pgm", b"P5 2 1 255\n\x10\x20")];
    let args = ["normalize", "--range", "0:4095", "in.pgm", "out.pgm"];
    refused(
        &files,
        &args,
        1,
        "--range 0:4095 exceeds 0:255, the range of 8 bits without sign",
    );
}

#[test]
fn several_pages_go_into_no_png() {
    let stack = fs::read(sample("nuclei-stack.tif")).expect("sample");
    refused(
        &[("in.tif", &stack)],
        &["normalize", "in.tif", "out.png"],
        1,
        "pages do not fit into one PNG file: --pages N selects one, --split writes a file for each, and TIFF, NumPy, FITS and Zarr can hold all",
    );
}

#[test]
fn a_gpu_that_is_not_there_is_status_3() {
    let folder = folder(&[("in.png", &png())]);
    let args = ["normalize", "--device", "gpu", "in.png", "out.png"];
    let Run { code, stderr, .. } = run(folder.path(), &args, &[("CUDA_VISIBLE_DEVICES", "")]);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.starts_with("gpuimg: the GPU is not usable: "),
        "{stderr}"
    );
    assert_eq!(listing(folder.path()), ["in.png"]);
    let Run { code, stderr, .. } = run(
        folder.path(),
        &["sum", "in.png", "in.png"],
        &[("GPUIMG_DEVICE", "gpu:99")],
    );
    assert_eq!(code, 3, "{stderr}");
}

#[test]
fn a_device_of_the_environment_was_at_odds_with_low_memory() {
    let folder = folder(&[("in.tif", &tiff())]);
    let args = ["normalize", "--low-memory", "in.tif", "out.tif"];
    let env = [("GPUIMG_DEVICE", "gpu"), ("CUDA_VISIBLE_DEVICES", "")];
    let Run { code, stderr, .. } = run(folder.path(), &args, &env);
    assert_eq!(
        code, 0,
        "a variable is a default, and no conflict: {stderr}"
    );
    let typed = [&args[..], &["--overwrite", "--device", "gpu"]].concat();
    let Run { code, stderr, .. } = run(folder.path(), &typed, &env);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("remove --device gpu"), "{stderr}");
}

#[test]
fn a_gpu_that_this_machine_does_not_have_is_told_in_a_sentence() {
    if gpu(3).is_none() {
        return;
    }
    let folder = folder(&[("in.png", &png())]);
    let count = Gpu::count();
    let beyond = format!("GPU {count} does not exist: this machine has {count}, numbered from 0");
    let hidden = [("CUDA_VISIBLE_DEVICES", "")];
    let no_gpu = "the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES is '')";
    for (device, env, sentence) in [
        (format!("gpu:{count}"), &[][..], beyond.as_str()),
        ("gpu".into(), &hidden, no_gpu),
        ("gpu:0".into(), &hidden, no_gpu),
    ] {
        let args = ["normalize", "--device", &device, "in.png", "out.png"];
        let Run { code, stderr, .. } = run(folder.path(), &args, env);
        assert_eq!(code, 3, "{stderr}");
        assert!(
            stderr.starts_with("gpuimg: the GPU is not usable: "),
            "{stderr}"
        );
        assert!(stderr.contains(sentence), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(listing(folder.path()), ["in.png"]);
    }
    // Hidden GPUs are no trouble to who did not ask for one.
    let Run { code, stderr, .. } = run(folder.path(), &["sum", "in.png"], &hidden);
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let folder = folder(&[("in.png", &png())]);
    let script = "\"$0\" normalize in.png small/out.png; status=$?; ls -A small; exit $status";
    let Some(run) = on_small_disk(folder.path(), 64, script, "the full disk") else {
        return;
    };
    let expected = "gpuimg: cannot write small/out.png: no space left on the disk\n";
    assert_eq!((run.code, run.stderr.as_str()), (1, expected));
    assert_eq!(run.stdout, "", "something was left behind");
}

#[test]
fn an_unwritable_folder_is_told() {
    let folder = folder(&[("in.png", &png()), ("locked/x", b"")]);
    let program = own_copy(folder.path());
    for (path, mode) in [
        ("", 0o755),
        ("gpuimg", 0o755),
        ("in.png", 0o644),
        ("locked", 0o555),
    ] {
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(mode))
            .expect("mode");
    }
    let mut command = Command::new(program);
    command
        .args(["normalize", "in.png", "locked/out.png"])
        .current_dir(folder.path());
    // Permissions do not bind root, so root asks as nobody.
    if is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().expect("run");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(
        stderr,
        "gpuimg: cannot write locked/out.png: folder locked: permission denied\n"
    );
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0)
}

#[test]
fn an_existing_target_is_kept_unless_told() {
    let folder = folder(&[("in.png", &png()), ("out.png", b"precious")]);
    let args = ["normalize", "in.png", "out.png"];
    let Run { code, stderr, .. } = run(folder.path(), &args, &[]);
    assert_eq!(code, 1);
    assert_eq!(
        stderr,
        "gpuimg: cannot write out.png: it already exists (use --overwrite to replace it)\n"
    );
    assert_eq!(
        fs::read(folder.path().join("out.png")).expect("out"),
        b"precious"
    );
    let Run { code, stderr, .. } = run(folder.path(), &[&args[..], &["--overwrite"]].concat(), &[]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_ne!(
        fs::read(folder.path().join("out.png")).expect("out"),
        b"precious"
    );
    assert_eq!(listing(folder.path()), ["in.png", "out.png"]);
}

#[test]
fn a_failure_leaves_the_old_target() {
    let folder = folder(&[("in.png", &png()[..9999]), ("out.png", b"precious")]);
    let Run { code, .. } = run(
        folder.path(),
        &["normalize", "in.png", "out.png", "--overwrite"],
        &[],
    );
    assert_eq!(code, 1);
    assert_eq!(
        fs::read(folder.path().join("out.png")).expect("out"),
        b"precious"
    );
    assert_eq!(listing(folder.path()), ["in.png", "out.png"]);
}

#[test]
fn the_input_may_be_the_output() {
    let folder = folder(&[("a.tif", &tiff())]);
    for _ in 0..2 {
        let Run { code, stderr, .. } = run(
            folder.path(),
            &["rotate", "180", "a.tif", "a.tif", "--overwrite"],
            &[],
        );
        assert_eq!((code, stderr.as_str()), (0, ""));
    }
    run(folder.path(), &["flip", "vertical", "a.tif", "b.pgm"], &[]);
    run(
        folder.path(),
        &[
            "flip",
            "vertical",
            &sample("thermal.tif").to_string_lossy(),
            "c.pgm",
        ],
        &[],
    );
    let read = |name| fs::read(folder.path().join(name)).expect("output");
    assert_eq!(read("b.pgm"), read("c.pgm"));
}

#[test]
fn a_link_stays_a_link() {
    let folder = folder(&[("in.png", &png()), ("real.png", b"old")]);
    std::os::unix::fs::symlink("real.png", folder.path().join("link.png")).expect("link");
    let Run { code, .. } = run(
        folder.path(),
        &["normalize", "in.png", "link.png", "--overwrite"],
        &[],
    );
    assert_eq!(code, 0);
    assert!(folder.path().join("link.png").is_symlink());
    assert_ne!(
        fs::read(folder.path().join("real.png")).expect("real"),
        b"old"
    );
}

#[test]
fn standard_streams_carry_images() {
    let folder = folder(&[(
        "in.pgm",
        b"P5 3 2 65535\n\0\x01\0\x02\0\x03\0\x04\0\x05\0\x06",
    )]);
    let output = Command::new(binary())
        .args(["transpose", "-", "-", "--format", "pnm"])
        .stdin(fs::File::open(folder.path().join("in.pgm")).expect("in"))
        .stdout(Stdio::piped())
        .output()
        .expect("run");
    assert!(output.status.success());
    assert_eq!(
        output.stdout,
        b"P5\n2 3\n65535\n\0\x01\0\x04\0\x02\0\x05\0\x03\0\x06"
    );
}

#[test]
fn depth_is_changed_only_when_asked() {
    let folder = folder(&[
        ("in.pgm", b"P5 3 1 65535\n\0\0\x80\0\xff\xff"),
        ("bytes.pgm", b"P5 3 1 255\n\x05\x07\x09"),
    ]);
    let out = |args: &[&str]| {
        let Run { code, stderr, .. } = run(
            folder.path(),
            &[args, &["out.pgm", "--overwrite"]].concat(),
            &[],
        );
        assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}");
        fs::read(folder.path().join("out.pgm")).expect("out")
    };
    assert_eq!(
        out(&["rotate", "180", "in.pgm"]),
        b"P5\n3 1\n65535\n\xff\xff\x80\0\0\0"
    );
    // 32768·255/65535 = 127.502 rounds to 128.
    assert_eq!(
        out(&["rotate", "180", "in.pgm", "--depth", "8"]),
        b"P5\n3 1\n255\n\xff\x80\0"
    );
    assert_eq!(
        out(&["normalize", "bytes.pgm"]),
        b"P5\n3 1\n255\n\0\x80\xff"
    );
    assert_eq!(
        out(&["normalize", "bytes.pgm", "--depth", "16"]),
        b"P5\n3 1\n65535\n\0\0\x80\0\xff\xff"
    );
    assert_eq!(
        out(&["normalize", "in.pgm", "--depth", "8"]),
        b"P5\n3 1\n255\n\0\x80\xff"
    );
}

#[test]
fn a_flat_image_gets_one_warning() {
    let folder = folder(&[("in.pgm", b"P5 2 1 255\n\x07\x07")]);
    let Run { code, stderr, .. } = run(folder.path(), &["normalize", "in.pgm", "out.pgm"], &[]);
    assert_eq!(code, 0);
    assert_eq!(
        stderr,
        "gpuimg: warning: in.pgm: the image is flat (every sample is 7) and left unchanged\n"
    );
    assert_eq!(
        fs::read(folder.path().join("out.pgm")).expect("out"),
        b"P5\n2 1\n255\n\x07\x07"
    );
    let quiet = ["normalize", "in.pgm", "quiet.pgm", "-q"];
    assert_eq!(run(folder.path(), &quiet, &[]).stderr, "");
}

#[test]
fn sums_go_on_past_a_bad_file() {
    let folder = folder(&[
        ("a.pgm", b"P5 2 1 255\n\x07\x08"),
        ("b.pgm", b"P5 2 1 255\n\x07"),
        ("c.pgm", b"P5 1 1 65535\n\xff\xff"),
    ]);
    let Run {
        code,
        stdout,
        stderr,
    } = run(folder.path(), &["sum", "a.pgm", "b.pgm", "c.pgm"], &[]);
    assert_eq!(code, 1);
    assert_eq!(stdout, "a.pgm: sum 15\nc.pgm: sum 65535\n");
    assert!(
        stderr.contains("\ngpuimg: cannot read b.pgm: truncated"),
        "{stderr}"
    );
    let Run { stdout, .. } = run(folder.path(), &["sum", "--all", "--json", "a.pgm"], &[]);
    let line: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (&line["sum"], &line["min"], &line["max"], &line["mean"]),
        (&15.into(), &7.into(), &8.into(), &7.5.into())
    );
}

#[test]
fn stats_name_every_station() {
    let folder = folder(&[("in.png", &png())]);
    let args = [
        "normalize",
        "in.png",
        "out.png",
        "--device",
        "cpu",
        "--stats=json",
    ];
    let Run { code, stderr, .. } = run(folder.path(), &args, &[]);
    assert_eq!(code, 0, "{stderr}");
    let stats: serde_json::Value = serde_json::from_str(&stderr).expect("JSON");
    assert_eq!(stats["schema"], 2);
    let names: Vec<&str> = stats["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["read", "decode", "minmax", "scale", "encode", "write"]
    );
    assert!(stats["sum_ms"].as_f64().expect("sum") > 0.0);
    let text = run(
        folder.path(),
        &["normalize", "in.png", "out.png", "--stats", "--overwrite"],
        &[],
    )
    .stderr;
    assert!(text.contains("chosen by auto"), "{text}");
    let (first, last) = (text.lines().next(), text.lines().last());
    let first = first.expect("a sentence");
    assert!(first.contains("s: ") && first.contains(" %"), "{text}");
    assert!(last.expect("a line").starts_with("stages "), "{text}");
}

#[test]
fn samples_are_what_other_decoders_say() {
    let mut compared = 0;
    for (name, (width, height, values)) in [
        (
            "photo-rgb16.png",
            by_image_crate(&sample("photo-rgb16.png")),
        ),
        ("thermal.tif", by_tiff_crate(&sample("thermal.tif"))),
        ("nuclei.tif", by_tiff_crate(&sample("nuclei.tif"))),
    ] {
        let (min, max) = values.iter().fold((u16::MAX, 0), |(min, max), &value| {
            (min.min(value), max.max(value))
        });
        let d = u64::from(max - min);
        let expected: Vec<u16> = values
            .iter()
            .map(|&value| ((u64::from(value - min) * 2 * 65535 + d) / (2 * d)) as u16)
            .collect();
        let folder = folder(&[]);
        for output in ["out.png", "out.tif"] {
            let input = sample(name);
            let Run { code, stderr, .. } = run(
                folder.path(),
                &["normalize", &input.to_string_lossy(), output],
                &[],
            );
            assert_eq!((code, stderr.as_str()), (0, ""), "{name}");
            let path = folder.path().join(output);
            let found = if output.ends_with("png") {
                by_image_crate(&path)
            } else {
                by_tiff_crate(&path)
            };
            assert!(
                found == (width, height, expected.clone()),
                "{name} as {output}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 6);
}

fn by_image_crate(path: &Path) -> (u32, u32, Vec<u16>) {
    let image = image::open(path).expect("image crate");
    let (width, height) = (image.width(), image.height());
    let values = match image {
        image::DynamicImage::ImageLuma16(image) => image.into_raw(),
        image::DynamicImage::ImageRgb16(image) => image.into_raw(),
        other => panic!("{:?}", other.color()),
    };
    (width, height, values)
}

fn by_tiff_crate(path: &Path) -> (u32, u32, Vec<u16>) {
    let mut decoder =
        tiff::decoder::Decoder::new(fs::File::open(path).expect("open")).expect("tiff crate");
    let (width, height) = decoder.dimensions().expect("dimensions");
    match decoder.read_image().expect("pixels") {
        tiff::decoder::DecodingResult::U16(values) => (width, height, values),
        _ => panic!("16 bits were expected"),
    }
}

#[test]
fn a_broken_driver_is_told_in_a_sentence() {
    let root = folder(&[("in.pgm", b"P5 2 1 255\n\x07\x08")]);
    // Libraries that call themselves the driver.
    let version = "int cuDriverGetVersion(int *v) { *v = VERSION; return 0; } int cuInit(unsigned f) { return INIT; }";
    let count = "int cuDeviceGetCount(int *n) { *n = 0; return 0; }";
    let cases = [
        (
            "empty",
            "int nothing;".into(),
            "the NVIDIA driver is broken: Missing symbol cuDriverGetVersion",
        ),
        (
            "dead",
            version.replace("VERSION", "12040").replace("INIT", "999"),
            "the NVIDIA driver is broken",
        ),
        (
            "old",
            version.replace("VERSION", "11020").replace("INIT", "0"),
            "it supports CUDA 11.2, but 12.0 is required",
        ),
        (
            "none",
            version.replace("VERSION", "12040").replace("INIT", "0") + count,
            "the NVIDIA driver shows no GPU",
        ),
    ];
    for (name, source, sentence) in cases {
        let place = root.path().join(name);
        fs::create_dir(&place).expect("folder");
        fs::write(place.join("stub.c"), source).expect("source");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "libcuda.so", "stub.c"])
            .current_dir(&place)
            .status();
        let _ = fs::copy(place.join("libcuda.so"), place.join("libcuda.so.1"));
        if !built.is_ok_and(|status| status.success()) {
            return skipped("the broken driver: no C compiler here");
        }
        let place = place.to_string_lossy().into_owned();
        let with = |device: &str| {
            let env = [("LD_LIBRARY_PATH", place.as_str())];
            run(root.path(), &["sum", "in.pgm", "--device", device], &env)
        };
        let Run { code, stderr, .. } = with("gpu");
        assert_eq!(code, 3, "{name}: {stderr}");
        assert!(
            stderr.starts_with("gpuimg: the GPU is not usable: "),
            "{name}: {stderr}"
        );
        assert!(stderr.contains(sentence), "{name}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{name}: {stderr}");
        assert_eq!(with("auto").code, 0, "{name}");
    }
}

#[test]
fn a_form_of_stats_typed_as_a_word_became_a_folder() {
    let folder = folder(&[("in.png", &png()), ("json/in.png", &png())]);
    for (word, right) in [
        ("json", "--stats=json"),
        ("text", "--stats=text"),
        ("csv", "--stats=json"),
        ("t.html", "--stats=t.html"),
    ] {
        let done = run(
            folder.path(),
            &["normalize", "in.png", "--stats", word],
            &[],
        );
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains(right), "{}", done.stderr);
    }
    assert_eq!(listing(folder.path()), ["in.png", "json"]);
    // What cannot be meant so.
    for args in [
        &["sum", "--stats", "./json"][..],
        &["sum", "--stats", "--", "json"],
        &["sum", "json", "--stats"],
    ] {
        let done = run(folder.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    }
}

#[test]
fn jpeg_without_a_depth_failed_page_by_page() {
    let deep = [&b"P5\n2 2\n65535\n"[..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
    let flat = [&b"P5\n2 2\n255\n"[..], &[1, 2, 3, 4]].concat();
    let folder = folder(&[
        ("in/a.pgm", &deep),
        ("in/b.pgm", &deep),
        ("flat.pgm", &flat),
    ]);
    let go = |args: &[&str]| {
        let done = run(folder.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        done.stderr
    };
    let bytes = |name: &str| fs::read(folder.path().join(name)).expect(name);
    for (verb, extension) in [
        ("normalize", "jpg"),
        ("normalize", "bmp"),
        ("flip h", "jpg"),
    ] {
        let place = verb.split(' ').next().unwrap_or_default();
        let name = |name: &str| format!("{place}-{name}.{extension}");
        let [plain, asked, out] = ["plain", "asked", "out"].map(name);
        let verb: Vec<&str> = verb.split(' ').collect();
        let told = go(&[&verb[..], &["in/a.pgm", &plain]].concat());
        assert_eq!(
            told.matches("stores 8 bits per sample").count(),
            1,
            "{told}"
        );
        let told = go(&[&verb[..], &["in/a.pgm", &asked, "--depth", "8"]].concat());
        assert_eq!(told, "");
        assert!(bytes(&plain) == bytes(&asked), "{extension}");
        // Nothing is converted, and so nothing is said.
        assert_eq!(go(&[&verb[..], &["flat.pgm", &out]].concat()), "");
        // A folder of results, by both ways to name their format.
        let (one, two) = (
            format!("{place}{extension}1/"),
            format!("{place}{extension}2/"),
        );
        let name = format!("{{stem}}.{extension}");
        let told = go(&[&verb[..], &["in", &one, "--format", extension]].concat());
        assert_eq!(
            told.matches("stores 8 bits per sample").count(),
            1,
            "{told}"
        );
        let told = go(&[&verb[..], &["in", &two, "--name", &name]].concat());
        assert_eq!(
            told.matches("stores 8 bits per sample").count(),
            1,
            "{told}"
        );
        assert!(bytes(&format!("{one}a.{extension}")) == bytes(&asked));
        assert!(bytes(&format!("{two}a.{extension}")) == bytes(&asked));
    }
}

#[test]
fn a_window_of_unsigned_images_was_refused_as_a_range() {
    let folder = folder(&[("ct.pgm", b"P5 2 1 65535\n\0\x01\0\x02")]);
    let done = run(
        folder.path(),
        &["normalize", "--window", "40:400", "ct.pgm", "o.png"],
        &[],
    );
    assert_eq!(done.code, 1, "{}", done.stderr);
    let message = "--window: the range -160:239 exceeds 0:65535";
    assert!(done.stderr.contains(message), "{}", done.stderr);
    assert!(done.stderr.contains("1024"), "{}", done.stderr);
    let window = ["normalize", "--window", "1064:400", "ct.pgm", "o.png"];
    assert_eq!(run(folder.path(), &window, &[]).code, 0);
}

#[test]
fn help_of_name_broke_the_line_at_a_number() {
    let done = run(Path::new("/"), &["normalize", "--help"], &[]);
    let words: Vec<&str> = done.stdout.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("{n:05} for the number"), "{words}");
    assert!(!done.stdout.contains(", \n"), "{}", done.stdout);
}

#[test]
fn project_advised_an_option_that_it_refuses() {
    let folder = folder(&[("a.pgm", b"P5 2 1 65535\n\0\x01\0\x02")]);
    let done = run(folder.path(), &["project", "max", "a.pgm", "o.jpg"], &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let told = "JPEG stores 8 bits per sample: deeper samples are converted as with --depth 8";
    assert!(done.stderr.contains(told), "{}", done.stderr);
}

#[test]
fn manual_pages_filled_the_lines_of_the_examples() {
    let folder = folder(&[]);
    let done = run(folder.path(), &["man", "."], &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for verb in ["", "-normalize", "-run", "-bench"] {
        let page = fs::read_to_string(folder.path().join(format!("gpuimg{verb}.1"))).unwrap();
        let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n  gpuimg ").expect(verb);
        let (lines, _) = examples.split_once("\n.fi\n").expect(verb);
        assert!(
            lines.lines().count() > 2 && !lines.contains(".SH"),
            "{lines}"
        );
        assert!(!page.contains(".SH EXTRA"), "{page}");
    }
}

/// What bash offers for the last of these words.
fn completed(script: &str, words: &[&str]) -> Option<Vec<String>> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let last = words.len() - 1;
    let ask = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}; _gpuimg gpuimg '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words[last],
        words[last - 1],
    );
    let output = Command::new("bash").args(["-c", &ask]).output().ok()?;
    let text = String::from_utf8(output.stdout).expect("text");
    Some(
        text.lines()
            .filter(|line| !line.is_empty())
            .map(String::from)
            .collect(),
    )
}

#[test]
fn completion_offered_a_dash_for_files_and_hidden_options() {
    let script = run(Path::new("/"), &["completions", "bash"], &[]).stdout;
    assert!(script.contains("--describe") && !script.contains(" --spoil "));
    let Some(files) = completed(&script, &["gpuimg", "normalize", ""]) else {
        return skipped("bash is missing");
    };
    assert!(files.is_empty(), "{files:?}");
    let verbs = completed(&script, &["gpuimg", ""]).expect("bash");
    assert!(verbs.contains(&"rotate".into()), "{verbs:?}");
    assert!(!verbs.iter().any(|word| word.starts_with('-')), "{verbs:?}");
    let angles = completed(&script, &["gpuimg", "rotate", ""]).expect("bash");
    assert!(angles.contains(&"270".into()), "{angles:?}");
    let options = completed(&script, &["gpuimg", "normalize", "--cl"]).expect("bash");
    assert_eq!(options, ["--clip"]);
}
