//! Decodes the planes of an array, chunk by chunk.

use super::array::{Array, product};
use super::codecs::{self, Codec};
use super::multiscales::Multiscales;
use super::node::Node;
use super::shard_index::{Indexes, ShardIndex};
use super::streams;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{BlockSink, Decoder, PageSurvey, RowSink};
use crate::formats::packed::{Packed, Unsuited};
use crate::formats::raw::SampleEncoding;
use crate::image::metadata::{Axes, Axis, Diagnostics, Metadata, Ome, Own};
use crate::image::{Depth, Image, Region, Shape};
use crate::os::{Part, Source, Span, limits};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of chunks that are kept for the next pages, if chunks have samples of several.
const MOST_KEPT: u64 = 256 << 20;

/// Bytes of rows that are decoded at a time where a page is read from top to bottom.
const BAND: usize = 2 << 20;

/// Decodes the pages of one level of an image.
pub struct ZarrDecoder<'a> {
    source: &'a Source,
    /// The arrays of all levels.
    levels: Vec<Level>,
    level: usize,
    page: usize,
    /// The decoded chunks that the next pages may need, if chunks have samples of several.
    kept: Mutex<Kept>,
    indexes: Indexes,
}

/// An array and its metadata.
struct Level {
    array: Array,
    shape: Shape,
    /// The axes of pages, if they have known names.
    axes: Option<Axes>,
    ome: Ome,
}

/// A decoded chunk; `None` if it is not stored.
type Unit = Option<Arc<Vec<u8>>>;

/// The decoded chunks at one place along the axes of pages, by their row and column.
#[derive(Default)]
struct Kept {
    place: Vec<u64>,
    units: HashMap<(u64, u64), Unit>,
}

/// The part of chunks, or of a page, along one axis of a page.
#[derive(Clone, Copy)]
struct Side {
    /// The first sample, and the one after the last.
    start: usize,
    end: usize,
    /// Samples of a chunk.
    unit: usize,
}

impl Side {
    /// The places of the chunks that have samples of it.
    fn units(self) -> Range<usize> {
        self.start / self.unit..self.end.div_ceil(self.unit)
    }

    /// The samples of it that a chunk has.
    fn samples(self, unit: usize) -> Range<usize> {
        self.start.max(unit * self.unit)..self.end.min((unit + 1) * self.unit)
    }
}

