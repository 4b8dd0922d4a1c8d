//! What `gpuimg --json-usage` prints: the command line as data, from which packagers and front ends generate their own forms.

use super::help;
use clap::{Arg, ArgAction, Command};
use serde::Serialize;

/// The JSON object of a verb.
#[derive(Serialize)]
struct Verb<'a> {
    verb: &'a str,
    about: String,
    arguments: Vec<Argument<'a>>,
}

/// An argument of a verb.
#[derive(Serialize)]
struct Argument<'a> {
    name: &'a str,
    short: Option<char>,
    help: String,
    group: Option<&'a str>,
    positional: bool,
    required: bool,
    repeatable: bool,
    value: Option<&'a str>,
    choices: Vec<String>,
    default: Option<String>,
}

/// The lines of `--json-usage`: an object for each verb, in the order of the help.
pub fn lines() -> String {
    let mut program = help::command(&[]).disable_help_subcommand(true);
    program.build();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.map(line).collect()
}

fn line(command: &Command) -> String {
    let shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_action(), ArgAction::Help);
    let verb = Verb {
        verb: command.get_name(),
        about: command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
        arguments: command
            .get_arguments()
            .filter(shown)
            .map(argument)
            .collect(),
    };
    let object = serde_json::to_string(&verb).unwrap_or_default();
    object + "\n"
}

fn argument(arg: &Arg) -> Argument<'_> {
    let takes_value = arg.get_action().takes_values();
    let value = arg.get_value_names().and_then(|names| names.first());
    let default = arg.get_default_values().first();
    Argument {
        name: arg.get_long().unwrap_or(arg.get_id().as_str()),
        short: arg.get_short(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        group: arg.get_help_heading(),
        positional: arg.is_positional(),
        required: arg.is_required_set(),
        repeatable: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        value: value.filter(|_| takes_value).map(|name| name.as_str()),
        choices: choices(arg),
        default: default
            .filter(|_| takes_value)
            .map(|value| value.to_string_lossy().into()),
    }
}

/// The words that an argument's value can have; empty if it can have others.
fn choices(arg: &Arg) -> Vec<String> {
    let values = arg.get_possible_values();
    let values = values.iter().filter(|_| arg.get_action().takes_values());
    values.map(|value| value.get_name().into()).collect()
}
