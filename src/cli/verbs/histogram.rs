//! `histogram`: counts how often each value occurs in a set of images, or in one shard of it.

use crate::batch::options::{Counted, Options};
use crate::batch::plan::can_be_written;
use crate::batch::{MeasuredSet, inputs as found, measure_set, output_paths};
use crate::cli::print_error;
use crate::engine::options::Common;
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, anyhow};
use std::path::{Path, PathBuf};

/// Counts all images that `inputs` and the options name, and writes the histogram to `output`. A range
/// without some images would give all others other pixels: if one cannot be read, it is named and nothing
/// is written, unless `--keep-going` leaves it out. No histogram is written for images of different kinds,
/// nor for a whole set without a readable image; a shard may be empty.
pub fn run(
    inputs: &[PathBuf],
    output: &Counted,
    options: &Options,
    common: &Common,
) -> Result<Outcome> {
    if options.watching.watch {
        let why = "histogram does not support --watch: count the folder when it is complete, or count it repeatedly with --overwrite while it grows, for --range-from FILE --follow";
        return Err(usage(anyhow!(why)));
    }
    common.check()?;
    let items = found::collect(inputs, &options.selection, &common.reading, None).map_err(usage)?;
    if !options.verbosity.quiet {
        items.warn_about_earlier_results(None);
    }
    let others = [&options.report, &options.selection.files_from];
    let others: Vec<&Path> = others.into_iter().flatten().map(PathBuf::as_path).collect();
    let path = &output.output;
    if path == Path::new("-") {
        options.report_beside("the histogram").map_err(usage)?;
    }
    output_paths::keep_off("the histogram", path, &items.items, &others).map_err(usage)?;
    // Checked here, and not after hours of counting.
    can_be_written(path, output.overwrite, true)
        .with_context(|| format!("cannot write {}", path.shown()))?;
    let MeasuredSet { set, outcome, .. } = measure_set(&[], &items, options, common, true)?;
    let (failed, files) = (set.failed, items.items.len() + items.unread.len());
    if failed > 0 && !common.reading.keep_going && !options.dry_run {
        // Where all failed, their own messages suffice.
        if failed < files as u64 {
            print_error(&anyhow!(
                "nothing was written: the histogram needs all images, but {failed} of {files} could not be read \
                 (use --keep-going to leave them out)"
            ));
        }
        return Ok(outcome);
    }
    let of_nothing = set.counts.is_none() && options.selection.shard.is_none();
    if options.dry_run || of_nothing {
        return Ok(outcome);
    }
    set.write(output)?;
    if !options.verbosity.quiet {
        set.mention_failed(&output.output);
    }
    Ok(outcome)
}