impl<'a> ZarrDecoder<'a> {
    /// Reads the descriptions of a store.
    ///
    /// # Errors
    /// A store that describes no image, and what is not supported.
    pub fn open(source: &'a Source) -> Result<ZarrDecoder<'a>> {
        ensure!(
            source.is_store(),
            "it describes a Zarr store: give the folder that it is in, whose name must end in .zarr"
        );
        let root = Node::read(source, "")?.context("it has no description of a Zarr store")?;
        let levels = if root.is_array {
            let array = Array::new(root.version, String::new(), &root.description)?;
            vec![Level::new(array, None, Ome::default())?]
        } else {
            let image = Multiscales::find(source, &root)?;
            let levels = image.paths.iter().zip(image.metadata);
            let level = |(path, ome): (&String, Ome)| {
                let read = || {
                    let node = Node::read(source, path)?.context("there is no such array")?;
                    ensure!(node.is_array, "it is not an array");
                    let array = Array::new(node.version, node.path, &node.description)?;
                    Level::new(array, Some(&image.axes), ome)
                };
                read().with_context(|| format!("the array {path}"))
            };
            levels.map(level).collect::<Result<_>>()?
        };
        Ok(ZarrDecoder {
            source,
            levels,
            level: 0,
            page: 0,
            kept: Mutex::default(),
            indexes: Indexes::default(),
        })
    }

    fn level(&self) -> &Level {
        &self.levels[self.level]
    }

    fn array(&self) -> &Array {
        &self.level().array
    }

    /// The place of the selected page along each axis of pages.
    fn place(&self) -> Vec<u64> {
        let outer = &self.array().shape[..self.array().shape.len() - 2];
        let mut rest = self.page as u64;
        let mut place: Vec<u64> = Vec::with_capacity(outer.len());
        for &size in outer.iter().rev() {
            place.push(rest % size);
            rest /= size;
        }
        place.reverse();
        place
    }

    /// Decodes a region of the selected page. Damage is an error, or is recorded by `policy`.
    fn decode_region(&self, region: &Region, policy: &ErrorPolicy) -> Result<Image> {
        let level = self.level();
        let shape = region.output(level.shape);
        let mut samples = policy.samples(&shape)?;
        let [.., unit_height, unit_width] = *level.array.unit() else {
            bail!("internal error: an array of one axis");
        };
        let side = |start: usize, length: usize, unit: u64| Side {
            start,
            end: start + length,
            unit: usize::try_from(unit).unwrap_or(usize::MAX),
        };
        let rows = side(region.top, region.height, unit_height);
        let columns = side(region.left, region.width, unit_width);
        let row_bytes = shape.width * shape.depth.bytes();
        let mut rest = samples.as_bytes_mut();
        let mut bands = Vec::new();
        for unit in rows.units() {
            let (band, after) = rest.split_at_mut(rows.samples(unit).len() * row_bytes);
            bands.push((unit, band));
            rest = after;
        }
        let decode =
            |(unit, band)| self.decode_band(unit, rows.samples(unit), columns, band, policy);
        let decoded: Vec<Result<()>> = self
            .source
            .in_parallel(|| bands.into_par_iter().map(decode).collect());
        // Of several errors the one of the first band, whatever the order of the threads.
        decoded.into_iter().collect::<Result<()>>()?;
        Ok(Image::new(shape, samples))
    }

    /// Decodes the rows that one row of chunks has.
    fn decode_band(
        &self,
        row: usize,
        rows: Range<usize>,
        columns: Side,
        band: &mut [u8],
        policy: &ErrorPolicy,
    ) -> Result<()> {
        let array = self.array();
        let sample = array.samples.depth.bytes();
        let place = self.place();
        let (unit_height, unit_width) = self.unit_sides();
        let plane = self.plane_in_unit(&place);
        let units = columns.units().into_par_iter();
        let units: Vec<Result<Unit>> = units
            .map(|column| self.unit(&place, row as u64, column as u64))
            .collect();
        let row_bytes = band.len() / rows.len();
        for (column, unit) in columns.units().zip(units) {
            let samples = columns.samples(column);
            let to =
                (samples.start - columns.start) * sample..(samples.end - columns.start) * sample;
            let unit = match unit {
                Ok(unit) => unit,
                Err(error) => {
                    policy.accept(Err(error))?;
                    // Damaged samples are 0.
                    for line in band.chunks_exact_mut(row_bytes) {
                        line[to.clone()].fill(0);
                    }
                    continue;
                }
            };
            for (y, line) in rows.clone().zip(band.chunks_exact_mut(row_bytes)) {
                let line = &mut line[to.clone()];
                match &unit {
                    None => {
                        for target in line.chunks_exact_mut(sample) {
                            target.copy_from_slice(&array.fill);
                        }
                    }
                    Some(bytes) => {
                        let first = (plane * unit_height + y % unit_height) * unit_width
                            + samples.start % unit_width;
                        line.copy_from_slice(&bytes[first * sample..][..line.len()]);
                    }
                }
            }
        }
        let encoding = SampleEncoding {
            depth: array.samples.depth,
            order: array.pipeline.sample_order(),
            toggled: array.samples.signed,
        };
        encoding.to_memory(band);
        Ok(())
    }

    /// Rows and columns of a chunk.
    fn unit_sides(&self) -> (usize, usize) {
        let unit = self.array().unit();
        let [height, width] = [unit.len() - 2, unit.len() - 1].map(|axis| unit[axis] as usize);
        (height, width)
    }

    /// The number of the plane in a chunk that has the page at a place.
    fn plane_in_unit(&self, place: &[u64]) -> usize {
        let sizes = self.array().unit().iter();
        let pairs = place.iter().zip(sizes);
        pairs.fold(0, |plane, (place, size)| plane * size + place % size) as usize
    }

    /// Planes of a chunk.
    fn planes_of_unit(&self) -> u64 {
        let unit = self.array().unit();
        product(&unit[..unit.len() - 2]).unwrap_or(u64::MAX)
    }

    /// Bytes of the chunks that are kept for the next pages: none if each chunk has samples of one page only, or if they are
    /// too large.
    fn kept_bytes(&self) -> u64 {
        let shape = self.level().shape;
        let (height, width) = self.unit_sides();
        let units = (shape.height.div_ceil(height) * shape.width.div_ceil(width)) as u64;
        let bytes = units.saturating_mul(self.array().unit_bytes());
        if self.planes_of_unit() > 1 && bytes <= MOST_KEPT {
            bytes
        } else {
            0
        }
    }

    /// The decoded chunk at a row and a column that has samples of the page at a place.
    fn unit(&self, place: &[u64], row: u64, column: u64) -> Result<Unit> {
        let mut unit = self.outer_unit(place);
        let keeps = self.kept_bytes() > 0;
        if keeps {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.place != unit {
                *kept = Kept {
                    place: unit.clone(),
                    units: HashMap::new(),
                };
            } else if let Some(known) = kept.units.get(&(row, column)) {
                return Ok(known.clone());
            }
        }
        unit.extend([row, column]);
        let decoded = self.decode_unit(&unit)?.map(Arc::new);
        if keeps {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.units.insert((row, column), decoded.clone());
        }
        Ok(decoded)
    }

    /// Reads and decodes the chunk at a place of the grid of chunks; `None` if it is not stored.
    fn decode_unit(&self, unit: &[u64]) -> Result<Option<Vec<u8>>> {
        let Some((key, bytes)) = self.read_unit(unit)? else {
            return Ok(None);
        };
        let decoded = codecs::decode(self.codecs(), bytes, self.array().unit_bytes() as usize);
        decoded
            .with_context(|| format!("the chunk {key}"))
            .map(Some)
    }

    /// The codecs of chunks, or of the inner chunks of shards.
    fn codecs(&self) -> &[Codec] {
        let pipeline = &self.array().pipeline;
        match &pipeline.sharding {
            None => &pipeline.codecs,
            Some(sharding) => &sharding.inner.codecs,
        }
    }

    /// Reads the chunk at a place of the grid of chunks as it is stored, with the name of its file; `None` if it is not stored.
    fn read_unit(&self, unit: &[u64]) -> Result<Option<(String, Vec<u8>)>> {
        let array = self.array();
        let in_chunk = array.units_in_chunk();
        let chunk: Vec<u64> = unit
            .iter()
            .zip(&in_chunk)
            .map(|(at, count)| at / count)
            .collect();
        let key = array.key(&chunk);
        let size = array.unit_bytes();
        // Codecs add little to data that cannot be compressed.
        let most = size.saturating_mul(2).saturating_add(1 << 20);
        let span = match &array.pipeline.sharding {
            None => Span::All,
            Some(sharding) => {
                let inner = unit.iter().zip(&in_chunk);
                let place = inner.fold(0, |place, (at, count)| place * count + at % count);
                let count = product(&in_chunk).context("internal error: too many chunks")?;
                let index = self.indexes.get(&key, || {
                    ShardIndex::read(self.source, &key, sharding, count)
                })?;
                let Some(index) = index else {
                    return Ok(None);
                };
                let entry = index.entry(place).with_context(|| key.clone())?;
                let Some(range) = entry else {
                    return Ok(None);
                };
                let length = range.end - range.start;
                ensure!(
                    length <= most,
                    "{key}: a chunk of {length} bytes is too long"
                );
                Span::Bytes(range)
            }
        };
        let part = self.source.member(&key, span, most)?;
        Ok(part.map(|Part { bytes, .. }| (key, bytes)))
    }

    /// The chunk of the selected page at a row and a column, as it is stored; `None` if it is not.
    fn encoded_chunk(&self, row: u64, column: u64) -> Result<Option<Vec<u8>>> {
        let mut unit = self.outer_unit(&self.place());
        unit.extend([row, column]);
        let read = self.read_unit(&unit)?;
        Ok(read.map(|(_, bytes)| bytes))
    }

    /// The place of the chunks that have samples of a page, in the grid of chunks, along the axes of pages.
    fn outer_unit(&self, place: &[u64]) -> Vec<u64> {
        let sizes = self.array().unit().iter();
        let places = place.iter().zip(sizes);
        places.map(|(at, size)| at / size).collect()
    }
}

impl Level {
    fn new(array: Array, names: Option<&Vec<String>>, ome: Ome) -> Result<Level> {
        let [outer @ .., height, width] = &array.shape[..] else {
            bail!("an array of one axis is not an image");
        };
        let shape = Shape::checked(*width, *height, 1, array.samples.depth)?;
        let pages = product(outer).and_then(|pages| usize::try_from(pages).ok());
        ensure!(
            pages.is_some_and(|pages| pages <= u32::MAX as usize),
            "its axes {:?} are too many pages",
            array.shape
        );
        let free = limits::free_memory();
        ensure!(
            array.unit_bytes() <= free,
            "its chunks of {} bytes do not fit in memory: {free} bytes are free",
            array.unit_bytes()
        );
        let axes = match names.or(array.axes.as_ref()) {
            Some(names) => page_axes(names, &array.shape, names.len() == array.shape.len())?,
            None => None,
        };
        Ok(Level {
            shape,
            axes,
            ome,
            array,
        })
    }

