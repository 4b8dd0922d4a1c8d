//! The smallest and the largest of some samples.

/// A sample in memory, or its key.
pub trait Unsigned: Copy + Ord {
    /// The smallest number of the type.
    const ZERO: Self;
    /// The largest number of the type.
    const FULL: Self;
}

macro_rules! unsigned {
    ($($type:ty),*) => {
        $(impl Unsigned for $type {
            const ZERO: $type = 0;
            const FULL: $type = <$type>::MAX;
        })*
    };
}
unsigned!(u8, u16, u32, u64);

/// The smallest and the largest of some samples; `min > max` if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinMax<T> {
    /// The smallest sample.
    pub min: T,
    /// The largest sample.
    pub max: T,
}

impl<T: Unsigned> MinMax<T> {
    /// That of no sample: the neutral element of `merge`.
    pub const NONE: MinMax<T> = MinMax {
        min: T::FULL,
        max: T::ZERO,
    };

    /// That of one sample.
    pub fn one(sample: T) -> MinMax<T> {
        MinMax {
            min: sample,
            max: sample,
        }
    }

    /// That of both sets of samples together.
    pub fn merge(self, other: MinMax<T>) -> MinMax<T> {
        MinMax {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Adds a sample.
    pub fn include(&mut self, sample: T) {
        *self = self.merge(MinMax::one(sample));
    }

    /// Whether there is no sample.
    pub fn is_none(self) -> bool {
        self.min > self.max
    }
}

impl<T> MinMax<T> {
    /// Both ends, converted.
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> MinMax<U> {
        MinMax {
            min: convert(self.min),
            max: convert(self.max),
        }
    }
}

/// The smallest and the largest sample of each lane; a lane holds the samples whose index leaves the same remainder.
#[derive(Clone, Copy)]
pub struct MinMaxLanes<T, const N: usize> {
    /// The smallest samples.
    pub min: [T; N],
    /// The largest samples.
    pub max: [T; N],
}

impl<T: Unsigned, const N: usize> MinMaxLanes<T, N> {
    /// Those of no sample: the neutral element of `merge`.
    pub const NONE: MinMaxLanes<T, N> = MinMaxLanes {
        min: [T::FULL; N],
        max: [T::ZERO; N],
    };

    /// Those of both sets of samples together.
    pub fn merge(mut self, other: MinMaxLanes<T, N>) -> MinMaxLanes<T, N> {
        for lane in 0..N {
            self.min[lane] = self.min[lane].min(other.min[lane]);
            self.max[lane] = self.max[lane].max(other.max[lane]);
        }
        self
    }

    /// Those of each channel, of which `N` holds whole pixels.
    pub fn by_channel(&self, channels: usize) -> Vec<MinMax<T>> {
        let mut all = vec![MinMax::NONE; channels];
        for (lane, (&min, &max)) in self.min.iter().zip(&self.max).enumerate() {
            let known = &mut all[lane % channels];
            *known = known.merge(MinMax { min, max });
        }
        all
    }
}
