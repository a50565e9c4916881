use super::*;
use datafusion::arrow::array::{
    BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
    UInt64Array,
};
use datafusion::arrow::compute::{SortColumn, lexsort_to_indices, take};
use futures::executor::block_on;
use proptest::prelude::*;
use std::sync::Arc;

fn array(kind: usize, values: &[Option<(i64, u8)>]) -> ArrayRef {
    let small = |value: &Option<(i64, u8)>| value.map(|(value, _)| value % 5);
    let float = |value: &Option<(i64, u8)>| {
        value.map(|(value, special)| match special {
            0 => f64::NAN,
            1 => -0.0,
            2 => f64::NEG_INFINITY,
            3 => 0.0,
            _ => value as f64 / 3.0,
        })
    };
    let wide = |value: &Option<(i64, u8)>| {
        value.map(|(value, special)| match special {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => value,
        })
    };
    let rows = values.iter();
    match kind {
        0 => Arc::new(rows.map(wide).collect::<Int64Array>()),
        1 => Arc::new(
            rows.map(|row| small(row).map(|value| value as i8))
                .collect::<Int8Array>(),
        ),
        2 => Arc::new(rows.map(float).collect::<Float64Array>()),
        3 => Arc::new(
            rows.map(|row| float(row).map(|value| value as f32))
                .collect::<Float32Array>(),
        ),
        4 => Arc::new(
            rows.map(|row| wide(row).map(|value| value as u64))
                .collect::<UInt64Array>(),
        ),
        5 => Arc::new(
            rows.map(|row| small(row).map(i128::from))
                .collect::<Decimal128Array>(),
        ),
        6 => Arc::new(
            rows.map(|row| small(row).map(|value| value as i32))
                .collect::<Date32Array>(),
        ),
        _ => Arc::new(
            rows.map(|row| small(row).map(|value| value > 0))
                .collect::<BooleanArray>(),
        ),
    }
}

proptest! {
    #[test]
    fn rows_are_in_the_order_of_arrow(
        keys in prop::collection::vec((0..8_usize, any::<bool>(), any::<bool>()), 1..4),
        rows in prop::collection::vec(
            prop::collection::vec(prop::option::weighted(0.8, (any::<i64>(), 0..40_u8)), 4), 0..80),
        cuts in prop::collection::vec(0..20_usize, 0..6),
    ) {
        let columns: Vec<ArrayRef> = keys.iter().enumerate().map(|(at, (kind, ..))| {
            let values: Vec<_> = rows.iter().map(|row| row[at]).collect();
            array(*kind, &values)
        }).collect();
        let mut batches = Vec::new();
        let mut left = rows.len();
        for cut in cuts {
            batches.push(cut.min(left));
            left -= cut.min(left);
        }
        batches.push(left);
        let packed: Vec<_> = keys.iter().zip(&columns).map(|((_, descending, nulls_first), column)| {
            let options = SortOptions { descending: *descending, nulls_first: *nulls_first };
            let mut key = KeyColumn::new(options);
            let mut first = 0;
            for &rows in &batches {
                prop_assert!(key.add(column.slice(first, rows)));
                first += rows;
            }
            Ok(key)
        }).collect::<Result<_, _>>()?;
        let options: Vec<SortOptions> = packed.iter().map(|key| key.options).collect();
        let sorted = Rows::new(packed, batches.clone(), true);
        if sorted.bytes_of_number().is_none() {
            prop_assert!(keys.iter().filter(|(kind, ..)| [0, 2, 3, 4].contains(kind)).count() > 1);
            return Ok(());
        }
        let order = block_on(Order::new(sorted, 1)).unwrap();
        // The place breaks ties, as it does here.
        let places = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64)) as ArrayRef;
        let options = options.into_iter();
        let by = columns.iter().cloned().zip(options.map(Some)).chain([(places, None)]);
        let by: Vec<_> = by.map(|(values, options)| SortColumn { values, options }).collect();
        let expected = lexsort_to_indices(&by, None).unwrap();
        let starts: Vec<usize> = batches.iter().scan(0, |sum, rows| {
            *sum += rows;
            Some(*sum - rows)
        }).collect();
        prop_assert_eq!(order.parts(), vec![rows.len()]);
        let found = order.rows(0, 0..rows.len()).into_iter();
        let found: Vec<u32> = found.map(|(batch, row)| (starts[batch] + row) as u32).collect();
        prop_assert_eq!(&found[..], &expected.values()[..]);
        for (key, column) in columns.iter().enumerate() {
            if is_unpacked(column.data_type()) && order.keys[key].is_unpacked() {
                let unpacked = order.key(key, 0, 0..rows.len(), column.data_type());
                prop_assert_eq!(&unpacked, &take(column, &expected, None).unwrap());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn parts_of_several_threads_are_one_order() {
    let mut state = 7_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (keys, have_places) in [(3_u64, true), (1 << 40, true), (50, false)] {
        let batches: Vec<usize> = (0..40).map(|_| (next() % 9_000) as usize).collect();
        let mut key = KeyColumn::new(SortOptions::default());
        let mut all = Vec::new();
        for (batch, &rows) in batches.iter().enumerate() {
            let values: Vec<Option<i64>> = (0..rows)
                .map(|_| Some((next() % keys) as i64).filter(|_| next() % 10 > 0))
                .collect();
            // NULL comes last.
            let places = values.iter().enumerate();
            all.extend(
                places.map(|(row, value)| (value.is_none(), value.unwrap_or(0), batch, row)),
            );
            assert!(key.add(Arc::new(Int64Array::from(values))));
        }
        key.options.nulls_first = false;
        all.sort_unstable();
        let sorted = Rows::new(vec![key], batches, have_places);
        let order = Order::new(sorted, 3).await.unwrap();
        let parts = order.parts();
        assert_eq!(parts.iter().sum::<usize>(), all.len());
        assert!(parts.len() > 1);
        let mut expected = &all[..];
        for (part, rows) in parts.into_iter().enumerate() {
            let (own, behind) = expected.split_at(rows);
            let values = order.key(0, part, 0..rows, &DataType::Int64);
            let own_values = own.iter().map(|one| Some(one.1).filter(|_| !one.0));
            assert_eq!(
                values.as_primitive::<Int64Type>(),
                &own_values.collect::<Int64Array>()
            );
            if have_places {
                let own_places = own.iter().map(|one| (one.2, one.3));
                assert_eq!(order.rows(part, 0..rows), own_places.collect::<Vec<_>>());
            }
            expected = behind;
        }
    }
}