    fn pages(&self) -> usize {
        let outer = &self.array.shape[..self.array.shape.len() - 2];
        product(outer).unwrap_or(1) as usize
    }
}

/// The axes of pages, the fastest first, of an array whose axes have these names.
///
/// # Errors
/// Rows and columns that are not the last axes, and axes of other names.
fn page_axes(names: &[String], shape: &[u64], is_complete: bool) -> Result<Option<Axes>> {
    ensure!(
        is_complete,
        "its metadata name {} axes, but its array has {}",
        names.len(),
        shape.len()
    );
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let [outer @ .., "y", "x"] = &lower[..] else {
        bail!(
            "its axes are {}, but only those that end with y, x are supported",
            names.join(", ")
        );
    };
    let mut axes = Vec::new();
    for (name, &size) in outer.iter().zip(shape).rev() {
        let axis = match *name {
            "t" => Axis::T,
            "c" => Axis::C,
            "z" => Axis::Z,
            other => bail!("the axis {other:?} is not supported (t, c, z, y and x are)"),
        };
        ensure!(
            !axes.iter().any(|(known, _)| *known == axis),
            "it has the axis {axis} twice"
        );
        axes.push((axis, size as usize));
    }
    for axis in [Axis::Z, Axis::C, Axis::T] {
        if !axes.iter().any(|(known, _)| *known == axis) {
            axes.push((axis, 1));
        }
    }
    Ok(axes.try_into().ok().map(Axes))
}

impl Decoder for ZarrDecoder<'_> {
    fn pages(&self) -> usize {
        self.level().pages()
    }

