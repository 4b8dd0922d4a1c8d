//! The options that an output depends on, besides its input: a resumed run keeps existing outputs
//! only if all of them are the same.

use super::options::Files;
use crate::engine::options::Common;
use crate::formats::headerless::RawType;
use crate::formats::{self, Pages, Places, Reading, jpeg, png, tiff, zarr};
use crate::image::Depth;
use crate::ops::fit::Fit;
use crate::ops::{Operation, chain};
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::value::RawValue;

/// Every option that changes an output's bytes. Its JSON text is the key.
#[derive(Serialize)]
struct Key {
    /// The operation with its options; of several a list.
    op: serde_json::Value,
    /// Whether the range in `op` was measured in the inputs themselves.
    across: bool,
    /// Whether the range is that of a histogram when a file came, which is then no part of the key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    follow: bool,
    format: Option<&'static str>,
    depth: Option<Depth>,
    auto_orient: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fit>,
    png: png::Mode,
    tiff: tiff::Compression,
    #[serde(skip_serializing_if = "is_default")]
    tiff_layout: tiff::Layout,
    #[serde(skip_serializing_if = "RawType::is_default")]
    raw_type: RawType,
    quality: jpeg::Quality,
    #[serde(skip_serializing_if = "is_default")]
    zarr: zarr::Options,
    keep_going: bool,
    pages: Option<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    axes: Option<Places>,
    #[serde(skip_serializing_if = "is_full_size")]
    level: usize,
    raw: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    preview: bool,
}

fn is_default<T: Default + PartialEq>(option: &T) -> bool {
    *option == T::default()
}

fn is_full_size(level: &usize) -> bool {
    *level == 0
}

/// The operations and options of a batch.
#[derive(Clone, Debug)]
pub struct Job {
    /// The subcommand's name.
    pub verb: &'static str,
    /// Whether the range was measured in the inputs themselves, just before.
    pub across: bool,
    /// Every option that changes an output's bytes, as JSON.
    pub key: Box<RawValue>,
}

