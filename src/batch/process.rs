//! Batches for the library: the same as the command line's, but nothing is printed.

use super::Batch;
use super::conversion::Conversion;
use super::key::Job;
use super::naming::{Naming, Pattern};
use super::options::{Bits, Files, Options, Verbosity};
use super::report::FileOutcome;
use crate::api::{Device, Error, Format, Operations, ReadOptions, Report, Result, WriteOptions};
use crate::engine::Destination;
use crate::engine::options::{Common, DeviceOption, TypedCommand};
use crate::image::Depth;
use crate::os::memory_budget;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use thiserror::Error as ThisError;

/// How [`process`] processes files. The words of the methods are those of the command line's options.
///
/// ```
/// use gpuimg::{Device, WriteOptions, batch::BatchOptions};
/// let options = BatchOptions::new()
///     .device(Device::cpu())
///     .include("*.tif")
///     .name("{stem}-normalized.png")?
///     .writing(WriteOptions::new().overwrite());
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchOptions {
    device: Device,
    reading: ReadOptions,
    writing: WriteOptions,
    options: Options,
    name: Option<Pattern>,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions::new()
    }
}

impl BatchOptions {
    /// All images, one for each core at the same time, on the faster device, with half of the free memory.
    pub fn new() -> BatchOptions {
        BatchOptions {
            device: Device::auto(),
            reading: ReadOptions::new(),
            writing: WriteOptions::new(),
            options: Options {
                verbosity: Verbosity::default().silent(),
                ..Options::default()
            },
            name: None,
        }
    }

    /// The device. `gpu` without a number uses all GPUs, each with several images at the same time.
    pub fn device(mut self, device: Device) -> BatchOptions {
        self.device = device;
        self
    }

    /// How the inputs are read.
    pub fn reading(mut self, reading: ReadOptions) -> BatchOptions {
        self.reading = reading;
        self
    }

    /// How the outputs are written.
    pub fn writing(mut self, writing: WriteOptions) -> BatchOptions {
        self.writing = writing;
        self
    }

    /// In folders, processes only files that match this pattern (the path below the folder, or the name). After several calls, a
    /// file must match one of the patterns.
    pub fn include(mut self, glob: &str) -> BatchOptions {
        self.options.selection.include.push(glob.into());
        self
    }

    /// In folders, skips files and folders that match this pattern.
    pub fn exclude(mut self, glob: &str) -> BatchOptions {
        self.options.selection.exclude.push(glob.into());
        self
    }

    /// The names of outputs in a folder, with `{stem}` and `{ext}` of the input; an extension decides the format.
    ///
    /// # Errors
    /// A name that leaves the folder, or has other fields.
    pub fn name(mut self, pattern: &str) -> Result<BatchOptions> {
        self.name = Some(pattern.parse().map_err(Error::argument)?);
        Ok(self)
    }

    /// How many images are processed at the same time.
    pub fn jobs(mut self, jobs: NonZeroUsize) -> BatchOptions {
        self.options.jobs = Some(jobs);
        self
    }

    /// The memory for all images in progress: `8G` or `500M`.
    ///
    /// # Errors
    /// Anything else.
    pub fn memory(mut self, size: &str) -> Result<BatchOptions> {
        let limit = memory_budget::limit(size).map_err(Error::argument)?;
        self.options.mem_limit = Some(limit);
        Ok(self)
    }

    /// Skips inputs that an earlier run with the same options has done, and that have not changed since.
    pub fn resume(mut self) -> BatchOptions {
        self.options.resume = true;
        self
    }
}

/// What became of a file of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileStatus {
    /// The output is complete. It has [damage](Report::damage) only if the batch reads damaged files.
    Done(Box<Report>),
    /// An earlier run has done it.
    Skipped,
    /// There is no output, for this reason.
    Failed(Error),
}

/// A file of a batch.
#[derive(Debug)]
pub struct FileResult {
    /// The input.
    pub input: PathBuf,
    /// The output; `None` for an input that could not be read when the files were listed.
    pub output: Option<PathBuf>,
    /// What became of it.
    pub status: FileStatus,
    /// How many files are finished, with this one.
    pub finished: usize,
    /// How many files the batch has.
    pub files: usize,
}

impl FileResult {
    /// The error of a file that failed.
    pub fn error(&self) -> Option<&Error> {
        match &self.status {
            FileStatus::Failed(error) => Some(error),
            FileStatus::Done(_) | FileStatus::Skipped => None,
        }
    }
}

/// Stops a batch when its caller wants no more.
#[derive(Debug, ThisError)]
#[error("stopped")]
struct Stopped;

