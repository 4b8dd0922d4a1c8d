//! What the images of a file are: `gpuimg info` and the library's `info`.

use super::about::About;
use crate::api::{Error, ReadOptions, Result as LibraryResult, SampleType};
use crate::engine::{Failure, NamedSource, Resources, process_source};
use crate::formats::{self, Reading};
use crate::gpu::{Choice, Devices};
use crate::image::Shape;
use crate::image::number::Number;
use crate::ops::sum::Sum;
use crate::os::Source;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// What an image of a file is. It displays as the line of `gpuimg info`.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("scan.png");
/// # gpuimg::write(&path, &gpuimg::Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?)?;
/// let images = gpuimg::batch::info(&path, &gpuimg::ReadOptions::new(), true)?;
/// assert_eq!(images[0].shape().width, 3);
/// assert_eq!(images[0].range(), Some((1.0, 6.0)));
/// # Ok::<(), gpuimg::Error>(())
/// ```
pub struct ImageInfo {
    name: PathBuf,
    about: About,
}

impl ImageInfo {
    /// The file, and the address of the image in it if it has one: `scan.h5:/entry/data`.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The name of the format: `TIFF`.
    pub fn format(&self) -> &'static str {
        self.about.format
    }

    /// The shape of the first page.
    pub fn shape(&self) -> Shape {
        self.about.shape
    }

    /// The type of the samples of the first page.
    pub fn sample_type(&self) -> SampleType {
        SampleType::new(self.about.values())
    }

    /// How many pages are selected.
    pub fn pages(&self) -> usize {
        self.about.pages
    }

    /// The smallest and the largest value of all pages, without alpha; `None` if they were not asked for, or if no value is finite.
    pub fn range(&self) -> Option<(f64, f64)> {
        let (min, max) = self.about.range?;
        Some((min.as_f64(), max.as_f64()))
    }

    /// The object of `gpuimg info --json`.
    pub fn to_json(&self) -> String {
        self.about.json(&self.name).to_string()
    }
}

impl fmt::Display for ImageInfo {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.about.line(&self.name))
    }
}

/// What the images of a file are, from its header; with `range` they are decoded, too. A file has one image, whose pages may be
/// many; HDF5 and NeXus files can have several, each with an address.
///
/// # Errors
/// A file or an image in it that cannot be read.
pub fn info(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    range: bool,
) -> LibraryResult<Vec<ImageInfo>> {
    let path = path.as_ref();
    let images = describe(path, Source::open(path), &options.reading, range);
    let images = images.into_iter().map(|described| {
        let (name, about) = described?;
        Ok(ImageInfo { name, about })
    });
    images.collect::<Result<_>>().map_err(Error::new)
}

/// Each image of a file, with its name and what it is, or with the error, which names the file. A file has one image, unless its
/// images have addresses.
pub(crate) fn describe(
    path: &Path,
    source: Result<Source>,
    reading: &Reading,
    range: bool,
) -> Vec<Result<(PathBuf, About)>> {
    let open = || -> Result<_> {
        let source = source?;
        let addresses = match reading.raw {
            Some(_) => None,
            None => formats::addresses(&source)?,
        };
        Ok((source, addresses))
    };
    let (source, addresses) = match open() {
        Ok(opened) => opened,
        Err(error) => return vec![Err(error).with_context(|| cannot_read(path))],
    };
    let Some(addresses) = addresses else {
        return vec![describe_image(path, &source, reading, range)];
    };
    let image = |address: &String| {
        let mut name = path.as_os_str().to_os_string();
        name.push(":");
        name.push(address);
        describe_image(Path::new(&name), &source.at(address), reading, range)
    };
    addresses.iter().map(image).collect()
}

/// What an image is, with `range` also the range of its values.
///
/// # Errors
/// A file that cannot be read, with its name.
fn describe_image(
    name: &Path,
    source: &Source,
    reading: &Reading,
    range: bool,
) -> Result<(PathBuf, About)> {
    let mut about = About::read(source, reading).with_context(|| cannot_read(name))?;
    if range {
        about.range = range_of_all_pages(name, source, reading)?;
    }
    Ok((name.into(), about))
}

fn cannot_read(name: &Path) -> Failure {
    Failure::new("read", name)
}

/// The smallest and the largest value of all pages, without alpha and without values that are not finite; `None` if there are
/// none.
fn range_of_all_pages(
    input: &Path,
    source: &Source,
    reading: &Reading,
) -> Result<Option<(Number, Number)>> {
    let devices = Devices::new(Choice::Cpu);
    let resources = Resources::new(&devices, *reading);
    let all = Sum {
        all: true,
        // They count in the sum, which is not used, and not in the range.
        nan: Some(0.0),
    };
    let done = process_source(
        &[&all],
        NamedSource {
            path: input,
            source,
        },
        None,
        &resources,
    )?;
    let ranges = done
        .results
        .totals
        .iter()
        .filter_map(|totals| totals.range());
    Ok(ranges.reduce(|(min, max), (low, high)| {
        let less = |a: Number, b: Number| a.as_f64() < b.as_f64();
        (
            if less(low, min) { low } else { min },
            if less(max, high) { high } else { max },
        )
    }))
}
