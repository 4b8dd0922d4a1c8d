//! Kinds of generated images on which codecs are measured, the same on every machine.

use gpuimg::internals::image::{Depth, Image, Shape};

/// A kind of image, with its own part of the table.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A smooth field and the shot noise of a 16-bit camera: no byte repeats.
    Noisy,
    /// The same of a 12-bit camera, its samples shifted up by 4 bits.
    Shifted,
    /// The field without noise.
    Smooth,
    /// A disc of tissue with noise on an even background of zeros, 12 bits.
    Ct,
    /// Cells, each filled with its number, on a background of zeros, as segmentation gives.
    Labels,
    /// Three noisy channels.
    Rgb,
    /// The noisy kind in 8 bits.
    Noisy8,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [
        Kind::Noisy,
        Kind::Shifted,
        Kind::Smooth,
        Kind::Ct,
        Kind::Labels,
        Kind::Rgb,
        Kind::Noisy8,
    ];

    /// Its name in the table and on the command line.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// An image of this kind.
    pub fn image(self, width: usize, height: usize) -> Image {
        let (channels, depth) = match self {
            Kind::Rgb => (3, Depth::Sixteen),
            Kind::Noisy8 => (1, Depth::Eight),
            _ => (1, Depth::Sixteen),
        };
        let shape = Shape {
            width,
            height,
            channels,
            depth,
        };
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut samples = Vec::with_capacity(shape.samples());
        for y in 0..height {
            for x in 0..width {
                let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
                for channel in 0..channels {
                    let sample = self.sample(u, v, &mut random);
                    samples.push(sample * [1.0, 0.8, 0.6][channel]);
                }
            }
        }
        Image::new(
            shape,
            match depth {
                Depth::Sixteen => samples.iter().map(|&s| s as u16).collect::<Vec<_>>().into(),
                _ => samples
                    .iter()
                    .map(|&s| (s / 256.0) as u8)
                    .collect::<Vec<_>>()
                    .into(),
            },
        )
    }

    /// The value at a place (u, v) between 0 and 1.
    fn sample(self, u: f32, v: f32, random: &mut Random) -> f32 {
        let wave = (7.0 * u).sin() * (5.0 * v).cos();
        match self {
            Kind::Noisy | Kind::Rgb | Kind::Noisy8 => random.shot(20000.0 + 15000.0 * wave, 0.8),
            Kind::Shifted => random.shot(2000.0 + 1500.0 * wave, 0.7).floor() * 16.0,
            Kind::Smooth => 20000.0 + 15000.0 * wave,
            Kind::Ct => {
                let (dx, dy) = (u - 0.5, v - 0.5);
                if dx * dx + 1.5 * dy * dy > 0.16 {
                    return 0.0;
                }
                let organ = (dx * 9.0).sin() * (dy * 11.0).cos() > 0.3;
                let tissue = if organ { 1100.0 } else { 950.0 };
                tissue + 20.0 * wave + 12.0 * random.normal()
            }
            Kind::Labels => {
                let (dx, dy) = ((u * 40.0).fract() - 0.5, (v * 40.0).fract() - 0.5);
                let inside = dx * dx + dy * dy + 0.03 * (wave * 90.0).sin() < 0.14;
                let cell = 1.0 + (u * 40.0).floor() + 40.0 * (v * 40.0).floor();
                if inside { cell } else { 0.0 }
            }
        }
    }
}

/// Pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Approximately normal, mean 0 and deviation 1: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: u64 = (0..4).map(|k| bits >> (16 * k) & 0xffff).sum();
        (sum as f32 / 65536.0 - 2.0) * 1.732
    }

    /// A camera's sample for a mean value: noise whose deviation is `gain` times the root of the
    /// mean.
    fn shot(&mut self, mean: f32, gain: f32) -> f32 {
        mean + gain * mean.sqrt() * self.normal()
    }
}
