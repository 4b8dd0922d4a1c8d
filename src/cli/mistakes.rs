//! The message for a command line that cannot be understood: what is wrong, why, and what to type
//! instead. The parser's own messages speak of placeholders and number types; these speak of images.

use super::Cli;
use crate::formats::mosaic;
use crate::os::name::{Shown, as_word, in_shell};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};
use std::error::Error as _;
use std::path::Path;

/// Options that other programs have, and what does their work here.
const FOREIGN_OPTIONS: &[(&[&str], &str)] = &[
    (
        &["levels", "black", "white", "min", "max", "minmax"],
        "use normalize --range MIN:MAX for a range of input values",
    ),
    (
        &[
            "percentile",
            "percentiles",
            "saturate",
            "saturated",
            "contrast-stretch",
            "quantile",
            "quantiles",
        ],
        "use normalize --clip LOW:HIGH for percentiles, e.g. --clip 0.1:99.9",
    ),
    (
        &["threads", "parallel", "workers", "t", "p"],
        "use --jobs N to set the number of images processed at the same time",
    ),
    (
        &["90", "180", "270"],
        "angles are clockwise: gpuimg rotate 270 IN OUT turns by 90 degrees anticlockwise",
    ),
    (&["rotate"], "rotate is a verb: gpuimg rotate 90 IN OUT"),
    (
        &["resample", "scale", "width", "height"],
        "use --fit N to shrink the result to a longer side of N pixels",
    ),
    (
        &["wl", "level", "window-level"],
        "use normalize --window CENTER:WIDTH",
    ),
    (&["gamma"], "use normalize --curve gamma:2.2"),
    (
        &["asinh", "log"],
        "use normalize --curve asinh or --curve log, or --report FILE for a record of all files",
    ),
    (
        &["memory", "mem", "max-memory", "ram"],
        "use --mem-limit SIZE, e.g. --mem-limit 8G",
    ),
    (
        &["stf", "zscale"],
        "use normalize --range stf or --range zscale",
    ),
    (
        &["auto-level", "autolevel", "autocontrast"],
        "use normalize, which scales the minimum and maximum",
    ),
    (
        &["to", "output-format"],
        "use --format for the format, and normalize --to for a range of output values",
    ),
    (
        &["in-place", "inplace"],
        "name the input as the output too, with --overwrite",
    ),
    (
        &["offset-bytes", "header"],
        "a header of raw samples is part of --raw: WIDTHxHEIGHT:TYPE+BYTES",
    ),
    (
        &["flat-dark", "darkflat", "dark-flat"],
        "use --bias, or subtract the flat field's own dark frame from it first",
    ),
    (
        &["recursive", "r", "R"],
        "folders are always read recursively",
    ),
    (
        &["bits", "bit-depth", "8bit", "dtype"],
        "use --depth 8 or --depth 16 to set the bits per sample",
    ),
    (
        &["gpu", "cuda"],
        "use --device gpu, or --device gpu:1 for the second one",
    ),
    (&["cpu", "no-gpu"], "use --device cpu"),
    (
        &["compress", "compression", "quality"],
        "use --png fast|small|store or --tiff none|deflate|lzw|zstd",
    ),
    (&["cog"], "use --tiff-layout cog for cloud-optimized TIFF"),
    (
        &["channels", "band", "bands", "bidx"],
        "use convert --channel N to take one channel",
    ),
    (&["silent"], "use --quiet to print errors only"),
    (
        &["skip-existing", "continue", "no-clobber"],
        "use --resume to skip what an earlier run has done",
    ),
    (
        &["suffix", "prefix", "rename"],
        "use --name PATTERN, e.g. --name '{stem}_n.png'",
    ),
    (
        &["resize", "thumbnail", "max-size", "preview", "shrink"],
        "use --fit N to shrink the result to a longer side of N pixels",
    ),
    (
        &["size"],
        "use --fit N to shrink the result to a longer side of N pixels, and --raw WIDTHxHEIGHT:u16le to read samples without a header",
    ),
    (
        &["slices", "frames", "page-range"],
        "use --pages N-M for some pages of a stack, or --axes Z=2-4 for some slices",
    ),
    (
        &["nodata", "ignore-value", "exclude-value"],
        "use normalize --ignore VALUES for no-data values",
    ),
    (
        &["angle", "degrees"],
        "the angle comes first: gpuimg rotate 90 IN OUT",
    ),
    (
        &["pattern", "bayer"],
        "the pattern comes first: gpuimg debayer RGGB IN OUT",
    ),
    (
        &["horizontal", "vertical", "axis"],
        "the direction comes first: gpuimg flip horizontal IN OUT",
    ),
];

