//! The sentence for a command line that cannot be understood: what is wrong, why, and what to type
//! instead. The parser's own messages speak of placeholders and number types; these speak of images.

use super::Cli;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};
use std::error::Error as _;

/// Options that other programs have, and what does their work here.
const FOREIGN_OPTIONS: &[(&[&str], &str)] = &[
    (
        &["level", "black", "white", "min", "max", "minmax"],
        "normalize has --range MIN:MAX for a window of input values",
    ),
    (
        &[
            "percentile",
            "percentiles",
            "saturate",
            "saturated",
            "contrast-stretch",
            "quantile",
        ],
        "normalize has --clip LOW:HIGH for percentiles, as --clip 0.1:99.9",
    ),
    (
        &["threads", "parallel", "workers", "t", "p"],
        "--jobs N says how many images are worked on at the same time",
    ),
    (
        &["recursive", "r", "R"],
        "a folder is always read with all folders below it",
    ),
    (
        &["bits", "bit-depth", "8bit", "dtype"],
        "--depth 8 or --depth 16 sets the bits of a sample",
    ),
    (&["gpu", "cuda"], "--device gpu asks for the GPU"),
    (&["cpu", "no-gpu"], "--device cpu leaves the GPU alone"),
    (
        &["compress", "compression", "quality"],
        "--png fast|small|store and --tiff none|deflate|lzw|zstd set the compression",
    ),
    (&["silent"], "--quiet says nothing but errors"),
    (
        &["skip-existing", "continue", "no-clobber"],
        "--resume skips what an earlier run has done",
    ),
    (
        &["suffix", "prefix", "rename"],
        "--name PATTERN names results, as --name '{stem}_n.png'",
    ),
    (
        &[
            "resize",
            "size",
            "thumbnail",
            "max-size",
            "preview",
            "shrink",
        ],
        "--fit N makes the result smaller, its longer side of N pixels",
    ),
    (
        &["nodata", "ignore-value", "exclude-value"],
        "normalize has --ignore VALUES for values that do not count in the range",
    ),
    (
        &["angle", "degrees"],
        "the angle is the first word: gpuimg rotate 90 IN OUT",
    ),
    (
        &["horizontal", "vertical", "axis"],
        "the axis is the first word: gpuimg flip horizontal IN OUT",
    ),
];

/// Verbs that other programs have, and what does their work here.
const FOREIGN_VERBS: &[(&[&str], &str)] = &[
    (
        &["stats", "stat", "minmax", "range"],
        "gpuimg sum --all IN prints sum, minimum, maximum and mean",
    ),
    (
        &[
            "stretch",
            "contrast",
            "autocontrast",
            "rescale",
            "scale",
            "window",
        ],
        "gpuimg normalize IN OUT stretches values",
    ),
    (&["mirror", "flop"], "gpuimg flip horizontal IN OUT mirrors"),
    (&["turn", "rot", "rot90"], "gpuimg rotate 90 IN OUT turns"),
    (
        &["identify", "describe", "show", "ls"],
        "gpuimg info IN prints what an image is",
    ),
    (
        &["resize", "shrink", "downscale"],
        "gpuimg convert IN OUT --fit 1024 makes an image smaller",
    ),
    (
        &["thumbnail", "look", "quicklook", "view"],
        "gpuimg preview IN OUT.jpg makes a small image to look at",
    ),
    (
        &["brighten", "auto", "enhance"],
        "gpuimg normalize --auto IN OUT brightens an image",
    ),
    (
        &["mip", "max", "maximum", "zproject"],
        "gpuimg project max IN... OUT takes the brightest of all images or pages",
    ),
    (
        &["average", "mean", "avg"],
        "gpuimg project mean IN... OUT averages images or pages",
    ),
    (
        &["median"],
        "gpuimg project median IN... OUT takes the median of images or pages",
    ),
    (
        &["stack", "concat", "concatenate"],
        "gpuimg convert IN... OUT.tif --stack puts many files into one stack",
    ),
    (
        &["split", "unstack"],
        "gpuimg convert IN.tif OUT/ --split writes a file a page",
    ),
    (
        &["copy", "cp", "export", "save", "transcode"],
        "gpuimg convert IN OUT changes the format",
    ),
    (&["diff", "cmp"], "gpuimg verify A B compares"),
    (&["hist"], "gpuimg histogram IN -o FILE counts values"),
    (&["benchmark"], "gpuimg bench measures"),
    (&["version"], "gpuimg --version tells it"),
];

