//! What a terminal shows, on pseudo-terminals of 40, 80 and 200 columns: bars that fit it, and lines that
//! stay.

use crate::support::batch::series;
use crate::support::{binary, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// A terminal's screen and what has scrolled off it, as far as the program's bars use one.
struct Screen {
    columns: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// How often a line was longer than the screen is wide.
    wrapped: usize,
}

impl Screen {
    fn new(columns: usize) -> Screen {
        Screen {
            columns,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            wrapped: 0,
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            self.wrapped += 1;
            self.column = 0;
            self.down();
        }
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = c;
        self.column += 1;
    }

    /// Carries out one escape sequence, `ESC [ … letter`.
    fn escape(&mut self, number: usize, letter: char) {
        match letter {
            'A' => self.row = self.row.saturating_sub(number.max(1)),
            'B' => (0..number.max(1)).for_each(|_| self.down()),
            'G' => self.column = number.saturating_sub(1),
            'D' => self.column = self.column.saturating_sub(number.max(1)),
            'C' => self.column += number.max(1),
            'K' if number == 2 => self.lines[self.row].clear(),
            'K' => self.lines[self.row].truncate(self.column),
            'J' => {
                self.lines[self.row].truncate(self.column);
                self.lines.truncate(self.row + 1);
            }
            // Colours, and whether the cursor shows.
            'm' | 'h' | 'l' => {}
            other => panic!("a sequence that this screen does not know: {other}"),
        }
    }

    fn show(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.down(),
                '\u{1b}' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut number = String::new();
                    let letter = loop {
                        match chars.next().expect("a whole sequence") {
                            c if c.is_ascii_alphabetic() => break c,
                            c => number.push(c),
                        }
                    };
                    self.escape(number.parse().unwrap_or(0), letter);
                }
                c => self.put(c),
            }
        }
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(String::from_iter);
        let lines: Vec<String> = lines.map(|line| line.trim_end().into()).collect();
        lines.join("\n")
    }
}

