//! Puts the parts of all streams in order on the host. The blocks of a stream are a chain: each starts where the one before
//! ends. The GPU found those with codes of their own, and has counted their parts from where they seem to start. The host
//! follows the chain and handles what does not fit:
//!
//! * Stored blocks, which have no symbols, are only noted.
//! * Blocks that the GPU did not find are given to it as new codes and parts.
//! * A block that continues after the next one seemed to start, which was a false start, gets new parts.
//! * A part that was counted from a wrong bit is counted again.
//!
//! Most files need none of this, and the others little of it.

use super::records::codes;
use crate::deflate::inflate::BitReader;
use crate::deflate::inflate::block_header::{Tables, read_lengths};
use crate::formats::packed::{StreamReader, Streams, Unsuited};
use crate::gpu::launch::inflate::{Codes, Part, Place as OutputPosition};
use crate::gpu::launch::inflate_symbols::SPAN;
use crate::gpu::launch::inflate_write::Stored;
use bytemuck::Zeroable;
use std::ops::Range;

/// Bits of zlib's header.
pub const HEADER_BITS: u32 = 16;

/// The most bytes of a block's header: 17 bits, 19 lengths of 3 bits, and 320 of at most 14; and some that are read ahead.
const MAX_BLOCK_HEADER_BYTES: usize = 640;

/// How often the chain is followed, with parts counted again in between.
const MAX_ROUNDS: usize = 24;

/// The most blocks that the host may add to those that the GPU found: a stream of few bytes is one block with the fixed code.
pub fn max_added_blocks(streams: &Streams) -> usize {
    256 + streams.starts.len()
}

/// The blocks found so far, in the order of the streams.
pub struct Chain<'s> {
    streams: &'s Streams,
    blocks: Vec<Block>,
    /// All parts that the GPU has counted, in its order.
    parts: Vec<Part>,
    /// For each part of a block the index in `parts` of its newest record. `Block::parts` are indices into this.
    latest: Vec<u32>,
    /// The number of codes on the GPU.
    codes: u32,
    added_blocks: usize,
    rounds: usize,
    tables: Tables,
}

/// A block with symbols.
#[derive(Clone)]
struct Block {
    /// The bit at which its header starts.
    head: u32,
    /// The bit at which its symbols start.
    data: u32,
    /// The index of its codes.
    codes: u32,
    /// The indices into `Chain::latest` of its parts.
    parts: Range<usize>,
    /// Whether its header says that it is the last of its stream.
    last: bool,
}

/// The bounds of a stream.
#[derive(Clone, Copy)]
struct StreamBounds {
    /// The bit after its last byte.
    end_bit: u32,
    /// The offset in the output of its first inflated byte.
    first_output_byte: u32,
}

/// All streams in order.
#[derive(Debug, Default)]
pub struct Inflated {
    /// The offset in the output of each part.
    pub parts: Vec<OutputPosition>,
    /// The stored blocks.
    pub stored: Vec<Stored>,
    /// Inflated bytes of all streams.
    pub bytes: u64,
    pub matches: u64,
    /// The most bytes that a part makes.
    pub largest: u32,
    /// For each stream the bit after its last block.
    pub ends: Vec<u32>,
}

/// The work of the GPU before the chain can be followed further.
#[derive(Debug, Default)]
pub struct Recount {
    /// Codes to add after those that the GPU has.
    pub codes: Vec<Codes>,
    /// Parts to add after those that the GPU has, and to count until all lanes fit together.
    pub parts: Vec<Part>,
}

/// The result of following the chain.
#[derive(Debug)]
pub enum Step {
    Done(Inflated),
    NeedsRecount(Recount),
}

fn corrupt() -> Unsuited {
    Unsuited::new("its compressed data are corrupt")
}

impl<'s> Chain<'s> {
    /// The blocks of counted parts, in the order of the streams; the GPU has `codes` codes.
    pub fn new(streams: &'s Streams, parts: Vec<Part>, codes: u32) -> Chain<'s> {
        let mut blocks: Vec<Block> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            match blocks.last_mut() {
                Some(block) if !part.is_first() => block.parts.end = index + 1,
                _ => blocks.push(Block {
                    head: part.head,
                    data: part.begin,
                    codes: part.codes,
                    parts: index..index + 1,
                    last: part.is_of_last_block(),
                }),
            }
        }
        Chain {
            streams,
            blocks,
            latest: (0..parts.len() as u32).collect(),
            parts,
            codes,
            added_blocks: 0,
            rounds: 0,
            tables: Tables::default(),
        }
    }

