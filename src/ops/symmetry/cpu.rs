//! Moves pixels on the CPU, on all cores. Mirroring, and the transposition of a square, work in the
//! image's own memory: the first touch of new memory costs as much as the copy into it. All work is
//! done in chunks that fit into a level-1 or level-2 cache.

use super::streamed::{self, Streamed, TILE};
use crate::image::simd::{Level, level, per_level};
use rayon::prelude::*;
use std::ops::Range;
use wide::{u8x16, u16x8};

/// Side of a tile of `N`-byte pixels: 128 bytes of a row or more, so that memory is read and
/// written in pairs of lines, and three tiles stay in a level-2 cache.
const fn tile<const N: usize>() -> usize {
    match N {
        0..=2 => TILE,
        3..=16 => TILE / 2,
        _ => TILE / 4,
    }
}
/// Side, in pixels, of the block of a square that a core transposes together with the block across
/// the diagonal.
const BLOCK: usize = 512;
/// Images of at most so many bytes are transposed pixel by pixel: they stay in a level-1 cache.
const SMALL: usize = 16 << 10;
/// Pixels that a core mirrors at a time.
const CHUNK: usize = 1 << 15;

type Pixels<const N: usize> = [[u8; N]];
type Line<const N: usize> = [[u8; N]; TILE];

/// Rotates the image by a half turn: the last pixel becomes the first.
pub(super) fn reverse<const N: usize>(pixels: &mut Pixels<N>) {
    let (head, tail) = halves(pixels, 1);
    head.par_chunks_mut(CHUNK)
        .zip(tail.par_rchunks_mut(CHUNK))
        .for_each(|(head, tail)| swap_reversed(head, tail));
}

/// Exchanges left and right.
pub(super) fn mirror_columns<const N: usize>(pixels: &mut Pixels<N>, width: usize) {
    let rows = (CHUNK / width).max(1);
    pixels.par_chunks_mut(rows * width).for_each(|rows| {
        for row in rows.chunks_exact_mut(width) {
            let (head, tail) = halves(row, 1);
            swap_reversed(head, tail);
        }
    });
}

/// Exchanges top and bottom.
pub(super) fn mirror_rows<const N: usize>(pixels: &mut Pixels<N>, width: usize) {
    let rows = (CHUNK / width).max(1);
    let (top, bottom) = halves(pixels, width);
    top.par_chunks_mut(rows * width)
        .zip(bottom.par_rchunks_mut(rows * width))
        .for_each(|(top, bottom)| {
            let rows = top.chunks_exact_mut(width);
            for (a, b) in rows.zip(bottom.rchunks_exact_mut(width)) {
                a.swap_with_slice(b);
            }
        });
}

/// Copies an image `width` pixels wide into another image's memory, with left and right or top and bottom exchanged if requested.
pub(super) fn mirror<const N: usize>(
    input: &Pixels<N>,
    output: &mut Pixels<N>,
    width: usize,
    mirror_x: bool,
    mirror_y: bool,
) {
    let (count, height) = ((CHUNK / width).max(1), input.len() / width);
    let chunks = output.par_chunks_mut(count * width).enumerate();
    chunks.for_each(|(index, rows)| {
        for (y, row) in (index * count..).zip(rows.chunks_exact_mut(width)) {
            let y = if mirror_y { height - 1 - y } else { y };
            row.copy_from_slice(&input[y * width..][..width]);
            if mirror_x {
                let (head, tail) = halves(row, 1);
                swap_reversed(head, tail);
            }
        }
    });
}

/// The first and the last half of the rows, without a middle row.
fn halves<const N: usize>(
    pixels: &mut Pixels<N>,
    width: usize,
) -> (&mut Pixels<N>, &mut Pixels<N>) {
    let half = pixels.len() / width / 2 * width;
    let (head, rest) = pixels.split_at_mut(half);
    let middle = rest.len() - half;
    (head, &mut rest[middle..])
}

