//! Partial projections: what one part of a set gives, in a file that `gpuimg merge` joins with those of
//! the other parts. Sums, smallest and largest samples are whole numbers, so that the result has the
//! bytes of one machine's, whatever the parts.
//!
//! A `.partial` file is one line of JSON, and after it a number for every sample of an image, in order
//! and little-endian: of a sum or a mean 4 bytes, else as many as a sample has.

use super::image_type::{ImageType, ImageTypeRecord};
use super::{Facts, First, finished, set};
use crate::batch::item::Item;
use crate::batch::journal::{escaped, unescaped};
use crate::batch::shard::{Parts, Shard, WholeSet};
use crate::engine::CombinedImage;
use crate::formats::Reading;
use crate::formats::fits::exposure::Exposures;
use crate::ops::project::{Accumulator, Project};
use crate::os::name::Shown;
use crate::os::{Passes, Source, Target};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the file format.
const SCHEMA: u64 = 1;

/// The longest accepted first line, in bytes: that of a set in 4 million parts.
const MOST_HEAD: usize = 64 << 20;

/// Bytes that are read at first to find the end of the first line.
const HEAD: usize = 64 << 10;

/// What the images of one part of a set gave, or of several parts.
#[derive(Debug)]
pub struct Partial {
    /// The projection.
    op: Project,
    /// The parts that it is of.
    parts: Parts,
    /// How many inputs were left out because they could not be read.
    pub failed: u64,
    /// What they gave; `None` of a part without images.
    known: Option<Known>,
}

/// What images of one kind gave.
#[derive(Debug)]
pub(super) struct Known {
    /// The kind of all of them.
    pub kind: ImageType,
    /// The first of them, from which the result has its metadata, and its place in the whole set.
    pub first: (u64, PathBuf),
    /// How many pages were inspected; those that could be read are counted by the accumulator.
    pub pages: u64,
    /// What the metadata of all of them say.
    pub facts: Facts,
    /// Their numbers.
    pub numbers: Accumulator,
}

impl Partial {
    /// What a shard gave, or a whole set.
    pub(super) fn new(
        op: Project,
        shard: Option<Shard>,
        set: Option<WholeSet>,
        known: Option<Known>,
    ) -> Partial {
        Partial {
            op,
            parts: Parts::new(shard, set),
            failed: 0,
            known,
        }
    }

    /// Adds what another part gave.
    ///
    /// # Errors
    /// Another projection, images of another kind, a part that is there already, too many images.
    pub fn join(&mut self, other: Partial) -> Result<()> {
        ensure!(
            self.op == other.op,
            "it holds {}, but the others hold {}",
            description(&other.op),
            description(&self.op)
        );
        self.parts.join(&other.parts)?;
        self.failed = self.failed.saturating_add(other.failed);
        let Some(mut more) = other.known else {
            return Ok(());
        };
        let Some(known) = &mut self.known else {
            self.known = Some(more);
            return Ok(());
        };
        ensure!(
            known.kind == more.kind,
            "its images are {}, but those of the others are {}",
            more.kind,
            known.kind
        );
        if more.first.0 < known.first.0 {
            known.first = more.first;
        }
        known.pages = known.pages.saturating_add(more.pages);
        known.facts = known.facts.join(&more.facts);
        let images = more.numbers.images();
        known.numbers.join(more.numbers.numbers()?, images)
    }

    /// The projection of the whole set. The metadata are read from its first image.
    ///
    /// # Errors
    /// A missing part, no image, a first image that cannot be read any more, a sum that does not fit.
    pub fn finish(self) -> Result<(CombinedImage, First)> {
        self.parts.whole()?;
        let known = self.known.context("no images were projected")?;
        let (_, path) = &known.first;
        let first = first(path, &known.kind).with_context(|| {
            format!(
                "cannot read the first image {}, whose metadata the result would keep",
                path.shown()
            )
        })?;
        let pages = usize::try_from(known.pages)?;
        let image = finished(self.op.how, known.numbers)?;
        Ok((
            first.projection(self.op.how, image, &known.facts, pages),
            first,
        ))
    }

    /// Reads a `.partial` file. No more memory is taken than the file has bytes.
    ///
    /// # Errors
    /// A file that is none, or is damaged.
    pub fn read(path: &Path) -> Result<Partial> {
        let read = || Partial::from_source(&Source::open(path)?);
        read().with_context(|| format!("cannot read {}", path.shown()))
    }

    /// Whether a file is one, by its first bytes; not if it cannot be read.
    pub fn is_one(path: &Path) -> bool {
        let begins = || -> Result<bool> {
            let mut head = [0; 22];
            let length = Source::open(path)?.read_up_to(&mut head, 0)?;
            Ok(head[..length].starts_with(b"{\"gpuimg_projection\":"))
        };
        path.is_file() && begins().unwrap_or(false)
    }