    /// Adds the results for the parts that `step` returned.
    pub fn add_results(&mut self, counted: Vec<Part>) {
        self.parts.extend(counted);
    }

    /// The number of parts on the GPU whose results were added.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// The number of codes on the GPU, with those that `step` returned last.
    pub fn code_count(&self) -> usize {
        self.codes as usize
    }

    /// Follows the chain of each stream to its end, or as far as it is known.
    ///
    /// # Errors
    /// The streams are corrupt, or their blocks cannot be found.
    pub fn step(&mut self, reader: StreamReader) -> Result<Step, Unsuited> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(Unsuited::new(
                "cannot find the deflate block boundaries: parts still do not fit after many rounds",
            ));
        }
        let streams = self.streams;
        let mut pass = Pass {
            kept: Vec::with_capacity(self.blocks.len()),
            chain: self,
            reader,
            next: 0,
            inflated: Inflated::default(),
            recount: Recount::default(),
        };
        for index in 0..streams.starts.len() {
            pass.follow_stream(index)?;
        }
        let Pass {
            kept,
            inflated,
            recount,
            ..
        } = pass;
        if recount.parts.is_empty() {
            return Ok(Step::Done(inflated));
        }
        self.blocks = kept;
        self.codes += recount.codes.len() as u32;
        Ok(Step::NeedsRecount(recount))
    }
}

/// One pass over the chains of all streams.
struct Pass<'c, 's> {
    chain: &'c mut Chain<'s>,
    reader: StreamReader<'c>,
    /// The index in `Chain::blocks` of the next block.
    next: usize,
    /// The blocks for the next pass.
    kept: Vec<Block>,
    /// The output, which is complete if nothing must be recounted.
    inflated: Inflated,
    recount: Recount,
}

/// A block that was passed.
struct PassedBlock {
    /// The bit after it, or the best guess if parts of it must be recounted.
    end: u32,
    /// Whether it is the last of its stream.
    last: bool,
}

/// What the parts of a block say about its end.
enum BlockEnd {
    /// The block ends at this bit.
    At(u32),
    /// The block continues after its last part.
    AfterParts,
    /// Some parts must be recounted.
    Unknown,
}

impl Pass<'_, '_> {
    /// Whether all blocks so far have known ends. Otherwise the position in the stream is a guess.
    fn is_certain(&self) -> bool {
        self.recount.parts.is_empty()
    }

    /// Follows the chain of one stream.
    fn follow_stream(&mut self, index: usize) -> Result<(), Unsuited> {
        let streams = self.chain.streams;
        let bounds = StreamBounds {
            end_bit: streams.end(index) as u32 * 8,
            first_output_byte: self.inflated.bytes as u32,
        };
        let mut at = streams.starts[index] as u32 * 8 + HEADER_BITS;
        loop {
            self.skip_false_starts(at);
            let was_certain = self.is_certain();
            match self.pass_block(at, bounds) {
                Ok(passed) => {
                    at = passed.end;
                    if passed.last {
                        break;
                    }
                }
                Err(error) if was_certain => return Err(error),
                // After a block of unknown end, a mismatch may be a false start.
                Err(_) => break,
            }
        }
        if self.is_certain() {
            if self.inflated.bytes != streams.output_end(index) as u64 {
                return Err(Unsuited::new(
                    "its inflated data have another length than its header states",
                ));
            }
        } else {
            self.keep_blocks_before(bounds.end_bit);
        }
        self.inflated.ends.push(at);
        Ok(())
    }

    /// Drops the blocks that seemed to start before bit `at`, which is inside or at the end of another block.
    fn skip_false_starts(&mut self, at: u32) {
        let blocks = &self.chain.blocks[self.next..];
        self.next += blocks.iter().take_while(|block| block.head < at).count();
    }

