//! `gpuimg.combine`: an RGB image of grey images.

use crate::array::Input;
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
    let inputs: Vec<Input> = images.iter().map(Input::new).collect::<PyResult<_>>()?;
    let bytes = inputs.iter().map(Input::bytes);
    let bytes = bytes.fold(0, usize::saturating_add);
    let work = || -> Result<Image, Refused> {
        let images = inputs.iter().map(Input::load);
        let images: Vec<gpuimg::Image> = images.collect::<gpuimg::Result<_>>()?;
        let combined = match colours {
            Some(colours) => gpuimg::combine_colours(images.into_iter().zip(colours).collect()),
            None => gpuimg::combine(images),
        };
        Image::with_type(combined?, dtype)
    };
    Ok(runtime::run(py, bytes, work)??)
}
