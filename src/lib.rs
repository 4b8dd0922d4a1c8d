//! gpuimg normalizes, rotates, sums and converts 8-, 16-, 32- and 64-bit images, on an NVIDIA GPU or on the CPU, with the same
//! bytes from both. This library is the engine of the program `gpuimg`: the same operations give the same bytes.
//!
//! # From file to file
//!
//! [`Operations`] are built by methods, or parsed from the text that `gpuimg run` takes. [`Operations::run_file`] reads a file,
//! runs them on all of its pages, and writes the result, which gets its name when it is complete.
//!
//! ```
//! use gpuimg::{Device, Operations, ReadOptions, WriteOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = |name: &str| folder.path().join(name);
//! # gpuimg::write(path("scan.tif"), &gpuimg::Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?)?;
//! # let (scan, out) = (path("scan.tif"), path("out.png"));
//! let operations: Operations = "normalize --clip 0.1:99.9 + rotate 90".parse()?;
//! let report = operations.run_file(&scan, &out, &ReadOptions::new(), &WriteOptions::new(), &Device::auto())?;
//! for warning in report.warnings {
//!     eprintln!("{}: {warning}", scan.display());
//! }
//! # assert!(out.exists());
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Pixels in memory
//!
//! [`read`] and [`decode`] give an [`Image`]: its samples, row by row with the channels of a pixel side by side, and all metadata
//! of its file. [`Image::new`] makes one of a `Vec`. [`Operations::run`] makes another image of it, whose metadata are true of the
//! new pixels, and [`write()`] and [`encode`] store it in any format.
//!
//! ```
//! use gpuimg::{Device, Image, Normalize, Operations};
//!
//! let image = Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?;
//! let result = Operations::new().normalize(Normalize::new()).run(image, &Device::cpu())?;
//!
//! // 65535 / 10 = 6553.5: halves round up.
//! assert_eq!(result.to_vec::<u16>()?, [0, 6554, 13107, 19661, 26214, 65535]);
//! assert_eq!(result.report().ranges[0], [(10.0, 20.0)]);
//!
//! let png: Vec<u8> = gpuimg::encode(&result, "png".parse()?)?;
//! assert_eq!(gpuimg::decode(png)?, result);
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Stacks
//!
//! A [`Stack`] is an open file of one or more pages, which are decoded when they are asked for. [`Operations::run_stack`] scales
//! all pages from one range, as the command line does, and [`write_stack`] writes them to one file.
//!
//! ```
//! use gpuimg::{Device, Image, Normalize, Operations, Stack, WriteOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = |name: &str| folder.path().join(name);
//! let pages = [Image::new(2, 1, 1, vec![0u16, 10])?, Image::new(2, 1, 1, vec![5u16, 20])?];
//! gpuimg::write_stack(path("stack.tif"), &pages, &WriteOptions::new())?;
//!
//! let pages: Vec<Image> = Stack::open(path("stack.tif"))?.pages()?.collect::<gpuimg::Result<_>>()?;
//! let results = Operations::new().normalize(Normalize::new()).run_stack(pages, &Device::cpu())?;
//! assert_eq!(results[0].to_vec::<u16>()?, [0, 32768]);
//! assert_eq!(results[1].to_vec::<u16>()?, [16384, 65535]);
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Folders
//!
//! [`batch::process`] processes folders on all cores and GPUs, reports each file as it is finished, and can resume an interrupted
//! run.
//!
//! ```
//! use gpuimg::{Device, Normalize, Operations, batch};
//! use std::ops::ControlFlow;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (input, output) = (folder.path().join("in"), folder.path().join("out"));
//! # std::fs::create_dir(&input).unwrap();
//! # gpuimg::write(input.join("a.tif"), &gpuimg::Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?)?;
//! let operations = Operations::new().normalize(Normalize::clip(0.1, 99.9)?);
//! let options = batch::BatchOptions::new().device(Device::cpu()).name("{stem}.png")?;
//! let results = batch::process(&[&input], &output, &operations, &options, |file| {
//!     println!("{} of {}", file.finished, file.files);
//!     ControlFlow::Continue(())
//! })?;
//! assert!(results.iter().all(|file| file.error().is_none()));
//! # assert!(output.join("a.png").exists());
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Numbers
//!
//! [`sum()`] adds up samples exactly and finds their smallest and largest value; [`histogram()`] counts how often each value occurs.
//!
//! ```
//! use gpuimg::{Device, Image, SumValue};
//!
//! let image = Image::new(2, 1, 3, vec![1u16, 2, 3, 4, 5, 6])?;
//! let sums = gpuimg::sum(&image, &Device::cpu())?;
//! assert_eq!(sums.total.sum, SumValue::Whole(21));
//! assert_eq!(sums.channels[2].name, "blue");
//! assert_eq!(sums.channels[2].sum, SumValue::Whole(9));
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Images in the memory of a GPU
//!
//! A [`GpuImage`] is decoded on the GPU or copied there, and stays there while operations change it. Kernels and libraries of yours can
//! read and write its memory; [`GpuImage::copy_array`] takes theirs. All work on an image has ended when a call returns.
//!
//! ```no_run
//! use gpuimg::{Device, GpuImage, GpuReader, Operations, ReadOptions};
//!
//! let gpu = Device::gpu();
//! let image = GpuImage::read("scan.png", &ReadOptions::new(), &gpu)?;
//! let result = Operations::new().rotate90().run_on_gpu(&image)?;
//! let address: u64 = result.address(GpuReader::DefaultStream)?;
//! let on_host: gpuimg::Image = result.download()?;
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # Devices, plans and errors
//!
//! A [`Device`] is the CPU, a GPU, or `auto`, which chooses the faster one by an estimate. Keep it: its GPU is started once.
//! [`Operations::plan`] says what will happen before anything happens. An [`Error`] has the operation, the file and the reason, and
//! displays as the sentence of the command line.
//!
//! ```
//! use gpuimg::{Device, Image, Operations};
//!
//! let image = Image::new(3, 2, 1, vec![10u16, 11, 12, 13, 14, 20])?;
//! let operations: Operations = "normalize + rotate 90".parse()?;
//! println!("{}", operations.plan(&[image], &Device::cpu())?[0]);
//!
//! let error = gpuimg::read("missing.tif").unwrap_err();
//! assert_eq!(error.to_string(), "cannot read missing.tif: no such file");
//! assert_eq!(error.path().unwrap(), std::path::Path::new("missing.tif"));
//! # Ok::<(), gpuimg::Error>(())
//! ```
//!
//! # What the library leaves alone
//!
//! It prints nothing, installs no signal handler, never ends the process, and sets no environment variable; [`cli::main`], which
//! is the program, does. It uses the rayon pool that a call is made in: the global one, which rayon starts when it is first needed
//! (see [`set_threads`]), or your own. Files named `-` are standard input and output. All types can be sent to other threads, and
//! calls do not wait for each other.

