//! What other decoders make of a file, and that ours agrees and keeps within bounds.

use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::image::{Depth, Image, Samples, Shape, number};
use gpuimg::internals::os::Source;
use std::io::Cursor;
use std::sync::Mutex;

/// Fails unless the image's bytes are at most `expansion` for each byte of its file.
pub fn bounded(image: &Image, file: &[u8], expansion: usize) {
    let bytes = image.shape().bytes();
    assert!(
        bytes <= expansion * file.len(),
        "{bytes} bytes of image from {} bytes of file",
        file.len()
    );
}

/// Fails where two images differ, without printing either.
pub fn same(ours: &Image, theirs: &Image, whose: &str) {
    assert_eq!(ours.shape(), theirs.shape(), "{whose} sees another shape");
    let (a, b) = (ours.samples().as_bytes(), theirs.samples().as_bytes());
    if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
        panic!(
            "{whose} differs in byte {at} of the samples of {}: ours {}, theirs {}",
            ours.shape(),
            a[at],
            b[at]
        );
    }
}

/// Decodes the first page of a file in blocks and from top to bottom, where it can be, and fails where that gives other samples than
/// the image, decoded at once, or fails although that did not.
pub fn parts(file: &[u8], whole: Option<&Image>) {
    let source = Source::memory(file.to_vec());
    // Parts that are not in a file may make an image of any size.
    let reading = Reading {
        max_pixels: 1 << 22,
        ..Reading::default()
    };
    let Ok(mut reader) = Reader::open(&source, &reading) else {
        return;
    };
    if reader.turn_to(0).is_err() {
        return;
    }
    if reader.gives_blocks() {
        let samples = Mutex::new(0);
        let taken = reader.blocks(&|block| {
            *samples.lock().expect("no panic") += block.shape().samples();
            Ok(())
        });
        if let Some(whole) = whole {
            taken.expect("blocks of what is decoded at once");
            assert_eq!(
                samples.into_inner().expect("no panic"),
                whole.shape().samples()
            );
        }
    }
    if !reader.gives_rows() {
        return;
    }
    let rows = |plainly: bool| {
        let mut rows = Vec::new();
        let taken = reader.rows(plainly, &mut |bytes| {
            if whole.is_some() {
                rows.extend_from_slice(bytes);
            }
            Ok(())
        });
        taken.map(|()| rows)
    };
    let plain = rows(true);
    let Some(whole) = whole else { return };
    let plain = plain.expect("rows of what is decoded at once");
    assert!(
        plain == whole.samples().as_bytes(),
        "other samples from top to bottom"
    );
    if let Ok(fast) = rows(false) {
        assert!(fast == plain, "other samples by the fast method");
    }
}

fn image(width: usize, height: usize, channels: usize, samples: Samples) -> Option<Image> {
    let shape = Shape {
        width,
        height,
        channels,
        depth: match samples {
            Samples::U8(_) => Depth::Eight,
            _ => Depth::Sixteen,
        },
    };
    (shape.samples() == samples.len()).then(|| Image::new(shape, samples))
}

/// A PNG as the png crate reads it.
pub fn png(file: &[u8]) -> Result<Image, String> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.set_limits(png::Limits { bytes: usize::MAX });
    let plain = |error: png::DecodingError| error.to_string();
    let mut reader = decoder.read_info().map_err(plain)?;
    let mut bytes = vec![0xA5; reader.output_buffer_size().ok_or("too large")?];
    let info = reader.next_frame(&mut bytes).map_err(plain)?;
    let samples = match info.bit_depth {
        png::BitDepth::Sixteen => Samples::U16(
            bytes
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect(),
        ),
        _ => bytes.into(),
    };
    let (width, height) = (info.width as usize, info.height as usize);
    image(width, height, info.color_type.samples(), samples).ok_or("another size".into())
}

