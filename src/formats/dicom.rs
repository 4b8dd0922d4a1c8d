//! DICOM (PS3.3, PS3.5, PS3.10), read: grey and RGB of 8, 16 and 32 bits, palettes and YCbCr, uncompressed, deflated or in
//! RLE, baseline or lossless JPEG, JPEG-LS or JPEG 2000. Each frame is a page.
//!
//! Samples are the values that the file says they stand for (RescaleSlope and RescaleIntercept),
//! where these are whole numbers: Hounsfield units are signed 16 bits. A window (WindowCenter,
//! WindowWidth) is kept for `normalize --range auto-window`. All else that the file says, of the
//! patient and of the study, is left out.

mod coded;
mod coding;
mod colours;
mod fragments;
mod header;
mod pixels;
mod values;

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Field, Format, PageSurvey, SlicePosition};
#[cfg(feature = "jpeg2000")]
use super::jpeg2000;
use super::library::check_length;
use crate::image::metadata::{Diagnostics, Metadata, Resolution};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Context, Result, anyhow, ensure};
use coding::Coding;
use colours::{Colours, Palette};
use fragments::Fragments;
use header::Header;
use pixels::Stored;

/// Digital Imaging and Communications in Medicine.
pub static FORMAT: Format = Format {
    name: "DICOM",
    id: "dicom",
    title: "DICOM, uncompressed, deflated, RLE, baseline and lossless JPEG, JPEG-LS, JPEG 2000",
    extensions: &["dcm", "dicom"],
    capabilities: Capabilities {
        channels: &[1, 3],
        depths: &[Depth::Eight, Depth::Sixteen, Depth::ThirtyTwo],
        white_is_zero: true,
        alpha: &[],
        fields: &[Field::Maxval, Field::Resolution],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: |head| head.get(128..132) == Some(b"DICM"),
    decoder: |source, damaged| Ok(Box::new(DicomDecoder::open(source, damaged)?)),
    ..Format::DEFAULTS
};

struct DicomDecoder<'a> {
    source: &'a Source,
    /// The data set, if it was deflated.
    inflated: Option<Source>,
    /// The samples in the file.
    stored: Stored,
    /// The colours of samples that are numbers of them.
    palette: Option<Palette>,
    /// Their values in memory, without the palette.
    shape: Shape,
    metadata: Metadata,
    slice_position: Option<SlicePosition>,
    diagnostics: Diagnostics,
    pages: usize,
    page: usize,
}

