//! The driver's synchronous calls, which work on the default stream and wait as the driver
//! documents. Only `bench` makes them, to compare them with their asynchronous forms. Work that
//! other streams do on the same buffers must have been waited for.

use super::context::Gpu;
use super::error::{bind, description};
use super::memory::Buffer;
use anyhow::{Result, anyhow, ensure};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

fn explained(result: Result<(), DriverError>) -> Result<()> {
    result.map_err(|error| anyhow!("{}", description(&error)))
}

impl Gpu {
    /// `cuStreamQuery`: whether all queued work is done. Does not wait.
    pub fn is_idle(&self) -> Result<bool> {
        bind(&self.context)?;
        // SAFETY: the stream lives as long as `self`.
        match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
            sys::CUresult::CUDA_SUCCESS => Ok(true),
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => explained(Err(DriverError(error))).map(|()| true),
        }
    }

    /// `cuMemcpyHtoD`: copies all of `host` to the beginning of `buffer`.
    pub fn send_waiting(&self, host: &[u8], buffer: &mut Buffer) -> Result<()> {
        let target = buffer.part(0, host.len())?;
        bind(&self.context)?;
        // SAFETY: the buffer has as many bytes; the driver has read `host` when the call returns.
        explained(unsafe { result::memcpy_htod_sync(target, host) })
    }

    /// `cuMemcpyDtoH`: copies the beginning of `buffer` over all of `host`.
    pub fn fetch_waiting(&self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        let source = buffer.part(0, host.len())?;
        bind(&self.context)?;
        // SAFETY: the buffer has as many bytes; the call returns when they have arrived.
        explained(unsafe { result::memcpy_dtoh_sync(host, source) })
    }

    /// `cuMemcpyDtoD`: copies `from` to `to`, of the same length.
    pub fn copy_waiting(&self, from: &Buffer, to: &mut Buffer) -> Result<()> {
        ensure!(from.len == to.len, "a copy of another length");
        bind(&self.context)?;
        // SAFETY: both buffers are live and have this length; they cannot overlap, since `to` is borrowed exclusively.
        explained(unsafe { result::memcpy_dtod_sync(to.pointer, from.pointer, from.len) })
    }

    /// `cuMemsetD8`: fills every byte of `buffer`.
    pub fn fill_waiting(&self, buffer: &mut Buffer, byte: u8) -> Result<()> {
        bind(&self.context)?;
        // SAFETY: the buffer is live and has this length.
        explained(unsafe { result::memset_d8_sync(buffer.pointer, byte, buffer.len) })
    }
}
