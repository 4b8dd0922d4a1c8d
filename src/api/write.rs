//! Writing: to a file, or to bytes in memory.

use super::device::Device;
use super::error::{Error, Result};
use super::image::Image;
use super::operations::Operations;
use super::options::{Format, WriteOptions, no_path};
use super::report::Report;
use crate::formats::format;
use std::path::Path;

/// Writes an image to a file, whose extension decides the format. The file gets its name when it is complete; one that exists is
/// an error.
///
/// The metadata that the format has a place for are written; the report has the others. A format with 8 bits per sample (JPEG,
/// BMP) gets the 8 high bits of deeper samples, rounded.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("out.png");
/// let image = gpuimg::Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?;
/// gpuimg::write(&path, &image)?;
///
/// let error = gpuimg::write(&path, &image).unwrap_err();
/// assert_eq!(error.io_kind(), Some(std::io::ErrorKind::AlreadyExists));
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// A file that exists or cannot be written, and an image that the format cannot store.
pub fn write(path: impl AsRef<Path>, image: &Image) -> Result<Report> {
    write_stack(path, std::slice::from_ref(image), &WriteOptions::new())
}

/// Writes images as the pages of a file, with options; one image for a format that holds one. `-` is standard output.
///
/// # Errors
/// Those of [`write()`], no image, and several for a format that holds one.
pub fn write_stack(
    path: impl AsRef<Path>,
    images: &[Image],
    options: &WriteOptions,
) -> Result<Report> {
    let path = path.as_ref();
    let destination = options.format_of(path)?.destination(path, options);
    let (operations, device) = (Operations::new(), Device::cpu());
    let done = operations.in_memory(name(images)?, Some(&destination), &device, |job| {
        job.to_file(pages(images))
    });
    done.map(Report::of_job)
}

/// Encodes an image as the bytes of a file: those that [`write()`] writes.
///
/// ```
/// let image = gpuimg::Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?;
/// let bytes = gpuimg::encode(&image, "png".parse()?)?;
/// assert_eq!(&bytes[1..4], b"PNG");
/// assert_eq!(gpuimg::decode(bytes)?, image);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// A format that is only read, and an image that the format cannot store.
pub fn encode(image: &Image, format: Format) -> Result<Vec<u8>> {
    encode_stack(std::slice::from_ref(image), format, &WriteOptions::new())
}

/// Encodes images as the bytes of a file with a page for each, with options.
///
/// # Errors
/// Those of [`encode`], no image, and several for a format that holds one.
pub fn encode_stack(images: &[Image], format: Format, options: &WriteOptions) -> Result<Vec<u8>> {
    format::check_written(format.0).map_err(Error::new)?;
    let destination = format.destination(&no_path(), options);
    let (operations, device) = (Operations::new(), Device::cpu());
    let encoded = operations.in_memory(name(images)?, Some(&destination), &device, |job| {
        job.to_bytes(pages(images))
    });
    encoded.map(|(bytes, _)| bytes)
}

/// The file that images are from, for messages.
fn name(images: &[Image]) -> Result<&Path> {
    let first = images.first().map(Image::name);
    first.ok_or_else(|| Error::argument("there is no image"))
}

fn pages(images: &[Image]) -> Vec<crate::formats::memory::Page> {
    images.iter().map(|image| image.page().clone()).collect()
}
