//! GIF (GIF89a specification), read by the `gif` crate: the first image, on the screen that the file
//! describes. Colours of the palette become RGB; alpha is there where the image is transparent or
//! does not fill the screen.

use super::embedded;
use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Field, Format, PageSurvey};
use super::library::{Stream, check_length, stream};
use super::library_errors;
use crate::image::buffer::Buffer;
use crate::image::metadata::{Diagnostics, Embedded, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use ::gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};
use anyhow::{Context, Error, Result, anyhow, ensure};
use std::io;
use std::num::NonZeroU64;

/// Graphics Interchange Format.
pub static FORMAT: Format = Format {
    name: "GIF",
    id: "gif",
    title: "Graphics Interchange Format; of an animation the first image",
    extensions: &["gif"],
    capabilities: Capabilities {
        channels: &[3, 4],
        depths: &[Depth::Eight],
        fields: &[Field::Profile, Field::Xmp],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (decoder, frame) = open(source, false)?;
    let whole = (frame.left, frame.top) == (0, 0)
        && (frame.width, frame.height) == (decoder.width(), decoder.height());
    let channels = if whole && frame.transparent.is_none() {
        3
    } else {
        4
    };
    let (width, height) = (decoder.width().into(), decoder.height().into());
    let shape = Shape::checked(width, height, channels, Depth::Eight)?;
    let image = Shape {
        width: frame.width.into(),
        height: frame.height.into(),
        ..shape
    };
    // A code of at least 3 bits stands for up to 4096 pixels.
    check_length(source, &image, 4096 * 8 / 3)?;
    let palette = decoder.palette().map(<[u8]>::to_vec);
    // Blocks of metadata stand before the first image.
    let embedded = Embedded {
        profile: decoder.icc_profile().map(<[u8]>::to_vec),
        exif: None,
        xmp: decoder.xmp_metadata().map(<[u8]>::to_vec),
    };
    Ok(Box::new(GifDecoder {
        source,
        shape,
        frame,
        palette: palette.map_err(|error| cause(error, source))?,
        embedded,
    }))
}

/// The place of the first image on the screen.
#[derive(Clone, Copy)]
struct Frame {
    left: u16,
    top: u16,
    width: u16,
    height: u16,
    transparent: Option<u8>,
}

struct GifDecoder<'a> {
    source: &'a Source,
    shape: Shape,
    frame: Frame,
    /// Red, green and blue of each colour.
    palette: Vec<u8>,
    embedded: Embedded,
}

/// A decoder before the data of the first image, and that image's place. With `skipping`, it passes
/// over the data of images without decoding them.
fn open(source: &Source, skipping: bool) -> Result<(::gif::Decoder<Stream<'_>>, Frame)> {
    let said = |error| cause(error, source);
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.check_frame_consistency(true);
    options.skip_frame_decoding(skipping);
    // Extensions that nobody knows say nothing of the pixels.
    options.allow_unknown_blocks(true);
    // Palettes and the rows that are under way: an image itself is decoded into our memory.
    options.set_memory_limit(
        NonZeroU64::new(64 << 20).map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes),
    );
    let mut decoder = options.read_info(stream(source)).map_err(said)?;
    let frame = decoder.next_frame_info().map_err(said)?;
    let frame = frame.context("there is no image in it")?;
    let frame = Frame {
        left: frame.left,
        top: frame.top,
        width: frame.width,
        height: frame.height,
        transparent: frame.transparent,
    };
    Ok((decoder, frame))
}

impl Decoder for GifDecoder<'_> {
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: self.embedded.size(),
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let (mut decoder, _) = open(self.source, true)?;
        if matches!(decoder.next_frame_info(), Ok(Some(_))) {
            let warning = "it is an animation, of which the first image is taken";
            diagnostics.warnings.push(warning.into());
        }
        Ok(embedded::metadata(self.embedded.clone()))
    }
    fn decoding(&self) -> String {
        "by the crate gif".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let (shape, frame) = (self.shape, self.frame);
        let (mut decoder, _) = open(self.source, false)?;
        let (width, channels) = (usize::from(frame.width), shape.channels);
        let mut indices = Buffer::<u8>::zeroed(decoder.buffer_size())?;
        ensure!(
            indices.len() == width * usize::from(frame.height),
            "an image of another size than it says"
        );
        let read = decoder.read_into_buffer(&mut indices);
        policy.accept(read.map_err(|error| cause(error, self.source)))?;
        let mut samples = Samples::zeroed(&shape)?;
        let rows = samples.as_bytes_mut().chunks_exact_mut(shape.row());
        let rows = rows
            .skip(frame.top.into())
            .zip(indices.chunks_exact(width.max(1)));
        let mut missing = false;
        for (row, indices) in rows {
            let pixels = row.chunks_exact_mut(channels).skip(frame.left.into());
            for (pixel, &index) in pixels.zip(indices) {
                let colour = self
                    .palette
                    .get(3 * usize::from(index)..)
                    .and_then(<[u8]>::first_chunk);
                missing |= colour.is_none();
                let &[red, green, blue] = colour.unwrap_or(&[0; 3]);
                let opaque = if frame.transparent == Some(index) {
                    0
                } else {
                    255
                };
                pixel.copy_from_slice(&[red, green, blue, opaque][..channels]);
            }
        }
        if missing {
            policy.accept(Err(anyhow!(
                "a pixel has a colour that its palette does not have"
            )))?;
        }
        Ok(Image::new(shape, samples))
    }
}

/// An error of the library in a sentence.
fn cause(error: DecodingError, source: &Source) -> Error {
    match error {
        DecodingError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            anyhow!("truncated at byte {}", source.len())
        }
        other => library_errors::translate(other, source.len()),
    }
}
