//! The chain of each stream's blocks: each begins where the one before ends. The GPU looks for blocks
//! with a code of their own and decodes them from where they seem to begin;
//! here all is put in order. Stored blocks are passed; blocks of other kinds that lie between, and
//! those that turn out longer because the next was a false start, are given to the GPU once more, as
//! are parts that began at a wrong bit. None of this happens to most files, and little to others.

use super::records::codes;
use crate::deflate::inflate::BitReader;
use crate::deflate::inflate::block_header::{Tables, read_lengths};
use crate::formats::packed::{Stream, Streams, Unsuited};
use crate::gpu::launch::inflate::{Codes, Part, Place};
use crate::gpu::launch::inflate_symbols::SPAN;
use crate::gpu::launch::inflate_write::Stored;
use bytemuck::Zeroable;
use std::ops::Range;

/// Bits of zlib's header.
pub const HEADER: u32 = 16;

/// Bytes of a block's header, at most: 17 bits, 19 lengths of 3 bits, and 320 of at most 14, and what is read ahead.
const BLOCK_HEADER: usize = 640;

/// How often the GPU may be asked again.
const ROUNDS: usize = 24;

/// For how many blocks that the GPU did not find it may be asked: a stream of few bytes is one block with the fixed code.
pub fn most_extra(streams: &Streams) -> usize {
    256 + streams.begins.len()
}

/// The blocks found so far, in the order of the streams.
pub struct Chain<'s> {
    streams: &'s Streams,
    blocks: Vec<Block>,
    /// All parts ever made, as on the GPU; `latest` says which of them a block's parts are now.
    parts: Vec<Part>,
    latest: Vec<u32>,
    /// Codes on the GPU.
    codes: u32,
    extra: usize,
    rounds: usize,
    tables: Tables,
}

/// Where a stream lies.
#[derive(Clone, Copy)]
struct Within {
    /// The bit behind its last byte.
    end: u32,
    /// The byte at which what it makes begins.
    first: u32,
}

#[derive(Clone)]
struct Block {
    head: u32,
    /// Where its symbols begin.
    data: u32,
    codes: u32,
    /// Of `latest`.
    parts: Range<usize>,
    /// Whether it is its stream's last, which its header says.
    last: bool,
}

/// What the streams consist of, in their order, with the byte at which each begins of what they make.
#[derive(Debug, Default)]
pub struct Inflated {
    pub parts: Vec<Place>,
    pub stored: Vec<Stored>,
    pub bytes: u64,
    pub matches: u64,
    /// Bytes of the part that makes most.
    pub largest: u32,
    /// Of each stream, the bit behind its last block.
    pub ends: Vec<u32>,
}

/// What the GPU is to do before the chain can be followed further: codes and parts for it, behind
/// those that it has, to be counted with as many rounds as lanes.
#[derive(Default)]
pub struct Again {
    pub codes: Vec<Codes>,
    pub parts: Vec<Part>,
}

