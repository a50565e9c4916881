//! The proof token: whoever holds an [`Isa`] above portable has seen the processor report its features.

use std::sync::OnceLock;

/// An instruction set that this processor has. It can only be had from detection, so a kernel that takes it
/// needs no further check; copying it is free. Get it once, at start, and hand it down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Isa(pub(crate) Level);

/// Ordered: a later one is expected to be faster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

const LEVELS: &[Level] = &[
    Level::Portable,
    #[cfg(target_arch = "x86_64")]
    Level::Avx2,
    #[cfg(target_arch = "x86_64")]
    Level::Avx512,
];

impl Level {
    /// Exactly the features that the functions of the level's file enable.
    fn detected(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                // avx512f brings fma and f16c with it.
                Level::Avx2.detected()
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("gfni")
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }
}

impl Isa {
    /// The best instruction set of this processor, or the best up to the one named by the environment variable
    /// `ERIS_ISA` (`portable`, `avx2` or `avx512`). Detected once per process.
    ///
    /// # Panics
    /// If `ERIS_ISA` holds anything else: a measurement with a misspelt setting would be worthless.
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Self::best_up_to(std::env::var("ERIS_ISA").ok().as_deref()))
    }

    fn best_up_to(bound: Option<&str>) -> Self {
        // Known even where it cannot run, so that one setting works on a mixed set of machines.
        let bound = match bound {
            None | Some("" | "avx512") => usize::MAX,
            Some("avx2") => 1,
            Some("portable") => 0,
            Some(other) => {
                panic!("ERIS_ISA is `{other}`; expected `portable`, `avx2` or `avx512`")
            }
        };
        let best = LEVELS.iter().take(bound.saturating_add(1));
        Isa(best
            .copied()
            .filter(|level| level.detected())
            .max()
            .expect("portable is always there"))
    }

    /// Plain code, on any processor.
    pub const fn portable() -> Self {
        Isa(Level::Portable)
    }

    /// All instruction sets of this processor whatever `ERIS_ISA` says, portable first: for tests and benches.
    pub fn supported() -> impl Iterator<Item = Self> {
        LEVELS.iter().copied().filter(|l| l.detected()).map(Isa)
    }

    /// `portable`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// Calls the function of that name in the file of the token's instruction set.
macro_rules! dispatch {
    ($isa:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $isa.0 {
            $crate::isa::Level::Portable => $crate::portable::$function($($argument),*),
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx2 => {
                // SAFETY: the token exists only if the processor has all features of the level.
                unsafe { $crate::avx2::$function($($argument),*) }
            }
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx512 => {
                // SAFETY: the token exists only if the processor has all features of the level.
                unsafe { $crate::avx512::$function($($argument),*) }
            }
        }
    };
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_an_upper_bound() {
        assert_eq!(Isa::best_up_to(Some("portable")), Isa::portable());
        assert!(Isa::best_up_to(Some("avx2")).0 <= Isa::best_up_to(Some("avx512")).0);
        assert_eq!(Isa::best_up_to(None), Isa::supported().last().unwrap());
    }

    #[test]
    #[should_panic(expected = "ERIS_ISA is `AVX2`")]
    fn a_misspelt_setting_is_rejected() {
        Isa::best_up_to(Some("AVX2"));
    }
}
