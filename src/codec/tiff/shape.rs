//! What the tags say of the samples: `Shape`, or the name of what is not supported.

use super::ifd::{Ifd, tag};
use crate::image::{Depth, Shape};
use anyhow::{Context, Result, bail, ensure};

/// Refuses a file of several pages.
pub fn one_page(ifd: &Ifd, len: u64) -> Result<()> {
    match ifd.next {
        0 => Ok(()),
        next if next == ifd.offset => bail!("its list of pages is a loop"),
        next if next >= len => bail!("truncated at byte {len} of {next} (page 1)"),
        _ => bail!("files of several pages are not supported"),
    }
}

/// Width, height, channels and depth; refuses what an image in memory cannot hold or keep apart.
pub fn shape(ifd: &Ifd) -> Result<Shape> {
    let needed = |tag, name: &str| {
        ifd.value(tag)?
            .with_context(|| format!("the {name} tag ({tag}) is missing"))
    };
    let width = needed(tag::IMAGE_WIDTH, "ImageWidth")?;
    let height = needed(tag::IMAGE_LENGTH, "ImageLength")?;
    let colours = match needed(tag::PHOTOMETRIC, "PhotometricInterpretation")? {
        1 => 1,
        2 => 3,
        0 => bail!("grey where 0 is white (MinIsWhite) is not supported"),
        3 => bail!("palette colours are not supported"),
        4 => bail!("transparency masks are not supported"),
        5 => bail!("CMYK colours are not supported"),
        6 => bail!("YCbCr colours are not supported"),
        8..=10 => bail!("Lab colours are not supported"),
        other => bail!("photometric interpretation {other} is not supported"),
    };
    let channels = ifd.value(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
    ensure!(
        channels >= colours,
        "{channels} samples a pixel where its colours need {colours}"
    );
    match channels - colours {
        0 => {}
        1 => match ifd.value(tag::EXTRA_SAMPLES)?.unwrap_or(0) {
            1 | 2 => {}
            0 => bail!("an extra channel of unspecified meaning (ExtraSamples 0) is not supported"),
            other => bail!("an extra channel of meaning {other} (ExtraSamples) is not supported"),
        },
        more => bail!("{more} channels beside the {colours} of its colours are not supported"),
    }
    if channels > 1 && ifd.value(tag::PLANAR_CONFIGURATION)?.unwrap_or(1) != 1 {
        bail!("channels in separate planes (PlanarConfiguration 2) are not supported");
    }
    let turned = ifd.value(tag::ORIENTATION)?.unwrap_or(1);
    ensure!(turned == 1, "orientation {turned} is not supported (1 is)");
    let fill = ifd.value(tag::FILL_ORDER)?.unwrap_or(1);
    ensure!(fill == 1, "fill order {fill} is not supported (1 is)");
    for format in ifd
        .values(tag::SAMPLE_FORMAT, channels)?
        .unwrap_or_default()
    {
        match format {
            // 4 is "undefined", to be read as unsigned.
            1 | 4 => {}
            2 => bail!("signed samples are not supported"),
            3 => bail!("floating-point samples are not supported"),
            other => bail!("sample format {other} is not supported"),
        }
    }
    let bits = ifd.values(tag::BITS_PER_SAMPLE, channels)?;
    let bits = bits.filter(|bits| !bits.is_empty()).unwrap_or(vec![1]);
    let depth = match bits[0] {
        _ if bits.iter().any(|&other| other != bits[0]) => {
            bail!("channels of different depths are not supported")
        }
        8 => Depth::Eight,
        16 => Depth::Sixteen,
        other => bail!("{other}-bit samples are not supported (8 and 16 bits are)"),
    };
    Shape::checked(width, height, channels as usize, depth)
}
