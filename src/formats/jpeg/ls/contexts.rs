//! The parameters of a scan (T.87, C.2.4.1.1), and the statistics by which its codes adapt (A.6).

use anyhow::{Result, bail, ensure};

/// The contexts of samples with a gradient; two for the ends of runs follow them.
pub const REGULAR: usize = 365;

/// The range of the corrections of predictions.
const CORRECTIONS: std::ops::RangeInclusive<i32> = -128..=127;

/// The parameters that a file gives; 0 stands for the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters {
    most: i32,
    thresholds: [i32; 3],
    reset: i32,
}

/// All parameters of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Complete {
    /// The largest sample.
    pub most: i32,
    /// The most by which a sample differs from the original.
    pub near: i32,
    /// The limits of the classes of gradients.
    thresholds: [i32; 3],
    /// The count at which statistics are halved.
    reset: i32,
    /// The number of different errors of predictions.
    pub range: i32,
    /// Bits of such an error.
    pub error_bits: u32,
    /// The most bits of a code.
    pub limit: u32,
}

impl Parameters {
    /// Reads the segment of parameters.
    ///
    /// # Errors
    /// Tables of values, and sizes of more than 16 bits.
    pub fn read(segment: &[u8]) -> Result<Parameters> {
        match segment {
            [1, numbers @ ..] if numbers.len() == 10 => {
                let number =
                    |i: usize| u16::from_be_bytes([numbers[2 * i], numbers[2 * i + 1]]).into();
                Ok(Parameters {
                    most: number(0),
                    thresholds: [number(1), number(2), number(3)],
                    reset: number(4),
                })
            }
            [kind, ..] => bail!("JPEG-LS with parameters of the kind {kind} is not supported"),
            [] => bail!("its parameters are too short"),
        }
    }

    /// The parameters of a scan, with the defaults for samples of `bits` bits.
    ///
    /// # Errors
    /// Parameters that contradict each other.
    pub fn complete(self, bits: u32, near: i32) -> Result<Complete> {
        let full = (1 << bits) - 1;
        let most = if self.most > 0 { self.most } else { full };
        ensure!(
            most <= full && near <= (most / 2).min(255),
            "it is damaged: samples up to {most} of {bits} bits, with differences up to {near}"
        );
        let mut thresholds = defaults(most, near);
        for (threshold, given) in thresholds.iter_mut().zip(self.thresholds) {
            if given > 0 {
                *threshold = given;
            }
        }
        let [first, second, third] = thresholds;
        ensure!(
            near < first && first <= second && second <= third && third <= most,
            "it is damaged: its thresholds are {thresholds:?}"
        );
        let reset = if self.reset > 0 { self.reset } else { 64 };
        let range = (most + 2 * near) / (2 * near + 1) + 1;
        let sample_bits = bits_of(most + 1).max(2);
        Ok(Complete {
            most,
            near,
            thresholds,
            reset,
            range,
            error_bits: bits_of(range),
            limit: 2 * (sample_bits + sample_bits.max(8)),
        })
    }
}

/// The bits that count so many different numbers.
fn bits_of(count: i32) -> u32 {
    32 - (count - 1).leading_zeros()
}

/// The default thresholds.
fn defaults(most: i32, near: i32) -> [i32; 3] {
    let [first, second, third] = if most >= 128 {
        let factor = (most.min(4095) + 128) / 256;
        [factor + 2, 4 * factor + 3, 17 * factor + 4]
    } else {
        let factor = 256 / (most + 1);
        [3 / factor, 7 / factor, 21 / factor]
    };
    let clamped = |threshold: i32, smallest: i32, least: i32| {
        let threshold = threshold.max(smallest);
        if threshold > most || threshold < least {
            least
        } else {
            threshold
        }
    };
    let first = clamped(first + 3 * near, 2, near + 1);
    let second = clamped(second + 5 * near, 3, first);
    [first, second, clamped(third + 7 * near, 4, second)]
}

