//! Frames of a camera in memory: subtracts a dark frame, scales each to the full range, and encodes it as PNG, on several threads.
//! The argument is the device: auto (the default), cpu, gpu or gpu:N.
//!
//! ```sh
//! cargo run --release --features examples --example frames_in_memory cpu
//! ```

#![allow(clippy::disallowed_macros, reason = "a lost line does no harm here")]

use gpuimg::{Calibration, Device, Format, Image, Normalize, Operations};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const WIDTH: usize = 640;
const HEIGHT: usize = 512;
const FRAMES: usize = 32;

fn main() -> gpuimg::Result<()> {
    let device = std::env::args().nth(1);
    let device: Device = device.as_deref().unwrap_or("auto").parse()?;
    let png: Format = "png".parse()?;

    let dark = Image::new(WIDTH, HEIGHT, 1, vec![64u16; WIDTH * HEIGHT])?;
    let calibration = Calibration {
        dark: Some(dark),
        ..Calibration::default()
    };
    let operations = Operations::new()
        .calibrate(calibration)?
        .normalize(Normalize::new());

    // Operations and devices are shared: no thread waits for another one.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut bytes = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= FRAMES {
                return Ok(bytes);
            }
            let image = Image::new(WIDTH, HEIGHT, 1, frame(number))?;
            let result = operations.run(image, &device)?;
            if number == 0 {
                println!("{}", result.report().device);
            }
            bytes += gpuimg::encode(&result, png)?.len();
        }
    };
    let totals: Vec<gpuimg::Result<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    });
    let bytes: usize = totals.into_iter().sum::<gpuimg::Result<usize>>()?;
    println!("{FRAMES} frames, {bytes} bytes of PNG");
    Ok(())
}

/// A frame as a camera would give it: a bright spot that moves over a noisy ground.
fn frame(number: usize) -> Vec<u16> {
    let mut noise = number as u32 + 1;
    let samples = (0..WIDTH * HEIGHT).map(|index| {
        let (x, y) = (index % WIDTH, index / WIDTH);
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let distance = x.abs_diff(20 * number % WIDTH) + y.abs_diff(HEIGHT / 2);
        64 + (noise >> 28) as u16 + 4000 / (distance as u16 + 1)
    });
    samples.collect()
}
