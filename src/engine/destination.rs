//! Where an output goes and how it is written.

use super::errors::unwritten;
use crate::formats::{self, Format};
use crate::image::{Depth, Shape};
use crate::ops::fit::Fit;
use crate::os::{self, Target};
use anyhow::{Context, Result, ensure};
use std::io;
use std::path::PathBuf;

/// Where an output goes and how it is written.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The file's path, or `-` for standard output.
    pub path: PathBuf,
    /// The folder of results that the path is in; `None` if the user names the file.
    pub folder: Option<PathBuf>,
    /// The output's format; `None` keeps the input's.
    pub format: Option<&'static dyn Format>,
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
}

impl Destination {
    /// The largest shape that this destination can make of an image of the given shape, of which the
    /// operation makes samples of the depth `made`.
    pub fn grown(&self, shape: Shape, made: Depth) -> Shape {
        self.fitted(Shape {
            depth: self.depth.unwrap_or(made),
            ..shape
        })
    }

    /// The shape after `--fit` of a result of this shape.
    pub fn fitted(&self, shape: Shape) -> Shape {
        self.fit.map_or(shape, |fit| fit.output(shape))
    }

    /// Refuses a result of this depth, which cannot be made as small as asked for.
    ///
    /// # Errors
    /// The reason, and what to do.
    pub fn check_fit(&self, shape: &Shape, made: Depth) -> Result<()> {
        if self.fitted(*shape) == *shape {
            return Ok(());
        }
        ensure!(
            !made.is_wide(),
            "--fit supports only 8- and 16-bit samples, but these are {made} (use normalize to convert them)"
        );
        Ok(())
    }

    /// Makes the folder that it goes to.
    ///
    /// # Errors
    /// A folder that cannot be made, and one outside the folder of results.
    pub fn make_folder(&self) -> io::Result<()> {
        let folder = os::parent(&self.path);
        match &self.folder {
            Some(root) => os::make_folder_below(root, folder, self.sync),
            None => os::make_folder(folder, self.sync),
        }
    }

    /// Prepares it without touching what is there.
    ///
    /// # Errors
    /// A file that exists, unless it may be replaced, or a folder that cannot be written.
    pub fn create(&self) -> Result<Target> {
        let target = match &self.folder {
            Some(folder) => Target::create_below(folder, &self.path, self.overwrite),
            None => Target::create(&self.path, self.overwrite),
        };
        let mut target = target.with_context(|| unwritten(&self.path))?;
        target.sync = self.sync;
        Ok(target)
    }
}
