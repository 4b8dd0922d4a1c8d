//! The list of operations: a line for each. The command line, the shared tests and `verify --devices`
//! take them from here.

use super::Operation;
use super::flip::Flip;
use super::histogram::Histogram;
use super::normalize::Normalize;
use super::rotate::Rotate;
use super::sum::Sum;
use super::transpose::Transpose;
use clap::{ArgMatches, Args, Command};

/// The operations, in the order in which `--help` names them.
pub const OPS: &[Entry] = &[
    Entry::of::<Normalize>(),
    Entry::of::<Transpose>(),
    Entry::of::<Rotate>(),
    Entry::of::<Flip>(),
    Entry::of::<Sum>(),
    Entry::of::<Histogram>(),
];

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
    examples: fn() -> Vec<Box<dyn Operation>>,
}

impl Entry {
    const fn of<V: Verb>() -> Entry {
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

/// All operations with the options worth testing.
pub fn examples() -> Vec<Box<dyn Operation>> {
    OPS.iter().flat_map(|entry| (entry.examples)()).collect()
}
