//! The mosaic of an image on the CPU: bands of rows on all cores, and in each of them lanes of neighbouring pixels.

use super::kernels::{Bilinear, Kernel, Malvar, Weights};
use super::{Debayer, Method, Site, mirrored};
use crate::image::number::{from_key, from_key64, key, key64};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Add;

/// Pixels that are computed together: an even number, so that the first of them sees the same colour in each row.
const LANES: usize = 16;

/// Pixels in the 5 rows around lanes: two more on each side.
const AROUND: usize = LANES + 4;

/// Rows of a band. Its samples, widened for sums, are to stay in a level-2 cache.
const BAND: usize = 16;

/// A type of samples, and the numbers in which their weighted sums are computed.
trait Numeric: Send + Sync {
    /// A sample in memory.
    type Sample: bytemuck::Pod + Send + Sync;
    /// A number that holds every weighted sum.
    type Sum: Copy + Default + Add<Output = Self::Sum>;
    /// The number that changes no other one when it is added: of floating point −0, as 0 + −0 is 0.
    const EMPTY: Self::Sum;
    fn value(sample: Self::Sample) -> Self::Sum;
    fn times(value: Self::Sum, weight: i32) -> Self::Sum;
    /// The sample for a sum in sixteenths.
    fn sample(sum: Self::Sum) -> Self::Sample;
}

macro_rules! integers {
    ($($name:ident, $sample:ty, $sum:ty;)*) => {$(
        struct $name;

        impl Numeric for $name {
            type Sample = $sample;
            type Sum = $sum;
            const EMPTY: $sum = 0;
            #[inline(always)]
            fn value(sample: $sample) -> $sum {
                sample.into()
            }
            #[inline(always)]
            fn times(value: $sum, weight: i32) -> $sum {
                value * <$sum>::from(weight)
            }
            #[inline(always)]
            fn sample(sum: $sum) -> $sample {
                ((sum + 8) >> 4).clamp(0, <$sample>::MAX.into()) as $sample
            }
        }
    )*};
}

integers! {
    EightBits, u8, i32;
    SixteenBits, u16, i32;
    ThirtyTwoBits, u32, i64;
}

struct Single;

impl Numeric for Single {
    type Sample = u32;
    type Sum = f64;
    const EMPTY: f64 = -0.0;
    #[inline(always)]
    fn value(sample: u32) -> f64 {
        from_key(sample).into()
    }
    #[inline(always)]
    fn times(value: f64, weight: i32) -> f64 {
        f64::from(weight) * value
    }
    #[inline(always)]
    fn sample(sum: f64) -> u32 {
        key(((sum / 16.0) as f32).to_bits())
    }
}

struct Double;

impl Numeric for Double {
    type Sample = u64;
    type Sum = f64;
    const EMPTY: f64 = -0.0;
    #[inline(always)]
    fn value(sample: u64) -> f64 {
        from_key64(sample)
    }
    #[inline(always)]
    fn times(value: f64, weight: i32) -> f64 {
        f64::from(weight) * value
    }
    #[inline(always)]
    fn sample(sum: f64) -> u64 {
        key64((sum / 16.0).to_bits())
    }
}

/// Computes the RGB samples of a mosaic, whose shape is the operation's.
pub fn debayer(op: &Debayer, mosaic: &Image, rgb: &mut Samples) {
    let (width, depth) = (mosaic.shape().width, mosaic.shape().depth);
    match (mosaic.samples(), rgb) {
        (Samples::U8(from), Samples::U8(to)) => by_method::<EightBits>(op, from, to, width),
        (Samples::U16(from), Samples::U16(to)) => by_method::<SixteenBits>(op, from, to, width),
        (Samples::U32(from), Samples::U32(to)) if depth == Depth::Float => {
            by_method::<Single>(op, from, to, width);
        }
        (Samples::U32(from), Samples::U32(to)) => by_method::<ThirtyTwoBits>(op, from, to, width),
        (Samples::U64(from), Samples::U64(to)) => by_method::<Double>(op, from, to, width),
        _ => unreachable!("the result has the depth of the mosaic"),
    }
}

fn by_method<N: Numeric>(op: &Debayer, from: &[N::Sample], to: &mut [N::Sample], width: usize) {
    match op.method {
        Method::Bilinear => in_bands::<N, Bilinear>(op, from, to, width),
        Method::Malvar => in_bands::<N, Malvar>(op, from, to, width),
    }
}

/// A mosaic, and how its colours are computed.
struct Mosaic<'a, N: Numeric, W> {
    op: &'a Debayer,
    samples: &'a [N::Sample],
    width: usize,
    weights: PhantomData<W>,
}

fn in_bands<N: Numeric, W: Weights>(
    op: &Debayer,
    from: &[N::Sample],
    to: &mut [N::Sample],
    width: usize,
) {
    let mosaic = Mosaic {
        op,
        samples: from,
        width,
        weights: PhantomData::<W>,
    };
    let bands = to.par_chunks_mut(BAND * 3 * width).enumerate();
    bands.for_each(|(band, to)| debayer_band::<N, W>(&mosaic, to, band * BAND));
}

