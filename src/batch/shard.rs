//! Shards: the part of a batch for each of several machines. The split depends only on the names,
//! not on the machine or on their order.

use crate::os::Digest;
use crate::os::count::plural;
use crate::os::system;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The most shards of a set: more than the largest clusters have jobs (Slurm: 4 million).
pub const MOST_PARTS: u64 = 1 << 22;

/// The most missing shards that a message names.
const NAMED: usize = 8;

/// Shard `index` of `count`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `count`.
    pub index: u64,
    /// The number of shards.
    pub count: u64,
}

impl Shard {
    /// Whether the input with this key belongs to the shard: CRC-32 (as in PNG) of the key modulo
    /// the number of shards.
    pub fn has(&self, key: &Path) -> bool {
        u64::from(crc32fast::hash(system::bytes_of(key.as_os_str()))) % self.count == self.index - 1
    }

    fn checked(index: u64, count: u64) -> Result<Shard> {
        ensure!(
            (1..=count).contains(&index),
            "part {index} of {count} does not exist: parts are numbered from 1"
        );
        ensure!(
            count <= MOST_PARTS,
            "too many parts: {count}, the limit is {MOST_PARTS}"
        );
        Ok(Shard { index, count })
    }

    /// The shard of a job array's task, from the environment variables of Slurm or of a Kubernetes
    /// indexed job.
    fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Shard> {
        let number = |name: &str| -> Result<Option<u64>> {
            variable(name)
                .map(|text| text.parse().with_context(|| format!("{name} is '{text}'")))
                .transpose()
        };
        if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
            let count =
                number("SLURM_ARRAY_TASK_COUNT")?.context("SLURM_ARRAY_TASK_COUNT is not set")?;
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            // Of ids with gaps (`--array=0-10:2`, `1,5,9`) only Slurm knows which is which.
            let last = number("SLURM_ARRAY_TASK_MAX")?;
            ensure!(
                last.is_none_or(|last| last.checked_sub(first) == count.checked_sub(1)),
                "the array's IDs have gaps: submit it as --array=1-{count}, or give --shard I/N"
            );
            return Shard::checked(id.saturating_add(1).saturating_sub(first), count);
        }
        if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            let count = number("JOB_COMPLETIONS")?.context(
                "JOB_COMPLETIONS is not set (give it the value of the job's .spec.completions)",
            )?;
            return Shard::checked(index.saturating_add(1), count);
        }
        anyhow::bail!("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set")
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        if text == "auto" {
            return Shard::from_environment(|name| env::var(name).ok())
                .map_err(|error| format!("{error:#}"));
        }
        let parsed = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let (index, count) = parsed.ok_or("expected two numbers, e.g. 2/8, or auto")?;
        Shard::checked(index, count).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The inputs of a whole set, as recorded in each of its parts: parts cannot be merged if the set has grown
/// between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeSet {
    /// The number of files.
    files: u64,
    /// The digest of their names and lengths. Times and inodes are not included, because each machine may have
    /// its own copy.
    digest: Digest,
}

impl WholeSet {
    /// Describes all files of a set by their names and lengths, in any order.
    pub fn new(mut files: Vec<(&[u8], u64)>) -> WholeSet {
        files.sort_unstable();
        let mut text = Vec::new();
        for (name, length) in &files {
            text.extend_from_slice(name);
            text.push(0);
            text.extend_from_slice(&length.to_be_bytes());
        }
        WholeSet {
            files: files.len() as u64,
            digest: Digest::from_bytes(&text),
        }
    }
}

/// The shards of a set that a file covers: one, or several that were merged; 1 of 1 is a whole set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// From 1 on.
    parts: BTreeSet<u64>,
    count: u64,
    /// `None` of a whole set, and in files of version 0.2.
    set: Option<WholeSet>,
}

impl Parts {
    /// One shard of a set, or a whole set.
    pub fn new(shard: Option<Shard>, set: Option<WholeSet>) -> Parts {
        let (part, count) = shard.map_or((1, 1), |shard| (shard.index, shard.count));
        Parts {
            parts: BTreeSet::from([part]),
            count,
            set: set.filter(|_| shard.is_some()),
        }
    }

    /// The shards that a file names.
    ///
    /// # Errors
    /// Impossible numbers.
    pub fn read(parts: &[u64], count: u64, set: Option<WholeSet>) -> Result<Parts> {
        ensure!(
            count <= MOST_PARTS,
            "too many parts: {count}, the limit is {MOST_PARTS}"
        );
        ensure!(
            !parts.is_empty() && parts.iter().all(|part| (1..=count).contains(part)),
            "it contains parts that its set does not have"
        );
        let distinct = BTreeSet::from_iter(parts.iter().copied());
        ensure!(distinct.len() == parts.len(), "it lists a part twice");
        Ok(Parts {
            parts: distinct,
            count,
            set,
        })
    }

