//! The command line as `--report` records it: the words on which an output depends, in a form that can be typed again.

use crate::engine::options::TypedCommand;
use crate::os::url;
use clap::{ArgMatches, Command};
use std::ffi::OsStr;

/// The identifiers of the options that select files, or change no byte of an output.
const WITHOUT_EFFECT: [&str; 31] = [
    "paths",
    "inputs",
    "output",
    "overwrite",
    "sync",
    "split",
    // It is a part of the output's name.
    "name",
    "low_memory",
    "include",
    "exclude",
    "files_from",
    "shard",
    "jobs",
    "mem_limit",
    "report",
    "resume",
    "no_journal",
    "dry_run",
    "quiet",
    "no_progress",
    "watch",
    "idle",
    "until_file",
    "poll",
    "settle",
    "follow",
    "device",
    "stats",
    "verbose",
    "max_pixels",
    "json",
];

/// The verb with its options, from a command line that `command` has parsed.
pub fn typed_command(command: &Command, matches: &ArgMatches) -> TypedCommand {
    let Some((verb, matches)) = matches.subcommand() else {
        return TypedCommand::default();
    };
    TypedCommand {
        verb: verb.into(),
        options: command
            .find_subcommand(verb)
            .and_then(|command| options(command, matches)),
    }
}

/// The options, and after them the words without a name.
fn options(command: &Command, matches: &ArgMatches) -> Option<Vec<String>> {
    let (mut options, mut words) = (Vec::new(), Vec::new());
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_typed = matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        if !is_typed || WITHOUT_EFFECT.contains(&id) {
            continue;
        }
        let mut values = matches.get_raw(id).into_iter().flatten().peekable();
        match arg.get_long() {
            Some(long) if !arg.get_action().takes_values() || values.peek().is_none() => {
                options.push(format!("--{long}"));
            }
            Some(long) => {
                for value in values {
                    let value = url::redacted(value.to_str()?);
                    options.push(format!("--{long}={value}"));
                }
            }
            None => {
                let texts = values.map(OsStr::to_str).map(|text| text.map(String::from));
                words.extend(texts.collect::<Option<Vec<String>>>()?);
            }
        }
    }
    options.extend(words);
    Some(options)
}
