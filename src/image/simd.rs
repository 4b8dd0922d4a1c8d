//! The processor's vector instructions: the level that the program uses, and functions compiled for
//! every level. `GPUIMG_SIMD` names a lower level than the processor's, so that every level can be
//! tested on one machine; the bytes that come out are the same at all of them.

use anyhow::{Result, anyhow};
use std::env;
use std::sync::atomic::{AtomicU8, Ordering};

/// The environment variable that names the level.
const VARIABLE: &str = "GPUIMG_SIMD";

/// A set of vector instructions. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Loops alone, as the compiler translates them for any processor of this kind.
    Scalar,
    /// Also code written for registers of 16 bytes, which every processor of this kind has.
    Base,
    /// AVX2, BMI1 and BMI2: since 2013 (Intel) and 2015 (AMD).
    Avx2,
    /// AVX-512 F, BW, DQ and VL: since 2017 (Intel) and 2022 (AMD).
    Avx512,
}

/// The levels that there is code for on this kind of processor, the lowest first.
#[cfg(target_arch = "x86_64")]
const LEVELS: &[Level] = &[Level::Scalar, Level::Base, Level::Avx2, Level::Avx512];
#[cfg(not(target_arch = "x86_64"))]
const LEVELS: &[Level] = &[Level::Scalar, Level::Base];

/// The level in use, as a number; `UNKNOWN` until it is asked for.
static IN_USE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = u8::MAX;

impl Level {
    /// Its name in `GPUIMG_SIMD`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Base if cfg!(target_arch = "x86_64") => "sse2",
            Level::Base if cfg!(target_arch = "aarch64") => "neon",
            Level::Base => "vector",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The highest level that this processor has.
    pub fn highest() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => return Level::Avx512,
                (true, false) => return Level::Avx2,
                _ => {}
            }
        }
        Level::Base
    }

    /// The levels that this processor has, the lowest first.
    pub fn all() -> impl Iterator<Item = Level> {
        let highest = Level::highest();
        LEVELS.iter().copied().filter(move |&it| it <= highest)
    }

    /// Uses this level from now on, or the processor's highest if it has no more.
    pub fn use_from_now_on(self) {
        let level = self.min(Level::highest());
        IN_USE.store(level as u8, Ordering::Relaxed);
    }

    /// The level of this name.
    fn parse(name: &str) -> Result<Level> {
        let known = LEVELS.iter().find(|level| level.name() == name);
        let names = |levels: &[Level]| {
            let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
            names.join(", ")
        };
        let Some(&level) = known else {
            let names = names(LEVELS);
            return Err(anyhow!(
                "{VARIABLE}={name}: unknown vector instructions (expected {names})"
            ));
        };
        if level > Level::highest() {
            let names = names(&Level::all().collect::<Vec<_>>());
            return Err(anyhow!(
                "{VARIABLE}={name}: not supported by this processor (it supports {names})"
            ));
        }
        Ok(level)
    }
}

/// The level that `GPUIMG_SIMD` names, if it does.
fn chosen() -> Option<Result<Level>> {
    let name = env::var_os(VARIABLE)?;
    Some(Level::parse(&name.to_string_lossy()))
}

/// Checks `GPUIMG_SIMD`.
///
/// # Errors
/// A name that is unknown, or a level that this processor does not have.
pub fn check() -> Result<()> {
    chosen().transpose().map(drop)
}

/// The level in use.
#[inline]
pub fn level() -> Level {
    match IN_USE.load(Ordering::Relaxed) {
        0 => Level::Scalar,
        1 => Level::Base,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => first(),
    }
}

/// The level in use when it is asked for first.
#[cold]
fn first() -> Level {
    let level = match chosen() {
        Some(Ok(level)) => level,
        _ => Level::highest(),
    };
    level.use_from_now_on();
    level
}

/// Compiles a function for every level up to the highest one that pays (`cargo bench --bench simd`),
/// and calls the one for the level in use. Generic parameters stand in square brackets,
/// `fn name[T: Sample](…)`, since a macro cannot take angle brackets apart.
///
/// What the body calls is compiled for the level only if it is inlined: functions of loops inside are
/// to be `#[inline(always)]`.
macro_rules! per_level {
    (
        highest $highest:ident;
        $(#[$about:meta])*
        $vis:vis fn $name:ident $([$($generics:tt)*])? ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?
        $body:block
    ) => {
        $(#[$about])*
        #[allow(clippy::too_many_arguments, reason = "the caller's")]
        $vis fn $name $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2")]
                fn avx2 $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
                    plain($($arg),*)
                }

                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2")]
                fn avx512 $(<$($generics)*>)? ($($arg: $type),*) $(-> $result)? {
                    plain($($arg),*)
                }

                match $crate::image::simd::level().min($crate::image::simd::Level::$highest) {
                    // SAFETY: the level in use is one that the processor has.
                    $crate::image::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::image::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    _ => {}
                }
            }
            plain($($arg),*)
        }
    };
}

pub(crate) use per_level;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_levels_that_are_there() {
        for level in Level::all() {
            assert_eq!(Level::parse(level.name()).expect("known"), level);
        }
        assert!(Level::all().count() >= 2 && Level::all().is_sorted());
        let error = Level::parse("sse4")
            .expect_err("no code for it")
            .to_string();
        assert!(error.starts_with("GPUIMG_SIMD=sse4: ") && error.contains("(expected scalar, "));
        for &level in LEVELS.iter().filter(|&&level| level > Level::highest()) {
            let error = Level::parse(level.name()).expect_err("not there");
            assert!(
                error
                    .to_string()
                    .contains("not supported by this processor")
            );
        }
    }
}
