//! Kinds of images that codecs are measured on, made from nothing: the same on every machine.

use gpuimg::image::{Depth, Image, Shape};

/// A kind of image by name: what the benchmark's rows are.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Smooth field and shot noise of a 16-bit camera: no byte repeats.
    Noisy,
    /// The same of a 12-bit camera, its samples shifted up by 4 bits.
    Shifted,
    /// The field without noise.
    Smooth,
    /// A disc of tissue with noise on an even background of zeros, 12 bits.
    Ct,
    /// Three noisy channels.
    Rgb,
    /// The noisy kind in 8 bits.
    Noisy8,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::Noisy,
        Kind::Shifted,
        Kind::Smooth,
        Kind::Ct,
        Kind::Rgb,
        Kind::Noisy8,
    ];

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
                let field = field(x as f32 / width as f32, y as f32 / height as f32);
                for channel in 0..channels {
                    let signal = field * [1.0, 0.8, 0.6][channel];
                    samples.push(self.sample(signal, x, y, (width, height), &mut random));
                }
            }
        }
        let samples = match depth {
            Depth::Sixteen => samples.into(),
            Depth::Eight => samples
                .iter()
                .map(|s| (s >> 8) as u8)
                .collect::<Vec<_>>()
                .into(),
        };
        Image::new(shape, samples)
    }

    fn sample(
        self,
        signal: f32,
        x: usize,
        y: usize,
        size: (usize, usize),
        random: &mut Random,
    ) -> u16 {
        let shot = |full: f32, electrons: f32, random: &mut Random| {
            let mean = signal * electrons;
            ((mean + mean.sqrt() * random.normal()) / electrons * full).clamp(0.0, full)
        };
        match self {
            Kind::Noisy | Kind::Rgb => shot(65535.0, 30_000.0, random) as u16,
            Kind::Noisy8 => shot(65535.0, 30_000.0, random) as u16,
            Kind::Shifted => (shot(4095.0, 10_000.0, random) as u16) << 4,
            Kind::Smooth => (signal * 65535.0) as u16,
            Kind::Ct => {
                let from = |at: usize, size: usize| at as f32 / size as f32 - 0.5;
                let (dx, dy) = (from(x, size.0), from(y, size.1));
                if dx * dx + 1.5 * dy * dy > 0.16 {
                    return 0;
                }
                let organs = if (dx * 9.0).sin() * (dy * 11.0).cos() > 0.3 {
                    1100.0
                } else {
                    950.0
                };
                (organs + signal * 40.0 + 12.0 * random.normal()) as u16
            }
        }
    }
}

/// A field between 0.1 and 0.9: slow waves, as of uneven light.
fn field(x: f32, y: f32) -> f32 {
    0.5 + 0.2 * (x * 9.0 + 2.0 * y).sin() + 0.2 * (y * 7.0 - x * x * 5.0).cos()
}

/// Numbers that look random (xorshift64*).
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// About normal, mean 0 and deviation 1: the sum of four even numbers.
    pub fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: u64 = (0..4).map(|k| bits >> (16 * k) & 0xffff).sum();
        (sum as f32 / 65536.0 - 2.0) * 1.732
    }
}