/// The sentence, in one line, for the parser's `error` about the words that were typed after the
/// program's name.
pub fn sentence(error: &Error, typed: &[String]) -> String {
    let mut whole = Cli::command();
    whole.build();
    let verb = typed.iter().find_map(|word| whole.find_subcommand(word));
    let mistake = Mistake {
        error,
        typed,
        verb,
        whole: &whole,
    };
    format!("{} ({})", mistake.what(), mistake.help())
}

/// The sentence for a value of `--stats` that was typed as a word of its own, and so was understood as an input or an
/// output.
pub fn misread(typed: &[String]) -> Option<String> {
    let typed = typed.split(|word| word == "--").next()?;
    let value = typed.windows(2).find_map(|words| match words {
        [option, value] if option == "--stats" => Some(value),
        _ => None,
    })?;
    let known = match value.as_str() {
        "json" | "text" => value,
        "csv" | "yaml" => "json",
        name if name.ends_with(".html") => value,
        _ => return None,
    };
    Some(format!(
        "--stats {value}: the form is joined to the option: --stats={known} (an input or output of this name \
         is ./{value})"
    ))
}

struct Mistake<'a> {
    error: &'a Error,
    typed: &'a [String],
    /// The verb among the typed words.
    verb: Option<&'a Command>,
    whole: &'a Command,
}

