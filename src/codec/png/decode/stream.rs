//! The zlib stream of the image data (RFC 1950) to scanlines, block by block.

use super::data::ImageData;
use crate::deflate::WINDOW;
use crate::deflate::inflate::parallel::Input;
use crate::deflate::inflate::{BitReader, Fault, Inflate, Step, Stream, read_both};
use crate::deflate::zlib::is_zlib;
use anyhow::{Context, Result, anyhow, bail, ensure};
use simd_adler32::Adler32;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Bytes inflated at a time: a part of a level 2 cache.
const BLOCK: usize = 256 << 10;

/// Blocks on their way between two threads: one inflated, one consumed, one waiting.
const BLOCKS: usize = 3;

/// Turns compressed image data into scanlines.
pub struct Inflater<'a> {
    data: ImageData<'a>,
    inflate: Inflate,
    adler: Adler32,
}

impl<'a> Inflater<'a> {
    /// An inflater at the start of `data`.
    pub fn new(data: ImageData<'a>) -> Inflater<'a> {
        Inflater {
            data,
            inflate: Inflate::default(),
            adler: Adler32::new(),
        }
    }

    /// Inflates exactly `total` bytes and hands them to `take` in order, in pieces of any size;
    /// then checks that the stream and the file end as they should.
    pub fn each(mut self, total: usize, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.header()?;
        let mut block = Block::new(total);
        let mut left = total;
        while left > 0 {
            left -= self.next(&mut block, left)?;
            take(block.fresh())?;
            block.keep_history();
        }
        self.finish(block)
    }

    /// As `each`, with `take` on a thread of its own, so that it works while this one inflates.
    pub fn each_apart(
        mut self,
        total: usize,
        mut take: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        self.header()?;
        thread::scope(|scope| {
            let (full, inflated) = sync_channel::<Block>(BLOCKS);
            let (used, empty) = sync_channel::<Block>(BLOCKS);
            let consumer = thread::Builder::new()
                .spawn_scoped(scope, move || {
                    inflated.iter().try_for_each(|block| {
                        take(block.fresh())?;
                        // The inflating thread may have all it needs and be gone.
                        let _ = used.send(block);
                        Ok(())
                    })
                })
                .context("no thread could be started")?;
            let mut fresh = BLOCKS - 1;
            let mut block = Block::new(total);
            let mut left = total;
            let mut produce = || -> Result<Option<Block>> {
                while left > 0 {
                    left -= self.next(&mut block, left)?;
                    let mut next = if fresh > 0 {
                        fresh -= 1;
                        Block::new(total)
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
            // An error of the stream comes before what the rows suffer from it.
            let last = produced?;
            consumed?;
            self.finish(last.context("the image data were not consumed")?)
        })
    }

    /// Starts one segment of a stream, from the one chunk at byte `start`. It refers to nothing
    /// before itself. The first segment also has zlib's header, the last also the Adler-32 of all.
    pub fn open_segment(&mut self, start: u64, place: Place) -> Result<()> {
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

    /// Checks that a segment of `len` bytes is over: it ends where a block and a byte end, so that
    /// all segments in a row mean the same as each by itself.
    pub fn close_segment(&mut self, place: Place, len: usize, block: &mut Block) -> Result<Part> {
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
        Ok(Part {
            len,
            adler: self.adler.finish(),
            stated,
        })
    }

    /// Inflates two streams at once, as far as they go together, of what `next` would; `rooms` are
    /// what is left of each.
    pub fn ahead(pair: [(&mut Inflater, &mut Block, usize); 2]) -> Result<()> {
        let [(one, a, a_left), (two, b, b_left)] = pair;
        let rooms = [a.room(a_left), b.room(b_left)];
        let is_over = |inflater: &Inflater, end, room| end == room || inflater.inflate.is_done();
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
            // Whose fault it is does not matter: without the index the stream is read again.
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

    /// Inflates up to `left` more bytes into the block; says how many.
    pub fn next(&mut self, block: &mut Block, left: usize) -> Result<usize> {
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

    /// Fills `buffer` from `from` on, before which stands what was inflated last; says up to where.
    /// It is filled fully unless the stream or the data end.
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

    /// Checks that nothing but the end of the stream follows, its Adler-32, and the file's end.
    fn finish(mut self, mut block: Block) -> Result<()> {
        let end = self.fill(&mut block.bytes, block.start)?;
        if end > block.start {
            bail!(self.fault("it holds more than the image"));
        }
        if !self.inflate.is_done() {
            bail!(self.fault("its last block is missing"));
        }
        let stated = self.trailer()?;
        // CRCs come first: a bad one tells more.
        self.data.finish()?;
        ensure!(
            stated == self.adler.finish(),
            "wrong Adler-32: the image data are damaged"
        );
        Ok(())
    }

    /// Reads zlib's header.
    fn header(&mut self) -> Result<()> {
        let head = [self.byte()?, self.byte()?];
        if !is_zlib(&head) {
            bail!(self.fault("not a zlib stream"));
        }
        Ok(())
    }

    /// The Adler-32 after the last block. What follows it in the same chunk does not matter.
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

    /// The next byte, between deflate's blocks.
    fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.data.peek()?.first() else {
            bail!(self.fault("it ends too early"));
        };
        self.data.consume(1)?;
        Ok(byte)
    }

    /// The error for a fault found in the stream. If the chunk's CRC is bad too, that is the cause.
    fn fault(&mut self, fault: &str) -> anyhow::Error {
        let at = self.data.position();
        match self.data.check_chunk() {
            Ok(()) => anyhow!("corrupt compressed data before byte {at}: {fault}"),
            Err(error) => error,
        }
    }
}

/// What a segment turned out to be.
#[derive(Clone, Copy)]
pub struct Part {
    /// Bytes of its scanlines.
    pub len: usize,
    /// Their Adler-32.
    pub adler: u32,
    /// In the last segment, the Adler-32 of all.
    pub stated: u32,
}

/// Where a segment stands among the others, and the bytes of its deflate data.
#[derive(Clone, Copy)]
pub struct Place {
    pub first: bool,
    pub last: bool,
    pub len: u32,
}

impl Place {
    /// Bytes of its IDAT chunk.
    pub fn chunk_len(&self) -> u64 {
        12 + 2 * u64::from(self.first) + u64::from(self.len) + self.trailer()
    }

    /// Bytes of the Adler-32.
    fn trailer(&self) -> u64 {
        4 * u64::from(self.last)
    }
}

/// A buffer of inflated bytes: some that were there before, then the fresh ones.
#[derive(Default)]
pub struct Block {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Block {
    /// An empty block for a stream of `total` bytes, with room for at least one.
    pub fn new(total: usize) -> Block {
        Block {
            bytes: vec![0; WINDOW + total.clamp(1, BLOCK)],
            start: 0,
            end: 0,
        }
    }

    /// Where it ends when it is as full as it can be of `left` bytes.
    fn room(&self, left: usize) -> usize {
        (self.start + left).min(self.bytes.len())
    }

    pub fn fresh(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// What the next block may refer to.
    fn history(&self) -> std::ops::Range<usize> {
        self.end.saturating_sub(WINDOW)..self.end
    }

    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Empties the block but for its history.
    pub fn keep_history(&mut self) {
        let history = self.history();
        self.start = history.len();
        self.bytes.copy_within(history, 0);
        self.end = self.start;
    }

    /// Makes this the empty block after `last`.
    fn follow(&mut self, last: &Block) {
        let history = &last.bytes[last.history()];
        self.bytes[..history.len()].copy_from_slice(history);
        self.start = history.len();
        self.end = self.start;
    }
}
