//! The symmetries of a rectangle, which move pixels and change no value, for `transpose`, `rotate`,
//! `flip` and `--auto-orient`. The kernel is variant 3 of "Transposing a matrix" (Kalgin and
//! Baldin, Linux Format Russia): a block reads a tile along rows, transposes it in shared memory,
//! and writes along rows.
//!
//! Every symmetry combines three choices: transpose or not, mirror the output's columns or not,
//! mirror the output's rows or not. With (x, y) the output's pixel after the mirroring, the input's
//! pixel is (x, y), or (y, x) if transposed.

mod cpu;
mod streamed;

use super::{Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics};
use crate::gpu::job::Job;
use crate::gpu::launch::flip::Flip;
use crate::gpu::launch::transpose::Transpose;
use crate::image::metadata::{Effect, PixelMap};
use crate::image::{Image, Samples, Shape};
use crate::timing::Timeline;
use anyhow::Result;

/// A rotation or reflection of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Symmetry {
    /// Rows become columns: mirrored at the diagonal from top left.
    Transpose,
    /// A quarter turn clockwise.
    Rotate90,
    /// A half turn.
    Rotate180,
    /// A quarter turn anticlockwise.
    Rotate270,
    /// Left and right swapped.
    FlipHorizontal,
    /// Top and bottom swapped.
    FlipVertical,
    /// Mirrored at the diagonal from top right.
    Transverse,
}

impl Symmetry {
    /// Every symmetry but the identity.
    pub const ALL: [Symmetry; 7] = [
        Symmetry::Transpose,
        Symmetry::Rotate90,
        Symmetry::Rotate180,
        Symmetry::Rotate270,
        Symmetry::FlipHorizontal,
        Symmetry::FlipVertical,
        Symmetry::Transverse,
    ];

    /// Whether rows become columns, and whether the output's columns and rows are mirrored.
    fn pixel_map(self) -> PixelMap {
        let (transposed, mirror_x, mirror_y) = match self {
            Symmetry::Transpose => (true, false, false),
            Symmetry::Rotate90 => (true, true, false),
            Symmetry::Rotate180 => (false, true, true),
            Symmetry::Rotate270 => (true, false, true),
            Symmetry::FlipHorizontal => (false, true, false),
            Symmetry::FlipVertical => (false, false, true),
            Symmetry::Transverse => (true, true, true),
        };
        PixelMap {
            transposed,
            mirror_x,
            mirror_y,
        }
    }

    /// The verb that applies it.
    fn name(&self) -> &'static str {
        match self {
            Symmetry::Transpose => "transpose",
            Symmetry::Rotate90 | Symmetry::Rotate180 | Symmetry::Rotate270 => "rotate",
            Symmetry::FlipHorizontal | Symmetry::FlipVertical => "flip",
            Symmetry::Transverse => "transverse",
        }
    }

    /// The shape of an image of the given shape after the symmetry.
    pub fn shape(self, from: Shape) -> Shape {
        self.pixel_map().of(from)
    }

    /// The symmetry that rotates an image with this orientation (TIFF 6.0, section 8, 1 to 8) upright;
    /// `None` if it is upright.
    pub fn upright(orientation: u16) -> Option<&'static Symmetry> {
        static ALL: [Symmetry; 7] = Symmetry::ALL;
        let turn = PixelMap::of_orientation(orientation)?;
        ALL.iter().find(|symmetry| symmetry.pixel_map() == turn)
    }
}

impl Operation for Symmetry {
    fn properties(&self) -> Properties {
        let map = self.pixel_map();
        Properties {
            wide_samples: true,
            ..Properties::new(self.name(), Access::Permutation(map), Effect::Moves(map))
        }
    }