per_level! {
    highest Avx2;

    /// Exchanges two runs of pixels of equal length, each reversed.
    fn swap_reversed[const N: usize](head: &mut Pixels<N>, tail: &mut Pixels<N>) {
        for (a, b) in head.iter_mut().zip(tail.iter_mut().rev()) {
            std::mem::swap(a, b);
        }
    }
}

/// Two tiles, and their transposed forms.
struct Tiles<const N: usize> {
    from: Vec<Line<N>>,
    turned: [Vec<Line<N>>; 2],
}

impl<const N: usize> Tiles<N> {
    fn new() -> Tiles<N> {
        let empty = || vec![[[0; N]; TILE]; TILE];
        Tiles {
            from: empty(),
            turned: [empty(), empty()],
        }
    }

    /// Transposes a tile given by its rows. The rows are first copied together: at their own
    /// addresses, which in many images are a power of two apart, they would evict each other from
    /// the cache.
    fn transpose_rows<'a>(&mut self, which: usize, rows: impl Iterator<Item = &'a Pixels<N>>) {
        for (line, row) in self.from.iter_mut().zip(rows) {
            line[..row.len()].copy_from_slice(row);
        }
        turn_tile(&self.from, &mut self.turned[which]);
    }

    /// Stores a transposed tile into these rows.
    fn store<'a>(&self, which: usize, rows: impl Iterator<Item = &'a mut Pixels<N>>) {
        for (row, line) in rows.zip(&self.turned[which]) {
            row.copy_from_slice(&line[..row.len()]);
        }
    }

    /// Stores the first transposed tile into these columns of the rows, past the caches.
    fn stream<'a>(
        &self,
        streamed: &mut Streamed,
        rows: impl Iterator<Item = &'a mut Pixels<N>>,
        columns: &Range<usize>,
    ) {
        for (index, (row, line)) in rows.zip(&self.turned[0]).enumerate() {
            let new = line[..columns.len()].as_flattened();
            streamed.store(index, row.as_flattened_mut(), columns.start * N, new);
        }
    }
}

/// Transposes a square of `side`² pixels in place.
pub(super) fn transpose_square<const N: usize>(pixels: &mut Pixels<N>, side: usize) {
    let across = side.div_ceil(BLOCK);
    let mut blocks: Vec<Vec<&mut Pixels<N>>> = Vec::new();
    blocks.resize_with(across * across, Vec::new);
    for (y, row) in pixels.chunks_exact_mut(side).enumerate() {
        for (x, segment) in row.chunks_mut(BLOCK).enumerate() {
            blocks[y / BLOCK * across + x].push(segment);
        }
    }
    // Each block above the diagonal with its mirror image below; those on the diagonal have none.
    let mut pairs = Vec::new();
    for y in 0..across {
        for x in y..across {
            let above = std::mem::take(&mut blocks[y * across + x]);
            pairs.push((above, std::mem::take(&mut blocks[x * across + y])));
        }
    }
    pairs.into_par_iter().with_max_len(1).for_each_init(
        Tiles::new,
        |tiles, (mut above, mut below)| {
            let width = above.first().map_or(0, |row| row.len());
            for y in (0..above.len()).step_by(tile::<N>()) {
                let first = if below.is_empty() { y } else { 0 };
                for x in (first..width).step_by(tile::<N>()) {
                    let (high, wide) =
                        (tile::<N>().min(above.len() - y), tile::<N>().min(width - x));
                    let here = Area {
                        rows: y..y + high,
                        columns: x..x + wide,
                    };
                    let there = Area {
                        rows: x..x + wide,
                        columns: y..y + high,
                    };
                    tiles.transpose_rows(0, rows(&above, &here));
                    let below = if below.is_empty() {
                        &mut above
                    } else {
                        &mut below
                    };
                    tiles.transpose_rows(1, rows(below, &there));
                    tiles.store(0, rows_mut(below, &there));
                    tiles.store(1, rows_mut(&mut above, &here));
                }
            }
        },
    );
}

