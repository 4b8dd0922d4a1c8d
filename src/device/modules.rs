//! The embedded kernels, compiled ahead by `kernels/build.sh`: PTX, which the driver compiles to
//! machine code at the first use and caches, and for GPUs of compute capability 9 (H100, H200) the
//! machine code itself, which saves 50 to 130 ms a module.

use anyhow::{Result, anyhow, ensure};
use cudarc::driver::CudaModule;
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// One module: the kernels of one source file for one form of pixel, for each GPU generation.
struct Embedded {
    /// `normalize.u16_c1`: the source, and the form given in its header; `png_pack` and
    /// `papers/launch` if a source has one form for all pixels.
    name: &'static str,
    compute_60: &'static str,
    compute_90: &'static str,
    /// Empty for the papers' kernels, which only `bench` runs.
    sm_90: &'static [u8],
}

/// The GPU architectures of `Embedded`, in words.
pub const EMBEDDED_TARGETS: &str = "machine code for sm_90; PTX for compute_60, compute_90";

/// All modules; the kernel build writes the list.
static EMBEDDED: &[Embedded] = include!("../../kernels/compiled/list.rs");

/// The modules of one context, loaded at their first use.
#[derive(Debug)]
pub struct Modules {
    /// The major number of the compute capability.
    major: i32,
    loaded: Mutex<HashMap<String, Arc<CudaModule>>>,
}

impl Modules {
    /// Chooses the embedded form for a GPU's compute capability, (9, 0) for an H100. Errors: a GPU
    /// older than Pascal (6, 0).
    pub fn for_capability(capability: (i32, i32)) -> Result<Modules> {
        let (major, minor) = capability;
        ensure!(
            major >= 6,
            "its compute capability is {major}.{minor}, and 6.0 (Pascal, 2016) or later is needed"
        );
        Ok(Modules {
            major,
            loaded: Mutex::default(),
        })
    }

    /// The embedded form that this GPU uses.
    pub fn form(&self) -> &'static str {
        match self.major {
            9 => "sm_90",
            10.. => "compute_90",
            _ => "compute_60",
        }
    }

    /// The module of `file` for `form`; calls `load` at the first request.
    pub fn get(
        &self,
        file: &str,
        form: &str,
        load: impl Fn(Ptx) -> Result<Arc<CudaModule>>,
    ) -> Result<Arc<CudaModule>> {
        let name = match form {
            "" => file.to_string(),
            form => format!("{file}.{form}"),
        };
        let mut loaded = self
            .loaded
            .lock()
            .map_err(|_| anyhow!("another thread failed to load kernels"))?;
        if let Some(module) = loaded.get(&name) {
            return Ok(module.clone());
        }
        let embedded = EMBEDDED.iter().find(|embedded| embedded.name == name);
        let embedded = embedded.ok_or_else(|| anyhow!("no kernels named {name} are embedded"))?;
        let from_ptx = || {
            load(Ptx::from_src(match self.major {
                9.. => embedded.compute_90,
                _ => embedded.compute_60,
            }))
        };
        let module = match embedded.sm_90 {
            code if self.major == 9 && !code.is_empty() => {
                // If the driver refuses the machine code, it compiles the PTX instead.
                load(Ptx::from_binary(code.to_vec())).or_else(|_| from_ptx())?
            }
            _ => from_ptx()?,
        };
        loaded.insert(name, module.clone());
        Ok(module)
    }
}
