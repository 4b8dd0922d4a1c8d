//! Reads the type of the samples from the tags: `Form`, or an error that names the unsupported
//! feature and a remedy.

use super::ifd::{Ifd, tag};
use crate::image::{Depth, Shape};
use crate::metadata::Alpha;
use anyhow::{Context, Result, bail, ensure};

/// The type of the samples, in memory and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The shape of the image in memory.
    pub shape: Shape,
    /// Bits of a sample in the file: 1 to 16, or 32.
    pub bits: u32,
    /// Whether each channel has chunks of its own (PlanarConfiguration 2).
    pub planar: bool,
    /// Whether samples are integers with a sign.
    pub signed: bool,
    /// Whether 0 stands for white in grey images.
    pub white_is_zero: bool,
    /// The meaning of the last channel, if it is not a colour.
    pub alpha: Alpha,
    /// Whether samples are indices of a palette.
    pub palette: bool,
}

impl Form {
    /// Channels of a chunk.
    pub fn channels(&self) -> usize {
        if self.planar { 1 } else { self.shape.channels }
    }

    /// Planes of the image: one for each channel if they are stored separately, otherwise one.
    pub fn planes(&self) -> usize {
        self.shape.channels / self.channels()
    }

    /// Bytes in a row of `width` pixels of a chunk; rows begin on a byte boundary (TIFF 6.0,
    /// section 3).
    pub fn row(&self, width: usize) -> usize {
        // Groups of eight samples and the rest separately: the bits of the widest row do not fit
        // into 64 bits.
        let (samples, bits) = (width * self.channels(), self.bits as usize);
        samples / 8 * bits + (samples % 8 * bits).div_ceil(8)
    }

    /// Whether a sample takes as many bytes in the file as in memory, and is not packed.
    pub fn has_whole_samples(&self) -> bool {
        self.bits == self.shape.depth.bits()
    }

    /// Whether a chunk's rows are stored as in memory, apart from byte order and sign.
    pub fn is_plain(&self) -> bool {
        self.planes() == 1 && self.has_whole_samples()
    }
}

/// Reads the type of the samples; refuses kinds that an image in memory cannot represent.
pub fn form(ifd: &Ifd) -> Result<Form> {
    let needed = |tag, name: &str| {
        ifd.value(tag)?
            .with_context(|| format!("the {name} tag ({tag}) is missing"))
    };
    let width = needed(tag::IMAGE_WIDTH, "ImageWidth")?;
    let height = needed(tag::IMAGE_LENGTH, "ImageLength")?;
    let photometric = needed(tag::PHOTOMETRIC, "PhotometricInterpretation")?;
    let colours = match photometric {
        0 | 1 | 3 => 1,
        2 => 3,
        4 => bail!("transparency masks are not supported"),
        5 => bail!("CMYK colours are not supported (convert it to RGB first)"),
        6 => bail!("YCbCr colours are not supported (convert it to RGB first)"),
        8..=10 => bail!("Lab colours are not supported (convert it to RGB first)"),
        other => bail!("photometric interpretation {other} is not supported"),
    };
    let channels = ifd.value(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
    ensure!(
        channels >= colours,
        "{channels} samples a pixel where its colours need {colours}"
    );
    let alpha = match channels - colours {
        0 => Alpha::Independent,
        1 => match ifd.value(tag::EXTRA_SAMPLES)?.unwrap_or(0) {
            0 => Alpha::Unspecified,
            1 => Alpha::Associated,
            2 => Alpha::Independent,
            other => bail!("an extra channel of meaning {other} (ExtraSamples) is not supported"),
        },
        more => bail!(
            "each pixel has {channels} samples: {colours} of {}, and {more} more channels, where one \
             (alpha) is supported: write each channel as a page of its own, as ImageJ does with \
             Split Channels",
            if colours == 1 { "grey" } else { "colour" }
        ),
    };
    let planar = match ifd.value(tag::PLANAR_CONFIGURATION)?.unwrap_or(1) {
        1 => false,
        2 => channels > 1,
        other => bail!("planar configuration {other} is not supported"),
    };
    let fill = ifd.value(tag::FILL_ORDER)?.unwrap_or(1);
    ensure!(
        matches!(fill, 1 | 2),
        "fill order {fill} is not supported (1 and 2 are)"
    );

    let bits = ifd.values(tag::BITS_PER_SAMPLE, channels)?;
    let bits = bits.filter(|bits| !bits.is_empty()).unwrap_or(vec![1]);
    let wanted = "convert it first to 32 bits, or to fewer with a scale of your choice";
    let kind = kind(ifd, channels, wanted)?;
    let depth = match (bits[0], kind) {
        _ if bits.iter().any(|&other| other != bits[0]) => {
            bail!("channels of different depths are not supported")
        }
        (32, Kind::Float) => Depth::Float,
        (other, Kind::Float) => {
            bail!(
                "{other}-bit floating-point samples are not supported (32-bit ones are): {wanted}"
            )
        }
        (1..=8, _) => Depth::Eight,
        (9..=16, _) => Depth::Sixteen,
        (32, _) => Depth::ThirtyTwo,
        (other, _) => {
            bail!("{other}-bit samples are not supported (1 to 16 bits and 32 are): {wanted}")
        }
    };
    let (bits, signed) = (bits[0] as u32, kind == Kind::Signed);
    ensure!(
        !signed || bits == depth.bits(),
        "signed samples of {bits} bits are not supported: {wanted}"
    );
    Ok(Form {
        shape: Shape::checked(width, height, channels as usize, depth)?,
        bits,
        planar,
        signed,
        white_is_zero: photometric == 0,
        alpha,
        palette: photometric == 3,
    })
}

/// The kind of numbers that samples are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

fn kind(ifd: &Ifd, channels: u64, wanted: &str) -> Result<Kind> {
    let formats = ifd
        .values(tag::SAMPLE_FORMAT, channels)?
        .unwrap_or_default();
    let kinds = formats.iter().map(|format| match format {
        // 4 means undefined (TIFF 6.0, section 19), and is read as unsigned.
        1 | 4 => Ok(Kind::Unsigned),
        2 => Ok(Kind::Signed),
        3 => Ok(Kind::Float),
        5 | 6 => bail!("complex samples (sample format {format}) are not supported: {wanted}"),
        other => bail!("sample format {other} is not supported: {wanted}"),
    });
    let kinds = kinds.collect::<Result<Vec<Kind>>>()?;
    let first = kinds.first().copied().unwrap_or(Kind::Unsigned);
    ensure!(
        kinds.iter().all(|&kind| kind == first),
        "channels of different sign are not supported"
    );
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Depth;

    /// A width of 2⁵⁹ made the bits of a row overflow (found by fuzzing).
    #[test]
    fn rows_of_any_width() {
        let row = |width: usize, bits: u32| {
            let shape = Shape {
                width,
                height: 1,
                channels: 3,
                depth: Depth::Sixteen,
            };
            let form = Form {
                shape,
                bits,
                planar: false,
                signed: false,
                white_is_zero: false,
                alpha: Alpha::Independent,
                palette: false,
            };
            form.row(width)
        };
        assert_eq!(row(1 << 59, 16), 6 << 59);
        assert_eq!(
            [row(5, 16), row(5, 12), row(5, 1), row(7, 14)],
            [30, 23, 2, 37]
        );
    }
}
