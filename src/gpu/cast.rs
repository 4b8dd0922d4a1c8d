//! Arrays of samples in the memory of a GPU, of this library and of others: copied between any strides, and converted to types that
//! hold every value.

use super::driver::{Buffer, Gpu, Grid};
use super::launch::cast::{Cast, KEY, REAL, SIGNED, TOGGLED, WHOLE};
use crate::image::{Shape, Values};
use anyhow::{Result, ensure};

/// Samples of a row that a block copies.
const BLOCK_SAMPLES: usize = 2048;

/// The most blocks along y.
const MOST_ROWS: usize = 65535;

/// An array of samples in the memory of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct DeviceArray {
    /// The address of the first sample.
    pub address: u64,
    /// Bytes from one row, column and channel to the next.
    pub strides: [isize; 3],
    /// The type of the samples.
    pub values: Values,
    /// Whether they have the form of images in memory, in which all sort as unsigned numbers, or else that of files.
    pub is_stored: bool,
}

impl DeviceArray {
    /// All samples of an image of this shape in a buffer.
    pub fn of_buffer(buffer: &Buffer, shape: &Shape, values: Values, is_stored: bool) -> Self {
        let item = values.depth.bytes();
        let pixel = shape.channels * item;
        DeviceArray {
            address: buffer.address(),
            strides: [shape.width * pixel, pixel, item].map(|stride| stride as isize),
            values,
            is_stored,
        }
    }

    fn form(&self) -> u32 {
        let Values { depth, signed } = self.values;
        match (depth.is_float(), signed, self.is_stored) {
            (true, _, true) => KEY,
            (true, _, false) => REAL,
            (false, true, true) => TOGGLED,
            (false, true, false) => SIGNED,
            (false, false, _) => WHOLE,
        }
    }

    fn check_alignment(&self, sides: [usize; 3]) -> Result<()> {
        let item = self.values.depth.bytes();
        let steps = self.strides.iter().zip(sides);
        let mut steps = steps.filter(|(_, side)| *side > 1).map(|(step, _)| step);
        ensure!(
            self.address.is_multiple_of(item as u64)
                && steps.all(|step| step.unsigned_abs().is_multiple_of(item)),
            "the array has samples at addresses that are no multiples of their {item} bytes, which a GPU cannot read: copy the array first"
        );
        Ok(())
    }
}

impl Gpu {
    /// Queues a copy of all samples of `from` to `to`, in its type, which must hold every value of `from`. `sides` are the height,
    /// the width and the channels of both.
    ///
    /// # Errors
    /// Samples that are not aligned, and those of the driver.
    ///
    /// # Safety
    /// All samples of both arrays are in memory of this GPU that stays allocated until this stream has been waited for, and those of
    /// `to` can be written.
    pub unsafe fn cast(
        &self,
        sides: [usize; 3],
        from: &DeviceArray,
        to: &DeviceArray,
    ) -> Result<()> {
        from.check_alignment(sides)?;
        to.check_alignment(sides)?;
        let [height, width, channels] = sides;
        let kernel = self.kernel::<Cast>("")?;
        let stride = |array: &DeviceArray, axis: usize| array.strides[axis] as u64;
        let arguments = Cast {
            src: from.address,
            src_bytes: from.values.depth.bytes() as u32,
            src_form: from.form(),
            src_down: stride(from, 0),
            src_across: stride(from, 1),
            src_deep: stride(from, 2),
            dst: to.address,
            dst_bytes: to.values.depth.bytes() as u32,
            dst_form: to.form(),
            dst_down: stride(to, 0),
            dst_across: stride(to, 1),
            dst_deep: stride(to, 2),
            height: u32::try_from(height)?,
            width: u32::try_from(width)?,
            channels: u32::try_from(channels)?,
        };
        let across = u32::try_from((width * channels).div_ceil(BLOCK_SAMPLES))?;
        let grid = Grid {
            blocks: [across, height.min(MOST_ROWS) as u32],
            ..kernel.grid(1)
        };
        // SAFETY: the samples are aligned, as was checked, and in memory, by the caller's promise.
        unsafe { self.launch_trusting(&kernel, grid, arguments) }
    }
}
