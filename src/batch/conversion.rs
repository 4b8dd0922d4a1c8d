//! The inputs and outputs of a subcommand that makes images: finds the inputs once and names each
//! result. Wrong usage is reported here, before anything is read, made or replaced.

use super::inputs::{self, Selection};
use super::item::{Item, Items};
use super::key::Job;
use super::lineage::FilesRead;
use super::naming::{JOURNAL, Naming, Pattern};
use super::options::Files;
use super::shard::Shard;
use super::{output_paths, watch};
use crate::engine::options::Common;
use crate::formats::{Format, format};
use crate::os::name::{Shown, in_shell};
use crate::os::url::is_url;
use crate::os::{StoreRun, StoreTask, is_folder_of_files, is_store_name, same_file};
use crate::os::{system, url};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The inputs and the naming of their results.
#[derive(Debug)]
pub struct Conversion {
    /// The inputs, each with the path of its result; empty for a watch, which finds them as they arrive.
    pub items: Items,
    /// The inputs as they were typed.
    pub inputs: Vec<PathBuf>,
    /// How results are named.
    pub naming: Naming,
    /// The requested format; `None` leaves it to names and inputs.
    pub format: Option<&'static Format>,
    /// The files that the results depend on besides their inputs, if a report records them.
    pub reads: Vec<FilesRead>,
    /// The part of the pages that this run writes, if the only output is a Zarr store and `--shard` splits its pages.
    pub task: Option<StoreTask>,
}

impl Conversion {
    /// Interprets the arguments and options of a subcommand, whose inputs are read as `reading` says.
    ///
    /// # Errors
    /// Wrong usage: names the argument and its fault.
    pub fn from_arguments(files: &Files, common: &Common) -> Result<Conversion> {
        let reading = &common.reading;
        let (output, inputs) = match &files.output {
            Some(output) => (output, files.paths.as_slice()),
            None => files.paths.split_last().context("no output given")?,
        };
        let list = &files.batch.selection.files_from;
        ensure!(
            !inputs.is_empty() || list.is_some(),
            "expected an input and an output, got only {}: the output comes last, e.g. {}",
            output.shown(),
            common
                .typed
                .with_files(&[output, &output_beside(output, files)])
        );
        let numbered = files.name.as_ref().is_some_and(Pattern::has_page);
        ensure!(
            files.split || !numbered,
            "{{page}}, {{c}}, {{z}} and {{t}} in --name require --split"
        );
        let batch = &files.batch;
        let needs_file_each = batch.dry_run || batch.watching.watch;
        let continues = batch.resume || batch.selection.shard.is_some();
        ensure!(
            !(files.split && (needs_file_each || continues || batch.report.is_some())),
            "--split cannot be combined with --resume, --report, --dry-run, --shard or --watch"
        );
        ensure!(
            !(files.stack && (needs_file_each || continues && !is_store_name(output))),
            "--stack cannot be combined with --resume, --dry-run, --shard or --watch (--resume and --shard are possible if it makes a Zarr store)"
        );
        let naming = naming(files, inputs, output)?;
        ensure!(
            !(is_url(output) && continues),
            "--resume and --shard are not possible for a store in a bucket: write a local store and copy it"
        );
        let format = match &naming {
            Naming::File(path) if files.format.is_none() => {
                let named_format = format::of_extension(path)
                    .and_then(|format| format::check_written(format).map(|()| format));
                Some(named_format.with_context(|| format!("cannot write {}", path.shown()))?)
            }
            Naming::File(_) => files.format,
            Naming::Folder { format, .. } => *format,
        };
        let task = store_task(&naming, &files.batch.selection);
        let selection = &Selection {
            // Then all tasks have the only input.
            shard: files.batch.selection.shard.filter(|_| task.is_none()),
            ..files.batch.selection.clone()
        };
        ensure!(
            task.is_none() || !reading.keep_going,
            "--keep-going cannot be combined with --shard for one Zarr store: only the task that reads a damaged page could report it"
        );
        let mut items = if files.batch.watching.watch {
            watch::check::check(inputs, Some(naming.folder()), &files.batch)?;
            Items::default()
        } else {
            let results = Some(naming.folder());
            inputs::collect(inputs, selection, reading, results)?
        };
        if !files.batch.verbosity.quiet {
            // A resumed run knows its own results.
            let results = (!files.batch.resume).then_some(naming.folder());
            items.warn_about_earlier_results(results);
        }
        items.keeps_digests = files.batch.report.is_some();
        if is_url(output) {
            // An old store is removed before the new one is written.
            output_paths::keep_off("the result", output, &items.items, &[])?;
        }
        if files.stack {
            // One output, which gets its name when all inputs have been read.
            items.can_be_read_twice("--stack")?;
            items.warn_about_order();
            // A named output is replaced on purpose.
            let is_found = |item: &&Item| item.listed && same_file(item.file(), output);
            if output.exists()
                && let Some(item) = items.items.iter().find(is_found)
            {
                bail!(
                    "the stack would replace the input {}: write the stack to another folder",
                    item.input.shown()
                );
            }
        } else {
            naming.name(&mut items.items)?;
            let continues = files.batch.resume || task.is_some();
            output_paths::check(&items.items, &naming, files.overwrite || continues)?;
        }
        if output == Path::new("-") {
            files.batch.report_beside("the image")?;
        }
        if let Some(report) = &files.batch.report {
            let journal = naming.folder().join(JOURNAL);
            let others = [Some(&journal), list.as_ref()];
            let others: Vec<&Path> = others.into_iter().flatten().map(PathBuf::as_path).collect();
            output_paths::keep_report_off(report, &items.items, &others)?;
        }
        if let Some(list) = list {
            let what = "the list of --files-from";
            output_paths::keep_results_off(what, &[list], &items.items, &naming, files)?;
        }
        Ok(Conversion {
            items,
            inputs: inputs.into(),
            naming,
            format,
            reads: Vec::new(),
            task,
        })
    }

