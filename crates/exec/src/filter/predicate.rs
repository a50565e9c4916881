//! From solved conditions to the predicates that column chunks evaluate.

use super::interval::IntervalSet;
use super::truth::{Truth, float_of_key};
use crate::bounds::stored_bounds;
use eris_column::{ColumnPredicate, Domain};
use eris_fragment::Type;
use std::ops::Bound;

/// Bits of the largest bitmap that is built for any set.
const SMALL_BITMAP: u64 = 1 << 16;

/// Bits of the largest bitmap that is built for a set that fills one bit in 64 of it: 32 MiB.
const LARGE_BITMAP: u64 = 1 << 28;

/// Gaps in a set that are excluded one after the other.
const MAX_GAPS: usize = 8;

/// What must hold of one column.
#[derive(Debug)]
pub(super) enum Tests {
    /// Nothing: every row passes.
    Always,
    /// No row passes.
    Never,
    /// Each of these predicates.
    Each(Vec<ColumnPredicate>),
    /// The predicate, or the value is NULL.
    OrNull(ColumnPredicate),
}

/// Turns a solved condition on a column of integers or floats into tests; `None` if no predicate can say it.
pub(super) fn tests(truth: &Truth, data_type: &Type, domain: Domain) -> Option<Tests> {
    let predicates = match domain {
        Domain::Integer => integers(&truth.yes, stored_bounds(data_type)?)?,
        Domain::Float32 | Domain::Float64 => floats(&truth.yes)?,
        Domain::Wide | Domain::String | Domain::Bytes => return None,
    };
    Some(match (truth.null == Some(true), predicates) {
        (false, Values::All) => Tests::Each(vec![ColumnPredicate::NotNull]),
        (false, Values::None) => Tests::Never,
        (false, Values::Some(predicates)) => Tests::Each(predicates),
        (true, Values::All) => Tests::Always,
        (true, Values::None) => Tests::Each(vec![ColumnPredicate::Null]),
        (true, Values::Some(mut predicates)) => {
            if predicates.len() > 1 {
                return None;
            }
            Tests::OrNull(predicates.pop()?)
        }
    })
}

enum Values {
    None,
    All,
    Some(Vec<ColumnPredicate>),
}

fn integers(set: &IntervalSet, bounds: (i64, i64)) -> Option<Values> {
    let possible = IntervalSet::range(bounds.0, bounds.1);
    let set = set.intersection(&possible);
    let Some((low, high)) = set.hull() else {
        return Some(Values::None);
    };
    if set == possible {
        return Some(Values::All);
    }
    if set.ranges().len() == 1 {
        return Some(Values::Some(vec![ColumnPredicate::Integers { low, high }]));
    }
    let gaps = set
        .complement()
        .intersection(&IntervalSet::range(low, high));
    let not = |&(low, high): &(i64, i64)| ColumnPredicate::NotIntegers { low, high };
    if gaps.ranges().len() == 1 && (low, high) == bounds {
        return Some(Values::Some(gaps.ranges().iter().map(not).collect()));
    }
    let (width, len) = (high.abs_diff(low), set.len());
    if width < SMALL_BITMAP {
        return Some(Values::Some(vec![bitmap(&set, low, width)]));
    }
    if gaps.ranges().len() > MAX_GAPS || len <= set.ranges().len() as u64 {
        if width < LARGE_BITMAP.min(len.saturating_mul(64)) {
            return Some(Values::Some(vec![bitmap(&set, low, width)]));
        }
        // Mostly single values.
        if len > 4 * set.ranges().len() as u64 {
            return None;
        }
        let values = set.ranges().iter().flat_map(|&(low, high)| low..=high);
        let values = ColumnPredicate::IntegerSet(values.collect());
        return Some(Values::Some(vec![values]));
    }
    let mut predicates = vec![ColumnPredicate::Integers { low, high }];
    if (low, high) == bounds {
        predicates.clear();
    }
    predicates.extend(gaps.ranges().iter().map(not));
    Some(Values::Some(predicates))
}

fn bitmap(set: &IntervalSet, first: i64, width: u64) -> ColumnPredicate {
    let mut words = vec![0u64; (width / 64 + 1) as usize];
    for &(low, high) in set.ranges() {
        for bit in low.abs_diff(first)..=high.abs_diff(first) {
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
    ColumnPredicate::IntegerBitmap {
        first,
        words: words.into(),
    }
}

fn floats(set: &IntervalSet) -> Option<Values> {
    let [(low, high)] = *set.ranges() else {
        return set.is_empty().then_some(Values::None);
    };
    if (low, high) == (i64::MIN, i64::MAX) {
        return Some(Values::All);
    }
    // Chunks tell -0 (key -1) from +0 (key 0), conditions do not: -0 goes where +0 goes.
    let low = if low == 0 { -1 } else { low };
    let high = if high == -1 { -2 } else { high };
    if low > high {
        return Some(Values::None);
    }
    let low = match low {
        i64::MIN => Bound::Unbounded,
        key => Bound::Included(float_of_key(key)),
    };
    let high = match high {
        i64::MAX => Bound::Unbounded,
        key => Bound::Included(float_of_key(key)),
    };
    Some(Values::Some(vec![ColumnPredicate::Floats { low, high }]))
}