    /// Keeps the remaining blocks of a stream. They are checked again in the next pass; the next stream starts at a known bit.
    fn keep_blocks_before(&mut self, end_bit: u32) {
        let blocks = &self.chain.blocks[self.next..];
        let blocks = blocks.iter().take_while(|block| block.head < end_bit);
        let count = self.kept.len();
        self.kept.extend(blocks.cloned());
        self.next += self.kept.len() - count;
    }

    /// The bit at which block number `next` seems to start, or the end of the stream.
    fn start_of(&self, next: usize, bounds: StreamBounds) -> u32 {
        let block = self.chain.blocks.get(next);
        block.map_or(bounds.end_bit, |block| block.head.min(bounds.end_bit))
    }

    /// Passes the block whose header starts at bit `at`.
    fn pass_block(&mut self, at: u32, bounds: StreamBounds) -> Result<PassedBlock, Unsuited> {
        match self.chain.blocks.get(self.next) {
            Some(block) if block.head == at && at < bounds.end_bit => {
                let block = block.clone();
                self.pass_found_block(block, bounds)
            }
            _ => self.pass_missing_block(at, bounds),
        }
    }

    /// Passes the next of the blocks that are known.
    fn pass_found_block(
        &mut self,
        mut block: Block,
        bounds: StreamBounds,
    ) -> Result<PassedBlock, Unsuited> {
        let following = self.start_of(self.next + 1, bounds);
        let end = match self.follow_parts(&block, bounds)? {
            BlockEnd::At(end) => end,
            BlockEnd::Unknown => following,
            // The following block was a false start: this block reaches at least to the one after it.
            BlockEnd::AfterParts if following < bounds.end_bit => {
                self.next += 1;
                let following = self.start_of(self.next + 1, bounds);
                block.parts = self.split_into_parts(&block, following);
                following
            }
            BlockEnd::AfterParts => return Err(corrupt()),
        };
        let last = block.last;
        self.kept.push(block);
        self.next += 1;
        Ok(PassedBlock { end, last })
    }

    /// Follows the parts of a block and adds them to the output. A part that was counted from a wrong bit is recounted, and
    /// nothing is known about the parts after it.
    fn follow_parts(&mut self, block: &Block, bounds: StreamBounds) -> Result<BlockEnd, Unsuited> {
        let mut at = block.data;
        let mut known = true;
        for slot in block.parts.clone() {
            let index = self.chain.latest[slot];
            let Some(&part) = self.chain.parts.get(index as usize) else {
                return Ok(BlockEnd::Unknown);
            };
            if part.is_unsettled() || known && part.start != at {
                let start = if known { at } else { part.start };
                // The right start may be far before the wrong one, even before the range of the part.
                let begin = part.begin.min(start);
                self.chain.latest[slot] = self.next_part_index();
                self.recount.parts.push(Part {
                    begin,
                    start,
                    ..part
                });
                known = false;
                continue;
            }
            if !known {
                continue;
            }
            if part.has_invalid_code() {
                return Err(corrupt());
            }
            self.add_part(index, &part, bounds);
            at = part.stop;
            if at > bounds.end_bit {
                return Err(corrupt());
            }
            if part.has_end() {
                return Ok(BlockEnd::At(at));
            }
        }
        Ok(if known {
            BlockEnd::AfterParts
        } else {
            BlockEnd::Unknown
        })
    }

    /// Adds a part to the output.
    fn add_part(&mut self, index: u32, part: &Part, bounds: StreamBounds) {
        let inflated = &mut self.inflated;
        inflated.parts.push(OutputPosition {
            part: index,
            at: inflated.bytes as u32,
            matches: inflated.matches as u32,
            first: bounds.first_output_byte,
        });
        inflated.bytes += u64::from(part.bytes);
        inflated.largest = inflated.largest.max(part.bytes);
        inflated.matches += u64::from(part.matches());
    }

    /// The index that the next recounted part will have on the GPU.
    fn next_part_index(&self) -> u32 {
        (self.chain.parts.len() + self.recount.parts.len()) as u32
    }

