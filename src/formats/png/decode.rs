//! Decodes a PNG file to an image.

mod band;
mod chunks;
mod data;
mod header;
mod interlaced;
mod library;
mod packed;
mod prefix;
mod scanlines;
mod segments;
mod unfilter;
mod unfilter_pixels;
mod unfilter_simd;

use super::common_items;
use crate::deflate::inflate::parallel;
use crate::formats::Decoder;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{PageSurvey, RowSink};
use crate::formats::packed::{Packed, Unsuited};
use crate::formats::single::check_single;
use crate::image::metadata::{self, Diagnostics, Metadata};
use crate::image::{Image, Shape};
use crate::os::Source;
use anyhow::{Context, Result};
use band::Band;
use chunks::{Chunk, ChunkReader};
use data::ImageData;
use header::{Colour, Prelude};
use interlaced::Passes;
use scanlines::ScanlineInflater;
use std::sync::{Mutex, PoisonError};
use unfilter::{RowLayout, Unfilterer};

/// For images of at least this many bytes, a second thread saves more time than it takes to start.
const MIN_BYTES_FOR_THREAD: usize = 1 << 20;

/// With at least this many threads, the filters are undone on other threads than the one that joins the inflated parts.
const MIN_THREADS_TO_UNFILTER_APART: usize = 4;

/// The number of rows that are unfiltered together: a multiple of each number of rows in `unfilter_simd::rows_at_once`.
const BAND_ROWS: usize = 16;

/// Decodes a PNG. Its header has been read, and its size is plausible for the size of the file.
pub struct PngDecoder<'a> {
    source: &'a Source,
    prelude: Prelude,
    /// `None` once the image is decoded.
    data: Option<ImageData<'a>>,
    /// The shape of the decoded image: 1–4 channels; 16 bits stay 16, fewer than 8 become 8.
    shape: Shape,
    /// The compressed data, or why there are none, if they were read ahead.
    ahead: Mutex<Option<Result<Packed, Unsuited>>>,
}

