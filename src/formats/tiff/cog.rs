//! Writes a cloud-optimized TIFF (OGC 21-026, Cloud Optimized GeoTIFF 1.0): the directories of the image and of its overviews,
//! and then the tiles of all of them, those of the smallest overview first.
//!
//! All levels are made in one pass over the image (`formats::pyramid`). Their tiles are finished in another order than the
//! file has. The place of an uncompressed tile is known beforehand. Compressed tiles are collected in a temporary file beside
//! the output and copied when the last one is finished, so memory holds at most a row of tiles of each level.

use super::block::{Block, BlockCoding};
use super::directory::{header, lay};
use super::encode::{check_length, check_size, trial};
use super::fields::{self, LONG, LONG8, field, put};
use super::ifd::tag;
use super::pack::Compression;
use crate::formats::Encoder;
use crate::formats::format::{Bands, PageSurvey};
use crate::formats::ordered::ordered;
use crate::formats::pyramid::{self, LevelRows, TileRow};
use crate::formats::raw::{self, Order};
use crate::image::metadata::{Field, Metadata, Own};
use crate::image::{Image, Shape};
use crate::os::Target;
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::ops::Range;

/// Rows and columns of a tile, as GDAL's COG driver has them by default.
const TILE: usize = 512;

/// Writes the image.
pub struct CogEncoder<'a> {
    target: &'a Target,
    compression: Compression,
    /// Whether the file is a BigTIFF, with offsets of 8 bytes.
    big: bool,
    /// The image that was begun, until its last rows come.
    open: Option<OpenImage>,
    /// Bytes of the file.
    end: u64,
}

/// An image of which some rows are still to come.
struct OpenImage {
    /// How its tiles are stored.
    coding: BlockCoding,
    /// The full size and the overviews.
    levels: Vec<OpenLevel>,
    /// Where the tiles begin in the file.
    tiles_at: u64,
    /// Compressed tiles in the order in which they are finished.
    scratch: Option<Scratch>,
}

/// Tiles whose places in the file are not known yet.
struct Scratch {
    file: Target,
    end: u64,
}

/// A level of which some rows are still to come.
struct OpenLevel {
    rows: LevelRows,
    /// What its directory says beside the places of tiles.
    fields: Vec<Field>,
    /// Where its directory is in the file.
    directory_at: u64,
    /// Where its finished tiles are, in the file or in the temporary file.
    tiles: Vec<Range<u64>>,
}