per_level! {
    highest Avx2;

    /// Computes the rows from `top` on that `to` holds.
    fn debayer_band[N: Numeric, W: Weights](
        mosaic: &Mosaic<N, W>,
        to: &mut [N::Sample],
        top: usize,
    ) {
        let Mosaic { op, samples: from, width, .. } = *mosaic;
        let height = from.len() / width;
        let rows = to.len() / (3 * width);
        // Whole lanes, and two pixels on each side of a row.
        let padded = width.next_multiple_of(LANES) + 4;
        let mut values = vec![N::Sum::default(); (rows + 4) * padded];
        for (index, values) in values.chunks_exact_mut(padded).enumerate() {
            let row = mirrored((top + index) as isize - 2, height);
            widen::<N>(&from[row * width..][..width], values);
        }
        for (index, to) in to.chunks_exact_mut(3 * width).enumerate() {
            let y = top + index;
            let from = &from[y * width..][..width];
            let around = |row: usize| &values[(index + row) * padded..][..padded];
            let around = [around(0), around(1), around(2), around(3), around(4)];
            let site = op.site(y, 0);
            let (own, opposite, first_is_green) = match site {
                Site::Green { beside, above } => (beside, above, true),
                Site::Colour { own, opposite } => (own, opposite, false),
            };
            debayer_row::<N, W>(from, to, around, [own, opposite], first_is_green);
        }
    }
}

/// Copies a row as numbers for sums, between mirrored pixels.
#[inline(always)]
fn widen<N: Numeric>(row: &[N::Sample], values: &mut [N::Sum]) {
    for (value, &sample) in values[2..].iter_mut().zip(row) {
        *value = N::value(sample);
    }
    let width = row.len();
    for (place, outside) in [(0, -2), (1, -1), (width + 2, width as isize)] {
        values[place] = N::value(row[mirrored(outside, width)]);
    }
    values[width + 3] = N::value(row[mirrored(width as isize + 1, width)]);
}

/// Computes a row of pixels. `around` has the padded rows from two above it to two below it; `colours` are the number of the
/// colour that the row sees beside green, and that of the other one.
#[inline(always)]
fn debayer_row<N: Numeric, W: Weights>(
    from: &[N::Sample],
    to: &mut [N::Sample],
    around: [&[N::Sum]; 5],
    colours: [usize; 2],
    first_is_green: bool,
) {
    let pieces = from.chunks(LANES).zip(to.chunks_mut(3 * LANES));
    for (piece, (from, to)) in pieces.enumerate() {
        let mut window = [[N::Sum::default(); AROUND]; 5];
        for (window, row) in window.iter_mut().zip(around) {
            window.copy_from_slice(&row[piece * LANES..][..AROUND]);
        }
        let mut samples = [<N::Sample as bytemuck::Zeroable>::zeroed(); LANES];
        samples[..from.len()].copy_from_slice(from);
        let planes = if first_is_green {
            debayer_lanes::<N, W, true>(&samples, &window)
        } else {
            debayer_lanes::<N, W, false>(&samples, &window)
        };
        let [own, green, opposite] = &planes;
        let (red, blue) = if colours[0] == 0 {
            (own, opposite)
        } else {
            (opposite, own)
        };
        for (lane, pixel) in to.chunks_exact_mut(3).enumerate() {
            pixel[0] = red[lane];
            pixel[1] = green[lane];
            pixel[2] = blue[lane];
        }
    }
}

/// The colour that the row sees beside green, green, and the other colour of some neighbouring pixels.
#[inline(always)]
fn debayer_lanes<N: Numeric, W: Weights, const FIRST_IS_GREEN: bool>(
    samples: &[N::Sample; LANES],
    window: &[[N::Sum; AROUND]; 5],
) -> [[N::Sample; LANES]; 3] {
    let cross = weighted::<N>(&W::CROSS, window);
    let horizontal = weighted::<N>(&W::HORIZONTAL, window);
    let vertical = weighted::<N>(&W::VERTICAL, window);
    let diagonal = weighted::<N>(&W::DIAGONAL, window);
    let mut planes = [*samples; 3];
    let [own, green, opposite] = &mut planes;
    for lane in 0..LANES {
        if (lane % 2 == 0) == FIRST_IS_GREEN {
            own[lane] = horizontal[lane];
            opposite[lane] = vertical[lane];
        } else {
            green[lane] = cross[lane];
            opposite[lane] = diagonal[lane];
        }
    }
    planes
}

/// The samples that a kernel gives for each lane.
#[inline(always)]
fn weighted<N: Numeric>(kernel: &Kernel, window: &[[N::Sum; AROUND]; 5]) -> [N::Sample; LANES] {
    let mut sums = [N::EMPTY; LANES];
    for (row, weights) in window.iter().zip(kernel) {
        for (dx, &weight) in weights.iter().enumerate() {
            if weight != 0 {
                for (sum, &value) in sums.iter_mut().zip(&row[dx..dx + LANES]) {
                    *sum = *sum + N::times(value, weight);
                }
            }
        }
    }
    let mut samples = [<N::Sample as bytemuck::Zeroable>::zeroed(); LANES];
    for (sample, &sum) in samples.iter_mut().zip(&sums) {
        *sample = N::sample(sum);
    }
    samples
}