pub enum Step {
    Done(Inflated),
    Again(Again),
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
                    last: part.is_of_last(),
                }),
            }
        }
        Chain {
            streams,
            blocks,
            latest: (0..parts.len() as u32).collect(),
            parts,
            codes,
            extra: 0,
            rounds: 0,
            tables: Tables::default(),
        }
    }

    /// Takes the results for the parts that `step` asked for.
    pub fn take(&mut self, counted: impl Iterator<Item = Part>) {
        self.parts.extend(counted);
    }

    /// Parts on the GPU so far.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Follows the chain of each stream to its end, or as far as can be known.
    pub fn step(&mut self, stream: Stream) -> Result<Step, Unsuited> {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return Err(Unsuited::new("cannot find the deflate block boundaries"));
        }
        let (mut again, mut found) = (Again::default(), Inflated::default());
        let mut true_blocks = Vec::with_capacity(self.blocks.len());
        let mut next = 0;
        for (index, &begin) in self.streams.begins.iter().enumerate() {
            let within = Within {
                end: self.streams.end(index) as u32 * 8,
                first: found.bytes as u32,
            };
            let mut at = begin as u32 * 8 + HEADER;
            let known = loop {
                // What begins inside another block was a false start.
                while self.blocks.get(next).is_some_and(|block| block.head < at) {
                    next += 1;
                }
                // Behind a block whose end is not known, what does not fit may be a false start too.
                let certain = again.parts.is_empty();
                let last;
                let is_known = |block: &&Block| block.head == at && at < within.end;
                if let Some(block) = self.blocks.get(next).filter(is_known) {
                    let mut block = block.clone();
                    last = block.last;
                    let goes_on = self.bound(next + 1, within) < within.end;
                    match self.follow(&block, within, &mut again, &mut found) {
                        Ok(Followed::End(end)) => at = end,
                        // It goes on beyond where the next seemed to begin.
                        Ok(Followed::Further) if goes_on => {
                            next += 1;
                            let bound = self.bound(next + 1, within);
                            block.parts = self.cut(&mut again, &block, bound);
                            at = bound;
                        }
                        Ok(Followed::Unknown) => at = self.bound(next + 1, within),
                        Ok(Followed::Further) if certain => return Err(corrupt()),
                        Err(error) if certain => return Err(error),
                        _ => break false,
                    }
                    true_blocks.push(block);
                    next += 1;
                } else {
                    let bound = self.bound(next, within);
                    match self.between(stream, (at, bound), within, &mut again, &mut found) {
                        Ok(Between::Stored { end, last: of_all }) => (at, last) = (end, of_all),
                        Ok(Between::Block(block)) => {
                            last = block.last;
                            true_blocks.push(block);
                            // Its own end is what comes next.
                            at = bound;
                        }
                        Err(error) if certain => return Err(error),
                        Err(_) => break false,
                    }
                }
                if last {
                    break again.parts.is_empty();
                }
            };
            if known && found.bytes != self.streams.made(index) as u64 {
                return Err(Unsuited::new(
                    "its data have another length than its header says",
                ));
            }
            found.ends.push(at);
            // The blocks behind a place that is not certain are kept, up to the next stream, which begins where it is known to.
            let here = |block: &&Block| !known && block.head < within.end;
            while let Some(block) = self.blocks.get(next).filter(here) {
                true_blocks.push(block.clone());
                next += 1;
            }
        }
        if !again.parts.is_empty() {
            self.blocks = true_blocks;
            self.codes += again.codes.len() as u32;
            return Ok(Step::Again(again));
        }
        Ok(Step::Done(found))
    }

    /// Where the next block of a stream seems to begin, or the stream's end.
    fn bound(&self, next: usize, within: Within) -> u32 {
        let block = self.blocks.get(next);
        block.map_or(within.end, |block| block.head.min(within.end))
    }

    /// Follows a block through its parts; what began at a wrong bit is to be counted again.
    fn follow(
        &mut self,
        block: &Block,
        within: Within,
        again: &mut Again,
        found: &mut Inflated,
    ) -> Result<Followed, Unsuited> {
        let mut at = block.data;
        let mut known = true;
        for place in block.parts.clone() {
            let index = self.latest[place];
            let Some(&part) = self.parts.get(index as usize) else {
                return Ok(Followed::Unknown);
            };
            if part.is_unsettled() || known && part.start != at {
                let start = match known {
                    true => at,
                    false => part.start,
                };
                // A wrong start may lie far from the true one, behind which the part may begin.
                let begin = part.begin.min(start);
                let new = Part {
                    begin,
                    start,
                    ..part
                };
                self.latest[place] = (self.parts.len() + again.parts.len()) as u32;
                again.parts.push(new);
                known = false;
                continue;
            }
            if !known {
                continue;
            }
            if part.is_bad() {
                return Err(corrupt());
            }
            let [at_byte, matches] = [found.bytes, found.matches].map(|count| count as u32);
            found.parts.push(Place {
                part: index,
                at: at_byte,
                matches,
                first: within.first,
            });
            found.bytes += u64::from(part.bytes);
            found.largest = found.largest.max(part.bytes);
            found.matches += u64::from(part.matches());
            at = part.stop;
            if at > within.end {
                return Err(corrupt());
            }
            if part.has_end() {
                return Ok(Followed::End(at));
            }
        }
        Ok(if known {
            Followed::Further
        } else {
            Followed::Unknown
        })
    }

    /// Parts for a block whose symbols lie before `bound`.
    fn cut(&mut self, again: &mut Again, block: &Block, bound: u32) -> Range<usize> {
        let len = bound.saturating_sub(block.data);
        let count = len.div_ceil(SPAN).max(1);
        let step = len.div_ceil(count);
        let from = self.latest.len();
        for k in 0..count {
            let begin = (k * step).min(len);
            let limit = (begin + step).min(len);
            let start = if k == 0 { block.data } else { 0 };
            self.latest
                .push((self.parts.len() + again.parts.len()) as u32);
            again.parts.push(Part {
                head: block.head,
                begin: block.data + begin,
                limit: block.data + limit,
                codes: block.codes,
                start,
                ..Part::zeroed()
            });
        }
        from..self.latest.len()
    }

    /// Passes a stored block at a bit, or makes a block that the GPU did not find known to it.
    fn between(
        &mut self,
        stream: Stream,
        (at, bound): (u32, u32),
        within: Within,
        again: &mut Again,
        found: &mut Inflated,
    ) -> Result<Between, Unsuited> {
        let window = stream.bytes(at as usize / 8, BLOCK_HEADER);
        let mut input = &window[..];
        let all = input.len();
        let mut bits = BitReader::default();
        bits.top_up(&mut input);
        if bits.count < at % 8 + 3 {
            return Err(corrupt());
        }
        let last = bits.take(at % 8 + 1) >> (at % 8) != 0;
        let kind = bits.take(2);
        if kind == 0 {
            let from = (at as usize + 3).div_ceil(8);
            let head = stream.bytes(from, 4);
            let &[l0, l1, n0, n1] = head.first_chunk().ok_or_else(corrupt)?;
            let len = u16::from_le_bytes([l0, l1]);
            if len != !u16::from_le_bytes([n0, n1]) {
                return Err(corrupt());
            }
            let end = from + 4 + usize::from(len);
            if end > within.end as usize / 8 {
                return Err(corrupt());
            }
            if len > 0 {
                found.stored.push(Stored {
                    from: from as u32 + 4,
                    at: found.bytes as u32,
                    len: len.into(),
                    unused: 0,
                });
                found.bytes += u64::from(len);
            }
            let end = end as u32 * 8;
            return Ok(Between::Stored { end, last });
        }
        let (mut lengths, mut litlens, mut dists) = ([0; 320], 288, 32);
        match kind {
            1 => {
                lengths[..144].fill(8);
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                lengths[280..288].fill(8);
                lengths[288..].fill(5);
            }
            2 => {
                bits.top_up(&mut input);
                let read = read_lengths(&mut bits, &mut input, &mut lengths);
                (litlens, dists) = read.ok().flatten().ok_or_else(corrupt)?;
            }
            _ => return Err(corrupt()),
        }
        let (litlen, dist) = lengths[..litlens + dists].split_at(litlens);
        self.tables.set(litlen, dist).map_err(|_| corrupt())?;
        self.extra += 1;
        if self.extra > most_extra(self.streams) {
            return Err(Unsuited::new("cannot find the deflate block boundaries"));
        }
        let data = match kind {
            1 => at + 3,
            _ => {
                let used = all - input.len();
                (at / 8 + used as u32) * 8 - bits.count
            }
        };
        let index = self.codes + again.codes.len() as u32;
        again.codes.push(codes(at, data, litlen, dist));
        let mut block = Block {
            head: at,
            data,
            codes: index,
            parts: 0..0,
            last,
        };
        block.parts = self.cut(again, &block, bound);
        Ok(Between::Block(block))
    }
}

/// Where a block leads.
enum Followed {
    /// It ends at this bit.
    End(u32),
    /// It has no end where it was thought to be over.
    Further,
    /// Some of its parts must be counted again.
    Unknown,
}

/// What was found where no block was known.
enum Between {
    /// A stored block that ends at this bit; whether it is its stream's last.
    Stored {
        end: u32,
        last: bool,
    },
    Block(Block),
}
