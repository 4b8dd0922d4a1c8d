//! The two forms of help: `-h` fits a screen of 80×24 with what people use most; `--help` has everything, in groups.

use super::Cli;
use clap::{Arg, Command, CommandFactory};

/// Options that belong together, under a heading of `--help`.
struct Group {
    heading: &'static str,
    /// The long name of each option, with its text in `-h`. Without a text, it is only in `--help`.
    options: &'static [(&'static str, &'static str)],
}

/// The options that several verbs have. The others are the verb's own, and in both forms of help.
const GROUPS: [Group; 7] = [
    Group {
        heading: "Range",
        options: &[
            ("clip", "Ignore outliers, e.g. 0.1:99.9 (percent)"),
            ("auto", "Ignore outliers, and print the range used"),
            ("range", "Use this input range"),
            ("window", "Use this window, as for CT images"),
            ("to", ""),
            ("curve", ""),
            ("nan", ""),
            ("per-channel", ""),
            ("ignore", ""),
            ("unsigned", ""),
            ("undo", ""),
            ("scope", ""),
            ("across", "Use one range for all inputs"),
            ("range-from", ""),
        ],
    },
    Group {
        heading: "Input",
        options: &[
            ("pages", "Process only these pages of a stack"),
            ("axes", ""),
            ("level", ""),
            ("raw", ""),
            ("keep-going", ""),
            ("max-pixels", ""),
            ("include", ""),
            ("exclude", ""),
            ("files-from", ""),
            ("shard", ""),
        ],
    },
    Group {
        heading: "Output",
        options: &[
            ("output", ""),
            ("format", ""),
            ("depth", "Output bits per sample"),
            ("fit", "Shrink the longer side to N pixels"),
            ("overwrite", "Replace existing outputs"),
            ("auto-orient", ""),
            ("png", ""),
            ("tiff", ""),
            ("tiff-layout", ""),
            ("raw-type", ""),
            ("quality", ""),
            ("zarr", ""),
            ("zarr-chunk", ""),
            ("zarr-shard", ""),
            ("zarr-levels", ""),
            ("split", ""),
            ("stack", ""),
            ("name", ""),
            ("partial", ""),
            ("sync", ""),
        ],
    },
    Group {
        heading: "Many files",
        options: &[
            ("resume", "Continue an interrupted run"),
            ("no-journal", ""),
            ("dry-run", ""),
            ("report", ""),
            ("jobs", ""),
            ("mem-limit", ""),
            ("low-memory", ""),
            ("quiet", ""),
            ("no-progress", ""),
        ],
    },
    Group {
        heading: "Watched folders",
        options: &[
            ("watch", ""),
            ("idle", ""),
            ("until-file", ""),
            ("poll", ""),
            ("settle", ""),
            ("follow", ""),
        ],
    },
    Group {
        heading: "Device",
        options: &[("device", "auto, cpu, gpu or gpu:N")],
    },
    Group {
        heading: "Diagnostics",
        options: &[
            ("stats", ""),
            ("verbose", "Print the plan, the device and why"),
        ],
    },
];

/// Options that mean something of their own in one verb: the verb, the option, and its text in `-h`.
const OWN: [(&str, &str, &str); 26] = [
    (
        "combine",
        "colours",
        "A colour for each channel, e.g. C1=green",
    ),
    ("calibrate", "dark", "Dark frame, or images to average"),
    (
        "calibrate",
        "bias",
        "Bias frame, which dark and flat contain",
    ),
    ("calibrate", "flat", "Flat field, or images to average"),
    (
        "calibrate",
        "flat-start",
        "Flat field of the first image (and --flat-end)",
    ),
    ("calibrate", "flat-end", ""),
    ("calibrate", "depth", ""),
    ("calibrate", "fit", ""),
    ("calibrate", "offset", "Add this to every result"),
    ("calibrate", "hot", "Replace hot pixels by a median"),
    ("calibrate", "to", "f32: results in floating point"),
    ("calibrate", "log", "Attenuation: ln(flat / image)"),
    ("project", "saturate", "Clamp sums that are too large"),
    ("project", "scale", "Scale sums to the sample type"),
    (
        "project",
        "sigma",
        "Mean without outliers beyond K deviations",
    ),
    ("project", "depth", ""),
    ("project", "fit", ""),
    (
        "project",
        "axis",
        "Combine along this axis of a stack: z, t or c",
    ),
    ("debayer", "method", "bilinear or malvar"),
    ("bench", "describe", "Explain each experiment"),
    ("bench", "compare", "Compare with an earlier --json output"),
    (
        "bench",
        "tolerance",
        "Allowed slowdown of a row, in percent",
    ),
    ("bench", "html", "Also write a page"),
    ("bench", "from", "Show an earlier --json output"),
    (
        "info",
        "range",
        "Decode each image for its smallest and largest value",
    ),
    (
        "info",
        "html",
        "Write a page with pictures and warnings instead",
    ),
];

