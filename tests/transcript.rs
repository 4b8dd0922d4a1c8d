//! Commands and what they print, from `tests/transcript.txt`: the README's examples, every message for a
//! mistake, and every alias. `TRANSCRIPT=write cargo test transcript` writes what is printed now, to be
//! read before it is kept.
//!
//! The pages of `docs/guide/` are checked in the same way: a page is a session, and its commands stand in blocks of the kind
//! `console`.
//!
//! The file is read as a session: after a line `# NAME` a fresh folder with the samples; `$ COMMAND` is run
//! by `sh`; below stand the lines of both streams, and `[status N]` if N is not 0. `[..]` stands for any
//! text in a line, and a line `...` for any lines.

use crate::support::{binary, repository, sample};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const SAMPLES: [&str; 4] = [
    "photo-rgb16.png",
    "thermal.tif",
    "nuclei.tif",
    "nuclei-stack.tif",
];

/// Part of the test, so that it can be run where there is no source.
const TRANSCRIPT: &str = include_str!("transcript.txt");

fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("folder");
    std::os::unix::fs::symlink(binary(), bin.join("gpuimg")).expect("link");
    let work = folder.path().join("work");
    fs::create_dir(&work).expect("folder");
    for name in SAMPLES {
        fs::copy(sample(name), work.join(name)).expect("sample");
    }
    fs::write(work.join("ct.tif"), crate::support::contract::signed()).expect("a signed image");
    folder
}

/// What a command prints on both streams, and its status.
fn session(folder: &Path, command: &str) -> String {
    let path = format!(
        "{}:{}",
        folder.join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder.join("work"))
        .env("PATH", path)
        .env("HOME", folder.join("work"))
        .env("CUDA_VISIBLE_DEVICES", "")
        // The order in which `ls` prints names.
        .env("LC_ALL", "C")
        .env("RAYON_NUM_THREADS", "2")
        .env_remove("GPUIMG_DEVICE")
        .output()
        .expect("a shell");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let code = output.status.code().expect("a status");
    if code != 0 {
        let _ = writeln!(text, "[status {code}]");
    }
    text
}

/// Whether a line is as expected, where `[..]` stands for anything.
fn fits(expected: &str, found: &str) -> bool {
    let mut pieces = expected.split("[..]");
    let Some(mut rest) = found.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether lines are as expected, where `...` stands for any.
fn all_fit(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["...", rest @ ..] => (0..=found.len()).any(|at| all_fit(rest, &found[at..])),
        [first, rest @ ..] => match found {
            [line, others @ ..] => fits(first, line) && all_fit(rest, others),
            [] => false,
        },
    }
}

/// A text whose commands were run again.
struct Replay {
    /// The text with what the commands print now.
    now: String,
    /// The commands that print something else, with both.
    wrong: String,
    commands: usize,
}

/// Runs the commands of a text: all of them, or those in its blocks of the kind `console`.
fn replay(text: &str, only_blocks: bool) -> Replay {
    let mut replay = Replay {
        now: String::new(),
        wrong: String::new(),
        commands: 0,
    };
    let mut folder = fresh();
    let mut in_session = !only_blocks;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(replay.now, "{line}");
        if only_blocks && line.starts_with("```") {
            in_session = line == "```console";
        } else if !only_blocks && line.starts_with("# ") {
            folder = fresh();
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_session) else {
            continue;
        };
        let is_output = |line: &&str| {
            !line.is_empty()
                && !["# ", "$ ", "```"]
                    .iter()
                    .any(|mark| line.starts_with(mark))
        };
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(is_output) {
            expected.push(line);
        }
        let printed = session(folder.path(), command);
        let found: Vec<&str> = printed.lines().collect();
        replay.commands += 1;
        if all_fit(&expected, &found) {
            expected.iter().for_each(|line| {
                let _ = writeln!(replay.now, "{line}");
            });
        } else {
            replay.now += &printed;
            let expected = expected.join("\n");
            let _ = writeln!(
                replay.wrong,
                "$ {command}\n{printed}instead of\n{expected}\n"
            );
        }
    }
    replay
}

/// Whether the files are to be written as the commands print now.
fn writes() -> bool {
    std::env::var_os("TRANSCRIPT").is_some_and(|value| value == "write")
}

#[test]
fn the_transcript_is_true() {
    let replay = replay(TRANSCRIPT, false);
    if writes() {
        return fs::write(repository("tests/transcript.txt"), replay.now).expect("the transcript");
    }
    assert!(replay.wrong.is_empty(), "{}", replay.wrong);
    assert!(replay.commands > 80, "{}", replay.commands);
}

