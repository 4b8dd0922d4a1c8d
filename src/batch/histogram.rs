//! The histogram of a whole set of images: counted over files and machines, merged, and used as the
//! common range for normalizing all of them.
//!
//! A `.hist` file is one JSON object: the kind of the images, their number, the number of
//! unreadable ones, the shards of the set that are included, and for each channel a list of
//! `[value, count]` for every value that occurs.

use super::options::Counted;
use super::shard::{Parts, Shard, WholeSet};
use crate::image::Depth;
use crate::ops::counts::{Counts, PixelType};
use crate::os::console;
use crate::os::count::plural;
use crate::os::name::Shown;
use crate::os::{Source, Target, make_folder, parent};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the file format.
const SCHEMA: u64 = 1;

/// The largest accepted file, in bytes: four channels of 65,536 values take a tenth of it.
const MOST_BYTES: u64 = 64 << 20;

/// The type of counted pixels in messages: `1 channel of 16 bits without sign`.
pub fn kind(counts: &Counts) -> String {
    let PixelType { channels, values } = counts.pixel_type();
    format!("{} of {values}", plural(channels, "channel"))
}

/// The histogram of a set of images of one kind, or of some shards of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The counts; `None` if there was no image.
    pub counts: Option<Counts>,
    /// The number of counted images.
    pub images: u64,
    /// The number of images that could not be read and are not counted.
    pub failed: u64,
    /// The included shards.
    parts: Parts,
}

impl Set {
    /// An empty histogram for the shard `shard` of the set `set`, or for a whole set.
    pub fn new(shard: Option<Shard>, set: Option<WholeSet>) -> Set {
        Set {
            counts: None,
            images: 0,
            failed: 0,
            parts: Parts::new(shard, set),
        }
    }

    /// Adds the counts of an image, or of several; another kind of image is an error.
    pub fn add(&mut self, counts: &Counts, images: u64) -> Result<()> {
        let sum = self.images.checked_add(images);
        let sum = sum.context("too many images to count")?;
        let Some(all) = &mut self.counts else {
            self.counts = Some(counts.clone());
            self.images = sum;
            return Ok(());
        };
        ensure!(
            all.pixel_type() == counts.pixel_type(),
            "it has {}, but the others have {}: they cannot share a range",
            kind(counts),
            kind(all)
        );
        let total = samples(&all.bins) + samples(&counts.bins);
        ensure!(u64::try_from(total).is_ok(), "too many samples to count");
        all.add(counts);
        self.images = sum;
        Ok(())
    }

    /// Adds another shard of the same set.
    pub fn join(&mut self, other: &Set) -> Result<()> {
        self.parts.join(&other.parts)?;
        self.failed = self.failed.saturating_add(other.failed);
        match &other.counts {
            Some(counts) => self.add(counts, other.images),
            None => Ok(()),
        }
    }

    /// The set as a whole, no longer a shard of another.
    ///
    /// # Errors
    /// Missing shards.
    pub fn complete(mut self) -> Result<Set> {
        self.parts.whole()?;
        self.parts = Parts::new(None, None);
        Ok(self)
    }

    /// The counts of the whole set. Errors: a shard is missing, or there was no image.
    pub fn into_counts(self) -> Result<Counts> {
        let whole = self.parts.whole();
        whole.map_err(|missing| anyhow!("{missing} (merge the parts with gpuimg merge)"))?;
        self.counts.context("no images were counted")
    }

    fn json(&self) -> serde_json::Result<String> {
        let values = self
            .counts
            .as_ref()
            .map(|counts| counts.pixel_type().values);
        let least = values.map_or(0, |values| i64::from(values.least()));
        let channels = self.counts.iter().flat_map(Counts::each).map(|bins| {
            let pairs = (least..).zip(bins.iter().copied());
            pairs.filter(|(_, count)| *count > 0).collect()
        });
        let (parts, count) = self.parts.listed();
        serde_json::to_string(&SetRecord {
            gpuimg_histogram: SCHEMA,
            images: self.images,
            failed: self.failed,
            depth: values.map(|values| values.depth.bits()),
            signed: values.map(|values| values.signed),
            parts,
            count,
            set: self.parts.set(),
            channels: channels.collect(),
        })
    }

    fn parse(text: &[u8]) -> Result<Set> {
        let none = "it is not a histogram file";
        let Version { gpuimg_histogram } = serde_json::from_slice(text).context(none)?;
        let version = gpuimg_histogram.context(none)?;
        ensure!(version == SCHEMA, "unknown version {version}");
        let SetRecord {
            images,
            failed,
            depth,
            signed,
            parts,
            count,
            set,
            channels,
            ..
        } = serde_json::from_slice(text).context("it is damaged")?;
        let depth = match depth {
            Some(8) => Some(Depth::Eight),
            Some(16) => Some(Depth::Sixteen),
            _ => None,
        };
        let counts = match (depth, channels.len()) {
            (_, 0) => None,
            (Some(depth), count @ 1..=4) => {
                let mut counts = Counts::new(count, depth);
                counts.signed = signed.unwrap_or(false);
                let least = i64::from(counts.pixel_type().values.least());
                let values = usize::from(depth.full()) + 1;
                for (bins, pairs) in counts.bins.chunks_exact_mut(values).zip(channels) {
                    for (value, count) in pairs {
                        let bin = usize::try_from(value.saturating_sub(least)).ok();
                        let bin = bin.and_then(|bin| bins.get_mut(bin));
                        let bin =
                            bin.with_context(|| format!("value {value} exceeds its depth"))?;
                        ensure!(*bin == 0, "value {value} appears twice");
                        *bin = count;
                    }
                }
                let each: Vec<u128> = counts.each().map(samples).collect();
                ensure!(
                    each.iter().all(|other| *other == each[0]),
                    "its channels have different numbers of samples"
                );
                ensure!(
                    u64::try_from(samples(&counts.bins)).is_ok(),
                    "it has too many samples to count"
                );
                Some(counts)
            }
            _ => bail!("unsupported depth or number of channels"),
        };
        Ok(Set {
            counts,
            images,
            failed,
            parts: Parts::read(&parts, count, set)?,
        })
    }

