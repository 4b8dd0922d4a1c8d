//! The embedded kernels, compiled ahead by `kernels/build.sh`: PTX, which the driver turns into
//! machine code when first asked for and keeps, and for cards of compute capability 9 (H100, H200)
//! that machine code itself, which spares them 50 to 130 ms a file.

use anyhow::{Result, anyhow, ensure};
use cudarc::driver::CudaModule;
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// One module: the kernels of one operation for one form of pixel, for each generation of card.
struct Embedded {
    /// `normalize.u16_c1`: file, and form as in the file's header.
    name: &'static str,
    compute_60: &'static str,
    compute_90: &'static str,
    /// Empty for the papers'.
    sm_90: &'static [u8],
}

macro_rules! embedded {
    ($($file:literal: $($form:literal)*;)*) => {
        &[$($(Embedded {
            name: concat!($file, ".", $form),
            compute_60: include_str!(concat!("../../kernels/", $file, ".", $form, ".compute_60.ptx")),
            compute_90: include_str!(concat!("../../kernels/", $file, ".", $form, ".compute_90.ptx")),
            sm_90: include_bytes!(concat!("../../kernels/", $file, ".", $form, ".sm_90.cubin")),
        }),*),*]
    };
}

static EMBEDDED: &[Embedded] = embedded! {
    "flip": "b1" "b2" "b3" "b4" "b6" "b8";
    "histogram": "u8_c1" "u8_c2" "u8_c3" "u8_c4" "u16_c1" "u16_c2" "u16_c3" "u16_c4";
    "png_unfilter": "b1" "b2" "b3" "b4" "b6" "b8";
    "normalize": "u8_c1" "u8_c2" "u8_c3" "u8_c4" "u16_c1" "u16_c2" "u16_c3" "u16_c4";
    "sum": "u32" "u8_c1" "u8_c2" "u8_c3" "u8_c4" "u16_c1" "u16_c2" "u16_c3" "u16_c4";
    "transpose": "b1" "b2" "b3" "b4" "b6" "b8";
};

macro_rules! of_one_form {
    ($($file:literal)*) => {
        &[$(Embedded {
            name: $file,
            compute_60: include_str!(concat!("../../kernels/", $file, ".compute_60.ptx")),
            compute_90: include_str!(concat!("../../kernels/", $file, ".compute_90.ptx")),
            sm_90: include_bytes!(concat!("../../kernels/", $file, ".sm_90.cubin")),
        }),*]
    };
}

/// The kernels that are the same for all pixels; their form has no name.
static OF_ONE_FORM: &[Embedded] = of_one_form!(
    "png_codes" "png_filter" "png_find" "png_inflate" "png_matches" "png_pack" "png_rows"
);

macro_rules! papers {
    ($($file:literal)*) => {
        &[$(Embedded {
            name: concat!("papers/", $file),
            compute_60: include_str!(concat!("../../kernels/papers/", $file, ".compute_60.ptx")),
            compute_90: include_str!(concat!("../../kernels/papers/", $file, ".compute_90.ptx")),
            sm_90: &[],
        }),*]
    };
}

/// The historic kernels, for `bench` only; they have one form, without a name.
static PAPERS: &[Embedded] =
    papers!("launch" "layout" "memory" "minmax" "normalize" "reduce" "transpose");

/// The modules of one context, loaded when first asked for.
#[derive(Debug)]
pub struct Modules {
    /// Of the compute capability.
    major: i32,
    loaded: Mutex<HashMap<String, Arc<CudaModule>>>,
}

impl Modules {
    /// Chooses the embedded form for a card's compute capability, (9, 0) for an H100; an error
    /// for cards before Pascal (6, 0).
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

    /// Which of the embedded forms this card gets.
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
        let mut all = EMBEDDED.iter().chain(OF_ONE_FORM).chain(PAPERS);
        let embedded = all.find(|embedded| embedded.name == name);
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
