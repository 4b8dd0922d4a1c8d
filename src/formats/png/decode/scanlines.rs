//! Inflates the image data to filtered scanlines. The image data are a zlib stream in IDAT chunks (PNG
//! specification, section 10).

use super::data::ImageData;
use crate::deflate::WINDOW;
use crate::deflate::inflate::parallel::Input;
use crate::deflate::inflate::{BitReader, Fault, Inflater, Step, Stream, read_both};
use crate::deflate::zlib::is_zlib;
use anyhow::{Context, Result, anyhow, bail, ensure};
use simd_adler32::Adler32;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes inflated at a time: a fraction of an L2 cache.
const BUFFER_BYTES: usize = 256 << 10;

/// Buffers shared by two threads: one being filled, one being consumed, one waiting.
const BUFFERS: usize = 3;

/// Inflates compressed image data to filtered scanlines.
pub struct ScanlineInflater<'a> {
    data: ImageData<'a>,
    inflate: Inflater,
    adler: Adler32,
}

impl<'a> ScanlineInflater<'a> {
    /// An inflater at the start of `data`.
    pub fn new(data: ImageData<'a>) -> ScanlineInflater<'a> {
        ScanlineInflater {
            data,
            inflate: Inflater::default(),
            adler: Adler32::new(),
        }
    }

    /// Inflates exactly `total` bytes and passes them to `take` in order, in pieces of any size;
    /// then checks the end of the stream and of the file.
    pub fn inflate_all(
        mut self,
        total: usize,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read_zlib_header()?;
        let mut buffer = ScanlineBuffer::new(total);
        let mut remaining = total;
        while remaining > 0 {
            remaining -= self.inflate_next(&mut buffer, remaining)?;
            take(buffer.new_bytes())?;
            buffer.keep_history();
        }
        self.finish(buffer)
    }

    /// As `inflate_all`, but calls `take` on a second thread while this one inflates.
    pub fn inflate_all_on_two_threads(
        mut self,
        total: usize,
        mut take: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        self.read_zlib_header()?;
        thread::scope(|scope| {
            let (full, inflated) = sync_channel::<ScanlineBuffer>(BUFFERS);
            let (used, empty) = sync_channel::<ScanlineBuffer>(BUFFERS);
            let consumer = thread::Builder::new()
                .spawn_scoped(scope, move || {
                    inflated.iter().try_for_each(|buffer| {
                        take(buffer.new_bytes())?;
                        // The inflating thread may have finished already.
                        let _ = used.send(buffer);
                        Ok(())
                    })
                })
                .context("no thread could be started")?;
            let produced = self.fill_buffers(total, &full, &empty);
            drop(full);
            let consumed = consumer
                .join()
                .unwrap_or_else(|_| Err(anyhow!("the thread that undoes the filters failed")));
            // An error of the stream is reported before an error of the rows, which it may have
            // caused.
            let last = produced?;
            consumed?;
            self.finish(last.context("the image data were not consumed")?)
        })
    }

    /// Inflates `total` bytes into buffers, and sends each full buffer to `full`. It creates the first buffers, and later reuses
    /// those from `empty`. Returns the unused buffer after the last one, or `None` if the receiver has stopped.
    fn fill_buffers(
        &mut self,
        total: usize,
        full: &SyncSender<ScanlineBuffer>,
        empty: &Receiver<ScanlineBuffer>,
    ) -> Result<Option<ScanlineBuffer>> {
        let mut buffers_to_make = BUFFERS - 1;
        let mut buffer = ScanlineBuffer::new(total);
        let mut remaining = total;
        while remaining > 0 {
            remaining -= self.inflate_next(&mut buffer, remaining)?;
            let mut next = if buffers_to_make > 0 {
                buffers_to_make -= 1;
                ScanlineBuffer::new(total)
            } else {
                match empty.recv() {
                    Ok(buffer) => buffer,
                    Err(_) => return Ok(None),
                }
            };
            next.copy_history(&buffer);
            if full.send(std::mem::replace(&mut buffer, next)).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(buffer))
    }

    /// Opens a segment of the file. In a segment, no match refers to bytes before the segment. The first
    /// segment also has zlib's header; the last one also has the Adler-32 of the whole stream.
    pub fn open_segment(&mut self, position: SegmentPosition) -> Result<()> {
        let chunk = self.data.open_single(position.start)?;
        ensure!(
            &chunk.kind == b"IDAT" && chunk.end() == position.end(),
            "{chunk} is not the segment that the index states"
        );
        self.inflate.restart(BitReader::default());
        self.adler = Adler32::new();
        if position.first {
            self.read_zlib_header()?;
        }
        Ok(())
    }

    /// Checks that a segment of `len` bytes ends at the end of a deflate block and of a byte, so
    /// that the segments inflate to the same bytes as the whole stream.
    pub fn close_segment(
        &mut self,
        position: SegmentPosition,
        len: usize,
        buffer: &mut ScanlineBuffer,
    ) -> Result<SegmentEnd> {
        let end = self.fill(&mut buffer.bytes, buffer.start)?;
        let ended = self.inflate.between_blocks() && self.inflate.is_done() == position.last;
        let stated = if ended && position.last {
            self.read_adler()?
        } else {
            0
        };
        ensure!(
            ended
                && end == buffer.start
                && self.inflate.rest().count == 0
                && self.data.peek()?.is_empty(),
            "the segment before byte {} does not end with its chunk",
            self.data.position()
        );
        Ok(SegmentEnd {
            len,
            adler: self.adler.finish(),
            stated,
        })
    }

    /// Inflates two streams at the same time, until one of them ends or its buffer is full. `inflate_next` does the rest.
    pub fn inflate_pair(pair: [StreamInProgress; 2]) -> Result<()> {
        let limits = [&pair[0], &pair[1]].map(|stream| stream.buffer.limit(stream.remaining));
        let [
            StreamInProgress {
                inflater: one,
                buffer: a,
                ..
            },
            StreamInProgress {
                inflater: two,
                buffer: b,
                ..
            },
        ] = pair;
        let is_full =
            |inflater: &ScanlineInflater, end, limit| end == limit || inflater.inflate.is_done();
        while !is_full(one, a.end, limits[0]) && !is_full(two, b.end, limits[1]) {
            let inputs = [one.data.peek()?, two.data.peek()?];
            let [one_step, two_step] = read_both([
                Stream {
                    inflate: &mut one.inflate,
                    input: inputs[0],
                    output: &mut a.bytes[..limits[0]],
                    from: a.end,
                },
                Stream {
                    inflate: &mut two.inflate,
                    input: inputs[1],
                    output: &mut b.bytes[..limits[1]],
                    from: b.end,
                },
            ]);
            // It does not matter which of the two failed: after an error the file is decoded without the index.
            let step = |step: Result<Step, Fault>| step.map_err(|fault| anyhow!(fault));
            let (one_step, two_step) = (step(one_step)?, step(two_step)?);
            let at_end = one_step.needs_input && inputs[0].is_empty()
                || two_step.needs_input && inputs[1].is_empty();
            one.data.consume(one_step.used)?;
            two.data.consume(two_step.used)?;
            a.end += one_step.made;
            b.end += two_step.made;
            if at_end {
                break;
            }
        }
        Ok(())
    }

    /// Inflates the next bytes into the buffer and returns their number. The stream still has `remaining` bytes of scanlines.
    pub fn inflate_next(&mut self, buffer: &mut ScanlineBuffer, remaining: usize) -> Result<usize> {
        let limit = buffer.limit(remaining);
        buffer.end = self.fill(&mut buffer.bytes[..limit], buffer.end)?;
        let count = buffer.new_bytes().len();
        if buffer.end < limit {
            let missing = remaining - count;
            bail!(self.fault(&format!("it ends {missing} bytes of image too early")));
        }
        self.adler.write(buffer.new_bytes());
        Ok(count)
    }

    /// Inflates into `buffer[from..]`; the bytes before `from` are the history. Returns the end of the
    /// inflated bytes. It is before the end of the buffer only if the stream or the image data ended.
    fn fill(&mut self, buffer: &mut [u8], from: usize) -> Result<usize> {
        let mut end = from;
        while end < buffer.len() && !self.inflate.is_done() {
            let input = self.data.peek()?;
            match self.inflate.read(input, buffer, end) {
                Ok(step) => {
                    let ended = step.needs_input && input.is_empty();
                    self.data.consume(step.used)?;
                    end += step.made;
                    if ended {
                        break;
                    }
                }
                Err(fault) => bail!(self.fault(fault)),
            }
        }
        Ok(end)
    }

    /// Checks the end of the stream, its Adler-32, and the rest of the file.
    fn finish(mut self, mut buffer: ScanlineBuffer) -> Result<()> {
        let end = self.fill(&mut buffer.bytes, buffer.start)?;
        if end > buffer.start {
            bail!(self.fault("it has more bytes than the image"));
        }
        if !self.inflate.is_done() {
            bail!(self.fault("its last block is missing"));
        }
        let stated = self.read_adler()?;
        // CRCs first: a wrong CRC describes the damage better.
        self.data.finish()?;
        ensure!(
            stated == self.adler.finish(),
            "wrong Adler-32: the image data are damaged"
        );
        Ok(())
    }

    /// Reads the header of the zlib stream (RFC 1950 §2.2).
    fn read_zlib_header(&mut self) -> Result<()> {
        let head = [self.byte()?, self.byte()?];
        if !is_zlib(&head) {
            bail!(self.fault("not a zlib stream"));
        }
        Ok(())
    }

    /// Reads the Adler-32 after the last block. Later bytes in the same chunk are ignored.
    fn read_adler(&mut self) -> Result<u32> {
        let mut bits = self.inflate.rest();
        bits.align();
        let mut sum = 0;
        for _ in 0..4 {
            let byte = match bits.count {
                0 => self.byte()?,
                _ => bits.read_bits(8) as u8,
            };
            sum = sum << 8 | u32::from(byte);
        }
        self.inflate.restart(bits);
        Ok(sum)
    }

    /// The next byte of the stream, outside deflate blocks.
    fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.data.peek()?.first() else {
            bail!(self.fault("it ends too early"));
        };
        self.data.consume(1)?;
        Ok(byte)
    }

