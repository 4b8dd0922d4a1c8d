//! The subcommands that make images: one for each such entry of the list of operations.

use super::{Following, WholeSet};
use crate::batch::options::Files;
use crate::engine::options::Common;
use crate::formats::jpeg;
use crate::ops::{Entry, OPS, Operation};
use clap::error::{Error, ErrorKind};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

/// An operation from the command line, with its files.
#[derive(Debug)]
pub struct Images {
    /// The operation with its options.
    pub op: Box<dyn Operation>,
    /// The source of a statistic for a whole set, if the operation measures one.
    pub set: WholeSet,
    /// Whether the histogram of that set is read again when it changes.
    pub follow: bool,
    /// The inputs and the output.
    pub files: Files,
    /// The options of every verb that reads images.
    pub common: Common,
}

pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    OPS.iter().filter(|entry| entry.makes_images)
}

fn subcommand(entry: &Entry) -> Command {
    let own = entry.command();
    let about = own.get_about().cloned().unwrap_or_default();
    let long_about = own.get_long_about().cloned();
    let with_long_about = |command: Command| match &long_about {
        Some(text) => command.long_about(text.clone()),
        None => command,
    };
    let own = if entry.measures {
        Following::augment_args(WholeSet::augment_args(own))
            .mut_arg("across", |across| across.conflicts_with("shard"))
    } else {
        own
    };
    let mut whole = Common::augment_args(Files::augment_args(own));
    for (option, value) in entry.file_defaults {
        whole = whole.mut_arg(option, |arg| arg.default_value(*value));
    }
    let inputs = whole
        .get_positionals()
        .filter(|positional| positional.get_id() != "paths")
        .map(|own| {
            let name = own.get_value_names().and_then(|names| names.first());
            format!("<{}> ", name.map_or(own.get_id().as_str(), |name| name))
        })
        .collect::<String>();
    with_long_about(whole)
        .override_usage(format!(
            "gpuimg {} [OPTIONS] {inputs}INPUT... OUTPUT",
            entry.name
        ))
        .about(about)
        .aliases(entry.aliases)
        .after_help(entry.shown)
}

impl FromArgMatches for Images {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Images, Error> {
        let typed = matches.subcommand().and_then(|(name, matches)| {
            let entry = entries().find(|entry| entry.name == name)?;
            Some((entry, matches))
        });
        let (entry, matches) = typed.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        let mut files = Files::from_arg_matches(matches)?;
        let mut common = Common::from_arg_matches(matches)?;
        if entry.previews {
            files.auto_orient = true;
            files.format_in_folders = Some(&jpeg::FORMAT);
            common.reading.preview = true;
        }
        Ok(Images {
            op: entry.parse(matches)?,
            set: if entry.measures {
                WholeSet::from_arg_matches(matches)?
            } else {
                WholeSet::default()
            },
            follow: if entry.measures {
                Following::from_arg_matches(matches)?.follow
            } else {
                false
            },
            files,
            common,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Images::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Images {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(entries().map(subcommand))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Images::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        entries().any(|entry| entry.name == name)
    }
}
