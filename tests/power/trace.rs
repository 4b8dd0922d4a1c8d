//! What a run does to files, from strace: each call that changes one, in order, with all its bytes.

use crate::support::binary;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Calls that change files, or make changes last.
const CALLS: &str = "trace=openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,\
    linkat,link,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,close,copy_file_range,sendfile,splice,\
    sync_file_range,syncfs,sync,dup,dup2,dup3";

/// A call that has succeeded.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Its strings, unquoted.
    pub texts: Vec<Vec<u8>>,
    /// Everything else between its brackets: numbers and flags.
    pub words: Vec<String>,
    pub result: i64,
}

impl Call {
    pub fn has(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word == flag)
    }

    /// The number at this place among the words, from 0.
    pub fn number(&self, place: usize) -> i64 {
        self.words[place].parse().expect("a number")
    }

    pub fn text(&self, place: usize) -> &str {
        std::str::from_utf8(&self.texts[place]).expect("text")
    }
}

/// Runs the program in `folder` under strace, which makes calls of the kinds in `left_out` do nothing and
/// succeed; gives the exit status and the calls. `None` where processes cannot be traced.
pub fn traced(
    folder: &Path,
    line: &str,
    env: &[(&str, &str)],
    left_out: &[&str],
) -> Option<(i32, Vec<Call>)> {
    let log = tempfile::NamedTempFile::new().expect("temporary file");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-s", "1000000", "-e", CALLS, "-o"])
        .arg(log.path());
    for name in left_out {
        command.args(["-e", &format!("inject={name}:retval=0")]);
    }
    // One thread that writes, so that the calls are in the order in which they take effect.
    let output = command
        .arg(binary())
        .args(line.split(' '))
        .args(["-j", "1"])
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", "1")
        .env_remove("GPUIMG_DEVICE")
        .envs(env.iter().copied())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("strace: ") {
        return None;
    }
    let text = fs::read(log.path()).expect("log");
    let code = output.status.code().expect("an exit status");
    assert!(code < 2, "{line}: {said}");
    Some((code, calls(&text)))
}

/// The calls of a log that have succeeded, and have not been left out.
fn calls(log: &[u8]) -> Vec<Call> {
    let mut begun: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut calls = Vec::new();
    for line in log.split(|&byte| byte == b'\n') {
        let Some(space) = line.iter().position(|&byte| byte == b' ') else {
            continue;
        };
        let (thread, rest) = line.split_at(space);
        let rest = rest.trim_ascii_start();
        if let Some(start) = rest.strip_suffix(b" <unfinished ...>") {
            begun.push((thread.to_vec(), start.to_vec()));
            continue;
        }
        let whole = match rest.strip_prefix(b"<... ") {
            None => rest.to_vec(),
            Some(resumed) => {
                let place = begun.iter().position(|(of, _)| of == thread);
                let (_, mut start) = begun.swap_remove(place.expect("a beginning"));
                let marker = b" resumed>";
                let end = resumed.windows(marker.len()).position(|it| it == marker);
                start.extend_from_slice(&resumed[end.expect("resumed") + marker.len()..]);
                start
            }
        };
        calls.extend(call(&whole));
    }
    calls
}

/// `name(arguments) = result`, unless it failed or was left out.
fn call(line: &[u8]) -> Option<Call> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let name = String::from_utf8(line[..open].to_vec()).ok()?;
    if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return None;
    }
    let (mut texts, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut at = open + 1;
    loop {
        match *line.get(at)? {
            b'"' => {
                let (text, end) = unquoted(line, at + 1)?;
                texts.push(text);
                at = end;
                continue;
            }
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') => {
                word.push(char::from(byte));
            }
            byte => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                if byte == b')' {
                    break;
                }
            }
        }
        at += 1;
    }
    let rest = std::str::from_utf8(&line[at + 1..]).ok()?;
    let rest = rest.trim().strip_prefix("= ")?;
    if rest.contains("(INJECTED)") || rest.starts_with('-') {
        return None;
    }
    let result = rest.split(' ').next()?.parse().ok()?;
    Some(Call {
        name,
        texts,
        words,
        result,
    })
}

/// The bytes of a quoted string from `at` on, and where it ends.
fn unquoted(line: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut text = Vec::new();
    loop {
        match *line.get(at)? {
            b'"' => return Some((text, at + 1)),
            b'\\' => {
                let escape = *line.get(at + 1)?;
                at += 2;
                text.push(match escape {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 11,
                    b'f' => 12,
                    b'0'..=b'7' => {
                        let mut value = u32::from(escape - b'0');
                        let most = at + 2;
                        while at < most && matches!(line.get(at), Some(b'0'..=b'7')) {
                            value = 8 * value + u32::from(line[at] - b'0');
                            at += 1;
                        }
                        value as u8
                    }
                    other => other,
                });
            }
            byte => {
                text.push(byte);
                at += 1;
            }
        }
    }
}
