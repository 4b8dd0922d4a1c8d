//! How `normalize` scaled the values of a page, as `--undo` writes it into a file and `restore`
//! reads it: a line of text, which docs/SCHEMAS.md defines.

use crate::image::number::key;
use crate::image::{Depth, Values};
use std::fmt;
use std::str::FromStr;

/// The version of the text.
const VERSION: &str = "1";

/// The most bytes of the text: three ranges of floating point take 170.
const MOST: usize = 256;

/// How the values of a page were scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The type of the samples before.
    pub from: Values,
    /// The range of each colour channel, or one of all: samples in memory of that type.
    ranges: [(u32, u32); 3],
    /// How many ranges there are: 1 to 3.
    count: usize,
    /// The type of the samples after, of 8 or 16 bits.
    pub to: Values,
    /// What the least and the greatest value of a range became: samples in memory.
    pub target: (u16, u16),
    /// What is known of the values before.
    pub held: Held,
}

/// What is known of the values before they were scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Values may have been beyond their range, and become its ends.
    Clamped,
    /// All were in their range.
    Inside,
    /// All were in their range, and of floating point whole numbers too.
    Integers,
}

impl Held {
    const ALL: [Held; 3] = [Held::Clamped, Held::Inside, Held::Integers];

    fn word(self) -> &'static str {
        match self {
            Held::Clamped => "clamped",
            Held::Inside => "inside",
            Held::Integers => "integers",
        }
    }
}

impl Stretch {
    /// Values of the type `from` in these ranges, samples in memory, scaled to a range of samples of
    /// the type `to`. `None`: no range, or more than three.
    pub fn new(
        from: Values,
        given: &[(u32, u32)],
        to: Values,
        target: (u16, u16),
        held: Held,
    ) -> Option<Stretch> {
        let mut ranges = [(0, 0); 3];
        ranges.get_mut(..given.len())?.copy_from_slice(given);
        (!given.is_empty()).then_some(Stretch {
            from,
            ranges,
            count: given.len(),
            to,
            target,
            held,
        })
    }

    /// The range of each colour channel, or one of all, as samples in memory of the type `from`.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges[..self.count]
    }
}

/// The names of the types of samples.
const TYPES: [(&str, Depth, bool); 7] = [
    ("u8", Depth::Eight, false),
    ("i8", Depth::Eight, true),
    ("u16", Depth::Sixteen, false),
    ("i16", Depth::Sixteen, true),
    ("u32", Depth::ThirtyTwo, false),
    ("i32", Depth::ThirtyTwo, true),
    ("f32", Depth::Float, false),
];

fn name(values: Values) -> &'static str {
    let signed = values.signed && values.depth != Depth::Float;
    let known = TYPES
        .iter()
        .find(|(_, depth, sign)| (*depth, *sign) == (values.depth, signed));
    known.map_or("", |(name, ..)| name)
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Stretch { from, to, .. } = *self;
        let range = |values: Values, (min, max): (u32, u32)| {
            format!(
                "{}:{}",
                values.number(min.into()),
                values.number(max.into())
            )
        };
        let ranges: Vec<String> = (self.ranges().iter())
            .map(|ends| range(from, *ends))
            .collect();
        let (lo, hi) = self.target;
        write!(
            f,
            "{VERSION} {} {} to {} {} {}",
            name(from),
            ranges.join(","),
            name(to),
            range(to, (lo.into(), hi.into())),
            self.held.word()
        )
    }
}

impl FromStr for Stretch {
    type Err = String;

    /// Errors: what is wrong with the text, which anybody may have written.
    fn from_str(text: &str) -> Result<Stretch, String> {
        if text.len() > MOST {
            return Err(format!("it is longer than {MOST} bytes"));
        }
        let words: Vec<&str> = text.split(' ').collect();
        let [version, from, ranges, "to", to, target, held] = words[..] else {
            return Err(format!("{text:?} does not follow version {VERSION}"));
        };
        if version != VERSION {
            return Err(format!("unknown version {version:?}"));
        }
        let (from, to) = (values(from)?, values(to)?);
        if to.depth.is_wide() {
            return Err("normalize does not produce 32-bit samples".into());
        }
        let ranges = ranges.split(',').map(|ends| range(ends, from));
        let ranges = ranges.collect::<Result<Vec<_>, String>>()?;
        let (lo, hi) = range(target, to)?;
        if lo == hi {
            return Err(format!("{target:?} is a single value"));
        }
        let known = Held::ALL.into_iter().find(|known| known.word() == held);
        let held =
            known.ok_or_else(|| format!("expected clamped, inside or integers, got {held:?}"))?;
        let stretch = Stretch::new(from, &ranges, to, (lo as u16, hi as u16), held);
        stretch.ok_or_else(|| format!("{} ranges are more than three", ranges.len()))
    }
}

