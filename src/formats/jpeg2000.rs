//! JPEG 2000 (T.800), read: codestreams, and those in JP2 files, of 1 to 16 bits with and without sign.
//!
//! The crate `dicom-toolkit-jpeg2000` decodes: a fork of `hayro-jpeg2000` that gives all 16 bits, and needs no newer Rust than
//! this program. Reversible codestreams are exact: it calculates with floating point of 32 bits, whose 24 bits hold every
//! coefficient of 16-bit samples. It contains no unsafe code.

mod boxes;
mod codestream;

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Format, PageSurvey};
use super::library::check_length;
use crate::image::metadata::{Alpha, Diagnostics, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::{Source, limits};
use anyhow::{Result, ensure};
pub use codestream::{EXPANSION, Header, LOSSY, SAMPLE};

/// JPEG 2000.
pub static FORMAT: Format = Format {
    name: "JPEG 2000",
    id: "jpeg2000",
    title: "JPEG 2000, codestreams and JP2 files",
    extensions: &["jp2", "j2k", "j2c", "jpc"],
    capabilities: Capabilities {
        lossless: false,
        pages: false,
        depths: &[Depth::Eight, Depth::Sixteen],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: |head| head.starts_with(b"\0\0\0\x0CjP  \r\n\x87\n") || codestream::is_codestream(head),
    decoder: |source, _| Ok(Box::new(Jpeg2000Decoder::open(source)?)),
    ..Format::DEFAULTS
};

/// The codestream of a file, which is one itself or a JP2 file.
///
/// # Errors
/// A damaged JP2 file, and colours that are not supported.
pub fn codestream_of(file: &[u8]) -> Result<&[u8]> {
    if codestream::is_codestream(file) {
        return Ok(file);
    }
    Ok(&file[boxes::codestream(file)?])
}

struct Jpeg2000Decoder {
    /// The file.
    packed: Vec<u8>,
    header: Header,
    shape: Shape,
}

impl Jpeg2000Decoder {
    fn open(source: &Source) -> Result<Jpeg2000Decoder> {
        let (length, free) = (source.len(), limits::free_memory());
        ensure!(
            length <= free,
            "its {length} bytes do not fit in memory: {free} bytes are free"
        );
        let packed = source.read_all()?;
        let header = Header::read(codestream_of(&packed)?)?;
        let shape = header.shape()?;
        check_length(source, &shape, EXPANSION)?;
        Ok(Jpeg2000Decoder {
            packed,
            header,
            shape,
        })
    }
}

impl Decoder for Jpeg2000Decoder {
    /// The compressed bytes, and what is in memory while they are decoded, count as metadata.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let samples = (self.shape.pixels() * self.shape.channels) as u64;
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: samples * SAMPLE + self.packed.len() as u64,
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let Header { bits, signed, .. } = self.header;
        if self.header.is_lossy {
            diagnostics.warnings.push(LOSSY.into());
        }
        let narrow = bits < self.shape.depth.bits() && !signed;
        Ok(Metadata {
            signed,
            alpha: Alpha::Independent,
            maxval: narrow.then(|| ((1u32 << bits) - 1) as u16),
            ..Metadata::default()
        })
    }
    fn decoding(&self) -> String {
        "by the crate dicom-toolkit-jpeg2000".into()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = Samples::zeroed(&self.shape)?;
        let codestream = codestream_of(&self.packed);
        match codestream.and_then(|codestream| self.header.decode(codestream)) {
            Ok(values) => self.fill(&values, &mut samples),
            Err(error) => policy.accept(Err(error))?,
        }
        Ok(Image::new(self.shape, samples))
    }
}

impl Jpeg2000Decoder {
    /// Stores values as samples in memory.
    fn fill(&self, values: &[i32], samples: &mut Samples) {
        let signed = self.header.signed;
        let zero = if signed {
            1 << (self.shape.depth.bits() - 1)
        } else {
            0
        };
        let bytes = samples.as_bytes_mut();
        let size = self.shape.depth.bytes();
        for (sample, value) in bytes.chunks_exact_mut(size).zip(values) {
            match sample {
                [byte] => *byte = (value + zero) as u8,
                word => word.copy_from_slice(&((value + zero) as u16).to_ne_bytes()),
            }
        }
    }
}
