//! Files that a GPU decodes, processes and writes.

use gpuimg::internals::engine::{Destination, Done, Resources, RunRecord, process_file};
use gpuimg::internals::formats::{Options, Reading};
use gpuimg::internals::gpu::{Choice, Devices, Work};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::timing::Timeline;
use std::path::Path;

pub fn destination(path: &Path) -> Destination {
    Destination {
        folder: None,
        path: path.into(),
        format: None,
        options: Options::default(),
        overwrite: true,
        sync: false,
        depth: None,
        auto_orient: false,
        fit: None,
        low_memory: false,
        store: Default::default(),
    }
}

pub fn processed(
    op: &dyn Operation,
    input: &Path,
    output: &Path,
    devices: &Devices,
) -> Result<Done, String> {
    let resources = Resources {
        devices,
        budget: None,
        reading: Reading::default(),
        require_regular_file: false,
        position: None,
        gpu_times: true,
    };
    let done = process_file(
        &[op],
        input,
        Some(&destination(output)),
        &resources,
        RunRecord::NONE,
    );
    done.map_err(|error| format!("{error:#}"))
}

/// The devices for `--device gpu` with the GPU started, so that it decodes the first file too.
pub fn started() -> Devices {
    let devices = Devices::new(Choice::Gpu(Some(0)));
    let chosen = devices.choose(&Work::default(), &mut Timeline::default());
    assert!(chosen.is_ok_and(|(gpu, _)| gpu.is_some()));
    devices
}