/// The session of each kind of user.
const FIRST_COMMANDS: &str = include_str!("../docs/guide/first-commands.md");

/// The pages of the guide, a session each. Part of the test, as the transcript is.
const GUIDE: [(&str, &str); 8] = [
    ("first-steps", include_str!("../docs/guide/first-steps.md")),
    ("first-commands", FIRST_COMMANDS),
    ("microscopy", include_str!("../docs/guide/microscopy.md")),
    ("ct", include_str!("../docs/guide/ct.md")),
    ("camera", include_str!("../docs/guide/camera.md")),
    ("astronomy", include_str!("../docs/guide/astronomy.md")),
    ("folders", include_str!("../docs/guide/folders.md")),
    (
        "troubleshooting",
        include_str!("../docs/guide/troubleshooting.md"),
    ),
];

#[test]
fn the_guide_is_true() {
    let mut wrong = String::new();
    for (name, page) in GUIDE {
        let replay = replay(page, true);
        let file = format!("docs/guide/{name}.md");
        if writes() {
            fs::write(repository(&file), replay.now).expect("a page of the guide");
            continue;
        }
        assert!(replay.commands >= 4, "{file}: {}", replay.commands);
        if !replay.wrong.is_empty() {
            let _ = writeln!(wrong, "{file}\n{}", replay.wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A word that is not a verb is answered with a command, and the next line of the session begins as that command does.
#[test]
fn the_first_commands_of_six_kinds_of_users_work_or_are_answered() {
    let users: Vec<&str> = FIRST_COMMANDS.split("\n## ").skip(1).collect();
    assert_eq!(users.len(), 6);
    for user in users {
        let lines: Vec<&str> = user.lines().collect();
        for verb in ["info", "preview"] {
            let command = format!("$ gpuimg {verb} ");
            assert!(
                lines.iter().any(|line| line.starts_with(&command)),
                "{user}"
            );
        }
        let mut answers = 0;
        for (index, line) in lines.iter().enumerate() {
            if let Some((_, answer)) = line.split_once("unknown verb ") {
                let mut later = lines[index..].iter();
                let next = later
                    .find_map(|line| line.strip_prefix("$ "))
                    .expect("a command");
                let words: Vec<&str> = next.split(' ').take(2).collect();
                assert!(answer.contains(&words.join(" ")), "{line}: {next}");
                answers += 1;
            }
        }
        assert!(answers > 0 || user.contains("[status "), "{user}");
    }
    for word in [
        "convert", "info", "crop", "preview", "stack", "mip", "average", "median", "combine",
        "debayer", "brighten", "resize",
    ] {
        let command = format!("\n$ gpuimg {word} ");
        assert!(FIRST_COMMANDS.contains(&command), "{word}");
    }
}

#[test]
fn the_transcript_has_every_example_of_the_readme_and_of_the_helps() {
    let run: Vec<&str> = TRANSCRIPT
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    let documents = [
        include_str!("../README.md"),
        include_str!("../docs/USAGE.md"),
        include_str!("../docs/BATCH.md"),
        include_str!("../docs/CLUSTER.md"),
    ];
    let mut shown: Vec<String> = Vec::new();
    let mut example = |line: &str| {
        let line = line.trim_start();
        if line.starts_with("gpuimg ") {
            // A remark stands after two spaces.
            let command = line.split("  ").next().unwrap_or(line);
            shown.push(command.trim_end().into());
        }
    };
    let mut inside = false;
    for line in documents.iter().flat_map(|document| document.lines()) {
        match line.strip_prefix("```") {
            Some(kind) => inside = kind == "text",
            None if inside => example(line),
            None => {}
        }
    }
    let verbs = [
        "normalize",
        "transpose",
        "rotate",
        "flip",
        "restore",
        "sum",
        "histogram",
        "merge",
        "verify",
        "project",
        "prove",
        "calibrate",
        "run",
        "convert",
        "combine",
        "crop",
        "debayer",
        "lut",
        "info",
        "preview",
    ];
    for verb in verbs {
        let help = Command::new(binary())
            .args([verb, "--help"])
            .output()
            .expect("help");
        let help = String::from_utf8(help.stdout).expect("text");
        let (_, examples) = help.split_once("Examples:\n").expect("examples");
        examples.lines().for_each(&mut example);
    }
    assert!(shown.len() > 20, "{shown:?}");
    for command in shown {
        // The shell's own lines, as a redirection before it, are not part of the example.
        assert!(
            run.iter().any(|line| line.contains(&command)),
            "not in the transcript: {command}"
        );
    }
}
