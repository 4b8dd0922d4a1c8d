//! The embedded kernels, compiled ahead by `kernels/build.sh`: PTX, which the driver turns into
//! machine code when first asked for and keeps, and for GPUs of compute capability 9 (H100, H200)
//! that machine code itself, which spares them 50 to 130 ms a module.

use anyhow::{Result, anyhow, ensure};
use cudarc::driver::CudaModule;
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// One module: the kernels of one source for one form of pixel, for each generation of GPU.
struct Embedded {
    /// `normalize.u16_c1`: the source, and the form as in its header; `png_pack` and `papers/launch`
    /// where a source has one form for all pixels.
    name: &'static str,
    compute_60: &'static str,
    compute_90: &'static str,
    /// Empty for the papers', which only `bench` runs.
    sm_90: &'static [u8],
}

/// All modules; the kernel build writes the list.
static EMBEDDED: &[Embedded] = include!("../../kernels/compiled/list.rs");

/// The modules of one context, loaded when first asked for.
#[derive(Debug)]
pub struct Modules {
    /// Of the compute capability.
    major: i32,
    loaded: Mutex<HashMap<String, Arc<CudaModule>>>,
}

impl Modules {
    /// Chooses the embedded form for a GPU's compute capability, (9, 0) for an H100; an error
    /// for GPUs before Pascal (6, 0).
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

    /// Which of the embedded forms this GPU gets.
    pub fn form(&self) -> &'static str {
        match self.major {
            9 => "sm_90",
            10.. => "compute_90",
            _ => "compute_60",
        }
    }

    /// The module of `file` for `form`, loaded by `load` if this is the first time.
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
                // Whatever a driver may hold against the machine code, it can make its own.
                load(Ptx::from_binary(code.to_vec())).or_else(|_| from_ptx())?
            }
            _ => from_ptx()?,
        };
        loaded.insert(name, module.clone());
        Ok(module)
    }
}
