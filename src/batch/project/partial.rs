//! Partial projections: the projection of one part of a set, in a file that `gpuimg merge` merges with those of
//! the other parts. Sums, smallest and largest samples are whole numbers, so the result has the same bytes
//! however a set is divided.
//!
//! A `.partial` file is one line of JSON, and after it a number for every sample of an image, in order
//! and little-endian: of a sum or a mean 4 bytes, else as many as a sample has.

use super::{Facts, First, finish, set};
use crate::batch::item::Item;
use crate::batch::journal::{escaped, unescaped};
use crate::batch::shard::{Parts, Shard, WholeSet};
use crate::engine::{CombinedImage, ImageType, ImageTypeRecord};
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

/// The projection of one part of a set, or of several parts.
#[derive(Debug)]
pub struct Partial {
    /// The projection.
    op: Project,
    /// The parts that it covers.
    parts: Parts,
    /// How many inputs were left out because they could not be read.
    pub failed: u64,
    /// The projected images; `None` if a part has none.
    images: Option<PartialImages>,
}

/// The projected images, all of one type.
#[derive(Debug)]
pub(super) struct PartialImages {
    /// The type of all images.
    pub image_type: ImageType,
    /// The index in the whole set of the first image, whose metadata the result keeps.
    pub first_index: u64,
    /// The file of that image.
    pub first_path: PathBuf,
    /// How many pages were inspected; those that could be read are counted by the accumulator.
    pub pages: u64,
    /// The metadata that all of them share.
    pub facts: Facts,
    /// Their numbers.
    pub numbers: Accumulator,
}

impl Partial {
    /// The projection of a shard, or of a whole set.
    pub(super) fn new(
        op: Project,
        shard: Option<Shard>,
        set: Option<WholeSet>,
        images: Option<PartialImages>,
    ) -> Partial {
        Partial {
            op,
            parts: Parts::new(shard, set),
            failed: 0,
            images,
        }
    }

    /// Adds another part.
    ///
    /// # Errors
    /// Another projection, images of another type, a part that was added before, too many images.
    pub fn join(&mut self, other: Partial) -> Result<()> {
        ensure!(
            self.op == other.op,
            "it holds {}, but the others hold {}",
            description(&other.op),
            description(&self.op)
        );
        self.parts.join(&other.parts)?;
        self.failed = self.failed.saturating_add(other.failed);
        let Some(mut more) = other.images else {
            return Ok(());
        };
        let Some(known) = &mut self.images else {
            self.images = Some(more);
            return Ok(());
        };
        ensure!(
            known.image_type == more.image_type,
            "its images are {}, but those of the others are {}",
            more.image_type,
            known.image_type
        );
        if more.first_index < known.first_index {
            known.first_index = more.first_index;
            known.first_path = more.first_path;
        }
        known.pages = known.pages.saturating_add(more.pages);
        known.facts = known.facts.join(&more.facts);
        let images = more.numbers.images();
        known.numbers.join(more.numbers.numbers()?, images)
    }

    /// The image whose metadata the projection of the whole set keeps, if the parts have an image.
    pub fn first_image(&self) -> Option<&Path> {
        Some(&self.images.as_ref()?.first_path)
    }

    /// The projection of the whole set. The metadata are read from its first image.
    ///
    /// # Errors
    /// A missing part, no image, a first image that can no longer be read, a sum that does not fit.
    pub fn finish(self) -> Result<(CombinedImage, First)> {
        self.parts.whole()?;
        let images = self.images.context("no images were projected")?;
        let path = &images.first_path;
        let first = first(path, &images.image_type).with_context(|| {
            format!(
                "cannot read the first image {}, whose metadata the result would keep",
                path.shown()
            )
        })?;
        let pages = usize::try_from(images.pages)?;
        let image = finish(self.op.how, images.numbers)?;
        Ok((
            first.projection(self.op.how, image, &images.facts, pages),
            first,
        ))
    }

    /// Reads a `.partial` file. It allocates no more memory than the file has bytes.
    ///
    /// # Errors
    /// A damaged file, or one of another format.
    pub fn read(path: &Path) -> Result<Partial> {
        let read = || Partial::from_source(&Source::open(path)?);
        read().with_context(|| format!("cannot read {}", path.shown()))
    }

    /// Whether a file is a `.partial` file, by its first bytes; not if it cannot be read.
    pub fn is_partial(path: &Path) -> bool {
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
        let images = record.images.map(|images| {
            let image_type = ImageType::from_record(&images.kind).context("it is damaged")?;
            let size = Accumulator::memory(record.project, &image_type.shape);
            let (actual, expected) = (source.len(), size.saturating_add(end as u64 + 1));
            ensure!(
                actual == expected,
                "it is truncated or damaged: it has {actual} bytes instead of {expected}"
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
            let mut accumulator =
                Accumulator::new(record.project, image_type.shape, image_type.signed)?;
            accumulator.join(numbers, usize::try_from(images.count)?)?;
            Ok(PartialImages {
                image_type,
                first_index: images.place,
                first_path: unescaped(&images.first)
                    .context("it is damaged: the name of its first image is missing")?,
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
            images: images.transpose()?,
        })
    }

    /// Writes a `.partial` file.
    ///
    /// # Errors
    /// A GPU's, and a file that cannot be written.
    pub fn write(mut self, target: Target) -> Result<()> {
        let (parts, of) = self.parts.listed();
        let mut bytes = Vec::new();
        let images = match &mut self.images {
            Some(known) => {
                bytes = known.numbers.numbers()?;
                Some(Images {
                    kind: known.image_type.record(),
                    first: escaped(&known.first_path),
                    place: known.first_index,
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
    let mut words = format!("project {}", op.how.name());
    for (option, given) in [(" --saturate", op.saturate), (" --scale", op.scale)] {
        if given {
            words += option;
        }
    }
    if let Some(to) = op.to {
        words += &format!(" --to {}", to.name());
    }
    words
}

/// The first image of the set, which must still be what it was.
fn first(path: &Path, image_type: &ImageType) -> Result<First> {
    let item = Item::new(path.into(), path.into());
    let passes = Passes::default();
    let first = set::first(0, &item, image_type.clone(), &Reading::default(), &passes)?;
    let now = set::read_image_type(&item, &passes)?;
    ensure!(now == *image_type, "it is {now} now, but was {image_type}");
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
    /// The path of the first image; `%` and bytes that are not UTF-8 as %XX.
    first: String,
    /// Its index in the whole set.
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
