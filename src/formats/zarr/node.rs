//! The nodes of a store: groups and arrays, each in a folder with its description.

use super::json::{self, Object};
use crate::os::{Part, Source, Span};
use anyhow::{Context, Result, bail, ensure};

/// The most bytes of a description.
const MOST: u64 = 16 << 20;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Zarr v2.
    Two,
    /// Zarr v3.
    Three,
}

/// A group or an array.
#[derive(Debug)]
pub struct Node {
    /// The version of the format.
    pub version: Version,
    /// Its folder below that of the store; empty for the store itself.
    pub path: String,
    /// Whether it is an array, not a group.
    pub is_array: bool,
    /// Its description.
    pub description: Object,
    /// What its author says about it.
    pub attributes: Object,
}

impl Node {
    /// Reads the node in the folder `path`; `None` if there is none.
    ///
    /// # Errors
    /// A description that cannot be read.
    pub fn read(source: &Source, path: &str) -> Result<Option<Node>> {
        if let Some(mut description) = document(source, path, "zarr.json")? {
            let version = description.get("zarr_format").and_then(|it| it.as_u64());
            ensure!(version == Some(3), "its zarr.json is not of Zarr v3");
            let is_array = match description.get("node_type").and_then(|it| it.as_str()) {
                Some("array") => true,
                Some("group") => false,
                _ => bail!("its zarr.json describes neither an array nor a group"),
            };
            let attributes = match description.remove("attributes") {
                Some(serde_json::Value::Object(attributes)) => attributes,
                _ => Object::new(),
            };
            return Ok(Some(Node {
                version: Version::Three,
                path: path.into(),
                is_array,
                description,
                attributes,
            }));
        }
        let array = document(source, path, ".zarray")?;
        let is_array = array.is_some();
        let description = match array {
            Some(array) => Some(array),
            None => document(source, path, ".zgroup")?,
        };
        let Some(description) = description else {
            return Ok(None);
        };
        let version = description.get("zarr_format").and_then(|it| it.as_u64());
        ensure!(version == Some(2), "it is not of Zarr v2 or v3");
        Ok(Some(Node {
            version: Version::Two,
            path: path.into(),
            is_array,
            description,
            attributes: document(source, path, ".zattrs")?.unwrap_or_default(),
        }))
    }
}

/// A JSON document in the folder `path`; `None` if it does not exist.
fn document(source: &Source, path: &str, name: &str) -> Result<Option<Object>> {
    let name = join(path, name);
    let member = source.member(&name, Span::All, MOST);
    let Some(Part { bytes, .. }) = member.context("its description")? else {
        return Ok(None);
    };
    json::object(&bytes, &name).map(Some)
}

/// The name of a file in the folder `path`.
pub fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.into(),
        path => format!("{path}/{name}"),
    }
}