impl<'a> PngDecoder<'a> {
    /// Reads the chunks before the image data. Refuses a header that states more pixels than the file
    /// can contain, before memory is allocated. With `damaged`, the image data may be cut off.
    pub fn open(source: &'a Source, damaged: bool) -> Result<PngDecoder<'a>> {
        let (prelude, data) = Prelude::read(source, damaged)?;
        let shape = prelude.shape()?;
        Ok(PngDecoder {
            source,
            prelude,
            data: Some(data),
            shape,
            ahead: Mutex::default(),
        })
    }
}

impl Decoder for PngDecoder<'_> {
    /// Counts only the metadata in the chunks before the image data.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let chunks = self.prelude.others.iter();
        let bytes = chunks.map(|chunk| common_items::unpacked(&chunk.kind, chunk.len.into()));
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: bytes.sum(),
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    /// The metadata in the chunks. Chunks that cannot be read are left out with a note; the decoder
    /// reports the error.
    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let bits = self.prelude.header.bits;
        let plain = bits >= 8 && self.prelude.header.colour != Colour::Palette;
        let mut metadata = Metadata {
            significant: (bits < 8 && self.prelude.header.colour != Colour::Palette)
                .then(|| vec![bits; self.shape.channels]),
            ..Metadata::default()
        };
        if self.prelude.animated {
            let warning = "animated PNG: only the first frame is used";
            diagnostics.warnings.push(warning.into());
        }
        let mut chunks = ChunkReader::new(self.source);
        let after = chunks.after_image_data(self.known_image_data());
        let after = match after {
            Ok((chunks, end)) => {
                check_single(self.source, end, "png")?;
                chunks
            }
            Err(error) => {
                let note = format!("the chunks after the image data cannot be read: {error:#}");
                diagnostics.notes.push(note);
                Vec::new()
            }
        };
        let before = self.prelude.others.iter().map(|chunk| (chunk, false));
        let all = before.chain(after.iter().map(|chunk| (chunk, true)));
        // The frames of an animation are ancillary chunks, too, and large.
        let is_frame = |chunk: &Chunk| matches!(&chunk.kind, b"fcTL" | b"fdAT");
        for (chunk, behind) in all.filter(|(chunk, _)| !is_frame(chunk)) {
            match read_chunk(&mut chunks, chunk) {
                Ok(Some(data)) => {
                    let chunk = metadata::Chunk {
                        kind: chunk.kind,
                        behind,
                        data,
                    };
                    super::metadata::add_chunk(
                        &mut metadata,
                        chunk,
                        &self.shape,
                        plain,
                        diagnostics,
                    );
                }
                Ok(None) => diagnostics
                    .warnings
                    .push(format!("{chunk} has a bad CRC and is left out")),
                Err(error) => diagnostics
                    .notes
                    .push(format!("{chunk} cannot be read and is left out: {error:#}")),
            }
        }
        Ok(metadata)
    }

    fn gives_packed(&self) -> bool {
        true
    }

    /// Many writers start a new chunk every 8 KiB. To find the end of the image data in the file takes one read for each chunk,
    /// and these reads take as long as reading the whole file.
    fn read_ahead(&mut self) {
        self.ahead = Mutex::new(Some(packed::read(self)));
    }

    fn packed(&self) -> Result<Packed, Unsuited> {
        let ahead = self
            .ahead
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        ahead.unwrap_or_else(|| packed::read(self))
    }

    fn gives_rows(&self) -> bool {
        self.prelude.needs_no_expansion() && !self.prelude.header.interlaced
    }

    fn rows(&self, serially: bool, take: &mut RowSink) -> Result<()> {
        let (header, prelude) = (&self.prelude.header, &self.prelude);
        let layout = RowLayout::new(&self.shape);
        if let (Some(index), false) = (&prelude.index, serially) {
            return segments::rows(self.source, prelude, index, layout, take);
        }
        let mut band = Band::new(layout, BAND_ROWS);
        band.start(layout.row_bytes, self.shape.height);
        let total = header.scanline_bytes()?;
        let data = prelude.image_data(self.source)?;
        let threads = rayon::current_num_threads();
        let push = |bytes: &[u8]| band.push(bytes, |_, rows| take(rows)).map(drop);
        if !serially && parallel::is_worth(self.source.len(), total, threads) {
            parallel::inflate(data, total, threads, push)?.finish()?;
        } else {
            ScanlineInflater::new(data).inflate_all(total, push)?;
        }
        Ok(())
    }
    fn decoding(&self) -> String {
        let header = &self.prelude.header;
        if !self.prelude.needs_no_expansion() {
            return "by the crate png".into();
        }
        let threads = rayon::current_num_threads();
        let total = header.scanline_bytes().unwrap_or(0);
        let stream = match &self.prelude.index {
            Some(_) if threads > 1 && !header.interlaced => {
                "the segments of its index, on all threads"
            }
            Some(_) if !header.interlaced => "the segments of its index, in order",
            _ if parallel::is_worth(self.source.len(), total, threads) => {
                "parts of one deflate stream, on all threads"
            }
            _ => "one deflate stream, in order",
        };
        let passes = if header.interlaced {
            ", seven passes"
        } else {
            ""
        };
        format!("{stream}{passes}")
    }

    /// Decodes a PNG of any kind into 1–4 channels: 16 bits stay 16, fewer than 8 are scaled to 8
    /// (value·255/(2ⁿ−1)), palettes become RGB, and tRNS becomes an alpha channel.
    ///
    /// Checks every CRC, the Adler-32 and the end of the file. An incomplete image is an error,
    /// unless `policy` accepts damage. If a fast method fails, a slower one decides whether the file
    /// is damaged, and the failure is recorded as a fallback.
    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        // A page that was read ahead, and is decoded here all the same, needs no memory for its data.
        self.ahead = Mutex::default();
        let data = self.data.take();
        let data = data.context("internal error: the page was decoded before")?;
        let header = &self.prelude.header;
        let is_plain = self.prelude.needs_no_expansion();
        if is_plain && !header.interlaced {
            return self.decode_rows(data, policy);
        }
        if is_plain {
            match self.decode_interlaced(policy) {
                Ok(image) => return Ok(image),
                Err(error) => policy.add_fallback(format!(
                    "decoded by the png library, because decoding the passes failed: {error:#}"
                )),
            }
        }
        // The library accepts a stream without its end and its Adler-32, so the stream is checked first.
        let check = ScanlineInflater::new(data).inflate_all(header.scanline_bytes()?, |_| Ok(()));
        policy.accept(check)?;
        library::decode(self.source, self.shape, policy)
    }
}

