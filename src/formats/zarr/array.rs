//! The description of an array: `zarr.json` of Zarr v3, `.zarray` of v2.

use super::codecs::{Codec, Pipeline};
use super::json::{self, Object};
use super::node::Version;
use crate::formats::raw::Order;
use crate::image::Depth;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The most bytes of a chunk that is decoded as a whole: the limit of Blosc.
const MOST_CHUNK: u64 = 1 << 31;

/// An array: its samples are in chunks, each in a file.
#[derive(Debug)]
pub struct Array {
    /// Its folder below that of the store; empty for the store itself.
    pub path: String,
    /// The lengths of its axes; the last is that of a row.
    pub shape: Vec<u64>,
    /// The lengths of the chunks that have a file.
    pub chunk: Vec<u64>,
    /// The type of its samples.
    pub samples: SampleType,
    /// A sample that is not stored, in the byte order of the others.
    pub fill: Vec<u8>,
    /// How the files are named.
    keys: Keys,
    /// How chunks are encoded.
    pub pipeline: Pipeline,
    /// The names of its axes, if it has all.
    pub axes: Option<Vec<String>>,
}

/// The type of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleType {
    /// Their depth.
    pub depth: Depth,
    /// Whether they are integers with a sign.
    pub signed: bool,
}

/// How the files of chunks are named.
#[derive(Debug)]
struct Keys {
    /// The first part of a name.
    prefix: Option<&'static str>,
    separator: char,
}

impl Array {
    /// Reads the description of the array in the folder `path`.
    ///
    /// # Errors
    /// What is missing, contradictory or not supported.
    pub fn new(version: Version, path: String, description: &Object) -> Result<Array> {
        let array = match version {
            Version::Three => Array::from_v3(path, description),
            Version::Two => Array::from_v2(path, description),
        }?;
        array.check()?;
        Ok(array)
    }

    fn from_v3(path: String, description: &Object) -> Result<Array> {
        let shape = json::sizes(description.get("shape"), "its shape")?;
        let grid = description
            .get("chunk_grid")
            .context("it lacks a chunk grid")?;
        let grid_name = json::name(grid, "its chunk grid")?;
        ensure!(
            grid_name == "regular",
            "the chunk grid {grid_name:?} is not supported"
        );
        let chunk = json::configuration(grid);
        let chunk = json::sizes(chunk.get("chunk_shape"), "the shape of its chunks")?;
        let kind = description
            .get("data_type")
            .context("it lacks a data type")?;
        let samples = SampleType::from_v3(json::name(kind, "its data type")?)?;
        let codecs = json::list(description.get("codecs"), "its codecs")?;
        let pipeline = Pipeline::from_json(codecs, shape.len(), false)?;
        let keys = description.get("chunk_key_encoding");
        let keys = keys.context("it lacks a chunk key encoding")?;
        let transformers = description.get("storage_transformers");
        ensure!(
            transformers.is_none_or(|it| it.as_array().is_some_and(Vec::is_empty)),
            "storage transformers are not supported"
        );
        let order = pipeline.sample_order();
        let fill = description.get("fill_value").unwrap_or(&Value::Null);
        Ok(Array {
            path,
            shape,
            chunk,
            samples,
            fill: samples.fill(fill, order)?,
            keys: Keys::from_v3(keys)?,
            pipeline,
            axes: names(description.get("dimension_names")),
        })
    }

    fn from_v2(path: String, description: &Object) -> Result<Array> {
        let shape = json::sizes(description.get("shape"), "its shape")?;
        let chunk = json::sizes(description.get("chunks"), "the shape of its chunks")?;
        let kind = description.get("dtype").and_then(Value::as_str);
        let (samples, order) = SampleType::from_v2(kind.context("it lacks a data type")?)?;
        let samples_order = description.get("order").and_then(Value::as_str);
        ensure!(
            samples_order.unwrap_or("C") == "C",
            "chunks with columns first (order F) are not supported"
        );
        let filters = description.get("filters").and_then(Value::as_array);
        if let Some(filter) = filters.and_then(|filters| filters.first()) {
            let id = filter.get("id").and_then(Value::as_str);
            bail!("the filter {:?} is not supported", id.unwrap_or_default());
        }
        let codecs = match description.get("compressor") {
            None | Some(Value::Null) => Vec::new(),
            Some(compressor) => {
                let id = compressor.get("id").and_then(Value::as_str);
                vec![Codec::from_name(id.context("its compressor has no id")?)?]
            }
        };
        let separator = description.get("dimension_separator");
        let fill = description.get("fill_value").unwrap_or(&Value::Null);
        Ok(Array {
            path,
            shape,
            chunk,
            samples,
            fill: samples.fill(fill, order)?,
            keys: Keys {
                prefix: None,
                separator: separator_of(separator, '.')?,
            },
            pipeline: Pipeline {
                order,
                codecs,
                sharding: None,
            },
            axes: None,
        })
    }

