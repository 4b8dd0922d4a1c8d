//! Files to buffers in the memory of a GPU, on several threads: each is decoded, normalized and rotated there, and only three numbers
//! come back. Takes the files; needs a GPU.
//!
//! ```sh
//! cargo run --release --features examples --example device_buffers samples/*.tif
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a lost line or a name that prints like another does no harm here"
)]

use gpuimg::{Device, GpuReader, Operations, ReadOptions};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

fn main() -> gpuimg::Result<()> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let queue = Mutex::new(files.into_iter());
    let device = Device::gpu();
    let operations: Operations = "normalize --clip 0.1:99.9 + rotate 90".parse()?;

    let next = || queue.lock().expect("no panic").next();
    let work = || {
        while let Some(file) = next() {
            process(&file, &operations, &device)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let mut results = threads.into_iter().map(|it| it.join().expect("no panic"));
        results.try_for_each(|result| result)
    })
}

fn process(file: &Path, operations: &Operations, device: &Device) -> gpuimg::Result<()> {
    let image = operations.run_file_to_gpu(file, &ReadOptions::new(), device)?;
    let sums = image.sum(None)?;
    // A kernel or a library of yours can use this address while `image` exists.
    let address = image.address(GpuReader::DefaultStream)?;
    println!(
        "{}: {} {} samples at {address:#x}, sum {:?}, smallest {:?}, largest {:?}",
        file.display(),
        image.shape(),
        image.sample_type(),
        sums.total.sum,
        sums.total.min,
        sums.total.max
    );
    Ok(())
}