fn values(text: &str) -> Result<Values, String> {
    let known = TYPES.iter().find(|(name, ..)| *name == text);
    let known = known.ok_or_else(|| format!("{text:?} is not a sample type"))?;
    let &(_, depth, signed) = known;
    Ok(Values { depth, signed })
}

/// The samples of a range of values, `MIN:MAX`, of which the first is not above the second.
fn range(text: &str, values: Values) -> Result<(u32, u32), String> {
    let sample = |text: &str| match values.limits() {
        None => {
            let value = text.parse::<f32>().ok().filter(|value| value.is_finite())?;
            Some(key(value.to_bits()))
        }
        Some((least, most)) => {
            let value = text.parse::<i64>().ok();
            let value = value.filter(|value| (least..=most).contains(value))?;
            Some((value - least) as u32)
        }
    };
    let ends = text.split_once(':');
    let ends = ends.and_then(|(min, max)| sample(min).zip(sample(max)));
    let ends = ends.filter(|(min, max)| min <= max);
    ends.ok_or_else(|| format!("{text:?} is not a range of {values}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Literals of the document, and what they mean.
    #[test]
    fn texts_are_read_as_they_were_written() {
        for text in [
            "1 u16 400:3700 to u16 0:65535 inside",
            "1 i16 -32768:32767 to i16 -32768:32767 clamped",
            "1 u8 0:255,7:7,3:9 to u8 1:2 inside",
            "1 f32 -0.1:3.4028235e38 to u16 0:65535 integers",
            "1 i32 -2147483648:2147483647 to u8 0:255 inside",
            "1 u32 0:4294967295 to i16 -5:5 inside",
        ] {
            let stretch: Stretch = text.parse().expect(text);
            assert_eq!(stretch.to_string(), text);
        }
        let stretch: Stretch = "1 i16 -2:3 to u8 5:6 clamped".parse().expect("valid");
        assert_eq!(stretch.ranges(), [(32766, 32771)]);
        assert_eq!((stretch.target, stretch.held), ((5, 6), Held::Clamped));
    }

    /// Every text that differs from a true one in a byte, or ends early, is refused or is another true
    /// one: none stops the program.
    #[test]
    fn hostile_texts_are_refused() {
        for wrong in [
            "",
            "1",
            "2 u16 0:9 to u16 0:65535 inside",
            "1 u64 0:9 to u16 0:65535 inside",
            "1 u16 9:0 to u16 0:65535 inside",
            "1 u16 0:65536 to u16 0:65535 inside",
            "1 u16 -1:5 to u16 0:65535 inside",
            "1 u16 0:9 to u32 0:65535 inside",
            "1 u16 0:9 to u16 7:7 inside",
            "1 u16 0:9,0:9,0:9,0:9 to u16 0:65535 inside",
            "1 u16 0:9, to u16 0:65535 inside",
            "1 f32 nan:1 to u16 0:65535 inside",
            "1 f32 0:1e39 to u16 0:65535 inside",
            "1 u16 0:9 to u16 0:65535 inside ",
            "1 u16 0:9 to u16 0:65535 sure",
            "1 u16 0:99999999999999999999 to u16 0:65535 inside",
            &"1 u16 0:9 to u16 0:65535 inside".repeat(1000),
        ] {
            assert!(wrong.parse::<Stretch>().is_err(), "{wrong}");
        }
        let text = "1 f32 -0.5:1e9,0:1 to i16 -9:65 clamped";
        let mut cases = 0;
        for at in 0..text.len() {
            assert!(text[..at].parse::<Stretch>().is_err(), "{}", &text[..at]);
            // All are too many for Miri.
            for byte in (0..128u8).step_by(if cfg!(miri) { 41 } else { 1 }) {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let changed = String::from_utf8(bytes).expect("ASCII");
                if let Ok(stretch) = changed.parse::<Stretch>() {
                    assert!(stretch.ranges().iter().all(|(min, max)| min <= max));
                    assert!(stretch.target.0 < stretch.target.1);
                }
                cases += 1;
            }
        }
        assert!(cfg!(miri) || cases == text.len() * 128);
    }
}
