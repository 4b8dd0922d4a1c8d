//! The documents of a new image (Zarr v3; OME-NGFF 0.5, multiscales and omero).

use super::array::SampleType;
use super::blosc;
use super::options::{Compression, ZSTD_LEVEL};
use super::pyramid::Level;
use crate::formats::raw::{Order, SampleEncoding};
use crate::image::metadata::{Axes, Axis, Channel, Metadata, Ome, Own, Step};
use crate::image::{Shape, Values};
use crate::ops::MinMax;
use serde_json::{Value, json};

/// The colours of red, green and blue.
const RGB: [&str; 3] = ["FF0000", "00FF00", "0000FF"];

/// The colour of a channel whose colour is not known.
const WHITE: &str = "FFFFFF";

/// An image that is being written.
pub struct NewImage {
    /// The arrays, the full size first.
    levels: Vec<Level>,
    /// The type of samples.
    pub values: Values,
    /// How pages lie along the axes.
    pages: Axes,
    /// The axes of the arrays before rows and columns, t, c and z, with their lengths: those that are longer than 1, or that
    /// the metadata describe.
    outer: Vec<(Axis, usize)>,
    ome: Ome,
    /// For each place on the axis c, the smallest and the largest sample of the last level; empty if channels are not described.
    ranges: Vec<MinMax<u64>>,
}

impl NewImage {
    /// An image of so many pages. `metadata` are those of the first page.
    pub fn new(pages: usize, levels: Vec<Level>, metadata: &Metadata) -> NewImage {
        let shape = levels[0].shape;
        // Pages of which no more is known are slices, as in ImageJ.
        let slices = Axes([(Axis::Z, pages), (Axis::C, 1), (Axis::T, 1)]);
        let axes = metadata.axes.unwrap_or(slices);
        let channels = axes.size(Axis::C) * shape.channels;
        let ome = ome(metadata, channels, &shape);
        let outer = [
            (Axis::T, axes.size(Axis::T), ome.t.is_some()),
            (Axis::C, channels, !ome.channels.is_empty()),
            (Axis::Z, axes.size(Axis::Z), ome.z.is_some()),
        ];
        let outer = outer
            .into_iter()
            .filter(|(_, size, is_described)| *size > 1 || *is_described);
        NewImage {
            values: metadata.values(shape.depth),
            pages: axes,
            outer: outer.map(|(axis, size, _)| (axis, size)).collect(),
            ranges: vec![MinMax::NONE; ome.channels.len()],
            ome,
            levels,
        }
    }

    /// The arrays, the full size first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The shape of a page.
    pub fn full(&self) -> &Shape {
        &self.levels[0].shape
    }

    /// How samples are stored.
    pub fn encoding(&self) -> SampleEncoding {
        SampleEncoding {
            depth: self.values.depth,
            order: Order::Little,
            toggled: self.values.signed,
        }
    }

    /// The place of a page, and of a channel of its pixels, along an axis.
    fn place(&self, axis: Axis, page: usize, channel: usize) -> usize {
        let place = self.pages.place(page, axis);
        match axis {
            Axis::C => place * self.full().channels + channel,
            _ => place,
        }
    }

    /// The name of a file of a level, by its place down and across.
    pub fn file_name(
        &self,
        level: &Level,
        page: usize,
        channel: usize,
        [down, across]: [usize; 2],
    ) -> String {
        let outer = self.outer.iter();
        let outer = outer.map(|(axis, _)| format!("{}/", self.place(*axis, page, channel)));
        format!(
            "{}/c/{}{down}/{across}",
            level.number,
            outer.collect::<String>()
        )
    }

    /// Whether the ranges of channels are stored.
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Adds the smallest and the largest sample of each channel of a page.
    pub fn add_ranges(&mut self, page: usize, ranges: &[[u64; 2]]) {
        let ranges = ranges.iter().take(self.full().channels);
        for (channel, &[min, max]) in ranges.enumerate() {
            let place = self.place(Axis::C, page, channel);
            if let Some(range) = self.ranges.get_mut(place) {
                *range = range.merge(MinMax { min, max });
            }
        }
    }