impl Mistake<'_> {
    fn what(&self) -> String {
        let value = self.text(ContextKind::InvalidValue);
        match self.error.kind() {
            ErrorKind::InvalidSubcommand => self.unknown_verb(),
            ErrorKind::UnknownArgument => self.unknown_word(),
            ErrorKind::TooManyValues => format!(
                "{} takes no further word, and '{value}' is one",
                self.name()
            ),
            ErrorKind::InvalidValue if value.is_empty() => self.no_value(),
            ErrorKind::InvalidValue => self.unknown_value(&value),
            ErrorKind::ValueValidation => {
                let cause = self.error.source().map(ToString::to_string);
                format!("{}: {}", self.option(&value), cause.unwrap_or_default())
            }
            ErrorKind::MissingRequiredArgument => self.missing(),
            ErrorKind::ArgumentConflict => self.conflict(),
            ErrorKind::MissingSubcommand => "a verb is needed".into(),
            _ => {
                let text = self.error.to_string();
                let line = text.lines().next().unwrap_or_default();
                line.trim_start_matches("error: ").into()
            }
        }
    }

    /// Where more is said.
    fn help(&self) -> String {
        match self.verb {
            Some(verb) => format!("gpuimg {} --help has examples", verb.get_name()),
            None => "gpuimg --help lists the verbs".into(),
        }
    }

    fn name(&self) -> &str {
        self.verb.map_or("gpuimg", Command::get_name)
    }

    /// The parts of the error of one kind, as text.
    fn texts(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn text(&self, kind: ContextKind) -> String {
        self.texts(kind).into_iter().next().unwrap_or_default()
    }

    fn unknown_verb(&self) -> String {
        let word = self.text(ContextKind::InvalidSubcommand);
        let known = || {
            let similar = self.texts(ContextKind::SuggestedSubcommand);
            match similar.iter().rfind(|verb| alike(verb, &word)) {
                Some(verb) => format!("gpuimg {verb} is the nearest"),
                None => {
                    let verbs = self.whole.get_subcommands().map(Command::get_name);
                    let verbs: Vec<&str> = verbs.collect();
                    format!("the verbs are {}", verbs.join(", "))
                }
            }
        };
        let here = foreign(FOREIGN_VERBS, &word).map_or_else(known, Into::into);
        format!("there is no verb '{word}': {here}")
    }

    fn unknown_word(&self) -> String {
        let word = self.text(ContextKind::InvalidArg);
        let Some(bare) = word.strip_prefix('-').filter(|bare| !bare.is_empty()) else {
            return format!("{} takes no further word, and '{word}' is one", self.name());
        };
        let bare = bare.trim_start_matches('-');
        let long = |command: &&Command| {
            let mut options = command.get_arguments();
            options.any(|option| option.get_long() == Some(bare))
        };
        if let Some(verb) = self.verb.filter(long) {
            let name = verb.get_name();
            return format!("{word} stands before the verb; type gpuimg {name} {word} …");
        }
        let here = foreign(FOREIGN_OPTIONS, bare).map(String::from);
        let similar = self.text(ContextKind::SuggestedArg);
        let near = || {
            alike(similar.trim_start_matches('-'), bare)
                .then(|| format!("{similar} is the nearest"))
        };
        let elsewhere = || {
            let other = self.whole.get_subcommands().find(long)?;
            Some(format!("{} has it", other.get_name()))
        };
        let here = here.or_else(elsewhere).or_else(near);
        let here = here.map_or_else(String::new, |here| format!(": {here}"));
        format!("{} has no option {word}{here}", self.name())
    }

    fn no_value(&self) -> String {
        let option = self.text(ContextKind::InvalidArg);
        let known = self.texts(ContextKind::ValidValue);
        let known = match known[..] {
            [] => String::new(),
            _ => format!(": {}", listed(&known, "or")),
        };
        match option.split_once(' ') {
            Some((name, placeholder)) => {
                let placeholder = placeholder.trim_matches(['<', '>']);
                format!("{name} needs a value, as {name} {placeholder}{known}")
            }
            None => format!("{option} needs a value{known}"),
        }
    }

    fn unknown_value(&self, value: &str) -> String {
        let known = listed(&self.texts(ContextKind::ValidValue), "and");
        let option = self.text(ContextKind::InvalidArg);
        match option.starts_with('-') {
            true => format!("{}: known are {known}", self.option(value)),
            false => {
                let first = self
                    .verb
                    .is_some_and(|verb| verb.get_positionals().count() > 1);
                let first = if first { " first" } else { "" };
                let known = listed(&self.texts(ContextKind::ValidValue), "or");
                format!(
                    "{} wants {known}{first}, and '{value}' is none of them",
                    self.name()
                )
            }
        }
    }

    /// An option as it was typed, with its value; or the variable that stands for it.
    fn option(&self, value: &str) -> String {
        let option = self.text(ContextKind::InvalidArg);
        let name = option.split([' ', '[', '=']).next().unwrap_or_default();
        let joined = format!("{name}={value}");
        if self.typed.contains(&joined) {
            return joined;
        }
        match self.typed.iter().any(|word| word.starts_with(name)) || name != "--device" {
            true => format!("{name} {value}"),
            false => format!("GPUIMG_DEVICE={value}"),
        }
    }

    fn missing(&self) -> String {
        let named: Vec<String> = self
            .texts(ContextKind::InvalidArg)
            .iter()
            .map(|name| match name.strip_prefix('<') {
                Some(rest) => rest.trim_end_matches(['.', '>']).into(),
                None => name.replace(['<', '>'], ""),
            })
            .collect();
        let named: Vec<&str> = named
            .iter()
            .map(|name| match name.as_str() {
                "PATH" => "an input and an output",
                "INPUT" => "an input",
                "IMAGE" => "two images",
                "FOLDER" => "a folder",
                "AXIS" => "horizontal or vertical",
                "90|180|270" => "90, 180 or 270",
                name => name,
            })
            .collect();
        let example = self.verb.and_then(Command::get_after_help);
        let example = example.map(ToString::to_string).unwrap_or_default();
        let example = example.lines().find_map(|line| {
            let command = line.strip_prefix("  ")?;
            Some(command.split("  ").next().unwrap_or(command))
        });
        let example = example.map_or(String::new(), |example| format!(", as {example}"));
        format!("{} needs {}{example}", self.name(), listed(&named, "and"))
    }

    fn conflict(&self) -> String {
        let bare = |option: String| {
            option
                .split([' ', '['])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let one = bare(self.text(ContextKind::InvalidArg));
        let others: Vec<String> = self
            .texts(ContextKind::PriorArg)
            .into_iter()
            .map(bare)
            .collect();
        match &others[..] {
            [other] if *other == one => format!("{one} is given twice"),
            others => format!("{one} and {} do not go together", others.join(", ")),
        }
    }
}

fn foreign(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let found = table.iter().find(|(words, _)| words.contains(&&*word));
    found.map(|(_, here)| *here)
}

/// Whether a suggested word can be what was meant: the parser's notion of likeness is wide.
fn alike(suggested: &str, word: &str) -> bool {
    suggested.chars().next() == word.chars().next() || suggested.contains(word)
}

/// `a, b and c`, or with another `word`.
fn listed<T: AsRef<str>>(values: &[T], word: &str) -> String {
    let texts: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    match texts[..] {
        [ref first @ .., last] if !first.is_empty() => {
            format!("{} {word} {last}", first.join(", "))
        }
        _ => texts.concat(),
    }
}
