//! The options that several verbs share.

use crate::formats;
use crate::gpu::Choice;
use crate::os::{console, name};
use crate::timing::{Report, page};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The options of every verb that processes images.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The device.
    #[command(flatten)]
    pub device: DeviceOption,

    /// Report where the time went: as a table on standard error, as one JSON object there (--stats=json), or as a page with charts (--stats=FILE.html)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub stats: Option<StatsForm>,

    /// Print which device is used and why, and which metadata are not kept
    #[arg(short, long)]
    pub verbose: bool,

    /// How inputs are read.
    #[command(flatten)]
    pub reading: formats::Reading,

    /// The command as it was typed, for a report.
    #[arg(skip)]
    pub typed: TypedCommand,
}

/// A command line without its files and without the options that do not change an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedCommand {
    /// The verb.
    pub verb: String,
    /// The other words, with `=` between an option and its value; `None` if one of them is not UTF-8.
    pub options: Option<Vec<String>>,
}

impl TypedCommand {
    /// The command with these files, to paste into a shell.
    pub fn with_files<P: AsRef<Path>>(&self, files: &[P]) -> String {
        let mut words = vec!["gpuimg".to_string(), name::as_word(Path::new(&self.verb))];
        let options = self.options.iter().flatten().map(Path::new);
        words.extend(options.map(|option| match option.to_str() {
            Some(text) if text.starts_with('-') => name::as_word(option),
            _ => name::in_shell(option),
        }));
        words.extend(files.iter().map(|file| name::in_shell(file.as_ref())));
        words.join(" ")
    }
}

/// The device, for every verb that computes.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOption {
    /// The device.
    pub choice: Choice,
    /// Whether the user gave it on the command line. A device from the environment is only a default, so it never conflicts with
    /// other options.
    pub typed: bool,
}

#[derive(Args)]
#[group(skip)]
struct DeviceArg {
    /// Device to use: auto (the faster), cpu, gpu or gpu:N (that GPU or an error, never the CPU instead); GPUIMG_DEVICE_MEMORY=2G limits the GPU memory that gpuimg uses
    #[arg(
        id = "device",
        long = "device",
        env = "GPUIMG_DEVICE",
        default_value = "auto",
        value_name = "DEVICE"
    )]
    choice: Choice,
}

impl FromArgMatches for DeviceOption {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DeviceOption, clap::Error> {
        Ok(DeviceOption {
            choice: DeviceArg::from_arg_matches(matches)?.choice,
            typed: matches.value_source("device") == Some(ValueSource::CommandLine),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DeviceOption::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for DeviceOption {
    fn augment_args(command: Command) -> Command {
        DeviceArg::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DeviceArg::augment_args_for_update(command)
    }
}

/// The forms of `--stats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsForm {
    /// A table.
    Text,
    /// One JSON object.
    Json,
    /// A page, in this file.
    Page(PathBuf),
}

impl FromStr for StatsForm {
    type Err = String;

    fn from_str(text: &str) -> Result<StatsForm, String> {
        match text {
            "text" => Ok(StatsForm::Text),
            "json" => Ok(StatsForm::Json),
            name if name.len() > 5 && name.ends_with(".html") => Ok(StatsForm::Page(name.into())),
            _ => Err("expected text, json or the name of a page, e.g. timeline.html".into()),
        }
    }
}

impl StatsForm {
    /// Prints or writes the report that `--stats` asks for.
    ///
    /// # Errors
    /// A page that cannot be written.
    pub fn deliver(&self, report: &Report) -> anyhow::Result<()> {
        match self {
            StatsForm::Text => console::tell_lines(&report.text()),
            StatsForm::Json => console::tell(&report.json()?),
            StatsForm::Page(path) => page::write(report, path)?,
        }
        Ok(())
    }
}

impl Common {
    /// Refuses options that would fail only at the end of the work.
    ///
    /// # Errors
    /// A page of `--stats` that would replace another file.
    pub fn check(&self) -> anyhow::Result<()> {
        match &self.stats {
            Some(StatsForm::Page(path)) => page::check(path),
            _ => Ok(()),
        }
    }

    /// Whether `--stats` draws a page, which needs the timeline of every file.
    pub fn draws(&self) -> bool {
        matches!(self.stats, Some(StatsForm::Page(_)))
    }
}
