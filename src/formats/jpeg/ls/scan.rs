//! Decodes a scan line by line (T.87, annex A): samples with a gradient beside them by prediction, and others as runs.

use super::bits::Bits;
use super::contexts::{Complete, REGULAR, Statistics};
use anyhow::{Result, ensure};

/// Bits of the length of a run, which grow with each complete run.
const RUN_BITS: [u32; 32] = [
    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13,
    14, 15,
];

/// What is known of a scan before its data.
pub struct Scan {
    pub parameters: Complete,
    /// Pixels of a row.
    pub width: usize,
    /// Samples of a pixel of the image.
    pub channels: usize,
    /// Whether the samples of its components take turns; otherwise their lines do.
    pub takes_turns: bool,
    /// The numbers of its components among the channels.
    pub components: Vec<usize>,
}

/// Two lines of a component, with a sample before and one after them.
struct Lines {
    above: Vec<u16>,
    here: Vec<u16>,
    /// The place in `RUN_BITS`.
    run: usize,
}

impl Lines {
    fn new(width: usize) -> Lines {
        Lines {
            above: vec![0; width + 2],
            here: vec![0; width + 2],
            run: 0,
        }
    }

    /// Begins the next line: what lies beside the lines is that above.
    fn advance(&mut self) {
        std::mem::swap(&mut self.above, &mut self.here);
        let last = self.above.len() - 1;
        self.above[last] = self.above[last - 1];
        self.here[0] = self.above[1];
    }

    /// The samples to the left of, above left of, above and above right of the sample at `x`, counted from 1.
    fn around(&self, x: usize) -> [i32; 4] {
        [
            self.here[x - 1],
            self.above[x - 1],
            self.above[x],
            self.above[x + 1],
        ]
        .map(i32::from)
    }

    /// The gradients beside the sample at `x`.
    fn gradients(&self, x: usize) -> [i32; 3] {
        let [left, corner, above, right] = self.around(x);
        [right - above, above - corner, corner - left]
    }
}

/// A scan whose data are being decoded.
struct Decoder<'a, 's> {
    scan: &'s Scan,
    bits: Bits<'a>,
    contexts: Vec<Statistics>,
}

impl Scan {
    /// Decodes the scan that begins with `data`, into the samples of the whole image; returns the bytes after it.
    ///
    /// # Errors
    /// Damaged data.
    pub fn decode<'a>(&self, data: &'a [u8], samples: &mut [u16]) -> Result<&'a [u8]> {
        let mut decoder = Decoder {
            scan: self,
            bits: Bits::new(data),
            contexts: vec![Statistics::new(&self.parameters); REGULAR + 2],
        };
        let mut lines: Vec<Lines> = self
            .components
            .iter()
            .map(|_| Lines::new(self.width))
            .collect();
        for row in samples.chunks_exact_mut(self.width * self.channels) {
            lines.iter_mut().for_each(Lines::advance);
            let together = if self.takes_turns { lines.len() } else { 1 };
            for lines in lines.chunks_mut(together) {
                decoder.line(lines)?;
            }
            for (&component, line) in self.components.iter().zip(&lines) {
                let places = row.iter_mut().skip(component).step_by(self.channels);
                places
                    .zip(&line.here[1..])
                    .for_each(|(place, &sample)| *place = sample);
            }
        }
        Ok(decoder.bits.rest())
    }
}

impl Decoder<'_, '_> {
    /// Decodes a line of one component, or of all whose samples take turns.
    fn line(&mut self, lines: &mut [Lines]) -> Result<()> {
        let parameters = self.scan.parameters;
        let mut x = 1;
        while x <= self.scan.width {
            let is_flat = lines
                .iter()
                .all(|line| parameters.context(line.gradients(x)) == 0);
            if is_flat {
                x = self.run(lines, x)?;
                continue;
            }
            for line in lines.iter_mut() {
                line.here[x] = self.sample(line, x)?;
            }
            x += 1;
        }
        Ok(())
    }

