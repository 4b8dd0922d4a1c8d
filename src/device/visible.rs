//! What a run tells the driver in the environment, before the driver is loaded, so that it starts and ends
//! sooner: which GPUs it uses, and how many streams.
//!
//! The driver starts every GPU that it sees: on a host with four, a process took 1.25 s with all of them and 0.44 s
//! with one. And it prepares eight connections to each: on an H200 a process for one image took 331 ms, and
//! 272 ms with two, a batch of 64 took 453 ms, and 420 ms with four (1024: 938 and 910; with two, 966).

use super::Choice;
use std::sync::{Once, OnceLock};
use std::{env, fs};

/// The environment variable that lists the GPUs which CUDA sees.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Bytes of input for each further GPU: less is done by one in the time in which the next starts.
const BYTES_A_GPU: u64 = 3_000_000_000;

/// How many GPUs a batch of so many bytes of input keeps busy.
pub fn worth(bytes: u64) -> usize {
    1 + usize::try_from(bytes / BYTES_A_GPU).unwrap_or(usize::MAX - 1)
}

/// The environment variable that says how many connections CUDA prepares to a GPU, of 1 to 32. Streams that share one
/// wait for each other.
const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// Connections for one image, and for a batch.
const OF_ONE: &str = "2";
const OF_BATCH: &str = "4";

/// Has the driver prepare as many connections as a batch needs, or as one image does, unless the user has
/// said how many; the first call in a process counts. To be called as `show_only`.
pub fn connect(choice: Choice, batch: bool) {
    static FIRST: Once = Once::new();
    if choice != Choice::Cpu && env::var_os(CONNECTIONS).is_none() {
        let count = if batch { OF_BATCH } else { OF_ONE };
        // SAFETY: as in `show_only`, and done once in a process.
        FIRST.call_once(|| unsafe { env::set_var(CONNECTIONS, count) });
    }
}

/// The choice whose GPUs alone are shown by now.
static SHOWN: OnceLock<Choice> = OnceLock::new();

/// Whether the driver might see several GPUs.
pub fn several() -> bool {
    match env::var(VISIBLE) {
        Ok(list) => list.contains(','),
        Err(_) => devices() > 1,
    }
}

/// Hides all GPUs but at most `most` of those chosen from the driver, and gives the number that
/// the first of them has for the driver then. To be called before anything else asks the driver,
/// by the thread that prepares a run.
pub fn show_only(choice: Choice, most: usize) -> usize {
    let hidden = env::var(VISIBLE).ok();
    match shown(hidden.as_deref(), devices(), choice, most) {
        None if SHOWN.get() == Some(&choice) => 0,
        None => choice.ordinal(),
        Some(list) => {
            // SAFETY: no other thread uses the environment now: those that exist wait for work or
            // for a signal, and the driver's own have not been started.
            unsafe { env::set_var(VISIBLE, list) };
            SHOWN.get_or_init(|| choice);
            0
        }
    }
}

/// The GPUs that the driver has made files for.
fn devices() -> usize {
    let names = fs::read_dir("/dev").into_iter().flatten().flatten();
    let numbered = |name: &str| {
        let number = name.strip_prefix("nvidia");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    names
        .filter(|entry| entry.file_name().to_str().is_some_and(numbered))
        .count()
}

/// The value of `VISIBLE` for a run, if it should be another: of the GPUs listed there, or of all
/// `devices`, the chosen one, or the first few.
fn shown(listed: Option<&str>, devices: usize, choice: Choice, most: usize) -> Option<String> {
    let all: Vec<String> = match listed {
        Some(list) => list.split(',').map(|name| name.trim().into()).collect(),
        None => (0..devices).map(|number| number.to_string()).collect(),
    };
    let used = match choice {
        Choice::Cpu => return None,
        Choice::Gpu(Some(number)) => number..number + 1,
        Choice::Gpu(None) | Choice::Auto => 0..most.min(all.len()),
    };
    // A number that does not exist is the driver's to refuse.
    let used = all.get(used).filter(|used| used.len() < all.len())?;
    Some(used.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_sees_the_gpus_that_are_used() {
        let (auto, first, third) = (Choice::Auto, Choice::Gpu(None), Choice::Gpu(Some(2)));
        let some = |list: &str| Some(list.to_string());
        assert_eq!(shown(None, 4, auto, 1), some("0"));
        assert_eq!(shown(None, 4, first, 3), some("0,1,2"));
        assert_eq!(shown(None, 4, first, 9), None);
        assert_eq!(shown(None, 4, third, 1), some("2"));
        assert_eq!(shown(None, 2, third, 1), None);
        assert_eq!(shown(None, 1, auto, 1), None);
        assert_eq!(shown(None, 0, first, 1), None);
        assert_eq!(shown(None, 4, Choice::Cpu, 1), None);
        // What the user or a scheduler has set is only ever narrowed.
        assert_eq!(shown(Some("3, 1,GPU-6a"), 4, first, 2), some("3,1"));
        assert_eq!(shown(Some("3,1,GPU-6a"), 4, third, 1), some("GPU-6a"));
        assert_eq!(shown(Some("3"), 4, auto, 1), None);
        assert_eq!(shown(Some(""), 4, auto, 1), None);
        assert_eq!(worth(2_999_999_999), 1);
        assert_eq!(worth(6_000_000_000), 3);
    }
}