impl PngDecoder<'_> {
    /// The offset of the first chunk of image data, or of the first chunk after those that were read ahead.
    fn known_image_data(&self) -> u64 {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match &*ahead {
            Some(Ok(packed)) => packed.head.streams.memory_bytes as u64,
            _ => 0,
        };
        self.prelude.data + read
    }

    /// Decodes a file that is not interlaced and whose samples need no expansion.
    fn decode_rows(&self, data: ImageData, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = policy.samples(&self.shape)?;
        if self.decode_in_parallel(samples.as_bytes_mut(), policy)? {
            return Ok(Image::new(self.shape, samples));
        }
        let layout = RowLayout::new(&self.shape);
        let mut rows = Unfilterer::new(samples.as_bytes_mut(), layout);
        let inflated = self.inflate_serially(data, |bytes| rows.push(bytes));
        if inflated.is_err() {
            policy.accept(inflated)?;
            samples = policy.samples(&self.shape)?;
            let mut rows = Unfilterer::new(samples.as_bytes_mut(), layout);
            prefix::fill(self.source, &self.prelude, &mut rows)?;
        }
        Ok(Image::new(self.shape, samples))
    }

    /// Decodes the rows into `image` on several threads: by the index of segments if the file has one, or by inflating parts of
    /// the stream if it is long enough. Returns false if neither is possible or both fail. The failures are recorded in `policy`,
    /// and the content of `image` is then undefined.
    fn decode_in_parallel(&self, image: &mut [u8], policy: &ErrorPolicy) -> Result<bool> {
        let layout = RowLayout::new(&self.shape);
        if let Some(index) = &self.prelude.index {
            match segments::decode(self.source, &self.prelude, index, image, layout) {
                Ok(()) => return Ok(true),
                // The index may be wrong although the stream is valid.
                Err(error) => policy.add_fallback(format!(
                    "decoded without its index of segments, because decoding by the index failed: {error:#}"
                )),
            }
        }
        let total = self.prelude.header.scanline_bytes()?;
        let threads = rayon::current_num_threads();
        if !parallel::is_worth(self.source.len(), total, threads) {
            return Ok(false);
        }
        match self.inflate_rows_in_parallel(image, total, threads) {
            Ok(()) => Ok(true),
            // The file may be damaged, or this method may not support its blocks.
            Err(error) => {
                policy.add_fallback(format!(
                    "inflated on one thread, because inflating on several threads failed: {error:#}"
                ));
                Ok(false)
            }
        }
    }

    /// Inflates the stream on `threads` threads and undoes the filters. The thread that joins the inflated parts undoes them, or
    /// the other threads if there are enough.
    fn inflate_rows_in_parallel(
        &self,
        image: &mut [u8],
        total: usize,
        threads: usize,
    ) -> Result<()> {
        let data = self.prelude.image_data(self.source)?;
        let mut rows = Unfilterer::new(image, RowLayout::new(&self.shape));
        let inflated = rayon::in_place_scope(|scope| {
            parallel::inflate(data, total, threads, |bytes| {
                if threads < MIN_THREADS_TO_UNFILTER_APART {
                    rows.push(bytes)
                } else {
                    rows.push_and_hand_over(bytes, &mut |mut rows| {
                        scope.spawn(move |_| rows.unfilter())
                    })
                }
            })
        });
        inflated?.finish()
    }

    /// Decodes an interlaced file whose samples need no expansion.
    fn decode_interlaced(&self, policy: &ErrorPolicy) -> Result<Image> {
        let mut samples = policy.samples(&self.shape)?;
        let layout = RowLayout::new(&self.shape);
        let mut passes = Passes::new(samples.as_bytes_mut(), &self.prelude.header, layout);
        let total = self.prelude.header.scanline_bytes()?;
        let data = self.prelude.image_data(self.source)?;
        let threads = rayon::current_num_threads();
        let push = |bytes: &[u8]| passes.push(bytes);
        if parallel::is_worth(self.source.len(), total, threads) {
            parallel::inflate(data, total, threads, push)?.finish()?;
        } else {
            self.inflate_serially(data, push)?;
        }
        Ok(Image::new(self.shape, samples))
    }

    /// Inflates the stream in order and passes the scanlines to `take`. For a large image, `take` runs on a second thread.
    fn inflate_serially(
        &self,
        data: ImageData,
        take: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        let total = self.prelude.header.scanline_bytes()?;
        let inflater = ScanlineInflater::new(data);
        if total < MIN_BYTES_FOR_THREAD || rayon::current_num_threads() == 1 {
            inflater.inflate_all(total, take)
        } else {
            inflater.inflate_all_on_two_threads(total, take)
        }
    }
}

