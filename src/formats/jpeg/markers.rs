//! The marker segments of a JPEG before its image data (ITU-T T.81, annex B).

use super::colours::Colours;
use super::ls;
use crate::image::metadata::{Embedded, Resolution, Unit};
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const ICC: &[u8] = b"ICC_PROFILE\0";

const UNSUPPORTED: &str =
    "is not supported (baseline, progressive and lossless are, and JPEG-LS is)";

/// How the image data are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The baseline and progressive processes: blocks of cosines.
    Cosines,
    /// The lossless process, with samples of this many bits.
    Lossless(u8),
    /// JPEG-LS (ITU-T T.87), with samples of this many bits.
    LosslessLs(u8),
}

impl Process {
    /// The most pixels that a byte makes. A block of 64 pixels takes a bit at least, the code of its mean; a pixel of the lossless
    /// process does, too.
    pub fn expansion(self) -> u64 {
        match self {
            Process::Cosines => 64 * 8,
            Process::Lossless(_) => 8,
            Process::LosslessLs(_) => ls::EXPANSION,
        }
    }

    /// Bits of a sample.
    pub fn bits(self) -> u32 {
        match self {
            Process::Cosines => 8,
            Process::Lossless(bits) | Process::LosslessLs(bits) => bits.into(),
        }
    }
}

/// The contents of the marker segments.
pub struct Markers {
    pub shape: Shape,
    pub process: Process,
    pub colours: Colours,
    pub resolution: Option<Resolution>,
    pub embedded: Embedded,
    /// Offset of the first scan's marker.
    scan: usize,
}

impl Markers {
    /// Reads the segments up to the first scan.
    ///
    /// # Errors
    /// A file that ends before it, and kinds of JPEG that are not supported.
    pub fn read(source: &Source) -> Result<Markers> {
        let (mut header, mut resolution) = (None, None);
        let mut colours = Colours::default();
        let (mut embedded, mut profile) = (Embedded::default(), Vec::new());
        let mut at = 2;
        loop {
            let mut marker = [0; 2];
            read(source, &mut marker, at)?;
            ensure!(
                marker[0] == 0xFF,
                "no marker at byte {at}, where one is expected"
            );
            match marker[1] {
                // Fill bytes, and markers without a segment.
                0xFF => {
                    at += 1;
                    continue;
                }
                0x01 | 0xD0..=0xD8 => {
                    at += 2;
                    continue;
                }
                0xD9 => bail!("it ends before the image data (byte {at})"),
                _ => {}
            }
            let mut length = [0; 2];
            read(source, &mut length, at + 2)?;
            let length = u64::from(u16::from_be_bytes(length));
            ensure!(length >= 2, "a segment of {length} bytes at byte {at}");
            let segment = || -> Result<Vec<u8>> {
                let mut segment = vec![0; length as usize - 2];
                read(source, &mut segment, at + 4)?;
                Ok(segment)
            };
            match marker[1] {
                0xC4 | 0xC8 | 0xCC => {}
                kind @ (0xC0..=0xCF | 0xF7) => {
                    let segment = segment()?;
                    colours.add(kind, &segment);
                    header = Some(frame(kind, &segment)?);
                }
                0xE0 => {
                    let segment = segment()?;
                    colours.add(0xE0, &segment);
                    resolution = density(&segment).or(resolution);
                }
                0xEE => colours.add(0xEE, &segment()?),
                0xE1 => {
                    let segment = segment()?;
                    if let Some(exif) = segment.strip_prefix(EXIF) {
                        embedded.exif.get_or_insert(exif.into());
                    } else if let Some(packet) = segment.strip_prefix(XMP) {
                        embedded.xmp.get_or_insert(packet.into());
                    }
                }
                0xE2 => {
                    // The number of this part and of all, each a byte (ICC.1, annex B.4).
                    if let Some([number, _, part @ ..]) = segment()?.strip_prefix(ICC) {
                        profile.push((*number, part.to_vec()));
                    }
                }
                0xDA => break,
                _ => {}
            }
            at += 2 + length;
        }
        profile.sort_by_key(|(number, _)| *number);
        let profile: Vec<u8> = profile.into_iter().flat_map(|(_, part)| part).collect();
        embedded.profile = Some(profile).filter(|profile| !profile.is_empty());
        let (shape, process) = header.context("no frame before the image data")?;
        let is_ycbcr = (colours.adobe).map_or(colours.is_jfif, |transform| transform != 0);
        ensure!(
            process == Process::Cosines || shape.channels == 1 || !is_ycbcr,
            "lossless JPEG of YCbCr colours is not supported (grey and RGB are)"
        );
        Ok(Markers {
            shape,
            process,
            colours,
            resolution,
            embedded,
            scan: at as usize,
        })
    }

