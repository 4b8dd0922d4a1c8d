//! The embedded kernels: PTX compiled ahead by `kernels/build.sh`, turned into machine code by
//! the driver when first asked for and kept.

use anyhow::{Result, anyhow, ensure};
use cudarc::driver::CudaModule;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// One module: the kernels of one operation for one form of pixel, for both generations of card.
struct Embedded {
    /// `normalize.u16_c1`: file, and form as in the file's header.
    name: &'static str,
    compute_60: &'static str,
    compute_90: &'static str,
}

macro_rules! embedded {
    ($($file:literal: $($form:literal)*;)*) => {
        &[$($(Embedded {
            name: concat!($file, ".", $form),
            compute_60: include_str!(concat!("../../kernels/", $file, ".", $form, ".compute_60.ptx")),
            compute_90: include_str!(concat!("../../kernels/", $file, ".", $form, ".compute_90.ptx")),
        }),*),*]
    };
}

static EMBEDDED: &[Embedded] = embedded! {
    "flip": "b1" "b2" "b3" "b4" "b6" "b8";
    "histogram": "u8_c1" "u8_c2" "u8_c3" "u8_c4" "u16_c1" "u16_c2" "u16_c3" "u16_c4";
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
        }),*]
    };
}

/// The kernels that are the same for all pixels: PNG's, and the historic ones for `bench`. Their
/// form has no name.
static OF_ONE_FORM: &[Embedded] = of_one_form!(
    "png_codes" "png_filter" "png_pack" "papers/launch" "papers/layout" "papers/memory"
    "papers/minmax" "papers/normalize" "papers/reduce" "papers/transpose"
);

/// The modules of one context, loaded when first asked for.
#[derive(Debug)]
pub struct Modules {
    newest: bool,
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
            newest: major >= 9,
            loaded: Mutex::default(),
        })
    }

    /// Which of the two embedded forms this card gets.
    pub fn form(&self) -> &'static str {
        if self.newest {
            "compute_90"
        } else {
            "compute_60"
        }
    }

    /// The module of `file` for `form`, loaded by `load` from its PTX if this is the first time.
    pub fn get(
        &self,
        file: &str,
        form: &str,
        load: impl FnOnce(&'static str) -> Result<Arc<CudaModule>>,
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
        let mut all = EMBEDDED.iter().chain(OF_ONE_FORM);
        let embedded = all.find(|embedded| embedded.name == name);
        let embedded = embedded.ok_or_else(|| anyhow!("no kernels named {name} are embedded"))?;
        let module = load(if self.newest {
            embedded.compute_90
        } else {
            embedded.compute_60
        })?;
        loaded.insert(name, module.clone());
        Ok(module)
    }
}
