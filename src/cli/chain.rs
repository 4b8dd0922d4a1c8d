//! The verbs of `gpuimg run`, as they are typed: `calibrate --dark d.tif + normalize + rotate 90`. Each is
//! read by the definition of its subcommand, except for the options of files, which all verbs share.

use super::{Cli, Frames, WholeSet, sentence};
use crate::api::{Error, Operations};
use crate::batch::options::Along;
use crate::ops::project::Project;
use crate::ops::{Entry, Operation};
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory, FromArgMatches};
use std::str::FromStr;

/// One verb with its own options.
#[derive(Debug)]
pub enum Step {
    /// An operation of the list.
    Operation {
        /// The operation with its options.
        op: Box<dyn Operation>,
        /// The source of a statistic for a whole set.
        set: WholeSet,
    },
    /// `calibrate`, whose frames are yet to be read.
    Calibrate(Frames),
    /// `project`, which can only be the first.
    Project(Projected),
}

/// `project` as a step.
#[derive(Args, Debug)]
#[group(skip)]
pub struct Projected {
    /// The projection with its options.
    #[command(flatten)]
    pub op: Project,
    /// The axis along which it combines pages.
    #[command(flatten)]
    pub along: Along,
}

/// The verbs of an expression, in order; words are split and quoted as in a shell.
///
/// # Errors
/// What is wrong, and what to type instead.
pub fn steps(expression: &str) -> Result<Vec<Step>> {
    let words = shlex::split(expression).context("unmatched quotation mark")?;
    ensure!(
        !words.is_empty(),
        "run expects verbs first, e.g. gpuimg run 'normalize + rotate 90' in/ out/"
    );
    let steps = words.split(|word| word == "+").map(step);
    let steps = steps.collect::<Result<Vec<Step>>>()?;
    let is_project = |step: &Step| matches!(step, Step::Project(_));
    ensure!(
        !steps.iter().skip(1).any(is_project),
        "project combines all inputs into one image, so it must be the first step of gpuimg run: run the verbs before it on their own first, into a folder, and then project that folder"
    );
    Ok(steps)
}

/// Parses the verbs of `gpuimg run`: `normalize --clip 0.1:99.9 + rotate 90`.
impl FromStr for Operations {
    type Err = Error;

    fn from_str(text: &str) -> Result<Operations, Error> {
        let mut operations = Operations::new();
        for step in steps(text).map_err(Error::new)? {
            operations = match step {
                Step::Operation { set, .. } if set.across || set.range_from.is_some() => {
                    return Err(Error::argument(
                        "--across and --range-from are supported by the command line alone",
                    ));
                }
                Step::Operation { op, .. } => operations.then(op),
                Step::Project(_) => {
                    return Err(Error::argument(
                        "project combines many images, and these operations process one: call project first",
                    ));
                }
                Step::Calibrate(_) => {
                    return Err(Error::argument(
                        "calibrate takes its frames from images: use Operations::calibrate",
                    ));
                }
            };
        }
        Ok(operations)
    }
}

/// The operations that can be steps.
fn entries() -> impl Iterator<Item = &'static Entry> {
    super::images::entries().filter(|entry| entry.chains)
}

fn step(words: &[String]) -> Result<Step> {
    let verb = words
        .first()
        .context("missing verb: + separates two verbs, e.g. 'normalize + rotate 90'")?;
    let named = |name: &str, aliases: &[&str]| verb == name || aliases.contains(&verb.as_str());
    let known = entries().find(|entry| named(entry.name, entry.aliases));
    let command = match known {
        Some(entry) if entry.measures => WholeSet::augment_args(entry.command()),
        Some(entry) => entry.command(),
        None if verb == "calibrate" => Frames::augment_args(Command::new("calibrate")),
        None if verb == "project" => Projected::augment_args(Command::new("project")),
        None => bail!(unknown(verb)),
    };
    let command = command.disable_help_flag(true);
    let matches = command.try_get_matches_from(words);
    let matches = matches.map_err(|error| anyhow!(mistaken(&error, words)))?;
    let typed = || -> Result<Step, clap::Error> {
        Ok(match known {
            Some(entry) => Step::Operation {
                op: entry.parse(&matches)?,
                set: if entry.measures {
                    WholeSet::from_arg_matches(&matches)?
                } else {
                    WholeSet::default()
                },
            },
            None if verb == "project" => Step::Project(Projected::from_arg_matches(&matches)?),
            None => Step::Calibrate(Frames::from_arg_matches(&matches)?),
        })
    };
    typed().map_err(|error| anyhow!(mistaken(&error, words)))
}

