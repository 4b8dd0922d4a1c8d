//! Reading, writing, and operations on images.

use crate::array::{Array, Input};
use crate::errors::{OrRaise, argument};
use crate::image::{Image, Refused, converted, named_type};
use crate::metadata::Metadata;
use crate::runtime::{self, Place};
use gpuimg::{
    Calibration, Format, GpuImage, Operations, ReadOptions, SampleType, Stack, WriteOptions,
};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// More bytes than a small image has: files are read and written on all threads.
const FILE: usize = usize::MAX;

/// The longer side of an image in a notebook, at most: about the width of a cell.
const PREVIEW_SIDE: usize = 800;

/// The operation of `preview`. NaN is shown as the least value, which is clamped to the range.
const PREVIEW: &str = "normalize --auto --nan=-3.4028235e38";

/// How an image is read; the words are those of the command line.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Reading {
    page: Option<usize>,
    axes: Option<String>,
    level: usize,
    max_pixels: Option<u64>,
    keep_going: bool,
    raw: Option<String>,
}

impl Reading {
    /// The options of the library.
    pub fn options(&self) -> PyResult<ReadOptions> {
        let mut options = ReadOptions::new().level(self.level);
        if let Some(page) = self.page {
            options = options.pages(&page.to_string()).or_raise()?;
        }
        if let Some(axes) = &self.axes {
            options = options.axes(axes).or_raise()?;
        }
        if let Some(pixels) = self.max_pixels {
            options = options.max_pixels(pixels);
        }
        if self.keep_going {
            options = options.keep_going();
        }
        match &self.raw {
            Some(layout) => options.raw(layout).or_raise(),
            None => Ok(options),
        }
    }
}

/// How an image is written; the words are those of the command line.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Writing {
    format: Option<String>,
    png: Option<String>,
    tiff: Option<String>,
    tiff_layout: Option<String>,
    zarr: Option<String>,
    zarr_chunk: Option<usize>,
    zarr_shard: Option<usize>,
    zarr_levels: Option<usize>,
    quality: Option<u8>,
    overwrite: bool,
    sync: bool,
}

impl Writing {
    /// The options of the library.
    pub fn options(&self) -> PyResult<WriteOptions> {
        let mut options = WriteOptions::new();
        if let Some(format) = &self.format {
            options = options.format(format.parse().or_raise()?);
        }
        if let Some(mode) = &self.png {
            options = options.png(mode).or_raise()?;
        }
        if let Some(compression) = &self.tiff {
            options = options.tiff(compression).or_raise()?;
        }
        if let Some(layout) = &self.tiff_layout {
            options = options.tiff_layout(layout).or_raise()?;
        }
        if let Some(compression) = &self.zarr {
            options = options.zarr(compression).or_raise()?;
        }
        if let Some(side) = self.zarr_chunk {
            options = options.zarr_chunk(side).or_raise()?;
        }
        if let Some(side) = self.zarr_shard {
            options = options.zarr_shard(side).or_raise()?;
        }
        if let Some(levels) = self.zarr_levels {
            options = options.zarr_levels(levels).or_raise()?;
        }
        if let Some(quality) = self.quality {
            options = options.quality(quality).or_raise()?;
        }
        if self.overwrite {
            options = options.overwrite();
        }
        if self.sync {
            options = options.sync();
        }
        Ok(options)
    }
}

/// Operations, and the options of the command line that change the shape and the depth of the result.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    ops: String,
    depth: Option<u8>,
    fit: Option<usize>,
    auto_orient: bool,
}

impl Wanted {
    /// The operations; parsed once.
    pub fn operations(&self) -> PyResult<Operations> {
        let Wanted {
            ops,
            depth,
            fit,
            auto_orient,
        } = self;
        let key = format!("{depth:?} {fit:?} {auto_orient} {ops}");
        runtime::current().operations(&key, || self.parsed())
    }