    fn levels(&self) -> usize {
        self.levels.len()
    }

    fn select_level(&mut self, level: usize) -> Result<()> {
        self.level = level;
        self.page = 0;
        Ok(())
    }

    /// What is in memory beside the page counts as metadata: the chunks that threads decode, and those that are kept.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let shape = self.level().shape;
        let Shape { width, height, .. } = shape;
        let whole = Region {
            left: 0,
            top: 0,
            width,
            height,
        };
        Ok(PageSurvey {
            shape,
            metadata_bytes: self.chunk_memory(&whole),
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.level().shape
    }

    fn metadata(&self, _diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let level = self.level();
        Ok(Metadata {
            signed: level.array.samples.signed,
            resolution: level.ome.resolution(),
            axes: level.axes,
            own: if level.ome == Ome::default() {
                Own::None
            } else {
                Own::Ome(Box::new(level.ome.clone()))
            },
            ..Metadata::default()
        })
    }

    fn gives_packed(&self) -> bool {
        let depth = self.level().shape.depth;
        depth != Depth::Double
            && self.planes_of_unit() == 1
            && streams::coding(self.codecs()).is_some()
    }

    fn packed(&self) -> Result<Packed, Unsuited> {
        let coding = streams::coding(self.codecs()).filter(|_| self.gives_packed());
        let coding = coding.ok_or_else(|| {
            Unsuited::new("its chunks are not zlib or gzip data of one page each")
        })?;
        let (height, width) = self.unit_sides();
        let array = self.array();
        let chunks = streams::Chunks {
            coding,
            shape: self.level().shape,
            height,
            width,
            order: array.pipeline.sample_order(),
            signed: array.samples.signed,
        };
        let read_chunk = |row, column| self.encoded_chunk(row, column);
        self.source
            .in_parallel(|| streams::read(chunks, read_chunk))
    }

    fn gives_blocks(&self) -> bool {
        !self.level().shape.depth.is_wide()
    }

    fn blocks(&self, sink: &BlockSink) -> Result<()> {
        let bands: Vec<Region> = self.bands(1, 1).collect();
        let policy = ErrorPolicy::new(false);
        let blocks = bands.into_par_iter();
        blocks.try_for_each(|band| sink(self.decode_region(&band, &policy)?))
    }

    fn gives_rows(&self) -> bool {
        true
    }

    fn rows(&self, _serially: bool, sink: &mut RowSink) -> Result<()> {
        let policy = ErrorPolicy::new(false);
        let across = self.level().shape.width.div_ceil(self.unit_sides().1);
        let rows_of_units = self.source.reads_at_once().div_ceil(across);
        for band in self.bands(BAND, rows_of_units) {
            sink(self.decode_region(&band, &policy)?.samples().as_bytes())?;
        }
        Ok(())
    }

    fn gives_regions(&self) -> bool {
        true
    }

    fn region_parts(&self, region: &Region) -> String {
        let shape = self.level().shape;
        let (height, width) = self.unit_sides();
        let [rows, columns] = self.units_of(region);
        let all = shape.height.div_ceil(height) * shape.width.div_ceil(width);
        format!("{} of {all} chunks", rows * columns)
    }

    fn region_memory(&self, _page: usize, region: &Region) -> Result<u64> {
        Ok(self.chunk_memory(region))
    }

    fn region(&self, region: &Region) -> Result<Image> {
        self.decode_region(region, &ErrorPolicy::new(false))
    }
    fn decoding(&self) -> String {
        let (height, width) = self.unit_sides();
        let Shape {
            width: columns,
            height: rows,
            ..
        } = self.level().shape;
        format!("{} chunks", rows.div_ceil(height) * columns.div_ceil(width))
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let Shape { width, height, .. } = self.level().shape;
        let whole = Region {
            left: 0,
            top: 0,
            width,
            height,
        };
        self.decode_region(&whole, policy)
    }
}

impl ZarrDecoder<'_> {
    /// The rows and columns of chunks that have samples of a region.
    fn units_of(&self, region: &Region) -> [usize; 2] {
        let (height, width) = self.unit_sides();
        let count = |start: usize, length: usize, unit: usize| {
            (start + length).div_ceil(unit) - start / unit
        };
        [
            count(region.top, region.height, height),
            count(region.left, region.width, width),
        ]
    }

