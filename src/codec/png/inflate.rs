//! The zlib stream of the image data (RFC 1950, RFC 1951) to scanlines, block by block.

use super::data::ImageData;
use anyhow::{Context, Result, anyhow, bail, ensure};
use fdeflate::{DecompressionError, Decompressor};
use std::sync::mpsc::sync_channel;
use std::thread;

/// How far back a deflate stream refers; so much is kept before each block.
const HISTORY: usize = 32 << 10;

/// Bytes inflated at a time: a part of a level 2 cache.
const BLOCK: usize = 256 << 10;

/// Blocks on their way between two threads: one inflated, one consumed, one waiting.
const BLOCKS: usize = 3;

/// Turns compressed image data into scanlines.
pub struct Inflater<'a> {
    data: ImageData<'a>,
    decompressor: Decompressor,
}

impl<'a> Inflater<'a> {
    /// An inflater at the start of `data`.
    pub fn new(data: ImageData<'a>) -> Inflater<'a> {
        Inflater {
            data,
            decompressor: Decompressor::new(),
        }
    }

    /// Inflates one segment of a stream, which is `total` bytes and refers to nothing before
    /// itself, from the one chunk at byte `start`; `take` gets them in order. The first segment
    /// also has zlib's header, the last also an Adler-32, which is not compared but given back.
    pub fn segment(
        &mut self,
        start: u64,
        place: Place,
        total: usize,
        block: &mut Block,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u32> {
        let chunk = self.data.open_alone(start)?;
        ensure!(
            &chunk.kind == b"IDAT" && chunk.end() - start == place.chunk_len(),
            "{chunk} is not the segment that the index promises"
        );
        self.decompressor = Decompressor::new();
        self.decompressor.ignore_adler32();
        if !place.first {
            let header = [0x78, 0x01];
            self.decompressor
                .read(&header, &mut [], 0, false)
                .map_err(|error| anyhow!(plain(error, start)))?;
        }
        block.clear();
        let mut left = total;
        while left > 0 {
            left -= self.next(block, left)?;
            take(block.fresh())?;
            block.keep_history();
        }
        // What is left of the data makes no more bytes and ends with the end of an empty stored
        // block, so that the next segment starts at a byte.
        loop {
            let input = self.data.peek()?;
            if input.is_empty() {
                break;
            }
            let read = self
                .decompressor
                .read(input, &mut block.bytes, block.start, false);
            match read {
                Ok((used, 0)) if used > 0 => self.data.consume(used)?,
                _ => bail!("{chunk} holds more than its segment"),
            }
        }
        let end = chunk.end() - 4 - place.trailer();
        ensure!(
            self.decompressor.is_done() == place.last && self.data.word(end - 4)? == 0xFFFF,
            "{chunk} does not end with its segment"
        );
        self.data.word(end)
    }

    /// Fills `buffer` from `from` on, before which stands what was inflated last; says up to where.
    /// It is filled fully unless the stream ends.
    fn fill(&mut self, buffer: &mut [u8], from: usize) -> Result<usize> {
        let mut end = from;
        while end < buffer.len() && !self.decompressor.is_done() {
            let input = self.data.peek()?;
            let no_more = input.is_empty();
            match self.decompressor.read(input, buffer, end, no_more) {
                Ok((_, 0)) if no_more && !self.decompressor.is_done() => {
                    bail!(early(self.data.position()))
                }
                Ok((used, made)) => {
                    self.data.consume(used)?;
                    end += made;
                }
                Err(error) => {
                    self.data.check_chunk()?;
                    bail!(plain(error, self.data.position()));
                }
            }
        }
        Ok(end)
    }

    /// Inflates exactly `total` bytes and hands them to `take` in order, in pieces of any size;
    /// then checks that the stream and the file end as they should.
    pub fn each(mut self, total: usize, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
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

    /// Inflates up to `left` more bytes into the block; says how many.
    fn next(&mut self, block: &mut Block, left: usize) -> Result<usize> {
        let room = (block.start + left).min(block.bytes.len());
        block.end = self.fill(&mut block.bytes[..room], block.start)?;
        ensure!(
            block.end == room,
            "the image data end {} bytes too early, at byte {}",
            left - block.fresh().len(),
            self.data.position()
        );
        Ok(block.fresh().len())
    }

    /// Checks that nothing but the end of the stream follows, its Adler-32, and the file's end.
    fn finish(mut self, mut block: Block) -> Result<()> {
        let end = self.fill(&mut block.bytes, block.start)?;
        ensure!(
            end == block.start && self.decompressor.is_done(),
            "the image data hold more than the image"
        );
        self.data.finish()
    }
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
            bytes: vec![0; HISTORY + total.clamp(1, BLOCK)],
            start: 0,
            end: 0,
        }
    }

    fn fresh(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// What the next block may refer to.
    fn history(&self) -> std::ops::Range<usize> {
        self.end.saturating_sub(HISTORY)..self.end
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Empties the block but for its history.
    fn keep_history(&mut self) {
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

fn early(at: u64) -> String {
    format!("the compressed data end too early, at byte {at}")
}

fn plain(error: DecompressionError, at: u64) -> String {
    use DecompressionError::*;
    let what = match error {
        InsufficientInput => return early(at),
        WrongChecksum => return "wrong Adler-32: the image data are damaged".into(),
        BadZlibHeader => "not a zlib stream",
        InvalidBlockType => "a block of unknown type",
        InvalidUncompressedBlockLength => "a stored block whose length is damaged",
        DistanceTooFarBack | InputStartsWithRun => "a reference to before the start",
        ExtraInput => "bytes after the end",
        InvalidHlit
        | InvalidHdist
        | InvalidCodeLengthRepeat
        | BadCodeLengthHuffmanTree
        | BadLiteralLengthHuffmanTree
        | BadDistanceHuffmanTree => "an impossible Huffman code",
        InvalidLiteralLengthCode | InvalidDistanceCode => "an unknown Huffman code word",
    };
    format!("corrupt compressed data before byte {at}: {what}")
}
