//! Kernels by their names: found in the embedded modules, and kept.

use super::context::Gpu;
use super::error::description;
use super::kernel::Kernel;
use anyhow::{Result, anyhow};
use cudarc::driver::CudaModule;
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use std::sync::Arc;

impl Gpu {
    /// The kernel `name` of the file `file` (both as under `kernels/`) for pixels of `form`:
    /// `u16_c3`, `b8`, …, or "" for the papers' kernels, which have only one form. The driver
    /// compiles the module at the first request, which takes a while: request it before the upload.
    pub fn kernel(&self, file: &str, name: &'static str, form: &str) -> Result<Kernel> {
        // A request to the driver takes 0.1 ms, and much longer while other threads use the driver.
        let key = format!("{file} {name} {form}");
        let known = self.kernels.read().ok();
        if let Some(kernel) = known.and_then(|kernels| kernels.get(&key).cloned()) {
            return Ok(kernel);
        }
        let kernel = self.find_kernel(file, name, form)?;
        if let Ok(mut kernels) = self.kernels.write() {
            kernels.insert(key, kernel.clone());
        }
        Ok(kernel)
    }

    fn find_kernel(&self, file: &str, name: &'static str, form: &str) -> Result<Kernel> {
        let module: Arc<CudaModule> = self.modules.get(file, form, |code| {
            self.context.load_module(code).map_err(|error| {
                anyhow!(
                    "the driver refuses the kernels of {file}: {}",
                    description(&error)
                )
            })
        })?;
        let entry = match form {
            "" => name.to_string(),
            form => format!("{name}_{form}"),
        };
        let ready = || {
            let function = module.load_function(&entry)?;
            let threads = function.max_threads_per_block()? as u32;
            Ok(Kernel {
                name,
                function,
                threads,
            })
        };
        ready().map_err(|error| anyhow!("kernel {entry}: {}", description(&error)))
    }

    /// Asks for `percent` of a multiprocessor's on-chip memory as shared memory for `kernel`, the
    /// rest as level-1 cache.
    pub fn prefer_shared(&self, kernel: &Kernel, percent: u8) -> Result<()> {
        let carveout = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        kernel
            .function
            .set_attribute(carveout, percent.into())
            .map_err(|error| anyhow!("{}", description(&error)))
    }
}