/// Processes files, or all images in folders, into `output`, on all cores and GPUs. Bad files are reported, and the others are
/// processed; an output gets its name when it is complete.
///
/// `output` is a folder, created if missing, which keeps the structure of input folders; for one input file it may be a file. The
/// names, the journal for [`resume`](BatchOptions::resume), and the bytes are those of the command line.
///
/// `on_file` is called on this thread with each file as soon as it is finished. If it returns `Break`, it is not called again: the
/// files in progress are finished and are among the results, and the others are not processed.
///
/// ```
/// use gpuimg::{Device, Operations, batch};
/// use std::ops::ControlFlow;
/// # let folder = tempfile::tempdir().unwrap();
/// # let (input, output) = (folder.path().join("in"), folder.path().join("out"));
/// # std::fs::create_dir(&input).unwrap();
/// # let image = gpuimg::Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?;
/// # gpuimg::write(input.join("a.png"), &image)?;
/// # std::fs::write(input.join("b.png"), b"not an image").unwrap();
/// let operations: Operations = "normalize --clip 0.1:99.9 + rotate 90".parse()?;
/// let options = batch::BatchOptions::new().device(Device::cpu());
/// let results = batch::process(&[&input], &output, &operations, &options, |file| {
///     println!("{} of {}: {}", file.finished, file.files, file.input.display());
///     ControlFlow::Continue(())
/// })?;
/// for failed in results.iter().filter_map(|file| file.error()) {
///     eprintln!("{failed}");
/// }
/// # assert_eq!((results.len(), results.iter().filter_map(|file| file.error()).count()), (2, 1));
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// Inputs and outputs that do not fit together, a folder that cannot be created, and a GPU that was asked for and cannot be used.
/// The error of a single file is in its result.
pub fn process(
    inputs: &[impl AsRef<Path>],
    output: impl AsRef<Path>,
    operations: &Operations,
    options: &BatchOptions,
    mut on_file: impl FnMut(&FileResult) -> ControlFlow<()>,
) -> Result<Vec<FileResult>> {
    let files = files(inputs, output.as_ref(), operations, options);
    let common = Common {
        device: DeviceOption {
            choice: options.device.choice(),
            typed: true,
        },
        stats: None,
        verbose: false,
        reading: options.reading.reading,
        typed: TypedCommand::default(),
    };
    let asked = Conversion::from_arguments(&files, &common).map_err(Error::new)?;
    let ops = operations.list();
    let job = Job::new(&ops, false, false, &files, &common).map_err(Error::new)?;
    let format = asked.format.or_else(|| asked.naming.format());
    let depth = files.depth.map(Depth::from);
    let template = Destination {
        path: PathBuf::new(),
        folder: match &asked.naming {
            Naming::Folder { folder, .. } => Some(folder.clone()),
            Naming::File(_) => None,
        },
        format: asked.format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: format.map_or(depth, |format| Format::new(format).depth(depth)),
        auto_orient: files.auto_orient,
        fit: files.fit,
        low_memory: false,
        store: asked.store_run(&job, &files, &common),
    };
    let (items, unread) = (&asked.items.items, &asked.items.unread);
    let total = items.len() + unread.len();
    let mut results: Vec<FileResult> = Vec::with_capacity(total);
    let mut stopped = false;
    let mut finish = |input: &Path, output: Option<&Path>, status| {
        let result = FileResult {
            input: input.into(),
            output: output.map(Path::to_path_buf),
            status,
            finished: results.len() + 1,
            files: total,
        };
        // The files that were in progress when the caller stopped come after that.
        stopped = stopped || on_file(&result).is_break();
        results.push(result);
        if stopped {
            return Err(anyhow::Error::from(Stopped));
        }
        Ok(())
    };
    let batch = Batch {
        ops: &ops,
        items: &asked.items,
        template: Some(&template),
        naming: Some(&asked.naming),
        options: &files.batch,
        common: &common,
        reads: &[],
        range_file: None,
        prints: false,
        names_failures: false,
    };
    let mut unread = unread.iter().map(|unread| {
        let failed = FileStatus::Failed(Error::new(unread.error()));
        finish(&unread.path, None, failed)
    });
    let done = unread.try_for_each(|finished| finished).and_then(|()| {
        batch.convert(job, &asked, |index, outcome| {
            let item = &items[index];
            let status = match outcome {
                FileOutcome::Done(done) => FileStatus::Done(Box::new(Report::of_job(*done))),
                FileOutcome::Skipped => FileStatus::Skipped,
                FileOutcome::Failed(error) => FileStatus::Failed(Error::new(error)),
            };
            finish(&item.input, item.output.as_deref(), status)
        })
    });
    match done {
        Err(error) if !error.is::<Stopped>() => Err(Error::new(error)),
        _ => Ok(results),
    }
}

/// The inputs, the output and the options as those of a command line.
fn files(
    inputs: &[impl AsRef<Path>],
    output: &Path,
    operations: &Operations,
    options: &BatchOptions,
) -> Files {
    let (depth, auto_orient, fit) = operations.shape_options();
    let BatchOptions {
        device: _,
        reading: _,
        writing,
        options,
        name,
    } = options;
    Files {
        paths: inputs.iter().map(|path| path.as_ref().into()).collect(),
        output: Some(output.into()),
        format: writing.format.map(Format::engine),
        format_in_folders: None,
        depth: match depth {
            Some(Depth::Eight) => Some(Bits::Eight),
            Some(Depth::Sixteen) => Some(Bits::Sixteen),
            Some(Depth::ThirtyTwo | Depth::Float | Depth::Double) | None => None,
        },
        auto_orient,
        fit,
        low_memory: false,
        overwrite: writing.overwrite,
        sync: writing.sync,
        split: false,
        stack: false,
        name: name.clone(),
        batch: options.clone(),
        options: writing.encoding,
    }
}
