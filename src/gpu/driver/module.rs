//! Kernels by their names: found in the embedded modules, and kept.

use super::context::Gpu;
use super::error::description;
use super::kernel::{Kernel, RawKernel, SetKernel};
use super::launch::Arguments;
use anyhow::{Context, Result, anyhow};
use cudarc::driver::CudaModule;
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use std::marker::PhantomData;
use std::sync::Arc;

impl Gpu {
    /// The kernel with these arguments for pixels of `form`: `u16_c3`, `b8`, …, or "" for kernels that have only one form.
    /// The driver compiles the module at the first request, which takes a while: request it before the upload.
    ///
    /// # Errors
    /// The driver's, and a form that the kernel does not have.
    pub(crate) fn kernel<A: Arguments>(&self, form: &str) -> Result<Kernel<A>> {
        self.kernel_named(A::KERNELS[0], form)
    }

    /// As `kernel`, of the one called `name` in a family of kernels with these arguments.
    ///
    /// # Errors
    /// As `kernel`, and a name that the family does not have.
    pub(crate) fn kernel_named<A: Arguments>(&self, name: &str, form: &str) -> Result<Kernel<A>> {
        let mut names = A::KERNELS.iter();
        let name = names.find(|known| **known == name);
        let name = name.with_context(|| format!("{} has no such kernel", A::FILE))?;
        let form = A::FORMS.iter().find(|known| known.name == form);
        let form = form.with_context(|| format!("kernel {name} has no such form"))?;
        Ok(Kernel {
            raw: self.raw_kernel(A::FILE, name, form.name, A::IMAGES)?,
            form,
            arguments: PhantomData,
        })
    }

    fn raw_kernel(
        &self,
        file: &str,
        name: &'static str,
        form: &str,
        images: u32,
    ) -> Result<RawKernel> {
        // A request to the driver takes 0.1 ms, and much longer while other threads use the driver.
        let key = format!("{file} {name} {form}");
        let known = self.kernels.read().ok();
        if let Some(kernel) = known.and_then(|kernels| kernels.get(&key).cloned()) {
            return Ok(kernel);
        }
        let kernel = self.find_kernel(file, name, form, images)?;
        if let Ok(mut kernels) = self.kernels.write() {
            kernels.insert(key, kernel.clone());
        }
        Ok(kernel)
    }

    fn find_kernel(
        &self,
        file: &str,
        name: &'static str,
        form: &str,
        images: u32,
    ) -> Result<RawKernel> {
        let module: Arc<CudaModule> = self.modules.get(file, form, |code| {
            self.context.load_module(code).map_err(|error| {
                anyhow!(
                    "the driver rejects the kernels of {file}: {}",
                    description(&error)
                )
            })
        })?;
        let entry = |name: String| match form {
            "" => name,
            form => format!("{name}_{form}"),
        };
        let ready = || {
            let function = module.load_function(&entry(name.into()))?;
            let threads = function.max_threads_per_block()? as u32;
            let set = match images {
                0 => None,
                images => {
                    let function = module.load_function(&entry(format!("{name}_set")))?;
                    // The question loads it now. The first launch would wait for all work on the GPU.
                    function.max_threads_per_block()?;
                    Some(SetKernel { function, images })
                }
            };
            Ok(RawKernel {
                name,
                function,
                threads,
                set,
            })
        };
        ready().map_err(|error| {
            let entry = entry(name.into());
            anyhow!("kernel {entry}: {}", description(&error))
        })
    }

    /// Asks for `percent` of a multiprocessor's on-chip memory as shared memory for `kernel`, the
    /// rest as level-1 cache.
    pub(crate) fn prefer_shared<A>(&self, kernel: &Kernel<A>, percent: u8) -> Result<()> {
        let carveout = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        kernel
            .raw
            .function
            .set_attribute(carveout, percent.into())
            .map_err(|error| anyhow!("{}", description(&error)))
    }
}
