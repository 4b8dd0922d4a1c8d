//! Inflates the image data, a zlib stream in IDAT chunks (PNG specification, section 10), to filtered
//! scanlines.

use super::data::ImageData;
use crate::deflate::WINDOW;
use crate::deflate::inflate::parallel::Input;
use crate::deflate::inflate::{BitReader, Fault, Inflater, Step, Stream, read_both};
use crate::deflate::zlib::is_zlib;
use anyhow::{Context, Result, anyhow, bail, ensure};
use simd_adler32::Adler32;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Bytes inflated at a time: a fraction of an L2 cache.
const BLOCK: usize = 256 << 10;

/// Buffers shared by two threads: one being filled, one being consumed, one waiting.
const BLOCKS: usize = 3;

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
    pub fn each(mut self, total: usize, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.header()?;
        let mut block = ScanlineBuffer::new(total);
        let mut left = total;
        while left > 0 {
            left -= self.next(&mut block, left)?;
            take(block.fresh())?;
            block.keep_history();
        }
        self.finish(block)
    }

    /// As `each`, with `take` on a second thread, in parallel with the inflation.
    pub fn each_apart(
        mut self,
        total: usize,
        mut take: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        self.header()?;
        thread::scope(|scope| {
            let (full, inflated) = sync_channel::<ScanlineBuffer>(BLOCKS);
            let (used, empty) = sync_channel::<ScanlineBuffer>(BLOCKS);
            let consumer = thread::Builder::new()
                .spawn_scoped(scope, move || {
                    inflated.iter().try_for_each(|block| {
                        take(block.fresh())?;
                        // The inflating thread may have finished already.
                        let _ = used.send(block);
                        Ok(())
                    })
                })
                .context("no thread could be started")?;
            let mut fresh = BLOCKS - 1;
            let mut block = ScanlineBuffer::new(total);
            let mut left = total;
            let mut produce = || -> Result<Option<ScanlineBuffer>> {
                while left > 0 {
                    left -= self.next(&mut block, left)?;
                    let mut next = if fresh > 0 {
                        fresh -= 1;
                        ScanlineBuffer::new(total)
                    } else {
                        match empty.recv() {
                            Ok(block) => block,
                            Err(_) => return Ok(None),
                        }
                    };
                    next.follow(&block);
                    if full.send(std::mem::replace(&mut block, next)).is_err() {
                        return Ok(None);
                    }
                }
                Ok(Some(std::mem::take(&mut block)))
            };
            let produced = produce();
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

    /// Opens the segment whose chunk starts at offset `start` of the file. No match refers to bytes
    /// before a segment. The first segment also has zlib's header, the last the Adler-32 of the
    /// whole stream.
    pub fn open_segment(&mut self, start: u64, place: SegmentPlace) -> Result<()> {
        let chunk = self.data.open_alone(start)?;
        ensure!(
            &chunk.kind == b"IDAT" && chunk.end() - start == place.chunk_len(),
            "{chunk} is not the segment that the index promises"
        );
        self.inflate.restart(BitReader::default());
        self.adler = Adler32::new();
        if place.first {
            self.header()?;
        }
        Ok(())
    }

    /// Checks that a segment of `len` bytes ends at the end of a deflate block and of a byte, so
    /// that the segments inflate to the same bytes as the whole stream.
    pub fn close_segment(
        &mut self,
        place: SegmentPlace,
        len: usize,
        block: &mut ScanlineBuffer,
    ) -> Result<SegmentEnd> {
        let end = self.fill(&mut block.bytes, block.start)?;
        let ended = self.inflate.between_blocks() && self.inflate.is_done() == place.last;
        let stated = match ended && place.last {
            true => self.trailer()?,
            false => 0,
        };
        ensure!(
            ended
                && end == block.start
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

    /// Inflates two streams alternately, as far as both have data, so that `next` has less to do.
    /// The number beside each buffer is how many bytes of that stream remain.
    pub fn ahead(pair: [(&mut ScanlineInflater, &mut ScanlineBuffer, usize); 2]) -> Result<()> {
        let [(one, a, a_left), (two, b, b_left)] = pair;
        let rooms = [a.room(a_left), b.room(b_left)];
        let is_over =
            |inflater: &ScanlineInflater, end, room| end == room || inflater.inflate.is_done();
        while !is_over(one, a.end, rooms[0]) && !is_over(two, b.end, rooms[1]) {
            let inputs = [one.data.peek()?, two.data.peek()?];
            let [one_step, two_step] = read_both([
                Stream {
                    inflate: &mut one.inflate,
                    input: inputs[0],
                    output: &mut a.bytes[..rooms[0]],
                    from: a.end,
                },
                Stream {
                    inflate: &mut two.inflate,
                    input: inputs[1],
                    output: &mut b.bytes[..rooms[1]],
                    from: b.end,
                },
            ]);
            // Which of the two failed does not matter: the stream is then read again without the
            // index.
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

    /// Inflates up to `left` more bytes into the buffer; returns their number.
    pub fn next(&mut self, block: &mut ScanlineBuffer, left: usize) -> Result<usize> {
        let room = block.room(left);
        block.end = self.fill(&mut block.bytes[..room], block.end)?;
        let count = block.fresh().len();
        if block.end < room {
            let missing = left - count;
            bail!(self.fault(&format!("it ends {missing} bytes of image too early")));
        }
        self.adler.write(block.fresh());
        Ok(count)
    }

    /// Inflates into `buffer[from..]`; the bytes before `from` are the history. Returns the end of
    /// the output, which is before the buffer's end only if the stream or the image data ended.
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
    fn finish(mut self, mut block: ScanlineBuffer) -> Result<()> {
        let end = self.fill(&mut block.bytes, block.start)?;
        if end > block.start {
            bail!(self.fault("it holds more than the image"));
        }
        if !self.inflate.is_done() {
            bail!(self.fault("its last block is missing"));
        }
        let stated = self.trailer()?;
        // CRCs first: a wrong CRC describes the damage better.
        self.data.finish()?;
        ensure!(
            stated == self.adler.finish(),
            "wrong Adler-32: the image data are damaged"
        );
        Ok(())
    }

    /// Reads the header of the zlib stream (RFC 1950 §2.2).
    fn header(&mut self) -> Result<()> {
        let head = [self.byte()?, self.byte()?];
        if !is_zlib(&head) {
            bail!(self.fault("not a zlib stream"));
        }
        Ok(())
    }

    /// Reads the Adler-32 after the last block. Later bytes in the same chunk are ignored.
    fn trailer(&mut self) -> Result<u32> {
        let mut bits = self.inflate.rest();
        bits.align();
        let mut sum = 0;
        for _ in 0..4 {
            let byte = match bits.count {
                0 => self.byte()?,
                _ => bits.take(8) as u8,
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

    /// The error for a fault in the stream. If the chunk's CRC is wrong too, the CRC is named as
    /// the cause.
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

/// The position of a segment in the stream, and the length of its deflate data in bytes.
#[derive(Clone, Copy)]
pub struct SegmentPlace {
    pub first: bool,
    pub last: bool,
    pub len: u32,
}

impl SegmentPlace {
    /// Bytes of its IDAT chunk.
    pub fn chunk_len(&self) -> u64 {
        12 + 2 * u64::from(self.first) + u64::from(self.len) + self.trailer()
    }

    /// Bytes of the Adler-32.
    fn trailer(&self) -> u64 {
        4 * u64::from(self.last)
    }
}

/// A buffer of inflated bytes: first up to 32 KiB of history that matches refer to, then the new
/// bytes.
#[derive(Default)]
pub struct ScanlineBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ScanlineBuffer {
    /// An empty buffer for a stream of `total` bytes, with space for at least one.
    pub fn new(total: usize) -> ScanlineBuffer {
        ScanlineBuffer {
            bytes: vec![0; WINDOW + total.clamp(1, BLOCK)],
            start: 0,
            end: 0,
        }
    }

    /// The end of the new bytes if up to `left` bytes are inflated.
    fn room(&self, left: usize) -> usize {
        (self.start + left).min(self.bytes.len())
    }

    pub fn fresh(&self) -> &[u8] {
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

    /// Makes this buffer the empty successor of `last`, with the same history.
    fn follow(&mut self, last: &ScanlineBuffer) {
        let history = &last.bytes[last.history()];
        self.bytes[..history.len()].copy_from_slice(history);
        self.start = history.len();
        self.end = self.start;
    }
}