impl<'a> CogEncoder<'a> {
    /// Creates an encoder for one image; the file is a BigTIFF if in the worst case it could exceed 4 GiB.
    ///
    /// # Errors
    /// Several pages.
    pub fn new(
        target: &'a Target,
        compression: Compression,
        pages: &[PageSurvey],
    ) -> Result<CogEncoder<'a>> {
        let [page] = pages else {
            bail!(
                "a cloud-optimized TIFF holds one image, not {} pages: use --split to write a file for each, or --tiff-layout strips",
                pages.len()
            );
        };
        let levels = pyramid::shapes(page.shape, None, TILE).into_iter();
        let worst = levels.map(|level| {
            let tile = compression.worst(tile_bytes(&level) as u64);
            // A tile takes two entries of 8 bytes; the rest of a directory is small.
            (tile_count(&level) as u64)
                .saturating_mul(tile + 16)
                .saturating_add(4096 + 2 * page.metadata_bytes)
        });
        Ok(CogEncoder {
            target,
            compression,
            big: worst.fold(0, u64::saturating_add) > u32::MAX.into(),
            open: None,
            end: 0,
        })
    }

    /// The directory of a level, with the offset of the next one, or 0.
    fn directory(&self, level: &OpenLevel, order: Order, next: u64) -> Vec<u8> {
        let kind = if self.big { LONG8 } else { LONG };
        let number = |tag, kind, values: &[u64]| field(order, tag, kind, values);
        let offsets: Vec<u64> = level.tiles.iter().map(|tile| tile.start).collect();
        let lengths = level.tiles.iter().map(|tile| tile.end - tile.start);
        let lengths: Vec<u64> = lengths.collect();
        let mut fields = level.fields.clone();
        fields.extend([
            number(tag::TILE_WIDTH, LONG, &[TILE as u64]),
            number(tag::TILE_LENGTH, LONG, &[TILE as u64]),
            number(tag::TILE_OFFSETS, kind, &offsets),
            number(tag::TILE_BYTE_COUNTS, kind, &lengths),
        ]);
        let mut directory = lay(&mut fields, level.directory_at, order, self.big);
        let link = directory.link as usize;
        let next = self.offset(next, order);
        directory.bytes[link..][..next.len()].copy_from_slice(&next);
        directory.bytes
    }

    /// The bytes of an offset.
    fn offset(&self, offset: u64, order: Order) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, offset, if self.big { 8 } else { 4 }, order);
        bytes
    }

    /// Gives each directory its place, and uncompressed tiles theirs. Returns where tiles begin.
    fn place_directories(&self, levels: &mut [OpenLevel], order: Order) -> u64 {
        let header = header(order, self.big);
        let mut at = header.len() as u64 + self.offset(0, order).len() as u64;
        for level in levels {
            let count = tile_count(level.rows.shape());
            level.directory_at = at;
            level.tiles = vec![0..0; count];
            at += self.directory(level, order, 0).len() as u64;
            at = at.next_multiple_of(16);
            level.tiles.clear();
        }
        at
    }

    /// Completes the file: copies compressed tiles to their places, and writes the header and the directories.
    fn finish(&mut self, mut image: OpenImage) -> Result<()> {
        let order = image.coding.samples.order;
        self.end = image.tiles_at;
        for level in image.levels.iter_mut().rev() {
            match &image.scratch {
                None => self.end = level.tiles.last().map_or(self.end, |tile| tile.end),
                Some(scratch) => self.copy_tiles(scratch, &mut level.tiles)?,
            }
        }
        check_length(self.end, self.big)?;
        let mut head = header(order, self.big);
        head.extend(self.offset(image.levels[0].directory_at, order));
        self.target.write_at(&head, 0)?;
        let next = image.levels.iter().skip(1).map(|level| level.directory_at);
        for (level, next) in image.levels.iter().zip(next.chain([0])) {
            let bytes = self.directory(level, order, next);
            self.target.write_at(&bytes, level.directory_at)?;
        }
        Ok(())
    }

    /// Copies the tiles of a level to the end of the file, and records where they are now.
    fn copy_tiles(&mut self, scratch: &Scratch, tiles: &mut [Range<u64>]) -> Result<()> {
        for run in tiles.chunk_by_mut(|tile, next| tile.end == next.start) {
            let from = run[0].start..run[run.len() - 1].end;
            self.target
                .copy_from(&scratch.file, from.clone(), self.end)?;
            for tile in run {
                *tile = tile.start - from.start + self.end..tile.end - from.start + self.end;
            }
            self.end += from.end - from.start;
        }
        Ok(())
    }
}

