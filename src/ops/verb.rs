//! An entry of the list of operations, which the command line, the shared tests and `verify --devices`
//! use.

use super::Operation;
use clap::{ArgMatches, Args, Command};

/// The command line of an operation: its subcommand's name and its options, whose doc comments are
/// the help text.
pub trait Verb: Args {
    /// The subcommand's name.
    const NAME: &'static str;
    /// Other spellings of the name.
    const ALIASES: &'static [&'static str] = &[];
    /// Commands to copy, at the end of the help.
    const EXAMPLES: &'static str;
    /// Whether it yields images; the subcommands of operations that yield numbers are in `cli.rs`.
    const MAKES_IMAGES: bool = true;
    /// Whether it is a step of `gpuimg run`.
    const CHAINS: bool = true;
    /// Whether it may need a statistic, which `--across` and `--range-from` measure over a whole
    /// set.
    const MEASURES: bool = false;

    /// Whether its results are previews: they are upright, they are JPEG files in a folder, and of a stack they show one page.
    const PREVIEWS: bool = false;

    /// Defaults of the options for files: an option's name and its value.
    const FILE_DEFAULTS: &'static [(&'static str, &'static str)] = &[];

    /// The operation with these options.
    fn operation(self) -> Box<dyn Operation>;

    /// Operations with options that together cover every branch, for the shared tests.
    fn examples() -> Vec<Box<dyn Operation>>;
}

/// An entry of the list.
#[derive(Debug)]
pub struct Entry {
    /// The name that a user types.
    pub name: &'static str,
    /// Other spellings of it.
    pub aliases: &'static [&'static str],
    /// The examples at the end of its help.
    pub shown: &'static str,
    /// Whether it yields images.
    pub makes_images: bool,
    /// Whether it is a step of `gpuimg run`.
    pub chains: bool,
    /// Whether it may need a statistic.
    pub measures: bool,
    /// Whether its results are previews.
    pub previews: bool,
    /// Defaults of the options for files.
    pub file_defaults: &'static [(&'static str, &'static str)],
    augment: fn(Command) -> Command,
    parse: fn(&ArgMatches) -> Result<Box<dyn Operation>, clap::Error>,
    /// Operations with options that together cover every branch.
    pub(super) examples: fn() -> Vec<Box<dyn Operation>>,
}

impl Entry {
    /// The entry of an operation.
    pub(super) const fn new<V: Verb>() -> Entry {
        Entry {
            name: V::NAME,
            aliases: V::ALIASES,
            shown: V::EXAMPLES,
            makes_images: V::MAKES_IMAGES,
            chains: V::CHAINS,
            measures: V::MEASURES,
            previews: V::PREVIEWS,
            file_defaults: V::FILE_DEFAULTS,
            augment: V::augment_args,
            parse: |matches| Ok(V::from_arg_matches(matches)?.operation()),
            examples: V::examples,
        }
    }

    /// The subcommand with the operation's own options.
    pub fn command(&self) -> Command {
        (self.augment)(Command::new(self.name))
    }

    /// The operation with the options that were typed.
    pub fn parse(&self, matches: &ArgMatches) -> Result<Box<dyn Operation>, clap::Error> {
        (self.parse)(matches)
    }
}
