//! Where an output goes and how it is written.

use super::errors::cannot_write;
use crate::formats::{self, Format, HEADERLESS};
use crate::image::{Depth, Shape};
use crate::ops::fit::Fit;
use crate::os::url::is_url;
use crate::os::{self, StoreRun, Target};
use anyhow::{Context, Result, ensure};
use std::io;
use std::path::PathBuf;

/// Where an output goes and how it is written.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// The file's path, or `-` for standard output.
    pub path: PathBuf,
    /// The folder of results that the path is in; `None` if the user named the file.
    pub folder: Option<PathBuf>,
    /// The output's format; `None` keeps the input's.
    pub format: Option<&'static Format>,
    /// The compression for each format.
    pub options: formats::Options,
    /// Whether to replace an existing file.
    pub overwrite: bool,
    /// Whether to flush the file to the disk before it gets its name, and the directory afterwards.
    pub sync: bool,
    /// The output's depth; `None` keeps the input's.
    pub depth: Option<Depth>,
    /// Whether to apply the orientation tag first, so that the image is upright.
    pub auto_orient: bool,
    /// The most pixels that the longer side of the result may have.
    pub fit: Option<Fit>,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub low_memory: bool,
    /// How a Zarr store is written.
    pub store: StoreRun,
}

impl Destination {
    /// The output's format, for an input of this format.
    ///
    /// # Errors
    /// An input without a header, whose type an output without a name for its format would not keep.
    pub fn format_for(&self, input: &'static Format) -> Result<&'static Format> {
        if self.format.is_none() {
            ensure!(
                input != HEADERLESS,
                "the inputs have no header, so the output needs a format of its own, e.g. --format tiff, or --format raw with --raw-type"
            );
        }
        Ok(self.format.unwrap_or(input))
    }

    /// The largest shape that the output of a page can have, given the shape of the operations' result.
    pub fn largest_output(&self, result: Shape) -> Shape {
        self.fitted(Shape {
            depth: self.depth.unwrap_or(result.depth),
            ..result
        })
    }

    /// The shape of a result after `--fit`.
    pub fn fitted(&self, shape: Shape) -> Shape {
        self.fit.map_or(shape, |fit| fit.output(shape))
    }

    /// Refuses `--fit` for samples that it cannot average.
    ///
    /// # Errors
    /// The reason, and what to do.
    pub fn check_fit(&self, shape: &Shape, output_depth: Depth) -> Result<()> {
        if self.fitted(*shape) == *shape {
            return Ok(());
        }
        ensure!(
            !output_depth.is_wide(),
            "--fit supports only 8- and 16-bit samples, but these are {output_depth} (use normalize to convert them)"
        );
        Ok(())
    }

    /// Creates the folder of the output. A bucket has none.
    ///
    /// # Errors
    /// A folder that cannot be created, and one outside the folder of results.
    pub fn make_folder(&self) -> io::Result<()> {
        if is_url(&self.path) {
            return Ok(());
        }
        let folder = os::parent(&self.path);
        match &self.folder {
            Some(root) => os::make_folder_below(root, folder, self.sync),
            None => os::make_folder(folder, self.sync),
        }
    }

    /// Prepares the output without changing an existing file.
    ///
    /// # Errors
    /// A file that exists, unless it may be replaced, or a folder that cannot be written.
    pub fn create(&self) -> Result<Target> {
        let target = match &self.folder {
            Some(folder) => Target::create_below(folder, &self.path, self.overwrite),
            None => Target::create(&self.path, self.overwrite),
        };
        let mut target = target.with_context(|| cannot_write(&self.path))?;
        target.sync = self.sync;
        target.store_run = self.store.clone();
        Ok(target)
    }
}