impl Complete {
    /// The class of a gradient, from −4 to 4.
    fn class(&self, gradient: i32) -> i32 {
        let [first, second, third] = self.thresholds;
        let class = match gradient.abs() {
            size if size <= self.near => 0,
            size if size < first => 1,
            size if size < second => 2,
            size if size < third => 3,
            _ => 4,
        };
        class * gradient.signum()
    }

    /// The number of the context of three gradients; that of opposite gradients is its negative.
    pub fn context(&self, gradients: [i32; 3]) -> i32 {
        let [first, second, third] = gradients.map(|gradient| self.class(gradient));
        81 * first + 9 * second + third
    }

    /// The sample for a prediction and the error that was coded for it.
    pub fn sample(&self, prediction: i32, error: i32) -> u16 {
        let step = 2 * self.near + 1;
        let mut sample = prediction + error * step;
        if sample < -self.near {
            sample += self.range * step;
        } else if sample > self.most + self.near {
            sample -= self.range * step;
        }
        sample.clamp(0, self.most) as u16
    }
}

/// The statistics of a context.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// The sum of the sizes of errors.
    pub sizes: i64,
    /// Their number.
    pub count: i32,
    /// The sum of errors, which the correction keeps small.
    pub bias: i32,
    /// What is added to predictions.
    pub correction: i32,
    /// The number of negative errors.
    pub negative: i32,
}

impl Statistics {
    /// Those at the beginning of a scan.
    pub fn new(parameters: &Complete) -> Statistics {
        Statistics {
            sizes: ((parameters.range + 32) / 64).max(2).into(),
            count: 1,
            bias: 0,
            correction: 0,
            negative: 0,
        }
    }

    /// The bits of a code that are not counted by zeros, for errors of this sum of sizes.
    pub fn low_bits(&self, sizes: i64) -> u32 {
        // The mean size of errors has 16 bits.
        let bits = (0..16).find(|&bits| i64::from(self.count) << bits >= sizes);
        bits.unwrap_or(16)
    }

    /// Adds the error of a sample with a gradient.
    pub fn add(&mut self, error: i32, parameters: &Complete) {
        self.bias += error * (2 * parameters.near + 1);
        self.sizes += i64::from(error.abs());
        self.halve(parameters);
        self.count += 1;
        if self.bias <= -self.count {
            self.bias = (self.bias + self.count).max(1 - self.count);
            self.correction = (self.correction - 1).max(*CORRECTIONS.start());
        } else if self.bias > 0 {
            self.bias = (self.bias - self.count).min(0);
            self.correction = (self.correction + 1).min(*CORRECTIONS.end());
        }
    }

    /// Adds the error at the end of a run, which added so much to the sum of sizes.
    pub fn add_end(&mut self, error: i32, size: i32, parameters: &Complete) {
        self.negative += i32::from(error < 0);
        self.sizes += i64::from(size);
        self.halve(parameters);
        self.count += 1;
    }

    /// Halves the statistics when they have enough errors, so that the last ones count more.
    fn halve(&mut self, parameters: &Complete) {
        if self.count == parameters.reset {
            self.sizes >>= 1;
            self.bias >>= 1;
            self.count >>= 1;
            self.negative >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults of T.87, table C.3 and its equations, for samples of 4, 8, 12 and 16 bits, also with differences.
    #[test]
    fn default_thresholds() {
        for (bits, near, expected) in [
            (4, 0, [2, 3, 4]),
            (8, 0, [3, 7, 21]),
            (8, 3, [12, 22, 42]),
            (12, 0, [18, 67, 276]),
            (16, 0, [18, 67, 276]),
        ] {
            let complete = Parameters::default().complete(bits, near);
            assert_eq!(
                complete.expect("valid").thresholds,
                expected,
                "{bits} bits, {near}"
            );
        }
        assert!(Parameters::default().complete(8, 128).is_err());
    }
}