    fn from_source(source: &Source) -> Result<Partial> {
        let none = "it is not a partial projection";
        let mut head = vec![0; HEAD];
        let length = source.read_up_to(&mut head, 0)?;
        head.truncate(length);
        let mut end = head.iter().position(|&byte| byte == b'\n');
        if end.is_none()
            && source.len() > HEAD as u64
            && head.starts_with(b"{\"gpuimg_projection\"")
        {
            head.resize(MOST_HEAD.min(usize::try_from(source.len())?), 0);
            source.read_at(&mut head, 0)?;
            end = head.iter().position(|&byte| byte == b'\n');
        }
        let end = end.context(none)?;
        let Version { gpuimg_projection } = serde_json::from_slice(&head[..end]).context(none)?;
        let version = gpuimg_projection.context(none)?;
        ensure!(version == SCHEMA, "unknown version {version}");
        let record: Record = serde_json::from_slice(&head[..end]).context("it is damaged")?;
        drop(head);
        record.project.check().context("it is damaged")?;
        let parts = Parts::read(&record.parts, record.of, record.set)?;
        let known = record.images.map(|images| {
            let kind = ImageType::from_record(&images.kind).context("it is damaged")?;
            let size = Accumulator::memory(record.project, &kind.shape);
            let (found, whole) = (source.len(), size.saturating_add(end as u64 + 1));
            ensure!(
                found == whole,
                "it is truncated or damaged: it has {found} bytes instead of {whole}"
            );
            let mut numbers = vec![0; usize::try_from(size)?];
            source.read_at(&mut numbers, end as u64 + 1)?;
            ensure!(
                crc32fast::hash(&numbers) == images.crc32,
                "it is damaged: wrong CRC-32"
            );
            ensure!(images.count > 0, "it is damaged: it has no image");
            ensure!(
                images.maxval != Some(0),
                "it is damaged: no sample is above 0"
            );
            let mut accumulator = Accumulator::new(record.project, kind.shape, kind.signed)?;
            accumulator.join(numbers, usize::try_from(images.count)?)?;
            Ok(Known {
                kind,
                first: (
                    images.place,
                    unescaped(&images.first)
                        .context("it is damaged: the name of its first image is missing")?,
                ),
                pages: images.pages,
                facts: Facts {
                    maxval: images.maxval,
                    exposures: images.exposures,
                },
                numbers: accumulator,
            })
        });
        Ok(Partial {
            op: record.project,
            parts,
            failed: record.failed,
            known: known.transpose()?,
        })
    }

    /// Writes a `.partial` file.
    ///
    /// # Errors
    /// A GPU's, and a file that cannot be written.
    pub fn write(mut self, target: Target) -> Result<()> {
        let (parts, of) = self.parts.listed();
        let mut bytes = Vec::new();
        let images = match &mut self.known {
            Some(known) => {
                bytes = known.numbers.numbers()?;
                Some(Images {
                    kind: known.kind.record(),
                    first: escaped(&known.first.1),
                    place: known.first.0,
                    count: known.numbers.images() as u64,
                    pages: known.pages,
                    maxval: known.facts.maxval,
                    exposures: known.facts.exposures,
                    crc32: crc32fast::hash(&bytes),
                })
            }
            None => None,
        };
        let head = serde_json::to_string(&Record {
            gpuimg_projection: SCHEMA,
            project: self.op,
            parts,
            of,
            set: self.parts.set(),
            failed: self.failed,
            images,
        })? + "\n";
        target.write_at(head.as_bytes(), 0)?;
        target.write_at(&bytes, head.len() as u64)?;
        target.commit((head.len() + bytes.len()) as u64)?;
        Ok(())
    }
}

/// A projection with its options, for messages.
fn description(op: &Project) -> String {
    let options = [
        ("--saturate", op.saturate),
        ("--scale", op.scale),
        ("--to 16", op.to.is_some()),
    ];
    let given = options.iter().filter(|(_, given)| *given);
    let words = ["project", op.how.name()].into_iter();
    let words = words.chain(given.map(|(option, _)| *option));
    words.collect::<Vec<_>>().join(" ")
}

/// The first image of the set, which must still be what it was.
fn first(path: &Path, kind: &ImageType) -> Result<First> {
    let item = Item::new(path.into(), path.into());
    let passes = Passes::default();
    let first = set::first(0, &item, kind.clone(), &Reading::default(), &passes)?;
    let now = set::read_image_type(&item, &passes)?;
    ensure!(now == *kind, "it is {now} now, but was {kind}");
    Ok(first)
}

/// The version of a file, which is read before its other fields.
#[derive(Deserialize)]
struct Version {
    gpuimg_projection: Option<u64>,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Record {
    gpuimg_projection: u64,
    project: Project,
    parts: Vec<u64>,
    of: u64,
    /// The files of the set, if this is a part of one.
    #[serde(default)]
    set: Option<WholeSet>,
    failed: u64,
    /// `None` where no image was read.
    images: Option<Images>,
}

#[derive(Serialize, Deserialize)]
struct Images {
    kind: ImageTypeRecord,
    /// The path of the first image; `%` and bytes that are no UTF-8 as %XX.
    first: String,
    /// Its place in the whole set, from 0.
    place: u64,
    /// How many images were added.
    count: u64,
    /// How many were inspected.
    pages: u64,
    maxval: Option<u16>,
    /// Not in parts of version 0.2.
    #[serde(default)]
    exposures: Exposures,
    /// Of the numbers after the line.
    crc32: u32,
}
