//! The chain of a stream's blocks: each begins where the one before ends. The GPU looks for blocks
//! with a code of their own that are not the last and decodes them from where they seem to begin;
//! here all is put in order. Stored blocks are passed; blocks of other kinds that lie between, and
//! those that turn out longer because the next was a false start, are given to the GPU once more, as
//! are parts that began at a wrong bit. None of this happens to most files, and little to others.

use super::records::{CODES_WORDS, Part, Place, Stored, codes};
use crate::codec::packed::{Stream, Unsuited};
use crate::deflate::inflate::BitReader;
use crate::deflate::inflate::block_header::{Tables, read_lengths};
use std::ops::Range;

/// The bit after zlib's header.
pub const FIRST: u32 = 16;

/// Bits of the longest part, as in kernels/png_inflate.cu.
pub const SPAN: u32 = 96 << 10;

/// Bytes of a block's header, at most: 17 bits, 19 lengths of 3 bits, and 320 of at most 14, and what is read ahead.
const HEADER: usize = 640;

/// How often the GPU may be asked again, and for how many blocks that it did not find.
const ROUNDS: usize = 24;
pub const MOST_EXTRA: usize = 256;

/// The blocks found so far, in the order of the stream.
pub struct Chain {
    /// Bits of the stream.
    bits: u32,
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

#[derive(Clone)]
struct Block {
    head: u32,
    /// Where its symbols begin.
    data: u32,
    codes: u32,
    /// Of `latest`.
    parts: Range<usize>,
}

/// What the stream consists of, in its order, with the byte of the image at which each begins.
#[derive(Debug, Default)]
pub struct Inflated {
    pub parts: Vec<Place>,
    pub stored: Vec<Stored>,
    pub bytes: u64,
    pub matches: u64,
    /// Bytes of the part that makes most.
    pub largest: u32,
    /// Behind the last block.
    pub end: u32,
}

/// What the GPU is to do before the chain can be followed further: codes and parts for it, behind
/// those that it has, to be counted with as many rounds as lanes.
#[derive(Default)]
pub struct Again {
    pub codes: Vec<[u32; CODES_WORDS]>,
    pub parts: Vec<Part>,
}

pub enum Step {
    Done(Inflated),
    Again(Again),
}

fn corrupt() -> Unsuited {
    Unsuited::new("its compressed data are corrupt")
}

impl Chain {
    /// The blocks of counted parts, in the order of a stream of `bits`; the GPU has `codes` codes.
    pub fn new(bits: u32, parts: Vec<Part>, codes: u32) -> Chain {
        let mut blocks: Vec<Block> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            match blocks.last_mut() {
                Some(block) if !part.is_first() => block.parts.end = index + 1,
                _ => blocks.push(Block {
                    head: part.head,
                    data: part.begin,
                    codes: part.codes,
                    parts: index..index + 1,
                }),
            }
        }
        Chain {
            bits,
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

    /// Follows the chain to its end, or as far as can be known.
    pub fn step(&mut self, stream: Stream) -> Result<Step, Unsuited> {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return Err(Unsuited::new("its blocks do not tell where they begin"));
        }
        let (mut again, mut found) = (Again::default(), Inflated::default());
        let mut true_blocks = Vec::with_capacity(self.blocks.len());
        let (mut at, mut next) = (FIRST, 0);
        loop {
            // What begins inside another block was a false start.
            while self.blocks.get(next).is_some_and(|block| block.head < at) {
                next += 1;
            }
            // Behind a block whose end is not known, what does not fit may be a false start too.
            let certain = again.parts.is_empty();
            let last = is_last(stream, at);
            if self.blocks.get(next).is_some_and(|block| block.head == at) {
                let mut block = self.blocks[next].clone();
                match self.follow(&block, &mut again, &mut found) {
                    Ok(Followed::End(end)) => at = end,
                    // It goes on beyond where the next seemed to begin.
                    Ok(Followed::Further) if next + 1 < self.blocks.len() => {
                        next += 1;
                        let bound = self.bound(next + 1);
                        block.parts = self.cut(&mut again, &block, bound);
                        at = bound;
                    }
                    Ok(Followed::Unknown) => at = self.bound(next + 1),
                    Ok(Followed::Further) if certain => return Err(corrupt()),
                    Err(error) if certain => return Err(error),
                    _ => break,
                }
                true_blocks.push(block);
                next += 1;
            } else {
                let bound = self.bound(next);
                match self.between(stream, (at, bound), &mut again, &mut found) {
                    Ok(Between::Stored(end)) => at = end,
                    Ok(Between::Block(block)) => {
                        true_blocks.push(block);
                        at = bound;
                        // Its own end is what comes next.
                        if last {
                            break;
                        }
                        continue;
                    }
                    Err(error) if certain => return Err(error),
                    Err(_) => break,
                }
            }
            if last {
                found.end = at;
                break;
            }
        }
        if !again.parts.is_empty() {
            // The blocks behind the place that was reached are kept.
            true_blocks.extend(self.blocks.drain(..).skip(next));
            self.blocks = true_blocks;
            self.codes += again.codes.len() as u32;
            return Ok(Step::Again(again));
        }
        match found.end {
            0 => Err(corrupt()),
            _ => Ok(Step::Done(found)),
        }
    }

    /// Where the next block seems to begin, or the stream's end.
    fn bound(&self, next: usize) -> u32 {
        let block = self.blocks.get(next);
        block.map_or(self.bits, |block| block.head)
    }

    /// Follows a block through its parts; what began at a wrong bit is to be counted again.
    fn follow(
        &mut self,
        block: &Block,
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
            found
                .parts
                .push([index, found.bytes as u32, found.matches as u32, 0]);
            found.bytes += u64::from(part.bytes);
            found.largest = found.largest.max(part.bytes);
            found.matches += u64::from(part.matches());
            at = part.stop;
            if at > self.bits {
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
                ..Part::default()
            });
        }
        from..self.latest.len()
    }

    /// Passes a stored block at a bit, or makes a block that the GPU did not find known to it.
    fn between(
        &mut self,
        stream: Stream,
        (at, bound): (u32, u32),
        again: &mut Again,
        found: &mut Inflated,
    ) -> Result<Between, Unsuited> {
        let window = stream.bytes(at as usize / 8, HEADER);
        let mut input = &window[..];
        let all = input.len();
        let mut bits = BitReader::default();
        bits.top_up(&mut input);
        if bits.count < at % 8 + 3 {
            return Err(corrupt());
        }
        bits.take(at % 8 + 1);
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
            if end > stream.len() {
                return Err(corrupt());
            }
            if len > 0 {
                found
                    .stored
                    .push([from as u32 + 4, found.bytes as u32, len.into(), 0]);
                found.bytes += u64::from(len);
            }
            return Ok(Between::Stored(end as u32 * 8));
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
        if self.extra > MOST_EXTRA {
            return Err(Unsuited::new("its blocks do not tell where they begin"));
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
        };
        block.parts = self.cut(again, &block, bound);
        Ok(Between::Block(block))
    }
}

/// Whether a header at this bit is that of the stream's last block.
fn is_last(stream: Stream, head: u32) -> bool {
    let byte = stream.byte(head as usize / 8);
    byte.is_some_and(|byte| byte >> (head % 8) & 1 != 0)
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
    /// A stored block that ends at this bit.
    Stored(u32),
    Block(Block),
}
