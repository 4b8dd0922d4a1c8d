//! PNGs whose samples need expansion (palettes, fewer than 8 bits, tRNS), decoded by the png crate. It also decodes
//! interlaced PNGs if `interlaced` fails.

use crate::formats::error_policy::ErrorPolicy;
use crate::formats::library_errors;
use crate::image::{Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Result, anyhow, bail, ensure};
use png::{DecodeOptions, Decoder, DecodingError, Limits, Transformations};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Decodes a PNG with the png crate; `shape` is the shape after expansion. The image data must have
/// been checked: the crate accepts a stream without its end and Adler-32.
pub fn decode(source: &Source, shape: Shape, policy: &ErrorPolicy) -> Result<Image> {
    let cause = |error| cause(error, source.len());
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let file = BufReader::new(Cursor { source, at: 0 });
    let mut decoder = Decoder::new_with_options(file, options);
    // The header has been checked already, and all chunks lie within the file.
    decoder.set_limits(Limits { bytes: usize::MAX });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(cause)?;
    // The crate converts a tRNS chunk to alpha even if the chunk is to be ignored.
    let with_alpha = Shape {
        channels: shape.channels + 1,
        ..shape
    };
    let decoded = match reader.output_buffer_size() {
        size if size == Some(shape.bytes()) => shape,
        size if !shape.has_alpha() && size == Some(with_alpha.bytes()) => with_alpha,
        _ => bail!("its chunks contradict each other"),
    };
    let mut samples = policy.samples(&decoded)?;
    let frame = reader.next_frame(samples.as_bytes_mut()).map_err(cause);
    let checked = frame.and_then(|frame| {
        ensure!(
            frame.buffer_size() == decoded.bytes() && frame.width as usize == decoded.width,
            "its chunks contradict each other"
        );
        Ok(())
    });
    policy.accept(checked)?;
    if decoded != shape {
        let all = std::mem::replace(&mut samples, Samples::any(&shape)?);
        let pixels = all.as_bytes().chunks_exact(decoded.pixel_bytes());
        let targets = samples.as_bytes_mut().chunks_exact_mut(shape.pixel_bytes());
        for (target, pixel) in targets.zip(pixels) {
            target.copy_from_slice(&pixel[..target.len()]);
        }
    }
    if let Samples::U16(samples) = &mut samples {
        samples.iter_mut().for_each(|s| *s = u16::from_be(*s));
    }
    Ok(Image::new(shape, samples))
}

/// Converts an error of the crate to a message of this program.
fn cause(error: DecodingError, len: u64) -> anyhow::Error {
    match error {
        // An error of the source already has a complete message.
        DecodingError::IoError(error) if error.kind() == io::ErrorKind::Other => anyhow!("{error}"),
        DecodingError::LimitsExceeded => anyhow!("the image does not fit in memory"),
        other => library_errors::translate(other, len),
    }
}

/// Implements `Read` and `Seek` on a source, for the png crate.
struct Cursor<'a> {
    source: &'a Source,
    at: u64,
}

impl Read for Cursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_up_to(buffer, self.at);
        let count = read.map_err(|error| io::Error::other(error.to_string()))?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Cursor<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.source.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
