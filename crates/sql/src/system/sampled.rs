//! What a sample says of a column's values: `eris.columns`.
//!
//! ```text
//! sample, owner by owner         7 · 7 9 7 3 …
//!    ├─ frequent values          7: 0.6                   each with its share of all rows
//!    ├─ sorted                   3 7 7 7 9                histogram: of so many values the same number lie between
//!    └─ ranks beside places      correlation: 1 if rows ascend by the column, -1 if they descend, 0 if by chance
//! ```

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::{SortOptions, sort_to_indices};
use datafusion::arrow::error::ArrowError;
use eris_exact::text::strings;
use std::cmp::Reverse;
use std::collections::HashMap;

/// A value is frequent if it has so much of the rows.
const FREQUENT: f64 = 0.01;
/// How many of them are shown.
const SHOWN: usize = 5;
/// Between the bounds of a histogram lie equal shares of the values: so many.
const BUCKETS: usize = 10;

/// What is known of a column by a sample.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sampled {
    /// Such as `'A': 0.51, 'R': 0.25`; NULLs count as rows.
    pub frequent: Option<String>,
    /// Bounds, from the least to the greatest.
    pub histogram: Option<String>,
    /// Characters, on average.
    pub length: Option<f64>,
    /// Of values and places; none of columns with one value.
    pub correlation: Option<f64>,
}

impl Sampled {
    /// Of values in the order of their rows; nothing if they cannot be shown.
    pub fn of(values: &ArrayRef) -> Self {
        Sampled::of_shown(values).unwrap_or_default()
    }

    fn of_shown(values: &ArrayRef) -> Result<Self, ArrowError> {
        if values.len() == values.null_count() {
            return Ok(Sampled::default());
        }
        let texts = strings(values)?;
        let texts = texts.as_string_view();
        let sorted = sort_to_indices(values, Some(SortOptions::new(false, true)), None)?;
        let sorted = &sorted.values()[values.null_count()..];
        Ok(Sampled {
            frequent: frequent(texts),
            histogram: histogram(texts, sorted),
            length: length(values),
            correlation: correlation(texts, sorted),
        })
    }
}

fn frequent(texts: &StringViewArray) -> Option<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for text in texts.iter().flatten() {
        *counts.entry(text).or_default() += 1;
    }
    let share = |count: usize| count as f64 / texts.len() as f64;
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.retain(|(_, count)| *count > 1 && share(*count) >= FREQUENT);
    counts.sort_by_key(|&(text, count)| (Reverse(count), text));
    let shown = counts.iter().take(SHOWN);
    let shown: Vec<_> = shown
        .map(|(text, count)| format!("{text}: {:.2}", share(*count)))
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

fn histogram(texts: &StringViewArray, sorted: &[u32]) -> Option<String> {
    let last = sorted.len() - 1;
    let bounds = (0..=BUCKETS).map(|bucket| texts.value(sorted[bucket * last / BUCKETS] as usize));
    let mut bounds: Vec<_> = bounds.collect();
    bounds.dedup();
    (bounds.len() > 2).then(|| bounds.join(", "))
}

fn length(values: &ArrayRef) -> Option<f64> {
    let strings = values.as_string_view_opt()?;
    let characters = strings.iter().flatten().map(|text| text.chars().count());
    Some(characters.sum::<usize>() as f64 / (strings.len() - strings.null_count()) as f64)
}

/// Pearson's coefficient of ranks and places.
fn correlation(texts: &StringViewArray, sorted: &[u32]) -> Option<f64> {
    let mut ranks = Vec::with_capacity(sorted.len());
    let equal = |a: &u32, b: &u32| texts.value(*a as usize) == texts.value(*b as usize);
    for same in sorted.chunk_by(equal) {
        // Equal values have the rank that lies in the middle.
        let rank = ranks.len() as f64 + (same.len() as f64 - 1.0) / 2.0;
        ranks.extend(same.iter().map(|&row| (f64::from(row), rank)));
    }
    let count = ranks.len() as f64;
    let sums = ranks
        .iter()
        .fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
    let (x, y) = (sums.0 / count, sums.1 / count);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (place, rank) in ranks {
        let (dx, dy) = (place - x, rank - y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Date32Array, Int32Array};
    use std::sync::Arc;

    fn of(values: impl Array + 'static) -> Sampled {
        let values: ArrayRef = Arc::new(values);
        Sampled::of(&values)
    }

    #[test]
    fn numbers() {
        let up = of((0..=100).map(Some).collect::<Int32Array>());
        assert_eq!(up.frequent, None);
        let bounds = up.histogram.as_deref();
        assert_eq!(bounds, Some("0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100"));
        assert!(up.correlation.unwrap() > 0.999);
        let down = of((0..=100).rev().map(Some).collect::<Int32Array>());
        assert!(down.correlation.unwrap() < -0.999);
        let mixed = of((0..1000)
            .map(|row| Some(row * 7919 % 1000))
            .collect::<Int32Array>());
        assert!(mixed.correlation.unwrap().abs() < 0.1);
    }

    #[test]
    fn frequent_values_and_nulls() {
        let values = (0..100).map(|row| match row {
            0..60 => Some(7),
            60..80 => None,
            row => Some(row),
        });
        let known = of(values.collect::<Int32Array>());
        assert_eq!(known.frequent.as_deref(), Some("7: 0.60"));
        let one = of(Int32Array::from(vec![3; 50]));
        assert_eq!(one.frequent.as_deref(), Some("3: 1.00"));
        assert_eq!((one.histogram, one.correlation), (None, None));
        let none = of(Int32Array::from(vec![None; 9]));
        assert_eq!(none, Sampled::default());
    }

    #[test]
    fn strings_and_dates() {
        let text = of(StringViewArray::from(vec![Some("abc"), None, Some("äb")]));
        assert_eq!(text.length, Some(2.5));
        let days = of(Date32Array::from((0..=10).collect::<Vec<_>>()));
        assert!(
            days.histogram
                .unwrap()
                .starts_with("1970-01-01, 1970-01-02")
        );
    }
}
