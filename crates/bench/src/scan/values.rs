//! What is scanned: random values, and the ranges that are looked for.

use eris_types::ObjectId;

/// Accounts of the benchmark's memory: a number that no catalogue gives out.
pub const SCANNED: ObjectId = ObjectId(u32::MAX - 1);

/// A range of values and how many of all values of a width lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    pub name: &'static str,
    pub lo: u64,
    pub hi: u64,
}

impl Predicate {
    /// Equality with one value, and ranges around the middle that 1 % and 50 % of the values of `width` bits lie in, as
    /// near as the width allows.
    pub fn of_width(width: u8) -> [Predicate; 3] {
        let largest = u64::MAX >> (64 - width);
        let middle = largest / 2;
        let around = |percent: u64| {
            let half = (largest / 200).saturating_mul(percent) + (largest % 200) * percent / 200;
            (
                middle - half.min(middle),
                middle + half.min(largest - middle),
            )
        };
        let (lo1, hi1) = around(1);
        let (lo50, hi50) = around(50);
        [
            Predicate {
                name: "=",
                lo: middle,
                hi: middle,
            },
            Predicate {
                name: "between 1 %",
                lo: lo1,
                hi: hi1,
            },
            Predicate {
                name: "between 50 %",
                lo: lo50,
                hi: hi50,
            },
        ]
    }

    pub fn holds(self, value: u64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }
}

/// Uniformly random words (SplitMix64): the bench needs speed and repeatability, not quality.
#[derive(Clone, Copy, Debug)]
pub struct RandomValues(pub u64);

impl RandomValues {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn of_width(&mut self, width: u8) -> u64 {
        self.next() >> (64 - width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_select_what_their_names_say() {
        for width in 8..=64 {
            let [equal, one, fifty] = Predicate::of_width(width);
            assert_eq!(equal.lo, equal.hi);
            let share = |p: Predicate| (p.hi - p.lo) as f64 / (u64::MAX >> (64 - width)) as f64;
            assert!((share(one) - 0.01).abs() < 0.01, "{width}: {one:?}");
            assert!((share(fifty) - 0.5).abs() < 0.01, "{width}: {fifty:?}");
        }
        let [.., fifty] = Predicate::of_width(1);
        assert!(
            (0..=1).any(|value| fifty.holds(value)),
            "even one bit has a middle"
        );
    }

    #[test]
    fn random_values_fill_their_width() {
        let mut random = RandomValues(1);
        let seen = (0..10_000).fold(0, |bits, _| bits | random.of_width(12));
        assert_eq!(seen, 0xfff);
        assert_eq!(RandomValues(7).next(), RandomValues(7).next());
    }
}
