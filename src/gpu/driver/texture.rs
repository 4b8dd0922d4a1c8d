//! Texture objects: device memory whose words kernels fetch by column and row.

use super::context::Gpu;
use super::error::{bind, bound_to_give_back, in_words};
use super::memory::Buffer;
use anyhow::{Result, ensure};
use cudarc::driver::{CudaStream, sys};
use std::marker::PhantomData;
use std::sync::Arc;
use std::{mem, ptr};

/// The flag of a texture whose words are read as integers; the binding has no name for it.
const READ_AS_INTEGER: u32 = 1;

/// A texture object over the words of a buffer. It is destroyed when dropped.
#[derive(Debug)]
pub(crate) struct Texture<'b> {
    object: sys::CUtexObject,
    stream: Arc<CudaStream>,
    buffer: PhantomData<&'b Buffer>,
}

impl Texture<'_> {
    /// The object, as kernels take it.
    pub(crate) fn object(&self) -> u64 {
        self.object
    }
}

impl Gpu {
    /// A texture object of the first `width` × `height` words of 32 bits of a buffer, row after row. The length of a row in bytes is a multiple
    /// of 32.
    ///
    /// # Errors
    /// The buffer has fewer words, or the driver refuses.
    pub(crate) fn texture<'b>(
        &self,
        words: &'b Buffer,
        width: usize,
        height: usize,
    ) -> Result<Texture<'b>> {
        let pointer = words.part(0, 4 * width * height)?;
        ensure!(
            width.is_multiple_of(8),
            "internal error: rows of {width} words"
        );
        bind(&self.context)?;
        // SAFETY: both descriptions are plain numbers, for which zeros are valid.
        let (mut resource, mut texture): (sys::CUDA_RESOURCE_DESC, sys::CUDA_TEXTURE_DESC) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
            devPtr: pointer,
            format: sys::CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
            numChannels: 1,
            width,
            height,
            pitchInBytes: 4 * width,
        };
        texture.flags = READ_AS_INTEGER;
        let mut object = 0;
        // SAFETY: the pointers are to live values, and the buffer has all words of the texture.
        unsafe { sys::cuTexObjectCreate(&mut object, &resource, &texture, ptr::null()) }
            .result()
            .map_err(in_words)?;
        Ok(Texture {
            object,
            stream: self.stream.clone(),
            buffer: PhantomData,
        })
    }
}

impl Drop for Texture<'_> {
    fn drop(&mut self) {
        // Kernels that fetch from it must be done. If the GPU does not respond, nothing can be given back.
        if bound_to_give_back(self.stream.context()) && self.stream.synchronize().is_ok() {
            // SAFETY: the object was created here, and nothing uses it any more.
            let _ = unsafe { sys::cuTexObjectDestroy(self.object) };
        }
    }
}