/// Options that `project` does not have, and what does their work there.
const FOREIGN_OPTIONS_OF_PROJECT: &[(&[&str], &str)] = &[
    (
        &["max", "min", "mean", "median", "sum"],
        "the method comes first: gpuimg project max IN... OUT",
    ),
    (
        &["o", "output", "out"],
        "the output comes last: gpuimg project max IN... OUT",
    ),
];

/// Verbs that other programs have, and what does their work here.
const FOREIGN_VERBS: &[(&[&str], &str)] = &[
    (
        &["stats", "stat", "minmax", "range"],
        "use gpuimg sum --all IN for the sum, minimum, maximum and mean",
    ),
    (
        &[
            "stretch",
            "contrast",
            "autocontrast",
            "auto-level",
            "auto-levels",
            "autolevel",
            "rescale",
            "scale",
            "linear-stretch",
        ],
        "use gpuimg normalize IN OUT",
    ),
    (
        &["window", "windowing"],
        "use gpuimg normalize --window CENTER:WIDTH IN OUT",
    ),
    (
        &["contrast-stretch", "percentile"],
        "use gpuimg normalize --clip 0.1:99.9 IN OUT",
    ),
    (
        &["autostretch", "stf"],
        "use gpuimg normalize --range stf IN OUT",
    ),
    (&["zscale"], "use gpuimg normalize --range zscale IN OUT"),
    (&["gamma"], "use gpuimg normalize --curve gamma:2.2 IN OUT"),
    (
        &["colormap", "colourmap", "pseudocolor", "falsecolor"],
        "use gpuimg lut viridis IN OUT",
    ),
    (&["demosaic", "bayer"], "use gpuimg debayer RGGB IN OUT"),
    (
        &["unpack", "raw2tif", "raw2png"],
        "use gpuimg convert --raw WIDTHxHEIGHT:TYPE IN OUT",
    ),
    (
        &["dcm2tif", "dcm2png", "fits2tif", "tif2png"],
        "use gpuimg convert IN OUT",
    ),
    (
        &["subtract", "masterdark", "flatfield", "flat-field", "dark"],
        "use gpuimg calibrate --dark DARK --flat FLAT IN OUT, or gpuimg project median DARKS... OUT for a master frame",
    ),
    (
        &["header", "metadata", "exif"],
        "gpuimg info IN prints what an image is",
    ),
    (
        &["channels", "channel"],
        "use gpuimg convert --channel N IN OUT, or --axes C=N for a stack",
    ),
    (&["mirror", "flop"], "use gpuimg flip horizontal IN OUT"),
    (&["turn", "rot", "rot90"], "use gpuimg rotate 90 IN OUT"),
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
        &["mip", "max", "maximum", "zproject", "z-project"],
        "gpuimg project max IN... OUT computes the maximum of all images or pages",
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
        "gpuimg convert IN... OUT.tif --stack puts many files into one stack, gpuimg project median IN... OUT combines them into one \
         image",
    ),
    (
        &["split", "unstack"],
        "gpuimg convert IN.tif OUT/ --split writes each page to its own file",
    ),
    (
        &["copy", "cp", "export", "save", "transcode"],
        "gpuimg convert IN OUT changes the format",
    ),
    (
        &["align", "register", "registration"],
        "gpuimg does not align images: align them elsewhere before gpuimg project combines them",
    ),
    (&["diff", "cmp"], "use gpuimg verify A B"),
    (
        &[
            "std", "stddev", "variance", "ndvi", "add", "multiply", "divide",
        ],
        "gpuimg does not compute this",
    ),
    (
        &["extract"],
        "use gpuimg convert --pages N IN OUT for a page, --channel N for a channel, or gpuimg crop for a region",
    ),
    (
        &[
            "devices",
            "device",
            "gpu",
            "gpus",
            "check",
            "status",
            "system",
            "test",
            "nvidia-smi",
        ],
        "gpuimg doctor shows the hardware and what gpuimg would use",
    ),
    (&["hist"], "use gpuimg histogram IN -o FILE"),
    (&["benchmark"], "use gpuimg bench"),
    (&["version"], "use gpuimg --version"),
];