/// The message for a word that is no verb of a chain.
fn unknown(word: &str) -> String {
    let is_verb = Cli::command().find_subcommand(word).is_some();
    let why = match word {
        _ if word.starts_with('-') => "options go after their verb",
        "restore" => "the type of its result depends on the file",
        "preview" | "combine" => "it works only on its own",
        _ if is_verb => "it does not produce images",
        _ if word.ends_with([',', ';', '|']) => {
            "+ separates two verbs, e.g. 'normalize + rotate 90'"
        }
        _ => "unknown verb",
    };
    let names: Vec<&str> = entries().map(|entry| entry.name).collect();
    format!(
        "'{word}' cannot be a step of gpuimg run: {why} (use {} or calibrate, and project as the first)",
        names.join(", ")
    )
}

/// The message for a verb that cannot be understood.
fn mistaken(error: &clap::Error, words: &[String]) -> String {
    let word = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => word,
        _ => return sentence(error, words),
    };
    let name = word.trim_start_matches('-');
    let has = |verb: &str| {
        let command = Cli::command();
        let options = command.find_subcommand(verb).map(Command::get_arguments);
        options.is_some_and(|mut options| {
            options.any(|option| {
                let short = option.get_short().map(String::from);
                option.get_long() == Some(name) || short.as_deref() == Some(name)
            })
        })
    };
    let is_option = word.starts_with('-');
    if is_option && has("run") {
        format!("{word} goes after the verbs: gpuimg run '…' {word} …")
    } else if is_option && has(&words[0]) {
        let verb = &words[0];
        format!("{word} is supported by gpuimg {verb} alone, not by run")
    } else {
        sentence(error, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_read_as_in_a_shell() {
        let steps = steps(
            "calibrate --dark 'my darks/1.tif' --offset=-5 + normalise --clip 1:99 --across + rotate 90",
        );
        let steps = steps.expect("verbs");
        let [
            Step::Calibrate(frames),
            Step::Operation { op: first, set },
            Step::Operation { op: second, .. },
        ] = &steps[..]
        else {
            unreachable!("{steps:?}")
        };
        assert_eq!(frames.dark.as_deref(), Some("my darks/1.tif".as_ref()));
        assert_eq!(frames.offset, -5);
        assert_eq!(
            (first.properties().name, second.properties().name),
            ("normalize", "rotate")
        );
        assert!(set.across);
    }

    #[test]
    fn what_is_no_verb_is_named() {
        for (typed, told) in [
            ("", "run expects verbs first"),
            ("normalize +", "missing verb"),
            ("+ normalize", "missing verb"),
            ("normalize + + rotate 90", "missing verb"),
            ("sum", "it does not produce images"),
            ("preview", "it works only on its own"),
            ("rotate 90 + project mean", "must be the first step"),
            ("project mean + project max", "must be the first step"),
            ("project middle", "project"),
            (
                "project mean --partial",
                "--partial is supported by gpuimg project alone",
            ),
            ("project mean --pages 1-3", "--pages goes after the verbs"),
            ("blur 3", "unknown verb"),
            ("--clip 1:99", "options go after their verb"),
            ("rotate 91", "rotate: expected 90, 180 or 270"),
            ("rotate", "rotate requires an angle (90, 180 or 270)"),
            ("calibrate", "calibrate requires --dark"),
            ("normalize --clip 5", "--clip 5"),
            ("normalize --frob", "normalize has no option --frob"),
            ("normalize --overwrite", "--overwrite goes after the verbs"),
            ("normalize -j 3", "-j goes after the verbs"),
            (
                "normalize --follow",
                "--follow is supported by gpuimg normalize alone",
            ),
            ("normalize in.tif", "unexpected argument"),
            ("normalize 'x", "unmatched quotation mark"),
        ] {
            let error = steps(typed).expect_err(typed).to_string();
            assert!(error.contains(told), "{typed}: {error}");
        }
    }
}
