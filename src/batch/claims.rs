//! The outputs that reports name, for `gpuimg prove`. A report may come from anybody: it is read as data, a line at a time.

use super::lineage::FilesRead;
use crate::engine::Digests;
use crate::engine::options::TypedCommand;
use crate::ops::Position;
use crate::os::name::Shown;
use crate::os::system;
use crate::os::{Sha256, Source, is_store_name};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read, in bytes: a stack of 100,000 pages takes a quarter of it.
const MOST_BYTES: u64 = 256 << 20;

/// More inputs than any list has.
const MOST_INPUTS: u64 = 1 << 40;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// What a line of a report says of one output.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The path of the output; of the input if there is no output.
    pub name: PathBuf,
    /// The input.
    pub input: PathBuf,
    /// All inputs in their order, if the output was made of several.
    pub inputs: Vec<PathBuf>,
    /// The version of the program that wrote the output.
    pub version: String,
    /// The command.
    pub command: TypedCommand,
    /// The files that the output depends on besides its input.
    pub reads: Vec<FilesRead>,
    /// The digests of the input and the output.
    pub digests: Digests,
    /// The position of the input among all inputs, if the output depends on it.
    pub position: Option<Position>,
    /// Why it cannot be proven, if the line says so.
    pub obstacle: Option<String>,
}

/// What reports say.
#[derive(Debug, Default)]
pub struct Claims {
    /// The outputs, each once: by the last line that names it.
    pub claims: Vec<Claim>,
    /// The inputs that took part in the measurements of `--across`, by the command and the files that it read.
    pub measured: HashMap<(String, String), Vec<PathBuf>>,
}

/// The fields of a line that matter; those that older versions lack may be absent.
#[derive(Deserialize)]
struct Line {
    schema: u64,
    input: String,
    input_hex: Option<String>,
    output: Option<String>,
    output_hex: Option<String>,
    status: String,
    version: Option<String>,
    verb: Option<String>,
    options: Option<Vec<String>>,
    #[serde(default)]
    reads: Vec<FilesRead>,
    #[serde(default)]
    inputs: Vec<PathBuf>,
    position: Option<Position>,
    input_sha256: Option<Sha256>,
    samples_sha256: Option<Sha256>,
    output_sha256: Option<Sha256>,
}

impl Claim {
    /// The command and the files that it read, as a key.
    ///
    /// # Errors
    /// None in practice: both are plain texts.
    pub fn key(&self) -> Result<(String, String)> {
        let command = serde_json::to_string(&(&self.command.verb, &self.command.options))?;
        Ok((command, serde_json::to_string(&self.reads)?))
    }

    fn of_line(line: Line) -> Result<Claim> {
        ensure!(line.schema == 2, "unknown version {}", line.schema);
        // A report may name any numbers; products of these are computed.
        let exists =
            |position: Position| position.index < position.count && position.count < MOST_INPUTS;
        ensure!(
            line.position.is_none_or(exists),
            "its position is not one of the list"
        );
        let input = path(line.input, line.input_hex)?;
        let output = line
            .output
            .map(|output| path(output, line.output_hex))
            .transpose()?;
        let obstacle = match (&line.version, &line.output_sha256) {
            _ if output.is_none() => Some(format!(
                "{} has no output that could be derived again",
                line.verb.as_deref().unwrap_or("the verb")
            )),
            (Some(_), None) if output.as_deref().is_some_and(is_store_name) => {
                Some("its output is a Zarr store, of which no digest is recorded".into())
            }
            (None, _) | (_, None) => {
                Some("the report has no digests: an earlier version of gpuimg wrote it".into())
            }
            _ if line.options.is_none() => Some("an option or an input is not UTF-8".into()),
            _ if line.input_sha256.is_none() => {
                Some("its input is a Zarr store, of which no digest is recorded".into())
            }
            _ if input == Path::new("-") => Some("its input was standard input".into()),
            _ if output.as_deref() == Some(Path::new("-")) => {
                Some("it was written to standard output".into())
            }
            _ => None,
        };
        Ok(Claim {
            name: output.unwrap_or_else(|| input.clone()),
            input,
            version: line.version.unwrap_or_default(),
            command: TypedCommand {
                verb: line.verb.unwrap_or_default(),
                options: line.options,
            },
            reads: line.reads,
            inputs: line.inputs,
            digests: Digests {
                input: line.input_sha256,
                samples: line.samples_sha256,
                output: line.output_sha256,
            },
            position: line.position,
            obstacle,
        })
    }
}

/// A path of a report; `hex` has its bytes if it is not UTF-8.
fn path(text: String, hex: Option<String>) -> Result<PathBuf> {
    let Some(hex) = hex else {
        return Ok(text.into());
    };
    let digit = |at: usize| hex.get(at..at + 2);
    let bytes = (0..hex.len()).step_by(2).map(|at| {
        let byte = digit(at).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.context("a name has digits that are not hexadecimal")
    });
    let bytes = bytes.collect::<Result<Vec<u8>>>()?;
    Ok(system::name_of_bytes(&bytes)?.into())
}