/// The verbs in `gpuimg -h`.
const VERBS: [(&str, &str); 11] = [
    ("normalize", "Scale the range of values to the full depth"),
    ("preview", "Make a small 8-bit image to look at"),
    ("convert", "Change the format, keep values and metadata"),
    ("crop", "Take a rectangle of the image"),
    ("rotate", "Rotate clockwise by 90, 180 or 270 degrees"),
    ("calibrate", "Subtract a dark frame, divide by a flat field"),
    ("project", "Combine many images, or the pages of a stack"),
    ("run", "Apply several verbs in one pass"),
    ("sum", "Sum, minimum, maximum and mean"),
    ("info", "Print what each image is"),
    ("verify", "Compare two images"),
];

/// The most lines of examples in `-h`, with their heading.
const MAX_EXAMPLE_LINES: usize = 3;

/// The command line, with the help that `typed`, the words after the program's name, ask for.
pub fn command(typed: &[String]) -> Command {
    let brief = typed.iter().any(|word| word == "-h");
    let program = Cli::command();
    let verbs: Vec<String> = program
        .get_subcommands()
        .map(|verb| verb.get_name().to_string())
        .collect();
    let arrange = if brief { shortened } else { grouped };
    let program = verbs.iter().fold(program, |program, verb| {
        program.mut_subcommand(verb, arrange)
    });
    if brief {
        with_usual_verbs(program, &verbs)
    } else {
        program
    }
}

/// A verb with its options in groups.
fn grouped(verb: Command) -> Command {
    let name = verb.get_name().to_string();
    verb.mut_args(|option| match text_and_group(&name, &option) {
        Some((_, Some(group))) => option.help_heading(group.heading),
        _ => option,
    })
}

/// A verb with its usual options, in one list.
fn shortened(verb: Command) -> Command {
    let name = verb.get_name().to_string();
    let examples = verb.get_after_help().map(ToString::to_string);
    let examples = examples.unwrap_or_default();
    let first: Vec<&str> = examples.lines().take(MAX_EXAMPLE_LINES).collect();
    let more = format!("All options, and more examples: gpuimg {name} --help");
    let after = if first.is_empty() {
        more
    } else {
        format!("{}\n{more}", first.join("\n"))
    };
    verb.mut_args(|option| {
        let option = with_short_value(option.help_heading(None::<&str>));
        match text_and_group(&name, &option).map(|(brief, _)| brief) {
            Some("") => option.hide(true),
            Some(brief) if option.get_action().takes_values() => option
                .help(brief)
                .hide_possible_values(true)
                .hide_default_value(true)
                .hide_env(true),
            Some(brief) => option.help(brief),
            None if ["paths", "inputs"].contains(&option.get_id().as_str()) => {
                option.hide_short_help(true)
            }
            None => option,
        }
    })
    .after_help(after)
}

/// An option whose other forms of a value are only in `--help`, which leaves room for the text beside it.
fn with_short_value(option: Arg) -> Arg {
    if option.get_long() == Some("range") && option.get_action().takes_values() {
        option.value_name("MIN:MAX")
    } else {
        option
    }
}

/// The program's help with the usual verbs.
fn with_usual_verbs(program: Command, verbs: &[String]) -> Command {
    let shown = |program: Command, verb: &String| {
        let brief = VERBS.iter().find(|(name, _)| name == verb);
        program.mut_subcommand(verb, |command| match brief {
            Some((_, brief)) => command.about(*brief),
            None => command.hide(true),
        })
    };
    let program = verbs.iter().fold(program, shown);
    program
        .mut_arg("version", |option| option.help("Print the version"))
        .mut_arg("licenses", |option| option.hide(true))
        .mut_arg("json_usage", |option| option.hide(true))
        .disable_help_subcommand(true)
        .about("Normalize, rotate and sum 16-bit images on a GPU or on the CPU")
        .after_help(
            "All verbs: gpuimg --help. A verb's options: gpuimg VERB -h, gpuimg VERB --help",
        )
}

/// The text of an option in `-h`, and its group in `--help`; an option of the verb's own has no group.
fn text_and_group(verb: &str, option: &Arg) -> Option<(&'static str, Option<&'static Group>)> {
    let name = option.get_long()?;
    let own = OWN.iter().find(|own| (own.0, own.1) == (verb, name));
    if let Some((_, _, brief)) = own {
        return Some((brief, None));
    }
    GROUPS.iter().find_map(|group| {
        let (_, brief) = group.options.iter().find(|(known, _)| *known == name)?;
        Some((*brief, Some(group)))
    })
}
