//! The `part` table: brand within category within manufacturer, and the price every other table derives.

use crate::random::Stream;
use crate::table::SsbTable;
use crate::words::{COLORS, CONTAINERS, TYPES};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use std::ops::Range;
use std::sync::Arc;

/// A part's retail price in cents (TPC-H specification, clause 4.2.3), from its key.
pub(crate) fn retail_price(part_key: i32) -> i32 {
    90_000 + (part_key / 10) % 20_001 + 100 * (part_key % 1_000)
}

/// The parts of `rows`, counted from zero.
pub(crate) fn batch(seed: u64, rows: Range<u64>) -> RecordBatch {
    let stream = |column| Stream::new(seed, SsbTable::Part, column);
    let (mfgr, category, brand) = (stream(0), stream(1), stream(2));
    let (name, size) = (stream(3), stream(4));
    let (type_of, container) = (stream(5), stream(6));
    let mfgr_of = move |row| format!("MFGR#{}", mfgr.between(row, 1, 5));
    let category_of = move |row| format!("{}{}", mfgr_of(row), category.between(row, 1, 5));

    let text = |of: &dyn Fn(u64) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.clone().map(of)))
    };
    let number = |of: &dyn Fn(u64) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(rows.clone().map(of)))
    };
    let columns = vec![
        number(&|row| row as i32 + 1),
        text(&|row| {
            let [_, first, second] = three_colors(name, row);
            format!("{first} {second}")
        }),
        text(&mfgr_of),
        text(&category_of),
        text(&|row| format!("{}{}", category_of(row), brand.between(row, 1, 40))),
        text(&|row| three_colors(name, row)[0].to_owned()),
        text(&|row| {
            let (size, finish, metal) = TYPES;
            let at = |digit| row * 3 + digit;
            format!(
                "{} {} {}",
                type_of.pick(at(0), &size),
                type_of.pick(at(1), &finish),
                type_of.pick(at(2), &metal)
            )
        }),
        number(&|row| size.between(row, 1, 50)),
        text(&|row| {
            let (size, kind) = CONTAINERS;
            format!(
                "{} {}",
                container.pick(row * 2, &size),
                container.pick(row * 2 + 1, &kind)
            )
        }),
    ];
    RecordBatch::try_new(SsbTable::Part.schema(), columns).expect("columns are built to the schema")
}

/// Three different colours: the part's own and the two of its name.
fn three_colors(stream: Stream, row: u64) -> [&'static str; 3] {
    let count = COLORS.len() as u64;
    // Distances around the circle of colours: each below what is left, so that none meets another.
    let own = stream.below(row * 3, count);
    let step = 1 + stream.below(row * 3 + 1, count - 1);
    let other = 1 + stream.below(row * 3 + 2, count - 2);
    let other = other + u64::from(other >= step);
    [own, own + step, own + other].map(|at| COLORS[(at % count) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retail_price_follows_the_clause() {
        assert_eq!(retail_price(1), 90_100);
        assert_eq!(retail_price(1_000), 90_100);
        assert_eq!(retail_price(199_999), 90_000 + 19_999 + 99_900);
    }

    #[test]
    fn the_three_colors_differ_and_all_occur() {
        let stream = Stream::new(3, SsbTable::Part, 3);
        let mut seen = std::collections::HashSet::new();
        for row in 0..10_000 {
            let [a, b, c] = three_colors(stream, row);
            assert!(a != b && b != c && a != c, "row {row}: {a} {b} {c}");
            seen.insert(c);
        }
        assert_eq!(seen.len(), COLORS.len());
    }
}