/// A terminal of so many columns: the window's side, and the program's.
fn terminal(columns: usize) -> (OwnedFd, File) {
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("pty");
    grantpt(&window).expect("pty");
    unlockpt(&window).expect("pty");
    let name = ptsname(&window, Vec::new()).expect("pty");
    let size = Winsize {
        ws_row: 50,
        ws_col: columns as u16,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let mut options = OpenOptions::new();
    let side = options
        .read(true)
        .write(true)
        .open(name.to_str().expect("text"));
    let side = side.expect("pty");
    tcsetwinsize(&side, size).expect("pty");
    (window, side)
}

/// Runs the program on a terminal, with standard output elsewhere unless `both`. What it wrote, and its
/// standard output if that was elsewhere.
fn on_terminal(folder: &Path, columns: usize, both: bool, args: &[&str]) -> (String, String) {
    let (window, side) = terminal(columns);
    let reader = thread::spawn(move || {
        let mut window = File::from(window);
        let mut bytes = Vec::new();
        // At the end, when nobody has the other side any more, reading fails.
        let mut some = [0; 4096];
        while let Ok(count @ 1..) = window.read(&mut some) {
            bytes.extend_from_slice(&some[..count]);
        }
        String::from_utf8(bytes).expect("text")
    });
    let stdout = match both {
        true => Stdio::from(side.try_clone().expect("pty")),
        false => Stdio::piped(),
    };
    let child = Command::new(binary())
        .args(args)
        .current_dir(folder)
        .env_remove("GPUIMG_DEVICE")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(side)
        .spawn()
        .expect("the program runs");
    let output = child.wait_with_output().expect("an end");
    let shown = reader.join().expect("reader");
    (shown, String::from_utf8(output.stdout).expect("text"))
}

const WIDTHS: [usize; 3] = [40, 80, 200];

#[test]
fn at_80_columns_sums_erased_their_own_results() {
    let (root, _) = series(24);
    let expected = on_terminal(root.path(), 80, false, &["sum", "--all", "in"]).1;
    assert_eq!(expected.lines().count(), 24);
    for columns in WIDTHS {
        let (shown, _) = on_terminal(root.path(), columns, true, &["sum", "--all", "in"]);
        assert!(!shown.contains('\u{1b}'), "a bar among results: {shown}");
        for line in expected.lines() {
            assert!(shown.contains(line), "{columns} columns lost {line}");
        }
    }
}

#[test]
fn bars_fit_the_terminal_and_leave_no_trace() {
    let (root, _) = series(24);
    for columns in WIDTHS {
        let args = ["flip", "v", "in", &format!("out{columns}")];
        let (shown, _) = on_terminal(root.path(), columns, true, &args);
        assert!(shown.contains(" of 24 files"), "a bar: {shown}");
        for wrong in [", ,", " 0s left", " 0 s left", "0/24"] {
            assert!(!shown.contains(wrong), "{wrong}: {shown}");
        }
        let mut screen = Screen::new(columns);
        // Each drawing of the bar is a line of its own.
        for drawn in shown.split(['\r', '\n']) {
            let mut line = Screen::new(columns);
            line.show(drawn);
            let is_bar = !drawn.contains("gpuimg: ");
            assert!(!is_bar || line.wrapped == 0, "{columns} columns: {drawn:?}");
        }
        screen.show(&shown);
        let text = screen.text();
        // Only the first and the last message stay, whole.
        let whole = text.replace('\n', "");
        assert!(whole.starts_with("gpuimg: 24 files, "), "{text}");
        assert!(whole.contains("gpuimg: 24 of 24 files done; "), "{text}");
        assert_eq!(whole.matches("gpuimg: ").count(), 2, "{text}");
        assert!(!whole.contains(" left"), "{text}");
    }
}

#[test]
fn one_file_was_1_files() {
    let (root, _) = series(1);
    let (shown, _) = on_terminal(root.path(), 80, true, &["flip", "v", "in", "out"]);
    assert!(shown.contains("1 of 1 file done"), "{shown}");
    for wrong in ["1 files ", "1 files,", "0/1"] {
        assert!(!shown.contains(wrong), "{shown}");
    }
}

#[test]
fn help_fits_the_terminal() {
    let (root, _) = series(1);
    for args in [
        &["normalize", "--help"][..],
        &["sum", "--help"],
        &["merge", "--help"],
        &["--help"],
    ] {
        let (shown, _) = on_terminal(root.path(), 80, true, args);
        for line in shown.split("\r\n") {
            let mut screen = Screen::new(80);
            screen.show(line);
            assert_eq!(screen.wrapped, 0, "{args:?}: {line:?}");
        }
    }
}

/// The verbs, from the list that `--help` prints.
fn verbs() -> Vec<String> {
    let listed = run(Path::new("/"), &["--help"], &[]).stdout;
    let (_, after) = listed.split_once("Commands:\n").expect("the commands");
    let (commands, _) = after.split_once("\n\n").expect("their end");
    let names = commands.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_string())
    });
    names.collect()
}

#[test]
fn short_help_fits_a_screen() {
    let (root, _) = series(1);
    let verbs = verbs();
    assert!(verbs.len() > 20, "{verbs:?}");
    let mut all: Vec<Vec<&str>> = verbs.iter().map(|verb| vec![&**verb, "-h"]).collect();
    all.push(vec!["-h"]);
    for args in all {
        let (shown, _) = on_terminal(root.path(), 80, true, &args);
        let lines = shown.split("\r\n").filter(|line| !line.is_empty());
        assert!(shown.split("\r\n").count() <= 25, "{args:?}: {shown}");
        for line in lines {
            let mut screen = Screen::new(80);
            screen.show(line);
            assert_eq!(screen.wrapped, 0, "{args:?}: {line:?}");
        }
    }
}

#[test]
fn long_help_groups_its_options() {
    for verb in ["normalize", "rotate", "crop", "run"] {
        let done = run(Path::new("/"), &[verb, "--help"], &[]);
        for heading in [
            "Input:",
            "Output:",
            "Many files:",
            "Device:",
            "Diagnostics:",
        ] {
            let is_there = done.stdout.lines().any(|line| line == heading);
            assert!(is_there, "{verb}: {heading}\n{}", done.stdout);
        }
    }
    let done = run(Path::new("/"), &["normalize", "--help"], &[]);
    let (own, _) = done.stdout.split_once("Range:").expect("the range");
    assert!(!own.contains("--clip"), "{own}");
}
