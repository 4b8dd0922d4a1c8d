//! OpenEXR (the library's "File Layout" and "Technical Introduction"), read by the `exr` crate: half
//! and 32-bit floating point, or 32-bit integers, in any of its lossless compressions and most lossy
//! ones; scan lines or tiles. Each part is a page.
//!
//! Of a part the channels R, G and B, or Y, are read, with A where it is there (colours are multiplied
//! by it), or its only channel. The blocks are decompressed on all threads.

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Format, PageSurvey};
use super::library::{Stream, stream};
use super::{library_errors, raw};
use crate::image::metadata::{Alpha, Diagnostics, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use crate::os::panics::catch_panic;
use ::exr::block::UncompressedBlock;
use ::exr::block::chunk::{Chunk, CompressedBlock};
use ::exr::block::lines::LineRef;
use ::exr::block::reader::{ChunksReader, Reader};
use ::exr::compression::Compression;
use ::exr::error::Error as Cause;
use ::exr::meta::attribute::{ChannelDescription, SampleType};
use ::exr::meta::header::Header;
use ::exr::meta::{BlockDescription, MetaData};
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use half::f16;
use rayon::prelude::*;
use std::collections::HashSet;
use std::io;

/// Blocks that are decompressed at once: enough for all threads, and few in memory.
const BLOCKS: usize = 256;

/// OpenEXR.
pub static FORMAT: Format = Format {
    name: "OpenEXR",
    id: "exr",
    title: "OpenEXR of half and 32-bit floating point, or 32-bit integers",
    extensions: &["exr"],
    capabilities: Capabilities {
        depths: &[Depth::ThirtyTwo, Depth::Float],
        signed: false,
        alpha: &[Alpha::Associated],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: |head| head.starts_with(b"\x76\x2f\x31\x01"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let file = open(source)?.into_meta_data();
    file.headers.iter().try_for_each(check_tiles)?;
    let part = Part::read(&file, 0, source)?;
    Ok(Box::new(ExrDecoder { source, file, part }))
}

fn open(source: &Source) -> Result<Reader<Stream<'_>>> {
    ::exr::block::read(stream(source), false).map_err(|error| cause(error, source))
}

/// An error of the library in a sentence.
fn cause(error: Cause, source: &Source) -> Error {
    match error {
        Cause::Invalid(what) if what == "reference to missing bytes" => {
            anyhow!("truncated at byte {}", source.len())
        }
        Cause::Invalid(what) => library_errors::translate(what, source.len()),
        Cause::NotSupported(what) => library_errors::translate(what, source.len()),
        Cause::Io(error) if error.kind() == io::ErrorKind::Other => anyhow!("{error}"),
        Cause::Io(error) => library_errors::translate(error, source.len()),
        Cause::Aborted => anyhow!("reading was ended"),
    }
}

/// What is read of a part.
struct Part {
    index: usize,
    shape: Shape,
    alpha: Alpha,
    /// The place in a pixel of each channel of the file, if it is read, and its type.
    channels: Vec<(Option<usize>, SampleType)>,
    /// Names of the channels that are not read.
    left_out: Vec<String>,
}

impl Part {
    /// Refuses what is not supported, and a file that is too short for the part's pixels.
    fn read(file: &MetaData, index: usize, source: &Source) -> Result<Part> {
        let header = file.headers.get(index).context("there is no such part")?;
        ensure!(
            !header.deep,
            "deep pixels are not supported: flatten them first (OpenImageIO: oiiotool --flatten)"
        );
        let list = &header.channels.list;
        let names: Vec<String> = list
            .iter()
            .map(|channel| channel.name.to_string())
            .collect();
        let taken = taken(&names)?;
        let alpha = match taken.len() {
            2 | 4 => Alpha::Associated,
            _ => Alpha::Independent,
        };
        let place = |name: &str| taken.iter().position(|taken| *taken == name);
        let read = |channel: &&ChannelDescription| place(&channel.name.to_string()).is_some();
        if let Some(channel) = list.iter().filter(read).find(|channel| {
            let across = channel.sampling;
            (across.x(), across.y()) != (1, 1)
        }) {
            bail!(
                "its channel {} has fewer samples than there are pixels, which is not supported: write \
                 it as RGB first",
                channel.name
            );
        }
        let mut types = list.iter().filter(read).map(|channel| channel.sample_type);
        let integers = types
            .clone()
            .filter(|kind| *kind == SampleType::U32)
            .count();
        let depth = match integers {
            0 => Depth::Float,
            _ if types.all(|kind| kind == SampleType::U32) => Depth::ThirtyTwo,
            _ => bail!("channels of integers beside those of floating point are not supported"),
        };
        let (width, height) = (header.layer_size.width(), header.layer_size.height());
        let shape = Shape::checked(width as u64, height as u64, taken.len(), depth)?;
        check_length(header, &shape, source)?;
        let channels = list.iter().zip(&names);
        Ok(Part {
            index,
            shape,
            alpha,
            channels: channels
                .map(|(channel, name)| (place(name), channel.sample_type))
                .collect(),
            left_out: names
                .iter()
                .filter(|name| place(name).is_none())
                .cloned()
                .collect(),
        })
    }
}

/// The channels of a part that are read, in the order of a pixel.
fn taken(names: &[String]) -> Result<Vec<&str>> {
    let has = |wanted: &&str| names.iter().any(|name| name == wanted);
    let colours: &[&str] = if ["R", "G", "B"].iter().all(has) {
        &["R", "G", "B"]
    } else if ["RY", "BY"].iter().any(has) {
        bail!(
            "luminance with differences of colour (Y, RY, BY) is not supported: write it as RGB first"
        )
    } else if has(&"Y") {
        &["Y"]
    } else if let [only] = names {
        return Ok(vec![only]);
    } else {
        bail!(
            "channels {} are neither grey (Y) nor RGB: write the channels that you need to a part or file of their own",
            names.join(", ")
        )
    };
    let alpha = ["A"];
    let alpha = alpha.iter().filter(|name| has(name));
    Ok(colours.iter().chain(alpha).copied().collect())
}

/// Pixels of a tile that may be larger than its image.
const LARGE_TILE: usize = 1 << 22;

/// Refuses tiles that are far larger than their image: a chunk may claim as many bytes as its tile has, and takes
/// them before it is read.
fn check_tiles(header: &Header) -> Result<()> {
    if let BlockDescription::Tiles(tiles) = header.blocks {
        let (tile, image) = (tiles.tile_size, header.layer_size);
        ensure!(
            tile.area() <= image.area().max(LARGE_TILE),
            "it is damaged: tiles of {}×{} pixels for an image of {}×{}",
            tile.width(),
            tile.height(),
            image.width(),
            image.height()
        );
    }
    Ok(())
}

/// Refuses a file that is too short for its pixels at the best compression of its method, before memory
/// is taken.
fn check_length(header: &Header, shape: &Shape, source: &Source) -> Result<()> {
    let expansion = match header.compression {
        Compression::Uncompressed => 1,
        // A count and a byte stand for 128 bytes.
        Compression::RLE => 64,
        // zlib's 1032, with floating point of 24 bits for PXR24.
        Compression::ZIP1 | Compression::ZIP16 | Compression::PXR24 => 1376,
        // A block of 16 half numbers takes 3 bytes at least.
        Compression::B44 | Compression::B44A => 11,
        // A code of one bit, repeated 255 times by another of 9, each two bytes.
        Compression::PIZ => 512,
        // zlib's, of one number for each block of 64.
        _ => 1032 * 64 * 2,
    };
    // Samples of half precision take half the bytes of the file's.
    let most = source.len().saturating_mul(2 * expansion);
    ensure!(
        shape.bytes() as u64 <= most,
        "truncated: {} bytes are too few for {}×{} pixels",
        source.len(),
        shape.width,
        shape.height
    );
    Ok(())
}

struct ExrDecoder<'a> {
    source: &'a Source,
    file: MetaData,
    part: Part,
}

impl Decoder for ExrDecoder<'_> {
    fn pages(&self) -> usize {
        self.file.headers.len()
    }

    fn survey(&self, page: usize) -> Result<PageSurvey> {
        Ok(Part::read(&self.file, page, self.source)?.shape.into())
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.part = Part::read(&self.file, page, self.source)?;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.part.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let header = &self.file.headers[self.part.index];
        if !self.part.left_out.is_empty() {
            let names = self.part.left_out.join(", ");
            let warning = format!("channels that do not belong to the image are left out: {names}");
            diagnostics.warnings.push(warning);
        }
        let (shown, place) = (
            header.shared_attributes.display_window,
            header.own_attributes.layer_position,
        );
        if shown.position != place || shown.size != header.layer_size {
            diagnostics.warnings.push(format!(
                "only the stored pixels are read, a window of the {}×{} of its display",
                shown.size.width(),
                shown.size.height()
            ));
        }
        let other = [
            &header.shared_attributes.other,
            &header.own_attributes.other,
        ];
        let mut names: Vec<String> = (other.into_iter().flatten())
            .map(|(name, _)| format!("attribute {name} is left out"))
            .collect();
        names.sort();
        diagnostics.notes.extend(names);
        Ok(Metadata {
            alpha: self.part.alpha,
            ..Metadata::default()
        })
    }
    fn decoding(&self) -> String {
        "by the crate exr".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let part = &self.part;
        let mut samples = Samples::zeroed(&part.shape)?;
        let read = self.blocks(&mut samples, policy);
        policy.accept(read)?;
        raw::to_memory(samples.as_bytes_mut(), part.shape.depth, false);
        Ok(Image::new(part.shape, samples))
    }
}

