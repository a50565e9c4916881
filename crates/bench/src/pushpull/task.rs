//! What is done with a column, and how long that takes where the column lies.

use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use std::collections::HashSet;
use std::time::Instant;

pub(super) const BYTES: usize = size_of::<i64>();

/// What is done with the column.
pub(super) enum Task {
    /// The values below this one.
    Below(i64),
    /// The values at these positions.
    At(Vec<i64>),
    /// The values that are among these: a hash table of them is made first.
    Among(Vec<i64>),
    /// The values at these positions, which are all there are, from the first on. If others are given, those that are
    /// among them.
    Listed {
        positions: Vec<i64>,
        probed: Option<Vec<i64>>,
    },
}

impl Task {
    /// The values that match, in the order of the column. Sets a bit for each record that does.
    pub(super) fn run(&self, column: &[i64], values: &mut Vec<i64>, masks: &mut [u64]) {
        values.clear();
        match self {
            Task::Below(bound) => below(*bound, column, values, masks),
            Task::At(positions) => {
                values.extend(positions.iter().map(|&at| column[at as usize]));
            }
            Task::Among(probed) => probe(&table(probed), column, values, masks),
            Task::Listed { positions, probed } => {
                let table = probed.as_deref().map(table);
                listed(table.as_ref(), positions, column, values, masks);
            }
        }
    }
}

/// A hash table of values.
pub(super) fn table(values: &[i64]) -> HashSet<i64> {
    values.iter().copied().collect()
}

/// The values that are in a table.
pub(super) fn probe(
    table: &HashSet<i64>,
    column: &[i64],
    values: &mut Vec<i64>,
    masks: &mut [u64],
) {
    for (number, value) in column.iter().enumerate() {
        if table.contains(value) {
            values.push(*value);
            masks[number / 64] |= 1 << (number % 64);
        }
    }
}

/// The values of a column that are in a table, or all of them, by a list of positions that may be longer.
pub(super) fn listed(
    table: Option<&HashSet<i64>>,
    positions: &[i64],
    column: &[i64],
    values: &mut Vec<i64>,
    masks: &mut [u64],
) {
    let positions = positions[..column.len()].iter().map(|&at| at as usize);
    let Some(table) = table else {
        values.extend(positions.map(|at| column[at]));
        masks.fill(u64::MAX);
        return;
    };
    for at in positions {
        let value = column[at];
        if table.contains(&value) {
            values.push(value);
            masks[at / 64] |= 1 << (at % 64);
        }
    }
}

fn below(bound: i64, column: &[i64], values: &mut Vec<i64>, masks: &mut [u64]) {
    let isa = Isa::best();
    let mut matching = [0; VECTOR];
    let (vectors, rest) = column.as_chunks::<VECTOR>();
    for (vector, masks) in vectors.iter().zip(masks.as_chunks_mut::<MASK_WORDS>().0) {
        isa.between_i64(vector, i64::MIN, bound - 1, masks);
        let count = isa.select_i64(vector, masks, &mut matching);
        values.extend_from_slice(&matching[..count]);
    }
    let before = vectors.len() * VECTOR;
    for (number, value) in (before..).zip(rest) {
        if *value < bound {
            values.push(*value);
            masks[number / 64] |= 1 << (number % 64);
        }
    }
}

/// As many words as have a bit for each record.
pub(super) fn mask_words(records: usize) -> usize {
    records.div_ceil(VECTOR) * MASK_WORDS
}

/// The values below which about this share of all lies.
pub(super) fn task_below(share: f64) -> Task {
    // As a sum, for the range of all values is wider than the type.
    let above = share * u64::MAX as f64;
    // Nothing is less than the least number, so no comparison could be made with what is below it.
    Task::Below(((above as u64).max(1) ^ 1 << 63) as i64)
}

/// Positions in ascending order, about this share of all.
pub(super) fn task_at(column: &[i64], share: f64) -> Task {
    let step = 1.0 / share;
    let count = (column.len() as f64 * share) as usize;
    let positions = (0..count).map(|number| (number as f64 * step) as i64);
    Task::At(positions.collect())
}

/// So many values, few of which are in the column.
pub(super) fn task_among(count: usize) -> Task {
    let others = (0..count as u64).map(|number| scattered(number ^ 1 << 60));
    Task::Among(others.collect())
}

/// What is between two points of a line, or beyond them.
pub(super) fn on_line([from, to]: [f64; 2], [low, high]: [f64; 2], at: f64) -> f64 {
    (low + (high - low) * (at - from) / (to - from)).max(low.min(high) / 2.0)
}

/// The one in the middle.
pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Reads other memory, so that what was read before has to be read anew.
pub(super) fn leave_caches(elsewhere: &[i64]) {
    std::hint::black_box(elsewhere.iter().fold(0, |all, value| all ^ value));
}

pub(super) fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// A number that looks random (the finaliser of SplitMix64).
pub(super) fn scattered(number: u64) -> i64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_values_that_are_found() {
        let column: Vec<i64> = (0..5000).map(scattered).collect();
        let half = Task::Among(column[..2500].to_vec());
        let listed = |probed| Task::Listed {
            positions: (0..6000).collect(),
            probed,
        };
        for (task, about) in [
            (task_below(0.0), 0),
            (task_below(0.25), 1250),
            (task_below(1.0), 5000),
            (half, 2500),
            (listed(Some(column[..2500].to_vec())), 2500),
            (listed(None), 5000),
        ] {
            let mut masks = vec![0; mask_words(column.len())];
            let mut values = Vec::new();
            task.run(&column, &mut values, &mut masks);
            let is_set = |number: &usize| masks[number / 64] >> (number % 64) & 1 == 1;
            let marked: Vec<i64> = (0..5000)
                .filter(is_set)
                .map(|number| column[number])
                .collect();
            assert_eq!(values, marked);
            assert!(values.len().abs_diff(about) < 120, "{}", values.len());
        }
        let mut values = Vec::new();
        task_at(&column, 0.5).run(&column, &mut values, &mut []);
        assert_eq!(
            values,
            column.iter().copied().step_by(2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn between_two_points_lies_the_line() {
        let at = [0.0, 0.25, 0.5];
        assert_eq!(
            at.map(|at| on_line([0.0, 0.5], [1.0, 2.0], at)),
            [1.0, 1.5, 2.0]
        );
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