mod api;
pub mod batch;
mod bench;
pub mod cli;
mod deflate;
mod doctor;
mod engine;
mod formats;
mod gpu;
mod image;
mod ops;
mod os;
mod timing;
mod verify;

pub use api::{
    Argument, BayerPattern, Calibration, ChannelSum, Curve, DebayerMethod, Depth, Device, Error,
    Format, GpuArray, GpuImage, GpuReader, Histogram, Image, Metadata, Normalize, Operations,
    Pages, Palette, Plan, Project, Projection, ReadOptions, Report, Resolution, Result, Sample,
    SampleType, Shape, Stack, SumValue, Sums, Unit, Verb, WriteOptions, combine, combine_colours,
    decode, decode_with, encode, encode_stack, histogram, keep_memory, project, project_on_gpu,
    read, read_with, set_threads, sum, sum_with, verbs, write, write_stack,
};

/// What the project's own tests and benchmarks use. It may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::cli::entry::status;
    pub mod batch {
        pub mod histogram {
            pub use crate::batch::histogram::Set;
        }
        pub mod project {
            pub use crate::batch::project::Partial;
        }
    }
    pub mod bench {
        pub use crate::bench::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod formats {
        pub use crate::formats::*;
    }
    pub mod gpu {
        pub use crate::gpu::*;
    }
    pub mod image {
        pub use crate::image::*;
    }
    pub mod ops {
        pub use crate::ops::*;
    }
    pub mod os {
        pub use crate::os::*;
    }
    pub mod timing {
        pub use crate::timing::*;
    }
}