    /// The documents with their names below the folder of the store.
    pub fn documents(&self, compression: Compression) -> Vec<(String, Value)> {
        let group = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {"ome": self.ome_attributes()},
        });
        let arrays = self.levels.iter();
        let arrays = arrays.map(|level| {
            let name = format!("{}/zarr.json", level.number);
            (name, self.array(level, compression))
        });
        [("zarr.json".into(), group)]
            .into_iter()
            .chain(arrays)
            .collect()
    }

    /// The names of all axes.
    fn axis_names(&self) -> Vec<String> {
        let outer = self.outer.iter().map(|(axis, _)| axis.to_string());
        outer.chain(["y".into(), "x".into()]).collect()
    }

    /// The lengths along all axes of something with one place on the outer ones.
    fn flat(&self, [height, width]: [usize; 2]) -> Vec<usize> {
        let ones = self.outer.iter().map(|_| 1);
        ones.chain([height, width]).collect()
    }

    /// The document of an array.
    fn array(&self, level: &Level, compression: Compression) -> Value {
        let lengths = self.outer.iter().map(|(_, size)| *size);
        let shape: Vec<usize> = lengths
            .chain([level.shape.height, level.shape.width])
            .collect();
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let mut codecs = vec![bytes.clone()];
        let sample = self.values.depth.bytes();
        let codec = match compression {
            Compression::None => None,
            Compression::Zstd => Some(json!({
                "name": "zstd",
                "configuration": {"level": ZSTD_LEVEL, "checksum": false},
            })),
            Compression::Blosc => Some(json!({
                "name": "blosc",
                "configuration": {
                    "cname": "zstd",
                    "clevel": ZSTD_LEVEL,
                    "shuffle": if sample == 1 { "noshuffle" } else { "shuffle" },
                    "typesize": sample,
                    "blocksize": blosc::BLOCK,
                },
            })),
        };
        codecs.extend(codec);
        if level.shard.is_some() {
            codecs = vec![json!({
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": self.flat(level.chunk),
                    "codecs": codecs,
                    "index_codecs": [bytes, {"name": "crc32c"}],
                    "index_location": "end",
                },
            })];
        }
        let samples = SampleType {
            depth: self.values.depth,
            signed: self.values.signed,
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": samples.name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.flat(level.file())}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": if self.values.depth.is_float() { json!(0.0) } else { json!(0) },
            "codecs": codecs,
            "attributes": {},
            "dimension_names": self.axis_names(),
        })
    }

    /// What OME-NGFF says about the image.
    fn ome_attributes(&self) -> Value {
        let mut image = json!({
            "axes": self.axes(),
            "datasets": self.levels.iter().map(|level| self.dataset(level)).collect::<Vec<Value>>(),
            "type": "mean",
        });
        if let Some(name) = &self.ome.name {
            image["name"] = json!(name);
        }
        let mut ome = json!({"version": "0.5", "multiscales": [image]});
        if self.has_ranges() {
            let channels = self.ome.channels.iter().zip(&self.ranges);
            let channels: Vec<Value> = channels
                .map(|(channel, range)| self.channel(channel, *range))
                .collect();
            ome["omero"] = json!({"channels": channels});
        }
        ome
    }

    /// The axes with their types and units.
    fn axes(&self) -> Vec<Value> {
        let axis = |name: &str, kind: &str, step: &Option<Step>| {
            let mut axis = json!({"name": name, "type": kind});
            if let Some(unit) = step.as_ref().and_then(|step| step.unit.as_ref()) {
                axis["unit"] = json!(unit);
            }
            axis
        };
        let outer = self.outer.iter().map(|(known, _)| match known {
            Axis::T => axis("t", "time", &self.ome.t),
            Axis::C => axis("c", "channel", &None),
            Axis::Z => axis("z", "space", &self.ome.z),
        });
        let inner = [
            axis("y", "space", &self.ome.y),
            axis("x", "space", &self.ome.x),
        ];
        outer.chain(inner).collect()
    }

    /// The entry of a level: the distances of its pixels, and the centre of its first pixel from that of the full size.
    fn dataset(&self, level: &Level) -> Value {
        let size = |step: &Option<Step>| step.as_ref().map_or(1.0, |step| step.size);
        let outer = self.outer.iter().map(|(axis, _)| match axis {
            Axis::T => size(&self.ome.t),
            Axis::C => 1.0,
            Axis::Z => size(&self.ome.z),
        });
        let full = [size(&self.ome.y), size(&self.ome.x)];
        let times = level.reduction(*self.full());
        let scale: Vec<f64> = outer
            .chain([full[0] * times[0], full[1] * times[1]])
            .collect();
        let mut transformations = vec![json!({"type": "scale", "scale": scale})];
        if times != [1.0; 2] {
            let shift = [0, 1].map(|axis| full[axis] * (times[axis] - 1.0) / 2.0);
            let zeros = self.outer.iter().map(|_| 0.0);
            let shift: Vec<f64> = zeros.chain(shift).collect();
            transformations.push(json!({"type": "translation", "translation": shift}));
        }
        json!({"path": level.number.to_string(), "coordinateTransformations": transformations})
    }

    /// A channel as viewers show it: all values that samples can have, and those that the last level has.
    fn channel(&self, channel: &Channel, range: MinMax<u64>) -> Value {
        let number = |sample: u64| self.values.number(sample).as_f64();
        let (start, end) = if range.is_none() {
            (0.0, 1.0)
        } else {
            (number(range.min), number(range.max))
        };
        let limits = self.values.limits();
        let (min, max) = limits.map_or((start, end), |(min, max)| (min as f64, max as f64));
        let mut described = json!({
            "color": channel.colour.as_deref().unwrap_or(WHITE),
            "window": {"min": min, "max": max, "start": start, "end": end},
            "active": true,
        });
        if let Some(label) = &channel.label {
            described["label"] = json!(label);
        }
        described
    }
}

/// What is known about an image of so many channels: what its metadata say, the resolution where they name no distances, and the
/// colours of RGB.
fn ome(metadata: &Metadata, channels: usize, shape: &Shape) -> Ome {
    let mut ome = match &metadata.own {
        Own::Ome(ome) => (**ome).clone(),
        _ => Ome::default(),
    };
    if ome.x.is_none()
        && ome.y.is_none()
        && let Some([x, y]) = metadata.resolution.and_then(|it| it.steps())
    {
        (ome.x, ome.y) = (Some(x), Some(y));
    }
    if ome.channels.len() != channels {
        ome.channels.clear();
    }
    if ome.channels.is_empty() && channels == RGB.len() && shape.channels == RGB.len() {
        let colours = RGB.iter().zip(shape.channel_names());
        let named = colours.map(|(colour, name)| Channel {
            label: Some((*name).into()),
            colour: Some((*colour).into()),
        });
        ome.channels = named.collect();
    }
    ome
}