impl Encoder for CogEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let shape = image.shape();
        let trial = trial(self.compression, &shape).into_iter();
        let trial: Vec<Image> = trial.map(|rows| image.rows(rows)).collect();
        self.begin(&shape, metadata, &trial)?;
        self.band(image)
    }

    fn bands(&self, shape: &Shape) -> Option<Bands> {
        Some(Bands {
            unit: 1,
            trial: trial(self.compression, shape),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, trial: &[Image]) -> Result<()> {
        check_size(shape)?;
        let order = match metadata.own {
            Own::Tiff { big_endian, .. } => Order::new(big_endian),
            _ => Order::Little,
        };
        let mut coding = BlockCoding::new(shape, self.compression, order, metadata.signed);
        coding.choose_effort(trial)?;
        let overview = overview_metadata(metadata);
        let levels = pyramid::shapes(*shape, None, TILE).into_iter().enumerate();
        let levels = levels.map(|(number, level)| {
            let mut fields = coding.fields(&level);
            if number == 0 {
                fields.extend(fields::written(metadata, &level, order));
            } else {
                fields.extend(fields::written(&overview, &level, order));
                fields.push(field(order, tag::NEW_SUBFILE_TYPE, LONG, &[REDUCED]));
            }
            OpenLevel {
                rows: LevelRows::new(*shape, level, TILE),
                fields,
                directory_at: 0,
                tiles: Vec::new(),
            }
        });
        let mut levels: Vec<OpenLevel> = levels.collect();
        let tiles_at = self.place_directories(&mut levels, order);
        let scratch = match self.compression {
            Compression::None => {
                let tiles = levels.iter().map(|level| tile_count(level.rows.shape()));
                let bytes = tiles.sum::<usize>() as u64 * tile_bytes(shape) as u64;
                self.target.reserve(tiles_at + bytes)?;
                None
            }
            _ => Some(Scratch {
                file: self.target.scratch()?,
                end: 0,
            }),
        };
        self.open = Some(OpenImage {
            coding: coding.with_row(tile_bytes(shape) / TILE),
            levels,
            tiles_at,
            scratch,
        });
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let mut image = self.open.take().context("a band of no page")?;
        image.add(&band, self.target)?;
        if image.levels.iter().all(|level| level.rows.is_complete()) {
            return self.finish(image);
        }
        self.open = Some(image);
        Ok(())
    }

    fn length(&self) -> u64 {
        self.end
    }
}

/// NewSubfileType of a page that is another one at a reduced resolution (TIFF 6.0, section 8).
const REDUCED: u64 = 1;

impl OpenImage {
    /// Adds the next rows of the image, and writes the tiles that are complete.
    fn add(&mut self, band: &Image, target: &Target) -> Result<()> {
        let coding = self.coding;
        // Where the first tile of the level is, without compression; the smallest level comes first.
        let mut level_at = self.tiles_at;
        for level in self.levels.iter_mut().rev() {
            let shape = *level.rows.shape();
            let tiles = &mut level.tiles;
            let (file, at) = match &mut self.scratch {
                None => (target, tiles.last().map_or(level_at, |tile| tile.end)),
                Some(scratch) => (&scratch.file, scratch.end),
            };
            let mut end = at;
            let rows = level.rows.reduce(band);
            level.rows.add(rows.as_bytes(), |complete| {
                let across = shape.width.div_ceil(TILE);
                end = ordered(
                    complete.len() * across,
                    file,
                    at,
                    || Block::new(coding),
                    |index, block| {
                        let row = &complete[index / across];
                        block.fill(&tile(row, index % across * TILE, &shape, coding))
                    },
                    |block, at| tiles.push(at..at + block.as_ref().len() as u64),
                )?;
                Ok(())
            })?;
            if let Some(scratch) = &mut self.scratch {
                scratch.end = end;
            }
            level_at += tile_count(&shape) as u64 * tile_bytes(&shape) as u64;
        }
        Ok(())
    }
}

/// The samples of the tile of a row of tiles that begins at a column, as in the file but for their byte order. Samples outside
/// the image are 0.
fn tile(row: &TileRow, left: usize, shape: &Shape, coding: BlockCoding) -> Vec<u8> {
    let pixel = shape.channels * shape.depth.bytes();
    let columns = left..(left + TILE).min(shape.width);
    let mut tile = vec![0; tile_bytes(shape)];
    let lines = row.samples.chunks_exact(shape.width * pixel);
    for (line, to) in lines.zip(tile.chunks_exact_mut(TILE * pixel)) {
        let to = &mut to[..columns.len() * pixel];
        to.copy_from_slice(&line[columns.start * pixel..columns.end * pixel]);
        raw::to_file(to, shape.depth, coding.samples.toggled);
    }
    tile
}

/// Bytes of the samples of a tile.
fn tile_bytes(shape: &Shape) -> usize {
    TILE * TILE * shape.channels * shape.depth.bytes()
}

/// The tiles of a level.
fn tile_count(shape: &Shape) -> usize {
    shape.width.div_ceil(TILE) * shape.height.div_ceil(TILE)
}

/// The metadata of overviews: only those without which samples cannot be understood.
fn overview_metadata(metadata: &Metadata) -> Metadata {
    let own = match &metadata.own {
        Own::Tiff { big_endian, fields } => Own::Tiff {
            big_endian: *big_endian,
            fields: fields
                .iter()
                .filter(|field| field.tag == tag::GDAL_NODATA)
                .cloned()
                .collect(),
        },
        _ => Own::None,
    };
    Metadata {
        signed: metadata.signed,
        white_is_zero: metadata.white_is_zero,
        alpha: metadata.alpha,
        maxval: metadata.maxval,
        orientation: metadata.orientation,
        own,
        ..Metadata::default()
    }
}
