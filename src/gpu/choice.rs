//! The choice between the CPU and a GPU, and the line that gives its reason. Everything known about
//! the GPUs is passed in, so that the choice can be tested without one.

use super::{Choice, Work, estimate};
use anyhow::Result;

/// Why no GPU can be used on a machine without its driver.
pub const NO_DRIVER: &str = if cfg!(windows) {
    "no NVIDIA driver on this machine (nvcuda.dll not found)"
} else {
    "no NVIDIA driver on this machine (libcuda.so.1 not found)"
};

/// The state of the devices when one is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The CPU's threads, which share the work.
    pub threads: usize,
    /// Whether a GPU has failed: `auto` then chooses the CPU.
    pub broken: bool,
    /// Whether a batch must still wait for its GPUs: `auto` then chooses the CPU.
    pub starting: bool,
    /// Whether the GPUs of a batch serve as many other workers as they can: `auto` then chooses the CPU.
    pub others_use_gpus: bool,
    /// Whether CUDA has been started, so that its start costs no more time.
    pub started: bool,
    /// Whether the machine has the NVIDIA driver.
    pub driver: bool,
}

/// The GPU for `work`, or `None` for the CPU, and a line with the choice and its reason. `open`
/// gives the GPU and its name; it is called only if the GPU is chosen.
///
/// # Errors
/// Those of `open`, if the user requested the GPU; with `auto` they become the reason for the CPU.
pub fn choose<G>(
    choice: Choice,
    work: &Work,
    situation: &Situation,
    open: impl FnOnce() -> Result<(G, String)>,
) -> Result<(Option<G>, String)> {
    let on_cpu = |why: String| Ok((None, cpu_line(situation.threads, &why)));
    match choice {
        Choice::Cpu => on_cpu("as requested".into()),
        Choice::Gpu(_) => {
            let (gpu, name) = open()?;
            Ok((
                Some(gpu),
                format!("{}, as requested", gpu_line(choice, &name)),
            ))
        }
        Choice::Auto if situation.broken => on_cpu("chosen by auto: the GPU failed".into()),
        Choice::Auto if situation.starting => on_cpu("chosen by auto: no GPU was started".into()),
        Choice::Auto if situation.others_use_gpus => {
            on_cpu("chosen by auto: other workers use the GPU".into())
        }
        // An estimate for a GPU that the machine does not have is of no use.
        Choice::Auto if !situation.driver => on_cpu(format!("chosen by auto: {NO_DRIVER}")),
        Choice::Auto => {
            let (cpu, gpu) = estimate(work, situation.threads, situation.started);
            let start = if situation.started {
                ""
            } else {
                " including start-up"
            };
            let compared = format!(
                "{:.1} ms estimated, {:.1} for the GPU{start}",
                cpu * 1e3,
                gpu * 1e3
            );
            if cpu <= gpu {
                return on_cpu(format!("chosen by auto: {compared}"));
            }
            match open() {
                Ok((gpu, name)) => {
                    let gpu_line = gpu_line(choice, &name);
                    let why = format!("chosen by auto: CPU {compared}");
                    Ok((Some(gpu), format!("{gpu_line}, {why}")))
                }
                Err(error) => on_cpu(format!("chosen by auto: {}", error.root_cause())),
            }
        }
    }
}

/// The name of a GPU in a line, with its number if the user gave one.
pub fn gpu_line(choice: Choice, name: &str) -> String {
    match choice {
        Choice::Gpu(_) => format!("GPU {} ({name})", choice.ordinal()),
        Choice::Auto | Choice::Cpu => format!("GPU ({name})"),
    }
}

/// The line that names the CPU with its threads, and why it was chosen.
pub fn cpu_line(threads: usize, why: &str) -> String {
    match threads {
        1 => format!("CPU (1 thread), {why}"),
        count => format!("CPU ({count} threads), {why}"),
    }
}