    fn parsed(&self) -> PyResult<Operations> {
        let mut operations = match self.ops.trim() {
            "" | "convert" => Operations::new(),
            // These cannot be steps of `gpuimg run`.
            "preview" => PREVIEW.parse().or_raise()?,
            "restore" => Operations::new().restore(false),
            "restore --nearest" => Operations::new().restore(true),
            text => text.parse().or_raise()?,
        };
        operations = match self.depth {
            None => operations,
            Some(8) => operations.to_eight_bits(),
            Some(16) => operations.to_sixteen_bits(),
            Some(other) => {
                return Err(argument(format!("expected the depth 8 or 16, not {other}")));
            }
        };
        if let Some(fit) = self.fit {
            let side = NonZeroUsize::new(fit);
            let side = side.ok_or_else(|| argument("fit is 1 pixel or more, not 0"))?;
            operations = operations.fit(side);
        }
        if self.auto_orient {
            operations = operations.auto_orient();
        }
        Ok(operations)
    }
}

/// Reads an image from a file, into the memory of a GPU if one is named.
#[pyfunction]
pub fn read(
    py: Python,
    path: PathBuf,
    reading: Reading,
    dtype: Option<&str>,
    device: &str,
) -> PyResult<Image> {
    let (options, dtype) = (reading.options()?, named_type(dtype)?);
    let image = match runtime::current().place(device)? {
        Place::Host(_) => runtime::run(py, FILE, || {
            Image::with_type(gpuimg::read_with(path, &options)?, dtype)
        })?,
        Place::Gpu(gpu) => {
            let read = || crate::gpu::converted(GpuImage::read(path, &options, &gpu)?, dtype);
            return Ok(Image::on_gpu(runtime::run(py, FILE, read)??));
        }
    };
    Ok(image?)
}

/// The objects of `gpuimg info --json` for the images of a file.
#[pyfunction]
pub fn info(py: Python, path: PathBuf, reading: Reading, range: bool) -> PyResult<Vec<String>> {
    let options = reading.options()?;
    let images = runtime::run(py, FILE, || gpuimg::batch::info(path, &options, range))?;
    let images = images.or_raise()?;
    Ok(images.iter().map(|image| image.to_json()).collect())
}

/// Reads an image from the bytes of a file.
#[pyfunction]
#[pyo3(signature = (data, reading=None, dtype=None))]
pub fn decode(
    py: Python,
    data: &Bound<PyAny>,
    reading: Option<Reading>,
    dtype: Option<&str>,
) -> PyResult<Image> {
    let options = reading.map_or_else(|| Ok(ReadOptions::new()), |reading| reading.options());
    let (options, dtype, bytes) = (options?, named_type(dtype)?, bytes(data)?);
    let image = runtime::run(py, bytes.len(), || {
        Image::with_type(gpuimg::decode_with(bytes, &options)?, dtype)
    })?;
    Ok(image?)
}

/// A copy of the bytes of an object with the buffer protocol.
fn bytes(data: &Bound<PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    PyUntypedBuffer::get(data)?;
    let view = pyo3::types::PyMemoryView::from(data)?;
    let bytes = view.call_method0("tobytes")?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// All pages of a file.
#[pyfunction]
pub fn pages(
    py: Python,
    path: PathBuf,
    reading: Reading,
    dtype: Option<&str>,
) -> PyResult<Vec<Image>> {
    let (options, dtype) = (reading.options()?, named_type(dtype)?);
    let images = runtime::run(py, FILE, || {
        let stack = Stack::open_with(path, &options)?;
        let pages = stack.pages()?;
        pages
            .map(|page| Image::with_type(page?, dtype))
            .collect::<Result<Vec<Image>, Refused>>()
    })?;
    Ok(images?)
}

/// Writes images to a file; returns the warnings.
#[pyfunction]
pub fn write(
    py: Python,
    path: PathBuf,
    image: &Bound<PyAny>,
    writing: Writing,
    metadata: Option<&Metadata>,
) -> PyResult<Vec<String>> {
    let options = writing.options()?;
    if metadata.is_none()
        && let Some(image) = crate::gpu::image(image, None)?
    {
        let report = runtime::run(py, FILE, || image.write(path, &options))?;
        return Ok(report.or_raise()?.warnings);
    }
    let inputs = Inputs::new(image)?;
    let metadata = metadata.map(|metadata| metadata.fields.clone());
    let report = runtime::run(py, FILE, || {
        let images = inputs.load(metadata.as_ref())?;
        gpuimg::write_stack(path, &images, &options)
    })?;
    Ok(report.or_raise()?.warnings)
}

/// Encodes images as the bytes of a file.
#[pyfunction]
pub fn encode<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    format: &str,
    writing: Writing,
    metadata: Option<&Metadata>,
) -> PyResult<Bound<'py, PyBytes>> {
    let options = writing.options()?;
    let format: Format = format.parse().or_raise()?;
    if metadata.is_none()
        && let Some(image) = crate::gpu::image(image, None)?
    {
        let bytes = runtime::run(py, FILE, || image.encode(format, &options))?;
        return Ok(PyBytes::new(py, &bytes.or_raise()?));
    }
    let inputs = Inputs::new(image)?;
    let metadata = metadata.map(|metadata| metadata.fields.clone());
    let bytes = runtime::run(py, inputs.bytes(), || {
        let images = inputs.load(metadata.as_ref())?;
        gpuimg::encode_stack(&images, format, &options)
    })?;
    Ok(PyBytes::new(py, &bytes.or_raise()?))
}

