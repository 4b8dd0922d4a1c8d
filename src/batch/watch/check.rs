//! Checks that inputs, outputs and options can be combined with `--watch`.

use crate::batch::folder::is_below;
use crate::batch::options::Options;
use crate::os::name::Shown;
use crate::os::reason::plain;
use crate::os::{is_absence, is_same, parent};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Refuses what does not go with `--watch`: inputs that are not folders, options for a set that is
/// known from the beginning, and results that would come in again as inputs.
///
/// # Errors
/// Names the argument and the reason.
pub fn check(inputs: &[PathBuf], results: Option<&Path>, options: &Options) -> Result<()> {
    ensure!(
        !options.dry_run,
        "--dry-run shows what would be done now, but --watch waits for future files: remove --watch"
    );
    ensure!(
        options.selection.files_from.is_none(),
        "--watch waits for new files in folders, but --files-from lists files: remove one of them"
    );
    if let Some(name) = &options.watching.until_file {
        ensure!(
            name.components().count() == 1 && name.file_name().is_some(),
            "--until-file expects a file name without folders, got {}",
            name.shown()
        );
    }
    if options.watching.poll == Some(Duration::ZERO) {
        bail!("--poll expects more than 0 seconds between two scans");
    }
    let mut real: Vec<(PathBuf, &Path)> = Vec::new();
    for input in inputs {
        let unread = || format!("cannot read {}", input.shown());
        let is_folder = match fs::metadata(input) {
            Ok(about) => about.is_dir(),
            Err(error) if is_absence(&error) => false,
            Err(error) => return Err(plain(error)).with_context(unread),
        };
        ensure!(
            is_folder,
            "--watch expects folders, but {} is not a folder",
            input.shown()
        );
        let path = input.canonicalize().map_err(plain).with_context(unread)?;
        for (other, name) in &real {
            ensure!(
                !is_below(&path, other) && !is_below(other, &path),
                "--watch would process files twice: of {} and {}, one contains the other",
                name.shown(),
                input.shown()
            );
        }
        ensure!(
            !results.is_some_and(|results| is_same(results, input)),
            "--watch cannot write to {}, which it watches: results would become inputs (use a folder inside it)",
            input.shown()
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
    if above == path { None } else { resolved(above) }
}

#[cfg(test)]
mod tests {
    use super::super::options::seconds;
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
