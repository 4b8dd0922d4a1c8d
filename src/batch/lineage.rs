//! What the outputs of a run depend on besides their inputs: `--report` records it on every line, and `gpuimg prove` derives the
//! outputs from it again.

use super::item::{Item, Items};
use crate::engine::Digests;
use crate::engine::options::TypedCommand;
use crate::formats::{Reader, Reading};
use crate::ops::Operation;
use crate::os::Sha256;
use crate::os::name::Shown;
use crate::os::url;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of all inputs among the files that an output of several inputs depends on.
pub const INPUTS: &str = "inputs";

/// The name of the image whose metadata a merged projection keeps, among the files that it depends on.
pub const FIRST_IMAGE: &str = "first image";

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files that an option names, or the inputs that `--across` measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRead {
    /// The option, with its hyphens.
    pub option: String,
    /// How many images or histograms were read.
    pub files: usize,
    /// The SHA-256 of their contents: of a list for all inputs, whose order counts, otherwise of a set.
    pub sha256: Sha256,
}

/// The fields of a report that are the same for all files of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Lineage {
    version: &'static str,
    verb: String,
    /// `None` if one of them is not UTF-8.
    options: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<FilesRead>,
    /// All inputs in their order, if the output was made of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    /// Whether an output depends on the position of its input among all inputs, which is then recorded.
    #[serde(skip)]
    pub positions: bool,
}

impl Lineage {
    /// That of a run of `ops` by this command, which reads these files besides its inputs.
    pub fn new(ops: &[&dyn Operation], command: &TypedCommand, reads: &[FilesRead]) -> Lineage {
        Lineage {
            version: VERSION,
            verb: command.verb.clone(),
            options: command.options.clone(),
            reads: reads.to_vec(),
            inputs: Vec::new(),
            positions: ops.iter().any(|op| op.properties().needs_position),
        }
    }
}

impl Lineage {
    /// That of an output that was made of these inputs.
    pub fn of_inputs<'p>(self, paths: impl Iterator<Item = &'p Path>) -> Lineage {
        let text = |path: &Path| path.to_str().map(|text| url::redacted(text).into());
        let paths: Option<Vec<String>> = paths.map(text).collect();
        Lineage {
            // Without one of the names, the command cannot be repeated.
            options: self.options.filter(|_| paths.is_some()),
            inputs: paths.unwrap_or_default(),
            ..self
        }
    }
}

impl FilesRead {
    /// The files that `option` names; they are read to the end.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn new(option: &str, items: &Items, reading: &Reading) -> Result<FilesRead> {
        let contents = items.items.iter().map(|item| {
            let digests = digests(item, reading);
            let digests = digests.with_context(|| format!("cannot read {}", item.input.shown()));
            Ok(digests?.contents())
        });
        Ok(FilesRead::from_digests(
            option,
            contents.collect::<Result<_>>()?,
        ))
    }

    /// The inputs, whose digests were computed while they were measured for `option`.
    pub fn measured(option: &str, items: &Items) -> FilesRead {
        let digests = items.items.iter().map(|item| item.digests.contents());
        FilesRead::from_digests(option, digests.collect())
    }

    /// `contents` has the digests of all files of each image.
    fn from_digests(option: &str, contents: Vec<Vec<Sha256>>) -> FilesRead {
        let (files, contents) = (contents.len(), contents.concat());
        FilesRead {
            option: option.into(),
            files,
            sha256: match option {
                INPUTS => Sha256::of_list(&contents),
                _ => Sha256::of_set(contents),
            },
        }
    }
}

/// The digests of an image or another file, and of the separate file with its samples.
///
/// # Errors
/// It cannot be read.
pub fn digests(item: &Item, reading: &Reading) -> Result<Digests> {
    let source = item.source()?;
    // The header names the file of the samples. A file that is no image has none.
    let _ = Reader::open(&source, reading);
    Ok(Digests {
        input: source.sha256()?,
        samples: source.samples_sha256()?,
        output: None,
    })
}
