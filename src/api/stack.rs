//! Reading: an image, the pages of a stack, bytes in memory.

use super::error::{Error, Result};
use super::image::Image;
use super::options::{Format, ReadOptions};
use super::report::Report;
use crate::engine::Failure;
use crate::formats::memory::Page;
use crate::formats::{self, Reader, Reading};
use crate::image::Shape;
use crate::image::metadata::Diagnostics;
use crate::os::Source;
use anyhow::Context;
use std::fmt;
use std::path::{Path, PathBuf};

/// Reads an image file, whose content decides its format. Of a stack it reads the first page; [`Stack`] reads all.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("scan.png");
/// # gpuimg::write(&path, &gpuimg::Image::new(3, 2, 1, vec![1u16, 2, 3, 4, 5, 6])?)?;
/// let image = gpuimg::read(&path)?;
/// println!("{}, {}", image.shape(), image.sample_type());
/// # assert_eq!(image.to_vec::<u16>()?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read, is damaged, or has no format that is read.
pub fn read(path: impl AsRef<Path>) -> Result<Image> {
    read_with(path, &ReadOptions::new())
}

/// As [`read`], with options.
///
/// # Errors
/// Those of [`read`].
pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Image> {
    Stack::open_with(path, options)?.page(0)
}

/// Decodes the bytes of an image file, as [`read`] does.
///
/// # Errors
/// Those of [`read`].
pub fn decode(bytes: Vec<u8>) -> Result<Image> {
    decode_with(bytes, &ReadOptions::new())
}

/// As [`decode`], with options.
///
/// # Errors
/// Those of [`read`].
pub fn decode_with(bytes: Vec<u8>, options: &ReadOptions) -> Result<Image> {
    Stack::of_source(Source::memory(bytes), Path::new(""), options)?.page(0)
}

/// An open image file with one or more pages. Its headers have been read; the pixels of a page are decoded when it is asked for.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("stack.tif");
/// # let page = |value: u16| gpuimg::Image::new(1, 1, 1, vec![value]);
/// # gpuimg::write_stack(&path, &[page(1)?, page(2)?], &gpuimg::WriteOptions::new())?;
/// let stack = gpuimg::Stack::open(&path)?;
/// for image in stack.pages()? {
///     let image = image?;
///     println!("{}", image.shape());
/// }
/// let last = stack.page(stack.len() - 1)?;
/// # assert_eq!(last.to_vec::<u16>()?, [2]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
pub struct Stack {
    path: PathBuf,
    source: Source,
    reading: Reading,
    format: &'static formats::Format,
    /// The numbers of the selected pages in the file, from 0, and their shapes.
    numbers: Vec<usize>,
    shapes: Vec<Shape>,
}

impl Stack {
    /// Opens an image file; `-` is standard input.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or has no format that is read.
    pub fn open(path: impl AsRef<Path>) -> Result<Stack> {
        Stack::open_with(path, &ReadOptions::new())
    }

    /// As [`open`](Stack::open), with options.
    ///
    /// # Errors
    /// Those of [`open`](Stack::open), and pages that the file does not have.
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Stack> {
        let path = path.as_ref();
        let source = Source::open(path).map_err(|error| unread(path, error))?;
        Stack::of_source(source, path, options)
    }

    /// Opens the bytes of an image file.
    ///
    /// # Errors
    /// Those of [`open_with`](Stack::open_with).
    pub fn of_bytes(bytes: Vec<u8>, options: &ReadOptions) -> Result<Stack> {
        Stack::of_source(Source::memory(bytes), Path::new(""), options)
    }

    fn of_source(source: Source, path: &Path, options: &ReadOptions) -> Result<Stack> {
        let reading = options.reading;
        let header = || {
            let reader = Reader::open(&source, &reading)?;
            let shapes = reader.surveys()?.into_iter().map(|page| page.shape);
            Ok((reader.format(), reader.pages().to_vec(), shapes.collect()))
        };
        let (format, numbers, shapes) = header().map_err(|error| unread(path, error))?;
        Ok(Stack {
            path: path.into(),
            source,
            reading,
            format,
            numbers,
            shapes,
        })
    }

    /// The number of pages.
    #[allow(clippy::len_without_is_empty, reason = "a file has a page")]
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        Format(self.format)
    }

    /// The shape of each page.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Decodes a page, counted from 0. Its metadata are those of this page alone.
    ///
    /// # Errors
    /// A page that is damaged or does not exist.
    pub fn page(&self, index: usize) -> Result<Image> {
        let Some(number) = self.numbers.get(index) else {
            return Err(unread(
                &self.path,
                anyhow::anyhow!("it has no page {}: pages are counted from 0", index),
            ));
        };
        let mut reading = self.reading;
        let mut index = index;
        if self.numbers.len() > 1 && reading.axes.is_none() {
            reading.pages = Some(formats::Pages::one(number + 1));
            index = 0;
        }
        let page = || decode_page(&mut Reader::open(&self.source, &reading)?, index);
        self.finish(page())
    }

    /// Decodes all pages, one after the other. Their metadata are those of the whole stack, so that [`write_stack`] can write
    /// them again.
    ///
    /// [`write_stack`]: crate::write_stack
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn pages(&self) -> Result<Pages<'_>> {
        let reader = Reader::open(&self.source, &self.reading);
        Ok(Pages {
            reader: reader.map_err(|error| unread(&self.path, error))?,
            stack: self,
            next: 0,
        })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How the first selected page is read alone.
    pub(super) fn reading_of_first_page(&self) -> Reading {
        match &self.numbers[..] {
            [first, _, ..] => Reading {
                pages: Some(formats::Pages::one(first + 1)),
                axes: None,
                ..self.reading
            },
            _ => self.reading,
        }
    }

    fn finish(&self, page: anyhow::Result<(Page, Report)>) -> Result<Image> {
        let (page, report) = page.map_err(|error| unread(&self.path, error))?;
        Ok(Image::of_page(page, &self.path, report))
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Stack")
            .field("path", &self.path)
            .field("format", &self.format())
            .field("shapes", &self.shapes)
            .finish()
    }
}

/// The pages of a [`Stack`], decoded one after the other.
pub struct Pages<'a> {
    stack: &'a Stack,
    reader: Reader<'a>,
    next: usize,
}

impl Iterator for Pages<'_> {
    type Item = Result<Image>;

    fn next(&mut self) -> Option<Result<Image>> {
        if self.next == self.stack.len() {
            return None;
        }
        let page = decode_page(&mut self.reader, self.next);
        self.next += 1;
        Some(self.stack.finish(page))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.stack.len() - self.next;
        (rest, Some(rest))
    }
}

impl ExactSizeIterator for Pages<'_> {}

/// Decodes the page at `index` among the selected ones.
fn decode_page(reader: &mut Reader, index: usize) -> anyhow::Result<(Page, Report)> {
    reader.turn_to(index)?;
    let mut diagnostics = Diagnostics::default();
    let metadata = reader.metadata(&mut diagnostics)?;
    let surveys = reader.surveys()?;
    let survey = surveys.get(index).context("the page is gone")?;
    let image = reader.decode()?;
    diagnostics.warnings.extend(reader.left_out());
    let page = Page {
        image,
        metadata,
        metadata_bytes: survey.metadata_bytes,
        described: if reader.is_whole() {
            surveys.len()
        } else {
            usize::MAX
        },
    };
    Ok((page, Report::of_reading(diagnostics, reader.damage())))
}

fn unread(path: &Path, error: anyhow::Error) -> Error {
    Error::new(error.context(Failure::new("read", path)))
}