impl<'a> DicomDecoder<'a> {
    fn open(source: &'a Source, damaged: bool) -> Result<DicomDecoder<'a>> {
        let file = source;
        let (header, inflated) = Header::read(file)?;
        let source = inflated.as_ref().unwrap_or(file);
        let (start, length) = header.pixels.context(
            "it has no pixel data (7FE0,0010): a report, a list of files, or cut off before them",
        )?;
        let coding = Coding::from_syntax(&header.syntax())?;
        ensure!(
            coding == Coding::None || length.is_none(),
            "it is damaged: its pixel data are compressed and in no fragments"
        );
        let mut diagnostics = Diagnostics::default();
        let mut stored = Stored::read(&header, coding, start)?;
        let pages = match header.text((0x28, 8)) {
            None => 1,
            Some(text) => (text.parse::<usize>().ok())
                .filter(|&pages| pages > 0)
                .with_context(|| format!("its number of frames is {text:?}"))?,
        };
        let shape = stored.shape()?;
        if coding == Coding::None {
            let pair = 1 + u64::from(stored.exchanged);
            let end = (stored.frame_bytes() as u64)
                .checked_mul(pages as u64)
                .and_then(|bytes| bytes.checked_next_multiple_of(pair))
                .and_then(|bytes| bytes.checked_add(start))
                .with_context(|| format!("{pages} frames of {shape} do not fit in a file"))?;
            let len = source.len();
            ensure!(damaged || end <= len, "truncated at byte {len} of {end}");
        } else {
            check_length(source, &shape, coding.expansion())?;
            stored.fragments = Some(Fragments::read(source, start)?);
        }
        #[cfg(feature = "jpeg2000")]
        if coding == Coding::Jpeg2000 && header.text((0x28, 0x2110)).as_deref() == Some("01") {
            diagnostics.warnings.push(jpeg2000::LOSSY.into());
        }
        let palette = match stored.colours {
            Colours::Palette => Some(Palette::read(&header, stored.signed)?),
            _ => None,
        };
        let rescaled =
            palette.is_none() && stored.rescale(&header, source, pages, &mut diagnostics)?;
        let values = stored.values;
        let shape = Shape {
            depth: values.depth,
            ..shape
        };
        if header.others > 0 {
            diagnostics.notes.push(format!(
                "{} elements of the patient, the study and the device are left out",
                header.others
            ));
        }
        let narrow = stored.bits < shape.depth.bits().min(16) && !shape.depth.is_wide();
        let narrow = narrow && !values.signed && !rescaled && palette.is_none();
        let white_is_zero = Colours::Grey {
            white_is_zero: true,
        };
        let metadata = Metadata {
            signed: values.signed && palette.is_none(),
            white_is_zero: stored.colours == white_is_zero,
            maxval: narrow.then(|| ((1u32 << stored.bits) - 1) as u16),
            // From row to row, and from column to column.
            resolution: match header.decimals((0x28, 0x30)).as_deref() {
                Some([down, across]) if !header.differs(&[0x30]) => {
                    Resolution::from_millimetres(*across, *down)
                }
                _ => None,
            },
            window: stored.window(&header).filter(|_| palette.is_none()),
            no_data: if palette.is_none() {
                stored.padding(&header)
            } else {
                Vec::new()
            },
            ..Metadata::default()
        };
        Ok(DicomDecoder {
            source: file,
            inflated,
            stored,
            palette,
            shape,
            metadata,
            slice_position: header.slice_position().filter(|_| pages == 1),
            diagnostics,
            pages,
            page: 0,
        })
    }
}

impl Decoder for DicomDecoder<'_> {
    fn pages(&self) -> usize {
        self.pages
    }

    fn slice_position(&self) -> Option<SlicePosition> {
        self.slice_position
    }

    /// What is unpacked in memory counts as metadata: a deflated data set, a compressed frame, and samples that are not yet
    /// colours.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let frame = self.stored.frame_bytes() as u64;
        let mut unpacked = self.inflated.as_ref().map_or(0, Source::len);
        if self.stored.fragments.is_some() {
            let samples = self.stored.samples() as u64;
            unpacked += 2 * frame + samples * self.stored.coding.memory_for_sample();
        }
        if self.palette.is_some() || self.stored.colours == Colours::YbrPairs {
            unpacked += frame;
        }
        Ok(PageSurvey {
            shape: self.shape(),
            metadata_bytes: unpacked,
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        let palette = self.palette.as_ref();
        palette.map_or(self.shape, |palette| palette.shape(self.shape))
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.diagnostics);
        Ok(self.metadata.clone())
    }
    fn decoding(&self) -> String {
        match self.stored.coding {
            Coding::None => "frames without compression".into(),
            coding => format!("a frame of {coding}"),
        }
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = Samples::zeroed(&self.shape)?;
        let out = samples.as_bytes_mut();
        let source = self.inflated.as_ref().unwrap_or(self.source);
        let read = match &self.stored.fragments {
            None => self.stored.fill(source, self.page, out),
            Some(fragments) => {
                let packed = fragments.frame(source, self.page, self.pages)?;
                let unpacked = self.stored.unpack(&packed);
                unpacked.and_then(|frame| self.stored.convert(&frame, out))
            }
        };
        policy.accept(read.map_err(|error| anyhow!("frame {}: {error}", self.page + 1)))?;
        if self.stored.colours.are_ybr() {
            colours::to_rgb(samples.as_bytes_mut());
        }
        let image = Image::new(self.shape, samples);
        match &self.palette {
            Some(palette) => palette.expand(&image, self.stored.signed),
            None => Ok(image),
        }
    }
}
