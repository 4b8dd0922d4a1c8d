//! Luma and chroma (TIFF 6.0, section 21), made RGB: units of the luma of some pixels and the chroma that they share.

use super::ifd::{Ifd, tag};
use super::unpack::Method;
use anyhow::{Context, Result, bail, ensure};

/// How the units of a chunk become RGB.
pub struct Ycbcr {
    /// Pixels in a row of a chunk.
    width: usize,
    /// Pixels of a unit, across and down.
    across: usize,
    down: usize,
    /// The share of red, green and blue in luma.
    shares: [f64; 3],
    /// The codes of no and of full luma, and of no and full chroma of both kinds.
    codes: [f64; 6],
}

impl Ycbcr {
    /// Reads the form of a page's units, whose chunks have rows of so many pixels.
    ///
    /// # Errors
    /// What is damaged or not supported.
    pub fn read(ifd: &Ifd, width: usize) -> Result<Ycbcr> {
        let subsampling = ifd.values(tag::YCBCR_SUBSAMPLING, 2)?;
        let subsampling = subsampling.unwrap_or(vec![2, 2]);
        let &[across, down] = &subsampling[..] else {
            bail!("its YCbCrSubSampling are not two numbers");
        };
        ensure!(
            [across, down].iter().all(|side| matches!(side, 1 | 2 | 4)),
            "YCbCr subsampling of {across}×{down} is not supported (1, 2 and 4 are)"
        );
        let numbers = |tag, name: &str, default: &[f64]| -> Result<Vec<f64>> {
            let numbers = ifd.fractions(tag, default.len())?;
            let numbers = numbers.unwrap_or(default.to_vec());
            ensure!(
                numbers.len() == default.len() && numbers.iter().all(|number| number.is_finite()),
                "its {name} are not {} numbers",
                default.len()
            );
            Ok(numbers)
        };
        let shares = numbers(
            tag::YCBCR_COEFFICIENTS,
            "YCbCrCoefficients",
            &[0.299, 0.587, 0.114],
        )?;
        let codes = [0.0, 255.0, 128.0, 255.0, 128.0, 255.0];
        let codes = numbers(tag::REFERENCE_BLACK_WHITE, "ReferenceBlackWhite", &codes)?;
        let is_range = |codes: &[f64]| codes[0] != codes[1];
        ensure!(
            shares[1] != 0.0 && codes.chunks(2).all(is_range),
            "its YCbCrCoefficients or ReferenceBlackWhite are damaged"
        );
        Ok(Ycbcr {
            width,
            across: across as usize,
            down: down as usize,
            shares: *shares.first_chunk().context("three numbers")?,
            codes: *codes.first_chunk().context("six numbers")?,
        })
    }

    /// Reads how planes become RGB.
    ///
    /// # Errors
    /// What is damaged or not supported.
    pub fn of_planes(ifd: &Ifd, method: Method) -> Result<Ycbcr> {
        let ycbcr = Ycbcr::read(ifd, 0)?;
        // The size of a plane of JPEG images is theirs, and is checked where they are decoded.
        ensure!(
            method == Method::Jpeg || !ycbcr.is_subsampled(),
            "planes of chroma that have fewer pixels than that of luma are not supported: convert it to RGB first"
        );
        Ok(ycbcr)
    }

    /// Makes the luma and chroma of pixels RGB.
    pub fn convert_pixels(&self, pixels: &mut [u8]) {
        for pixel in pixels.as_chunks_mut::<3>().0 {
            *pixel = self.pixel(*pixel);
        }
    }

    /// Whether pixels share chroma.
    pub fn is_subsampled(&self) -> bool {
        self.across * self.down > 1
    }

    /// Bytes of the units of so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        self.width.div_ceil(self.across) * rows.div_ceil(self.down) * self.unit()
    }

    fn unit(&self) -> usize {
        self.across * self.down + 2
    }

    /// Fills rows of RGB; pixels of units that lie outside are dropped.
    pub fn convert(&self, units: &[u8], out: &mut [u8]) {
        let row = self.width.div_ceil(self.across) * self.unit();
        let rows = out.chunks_mut(self.down * self.width * 3);
        for (units, out) in units.chunks_exact(row).zip(rows) {
            let (out, _) = out.as_chunks_mut::<3>();
            for (left, unit) in units.chunks_exact(self.unit()).enumerate() {
                let (luma, chroma) = unit.split_at(self.across * self.down);
                for (i, &luma) in luma.iter().enumerate() {
                    let x = left * self.across + i % self.across;
                    let place = i / self.across * self.width + x;
                    if x < self.width && place < out.len() {
                        out[place] = self.pixel([luma, chroma[0], chroma[1]]);
                    }
                }
            }
        }
    }

    fn pixel(&self, pixel: [u8; 3]) -> [u8; 3] {
        let value = |i: usize, range: f64| {
            let [black, white] = [self.codes[2 * i], self.codes[2 * i + 1]];
            (f64::from(pixel[i]) - black) * range / (white - black)
        };
        let (luma, cb, cr) = (value(0, 255.0), value(1, 127.0), value(2, 127.0));
        let [of_red, of_green, of_blue] = self.shares;
        let red = cr * (2.0 - 2.0 * of_red) + luma;
        let blue = cb * (2.0 - 2.0 * of_blue) + luma;
        let green = (luma - of_blue * blue - of_red * red) / of_green;
        // What does not fit is cut off by the conversion.
        [red, green, blue].map(|value| (value + 0.5).floor() as u8)
    }
}