    /// How the Zarr stores of a job are written. With `--keep-going` a store is not continued, because the damage of pages that
    /// are finished would not be reported; and neither is that of a watch, whose range may change.
    pub fn store_run(&self, job: &Job, files: &Files, common: &Common) -> StoreRun {
        let batch = &files.batch;
        let may_continue = !common.reading.keep_going && !batch.watching.watch;
        StoreRun {
            options: may_continue.then(|| format!("{} {}", job.verb, job.key)),
            resume: batch.resume || self.task.is_some(),
            task: self.task.unwrap_or_default(),
        }
    }
}

/// The part of the pages that this run writes, if the only output is a Zarr store and `--shard` splits its pages.
fn store_task(naming: &Naming, selection: &Selection) -> Option<StoreTask> {
    match naming {
        Naming::File(path) if is_store_name(path) => {
            let Shard { index, count } = selection.shard?;
            Some(StoreTask { index, count })
        }
        _ => None,
    }
}

/// A name for the result of this input, for a hint: `out.tif` for `in.tif`, and the folder `out/` for a folder.
fn output_beside(input: &Path, files: &Files) -> PathBuf {
    let format = files.format.or(files.format_in_folders);
    let written = format::of_extension(input)
        .ok()
        .filter(|it| it.is_written());
    if is_folder_of_files(input) && !files.stack {
        return "out/".into();
    }
    let extension = match format.or(written) {
        Some(format) => format.extensions[0],
        None if files.stack => "tif",
        None => "png",
    };
    Path::new("out").with_extension(extension)
}

/// Whether the output is one image or a folder of images, which need not exist yet.
fn naming(files: &Files, inputs: &[PathBuf], output: &Path) -> Result<Naming> {
    url::check_output(output)?;
    if files.stack {
        ensure!(
            !is_folder_of_files(output) && (files.format.is_some() || output != Path::new("-")),
            "--stack writes one file, but {} is not the name of an image: give a name such as stack.tif last",
            output.shown()
        );
        return Ok(Naming::File(output.into()));
    }
    let several = inputs.len() != 1
        || files.batch.selection.files_from.is_some()
        || inputs.iter().any(|input| is_folder_of_files(input));
    let named_folder = system::ends_with_separator(output);
    let plain: PathBuf = output.components().collect();
    let is_folder = is_folder_of_files(output);
    let is_file = plain.exists() && !is_folder;
    let named_format = format::of_extension(output);
    let why = match (inputs, &files.name) {
        (_, Some(_)) => "--name is for results in a folder",
        _ if files.split => "--split writes a file for each page",
        _ if files.batch.selection.files_from.is_some() => "each image in the list has a result",
        ([folder], None) if several => &format!("{} is a folder of images", folder.shown()),
        (more, None) if several => &format!("{} inputs have {0} results", more.len()),
        _ if named_folder => "the trailing / makes it a folder",
        _ => "",
    };
    let shown = output.shown();
    let stream = output == Path::new("-");
    if !is_folder && !why.is_empty() {
        ensure!(
            !is_url(output),
            "{why}, but {shown} is one image: write a local folder and copy it, or --stack writes all pages to one store"
        );
        ensure!(
            !stream,
            "{why}, but - is a single stream: give an output folder last"
        );
        ensure!(
            !is_file,
            "{why}, but {shown} is a file: give an output folder last, e.g. out/"
        );
        ensure!(
            named_folder || named_format.is_err(),
            "{why}, but {shown} is the name of one image: give an output folder last, e.g. {}{}",
            in_shell(&output.with_extension("").join("")),
            match named_format {
                Ok(format) if format.capabilities.pages && !files.split && files.name.is_none() => {
                    "; or --stack to write all pages to one file"
                }
                _ => "",
            }
        );
    } else if !is_folder {
        let asked = files.format.is_some() || is_file;
        match named_format {
            _ if stream && files.format.is_none() => {
                bail!("cannot write to standard output: choose a format, e.g. --format png")
            }
            _ if stream => return Ok(Naming::File(output.into())),
            Err(error) if !asked && output.extension().is_some() => bail!(
                "cannot write {}: {error}; add a trailing / if it is a folder",
                output.shown()
            ),
            Err(_) if !asked => {
                let name = output.to_str().unwrap_or_default();
                let extension = name.strip_prefix('.').unwrap_or(name);
                if let [input] = inputs
                    && output.components().count() == 1
                    && format::of_extension(&Path::new("a").with_extension(extension)).is_ok()
                {
                    bail!(
                        "{shown} is a format, not the name of a file: name the output, e.g. {}; add a trailing / if it is a folder",
                        in_shell(&input.with_extension(extension))
                    );
                }
            }
            _ => return Ok(Naming::File(output.into())),
        }
    }
    Ok(Naming::Folder {
        folder: output.into(),
        pattern: match (&files.name, files.split) {
            (Some(name), _) => name.clone(),
            (None, true) => Pattern::for_pages(),
            (None, false) => Pattern::default(),
        },
        format: files
            .format
            .or(files.format_in_folders.filter(|_| files.name.is_none())),
    })
}
