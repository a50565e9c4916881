//! Random numbers without state: the value at a position is computed, not reached.
//!
//! A [`Stream`] is a SplitMix64 sequence (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*,
//! OOPSLA 2014) addressed by position: element `n` is the finaliser applied to `key + n × γ`. The key of a stream
//! comes from seed, table and column, so no two columns share a sequence.

use crate::SsbTable;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random numbers of one column of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream of the `column`-th random column of `table`.
    pub(crate) fn new(seed: u64, table: SsbTable, column: u64) -> Self {
        let path = (table as u64 + 1) << 32 | column;
        Self(mix(mix(seed.wrapping_add(GAMMA)) ^ path))
    }

    /// 64 random bits at `position`.
    pub(crate) fn bits(self, position: u64) -> u64 {
        mix(self.0.wrapping_add(position.wrapping_mul(GAMMA)))
    }

    /// A number below `bound` at `position`: the high half of a product, whose bias for the bounds used
    /// here (at most 30 million) is below 2⁻³⁹.
    pub(crate) fn below(self, position: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(position)) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included, at `position`.
    pub(crate) fn between(self, position: u64, low: i32, high: i32) -> i32 {
        low + self.below(position, (high - low + 1) as u64) as i32
    }

    /// One of `choices` at `position`.
    pub(crate) fn pick<T: Copy>(self, position: u64, choices: &[T]) -> T {
        choices[self.below(position, choices.len() as u64) as usize]
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ranges_are_uniform_and_columns_independent() {
        let a = Stream::new(1, SsbTable::Part, 0);
        let b = Stream::new(1, SsbTable::Part, 1);
        let rows = 90_000_u64;
        let mut cells = [[0_u32; 3]; 3];
        for row in 0..rows {
            cells[a.below(row, 3) as usize][b.below(row, 3) as usize] += 1;
        }
        for cell in cells.as_flattened() {
            // 10,000 expected in each of the nine cells, standard deviation 94.
            assert!((9_530..10_470).contains(cell), "{cells:?}");
        }
    }

    #[test]
    fn bounds_are_included() {
        let stream = Stream::new(7, SsbTable::Lineorder, 3);
        let values: Vec<i32> = (0..1_000).map(|row| stream.between(row, -2, 2)).collect();
        assert_eq!(values.iter().min(), Some(&-2));
        assert_eq!(values.iter().max(), Some(&2));
    }
}
