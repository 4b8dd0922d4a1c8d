//! `gpuimg.project`: one image of many.

use crate::calls::Inputs;
use crate::errors::{OrRaise, argument};
use crate::image::{Image, Refused, named_type};
use crate::runtime;
use gpuimg::{GpuImage, Project, Projection};
use pyo3::prelude::*;

/// Combines images, pixel by pixel.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn project(
    py: Python,
    images: &Bound<PyAny>,
    how: &str,
    saturate: bool,
    scale: bool,
    to: Option<&str>,
    sigma: Option<f64>,
    nan: Option<f64>,
    dtype: Option<&str>,
    device: &str,
    #[pyo3(from_py_with = crate::gpu::stream_address)] stream: Option<usize>,
) -> PyResult<Image> {
    let mut options = Project::new(named_projection(how)?);
    if saturate {
        options = options.saturate();
    }
    if scale {
        options = options.scale();
    }
    options = match to {
        None => options,
        Some("16") => options.to_bits(16).or_raise()?,
        Some("32") => options.to_bits(32).or_raise()?,
        Some("f32") => options.to_f32(),
        Some(other) => {
            let why = format!("a projection has no type {other}: expected 16, 32 or \"f32\"");
            return Err(argument(why));
        }
    };
    if let Some(k) = sigma {
        options = options.sigma(k).or_raise()?;
    }
    if let Some(value) = nan {
        options = options.nan(value).or_raise()?;
    }
    let dtype = named_type(dtype)?;
    let images: Vec<Bound<PyAny>> = images.try_iter()?.collect::<PyResult<_>>()?;
    if let Some(images) = on_gpu(&images, device, stream)? {
        let work = || crate::gpu::converted(gpuimg::project_on_gpu(&images, &options)?, dtype);
        return Ok(Image::on_gpu(runtime::run(py, usize::MAX, work)??));
    }
    let device = runtime::current().device(device)?;
    let inputs = Inputs::stack(images.into_iter().map(Ok))?;
    let work = || -> Result<Image, Refused> {
        let images = inputs.load(None)?;
        Image::with_type(gpuimg::project(&images, &options, &device)?, dtype)
    };
    Ok(runtime::run(py, inputs.bytes(), work)??)
}

/// The images, if they are in the memory of a GPU or are to be processed there.
fn on_gpu(
    images: &[Bound<PyAny>],
    device: &str,
    stream: Option<usize>,
) -> PyResult<Option<Vec<GpuImage>>> {
    let found = images
        .iter()
        .map(|image| crate::gpu::image_for(image, device, stream));
    let found: Vec<Option<GpuImage>> = found.collect::<PyResult<_>>()?;
    let count = found.iter().flatten().count();
    if count > 0 && count < images.len() {
        return Err(argument(format!(
            "{count} of {} images are in the memory of a GPU: device=\"cuda\" copies the others there, and image.cpu(), tensor.cpu() or \
             array.get() copies them to host memory",
            images.len()
        )));
    }
    let found: Vec<GpuImage> = found.into_iter().flatten().collect();
    Ok(Some(found).filter(|found| !found.is_empty()))
}

fn named_projection(name: &str) -> PyResult<Projection> {
    match name {
        "sum" => Ok(Projection::Sum),
        "mean" => Ok(Projection::Mean),
        "min" => Ok(Projection::Min),
        "max" => Ok(Projection::Max),
        "median" => Ok(Projection::Median),
        _ => Err(argument(format!(
            "there is no projection \"{name}\": expected sum, mean, min, max or median"
        ))),
    }
}