/// The rows and the columns of a tile.
struct Area {
    rows: Range<usize>,
    columns: Range<usize>,
}

fn rows<'a, const N: usize>(
    block: &'a [&mut Pixels<N>],
    area: &Area,
) -> impl Iterator<Item = &'a Pixels<N>> {
    let rows = block[area.rows.clone()].iter();
    rows.map(|row| &row[area.columns.clone()])
}

fn rows_mut<'a, const N: usize>(
    block: &'a mut [&mut Pixels<N>],
    area: &Area,
) -> impl Iterator<Item = &'a mut Pixels<N>> {
    let rows = block[area.rows.clone()].iter_mut();
    rows.map(|row| &mut row[area.columns.clone()])
}

/// Transposes an image `width` pixels wide into another image's memory, and then exchanges left and
/// right or top and bottom if requested.
pub(super) fn transpose<const N: usize>(
    input: &Pixels<N>,
    output: &mut Pixels<N>,
    width: usize,
    mirror_x: bool,
    mirror_y: bool,
) {
    let height = input.len() / width;
    if input.len() * N <= SMALL {
        for (x, row) in output.chunks_exact_mut(height).enumerate() {
            let x = if mirror_y { width - 1 - x } else { x };
            let column = input[x..].iter().step_by(width);
            if mirror_x {
                row.iter_mut()
                    .rev()
                    .zip(column)
                    .for_each(|(to, from)| *to = *from);
            } else {
                row.iter_mut()
                    .zip(column)
                    .for_each(|(to, from)| *to = *from);
            }
        }
        return;
    }
    let streams = streamed::is_worth(input.len() * N);
    let band = |(tiles, streamed): &mut (Tiles<N>, Option<Streamed>),
                (band, rows): (usize, &mut Pixels<N>)| {
        // The columns of the input that become these rows.
        let (top, count) = (band * tile::<N>(), rows.len() / height);
        let left = if mirror_y { width - top - count } else { top };
        for start in (0..height).step_by(tile::<N>()) {
            let deep = tile::<N>().min(height - start);
            let above = if mirror_x {
                height - start - deep
            } else {
                start
            };
            let lines = (above..above + deep).map(|y| &input[y * width + left..][..count]);
            if mirror_x {
                tiles.transpose_rows(0, lines.rev());
            } else {
                tiles.transpose_rows(0, lines);
            }
            let rows = rows.chunks_exact_mut(height);
            let columns = start..start + deep;
            match (streamed.as_mut(), mirror_y) {
                (None, true) => tiles.store(0, rows.rev().map(|row| &mut row[columns.clone()])),
                (None, false) => tiles.store(0, rows.map(|row| &mut row[columns.clone()])),
                (Some(streamed), true) => tiles.stream(streamed, rows.rev(), &columns),
                (Some(streamed), false) => tiles.stream(streamed, rows, &columns),
            }
        }
        if streams {
            streamed::finish();
        }
    };
    let new = || (Tiles::new(), streams.then(Streamed::new));
    output
        .par_chunks_mut(tile::<N>() * height)
        .enumerate()
        .for_each_init(new, band);
}

per_level! {
    highest Avx2;

    /// Transposes a tile: by vectors of 16 bytes where pixels have one or two bytes, else eight rows at a time.
    fn turn_tile[const N: usize](from: &[Line<N>], to: &mut [Line<N>]) {
        // A fixed length, so that no index needs a check.
        let Some(to) = to.first_chunk_mut::<TILE>() else {
            return;
        };
        match N {
            1 | 2 if level() == Level::Scalar => turn_rows(from, to),
            1 => turn_bytes(from, to),
            2 => turn_blocks::<N, u16x8, 8>(from, to, u16x8::transpose),
            3 => turn_words::<N, 4>(from, to),
            6 => turn_words::<N, 8>(from, to),
            _ => turn_rows(from, to),
        }
    }
}

