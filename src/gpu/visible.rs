//! The environment variables for the driver, so that a run starts and ends sooner: which GPUs it uses, and how many
//! connections. `main` sets them before it starts a thread and before the driver is loaded; the library sets nothing.
//!
//! The driver starts every GPU that it sees: on a host with four, a process took 1.25 s with all of them and 0.44 s
//! with one. And it prepares eight connections to each: on an H200 a process for one image took 331 ms, and
//! 272 ms with two, a batch of 64 took 453 ms, and 420 ms with four (1024: 938 and 910; with two, 966).

use super::Choice;
use crate::os::is_folder_of_files;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// The environment variable that lists the GPUs which CUDA sees.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Bytes of input that one GPU processes in the time that each further GPU takes to start. Two H200s took 0.46 s longer to start
/// than one, and saved 0.1 ms, half of the time, for each PNG of 7.2 MB.
const BYTES_IN_ONE_START: u64 = 16_000_000_000;

/// The number of GPUs that are worth their start for a batch of so many bytes of input. With the n-th one, the time of one GPU is
/// divided by n instead of n − 1, which saves 1/(n(n − 1)) of it.
fn useful_gpus(bytes: u64) -> usize {
    let is_worth = |gpus: &u64| gpus * (gpus - 1) * BYTES_IN_ONE_START <= bytes;
    (1..).take_while(is_worth).count()
}

/// The environment variable with the number of connections that CUDA prepares to a GPU, from 1 to 32. Streams that share one
/// wait for each other.
const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// The connections for one image.
const CONNECTIONS_OF_ONE: &str = "2";

/// The connections for a batch.
const CONNECTIONS_OF_BATCH: &str = "4";

/// The devices that a run needs.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The device that was asked for.
    pub choice: Choice,
    /// The images, or folders of them; none where only a list names them.
    pub inputs: &'a [PathBuf],
    /// Whether several GPUs may share them.
    pub shared: bool,
}

/// The choice whose GPUs are the only visible ones, once `variables` has hidden the others.
static SHOWN: OnceLock<Choice> = OnceLock::new();

/// The variables to set for a run, before anything calls the driver: as many connections as it needs, unless the user has set
/// their number, and only the GPUs that it uses.
pub fn variables(demand: &Demand) -> Vec<(&'static str, String)> {
    let mut variables = Vec::new();
    let Demand {
        choice,
        inputs,
        shared,
    } = *demand;
    if choice == Choice::Cpu {
        return variables;
    }
    let one = matches!(inputs, [input] if !is_folder_of_files(input));
    if env::var_os(CONNECTIONS).is_none() {
        let count = if one {
            CONNECTIONS_OF_ONE
        } else {
            CONNECTIONS_OF_BATCH
        };
        variables.push((CONNECTIONS, count.to_string()));
    }
    let listed = env::var(VISIBLE).ok();
    let devices = devices();
    let several = listed
        .as_deref()
        .map_or(devices > 1, |list| list.contains(','));
    let most = match inputs {
        _ if one || !shared => 1,
        // Names in a list: there may be many.
        [] => usize::MAX,
        _ if several => useful_gpus(inputs.iter().map(|input| bytes(input)).sum()),
        _ => usize::MAX,
    };
    if let Some(list) = shown(listed.as_deref(), devices, choice, most) {
        variables.push((VISIBLE, list));
        SHOWN.get_or_init(|| choice);
    }
    variables
}

/// The driver's number of the first GPU that a choice names.
pub fn first(choice: Choice) -> usize {
    match SHOWN.get() {
        Some(shown) if *shown == choice => 0,
        _ => choice.ordinal(),
    }
}

/// The bytes of a file, or of all files in a folder. What cannot be read counts as 0 here, and is reported when it is needed.
fn bytes(path: &Path) -> u64 {
    // A link to a folder counts as 0 bytes, because it may lead back here.
    let Ok(entry) = path.symlink_metadata() else {
        return 0;
    };
    if entry.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|entry| bytes(&entry.path())).sum();
    }
    path.metadata()
        .map_or(0, |file| if file.is_file() { file.len() } else { 0 })
}

/// The number of GPUs that have a device file.
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

/// The value of `VISIBLE` for a run, if it must change: the chosen GPU, or the first `most`, of those
/// listed there, or of all `devices`.
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
    // The driver refuses a number that does not exist.
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
        assert_eq!([0, 31_999_999_999].map(useful_gpus), [1, 1]);
        assert_eq!([32_000_000_000, 95_999_999_999].map(useful_gpus), [2, 2]);
        assert_eq!(useful_gpus(12 * 16_000_000_000), 4);
    }

    #[test]
    fn one_image_needs_fewer_connections_than_a_batch() {
        let folder = tempfile::tempdir().expect("folder");
        let image = folder.path().join("a.pgm");
        fs::write(&image, [0; 100]).expect("file");
        fs::create_dir(folder.path().join("below")).expect("folder");
        fs::write(folder.path().join("below/b.pgm"), [0; 23]).expect("file");
        assert_eq!(bytes(folder.path()), 123);
        let connections = |choice, inputs: &[PathBuf]| {
            let demand = Demand {
                choice,
                inputs,
                shared: true,
            };
            let mut variables = variables(&demand).into_iter();
            variables.find_map(|(name, value)| (name == CONNECTIONS).then_some(value))
        };
        if env::var_os(CONNECTIONS).is_some() {
            return;
        }
        let (one, two) = (Some("2".to_string()), Some("4".to_string()));
        assert_eq!(connections(Choice::Auto, std::slice::from_ref(&image)), one);
        assert_eq!(
            connections(Choice::Auto, &[image.clone(), image.clone()]),
            two
        );
        assert_eq!(connections(Choice::Auto, &[folder.path().into()]), two);
        assert_eq!(connections(Choice::Cpu, &[image]), None);
    }
}