/// The data of an ancillary chunk; `None` if it is a text with a wrong CRC.
fn read_chunk(chunks: &mut ChunkReader, chunk: &Chunk) -> Result<Option<Vec<u8>>> {
    if !chunks.is_sound(chunk)? {
        return Ok(None);
    }
    chunks.data(chunk).map(Some)
}

/// Decodes a PNG file.
pub fn decode(source: &Source) -> Result<Image> {
    PngDecoder::open(source, false)?.decode(&ErrorPolicy::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::png::{Mode, encode};
    use crate::image::{Depth, Samples};
    use crate::os::Target;
    use anyhow::ensure;

    /// 16-bit grey of 5 MB: a ramp with noise.
    fn image() -> Result<Image> {
        let shape = Shape {
            width: 1601,
            height: 1601,
            channels: 1,
            depth: Depth::Sixteen,
        };
        let mut noise = 1u32;
        let samples = (0..shape.samples() as u32).map(|i| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (i / 400 + (noise >> 22)) as u16
        });
        Ok(Image::new(shape, samples.collect::<Vec<u16>>().into()))
    }

    #[test]
    fn our_own_files_are_decoded_by_segments() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.png");
        let image = image()?;
        for mode in [Mode::Fast, Mode::Store] {
            let target = Target::create(&path, true)?;
            let len = encode(&image, mode, &target)?;
            target.commit(len)?;
            let source = Source::open(&path)?;
            let (prelude, _) = Prelude::read(&source, false)?;
            let shape = prelude.shape()?;
            let layout = RowLayout::new(&shape);
            let index = prelude.index.as_ref().context("no index")?;
            // In pairs and singly.
            for threads in [1, 3] {
                let mut samples = Samples::any(&shape)?;
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()?;
                let bytes = samples.as_bytes_mut();
                bytes.fill(0xa5);
                pool.install(|| segments::decode(&source, &prelude, index, bytes, layout))?;
                ensure!(Image::new(shape, samples) == image, "{threads} threads");
            }
        }
        Ok(())
    }

    #[test]
    fn streams_of_others_are_inflated_in_parts() -> Result<()> {
        use std::io::Write;
        let image = image()?;
        let shape = image.shape();
        let scanlines: Vec<u8> = match image.samples() {
            Samples::U16(samples) => samples
                .chunks(shape.width)
                .flat_map(|row| {
                    let bytes = row.iter().flat_map(|sample| sample.to_be_bytes());
                    std::iter::once(0).chain(bytes)
                })
                .collect(),
            _ => Vec::new(),
        };
        for level in [1, 6] {
            let mut zlib =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
            zlib.write_all(&scanlines)?;
            let stream = zlib.finish()?;
            // The chunks of a small file, with this stream as its image data.
            let chunk = |kind: &[u8; 4], data: &[u8]| {
                let body = [&kind[..], data].concat();
                let crc = crc32fast::hash(&body);
                [
                    &(data.len() as u32).to_be_bytes()[..],
                    &body,
                    &crc.to_be_bytes(),
                ]
                .concat()
            };
            let side = (shape.width as u32).to_be_bytes();
            let ihdr = [&side[..], &side, &[16, 0, 0, 0, 0]].concat();
            let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
            file.extend(chunk(b"IHDR", &ihdr));
            for piece in stream.chunks(8192) {
                file.extend(chunk(b"IDAT", piece));
            }
            file.extend(chunk(b"IEND", &[]));
            let source = Source::memory(file);
            let (prelude, _) = Prelude::read(&source, false)?;
            let layout = RowLayout::new(&shape);
            for threads in [1, 2, 5] {
                let mut samples = Samples::any(&shape)?;
                let mut rows = Unfilterer::new(samples.as_bytes_mut(), layout);
                let data = prelude.image_data(&source)?;
                parallel::inflate(data, scanlines.len(), threads, |bytes| rows.push(bytes))?
                    .finish()?;
                ensure!(Image::new(shape, samples) == image, "{threads} threads");
            }
        }
        Ok(())
    }
}