    /// The error for a fault in the stream. If the chunk's CRC is wrong too, this is the error about the
    /// CRC.
    fn fault(&mut self, fault: &str) -> anyhow::Error {
        let at = self.data.position();
        match self.data.check_chunk() {
            Ok(()) => anyhow!("corrupt compressed data before byte {at}: {fault}"),
            Err(error) => error,
        }
    }
}

/// The length and checksum of an inflated segment.
#[derive(Clone, Copy)]
pub struct SegmentEnd {
    /// Bytes of its scanlines.
    pub len: usize,
    /// The Adler-32 of its scanlines.
    pub adler: u32,
    /// In the last segment, the Adler-32 stored for the whole stream.
    pub stated: u32,
}

/// The position of a segment in the file: one IDAT chunk.
#[derive(Clone, Copy)]
pub struct SegmentPosition {
    /// The offset of its chunk.
    pub start: u64,
    /// Whether it is the first segment, whose chunk also has zlib's header.
    pub first: bool,
    /// Whether it is the last segment, whose chunk also has the Adler-32.
    pub last: bool,
    /// Bytes of its deflate data.
    pub len: u32,
}

impl SegmentPosition {
    /// The offset after its chunk.
    pub fn end(&self) -> u64 {
        let (zlib_header, adler) = (2 * u64::from(self.first), 4 * u64::from(self.last));
        self.start + 12 + zlib_header + u64::from(self.len) + adler
    }
}

