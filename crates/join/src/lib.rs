//! Hash tables of joins: built in parts side by side, probed in batches.
//!
//! What a row is joined by is a *key code* of 64 bits. Who knows the keys makes the codes: exact ones, or hashes, of
//! which equal ones are compared again. A row without a key has the code [`NO_KEY`].
//!
//! ```text
//! codes of the build side's rows
//!      │ Spread::scatter       each worker, by bucket of its own rows
//!      ▼
//! worker 0  [b0][b1][b2] …     worker 1  [b0][b1][b2] …
//!      │ Spread::gather        a part's buckets, from all workers: each bucket fits into a core's cache
//!      ▼
//! part 0 of the table: b0 b1 b2          rows are found by their codes
//! ```
//!
//! - *Dense*: if codes lie close together, a place is a code. Codes that follow each other are found side by side. So
//!   a probe side in the order of its keys stays in the cache. If each code is there once, a place is its row: 4 bytes
//!   for each code that there may be. Codes need not be kept.
//! - *Hashed*: else a code lies in a slot at its hash, with its row: 19 bytes for a row.
//!
//! Rows are looked for in batches. The places of many are on their way at once, for each is a miss of all caches.
//!
//! All rows of a key are in one part. So parts may be built by different workers, and lie on different nodes.
//!
//! **Source:** buckets and their owners are those of ERIS (Section 3.2). That a table is made of buckets without a
//! lock is the radix join of Manegold, Boncz and Kersten, "Optimizing Main-Memory Join on Modern Hardware" (2002).

#![forbid(unsafe_code)]

mod dense;
mod hashed;
mod probe;
mod rows;
mod spread;
mod table;

pub use probe::{Cursor, Pairs};
pub use rows::{Located, Scattered};
pub use spread::Spread;
pub use table::{JoinTable, TablePart};

/// The code of a row that has no match, because a key is NULL or has a value that no row of the build side has.
pub const NO_KEY: u64 = u64::MAX;

/// The number of no row: what a row without a match is paired with.
pub const NO_ROW: u32 = u32::MAX;

/// Rows of a build side, at most.
pub const MOST_ROWS: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table of these codes, scattered by so many workers.
    fn table(codes: &[u64], workers: usize) -> JoinTable {
        let keys = || codes.iter().copied().filter(|&code| code != NO_KEY);
        let (least, greatest) = (keys().min().unwrap_or(0), keys().max().unwrap_or(0));
        let spread = Spread::new(codes.len(), least, greatest, workers);
        let each = codes.len().div_ceil(workers).max(1);
        let scattered = codes.chunks(each).enumerate().map(|(worker, codes)| {
            let mut scattered = Scattered::default();
            spread.scatter(codes, (worker * each) as u32, workers, &mut scattered);
            scattered
        });
        let scattered: Vec<Scattered> = scattered.collect();
        let part = |part| spread.gather(part, &scattered);
        JoinTable::new(spread, (0..spread.parts()).map(part).collect())
    }

    /// All pairs, some at a time.
    fn pairs(table: &JoinTable, codes: &[u64], most: usize, others: bool) -> Vec<(u32, u32)> {
        let mut located = Vec::new();
        table.locate(codes, &mut located);
        let mut cursor = Cursor::default();
        let mut all = Vec::new();
        while cursor.row < codes.len() {
            let pairs = table.pairs(codes, &located, &mut cursor, most, others);
            assert!(pairs.probe.len() <= most);
            all.extend(pairs.probe.into_iter().zip(pairs.build));
        }
        all
    }

    /// What a loop over both sides finds.
    fn expected(build: &[u64], probe: &[u64], others: bool) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for (row, code) in (0..).zip(probe) {
            let matches = (0..)
                .zip(build)
                .filter(|(_, own)| *own == code && *code != NO_KEY);
            let before = all.len();
            all.extend(matches.map(|(own, _)| (row, own)));
            if others && all.len() == before {
                all.push((row, NO_ROW));
            }
        }
        all
    }

    fn codes(len: usize) -> impl Strategy<Value = Vec<u64>> {
        let one = prop_oneof![
            4 => 0u64..50,
            2 => (0u64..50).prop_map(|code| code << 40),
            1 => any::<u64>(),
            1 => Just(NO_KEY),
        ];
        prop::collection::vec(one, 0..len)
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_a_loop_over_both_sides(
            build in codes(60), probe in codes(200), workers in 1usize..4, most in 1usize..70, dense: bool,
            others: bool,
        ) {
            let bounded = |codes: Vec<u64>| -> Vec<u64> {
                let bound = |code: u64| if dense && code != NO_KEY { code % 90 + 7 } else { code };
                codes.into_iter().map(bound).collect()
            };
            let (build, probe) = (bounded(build), bounded(probe));
            let found = pairs(&table(&build, workers), &probe, most, others);
            prop_assert_eq!(found, expected(&build, &probe, others));
        }
    }

    #[test]
    fn tables_of_many_partitions_find_all_rows() {
        let rows = 3_000_000u64;
        for (step, repeat) in [(1, 1), (3, 1), (1 << 30, 1), (1, 3), (1 << 30, 3)] {
            let codes: Vec<u64> = (0..rows)
                .map(|row| row * 7919 % rows / repeat * step)
                .collect();
            let table = table(&codes, 2);
            assert!(
                table.size() <= 24 * codes.len(),
                "{step} {repeat}: {}",
                table.size()
            );
            let probe: Vec<u64> = codes.iter().copied().step_by(1000).collect();
            let found = pairs(&table, &probe, 1 << 10, false);
            assert_eq!(
                found.len() as u64,
                probe.len() as u64 * repeat,
                "{step} {repeat}"
            );
            for (row, own) in found {
                assert_eq!(codes[own as usize], probe[row as usize]);
            }
            let mut located = Vec::new();
            table.locate(&[NO_KEY, rows * step + 1], &mut located);
            assert!(located.iter().all(|located| located.len == 0));
        }
    }

    #[test]
    fn rows_come_in_the_order_of_codes_that_lie_close_together() {
        let codes: Vec<u64> = (0..200_000u64).map(|row| row * 7919 % 70_001 + 5).collect();
        let rows = table(&codes, 2).rows_by_code().unwrap();
        assert_eq!(rows.len(), codes.len());
        let keys = rows.iter().map(|row| (codes[*row as usize], *row));
        assert!(keys.is_sorted(), "rows of one code keep their order");
        let far_apart: Vec<u64> = codes.iter().map(|code| code << 40).collect();
        assert_eq!(table(&far_apart, 2).rows_by_code(), None);
    }

    #[test]
    fn a_code_with_most_rows_is_found_among_others_of_its_bucket() {
        let codes: Vec<u64> = (0..100_000u64)
            .map(|row| if row % 10 == 0 { row << 33 } else { 5 << 50 })
            .collect();
        let found = pairs(&table(&codes, 3), &[5 << 50, 10 << 33], 999, false);
        assert_eq!(found.len(), 90_001);
    }
}