/// The bytes of an image for pickle.
pub fn pickled<'py>(py: Python<'py>, image: &gpuimg::Image) -> PyResult<Bound<'py, PyBytes>> {
    let tiff: Format = "tiff".parse().or_raise()?;
    let bytes = runtime::run(py, image.shape().bytes(), || gpuimg::encode(image, tiff))?;
    Ok(PyBytes::new(py, &bytes.or_raise()?))
}

/// A small image of 8 bits with adjusted contrast, as the bytes of a PNG; `None` if the image cannot be normalized.
pub fn preview_png<'py>(
    py: Python<'py>,
    image: &gpuimg::Image,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let wanted = Wanted {
        ops: "preview".into(),
        depth: Some(8),
        fit: Some(PREVIEW_SIDE),
        auto_orient: true,
    };
    let (operations, png) = (wanted.operations()?, "png".parse().or_raise()?);
    let cpu = runtime::current().device("cpu")?;
    let bytes = runtime::run(py, image.shape().bytes(), || {
        let small = operations.run(image.clone(), &cpu)?;
        gpuimg::encode(&small, png)
    })?;
    Ok(bytes.ok().map(|bytes| PyBytes::new(py, &bytes)))
}

/// Runs operations on an image, or on the pages of a stack.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn apply<'py>(
    py: Python<'py>,
    ops: String,
    image: &Bound<'py, PyAny>,
    depth: Option<u8>,
    fit: Option<usize>,
    auto_orient: bool,
    dtype: Option<&str>,
    device: &str,
    #[pyo3(from_py_with = crate::gpu::stream_address)] stream: Option<usize>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let wanted = Wanted {
        ops,
        depth,
        fit,
        auto_orient,
    };
    let place = (device, stream);
    run(py, image, &wanted.operations()?, dtype, place, out)
}

/// Subtracts a dark frame and divides by a flat field.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn calibrate<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    bias: Option<Bound<'py, PyAny>>,
    dark: Option<Bound<'py, PyAny>>,
    flat: Option<Bound<'py, PyAny>>,
    flat_start: Option<Bound<'py, PyAny>>,
    flat_end: Option<Bound<'py, PyAny>>,
    offset: i32,
    hot: Option<u16>,
    to: Option<&str>,
    log: bool,
    dtype: Option<&str>,
    device: &str,
    #[pyo3(from_py_with = crate::gpu::stream_address)] stream: Option<usize>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let input = |frame: Option<Bound<'py, PyAny>>| frame.map(|it| Input::new(&it)).transpose();
    let (bias, dark, flat) = (input(bias)?, input(dark)?, input(flat)?);
    let (flat_start, flat_end) = (input(flat_start)?, input(flat_end)?);
    let frames = [&bias, &dark, &flat, &flat_start];
    let bytes = frames.into_iter().flatten().next().map_or(0, Input::bytes);
    if to.is_some_and(|to| to != "f32") {
        return Err(argument(
            "calibrate keeps the type of the image, or gives \"f32\"",
        ));
    }
    let operations = runtime::run(py, bytes, || {
        // Copies, since `out` may be one of them.
        let frame = |frame: &Option<Input>| frame.as_ref().map(Input::copy).transpose();
        let calibration = Calibration {
            bias: frame(&bias)?,
            dark: frame(&dark)?,
            flat: frame(&flat)?,
            flat_start: frame(&flat_start)?,
            flat_end: frame(&flat_end)?,
            offset,
            hot,
            to_f32: to.is_some(),
            log,
        };
        Operations::new().calibrate(calibration)
    })?;
    let place = (device, stream);
    run(py, image, &operations.or_raise()?, dtype, place, out)
}

