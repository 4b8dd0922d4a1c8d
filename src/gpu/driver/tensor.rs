//! Tensor maps: descriptions of matrices, from which the GPU's copy engine of compute capability 9.0 and later finds the
//! addresses of a square.

use super::context::Gpu;
use super::error::{bind, in_words};
use super::memory::Buffer;
use anyhow::{Result, ensure};
use cudarc::driver::sys;
use std::marker::PhantomData;

/// A matrix of words of 32 bits. The copy engine copies squares of 32×32 words to shared memory, and swaps parts of 16 bytes
/// inside each row of 128: part p of row y is at p ^ y % 8.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap<'b> {
    pub(super) map: sys::CUtensorMap,
    buffer: PhantomData<&'b Buffer>,
}

impl Gpu {
    /// The map of the first `side`² words of a buffer, row after row. Rows are a multiple of 16 bytes.
    ///
    /// # Errors
    /// The buffer has fewer words, or the driver refuses.
    pub(crate) fn tensor_map<'b>(&self, words: &'b Buffer, side: usize) -> Result<TensorMap<'b>> {
        let pointer = words.part(0, 4 * side * side)?;
        ensure!(
            side.is_multiple_of(4),
            "internal error: rows of {side} words"
        );
        bind(&self.context)?;
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let (sides, pitch) = ([side as u64; 2], 4 * side as u64);
        // SAFETY: the pointers are to live values: a map, and as many numbers as two dimensions need. The buffer has all words
        // of the matrix, and copies do not leave it.
        unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
                2,
                pointer as *mut _,
                sides.as_ptr(),
                &pitch,
                [32; 2].as_ptr(),
                [1; 2].as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
        .result()
        .map_err(in_words)?;
        Ok(TensorMap {
            map,
            buffer: PhantomData,
        })
    }
}
