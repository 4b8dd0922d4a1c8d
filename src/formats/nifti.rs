//! NIfTI-1 and NIfTI-2 (the standards of 2003 and 2011, `nifti1.h` and `nifti2.h`), read: a header and samples in one file, as it
//! is (`.nii`) or compressed with gzip (`.nii.gz`). Integers of 8, 16 and 32 bits, floating point of 32 and 64 bits, RGB and
//! RGBA of 8 bits. Axes after the second make pages. Samples are read as stored, in the order of the file: neither the scale
//! (scl_slope, scl_inter) nor the orientation (qform, sform) is applied.

mod header;

use super::format::{Capabilities, Decoder, Field, Format};
use super::raster::{Coding, Layout, RasterDecoder, page_count};
use crate::image::metadata::{Alpha, Axes, Axis, Metadata, Resolution};
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Result, bail};
use header::Header;

/// Neuroimaging Informatics Technology Initiative.
pub static FORMAT: Format = Format {
    name: "NIfTI",
    id: "nifti",
    title: "NIfTI-1 and NIfTI-2 in one file, also compressed with gzip",
    extensions: &["nii"],
    capabilities: Capabilities {
        channels: &[1, 3, 4],
        fields: &[Field::Resolution],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: header::is_nifti,
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let header = Header::read(source)?;
    let layout = layout(&header)?;
    Ok(Box::new(if header.is_compressed {
        RasterDecoder::coded(source, None, 0, Coding::Gzip, layout)?
    } else {
        RasterDecoder::new(source, layout, damaged)?
    }))
}

/// The layout that a header describes.
fn layout(header: &Header) -> Result<Layout> {
    let (depth, signed, channels) = samples(header.datatype)?;
    let [width, height, ..] = header.axes[..] else {
        bail!("a volume of one axis is not supported");
    };
    let shape = Shape::checked(width, height, channels, depth)?;
    let mut layout = Layout::new(shape, header.start);
    layout.pages = page_count(&header.axes)?;
    layout.order = header.order;
    layout.toggled = signed;
    layout.metadata = Metadata {
        signed,
        alpha: Alpha::Independent,
        resolution: header
            .millimetres()
            .and_then(|[across, down, _]| Resolution::from_millimetres(across, down)),
        axes: axes(&header.axes),
        ..Metadata::default()
    };
    let (slope, intercept) = header.scale;
    // A slope of 0, or one that is not a number, means that there is no scale.
    if slope.is_finite() && slope != 0.0 && (slope, intercept) != (1.0, 0.0) {
        let warning = format!(
            "samples are read as stored: scl_slope ({slope}) and scl_inter ({intercept}) are not applied"
        );
        layout.diagnostics.warnings.push(warning);
    }
    layout.diagnostics.notes = header.left_out();
    Ok(layout)
}

/// The axes of the pages: slices, then frames, then values of one voxel.
fn axes(lengths: &[u64]) -> Option<Axes> {
    let length = |axis: usize| {
        let length = lengths.get(axis).copied().unwrap_or(1);
        usize::try_from(length).ok()
    };
    let has_more = lengths.iter().skip(5).any(|&length| length > 1);
    let (z, t, c) = (length(2)?, length(3)?, length(4)?);
    (!has_more && z.max(t).max(c) > 1).then_some(Axes([(Axis::Z, z), (Axis::T, t), (Axis::C, c)]))
}

/// The depth of samples of a datatype, whether they have a sign, and their number in a pixel.
fn samples(datatype: i16) -> Result<(Depth, bool, usize)> {
    Ok(match datatype {
        2 => (Depth::Eight, false, 1),
        256 => (Depth::Eight, true, 1),
        512 => (Depth::Sixteen, false, 1),
        4 => (Depth::Sixteen, true, 1),
        768 => (Depth::ThirtyTwo, false, 1),
        8 => (Depth::ThirtyTwo, true, 1),
        16 => (Depth::Float, false, 1),
        64 => (Depth::Double, false, 1),
        128 => (Depth::Eight, false, 3),
        2304 => (Depth::Eight, false, 4),
        other => {
            let name = match other {
                1 => "bits",
                32 | 1792 | 2048 => "complex numbers",
                1024 | 1280 => "64-bit integers",
                1536 => "128-bit floating point",
                _ => "an unknown type",
            };
            bail!(
                "samples of {name} (datatype {other}) are not supported (integers of 8, 16 and 32 bits are, and \
                 floating point of 32 and 64): convert them to one of these, with a scale of your choice"
            )
        }
    })
}