    /// Splits the symbols of a block, which end before bit `bound`, into parts to be counted, and returns their indices.
    fn split_into_parts(&mut self, block: &Block, bound: u32) -> Range<usize> {
        let len = bound.saturating_sub(block.data);
        let count = len.div_ceil(SPAN).max(1);
        let part_len = len.div_ceil(count);
        let first = self.chain.latest.len();
        for k in 0..count {
            let begin = (k * part_len).min(len);
            let limit = (begin + part_len).min(len);
            // Only the start of the first part is known.
            let start = if k == 0 { block.data } else { 0 };
            let index = self.next_part_index();
            self.chain.latest.push(index);
            self.recount.parts.push(Part {
                head: block.head,
                begin: block.data + begin,
                limit: block.data + limit,
                codes: block.codes,
                start,
                ..Part::zeroed()
            });
        }
        first..self.chain.latest.len()
    }

    /// Passes the block at bit `at` that the GPU did not find: one that is stored, or whose codes it must be given.
    fn pass_missing_block(
        &mut self,
        at: u32,
        bounds: StreamBounds,
    ) -> Result<PassedBlock, Unsuited> {
        let bytes = self.reader.bytes(at as usize / 8, MAX_BLOCK_HEADER_BYTES);
        let mut input = &bytes[..];
        let mut bits = BitReader::default();
        bits.top_up(&mut input);
        if bits.count < at % 8 + 3 {
            return Err(corrupt());
        }
        bits.read_bits(at % 8);
        let last = bits.read_bits(1) == 1;
        let mut lengths = [0; 320];
        let (litlens, dists) = match bits.read_bits(2) {
            0 => {
                let end = self.pass_stored_block(at, bounds)?;
                return Ok(PassedBlock { end, last });
            }
            1 => {
                lengths[..144].fill(8);
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                lengths[280..288].fill(8);
                lengths[288..].fill(5);
                (288, 32)
            }
            2 => {
                bits.top_up(&mut input);
                let read = read_lengths(&mut bits, &mut input, &mut lengths);
                read.ok().flatten().ok_or_else(corrupt)?
            }
            _ => return Err(corrupt()),
        };
        let used = bytes.len() - input.len();
        let data = (at / 8 + used as u32) * 8 - bits.count;
        let (litlen, dist) = lengths[..litlens + dists].split_at(litlens);
        let codes = self.add_codes(at, data, litlen, dist)?;
        let mut block = Block {
            head: at,
            data,
            codes,
            parts: 0..0,
            last,
        };
        // Until its parts are counted, the block may reach to the next known one.
        let bound = self.start_of(self.next, bounds);
        block.parts = self.split_into_parts(&block, bound);
        self.kept.push(block);
        Ok(PassedBlock { end: bound, last })
    }

    /// Passes the stored block whose header starts at bit `at`, and returns the bit after it.
    fn pass_stored_block(&mut self, at: u32, bounds: StreamBounds) -> Result<u32, Unsuited> {
        let lengths = (at as usize + 3).div_ceil(8);
        let bytes = self.reader.bytes(lengths, 4);
        let &[l0, l1, n0, n1] = bytes.first_chunk().ok_or_else(corrupt)?;
        let len = u16::from_le_bytes([l0, l1]);
        if len != !u16::from_le_bytes([n0, n1]) {
            return Err(corrupt());
        }
        let data = lengths + 4;
        let end = data + usize::from(len);
        if end > bounds.end_bit as usize / 8 {
            return Err(corrupt());
        }
        if len > 0 {
            self.inflated.stored.push(Stored {
                from: data as u32,
                at: self.inflated.bytes as u32,
                len: len.into(),
                unused: 0,
            });
            self.inflated.bytes += u64::from(len);
        }
        Ok(end as u32 * 8)
    }

    /// Adds the codes of a block that the GPU did not find, and returns their index.
    fn add_codes(
        &mut self,
        head: u32,
        data: u32,
        litlen: &[u8],
        dist: &[u8],
    ) -> Result<u32, Unsuited> {
        let is_valid = self.chain.tables.set(litlen, dist).is_ok();
        if !is_valid {
            return Err(corrupt());
        }
        self.chain.added_blocks += 1;
        if self.chain.added_blocks > max_added_blocks(self.chain.streams) {
            return Err(Unsuited::new(
                "cannot find the deflate block boundaries: the GPU missed too many blocks",
            ));
        }
        let index = self.chain.codes + self.recount.codes.len() as u32;
        self.recount.codes.push(codes(head, data, litlen, dist));
        Ok(index)
    }
}
