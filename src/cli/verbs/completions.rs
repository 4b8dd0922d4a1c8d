//! `completions`: prints a script with which a shell completes the command line.

use crate::cli::Cli;
use crate::os::console;
use crate::os::outcome::Outcome;
use anyhow::Result;
use clap::{Arg, CommandFactory};
use clap_complete::Shell;

/// Prints the script for `shell`.
pub fn run(shell: Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gpuimg", &mut script);
    let script = String::from_utf8(script)?;
    let script = if shell == Shell::Bash {
        for_files(&script)
    } else {
        script
    };
    console::print_lines(&script)?;
    Ok(Outcome::Done)
}

/// A script for bash that offers options where one is begun, so that the files that bash finds are
/// offered elsewhere, and no hidden options.
fn for_files(script: &str) -> String {
    let program = Cli::command();
    let mut script = script.replace(
        r#"compgen -W "${opts}" -- "${cur}""#,
        r#"compgen -W "${opts}" -X "$([[ ${cur} == -* ]] || echo '-*')" -- "${cur}""#,
    );
    for verb in program.get_subcommands() {
        let label = format!("gpuimg__subcmd__{})\n", verb.get_name());
        let hidden = verb.get_arguments().filter(|option| option.is_hide_set());
        for option in hidden.filter_map(Arg::get_long) {
            let Some((before, after)) = script.split_once(&label) else {
                continue;
            };
            let after = after.replacen(&format!(" --{option} "), " ", 1);
            script = format!("{before}{label}{after}");
        }
    }
    script
}
