//! What OME-Zarr says about the arrays of an image (OME-NGFF 0.1 to 0.5, multiscales and omero): the levels of its pyramid, the
//! axes and their scales, and the channels.

use super::json::{self, Object};
use super::node::{Node, join};
use crate::image::metadata::{Channel, Ome, Step};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The most levels of a pyramid.
const MOST_LEVELS: usize = 64;

/// The names of the axes where a version has none (OME-NGFF 0.1 and 0.2).
const ALL_AXES: [&str; 5] = ["t", "c", "z", "y", "x"];

/// An image: arrays of the same pixels, each of fewer than the one before.
#[derive(Debug)]
pub struct Multiscales {
    /// The names of the axes of all arrays.
    pub axes: Vec<String>,
    /// The folders of the arrays, the largest first.
    pub paths: Vec<String>,
    /// For each level, the distances along the axes and the channels.
    pub metadata: Vec<Ome>,
}

impl Multiscales {
    /// Reads what a group says; `None` if it says nothing about images.
    ///
    /// # Errors
    /// What is missing or contradictory, several images, and plates of wells.
    pub fn read(group: &Node) -> Result<Option<Multiscales>> {
        let attributes = match group.attributes.get("ome") {
            Some(Value::Object(ome)) => ome,
            _ => &group.attributes,
        };
        ensure!(
            attributes.get("plate").is_none(),
            "it is a plate of wells, which is not supported: give the store of one image"
        );
        let Some(images) = attributes.get("multiscales") else {
            return Ok(None);
        };
        let images = json::list(Some(images), "its multiscales")?;
        let [image] = images else {
            bail!("its multiscales are {} images, not one", images.len());
        };
        let axes = axes(image)?;
        let datasets = json::list(image.get("datasets"), "its datasets")?;
        ensure!(!datasets.is_empty(), "it has no datasets");
        ensure!(
            datasets.len() <= MOST_LEVELS,
            "it has {} levels, more than {MOST_LEVELS}",
            datasets.len()
        );
        let units: Vec<Option<String>> = match image.get("axes").and_then(Value::as_array) {
            Some(axes) => axes.iter().map(|axis| text(axis, "unit")).collect(),
            None => vec![None; axes.len()],
        };
        let common = scale(image, axes.len()).unwrap_or_else(|| vec![1.0; axes.len()]);
        let mut multiscales = Multiscales {
            paths: Vec::new(),
            metadata: Vec::new(),
            axes,
        };
        for dataset in datasets {
            let path = text(dataset, "path").context("a dataset has no path")?;
            multiscales.paths.push(join(&group.path, &path));
            let scale = scale(dataset, multiscales.axes.len());
            let step = |name: &str| {
                let index = multiscales.axes.iter().position(|axis| axis == name)?;
                let size = scale.as_ref()?[index] * common[index];
                let unit = units[index].clone();
                // A step of 1 without a unit is what is written where nothing is known.
                let is_known = size.is_finite() && size > 0.0 && (size != 1.0 || unit.is_some());
                is_known.then_some(Step { size, unit })
            };
            multiscales.metadata.push(Ome {
                name: text(image, "name").filter(|name| !name.is_empty()),
                x: step("x"),
                y: step("y"),
                z: step("z"),
                t: step("t"),
                channels: channels(attributes),
            });
        }
        Ok(Some(multiscales))
    }

    /// Finds the image of a store: that of its first group, or the only one of a store that bioformats2raw wrote.
    ///
    /// # Errors
    /// No image, or several.
    pub fn find(source: &Source, root: &Node) -> Result<Multiscales> {
        if let Some(image) = Multiscales::read(root)? {
            return Ok(image);
        }
        let ome = root.attributes.get("ome");
        let layout = ome.and_then(|ome| ome.get("bioformats2raw.layout"));
        let layout = layout.or_else(|| root.attributes.get("bioformats2raw.layout"));
        if layout.is_some()
            && let Some(first) = Node::read(source, "0")?
            && let Some(image) = Multiscales::read(&first)?
        {
            ensure!(
                Node::read(source, "1")?.is_none(),
                "it has several images (series 0, 1, …): give the store of one image"
            );
            return Ok(image);
        }
        bail!("it is a Zarr group that describes no image (it has no multiscales of OME-Zarr)")
    }
}

/// The text of an object's field.
fn text(value: &Value, name: &str) -> Option<String> {
    Some(value.get(name)?.as_str()?.into())
}

/// The names of the axes.
fn axes(image: &Value) -> Result<Vec<String>> {
    let Some(axes) = image.get("axes") else {
        return Ok(ALL_AXES.map(String::from).to_vec());
    };
    let axes = json::list(Some(axes), "its axes")?;
    let names = axes
        .iter()
        .map(|axis| Ok(json::name(axis, "an axis")?.to_owned()));
    names.collect()
}

/// The product of all scales of an image or a dataset; `None` if it has none.
fn scale(value: &Value, axes: usize) -> Option<Vec<f64>> {
    let transformations = value.get("coordinateTransformations")?.as_array()?;
    let scales = transformations.iter().filter_map(|transformation| {
        let scale = transformation.get("scale")?.as_array()?.iter();
        let scale: Option<Vec<f64>> = scale.map(Value::as_f64).collect();
        scale.filter(|scale| scale.len() == axes)
    });
    scales.reduce(|all, scale| all.iter().zip(scale).map(|(a, b)| a * b).collect())
}

/// The channels; none unless at least one has a name or a colour.
fn channels(attributes: &Object) -> Vec<Channel> {
    let channels = attributes.get("omero").and_then(|it| it.get("channels"));
    let channels = channels
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let is_colour =
        |text: &String| text.len() == 6 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let channels = channels.iter().map(|channel| Channel {
        label: text(channel, "label").filter(|label| !label.is_empty()),
        colour: text(channel, "color").filter(is_colour),
    });
    let channels: Vec<Channel> = channels.collect();
    if channels
        .iter()
        .any(|channel| *channel != Channel::default())
    {
        channels
    } else {
        Vec::new()
    }
}
