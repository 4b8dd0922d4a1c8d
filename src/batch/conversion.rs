//! The inputs and outputs of a subcommand that makes images: finds the inputs once and names each
//! result. Wrong usage is reported here, before anything is read, made or replaced.

use super::inputs;
use super::item::Items;
use super::naming::{JOURNAL, Naming};
use super::options::Files;
use super::places;
use crate::codec::{Format, format};
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The inputs and the naming of their results.
#[derive(Debug)]
pub struct Conversion {
    /// The inputs, each with the path of its result.
    pub items: Items,
    /// How results are named.
    pub naming: Naming,
    /// The requested format; `None` leaves it to names and inputs.
    pub format: Option<&'static dyn Format>,
}

impl Conversion {
    /// Interprets the arguments and options of a subcommand.
    ///
    /// # Errors
    /// Wrong usage: names the argument and its fault.
    pub fn of(files: &Files) -> Result<Conversion> {
        let (output, inputs) = files.paths.split_last().context("no output is given")?;
        let list = &files.batch.selection.files_from;
        ensure!(
            !inputs.is_empty() || list.is_some(),
            "an input and an output are needed, and only {} is given",
            output.display()
        );
        let naming = naming(files, inputs, output)?;
        let format = match &naming {
            Naming::File(path) if files.format.is_none() => {
                let told = format::of_extension(path)
                    .and_then(|format| format::check_written(format).map(|()| format));
                Some(told.with_context(|| format!("cannot write {}", path.display()))?)
            }
            _ => files.format,
        };
        let mut items = inputs::collect(inputs, &files.batch.selection, Some(naming.folder()))?;
        naming.name(&mut items.items)?;
        places::check(&items.items, &naming, files.overwrite || files.batch.resume)?;
        if let Some(report) = &files.batch.report {
            let journal = naming.folder().join(JOURNAL);
            let others = [Some(&journal), list.as_ref()];
            let others: Vec<&Path> = others.into_iter().flatten().map(PathBuf::as_path).collect();
            places::keep_report_off(report, &items.items, &others)?;
        }
        Ok(Conversion {
            items,
            naming,
            format,
        })
    }
}

/// Whether the output is one image or a folder of images, which need not exist yet.
fn naming(files: &Files, inputs: &[PathBuf], output: &Path) -> Result<Naming> {
    let several = inputs.len() != 1
        || files.batch.selection.files_from.is_some()
        || inputs.iter().any(|input| input.is_dir());
    let named_folder = output.as_os_str().as_bytes().ends_with(b"/");
    let plain: PathBuf = output.components().collect();
    let is_file = plain.exists() && !plain.is_dir();
    let told = format::of_extension(output);
    let why = match (several, &files.name) {
        (true, _) => "several inputs",
        (false, Some(_)) => "--name is for results in a folder",
        (false, None) if named_folder => "the / at its end says that it is a folder",
        (false, None) => "",
    };
    if !output.is_dir() && !why.is_empty() {
        ensure!(
            output != Path::new("-"),
            "{why}, and - is one stream; a folder is needed"
        );
        ensure!(
            !is_file,
            "{why}, and {} is a file; the folder for the results comes last",
            output.display()
        );
        ensure!(
            named_folder || told.is_err(),
            "{why}, and {} is called like one image; a folder is needed",
            output.display()
        );
    } else if !output.is_dir() {
        let asked = files.format.is_some() || output == Path::new("-") || is_file;
        match told {
            Err(error) if !asked && output.extension().is_some() => bail!(
                "cannot write {}: {error}; a / at its end would make it a folder",
                output.display()
            ),
            Err(_) if !asked => {}
            _ => return Ok(Naming::File(output.into())),
        }
    }
    Ok(Naming::Folder {
        folder: output.into(),
        pattern: files.name.clone().unwrap_or_default(),
        format: files.format,
    })
}