impl ExrDecoder<'_> {
    /// Fills the samples, as bits of numbers, from the part's blocks.
    fn blocks(&self, samples: &mut Samples, policy: &ErrorPolicy) -> Result<()> {
        let (part, source) = (&self.part, self.source);
        let Samples::U32(samples) = samples else {
            bail!("samples of 32 bits were expected");
        };
        let mut chunks = open(source)?
            .filter_chunks(false, |_, _, block| {
                block.layer == part.index && (block.level.x(), block.level.y()) == (0, 0)
            })
            .map_err(|error| cause(error, source))?;
        let mut places = HashSet::new();
        let mut pixels = 0;
        loop {
            let some: Vec<Result<Chunk, Cause>> = chunks.by_ref().take(BLOCKS).collect();
            if some.is_empty() {
                break;
            }
            let file = chunks.meta_data();
            let blocks: Vec<Result<UncompressedBlock, Cause>> = some
                .into_par_iter()
                .map(|chunk| decompress(chunk?, file))
                .collect();
            for block in blocks {
                match block {
                    Ok(block) => {
                        let at = block.index.pixel_position;
                        if block.index.layer == part.index && places.insert((at.x(), at.y())) {
                            pixels += block.index.pixel_size.area();
                            let channels = &file.headers[part.index].channels;
                            block
                                .lines(channels)
                                .for_each(|line| copy(line, part, samples));
                        }
                    }
                    Err(error) => policy.accept(Err(cause(error, source)))?,
                }
            }
        }
        ensure!(
            pixels == part.shape.pixels(),
            "it is damaged: it has {pixels} of {} pixels",
            part.shape.pixels()
        );
        Ok(())
    }
}

