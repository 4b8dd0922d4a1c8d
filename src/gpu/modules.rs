//! The embedded kernels, compiled ahead by `kernels/build.sh`: machine code for GPUs from Ampere on, and PTX, which the
//! driver of any other compiles at the first use and caches. Machine code saves 50 to 130 ms per module. All are
//! embedded compressed, and a run inflates only what it loads, in 0.1 to 0.3 ms per module.

use anyhow::{Context, Result, anyhow, ensure};
use cudarc::driver::CudaModule;
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// One module: the kernels of one source file for one form of pixel, for each GPU generation. The compiler's number of a
/// generation is 86 for compute capability 8.6. PTX and machine code are compressed as gzip files.
struct Embedded {
    /// `normalize.u16_c1`: the source, and the form given in its header; `png_pack` and
    /// `papers/launch` if a source has one form for all pixels.
    name: &'static str,
    ptx: &'static [(u32, &'static [u8])],
    /// Empty for the papers' kernels, which only `bench` runs.
    code: &'static [(u32, &'static [u8])],
}

/// The generations that every module has PTX for, oldest first.
const PTX: [u32; 2] = [60, 90];

/// The generations that every module of the program's own has machine code for, oldest first.
const MACHINE_CODE: [u32; 5] = [80, 86, 90, 100, 120];

/// All modules; the kernel build writes the list.
static EMBEDDED: &[Embedded] = include!("../../kernels/compiled/list.rs");

/// The modules of one context, loaded at their first use.
#[derive(Debug)]
pub struct Modules {
    /// 86 for compute capability 8.6.
    generation: u32,
    loaded: Mutex<HashMap<String, Arc<CudaModule>>>,
}

impl Modules {
    /// Chooses the embedded form for a GPU's compute capability, 9.0 for an H100.
    ///
    /// # Errors
    /// A GPU older than Pascal (6.0).
    pub fn for_capability(major: i32, minor: i32) -> Result<Modules> {
        ensure!(
            major >= 6,
            "its compute capability is {major}.{minor}, but 6.0 (Pascal, 2016) or later is required"
        );
        Ok(Modules {
            generation: (10 * major + minor) as u32,
            loaded: Mutex::default(),
        })
    }

