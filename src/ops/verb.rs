//! What a line of the list of operations holds: the command line, the shared tests and
//! `verify --devices` take operations from there.

use super::Operation;
use clap::{ArgMatches, Args, Command};

/// What a user types for an operation: its word and its options, whose doc comments are the help.
pub trait Verb: Args {
    /// The word.
    const NAME: &'static str;
    /// Whether it makes images; the subcommands of those that give numbers are in `cli.rs`.
    const MAKES_IMAGES: bool = true;
    /// Whether it may need a statistic, which `--across` and `--range-from` give for a whole set.
    const MEASURES: bool = false;

    /// The operation with these options.
    fn operation(self) -> Box<dyn Operation>;

    /// Operations with options that between them reach every branch, for the shared tests.
    fn examples() -> Vec<Box<dyn Operation>>;
}

/// A line of the list.
#[derive(Debug)]
pub struct Entry {
    /// The word that a user types.
    pub name: &'static str,
    /// Whether it makes images.
    pub makes_images: bool,
    /// Whether it may need a statistic.
    pub measures: bool,
    augment: fn(Command) -> Command,
    parse: fn(&ArgMatches) -> Result<Box<dyn Operation>, clap::Error>,
    /// Operations that between them reach every branch.
    pub(super) examples: fn() -> Vec<Box<dyn Operation>>,
}

impl Entry {
    /// The line of an operation.
    pub(super) const fn of<V: Verb>() -> Entry {
        Entry {
            name: V::NAME,
            makes_images: V::MAKES_IMAGES,
            measures: V::MEASURES,
            augment: V::augment_args,
            parse: |matches| Ok(V::from_arg_matches(matches)?.operation()),
            examples: V::examples,
        }
    }

    /// The subcommand with the operation's own options.
    pub fn command(&self) -> Command {
        (self.augment)(Command::new(self.name))
    }

    /// The operation that was typed.
    pub fn parse(&self, matches: &ArgMatches) -> Result<Box<dyn Operation>, clap::Error> {
        (self.parse)(matches)
    }
}
