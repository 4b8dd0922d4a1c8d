//! A naive encoder of JPEG's lossless process that follows ITU-T T.81, annex H, step by step.

/// Bits, the most significant first, as bytes with those that are stuffed.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    bits: Vec<bool>,
}

impl Writer {
    fn bits(&mut self, value: u32, count: u32) {
        let bits = (0..count).rev().map(|i| value >> i & 1 == 1);
        self.bits.extend(bits);
    }

    /// Fills the last byte with ones.
    fn flush(&mut self) {
        for bits in std::mem::take(&mut self.bits).chunks(8) {
            let ones = std::iter::repeat_n(&true, 8 - bits.len());
            let byte = bits.iter().chain(ones);
            let byte = byte.fold(0, |byte, &bit| byte << 1 | u8::from(bit));
            self.bytes.push(byte);
            if byte == 0xFF {
                self.bytes.push(0);
            }
        }
    }
}

/// How an image is coded.
#[derive(Clone, Copy)]
pub struct Coder {
    pub width: usize,
    pub channels: usize,
    pub precision: u32,
    pub predictor: u8,
    pub shift: u32,
    /// Rows of a restart interval; 0 is none.
    pub restart: usize,
    /// Whether codes have 1 to 16 bits, the small differences the longest; otherwise all have 5.
    pub long: bool,
    /// Whether each component has a scan of its own.
    pub apart: bool,
}

impl Coder {
    /// The code of a size of differences and its length.
    fn code(&self, size: u32) -> (u32, u32) {
        match (self.long, 16 - size) {
            (false, _) => (size, 5),
            (true, 16) => (0xFFFF, 16),
            (true, ones) => ((1 << (ones + 1)) - 2, ones + 1),
        }
    }

    pub fn file(&self, samples: &[u16]) -> Vec<u8> {
        let height = samples.len() / self.channels / self.width;
        let mut file = b"\xFF\xD8\xFF\xFE\0\x04ab\xFF\xC3\0".to_vec();
        file.push(8 + 3 * self.channels as u8);
        file.push(self.precision as u8);
        file.extend((height as u16).to_be_bytes());
        file.extend((self.width as u16).to_be_bytes());
        file.push(self.channels as u8);
        (0..self.channels).for_each(|i| file.extend([7 + i as u8, 0x11, 0]));
        // Filled with 0xFF before the marker; the second of four places.
        file.extend(b"\xFF\xFF\xC4\0\x24\x01");
        file.extend(match self.long {
            true => [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
            false => [0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        });
        file.extend((0..17).map(|i| if self.long { 16 - i } else { i }));
        if self.restart > 0 {
            file.extend(b"\xFF\xDD\0\x04");
            file.extend(((self.restart * self.width) as u16).to_be_bytes());
        }
        let all: Vec<usize> = (0..self.channels).collect();
        let scans = if self.apart {
            all.chunks(1)
        } else {
            all.chunks(3)
        };
        for scan in scans {
            file.extend([0xFF, 0xDA, 0, 6 + 2 * scan.len() as u8, scan.len() as u8]);
            scan.iter().for_each(|&i| file.extend([7 + i as u8, 0x10]));
            file.extend([self.predictor, 0, self.shift as u8]);
            self.scan(&mut file, samples, scan);
        }
        file.extend(b"\xFF\xD9");
        file
    }

    fn scan(&self, file: &mut Vec<u8>, samples: &[u16], scan: &[usize]) {
        let mut writer = Writer::default();
        let at = |x: usize, y: usize, i: usize| {
            i32::from(samples[(y * self.width + x) * self.channels + i] >> self.shift)
        };
        for y in 0..samples.len() / self.channels / self.width {
            let interval = y.checked_div(self.restart).unwrap_or(0);
            let starts = y == 0 || self.restart > 0 && y % self.restart == 0;
            if starts && y > 0 {
                writer.flush();
                writer.bytes.extend([0xFF, 0xD0 + (interval - 1) as u8 % 8]);
            }
            for x in 0..self.width {
                for &i in scan {
                    let prediction = match (x, starts) {
                        (0, true) => 1 << (self.precision - self.shift - 1),
                        (0, false) => at(0, y - 1, i),
                        (_, true) => at(x - 1, y, i),
                        _ => {
                            let (a, b) = (at(x - 1, y, i), at(x, y - 1, i));
                            let c = at(x - 1, y - 1, i);
                            // Halves are rounded down, as a shift does.
                            let half = |difference: i32| difference.div_euclid(2);
                            [
                                a,
                                b,
                                c,
                                a + b - c,
                                a + half(b - c),
                                b + half(a - c),
                                half(a + b),
                            ][usize::from(self.predictor) - 1]
                        }
                    };
                    // From −32767 to 32768, modulo 2¹⁶.
                    let difference = (at(x, y, i) - prediction).rem_euclid(1 << 16);
                    let difference = difference - if difference > 1 << 15 { 1 << 16 } else { 0 };
                    let size = (0..).find(|&size| difference.abs() < 1 << size).unwrap();
                    let (code, length) = self.code(size);
                    writer.bits(code, length);
                    if size < 16 {
                        let less = if difference < 0 { (1 << size) - 1 } else { 0 };
                        writer.bits((difference + less) as u32, size);
                    }
                }
            }
        }
        writer.flush();
        file.extend(writer.bytes);
    }
}
