//! Reads the type of the samples from the tags: `Form`, or an error that names the unsupported
//! feature and a remedy.

use super::ifd::{Ifd, tag};
use crate::image::metadata::Alpha;
use crate::image::{Depth, Shape};
use anyhow::{Context, Result, bail, ensure};

/// The type of the samples, in memory and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The shape of the image in memory.
    pub shape: Shape,
    /// Samples per pixel in the file: the channels, or more if each is read as a grey page (`bands`).
    pub stored: usize,
    /// Bits of a sample in the file: 1 to 16, 24, 32 or 64.
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
        if self.planar { 1 } else { self.stored }
    }

    /// Planes of the image: one for each channel if they are stored separately, otherwise one.
    pub fn planes(&self) -> usize {
        self.stored / self.channels()
    }

    /// The number of grey pages that the directory stands for: its samples per pixel, if they are more than a pixel in memory
    /// can have or are not RGB; otherwise 1.
    pub fn bands(&self) -> usize {
        self.stored / self.shape.channels
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
        self.planes() == 1 && self.bands() == 1 && self.has_whole_samples()
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
    let compression = ifd.value(tag::COMPRESSION)?;
    let (is_jpeg, is_old_jpeg) = (matches!(compression, Some(6 | 7)), compression == Some(6));
    let colours = match photometric {
        0 | 1 | 3 => 1,
        2 => 3,
        4 => bail!("transparency masks are not supported"),
        5 => 4,
        // The decoder converts them to RGB.
        6 => 3,
        8..=10 => bail!("Lab colours are not supported (convert it to RGB first)"),
        other => bail!("photometric interpretation {other} is not supported"),
    };
    // Some writers of old-style JPEG omit what the JPEG stream states.
    let (samples, bits) = match photometric {
        6 if is_old_jpeg => (3, 8),
        _ if is_old_jpeg => (1, 8),
        _ => (1, 1),
    };
    let channels = ifd.value(tag::SAMPLES_PER_PIXEL)?.unwrap_or(samples);
    ensure!(
        channels <= u16::MAX.into(),
        "{channels} samples per pixel, and 65535 are the most"
    );
    ensure!(
        channels >= colours,
        "{channels} samples per pixel where its colours need {colours}"
    );
    let (bands, alpha) = bands(ifd, photometric, channels, colours)?;
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

    let stated = ifd.values(tag::BITS_PER_SAMPLE, channels)?;
    let stated = stated.filter(|bits| !bits.is_empty());
    let bits = stated.unwrap_or(vec![bits]);
    let wanted = "convert it first to 32 bits, or to fewer with a scale of your choice";
    let kind = kind(ifd, channels, wanted)?;
    let depth = match (bits[0], kind) {
        _ if bits.iter().any(|&other| other != bits[0]) => {
            bail!("channels of different depths are not supported")
        }
        (16 | 32, Kind::Float) => Depth::Float,
        (64, Kind::Float) => Depth::Double,
        (other, Kind::Float) => {
            bail!(
                "{other}-bit floating-point samples are not supported (16, 32 and 64 bits are): {wanted}"
            )
        }
        (1..=8, _) => Depth::Eight,
        (9..=16, _) => Depth::Sixteen,
        (24 | 32, _) => Depth::ThirtyTwo,
        (other, _) => {
            bail!("{other}-bit samples are not supported (1 to 16 bits, 24 and 32 are): {wanted}")
        }
    };
    let (bits, signed) = (bits[0] as u32, kind == Kind::Signed);
    ensure!(
        !signed || matches!(bits, 8 | 16 | 24 | 32),
        "signed samples of {bits} bits are not supported: {wanted}"
    );
    ensure!(
        !is_jpeg || depth == Depth::Eight && bits == 8 && !signed,
        "JPEG compression of samples of {bits} bits is not supported (8 bits without sign are)"
    );
    ensure!(
        photometric != 6 || bits == 8 && kind == Kind::Unsigned,
        "YCbCr colours of {bits} bits are not supported (8 bits without sign are)"
    );
    let in_memory = channels as usize / bands;
    Ok(Form {
        shape: Shape::checked(width, height, in_memory, depth)?,
        stored: channels as usize,
        bits,
        planar,
        signed,
        white_is_zero: photometric == 0,
        alpha,
        palette: photometric == 3,
    })
}

/// The number of grey pages that the samples of a pixel make, and the meaning of the last channel if they are one page:
/// pixels in memory are grey or RGB, with at most one more channel.
fn bands(ifd: &Ifd, photometric: u64, channels: u64, colours: u64) -> Result<(usize, Alpha)> {
    let alpha = match channels - colours {
        0 if photometric == 5 => Alpha::Black,
        0 => Alpha::Independent,
        more @ 2.. if photometric == 3 => bail!(
            "{more} samples per pixel beside the index of its palette are not supported: keep the first alone \
             (gdal_translate -b 1 in.tif out.tif)"
        ),
        1.. if photometric == 6 => bail!(
            "more samples per pixel than those of its YCbCr colours are not supported: convert it to RGB \
             first"
        ),
        _ if photometric == 5 => return Ok((channels as usize, Alpha::Independent)),
        1 => match ifd.value(tag::EXTRA_SAMPLES)?.unwrap_or(0) {
            0 => Alpha::Unspecified,
            1 => Alpha::Associated,
            2 => Alpha::Independent,
            other => bail!("an extra channel of meaning {other} (ExtraSamples) is not supported"),
        },
        _ => return Ok((channels as usize, Alpha::Independent)),
    };
    Ok((1, alpha))
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
                stored: 3,
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