    /// Bytes that are in memory beside a region while it is decoded: the chunks of some rows, encoded and decoded, and those
    /// that are kept.
    fn chunk_memory(&self, region: &Region) -> u64 {
        let [rows, columns] = self.units_of(region).map(|count| count as u64);
        let threads = rayon::current_num_threads().max(self.source.reads_at_once()) as u64;
        let units = columns.saturating_mul(rows.min(threads));
        let decoded = units
            .saturating_mul(self.array().unit_bytes())
            .saturating_mul(2);
        decoded.saturating_add(self.kept_bytes())
    }

    /// The page in bands of whole rows of chunks, each of at least so many bytes and so many of these rows where there are enough.
    fn bands(&self, bytes: usize, rows_of_units: usize) -> impl Iterator<Item = Region> + use<> {
        let Shape { width, height, .. } = self.level().shape;
        let unit = self.unit_sides().0;
        let row = self.level().shape.row() * self.level().shape.depth.bytes();
        let units = bytes.div_ceil(unit.saturating_mul(row)).max(rows_of_units);
        let rows = unit.saturating_mul(units).min(height);
        (0..height).step_by(rows).map(move |top| Region {
            left: 0,
            top,
            width,
            height: rows.min(height - top),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Reader, Reading};
    use crate::image::Samples;
    use std::collections::BTreeMap;

    const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [2, 2, 3], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 2, 2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": -5,
        "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}"#;

    const GROUP: &str = r#"{"attributes": {"ome": {"version": "0.5", "multiscales": [{
        "axes": [{"name": "z", "unit": "micrometer"}, {"name": "y"}, {"name": "x"}],
        "datasets": [{"path": "PATH", "coordinateTransformations": [{"type": "scale", "scale": [0.75, 1, 1]}]}]}]}},
        "zarr_format": 3, "node_type": "group"}"#;

    fn store(files: &[(&str, &[u8])]) -> Source {
        let files = files
            .iter()
            .map(|(name, bytes)| (name.to_string(), bytes.to_vec()));
        Source::store_in_memory(files.collect()).expect("a store")
    }

    /// The pages of a store, or the error.
    fn pages(files: &[(&str, &[u8])]) -> Result<Vec<Image>> {
        let source = store(files);
        let mut reader = Reader::open(&source, &Reading::default())?;
        let count = reader.pages().len();
        let page = |index| {
            reader.turn_to(index)?;
            reader.decode()
        };
        (0..count).map(page).collect()
    }

    /// Two planes of 2 × 3 samples with a sign, which memory has with half the range added: a chunk of 2 × 2, one at the edge
    /// whose second column is not of the image, and two that are not stored.
    #[test]
    fn planes_of_chunks_by_hand() {
        let group = GROUP.replace("PATH", "0");
        let files: [(&str, &[u8]); 4] = [
            ("zarr.json", group.as_bytes()),
            ("0/zarr.json", ARRAY.as_bytes()),
            ("0/c/0/0/0", &[0, 1, 0, 2, 0, 4, 255, 255]),
            ("0/c/0/0/1", &[0, 3, 99, 99, 0, 6, 99, 99]),
        ];
        let planes = [[1, 2, 3, 4, -1, 6], [-5; 6]].map(|plane: [i32; 6]| {
            Samples::from(plane.map(|value| (value + 32768) as u16).to_vec())
        });
        let found = pages(&files).expect("read");
        let found: Vec<&Samples> = found.iter().map(Image::samples).collect();
        assert_eq!(found, [&planes[0], &planes[1]]);
        let source = store(&files);
        let reader = Reader::open(&source, &Reading::default()).expect("read");
        assert_eq!(
            reader.axes().map(|axes| axes.to_string()),
            Some("2 z".into())
        );
        let metadata = reader.metadata(&mut Diagnostics::default()).expect("read");
        assert!(metadata.signed);
        assert_eq!(metadata.own.names(), ["the distance of slices"]);
    }

    #[test]
    fn stores_that_are_hostile_or_not_supported_are_refused() {
        let array = |from: &str, to: &str| {
            assert!(ARRAY.contains(from), "{from}");
            ARRAY.replacen(from, to, 1)
        };
        for (description, words) in [
            (array("[2, 2, 3]", "[2, 0, 3]"), "has a size of 0"),
            (array("[2, 2, 3]", "[3]"), "an array of 1 axes"),
            (array("[2, 2, 3]", "[9999999999, 2, 3]"), "too many pages"),
            (
                array("[2, 2, 3]", "[2, 9223372036854775807, 9223372036854775807]"),
                "do not fit in memory",
            ),
            (array("[1, 2, 2]", "[1, 99999, 99999]"), "may have 2 GiB"),
            (array("[1, 2, 2]", "[2, 2]"), "its chunks have 2 axes"),
            (array("int16", "float16"), "\"float16\" are not supported"),
            (array("-5", "70000"), "fill value 70000"),
            (array("\"bytes\"", "\"lzma\""), "do not begin with bytes"),
            (array("\"regular\"", "\"rectilinear\""), "\"rectilinear\""),
            (array("\"big\"", "\"middle\""), "\"middle\""),
            (array("{\"zarr", "[{\"zarr"), "is not JSON"),
        ] {
            let error = pages(&[("zarr.json", description.as_bytes())]).expect_err(words);
            let error = format!("{error:#}");
            assert!(error.contains(words), "{words}: {error}");
        }
        for (path, words) in [
            ("../0", "leads out of the store"),
            ("/etc", "leads out of the store"),
            ("1", "there is no such array"),
        ] {
            let group = GROUP.replace("PATH", path);
            let error = pages(&[("zarr.json", group.as_bytes())]).expect_err(words);
            let error = format!("{error:#}");
            assert!(error.contains(words), "{words}: {error}");
        }
        let short: BTreeMap<_, _> = [("a".to_string(), Vec::new())].into();
        assert!(Source::store_in_memory(short).is_err());
        let error = pages(&[("zarr.json", ARRAY.as_bytes()), ("c/0/0/0", &[1, 2])]);
        let error = format!("{:#}", error.expect_err("short"));
        assert!(
            error.contains("the chunk c/0/0/0: it has 2 bytes, not 8"),
            "{error}"
        );
    }
}
