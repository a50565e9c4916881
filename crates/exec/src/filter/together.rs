//! The tests of several filters over one chunk: those on the same column together.
//!
//! ```text
//! filter 0   a ─▶ b             round 1   a of 0 and 2, for most filters have come to a
//! filter 1   b                  round 2   b of 0 and 1
//! filter 2   a
//! ```
//!
//! Each filter keeps its own order of tests, its own selection, and what it learns.

use super::run::{FilterRun, Way};
use eris_column::{ColumnChunk, ColumnTest, PassedRows};

/// A test that a filter has come to.
struct NextTest<'a> {
    /// Which filter.
    run: usize,
    number: usize,
    column: &'a ColumnChunk,
    /// How many rows passed, if they are only counted.
    count: u64,
}

/// Runs the tests of all filters. What is left for each of them is to [finish](FilterRun::finish).
pub(crate) fn run_tests(runs: &mut [FilterRun<'_>]) {
    let mut next = Vec::with_capacity(runs.len());
    loop {
        next.clear();
        next.extend(runs.iter_mut().enumerate().filter_map(next_test));
        let Some(column) = most_frequent(&next) else {
            return;
        };
        next.retain(|test| std::ptr::eq(test.column, column));
        match &mut next[..] {
            [test] => run_alone(&mut runs[test.run], test.number),
            tests => test_together(runs, tests),
        }
    }
}

/// The column to which most filters have come, or the first one of these.
fn most_frequent<'a>(next: &[NextTest<'a>]) -> Option<&'a ColumnChunk> {
    let first = next.first()?.column;
    if next.iter().all(|test| std::ptr::eq(test.column, first)) {
        return Some(first);
    }
    let mut columns: Vec<(&ColumnChunk, usize)> = Vec::new();
    for test in next {
        let known = columns.iter_mut();
        let mut known = known.filter(|(column, _)| std::ptr::eq(*column, test.column));
        match known.next() {
            Some((_, count)) => *count += 1,
            None => columns.push((test.column, 1)),
        }
    }
    let most = columns.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map(|(column, _)| column)
}

/// The test that a filter comes to, after those that nobody can share.
fn next_test<'a>((number, run): (usize, &mut FilterRun<'a>)) -> Option<NextTest<'a>> {
    let of = |run: &FilterRun<'a>, test| NextTest {
        run: number,
        number: test,
        column: run.test(test).2,
        count: 0,
    };
    match run.way {
        Way::Nothing | Way::Counted(_) => None,
        Way::Count(test) => Some(of(run, test)),
        Way::Select => loop {
            let test = run.next_test()?;
            if run.lend(test).is_some() {
                return Some(of(run, test));
            }
            run.run_test(test);
        },
    }
}

fn run_alone(run: &mut FilterRun<'_>, test: usize) {
    match run.way {
        Way::Count(_) => run.way = Way::Counted(run.count_alone(test)),
        _ => run.run_test(test),
    }
}

/// Runs tests of several filters on one chunk of a column; they are in the order of the filters.
fn test_together(runs: &mut [FilterRun<'_>], next: &mut [NextTest<'_>]) {
    let (isa, column) = (runs[next[0].run].input.isa, next[0].column);
    let mut tests = Vec::with_capacity(next.len());
    let mut rest = &mut *runs;
    let mut at = 0;
    for of in next.iter_mut() {
        let (run, behind) = rest[of.run - at..].split_first_mut().expect("in order");
        (rest, at) = (behind, of.run + 1);
        let predicate = run.test(of.number).1.predicate;
        let passed = match run.way {
            Way::Count(_) => PassedRows::Counted(&mut of.count),
            _ => {
                run.reads(of.number);
                PassedRows::Kept(run.lend(of.number).expect("lent before"))
            }
        };
        tests.push(ColumnTest { predicate, passed });
    }
    column.filter_together(isa, &mut tests);
    for of in next {
        let run = &mut runs[of.run];
        match run.way {
            Way::Count(test) => run.way = Way::Counted(run.counted(test, of.count as usize)),
            _ => run.tested(of.number),
        }
    }
}