/// A TIFF as the tiff crate reads it: its size and the bytes of its samples. None where it fails
/// or sees another kind of sample.
pub fn tiff(file: &[u8], depth: Depth) -> Option<((usize, usize), Vec<u8>)> {
    use tiff::decoder::{Decoder, DecodingResult};
    use tiff::tags::Tag;
    let mut decoder = Decoder::new(Cursor::new(file)).ok()?;
    let (width, height) = decoder.dimensions().ok()?;
    // The crate inverts MinIsWhite, reads one plane of several, knows no fill order, and takes signs,
    // packed bits and extra samples of no meaning otherwise than we do: there it has another opinion and not a better one.
    let all = |decoder: &mut Decoder<_>, tag, plain: &[u64]| match decoder
        .find_tag_unsigned_vec::<u64>(tag)
    {
        Ok(Some(values)) => values.iter().all(|value| plain.contains(value)),
        Ok(None) => true,
        Err(_) => false,
    };
    let plain = all(&mut decoder, Tag::PhotometricInterpretation, &[1, 2])
        && all(&mut decoder, Tag::PlanarConfiguration, &[1])
        && all(&mut decoder, Tag::SampleFormat, &[if depth == Depth::Float { 3 } else { 1 }])
        && all(&mut decoder, Tag::FillOrder, &[1])
        && all(&mut decoder, Tag::ExtraSamples, &[1, 2])
        && all(&mut decoder, Tag::BitsPerSample, &[depth.bits().into()])
        // Without the tag a sample has one bit.
        && matches!(decoder.find_tag(Tag::BitsPerSample), Ok(Some(_)));
    // What is stored in no bytes is absent, and 0; the crate reads on from wherever it stands.
    let mut absent = |tag| match decoder.find_tag_unsigned_vec::<u64>(tag) {
        Ok(counts) => counts.is_some_and(|counts| counts.contains(&0)),
        Err(_) => true,
    };
    if !plain || absent(Tag::StripByteCounts) || absent(Tag::TileByteCounts) {
        return None;
    }
    let bytes = match (decoder.read_image().ok()?, depth) {
        (DecodingResult::U8(samples), Depth::Eight) => samples,
        (DecodingResult::U16(samples), Depth::Sixteen) => bytemuck::cast_slice(&samples).to_vec(),
        (DecodingResult::U32(samples), Depth::ThirtyTwo) => bytemuck::cast_slice(&samples).to_vec(),
        (DecodingResult::F32(samples), Depth::Float) => {
            let keys: Vec<u32> = samples
                .iter()
                .map(|sample| number::key(sample.to_bits()))
                .collect();
            bytemuck::cast_slice(&keys).to_vec()
        }
        _ => return None,
    };
    Some(((width as usize, height as usize), bytes))
}

/// The most bytes of image that a byte of a TIFF file can make, for samples of a depth in memory. None where chunks that are absent may
/// make any number, or the tiff crate cannot tell.
pub fn expansion_of_tiff(file: &[u8], depth: Depth) -> Option<usize> {
    use tiff::decoder::Decoder;
    use tiff::tags::Tag;
    let mut decoder = Decoder::new(Cursor::new(file)).ok()?;
    let mut values = |tag| decoder.find_tag_unsigned_vec::<u64>(tag).ok();
    for counts in [Tag::StripByteCounts, Tag::TileByteCounts] {
        if values(counts)?.is_some_and(|counts| counts.contains(&0)) {
            return None;
        }
    }
    let mut first = |tag| values(tag).map(|values| values?.first().copied());
    let packed = match first(Tag::Compression)?.unwrap_or(1) {
        1 => 1,
        5 => 4096 * 8 / 12,
        8 | 32946 => 1032,
        32773 => 64,
        50000 => 32768,
        _ => return None,
    };
    let bits = first(Tag::BitsPerSample)?.unwrap_or(1).max(1);
    let colours = if first(Tag::PhotometricInterpretation)? == Some(3) {
        3
    } else {
        1
    };
    Some(packed * (depth.bits() as usize).div_ceil(bits as usize) * colours)
}

/// A PNM as the image crate reads it, which scales samples to the whole of 8 or 16 bits.
pub fn pnm(file: &[u8]) -> Option<Image> {
    use image::DynamicImage::*;
    let format = image::ImageFormat::Pnm;
    let read = image::load_from_memory_with_format(file, format).ok()?;
    let (width, height) = (read.width() as usize, read.height() as usize);
    let (channels, samples): (usize, Samples) = match read {
        ImageLuma8(pixels) => (1, pixels.into_raw().into()),
        ImageRgb8(pixels) => (3, pixels.into_raw().into()),
        ImageLuma16(pixels) => (1, pixels.into_raw().into()),
        ImageRgb16(pixels) => (3, pixels.into_raw().into()),
        _ => return None,
    };
    self::image(width, height, channels, samples)
}
