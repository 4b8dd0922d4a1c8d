//! JPEG XL (ISO/IEC 18181), read by the crate `jxl-oxide`: grey and RGB with or without alpha, integers of 1 to 16 bits and
//! floating point. Samples of lossless images are exact. The orientation is applied; the images of an animation are pages.
//!
//! The crate `jxl` was not taken: it is newer, decodes the same, and has no limit for the memory that it takes.

use super::embedded;
use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Field, Format, PageSurvey};
use super::library::{check_length, stream};
use super::raw;
use crate::image::metadata::{Alpha, Diagnostics, Embedded, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::panics::catch_panic;
use crate::os::{Source, limits};
use anyhow::{Context, Result, bail, ensure};
use jxl_oxide::image::BitDepth;
use jxl_oxide::{AllocTracker, JxlImage, PixelFormat};

/// The most pixels that a byte of a file makes: those of an image of one colour.
const EXPANSION: u64 = 1 << 16;

/// Bytes that frames may promise beyond those of the file: the library takes memory for a part of a frame before it has
/// the part, and a truncated file lacks some.
const PROMISED: u64 = 64 << 20;

/// Bytes of memory for a sample that is decoded: its coefficients, and the sample as floating point.
const SAMPLE: u64 = 16;

/// JPEG XL.
pub static FORMAT: Format = Format {
    name: "JPEG XL",
    id: "jpegxl",
    title: "JPEG XL, lossy or lossless",
    extensions: &["jxl"],
    capabilities: Capabilities {
        lossless: false,
        depths: &[Depth::Eight, Depth::Sixteen, Depth::Float],
        signed: false,
        alpha: &[Alpha::Independent, Alpha::Associated],
        fields: &[Field::Maxval, Field::Profile],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: |head| head.starts_with(b"\xFF\x0A") || head.starts_with(b"\0\0\0\x0CJXL \r\n\x87\n"),
    decoder: |source, damaged| Ok(Box::new(JpegXlDecoder::open(source, damaged)?)),
    ..Format::DEFAULTS
};

struct JpegXlDecoder {
    image: JxlImage,
    shape: Shape,
    /// The largest value of integers.
    most: f32,
    metadata: Metadata,
    diagnostics: Diagnostics,
    length: u64,
    page: usize,
}

impl JpegXlDecoder {
    fn open(source: &Source, damaged: bool) -> Result<JpegXlDecoder> {
        let length = source.len();
        let compressed = length + PROMISED;
        let limit = AllocTracker::with_limit(compressed as usize);
        let builder = JxlImage::builder().alloc_tracker(limit.clone());
        let image = catch_panic(|| builder.read(stream(source)));
        let image = image.ok().and_then(Result::ok).context(DAMAGED)?;
        limit.expand_limit(limits::free_memory().saturating_sub(compressed) as usize);
        ensure!(
            damaged || image.is_loading_done(),
            "truncated at byte {length}"
        );
        ensure!(
            image.num_loaded_keyframes() > 0,
            "truncated at byte {length}: it has no complete image"
        );
        let about = &image.image_header().metadata;
        let (depth, bits) = match about.bit_depth {
            BitDepth::IntegerSample {
                bits_per_sample: bits @ 1..=8,
            } => (Depth::Eight, bits),
            BitDepth::IntegerSample {
                bits_per_sample: bits @ 9..=16,
            } => (Depth::Sixteen, bits),
            BitDepth::FloatSample { .. } => (Depth::Float, 16),
            BitDepth::IntegerSample { bits_per_sample } => {
                bail!("integers of {bits_per_sample} bits are not supported (1 to 16 are)")
            }
        };
        let channels = match image.pixel_format() {
            PixelFormat::Gray => 1,
            PixelFormat::Graya => 2,
            PixelFormat::Rgb => 3,
            PixelFormat::Rgba => 4,
            _ => bail!("CMYK colours are not supported: convert it to RGB first"),
        };
        let (width, height) = (image.width().into(), image.height().into());
        let shape = Shape::checked(width, height, channels, depth)?;
        check_length(source, &shape, EXPANSION)?;
        let most = ((1u32 << bits) - 1) as u16;
        let mut alphas = about.ec_info.iter().filter_map(|it| it.alpha_associated());
        let alpha = match alphas.next() {
            Some(true) => Alpha::Associated,
            _ => Alpha::Independent,
        };
        let mut diagnostics = Diagnostics::default();
        let others = about.ec_info.len() - usize::from(matches!(channels, 2 | 4));
        if others > 0 {
            let warning = format!("{others} channels beside colours and alpha are left out");
            diagnostics.warnings.push(warning);
        }
        // The colours of images in XYB are converted, and not those of the profile.
        let profile = image.original_icc().filter(|_| !about.xyb_encoded);
        let embedded = Embedded {
            profile: profile.map(<[u8]>::to_vec),
            ..Embedded::default()
        };
        let narrow = !depth.is_float() && bits < depth.bits();
        let metadata = Metadata {
            alpha,
            maxval: narrow.then_some(most),
            ..embedded::metadata(embedded)
        };
        Ok(JpegXlDecoder {
            shape,
            most: most.into(),
            metadata,
            diagnostics,
            length,
            page: 0,
            image,
        })
    }

    /// Decodes the selected page into samples.
    fn fill(&self, samples: &mut Samples) -> Result<()> {
        let render = catch_panic(|| self.image.render_frame(self.page));
        let render = render.ok().and_then(Result::ok).context(DAMAGED)?;
        let mut stream = render.stream();
        let stated = (
            self.shape.width as u32,
            self.shape.height as u32,
            self.shape.channels as u32,
        );
        ensure!(
            (stream.width(), stream.height(), stream.channels()) == stated,
            "an image of it has another size than its header says"
        );
        let depth = self.shape.depth;
        let mut row = vec![0f32; self.shape.row()];
        let rows = samples
            .as_bytes_mut()
            .chunks_exact_mut(row.len() * depth.bytes());
        for bytes in rows {
            stream.write_to_buffer(&mut row);
            let words = bytes.chunks_exact_mut(depth.bytes()).zip(&row);
            for (word, &value) in words {
                // The library gives integers as parts of the largest one; 24 bits of precision are enough for 16.
                let integer = (value * self.most + 0.5).clamp(0.0, self.most);
                match depth {
                    Depth::Eight => word.copy_from_slice(&[integer as u8]),
                    Depth::Sixteen => word.copy_from_slice(&(integer as u16).to_ne_bytes()),
                    _ => word.copy_from_slice(&value.to_ne_bytes()),
                }
            }
            raw::to_memory(bytes, depth, false);
        }
        Ok(())
    }
}

/// The error for an image that the library does not decode.
const DAMAGED: &str = "its data are damaged, or of a kind that is not supported";

impl Decoder for JpegXlDecoder {
    fn pages(&self) -> usize {
        self.image.num_loaded_keyframes()
    }

    /// The compressed bytes, and what is in memory while they are decoded, count as metadata.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let samples = (self.shape.pixels() * self.shape.channels) as u64;
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: samples * SAMPLE + self.length,
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.diagnostics);
        Ok(self.metadata.clone())
    }
    fn decoding(&self) -> String {
        "by the crate jxl-oxide".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = Samples::zeroed(&self.shape)?;
        policy.accept(self.fill(&mut samples))?;
        Ok(Image::new(self.shape, samples))
    }
}
