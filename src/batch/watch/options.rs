//! The options of a watch, and what does not go with them.

use crate::batch::options::Options;
use crate::files::parent;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a file must be unchanged where no event tells that it is whole.
const SETTLE: Duration = Duration::from_secs(1);

/// The options of a watch.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Watching {
    /// Stay, and process files as they come into the folders, what is there first, until Ctrl-C; what an earlier run has done is skipped
    #[arg(long, help_heading = "Watched folders")]
    pub watch: bool,

    /// End when all is done and nothing has come for so many SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub idle: Option<Duration>,

    /// End when a file of this NAME is in an input folder, after all that came before it
    #[arg(
        long,
        value_name = "NAME",
        requires = "watch",
        help_heading = "Watched folders"
    )]
    pub until_file: Option<PathBuf>,

    /// Look at the folders every so many SECONDS, where no events come, as on network file systems
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub poll: Option<Duration>,

    /// Take a file that no event calls whole when size and time have not changed for so many SECONDS [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "watch", help_heading = "Watched folders")]
    pub settle: Option<Duration>,
}

impl Watching {
    /// How long a file must be unchanged where no event tells that it is whole.
    pub fn settle(&self) -> Duration {
        self.settle.unwrap_or(SETTLE)
    }
}

/// A number of seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // Longer ones could not be added to the present.
    duration
        .filter(|duration| duration.as_secs() < 1 << 32)
        .ok_or_else(|| "expected seconds, as 5 or 0.5".into())
}

/// Refuses what does not go with `--watch`: inputs that are not folders, options for a set that is
/// known from the beginning, and results that would come in again as inputs.
///
/// # Errors
/// Names the argument and the reason.
pub fn check(inputs: &[PathBuf], results: Option<&Path>, options: &Options) -> Result<()> {
    ensure!(
        !options.dry_run,
        "--dry-run tells what would be done now, and --watch does not end now: leave --watch out"
    );
    ensure!(
        options.selection.files_from.is_none(),
        "--watch takes files as they come into folders, and --files-from names files"
    );
    if let Some(name) = &options.watching.until_file {
        ensure!(
            name.components().count() == 1 && name.file_name().is_some(),
            "--until-file takes a name without folders, and {} is none",
            name.display()
        );
    }
    if options.watching.poll == Some(Duration::ZERO) {
        bail!("--poll 0 would do nothing but look: give the seconds between two looks");
    }
    let mut real: Vec<(PathBuf, &Path)> = Vec::new();
    for input in inputs {
        ensure!(
            input.is_dir(),
            "--watch takes folders, and {} is none",
            input.display()
        );
        let path = input
            .canonicalize()
            .with_context(|| format!("cannot read {}", input.display()))?;
        for (other, name) in &real {
            ensure!(
                !path.starts_with(other) && !other.starts_with(&path),
                "--watch would take files of {} and {} twice: one is in the other",
                name.display(),
                input.display()
            );
        }
        ensure!(
            results.and_then(resolved).as_ref() != Some(&path),
            "--watch cannot write to the folder that it watches, {}: results would come in as inputs \
             (a folder inside it is fine)",
            input.display()
        );
        real.push((path, input));
    }
    Ok(())
}

/// A path without links, as far as it exists.
pub fn resolved(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Some(real),
        Err(_) => Some(resolved_parent(path)?.join(path.file_name()?)),
    }
}

fn resolved_parent(path: &Path) -> Option<PathBuf> {
    let above = parent(path);
    match above == path {
        true => None,
        false => resolved(above),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "x", "-1", "inf", "NaN", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn folders_that_are_not_there_yet() {
        let here = Path::new(".").canonicalize().expect("a folder");
        assert_eq!(resolved(Path::new("new/deep")), Some(here.join("new/deep")));
        assert_eq!(resolved(Path::new("/")), Some("/".into()));
    }
}