    /// The embedded form that this GPU uses: `sm_90`, or `compute_60`.
    pub fn form(&self) -> String {
        match code_for(self.generation, MACHINE_CODE) {
            Some(generation) => format!("sm_{generation}"),
            None => format!("compute_{}", ptx_for(self.generation)),
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
        let embedded = embedded
            .ok_or_else(|| anyhow!("internal error: no kernels named {name} are embedded"))?;
        let from_ptx = || {
            let ptx = for_generation(embedded.ptx, ptx_for(self.generation));
            let ptx = ptx.ok_or_else(|| anyhow!("no PTX of {name} is embedded"))?;
            load(Ptx::from_src(String::from_utf8(inflated(ptx)?)?))
        };
        let code = code_for(self.generation, MACHINE_CODE);
        let module = match code.and_then(|generation| for_generation(embedded.code, generation)) {
            // If the driver refuses the machine code, it compiles the PTX instead.
            Some(code) => load(Ptx::from_binary(inflated(code)?)).or_else(|_| from_ptx())?,
            None => from_ptx()?,
        };
        loaded.insert(name, module.clone());
        Ok(module)
    }
}

/// The newest of `generations` whose machine code runs on a GPU of `generation`: of the same major number, and
/// not newer. Source: "Binary Compatibility" in the CUDA C++ Programming Guide.
fn code_for(generation: u32, generations: impl IntoIterator<Item = u32>) -> Option<u32> {
    let runs = |code: &u32| code / 10 == generation / 10 && *code <= generation;
    generations.into_iter().filter(runs).max()
}

/// The newest generation of PTX that a GPU of `generation` compiles.
fn ptx_for(generation: u32) -> u32 {
    let older = PTX.into_iter().filter(|ptx| *ptx <= generation);
    older.max().unwrap_or(PTX[0])
}

/// The embedded form for a generation.
fn for_generation<T>(forms: &[(u32, T)], generation: u32) -> Option<&T> {
    let mut forms = forms.iter();
    forms.find_map(|(known, form)| (*known == generation).then_some(form))
}

/// The content of a gzip file of less than 4 GiB, whose last four bytes state the length. Source: RFC 1952, section 2.3.1.
fn inflated(file: &[u8]) -> Result<Vec<u8>> {
    let (_, length) = file.split_last_chunk().context("no kernels are embedded")?;
    let mut bytes = vec![0; u32::from_le_bytes(*length) as usize];
    let read = libdeflater::Decompressor::new().gzip_decompress(file, &mut bytes)?;
    ensure!(read == bytes.len(), "the embedded kernels are damaged");
    Ok(bytes)
}

/// The embedded targets as text: `machine code for sm_80, …; PTX for compute_60, …`.
pub fn embedded_targets() -> String {
    let list = |prefix: &str, generations: &[u32]| {
        let names: Vec<String> = (generations.iter())
            .map(|number| format!("{prefix}_{number}"))
            .collect();
        names.join(", ")
    };
    format!(
        "machine code for {}; PTX for {}",
        list("sm", &MACHINE_CODE),
        list("compute", &PTX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// The generation that a cubin is for, of the flags in its ELF header: their low byte, and the one above it since the
    /// eighth version of the layout, which begins with Blackwell.
    fn generation_of(cubin: &[u8]) -> u32 {
        assert_eq!(cubin[..4], *b"\x7fELF");
        let layout = cubin[8];
        cubin[if layout < 8 { 48 } else { 49 }].into()
    }

    #[test]
    fn every_generation_listed_is_embedded_as_what_it_is_called() {
        let mut own = 0;
        for module in EMBEDDED {
            let ptx: Vec<u32> = module
                .ptx
                .iter()
                .map(|(generation, _)| *generation)
                .collect();
            assert_eq!(ptx, PTX, "{}", module.name);
            for (generation, text) in module.ptx {
                let text = inflated(text).expect("gzip");
                let text = String::from_utf8(text).expect("text");
                assert!(
                    text.contains(&format!("\n.target sm_{generation}\n")),
                    "{}",
                    module.name
                );
            }
            if module.name.starts_with("papers/") {
                assert!(module.code.is_empty(), "{}", module.name);
                continue;
            }
            own += 1;
            let code: Vec<u32> = module
                .code
                .iter()
                .map(|(generation, _)| *generation)
                .collect();
            assert_eq!(code, MACHINE_CODE, "{}", module.name);
            for (generation, code) in module.code {
                let code = inflated(code).expect("gzip");
                assert_eq!(generation_of(&code), *generation, "{}", module.name);
            }
        }
        assert!(own >= 60, "{own} modules");
    }

    fn modules((major, minor): (i32, i32)) -> Modules {
        Modules::for_capability(major, minor).expect("Pascal or later")
    }

    #[test]
    fn each_gpu_gets_the_newest_code_that_runs_on_it() {
        for (capability, form) in [
            ((6, 0), "compute_60"),  // P100
            ((7, 5), "compute_60"),  // T4
            ((8, 0), "sm_80"),       // A100
            ((8, 6), "sm_86"),       // A40
            ((8, 9), "sm_86"),       // L40, RTX 4090
            ((9, 0), "sm_90"),       // H100
            ((10, 0), "sm_100"),     // B200
            ((10, 3), "sm_100"),     // B300
            ((11, 0), "compute_90"), // Thor
            ((12, 0), "sm_120"),     // RTX 5090
            ((12, 1), "sm_120"),     // GB10
            ((13, 0), "compute_90"),
        ] {
            let modules = modules(capability);
            assert_eq!(modules.form(), form, "{capability:?}");
        }
        let refused = Modules::for_capability(5, 2).expect_err("Maxwell");
        assert!(refused.to_string().contains("5.2"), "{refused}");
    }

    /// The code that the driver is given, and the code that comes next if it refuses the first.
    #[test]
    fn a_driver_that_refuses_machine_code_is_given_ptx() {
        let offered = |capability, file: &str, form: &str| {
            let offered = RefCell::new(Vec::new());
            let refusing = |code: Ptx| {
                offered
                    .borrow_mut()
                    .push(format!("{code:?}").starts_with("Ptx(Src("));
                Err(anyhow!("refused"))
            };
            let modules = modules(capability);
            assert!(modules.get(file, form, refusing).is_err());
            offered.into_inner()
        };
        assert_eq!(offered((8, 7), "normalize", "u16_c1"), [false, true]);
        assert_eq!(offered((7, 5), "normalize", "u16_c1"), [true]);
        assert_eq!(offered((9, 0), "papers/launch", ""), [true]);
    }

    /// How often an instruction begins so in each kernel of a paper's file, as compiled for a generation.
    fn counted(file: &str, generation: u32, instruction: &str) -> HashMap<String, usize> {
        let module = EMBEDDED.iter().find(|module| module.name == file);
        let ptx = for_generation(module.expect(file).ptx, generation).expect("PTX");
        let text = String::from_utf8(inflated(ptx).expect("gzip")).expect("text");
        let entries = text.split(".visible .entry ").skip(1);
        entries
            .map(|entry| {
                let name = entry.split('(').next().expect("a name");
                let begins = |line: &&str| {
                    // After a predicate, as in `@%p1 bra`.
                    let line = line.trim_start();
                    let code = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
                    code.map_or(line, |(_, code)| code)
                        .trim_start()
                        .starts_with(instruction)
                };
                (name.into(), entry.lines().filter(begins).count())
            })
            .collect()
    }

    /// The compiler made a selection of the innermost condition, kept values in registers, and so on: the experiment was gone.
    #[test]
    fn the_compiler_optimized_experiments_away() {
        for generation in PTX {
            let count = |file: &str, kernel: &str, instruction: &str| {
                let counts = counted(&format!("papers/{file}"), generation, instruction);
                counts.get(kernel).copied().expect(kernel)
            };
            let branches = [
                "serial", "nested_1", "nested_2", "nested_3", "nested_4", "nested_8",
            ];
            let branches = branches.map(|kernel| count("minmax", kernel, "bra"));
            assert!(branches.is_sorted_by(|a, b| a < b), "{branches:?}");
            let selections = ["serial", "nested_1", "nested_8"];
            let selections = selections.map(|kernel| count("minmax", kernel, "selp"));
            assert_eq!(selections, [selections[0]; 3]);
            // Before the barrier, each element is compared with values in shared memory.
            assert!(count("minmax", "serial", "ld.volatile.shared") > 2);
            assert_eq!(count("minmax", "warp", "ld.volatile.shared"), 0);
            assert!(count("local", "spilled_16", "ld.local") > 0);
            assert_eq!(count("local", "registers_16", "ld.local"), 0);
            assert!(count("onchip", "chase_local", "ld.local") > 0);
            assert!(count("onchip", "chase_texture", "{ .reg .u32 g, b, a; tex.2d") > 0);
            assert_eq!(count("memory", "copy_by_2", "ld.global.u16"), 1);
            assert_eq!(count("memory", "copy_by_16", "ld.global.v4.u32"), 1);
            let newer = usize::from(generation >= 90);
            assert_eq!(count("reduce", "step_10", "redux.sync").min(1), newer);
            assert_eq!(count("reduce", "step_12", "cp.async.bulk").min(1), newer);
            assert_eq!(count("transpose", "async_32", "cp.async.ca").min(1), newer);
        }
    }
}