    fn gpu_obstacle(&self, shape: &Shape) -> Option<&'static str> {
        let large = shape.pixel_bytes() > 8;
        large.then_some("the GPU does not rotate pixels of 12 bytes or more")
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Symmetry {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let (from, to) = (image.shape(), self.shape(image.shape()));
        let PixelMap {
            transposed,
            mirror_x,
            mirror_y,
        } = self.pixel_map();
        let pixel = from.pixel_bytes();
        let mut bytes = Vec::with_capacity(from.bytes());
        for y in 0..to.height {
            for x in 0..to.width {
                let x = if mirror_x { to.width - 1 - x } else { x };
                let y = if mirror_y { to.height - 1 - y } else { y };
                let (x, y) = if transposed { (y, x) } else { (x, y) };
                let start = (y * from.width + x) * pixel;
                bytes.extend_from_slice(&image.samples().as_bytes()[start..start + pixel]);
            }
        }
        let mut samples = image.samples().clone();
        samples.as_bytes_mut().copy_from_slice(&bytes);
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, to) = (image.shape(), self.shape(image.shape()));
        let mut samples = image.into_samples();
        timeline.host(self.name(), 2 * from.bytes() as u64, || {
            match from.pixel_bytes() {
                1 => apply::<1>(self.pixel_map(), from, &mut samples),
                2 => apply::<2>(self.pixel_map(), from, &mut samples),
                3 => apply::<3>(self.pixel_map(), from, &mut samples),
                4 => apply::<4>(self.pixel_map(), from, &mut samples),
                6 => apply::<6>(self.pixel_map(), from, &mut samples),
                12 => apply::<12>(self.pixel_map(), from, &mut samples),
                16 => apply::<16>(self.pixel_map(), from, &mut samples),
                24 => apply::<24>(self.pixel_map(), from, &mut samples),
                32 => apply::<32>(self.pixel_map(), from, &mut samples),
                _ => apply::<8>(self.pixel_map(), from, &mut samples),
            }
        })?;
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let from = image.shape;
        let PixelMap {
            transposed,
            mirror_x,
            mirror_y,
        } = self.pixel_map();
        // The kernels mirror the input's columns and rows, not the output's.
        let (reverse_x, reverse_y) = if transposed {
            (mirror_y, mirror_x)
        } else {
            (mirror_x, mirror_y)
        };
        // A half turn mirrors all pixels as if they were one row.
        let (width, height, reverse_y) = match (transposed, reverse_x, reverse_y) {
            (false, true, true) => (from.pixels(), 1, false),
            _ => (from.width, from.height, reverse_y),
        };
        let pixel = from.pixel_bytes();
        let form = format!("b{pixel}");
        let mut samples = job.alloc(image.samples.len())?;
        let (src, dst) = (image.samples.view(), samples.view_mut());
        let grid = grid(width, height, pixel, transposed);
        let bytes = 2 * from.bytes() as u64;
        let (width, height) = (width as u64, height as u64);
        let (reverse_x, reverse_y) = (reverse_x.into(), reverse_y.into());
        // Both kernels have the same arguments.
        macro_rules! launch {
            ($kernel:ident) => {{
                let kernel = job.kernel::<$kernel>(&form)?;
                let arguments = $kernel {
                    src,
                    dst,
                    width,
                    height,
                    reverse_x,
                    reverse_y,
                };
                job.launch(&kernel, grid, bytes, arguments)?;
            }};
        }
        if transposed {
            launch!(Transpose)
        } else {
            launch!(Flip)
        }
        let shape = self.shape(from);
        Ok(OpResult::Image(DeviceImage { shape, samples }))
    }
}

/// Thread blocks for an image: one for each tile of the smallest size, or one for each 8 KiB of a row. The kernels
/// stride over the rest, so any number gives the right result.
pub(crate) fn grid(width: usize, height: usize, pixel: usize, transposed: bool) -> u32 {
    let blocks = if transposed {
        let (wide, high) = match pixel {
            1 => (124, 224),
            2 => (126, 112),
            3 => (124, 64),
            4 => (64, 64),
            6 => (62, 64),
            _ => (32, 64),
        };
        width.div_ceil(wide) * (height + 32).div_ceil(high)
    } else {
        height * (width * pixel + 14).div_ceil(8192)
    };
    blocks.min(1 << 30) as u32
}

/// Applies a symmetry to an image of `N`-byte pixels, in place unless its memory is shared or it transposes a rectangle
/// that is not square.
fn apply<const N: usize>(map: PixelMap, from: Shape, samples: &mut Samples) -> Result<()> {
    let PixelMap {
        transposed,
        mirror_x,
        mirror_y,
    } = map;
    let output = if transposed && from.width != from.height {
        Some(samples.memory_for_result(&from)?)
    } else {
        samples.memory_for_change()?
    };
    if let Some(mut output) = output {
        let (pixels, _) = samples.as_bytes().as_chunks::<N>();
        let (moved, _) = output.as_bytes_mut().as_chunks_mut::<N>();
        if transposed {
            cpu::transpose(pixels, moved, from.width, mirror_x, mirror_y);
        } else {
            cpu::mirror(pixels, moved, from.width, mirror_x, mirror_y);
        }
        *samples = output;
        return Ok(());
    }
    let (pixels, _) = samples.as_bytes_mut().as_chunks_mut::<N>();
    if transposed {
        cpu::transpose_square(pixels, from.width);
    }
    match (mirror_x, mirror_y) {
        (true, true) => cpu::reverse(pixels),
        (true, false) => cpu::mirror_columns(pixels, from.width),
        (false, true) => cpu::mirror_rows(pixels, from.width),
        (false, false) => (),
    }
    Ok(())
}
