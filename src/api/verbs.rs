//! The verbs that make images as a table, for front ends in other languages.

use crate::ops::{Entry, OPS};
use clap::Arg;

/// A verb of the command line that makes images, with its own options.
///
/// ```
/// let rotate = gpuimg::verbs().find(|verb| verb.name == "rotate").unwrap();
/// assert_eq!(rotate.arguments[0].name, "angle");
/// assert_eq!(rotate.arguments[0].choices, ["90", "180", "270"]);
/// ```
#[derive(Clone, Debug)]
pub struct Verb {
    /// Its name: `normalize`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: String,
    /// Whether it can be a step of [`Operations`](crate::Operations) that are parsed. `restore` and `preview` cannot.
    pub chains: bool,
    /// The defaults that it has for options of all verbs, such as `depth`.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Its arguments, in the order of its help.
    pub arguments: Vec<Argument>,
}

/// An argument of a [`Verb`].
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name, for an option without `--`: `per-channel`.
    pub name: String,
    /// Its help.
    pub help: String,
    /// Whether it is typed without its name.
    pub is_positional: bool,
    /// How its value is written, as in the help: `LOW:HIGH`; `None` for an option without a value.
    pub value: Option<String>,
    /// The words that it can have; empty if it can have others.
    pub choices: Vec<String>,
    /// The character between several values, if it can have several.
    pub delimiter: Option<char>,
}

/// The verbs of the command line that make images, in the order of its help.
pub fn verbs() -> impl Iterator<Item = Verb> {
    let entries = OPS.iter().filter(|entry| entry.makes_images);
    entries.map(verb)
}

fn verb(entry: &Entry) -> Verb {
    let command = entry.command();
    Verb {
        name: entry.name,
        about: command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
        chains: entry.chains,
        defaults: entry.file_defaults,
        arguments: command.get_arguments().map(argument).collect(),
    }
}

fn argument(arg: &Arg) -> Argument {
    let takes_value = arg.get_action().takes_values();
    let value_name = arg.get_value_names().and_then(|names| names.first());
    let choices = arg.get_possible_values();
    Argument {
        name: arg.get_long().unwrap_or(arg.get_id().as_str()).into(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        is_positional: arg.is_positional(),
        value: value_name.filter(|_| takes_value).map(ToString::to_string),
        choices: choices
            .iter()
            .filter(|_| takes_value)
            .map(|choice| choice.get_name().into())
            .collect(),
        delimiter: arg.get_value_delimiter(),
    }
}
