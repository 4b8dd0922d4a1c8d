//! `gpuimg.combine`: an RGB image of grey images.

use crate::calls::Inputs;
use crate::errors::argument;
use crate::image::{Image, Refused, named_type};
use crate::runtime;
use pyo3::prelude::*;

/// Combines grey images: each becomes a channel, or with `colours` they are added in these colours.
#[pyfunction]
pub fn combine(
    py: Python,
    images: &Bound<PyAny>,
    colours: Option<Vec<[u8; 3]>>,
    dtype: Option<&str>,
) -> PyResult<Image> {
    let dtype = named_type(dtype)?;
    let images: Vec<Bound<PyAny>> = images.try_iter()?.collect::<PyResult<_>>()?;
    if let Some(colours) = &colours
        && colours.len() != images.len()
    {
        return Err(argument(format!(
            "{} images have {} colours: give each image a colour",
            images.len(),
            colours.len()
        )));
    }
    let inputs = Inputs::stack(images.into_iter().map(Ok))?;
    let work = || -> Result<Image, Refused> {
        let images = inputs.load(None)?;
        let combined = match colours {
            Some(colours) => gpuimg::combine_colours(images.into_iter().zip(colours).collect()),
            None => gpuimg::combine(images),
        };
        Image::with_type(combined?, dtype)
    };
    Ok(runtime::run(py, inputs.bytes(), work)??)
}
