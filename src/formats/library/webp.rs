//! WebP, read by the `image` crate.

use super::{LibraryDecoder, Opened, SetBits, Stream};
use crate::formats::format::{Capabilities, Decoder, Field, Format};
use crate::image::Depth;
use crate::os::Source;
use ::image::ImageResult;
use ::image::codecs::webp::WebPDecoder;
use anyhow::{Result, ensure};
use std::io::{Read, Seek};

/// WebP, lossy or lossless; of an animation the first image.
pub static FORMAT: Format = Format {
    name: "WebP",
    id: "webp",
    title: "WebP, lossy or lossless; of an animation the first image",
    extensions: &["webp"],
    capabilities: Capabilities {
        lossless: false,
        channels: &[3, 4],
        depths: &[Depth::Eight],
        fields: &[Field::Orientation, Field::Exif, Field::Profile, Field::Xmp],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"RIFF") && head[8.min(head.len())..].starts_with(b"WEBP"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let mut first = None;
    let damage = check(source, &mut first).err();
    if !damaged && let Some(error) = damage {
        return Err(error);
    }
    let mut decoder = LibraryDecoder::open(source, open)?;
    // The first image of an animation is shown on an empty canvas, but the library blends it, and turns 255 into 254.
    decoder.set_bits = first.map(|frame| SetBits {
        at: frame + 15,
        bits: 2,
    });
    decoder.warnings.extend(animation(source));
    decoder.damage = damage;
    Ok(Box::new(decoder))
}

fn open(stream: Stream) -> ImageResult<Opened> {
    Ok(Box::new(WebPDecoder::new(stream)?))
}

/// A warning about the images of an animation that are not read.
fn animation(source: &Source) -> Option<String> {
    let decoder = WebPDecoder::new(super::stream(source)).ok()?;
    let warning = "it is an animation, of which the first image is taken";
    decoder.has_animation().then(|| warning.into())
}

/// Checks the lengths of chunks, which the library does not, and finds where the first image of an animation begins (RFC
/// 9649, section 2).
///
/// # Errors
/// A chunk that ends after the chunk or file that contains it.
fn check(source: &Source, first: &mut Option<u64>) -> Result<()> {
    let (mut stream, len) = (super::stream(source), source.len());
    let (_, size) = head(&mut stream)?;
    let end = 8 + size;
    ensure!(end <= len, "truncated at byte {len} of {end}");
    stream.seek_relative(4)?;
    check_chunks(&mut stream, 12, end, first)
}

/// Checks the chunks from `at`, where the stream is, to `end`.
fn check_chunks(stream: &mut Stream, mut at: u64, end: u64, first: &mut Option<u64>) -> Result<()> {
    while at + 8 <= end {
        let (kind, size) = head(stream)?;
        let next = at + 8 + size;
        ensure!(
            next <= end,
            "its chunk {} at byte {at} ends at byte {next}, after the end of its container at byte {end}",
            kind.escape_ascii()
        );
        let padded = size.next_multiple_of(2);
        match &kind {
            // A file of one image, whatever follows.
            b"VP8 " | b"VP8L" if at == 12 => return Ok(()),
            b"ANMF" if size >= 16 => {
                first.get_or_insert(at + 8);
                stream.seek_relative(16)?;
                check_chunks(stream, at + 24, next, first)?;
            }
            _ => {}
        }
        at += 8 + padded;
        // Within the buffer, so that many small chunks take few reads.
        let here = stream.stream_position()?;
        stream.seek_relative(at as i64 - here as i64)?;
    }
    Ok(())
}

/// A chunk's name and the length of what follows it.
fn head(stream: &mut Stream) -> Result<([u8; 4], u64)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let [a, b, c, d, size @ ..] = head;
    Ok(([a, b, c, d], u32::from_le_bytes(size).into()))
}
