//! Finds the datasets of a file that are images, and the one that an address stands for.

use super::library::{File, Kept, call};
use crate::image::{Depth, Values};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};
use hdf5_reader::group::Group;
use hdf5_reader::{Dataset, Datatype};
use std::collections::HashSet;

/// The most groups that the NeXus attribute `default` leads through.
const MOST_DEFAULTS: usize = 16;

/// The most addresses that a message lists.
const MOST_LISTED: usize = 8;

/// The addresses of all datasets that are images.
///
/// # Errors
/// A damaged file, and one without images.
pub fn addresses(source: &Source) -> Result<Vec<String>> {
    let file = File::open(source, Kept::default(), false)?;
    let found = Found::in_file(&file)?;
    found.ensure_any()?;
    Ok(found.images)
}

/// The dataset that an address stands for: itself, or the default or the only image below a group. Without an address, the
/// group is the root.
///
/// # Errors
/// No such dataset, a group with several images, and what is not supported.
pub fn select(file: &File, address: Option<&str>) -> Result<Dataset> {
    let address = address.unwrap_or_default().trim_end_matches('/');
    if !address.is_empty()
        && let Some(dataset) = file.dataset(address)?
    {
        return Ok(dataset);
    }
    let Some(group) = file.group(address)? else {
        let listed = Found::in_file(file)?.listed();
        bail!("it has no dataset {address}: its images are {listed}");
    };
    if let Some(dataset) = default(file, address)? {
        return Ok(dataset);
    }
    let found = Found::below(file.source, group, address)?;
    found.ensure_any()?;
    let [only] = &found.images[..] else {
        bail!(
            "it has {} images: add the address of one to the file's name, as in FILE:{} (there are {})",
            found.images.len(),
            found.images[0],
            found.listed()
        );
    };
    file.dataset(only)?
        .context("internal error: a dataset that was found before")
}

/// The dataset to which the attributes `default` and `signal` of NeXus lead, from a group on; `None` if they lead to none.
fn default(file: &File, address: &str) -> Result<Option<Dataset>> {
    let mut address = address.to_string();
    for _ in 0..MOST_DEFAULTS {
        let Some(group) = file.group(&address)? else {
            return Ok(None);
        };
        let text = |name| call(file.source, || group.attribute(name)?.read_string()).ok();
        if let Some(signal) = text("signal") {
            return file.dataset(&format!("{address}/{signal}"));
        }
        match text("default") {
            Some(next) => address = format!("{address}/{next}"),
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// The datasets below a group.
#[derive(Default)]
struct Found {
    /// The addresses of those that are images.
    images: Vec<String>,
    /// Why the first dataset that could be an image is not read.
    refused: Option<String>,
}

impl Found {
    /// Finds all datasets of a file.
    fn in_file(file: &File) -> Result<Found> {
        let root = file.group("")?.context("it has no root group")?;
        Found::below(file.source, root, "")
    }

    /// Finds the datasets below a group, whose address has no slash at its end. Each group is visited once.
    fn below(source: &Source, group: Group, address: &str) -> Result<Found> {
        let mut found = Found::default();
        let mut visited = HashSet::from([group.address()]);
        let mut waiting = vec![(group, address.to_string())];
        while let Some((group, address)) = waiting.pop() {
            let names = call(source, || group.member_names());
            let (groups, datasets) = names.with_context(|| format!("the group {address}/"))?;
            for name in datasets {
                let path = format!("{address}/{name}");
                let dataset = call(source, || group.dataset(&name));
                match dataset.and_then(|dataset| Stored::new(&dataset)) {
                    Ok(_) => found.images.push(path),
                    Err(error) => {
                        let why = || format!("{path}: {error:#}");
                        found.refused.get_or_insert_with(why);
                    }
                }
            }
            for name in groups.into_iter().rev() {
                let child = call(source, || group.group(&name))?;
                if visited.insert(child.address()) {
                    waiting.push((child, format!("{address}/{name}")));
                }
            }
        }
        Ok(found)
    }

    /// # Errors
    /// There are no images.
    fn ensure_any(&self) -> Result<()> {
        let why = self.refused.as_deref().unwrap_or("it has no datasets");
        ensure!(!self.images.is_empty(), "it has no image ({why})");
        Ok(())
    }

    /// The first addresses, for a message.
    fn listed(&self) -> String {
        let first: Vec<&str> = self
            .images
            .iter()
            .map(String::as_str)
            .take(MOST_LISTED)
            .collect();
        let more = self.images.len() - first.len();
        match (first.is_empty(), more) {
            (true, _) => "none".into(),
            (false, 0) => first.join(", "),
            (false, more) => format!("{}, and {more} more (info lists all)", first.join(", ")),
        }
    }
}

/// How a dataset stores an image.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The type of its samples.
    pub values: Values,
    /// The lengths of its axes; the last is that of a row.
    pub axes: Vec<u64>,
    /// The lengths of its chunks; those of one row if it has no chunks.
    pub chunk: Vec<u64>,
}

impl Stored {
    /// Reads how a dataset stores an image.
    ///
    /// # Errors
    /// Samples or axes that are not supported.
    pub fn new(dataset: &Dataset) -> Result<Stored> {
        let values = values(dataset.dtype())?;
        let axes = dataset.shape().to_vec();
        ensure!(
            (2..=5).contains(&axes.len()),
            "a dataset of {} axes is not supported (2 to 5 are)",
            axes.len()
        );
        ensure!(
            axes.iter().all(|&length| length > 0),
            "it is empty: its axes are {axes:?}"
        );
        let chunk = match dataset.chunks() {
            Some(chunk) => chunk.iter().map(|&length| length.into()).collect(),
            None => {
                let mut row = vec![1; axes.len()];
                row[axes.len() - 1] = axes[axes.len() - 1];
                row
            }
        };
        ensure!(
            chunk.len() == axes.len() && chunk.iter().all(|&length: &u64| length > 0),
            "it is damaged: its chunks are {chunk:?}"
        );
        Ok(Stored {
            values,
            axes,
            chunk,
        })
    }
}

/// The type of samples.
fn values(datatype: &Datatype) -> Result<Values> {
    let name = match datatype {
        Datatype::FixedPoint { size, signed, .. } => {
            let depth = match size {
                1 => Depth::Eight,
                2 => Depth::Sixteen,
                4 => Depth::ThirtyTwo,
                _ => bail!(unsupported(&format!("integers of {size} bytes"))),
            };
            return Ok(Values {
                depth,
                signed: *signed,
            });
        }
        Datatype::FloatingPoint { size, .. } => {
            let depth = match size {
                4 => Depth::Float,
                8 => Depth::Double,
                _ => bail!(unsupported(&format!("floating point of {size} bytes"))),
            };
            return Ok(Values {
                depth,
                signed: false,
            });
        }
        Datatype::String { .. } | Datatype::VarLen { .. } => "text",
        Datatype::Compound { .. } => "several fields",
        Datatype::Enum { .. } => "enumerated values",
        _ => "this type",
    };
    bail!(unsupported(name))
}

/// The sentence about samples of a type that is not read.
fn unsupported(name: &str) -> String {
    format!(
        "samples of {name} are not supported (integers of 8, 16 and 32 bits are, and floating point of 32 and 64)"
    )
}