/// The message, in one line, for the parser's `error` about the words that were typed after the
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

/// The message for a value of `--stats` that was typed as a word of its own, and so was understood as an input or an
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
        "--stats {value}: write --stats={known} (or ./{value} for an input or output with this name)"
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
            ErrorKind::TooManyValues => self.unexpected(&value),
            ErrorKind::InvalidValue if value.is_empty() => self.no_value(),
            ErrorKind::InvalidValue => self.unknown_value(&value),
            ErrorKind::ValueValidation => {
                let cause = self.error.source().map(ToString::to_string);
                let cause = cause.unwrap_or_default();
                match self.text(ContextKind::InvalidArg).starts_with('<') {
                    true => format!("{}: {cause}, first, got '{value}'", self.name()),
                    false => format!("{}: {cause}", self.option(&value)),
                }
            }
            ErrorKind::MissingRequiredArgument => self.missing(),
            ErrorKind::ArgumentConflict => self.conflict(),
            ErrorKind::MissingSubcommand => "missing verb".into(),
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
            Some(verb) => format!("see gpuimg {} --help", verb.get_name()),
            None => "see gpuimg --help".into(),
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
        if Path::new(&word).exists() {
            return self.files_without_verb(&word);
        }
        let known = || {
            let similar = self.texts(ContextKind::SuggestedSubcommand);
            match similar.iter().rfind(|verb| alike(verb, &word)) {
                Some(verb) => format!("did you mean gpuimg {verb}?"),
                None => {
                    let verbs = self.whole.get_subcommands().map(Command::get_name);
                    let verbs: Vec<&str> = verbs.collect();
                    format!("the verbs are {}", verbs.join(", "))
                }
            }
        };
        let here = foreign(FOREIGN_VERBS, &word).map_or_else(known, Into::into);
        format!("unknown verb '{word}': {here}")
    }

    /// The commands that were probably meant, if the command line has only files, and `word` is the first.
    fn files_without_verb(&self, word: &str) -> String {
        let what = if Path::new(word).is_dir() {
            "folder"
        } else {
            "file"
        };
        let files: Vec<&Path> = (self.typed.iter())
            .filter(|word| !word.starts_with("--"))
            .map(Path::new)
            .collect();
        let [look, bright] = match (what, &files[..]) {
            ("folder", [input]) => [(*input, "looks/"), (*input, "out/")],
            ("folder", [input, ..]) => [(*input, "looks/"), (*input, "")],
            (_, [input, ..]) => [(*input, "look.jpg"), (*input, "")],
            _ => [(Path::new("IN"), "OUT.jpg"), (Path::new("IN"), "OUT")],
        }
        .map(|(input, output)| {
            let output = match (output, &files[..]) {
                ("", [_, output]) => Path::new(output),
                ("", [_]) => Path::new("bright.png"),
                ("", _) => Path::new("out/"),
                (output, _) => Path::new(output),
            };
            format!("{} {}", in_shell(input), in_shell(output))
        });
        format!(
            "'{word}' is a {what}, and a verb comes first: gpuimg preview {look} makes a small image to look at, gpuimg normalize \
             {bright} scales the range"
        )
    }

    fn unexpected(&self, word: &str) -> String {
        // A shell's pipe, in the text of `gpuimg run`.
        let hint = match word {
            "|" => " (+ separates two verbs, e.g. 'normalize + rotate 90')",
            _ => "",
        };
        format!("{}: unexpected argument '{word}'{hint}", self.name())
    }

    fn unknown_word(&self) -> String {
        let mut word = self.text(ContextKind::InvalidArg);
        // Of `-rotate`, as ImageMagick has it, the parser takes only `-r`.
        let is_whole = |typed: &&String| typed.len() > 2 && !typed.starts_with("--");
        let whole = self
            .typed
            .iter()
            .filter(is_whole)
            .find(|typed| typed.starts_with(&word));
        if let Some(whole) = whole.filter(|_| word.len() == 2 && word.starts_with('-')) {
            word.clone_from(whole);
        }
        let Some(bare) = word.strip_prefix('-').filter(|bare| !bare.is_empty()) else {
            return self.unexpected(&word);
        };
        let bare = bare.trim_start_matches('-');
        let has = |command: &&Command| {
            let mut options = command.get_arguments();
            options.any(|option| match word.starts_with("--") {
                true => option.get_long() == Some(bare),
                false => option.get_short().map(String::from).as_deref() == Some(bare),
            })
        };
        if let Some(verb) = self.verb.filter(has) {
            let name = verb.get_name();
            return format!("{word} goes after the verb: gpuimg {name} {word} …");
        }
        let of_project = (self.name() == "project")
            .then(|| foreign(FOREIGN_OPTIONS_OF_PROJECT, bare))
            .flatten();
        let here = of_project
            .or_else(|| foreign(FOREIGN_OPTIONS, bare))
            .map(String::from);
        let similar = self.text(ContextKind::SuggestedArg);
        let near = || {
            alike(similar.trim_start_matches('-'), bare).then(|| format!("did you mean {similar}?"))
        };
        let elsewhere = || {
            let other = self.whole.get_subcommands().find(has)?;
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
            _ => format!(": {}", listed(&known, " or")),
        };
        match option.split_once(' ') {
            Some((name, placeholder)) => {
                let placeholder = placeholder.trim_matches(['<', '>']);
                format!("{name} requires a value: {name} {placeholder}{known}")
            }
            None => format!("{option} requires a value{known}"),
        }
    }

    fn unknown_value(&self, value: &str) -> String {
        let known = listed(&self.texts(ContextKind::ValidValue), " or");
        let option = self.text(ContextKind::InvalidArg);
        if option.starts_with('-') {
            format!("{}: expected {known}", self.option(value))
        } else {
            let first = self
                .verb
                .is_some_and(|verb| verb.get_positionals().count() > 1);
            let first = if first { " first" } else { "" };
            let known = listed(&self.texts(ContextKind::ValidValue), " or");
            let more = match self.name() {
                "debayer" => self.mosaic_pattern(value),
                _ => String::new(),
            };
            format!(
                "{}: expected {known}{first}, got '{value}'{more}",
                self.name()
            )
        }
    }

    /// The pattern of the mosaic as the metadata of a typed file state it, or else how to find it. The word `value` was typed in
    /// its place.
    fn mosaic_pattern(&self, value: &str) -> String {
        let is_input = |word: &&String| *word != value || Path::new(word).is_file();
        let words: Vec<&Path> = (self.typed.iter().skip(1).filter(is_input))
            .map(Path::new)
            .collect();
        let mut files = words.iter().filter(|word| word.is_file());
        let stated = files.find_map(|file| Some((file, mosaic::stated_pattern(file)?)));
        match stated {
            Some((file, pattern)) => {
                let words: Vec<String> = words.iter().map(|word| as_word(word)).collect();
                format!(
                    " ({} states {pattern}: gpuimg debayer {pattern} {})",
                    file.shown(),
                    words.join(" ")
                )
            }
            None => " (the colours of the upper left 2×2 pixels, row by row: the camera's manual has them; or try all four \
                on one image: only one gives true colours)"
                .into(),
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
        if self.typed.iter().any(|word| word.starts_with(name)) || name != "--device" {
            format!("{name} {value}")
        } else {
            format!("GPUIMG_DEVICE={value}")
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
                "AXIS" => "a direction (horizontal or vertical)",
                "90|180|270" => "an angle (90, 180 or 270)",
                name => name,
            })
            .collect();
        let example = self.verb.and_then(Command::get_after_help);
        let example = example.map(ToString::to_string).unwrap_or_default();
        let example = example.lines().find_map(|line| {
            let command = line.strip_prefix("  ")?;
            Some(command.split("  ").next().unwrap_or(command))
        });
        let example = example.map_or(String::new(), |example| format!(", e.g. {example}"));
        let has_and = named.last().is_some_and(|name| name.contains(" and "));
        let named = listed(&named, if has_and { "," } else { " and" });
        format!("{} requires {named}{example}", self.name())
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
            [other] if *other == one => format!("{one} is given more than once"),
            others => format!("{one} and {} cannot be combined", others.join(", ")),
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

/// The values as a list: `a, b and c` if the `separator` before the last one is " and".
fn listed<T: AsRef<str>>(values: &[T], separator: &str) -> String {
    let texts: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    match texts[..] {
        [ref first @ .., last] if !first.is_empty() => {
            format!("{}{separator} {last}", first.join(", "))
        }
        _ => texts.concat(),
    }
}
