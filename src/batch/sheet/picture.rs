//! The small picture of an image, as a data URL.

use crate::engine::{Destination, MemoryJob, Resources};
use crate::formats::memory::Page;
use crate::formats::{self, Format, Reading};
use crate::gpu::{Choice, Devices};
use crate::image::metadata::Metadata;
use crate::image::{Depth, Image};
use crate::ops::normalize::Preview;
use crate::ops::{Operation, Verb};
use crate::os::{StoreRun, base64};
use anyhow::{Context, Result, anyhow};
use std::path::Path;

/// The longer side of a picture, in pixels.
const PICTURE: &str = "160";

/// The quality of a picture in JPEG. The pictures are nine tenths of the page, and a page may have 10,000.
const QUALITY: &str = "75";

/// A picture with the contrast of `preview`, as a data URL: a JPEG, or a PNG if there is alpha.
pub fn picture(path: &Path, image: Image, metadata: Metadata, reading: &Reading) -> Result<String> {
    let format: &Format = if image.shape().has_alpha() {
        &formats::png::FORMAT
    } else {
        &formats::jpeg::FORMAT
    };
    let devices = Devices::new(Choice::Cpu);
    let resources = Resources::new(&devices, *reading);
    let destination = Destination {
        path: path.into(),
        folder: None,
        format: formats::FORMATS
            .iter()
            .find(|known| **known == format)
            .copied(),
        options: formats::Options {
            quality: QUALITY.parse().map_err(|error: String| anyhow!(error))?,
            ..formats::Options::default()
        },
        overwrite: false,
        sync: false,
        depth: Some(Depth::Eight),
        auto_orient: false,
        fit: Some(PICTURE.parse().map_err(|error: String| anyhow!(error))?),
        low_memory: false,
        store: StoreRun::default(),
    };
    let preview = Preview::default().operation();
    let ops: [&dyn Operation; 1] = [&*preview];
    let job = MemoryJob {
        ops: &ops,
        name: path,
        destination: Some(&destination),
        resources: &resources,
    };
    let page = Page {
        image,
        // Whatever the file says of its pixels besides their values is not for the picture.
        metadata: Metadata {
            signed: metadata.signed,
            alpha: metadata.alpha,
            maxval: metadata.maxval,
            ..Metadata::default()
        },
        metadata_bytes: 0,
        described: 1,
    };
    let (bytes, _) = job.to_bytes(vec![page]).context("there is no picture")?;
    Ok(format!(
        "data:image/{};base64,{}",
        format.id,
        base64(&bytes)
    ))
}