    /// Refuses sizes that contradict each other, or that no memory holds.
    fn check(&self) -> Result<()> {
        let axes = self.shape.len();
        ensure!(
            (2..=5).contains(&axes),
            "an array of {axes} axes is not supported (2 to 5 are)"
        );
        ensure!(
            self.chunk.len() == axes,
            "its chunks have {} axes, not {axes}",
            self.chunk.len()
        );
        let unit = self.unit();
        ensure!(
            self.chunk.iter().zip(unit).all(|(all, one)| all % one == 0),
            "its inner chunks {unit:?} do not divide its shards {:?}",
            self.chunk
        );
        let bytes = self.bytes(unit).filter(|&bytes| bytes <= MOST_CHUNK);
        bytes.with_context(|| {
            format!("its chunks of {unit:?} samples are not supported: a chunk may have 2 GiB")
        })?;
        let index = product(&self.units_in_chunk()).and_then(|units| units.checked_mul(16));
        ensure!(
            index.is_some_and(|bytes| bytes <= MOST_CHUNK),
            "its shards {:?} have too many chunks {unit:?}",
            self.chunk
        );
        Ok(())
    }

    /// The lengths of what is decoded as a whole: a chunk, or an inner chunk of a shard.
    pub fn unit(&self) -> &[u64] {
        match &self.pipeline.sharding {
            Some(sharding) => &sharding.chunk,
            None => &self.chunk,
        }
    }

    /// Bytes of samples of such a shape; `None` if there are too many to count.
    fn bytes(&self, shape: &[u64]) -> Option<u64> {
        product(shape)?.checked_mul(self.samples.depth.bytes() as u64)
    }

    /// Bytes of the samples that are decoded as a whole.
    pub fn unit_bytes(&self) -> u64 {
        self.bytes(self.unit()).unwrap_or(u64::MAX)
    }

    /// Inner chunks along each axis of a shard; one of a chunk without a shard.
    pub fn units_in_chunk(&self) -> Vec<u64> {
        let pairs = self.chunk.iter().zip(self.unit());
        pairs.map(|(all, one)| all / one).collect()
    }

    /// The name of the file of a chunk, by its place along each axis.
    pub fn key(&self, place: &[u64]) -> String {
        let places = place.iter().map(u64::to_string);
        let prefix = self.keys.prefix.map(String::from);
        let parts: Vec<String> = prefix.into_iter().chain(places).collect();
        let key = parts.join(&self.keys.separator.to_string());
        super::node::join(&self.path, &key)
    }
}

impl Pipeline {
    /// The byte order of samples.
    pub fn sample_order(&self) -> Order {
        match &self.sharding {
            Some(sharding) => sharding.inner.order,
            None => self.order,
        }
    }
}

/// The product of sizes; `None` if it is too large to count.
pub fn product(sizes: &[u64]) -> Option<u64> {
    sizes
        .iter()
        .try_fold(1u64, |all, &size| all.checked_mul(size))
}

/// The texts of a list, if all are texts.
fn names(list: Option<&Value>) -> Option<Vec<String>> {
    let names = list?.as_array()?.iter();
    names.map(|name| Some(name.as_str()?.into())).collect()
}

impl Keys {
    fn from_v3(encoding: &Value) -> Result<Keys> {
        let options = json::configuration(encoding);
        let separator = options.get("separator");
        Ok(match json::name(encoding, "its chunk key encoding")? {
            "default" => Keys {
                prefix: Some("c"),
                separator: separator_of(separator, '/')?,
            },
            "v2" => Keys {
                prefix: None,
                separator: separator_of(separator, '.')?,
            },
            other => bail!("the chunk key encoding {other:?} is not supported"),
        })
    }
}