impl Claims {
    /// Reads reports, one after the other.
    ///
    /// # Errors
    /// One that cannot be read, or has a line that is not one of a report.
    pub fn read(reports: &[PathBuf]) -> Result<Claims> {
        let mut claims = Claims::default();
        let mut places: HashMap<PathBuf, usize> = HashMap::new();
        let mut skipped = Vec::new();
        for report in reports {
            let mut add = |line: Line| -> Result<()> {
                let status = line.status.clone();
                let claim = Claim::of_line(line)?;
                if claim.digests.input.is_some() {
                    let measured = claims.measured.entry(claim.key()?).or_default();
                    measured.push(claim.input.clone());
                }
                match &*status {
                    "done" | "damaged" => match places.get(&claim.name) {
                        Some(&place) => claims.claims[place] = claim,
                        None => {
                            places.insert(claim.name.clone(), claims.claims.len());
                            claims.claims.push(claim);
                        }
                    },
                    "skipped" => skipped.push(claim),
                    // It has made no output.
                    "failed" => {}
                    other => bail!("unknown status '{other}'"),
                }
                Ok(())
            };
            read(report, &mut add).with_context(|| format!("cannot prove {}", report.shown()))?;
        }
        let mut named: HashSet<PathBuf> = places.into_keys().collect();
        for claim in skipped {
            if named.insert(claim.name.clone()) {
                let why = "an earlier run made it, which is not in the report";
                claims.claims.push(Claim {
                    obstacle: Some(why.into()),
                    ..claim
                });
            }
        }
        Ok(claims)
    }
}

/// Calls `add` with each line of a report.
fn read(path: &Path, add: &mut dyn FnMut(Line) -> Result<()>) -> Result<()> {
    let source = Source::open(path)?;
    let mut lines = BufReader::with_capacity(CHUNK, Reading { source, at: 0 });
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut whole = lines.by_ref().take(MOST_BYTES);
        whole.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let mut of_line = || -> Result<()> {
            ensure!((line.len() as u64) < MOST_BYTES, "it is too long");
            let fields = serde_json::from_slice(&line).context("it is not one of a report")?;
            add(fields)
        };
        of_line().with_context(|| format!("line {number}"))?;
    }
    Ok(())
}

/// A source from its beginning to its end.
struct Reading {
    source: Source,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_up_to(buffer, self.at);
        let read = read.map_err(|error| io::Error::other(format!("{error:#}")))?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(status: &str, output: &str, version: &str) -> String {
        let digest = "0".repeat(64);
        format!(
            "{{\"schema\":2,\"status\":\"{status}\",\"input\":\"a\",\"output\":\"{output}\",\"version\":\"{version}\",\
             \"verb\":\"flip\",\"options\":[\"vertical\"],\"input_sha256\":\"{digest}\",\"output_sha256\":\"{digest}\"}}\n"
        )
    }

    fn claims(text: &str) -> Result<Claims> {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("r");
        fs::write(&path, text).expect("file");
        Claims::read(&[path])
    }

    #[test]
    fn an_output_is_claimed_by_its_last_line() {
        let text = [
            line("done", "x", "1"),
            line("done", "y", "1"),
            line("damaged", "x", "2"),
            line("failed", "y", "3"),
            line("skipped", "y", "4"),
            line("skipped", "z", "5"),
        ];
        let found = claims(&text.concat()).expect("claims");
        let versions: Vec<_> = found
            .claims
            .iter()
            .map(|claim| {
                (
                    claim.name.to_str(),
                    &*claim.version,
                    claim.obstacle.is_some(),
                )
            })
            .collect();
        let expected = [
            (Some("x"), "2", false),
            (Some("y"), "1", false),
            (Some("z"), "5", true),
        ];
        assert_eq!(versions, expected);
        let [measured] = &found.measured.into_values().collect::<Vec<_>>()[..] else {
            unreachable!("one command")
        };
        assert_eq!(measured.len(), 6);
    }

    #[test]
    fn a_line_that_is_none_of_a_report_is_named() {
        for (text, told) in [
            ("{}", "line 1: it is not one of a report"),
            ("\n", "line 1: it is not one of a report"),
            (
                &line("done", "x", "1").replace(":2,", ":3,"),
                "line 1: unknown version 3",
            ),
            (&line("gone", "x", "1"), "line 1: unknown status 'gone'"),
            (
                &(line("done", "x", "1") + "{\"schema\":2"),
                "line 2: it is not one",
            ),
            (
                &line("done", "x", "1").replace("\"output\"", "\"output_hex\":\"6\",\"output\""),
                "hexadecimal",
            ),
            (
                &line("done", "x", "1").replace("\"output\"", "\"output_hex\":\"é6\",\"output\""),
                "hexadecimal",
            ),
        ] {
            let error = format!("{:#}", claims(text).expect_err(text));
            assert!(error.contains(told), "{text}: {error}");
        }
        assert_eq!(claims("").expect("nothing").claims.len(), 0);
    }

    #[test]
    fn names_that_are_not_text_are_read_from_their_bytes() {
        let text = line("done", "caf\\\\xE9", "1");
        let text = text.replace("\"output\"", "\"output_hex\":\"636166e9\",\"output\"");
        let found = claims(&text).expect("a claim");
        assert_eq!(
            found.claims[0].name.as_os_str().as_encoded_bytes(),
            b"caf\xe9"
        );
    }
}