    /// Decodes a sample with a gradient beside it.
    fn sample(&mut self, line: &Lines, x: usize) -> Result<u16> {
        let parameters = self.scan.parameters;
        let context = parameters.context(line.gradients(x));
        let sign = if context < 0 { -1 } else { 1 };
        let statistics = self.contexts[context.unsigned_abs() as usize];
        let [left, corner, above, _] = line.around(x);
        let prediction = if corner >= left.max(above) {
            left.min(above)
        } else if corner <= left.min(above) {
            left.max(above)
        } else {
            left + above - corner
        };
        let prediction = (prediction + sign * statistics.correction).clamp(0, parameters.most);
        let low_bits = statistics.low_bits(statistics.sizes);
        let code = self.code(low_bits, parameters.limit)?;
        // Even codes are errors from 0 up, and odd ones are negative; where negative errors are more frequent, it is the
        // other way round.
        let size = (code >> 1) as i32;
        let swapped =
            parameters.near == 0 && low_bits == 0 && 2 * statistics.bias <= -statistics.count;
        let is_even = code & 1 == 0;
        let error = if is_even == swapped { -size - 1 } else { size };
        self.contexts[context.unsigned_abs() as usize].add(error, &parameters);
        Ok(parameters.sample(prediction, sign * error))
    }

    /// Decodes a run, and the samples that end it; returns the place after them.
    fn run(&mut self, lines: &mut [Lines], mut x: usize) -> Result<usize> {
        let first = x;
        let after = self.scan.width + 1;
        // The run is that of the first component.
        let mut place = lines[0].run;
        let mut is_ended = false;
        while x < after && !is_ended {
            let most = 1 << RUN_BITS[place];
            let length = if self.bits.number(1)? == 1 {
                most
            } else {
                is_ended = true;
                self.bits.number(RUN_BITS[place])? as usize
            };
            ensure!(
                !is_ended || length < after - x,
                "a run of it ends after its line"
            );
            // The last run of a line may be longer than the line.
            if !is_ended && length <= after - x {
                place = (place + 1).min(RUN_BITS.len() - 1);
            }
            x = (x + length).min(after);
        }
        for line in lines.iter_mut() {
            let value = line.here[first - 1];
            line.here[first..x].fill(value);
        }
        if is_ended {
            for line in lines.iter_mut() {
                line.here[x] = self.end(line, x, place)?;
            }
            place = place.saturating_sub(1);
            x += 1;
        }
        lines[0].run = place;
        Ok(x)
    }

    /// Decodes the sample that ends a run.
    fn end(&mut self, line: &Lines, x: usize, place: usize) -> Result<u16> {
        let parameters = self.scan.parameters;
        let [left, _, above, _] = line.around(x);
        let is_near = !self.scan.takes_turns && (left - above).abs() <= parameters.near;
        let context = REGULAR + usize::from(is_near);
        let statistics = self.contexts[context];
        let sizes = if is_near {
            statistics.sizes + i64::from(statistics.count >> 1)
        } else {
            statistics.sizes
        };
        let low_bits = statistics.low_bits(sizes);
        let limit = parameters.limit - RUN_BITS[place] - 1;
        let code = self.code(low_bits, limit)? as i32;
        let coded = code + i32::from(is_near);
        let size = (coded + 1) >> 1;
        let odd_is_negative = low_bits != 0 || 2 * statistics.negative >= statistics.count;
        let error = if (coded & 1 == 1) == odd_is_negative {
            -size
        } else {
            size
        };
        let added = (code + 1 - i32::from(is_near)) >> 1;
        self.contexts[context].add_end(error, added, &parameters);
        let (prediction, sign) = match is_near {
            true => (left, 1),
            false if left > above => (above, -1),
            false => (above, 1),
        };
        Ok(parameters.sample(prediction, sign * error))
    }

    /// Reads a Golomb code of at most `limit` bits.
    fn code(&mut self, low_bits: u32, limit: u32) -> Result<u32> {
        let error_bits = self.scan.parameters.error_bits;
        let most = limit.saturating_sub(error_bits + 1);
        let zeros = self.bits.zeros(most)?;
        let code = if zeros < most {
            zeros << low_bits | self.bits.number(low_bits)?
        } else {
            self.bits.number(error_bits)? + 1
        };
        ensure!(
            code <= 2 * self.scan.parameters.range as u32,
            "a difference of it is too large"
        );
        Ok(code)
    }
}