/// The separator of the numbers in the names of chunks.
fn separator_of(value: Option<&Value>, default: char) -> Result<char> {
    Ok(match value {
        None | Some(Value::Null) => default,
        Some(Value::String(text)) if text == "/" => '/',
        Some(Value::String(text)) if text == "." => '.',
        Some(other) => bail!("the separator {other} of its chunks is neither \"/\" nor \".\""),
    })
}

impl SampleType {
    /// The data type of Zarr v3 with a name.
    fn from_v3(name: &str) -> Result<SampleType> {
        let (depth, signed) = match name {
            "uint8" => (Depth::Eight, false),
            "int8" => (Depth::Eight, true),
            "uint16" => (Depth::Sixteen, false),
            "int16" => (Depth::Sixteen, true),
            "uint32" => (Depth::ThirtyTwo, false),
            "int32" => (Depth::ThirtyTwo, true),
            "float32" => (Depth::Float, false),
            "float64" => (Depth::Double, false),
            other => bail!(
                "samples of the type {other:?} are not supported (integers of 8, 16 and 32 bits are, and floats of 32 and 64): convert them, with a scale of your choice"
            ),
        };
        Ok(SampleType { depth, signed })
    }

    /// The name of the data type in Zarr v3.
    pub fn name(self) -> &'static str {
        match (self.depth, self.signed) {
            (Depth::Eight, false) => "uint8",
            (Depth::Eight, true) => "int8",
            (Depth::Sixteen, false) => "uint16",
            (Depth::Sixteen, true) => "int16",
            (Depth::ThirtyTwo, false) => "uint32",
            (Depth::ThirtyTwo, true) => "int32",
            (Depth::Float, _) => "float32",
            (Depth::Double, _) => "float64",
        }
    }

    /// The data type of NumPy with a text, and its byte order.
    fn from_v2(text: &str) -> Result<(SampleType, Order)> {
        let (order, kind) = text.split_at_checked(1).unwrap_or(("", text));
        let name = match kind {
            "u1" => "uint8",
            "i1" => "int8",
            "u2" => "uint16",
            "i2" => "int16",
            "u4" => "uint32",
            "i4" => "int32",
            "f4" => "float32",
            "f8" => "float64",
            _ => text,
        };
        let samples = SampleType::from_v3(name)?;
        let order = match order {
            ">" => Order::Big,
            "<" => Order::Little,
            "|" if samples.depth == Depth::Eight => Order::Little,
            other => bail!("the byte order {other:?} of its samples is not supported"),
        };
        Ok((samples, order))
    }

    /// The bytes of the fill value; 0 where none is given.
    fn fill(self, value: &Value, order: Order) -> Result<Vec<u8>> {
        let refused = || {
            format!(
                "its fill value {value} is not a sample of the type {}",
                self.name()
            )
        };
        let bits = match self.depth {
            _ if value.is_null() => 0,
            Depth::Float => match hexadecimal(value) {
                Some(bits) => bits,
                None => u64::from((float(value).with_context(refused)? as f32).to_bits()),
            },
            Depth::Double => match hexadecimal(value) {
                Some(bits) => bits,
                None => float(value).with_context(refused)?.to_bits(),
            },
            _ => {
                let bits = self.depth.bits();
                let range = if self.signed {
                    -(1i64 << (bits - 1))..=(1i64 << (bits - 1)) - 1
                } else {
                    0..=(1i64 << bits) - 1
                };
                let whole = value.as_i64().or_else(|| {
                    let float = value.as_f64()?;
                    (float.fract() == 0.0).then_some(float as i64)
                });
                let whole = whole.filter(|whole| range.contains(whole));
                whole.with_context(refused)? as u64
            }
        };
        let bytes = order.bytes::<8>(bits);
        let length = self.depth.bytes();
        Ok(match order {
            Order::Little => bytes[..length].to_vec(),
            Order::Big => bytes[8 - length..].to_vec(),
        })
    }
}

/// The number of a fill value.
fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// The bits of a fill value in hexadecimal digits.
fn hexadecimal(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}