fn run<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    operations: &Operations,
    dtype: Option<&str>,
    (device, stream): (&str, Option<usize>),
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = named_type(dtype)?;
    if !is_stack(image)
        && let Some(image) = crate::gpu::image_for(image, device, stream)?
    {
        return crate::gpu::run(py, &image, operations, dtype, stream, out);
    }
    let inputs = Inputs::new(image)?;
    let device = runtime::current().device(device)?;
    if let Some(out) = out {
        let array = Array::new(&out)?;
        run_into(py, &inputs, operations, dtype, &device, &array)?;
        return Ok(out);
    }
    let work = || -> Result<Vec<Image>, Refused> {
        let results = operations.run_stack(inputs.load(None)?, &device)?;
        results
            .into_iter()
            .map(|image| Image::with_type(image, dtype))
            .collect()
    };
    let mut results = runtime::run(py, inputs.bytes(), work)??;
    match inputs {
        Inputs::One(_) => {
            let result = results.pop();
            let result = result.ok_or_else(|| argument("the operations make no image"))?;
            result.into_bound_py_any(py)
        }
        Inputs::Stack(_) => Ok(PyList::new(py, results)?.into_any()),
    }
}

/// Runs operations on an image whose result belongs in an array.
fn run_into(
    py: Python,
    inputs: &Inputs,
    operations: &Operations,
    dtype: Option<SampleType>,
    device: &gpuimg::Device,
    out: &Array,
) -> PyResult<()> {
    let Inputs::One(input) = inputs else {
        return Err(argument("out takes one image, not a stack"));
    };
    let work = || -> Result<Result<(), String>, Refused> {
        let overlaps = input.overlaps(out);
        let image = if overlaps {
            input.copy()?
        } else {
            input.load()?
        };
        let result = match out.room() {
            Some(room) => operations.run_into(image, room, device)?,
            None => operations.run(image, device)?,
        };
        let result = converted(result, dtype)?;
        let fits = out.check_fits(&result);
        Ok(fits.map(|()| out.store(&result)))
    };
    runtime::run(py, input.bytes(), work)??.map_err(argument)
}

/// Whether an object is a stack: a list or a tuple.
fn is_stack(object: &Bound<PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// An image, or the pages of a stack.
pub enum Inputs {
    One(Input),
    Stack(Vec<Input>),
}

impl Inputs {
    /// A list or a tuple is a stack.
    fn new(object: &Bound<PyAny>) -> PyResult<Inputs> {
        if !is_stack(object) {
            return Ok(Inputs::One(Input::new(object)?));
        }
        Inputs::stack(object.try_iter()?)
    }

    /// All of these images.
    pub fn stack<'py>(
        images: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Inputs> {
        let pages = images.map(|image| Input::new(&image?));
        Ok(Inputs::Stack(pages.collect::<PyResult<_>>()?))
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> usize {
        match self {
            Inputs::One(input) => input.bytes(),
            Inputs::Stack(pages) => {
                let pages = pages.iter().map(Input::bytes);
                pages.fold(0, usize::saturating_add)
            }
        }
    }

    /// The images, with these metadata if some are given.
    pub fn load(&self, metadata: Option<&gpuimg::Metadata>) -> gpuimg::Result<Vec<gpuimg::Image>> {
        let load = |input: &Input| {
            let mut image = input.load()?;
            if let Some(metadata) = metadata {
                image.set_metadata(metadata.clone());
            }
            Ok(image)
        };
        match self {
            Inputs::One(input) => Ok(vec![load(input)?]),
            Inputs::Stack(pages) => pages.iter().map(load).collect(),
        }
    }
}

/// Reads a file and runs operations on its image, as `stream` does.
pub fn read_and_run(
    path: &std::path::Path,
    options: &ReadOptions,
    operations: &Operations,
    dtype: Option<SampleType>,
    place: &Place,
) -> Result<Image, Refused> {
    match place {
        Place::Host(device) => {
            let image = gpuimg::read_with(path, options)?;
            Image::with_type(operations.run(image, device)?, dtype)
        }
        Place::Gpu(gpu) => {
            let image = operations.run_file_to_gpu(path, options, gpu)?;
            Ok(Image::on_gpu(crate::gpu::converted(image, dtype)?))
        }
    }
}