    /// Reads a `.hist` file.
    pub fn read(path: &Path) -> Result<Set> {
        let read = || {
            let source = Source::open(path)?;
            ensure!(
                source.len() <= MOST_BYTES,
                "it is too large for a histogram"
            );
            Set::parse(&source.read_all()?)
        };
        read().with_context(|| format!("cannot read {}", path.shown()))
    }

    /// Prints on standard error how many images the file at `path` lacks, if any.
    pub fn mention_failed(&self, path: &Path) {
        if self.failed > 0 {
            console::tell(&format!(
                "gpuimg: {} does not include {} that could not be read",
                path.shown(),
                plural(self.failed as usize, "image")
            ));
        }
    }

    /// Writes a `.hist` file, and creates its folder first.
    pub fn write(&self, output: &Counted) -> Result<()> {
        let path = &output.output;
        let write = || {
            make_folder(parent(path), output.sync)?;
            let mut target = Target::create(path, output.overwrite)?;
            target.sync = output.sync;
            let text = self.json()? + "\n";
            target.write_at(text.as_bytes(), 0)?;
            target.commit(text.len() as u64)
        };
        write().with_context(|| format!("cannot write {}", path.shown()))?;
        Ok(())
    }
}

/// The version of a file, which is read before its other fields.
#[derive(Deserialize)]
struct Version {
    gpuimg_histogram: Option<u64>,
}

/// The JSON object in a file.
#[derive(Serialize, Deserialize)]
struct SetRecord {
    gpuimg_histogram: u64,
    images: u64,
    #[serde(default)]
    failed: u64,
    /// Bits per sample and the sign; both are `None` where no image was counted.
    depth: Option<u32>,
    signed: Option<bool>,
    parts: Vec<u64>,
    #[serde(rename = "of")]
    count: u64,
    /// The files of the set, if this is a part of one.
    #[serde(default)]
    set: Option<WholeSet>,
    /// For each channel a `[value, count]` for every value that occurs.
    channels: Vec<Vec<(i64, u64)>>,
}

/// The number of samples counted in `bins`; 128 bits cannot overflow.
fn samples(bins: &[u64]) -> u128 {
    bins.iter().map(|&count| u128::from(count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::clip::Clip;

    fn shard(index: u64, count: u64, value: usize) -> Set {
        let mut set = Set::new(Some(Shard { index, count }), None);
        let mut counts = Counts::new(1, Depth::Sixteen);
        counts.bins[value] = 3;
        set.add(&counts, 1).expect("valid");
        set
    }

    #[test]
    fn what_is_written_is_read() {
        let set = shard(2, 3, 40_000);
        assert_eq!(
            Set::parse(set.json().expect("text").as_bytes()).expect("valid"),
            set
        );
        let mut signed = shard(2, 3, 40_000);
        signed.counts.as_mut().expect("counted").signed = true;
        assert!(signed.json().expect("text").contains("[7232,3]"));
        assert_eq!(
            Set::parse(signed.json().expect("text").as_bytes()).expect("valid"),
            signed
        );
        assert!(signed.add(&Counts::new(1, Depth::Sixteen), 1).is_err());
        let empty = Set::new(None, None);
        assert_eq!(
            Set::parse(empty.json().expect("text").as_bytes()).expect("valid"),
            empty
        );
        for wrong in ["", "{}", "[]", r#"{"gpuimg_histogram":2}"#] {
            assert!(Set::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_make_a_whole() {
        let mut all = shard(3, 3, 9);
        assert!(all.clone().into_counts().is_err());
        all.join(&shard(1, 3, 70)).expect("valid");
        assert!(all.join(&shard(1, 3, 70)).is_err(), "the same part twice");
        assert!(all.join(&shard(1, 2, 70)).is_err(), "a part of another set");
        assert!(all.parts.whole().is_err(), "part 2 is missing");
        let mut nothing = Set::new(Some(Shard { index: 2, count: 3 }), None);
        nothing.images = 0;
        all.join(&nothing).expect("valid");
        let counts = all.into_counts().expect("valid");
        let range = counts.ranges(Clip::NONE, false)[0];
        assert_eq!((range.min, range.max), (9, 70));
        let mut rgb = Set::new(None, None);
        rgb.add(&Counts::new(3, Depth::Sixteen), 1).expect("valid");
        assert!(
            rgb.add(&Counts::new(1, Depth::Sixteen), 1).is_err(),
            "mixed kinds"
        );
    }
}