impl Job {
    /// The job for a command line.
    ///
    /// # Errors
    /// None in practice: the options are plain numbers and words.
    pub fn new(
        ops: &[&dyn Operation],
        across: bool,
        follow: bool,
        files: &Files,
        common: &Common,
    ) -> Result<Job> {
        // Every option is named here, so that a new one does not compile until it is classified.
        let Files {
            paths: _,
            format,
            // A part of the output's name.
            format_in_folders: _,
            depth,
            auto_orient,
            fit,
            output: _,
            overwrite: _,
            sync: _,
            // The same bytes.
            low_memory: _,
            // A part of the output's name, which is recorded beside the key.
            name: _,
            // Never resumed.
            split: _,
            stack: _,
            batch: _,
            options:
                formats::Options {
                    png,
                    tiff,
                    tiff_layout,
                    raw_type,
                    quality,
                    zarr,
                },
        } = files;
        let Common {
            // Every device gives the same bytes.
            device: _,
            stats: _,
            verbose: _,
            typed: _,
            reading:
                Reading {
                    // A refused input has no output.
                    max_pixels: _,
                    keep_going,
                    pages,
                    axes,
                    level,
                    raw,
                    preview,
                },
        } = common;
        let key = Key {
            op: chain::options(ops)?,
            across,
            follow,
            format: format.map(|format| format.id),
            depth: depth.map(Depth::from),
            auto_orient: *auto_orient,
            fit: *fit,
            png: *png,
            tiff: *tiff,
            tiff_layout: *tiff_layout,
            raw_type: *raw_type,
            quality: *quality,
            zarr: *zarr,
            keep_going: *keep_going,
            pages: *pages,
            axes: *axes,
            level: *level,
            raw: raw.map(|raw| raw.to_string()),
            preview: *preview,
        };
        Ok(Job {
            verb: chain::name(ops),
            across,
            key: serde_json::value::to_raw_value(&key).context("cannot serialize the options")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::ops::counts::Counts;
    use crate::ops::set_range::SetRange;
    use clap::Parser;
    use std::collections::BTreeSet;

    /// The key of `normalize` with some options, and with the range of a set.
    fn key(options: &[&str], set: Option<Counts>) -> serde_json::Value {
        let line = ["gpuimg", "normalize", "a", "b"].iter().chain(options);
        let cli = Cli::try_parse_from(line).expect("valid");
        let Verb::Images(typed) = cli.verb else {
            unreachable!()
        };
        let job = |op: &dyn Operation| {
            let job = Job::new(&[op], typed.set.across, false, &typed.files, &typed.common)
                .expect("plain");
            serde_json::from_str(job.key.get()).expect("JSON")
        };
        match set {
            Some(counts) => job(&SetRange::new(&*typed.op, counts).expect("fits")),
            None => job(&*typed.op),
        }
    }

    #[test]
    fn every_option_that_changes_bytes_changes_the_key() {
        let set = |most: usize| {
            let mut counts = Counts::new(1, Depth::Sixteen);
            (counts.bins[0], counts.bins[most]) = (1, 1);
            Some(counts)
        };
        let options: [&[&str]; 30] = [
            &["--range", "1:9"],
            &["--to", "1:9"],
            &["--per-channel"],
            &["--clip", "1:99"],
            &["--scope", "page"],
            &["--across"],
            &["--format", "png"],
            &["--depth", "8"],
            &["--auto-orient"],
            &["--fit", "100"],
            &["--window", "40:400"],
            &["--ignore", "0"],
            &["--unsigned"],
            &["--undo"],
            &["--nan", "0"],
            &["--png", "small"],
            &["--tiff", "lzw"],
            &["--tiff-layout", "cog"],
            &["--quality", "75"],
            &["--raw-type", "be"],
            &["--zarr", "none"],
            &["--zarr", "blosc"],
            &["--zarr-chunk", "512"],
            &["--zarr-shard", "4096"],
            &["--zarr-levels", "2"],
            &["--keep-going"],
            &["--pages", "2-3"],
            &["--axes", "C=1"],
            &["--level", "1"],
            &["--raw", "3x2:u16le"],
        ];
        let keys: Vec<_> = options.iter().map(|options| key(options, None)).collect();
        let plain = key(&[], None);
        let names = |value: &serde_json::Value| {
            let object = value.as_object().expect("an object");
            object.keys().cloned().collect::<BTreeSet<_>>()
        };
        // Options that are not given may have no field.
        let all = |of: fn(&serde_json::Value) -> &serde_json::Value| -> BTreeSet<String> {
            keys.iter().flat_map(|key| names(of(key))).collect()
        };
        let (outer, inner) = (all(|key| key), all(|key| &key["op"]));
        // Each case changes one field alone, and each field has its case.
        let mut changed = BTreeSet::new();
        for (case, key) in keys.iter().enumerate() {
            let outer = outer.iter().filter(|name| *name != "op");
            let outer = outer.filter(|name| key[name] != plain[name]).cloned();
            let inner = inner.iter().filter(|n| key["op"][n] != plain["op"][n]);
            let found: Vec<String> = outer.chain(inner.map(|n| format!("op.{n}"))).collect();
            assert_eq!(found.len(), 1, "case {case} changes {found:?}");
            changed.extend(found);
        }
        assert_eq!(changed.len(), outer.len() - 1 + inner.len(), "{changed:?}");
        assert_ne!(key(&[], set(9)), plain);
        assert_ne!(key(&[], set(9)), key(&[], set(10)));
        assert_ne!(key(&["--to", "0:9"], set(9)), key(&[], set(9)));
        assert_eq!(key(&[], set(9)), key(&[], set(9)));
        assert_ne!(key(&["--pages", "2"], None), key(&["--pages", "2-3"], None));
        for same in [
            &["-j", "3"][..],
            &["--sync", "--overwrite", "--device", "cpu"],
        ] {
            assert_eq!(key(same, None), plain, "{same:?}");
        }
    }
}