    /// Their numbers, and the number of all shards.
    pub fn listed(&self) -> (Vec<u64>, u64) {
        (self.parts.iter().copied().collect(), self.count)
    }

    /// The inputs of the whole set.
    pub fn set(&self) -> Option<WholeSet> {
        self.set
    }

    /// Adds other shards of the same set. Whole sets may be joined freely; a shard must not count
    /// twice.
    ///
    /// # Errors
    /// Those of another set, and one that is there already.
    pub fn join(&mut self, other: &Parts) -> Result<()> {
        ensure!(
            self.count == other.count,
            "it belongs to a set of {} parts, but the others to one of {}",
            other.count,
            self.count
        );
        if self.count > 1 {
            let advice = "the inputs changed between the parts: create all parts again";
            match (self.set, other.set) {
                (ours, others) if ours == others => {}
                (Some(ours), Some(others)) if ours.files != others.files => bail!(
                    "it belongs to a set of {}, but the others to one of {} ({advice})",
                    plural(others.files as usize, "file"),
                    plural(ours.files as usize, "file")
                ),
                (Some(_), Some(_)) => bail!(
                    "the files of its set have other names or lengths than those of the others ({advice})"
                ),
                _ => bail!(
                    "it or the others were written by version 0.2, which did not record the files of the set: create all parts with one version"
                ),
            }
            if let Some(twice) = other.parts.intersection(&self.parts).next() {
                bail!(
                    "part {twice} of {} is in this file and in another one",
                    self.count
                );
            }
            self.parts.extend(&other.parts);
        }
        Ok(())
    }

    /// Fails if shards are missing, and names the first of them.
    ///
    /// # Errors
    /// The missing shards.
    pub fn whole(&self) -> Result<()> {
        let missing = (1..=self.count).filter(|part| !self.parts.contains(part));
        let named: Vec<String> = missing.take(NAMED).map(|part| part.to_string()).collect();
        let more = self.count - self.parts.len() as u64 - named.len() as u64;
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        ensure!(
            named.is_empty(),
            "part {}{more} of {} is missing",
            named.join(", "),
            self.count
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Result<Shard> {
        Shard::from_environment(|name| {
            let pair = pairs.iter().find(|(key, _)| *key == name)?;
            Some(pair.1.to_string())
        })
    }

    #[test]
    fn tasks_of_schedulers() {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "12"),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
            ("SLURM_ARRAY_TASK_MIN", "10"),
        ];
        assert_eq!(
            environment(&slurm).expect("valid"),
            Shard { index: 3, count: 3 }
        );
        let gaps = [
            ("SLURM_ARRAY_TASK_ID", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "6"),
            ("SLURM_ARRAY_TASK_MIN", "0"),
            ("SLURM_ARRAY_TASK_MAX", "10"),
        ];
        let told = environment(&gaps).expect_err("parts would be done twice, others not");
        assert!(told.to_string().contains("--array=1-6"), "{told}");
        let without = gaps.map(|(name, value)| (name, value.replace("10", "5")));
        let without = without.each_ref().map(|(name, value)| (*name, &**value));
        assert_eq!(
            environment(&without).expect("valid"),
            Shard { index: 3, count: 6 }
        );
        let kubernetes = [("JOB_COMPLETION_INDEX", "0"), ("JOB_COMPLETIONS", "4")];
        assert_eq!(
            environment(&kubernetes).expect("valid"),
            Shard { index: 1, count: 4 }
        );
        assert!(environment(&kubernetes[..1]).is_err());
        assert!(environment(&[]).is_err());
        let last = u64::MAX.to_string();
        let beyond = [("JOB_COMPLETION_INDEX", &*last), ("JOB_COMPLETIONS", "4")];
        assert!(environment(&beyond).is_err());
    }

    #[test]
    fn every_name_is_in_one_part() {
        for count in 1..9 {
            for name in 0..500 {
                let key = format!("a/{name}.png");
                let parts =
                    (1..=count).filter(|&index| Shard { index, count }.has(Path::new(&key)));
                assert_eq!(parts.count(), 1);
            }
        }
        assert!("0/3".parse::<Shard>().is_err());
        assert!("4/3".parse::<Shard>().is_err());
        assert!("1/0".parse::<Shard>().is_err());
        assert!("1/18446744073709551615".parse::<Shard>().is_err());
    }
}