/// A stream that is being inflated.
pub struct StreamInProgress<'i, 'a> {
    pub inflater: &'i mut ScanlineInflater<'a>,
    pub buffer: &'i mut ScanlineBuffer,
    /// Bytes of scanlines that are not inflated yet.
    pub remaining: usize,
}

/// A buffer of inflated bytes: first up to 32 KiB of history that matches refer to, then the new
/// bytes.
#[derive(Default)]
pub struct ScanlineBuffer {
    bytes: Vec<u8>,
    /// The range of the new bytes.
    start: usize,
    end: usize,
}

impl ScanlineBuffer {
    /// An empty buffer for a stream of `total` bytes, with space for at least one.
    pub fn new(total: usize) -> ScanlineBuffer {
        ScanlineBuffer {
            bytes: vec![0; WINDOW + total.clamp(1, BUFFER_BYTES)],
            start: 0,
            end: 0,
        }
    }

    /// The end of the new bytes when the buffer is full, or when all `remaining` bytes are inflated.
    fn limit(&self, remaining: usize) -> usize {
        (self.start + remaining).min(self.bytes.len())
    }

    /// The bytes that were inflated after the history.
    pub fn new_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The bytes that later matches may refer to.
    fn history(&self) -> std::ops::Range<usize> {
        self.end.saturating_sub(WINDOW)..self.end
    }

    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Drops all bytes except the history.
    pub fn keep_history(&mut self) {
        let history = self.history();
        self.start = history.len();
        self.bytes.copy_within(history, 0);
        self.end = self.start;
    }

    /// Empties the buffer, and copies the history of `previous` into it.
    fn copy_history(&mut self, previous: &ScanlineBuffer) {
        let history = &previous.bytes[previous.history()];
        self.bytes[..history.len()].copy_from_slice(history);
        self.start = history.len();
        self.end = self.start;
    }
}