    /// Whether the image data are complete. The decoder of JPEG-LS, whose data have other stuffing, finds that out itself.
    pub fn is_complete(&self, file: &[u8]) -> bool {
        if matches!(self.process, Process::LosslessLs(_)) {
            return true;
        }
        let mut at = self.scan;
        loop {
            match file.get(at..at + 2) {
                Some([0xFF, 0xD9]) => return true,
                // Within image data a stuffed byte or a restart, or a fill byte before a marker.
                Some([0xFF, 0 | 1 | 0xD0..=0xD8]) => at += 2,
                Some([0xFF, 0xFF]) => at += 1,
                Some([0xFF, _]) => match file.get(at + 2..at + 4) {
                    Some(&[a, b]) => at += 2 + usize::from(u16::from_be_bytes([a, b])).max(2),
                    _ => return false,
                },
                Some(_) => match file[at + 1..].iter().position(|&byte| byte == 0xFF) {
                    Some(next) => at += 1 + next,
                    None => return false,
                },
                None => return false,
            }
        }
    }
}

fn read(source: &Source, buffer: &mut [u8], at: u64) -> Result<()> {
    source
        .read_at(buffer, at)
        .with_context(|| "before the image data")
}

/// The shape and the process that a frame header gives (section B.2.2; of JPEG-LS T.87, section C.2.2).
fn frame(kind: u8, segment: &[u8]) -> Result<(Shape, Process)> {
    let &[precision, h0, h1, w0, w1, components, ..] = segment else {
        bail!("a frame header of {} bytes", segment.len());
    };
    let process = match kind {
        0xC0..=0xC2 => Process::Cosines,
        0xC3 => Process::Lossless(precision),
        0xF7 => Process::LosslessLs(precision),
        0xC5..=0xC7 | 0xCD..=0xCF => bail!("hierarchical JPEG {UNSUPPORTED}"),
        _ => bail!("arithmetically coded JPEG {UNSUPPORTED}"),
    };
    let is_lossless = process != Process::Cosines;
    let depth = match precision {
        8 => Depth::Eight,
        2..=7 if is_lossless => Depth::Eight,
        9..=16 if is_lossless => Depth::Sixteen,
        _ => bail!(
            "JPEG of {precision} bits is not supported (8 bits are, and 2 to 16 of lossless JPEG)"
        ),
    };
    let channels = match components {
        1 | 3 => usize::from(components),
        4 if !is_lossless => 4,
        4 => bail!("lossless JPEG of CMYK is not supported: convert it to RGB first"),
        other => bail!("{other} components are not supported (1, 3 and 4 are)"),
    };
    let side = |a, b| u64::from(u16::from_be_bytes([a, b]));
    let shape = Shape::checked(side(w0, w1), side(h0, h1), channels, depth)?;
    Ok((shape, process))
}

/// The resolution in a JFIF segment (JFIF 1.02, APP0).
fn density(segment: &[u8]) -> Option<Resolution> {
    let [_, _, unit, x0, x1, y0, y1, ..] = *segment.strip_prefix(b"JFIF\0")? else {
        return None;
    };
    let unit = match unit {
        1 => Unit::Inch,
        2 => Unit::Centimetre,
        // Only the shape of pixels, which is square nearly always.
        _ if (x0, x1) != (y0, y1) => Unit::None,
        _ => return None,
    };
    let number = |a, b| (u32::from(u16::from_be_bytes([a, b])), 1);
    Some(Resolution {
        x: number(x0, x1),
        y: number(y0, y1),
        unit,
    })
}