/// Transposes a tile eight rows at a time.
#[inline(always)]
fn turn_rows<const N: usize>(from: &[Line<N>], to: &mut [Line<N>; TILE]) {
    for (rows, y) in from[..tile::<N>()]
        .as_chunks::<8>()
        .0
        .iter()
        .zip((0..).step_by(8))
    {
        for x in 0..tile::<N>() {
            if let Some(run) = to[x].get_mut(y..y + 8) {
                for (pixel, row) in run.iter_mut().zip(rows) {
                    *pixel = row[x];
                }
            }
        }
    }
}

/// Transposes a tile of three- or six-byte pixels eight rows at a time, in words of `WORD` bytes: one load and one
/// store a pixel. The bytes of a word after its pixel are overwritten by the next pixel, and after the last one they
/// lie beyond the tile: a line is longer than that.
#[inline(always)]
fn turn_words<const N: usize, const WORD: usize>(from: &[Line<N>], to: &mut [Line<N>; TILE]) {
    for (rows, y) in from[..tile::<N>()]
        .as_chunks::<8>()
        .0
        .iter()
        .zip((0..).step_by(8))
    {
        for (x, to) in to[..tile::<N>()].iter_mut().enumerate() {
            let run = &mut to.as_flattened_mut()[y * N..][..7 * N + WORD];
            for (i, row) in rows.iter().enumerate() {
                let word = &row.as_flattened()[x * N..][..WORD];
                run[i * N..][..WORD].copy_from_slice(word);
            }
        }
    }
}

/// Transposes a tile of one-byte pixels by blocks of 16². Neighbouring rows are interleaved first: then eight words
/// of two bytes are transposed, and no more vectors are in use than there are registers.
#[inline(always)]
fn turn_bytes<const N: usize>(from: &[Line<N>], to: &mut [Line<N>; TILE]) {
    for (rows, y) in from[..tile::<N>()]
        .as_chunks::<16>()
        .0
        .iter()
        .zip((0..).step_by(16))
    {
        for x in (0..tile::<N>()).step_by(16) {
            let row = |i: usize| bytemuck::pod_read_unaligned(rows[i][x..x + 16].as_flattened());
            let low = |i| bytemuck::cast(u8x16::unpack_low(row(2 * i), row(2 * i + 1)));
            let high = |i| bytemuck::cast(u8x16::unpack_high(row(2 * i), row(2 * i + 1)));
            let left: [u16x8; 8] = std::array::from_fn(low);
            store_columns(&u16x8::transpose(left), to, x, y);
            let right: [u16x8; 8] = std::array::from_fn(high);
            store_columns(&u16x8::transpose(right), to, x + 8, y);
        }
    }
}

/// Transposes a tile by blocks of `SIDE`² pixels, of which a row fills a vector.
#[inline(always)]
fn turn_blocks<const N: usize, V: bytemuck::Pod, const SIDE: usize>(
    from: &[Line<N>],
    to: &mut [Line<N>; TILE],
    turn: impl Fn([V; SIDE]) -> [V; SIDE],
) {
    for (rows, y) in from[..tile::<N>()]
        .as_chunks::<SIDE>()
        .0
        .iter()
        .zip((0..).step_by(SIDE))
    {
        for x in (0..tile::<N>()).step_by(SIDE) {
            let block: [V; SIDE] = std::array::from_fn(|i| {
                bytemuck::pod_read_unaligned(rows[i][x..x + SIDE].as_flattened())
            });
            store_columns(&turn(block), to, x, y);
        }
    }
}

/// Stores columns of a tile from column `x` and row `y` on as rows of the transposed tile.
#[inline(always)]
fn store_columns<const N: usize, V: bytemuck::Pod>(
    columns: &[V],
    to: &mut [Line<N>; TILE],
    x: usize,
    y: usize,
) {
    for (i, column) in columns.iter().enumerate() {
        to[x + i].as_flattened_mut()[y * N..][..size_of::<V>()]
            .copy_from_slice(bytemuck::bytes_of(column));
    }
}