/// The samples of a chunk. The library panics on some damaged chunks, instead of returning an error.
fn decompress(chunk: Chunk, file: &MetaData) -> Result<UncompressedBlock, Cause> {
    let decompressed = catch_panic(|| {
        check_dwa_sizes(&chunk, file)?;
        UncompressedBlock::decompress_chunk(chunk, file, false)
    });
    decompressed.unwrap_or_else(|_| Err(Cause::Invalid("compressed data".into())))
}

/// Refuses a chunk of DWAA or DWAB whose counters state more bytes than zlib can expand it to: the library allocates them
/// unchecked, and an allocation that fails ends the program.
fn check_dwa_sizes(chunk: &Chunk, file: &MetaData) -> Result<(), Cause> {
    let Some(header) = file.headers.get(chunk.layer_index) else {
        return Ok(());
    };
    let bytes = match &chunk.compressed_block {
        CompressedBlock::ScanLine(block) => &block.compressed_pixels_le,
        CompressedBlock::Tile(block) => &block.compressed_pixels_le,
        _ => return Ok(()),
    };
    let is_dwa = matches!(
        header.compression,
        Compression::DWAA(_) | Compression::DWAB(_)
    );
    let place = header.get_block_data_indices(&chunk.compressed_block)?;
    let size = header.get_absolute_block_pixel_coordinates(place)?.size;
    // A chunk of this length has samples as they are, without counters.
    let is_stored = bytes.len() == size.area() * header.channels.bytes_per_pixel;
    if !is_dwa || is_stored {
        return Ok(());
    }
    let counter = |index: usize| {
        let counters = bytes.as_chunks().0;
        counters
            .get(index)
            .map_or(0, |&counter| u64::from_le_bytes(counter))
    };
    // Bytes of other channels and of runs, and numbers of two bytes for the AC and DC coefficients.
    let stated = [
        counter(1),
        counter(6),
        counter(8).saturating_mul(2),
        counter(9).saturating_mul(2),
    ];
    let most = 1032 * bytes.len() as u64;
    if stated.iter().any(|&size| size > most) {
        return Err(Cause::Invalid("compressed data".into()));
    }
    Ok(())
}

/// Copies a line of one channel to its place, as bits of 32-bit numbers.
fn copy(line: LineRef, part: &Part, samples: &mut [u32]) {
    let Some(&(Some(place), kind)) = part.channels.get(line.location.channel) else {
        return;
    };
    let Shape {
        width, channels, ..
    } = part.shape;
    let (x, y) = (line.location.position.x(), line.location.position.y());
    let Some(row) = samples.get_mut((y * width + x) * channels..) else {
        return;
    };
    let out = row.iter_mut().skip(place).step_by(channels);
    match kind {
        SampleType::F16 => {
            let halves = line.value.as_chunks().0.iter();
            let wide = halves.map(|&half| f16::from_ne_bytes(half).to_f32().to_bits());
            out.zip(wide).for_each(|(out, bits)| *out = bits);
        }
        SampleType::F32 | SampleType::U32 => {
            let words = line.value.as_chunks().0.iter();
            out.zip(words)
                .for_each(|(out, &word)| *out = u32::from_ne_bytes(word));
        }
    }
}
