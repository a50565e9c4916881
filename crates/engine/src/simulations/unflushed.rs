//! Commits that are applied and not flushed: nobody sees them, and nobody waits for the flush but who has committed.

use super::simulated::{Simulated, turn};
use crate::Partitioning;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Faults;
use eris_home::Newest;
use eris_numa::Topology;
use eris_types::ColumnId;
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("k"), field("v")]))
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn rows(keys: &[i64], value: i64) -> RecordBatch {
    let values = keys.iter().map(|key| value + key);
    let columns = vec![column(keys.iter().copied()), column(values)];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// Keys and values of all rows.
type Pairs = Vec<(i64, i64)>;

#[test]
fn readers_see_what_is_flushed_and_wait_for_nothing() {
    let mut simulated = Simulated::new(5, Topology::fake(2, 2), Faults::default());
    let engine = simulated.engine.clone();
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    let loading = engine.clone();
    simulated.client(async move {
        let keys: Vec<i64> = (0..1_000).collect();
        let mut writer = loading.writer(object).unwrap();
        writer.append(rows(&keys, 0)).await.unwrap();
        writer.commit().await.unwrap();
    });
    simulated.run();
    let flushes = simulated.flush_by_hand();
    let done = Rc::new(Cell::new(0));
    let changes = [[7, 8], [7, 500], [7, 2_000]];
    let all = changes.len();
    for (number, keys) in changes.into_iter().enumerate() {
        let (engine, done) = (engine.clone(), Rc::clone(&done));
        simulated.client(async move {
            // One after the other.
            let before = engine.newest(Newest::Visible).0 + number as u64;
            while engine.newest(Newest::Applied).0 < before {
                turn().await;
            }
            let mut client = engine.rows(object).unwrap();
            let rows = rows(&keys, 10_000 * (1 + number as i64));
            match number {
                0 => assert_eq!(client.put(rows).await.unwrap(), 2),
                1 => assert_eq!(client.remove(&rows.columns()[..1]).await.unwrap(), 2),
                _ => assert!(client.insert(rows).await.unwrap()),
            }
            done.set(done.get() + 1);
        });
    }
    let expected: Pairs = (0..1_000).map(|key| (key, key)).collect();
    let reading = engine.clone();
    let counted = Rc::clone(&done);
    simulated.client(async move {
        let visible = reading.newest(Newest::Visible);
        while reading.newest(Newest::Applied).0 < visible.0 + all as u64 {
            turn().await;
        }
        assert_eq!(counted.get(), 0, "they wait for the flush");
        let mut client = reading.rows(object).unwrap();
        let keys = [column((0..1_000).chain([2_000]))];
        let pairs = |found: &RecordBatch| -> Pairs {
            let of = |at: usize| found.column(at).as_primitive::<Int64Type>().values();
            of(0).iter().copied().zip(of(1).iter().copied()).collect()
        };
        let both = [ColumnId(0), ColumnId(1)];
        let found = client.get(&keys, &both).await.unwrap();
        assert_eq!(pairs(&found.rows), expected);
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let found = client.range(everything, usize::MAX, &both).await.unwrap();
        assert_eq!(pairs(&found), expected);
        let found = client.range(everything, 8, &both).await.unwrap();
        assert_eq!(pairs(&found), expected[..8]);
        for (key, value) in [(7, Some(7)), (500, Some(500)), (2_000, None), (8, Some(8))] {
            let found = client.get(&[column([key])], &both).await.unwrap();
            let found = pairs(&found.rows).first().map(|pair| pair.1);
            assert_eq!(found, value, "key {key}");
        }
        assert_eq!(reading.newest(Newest::Visible), visible);
        // Who is about to write finds what was written.
        let (changed, both_of) = ([column([7, 8, 500, 2_000])], both.into());
        let applied = client.find(&changed, &both_of, Newest::Applied).await;
        let applied = pairs(&applied.unwrap().rows);
        assert_eq!(applied, [(7, 30_007), (8, 10_008), (2_000, 32_000)]);
        flushes.flush();
        flushes.flush();
        let found = client.get(&changed, &both).await.unwrap();
        assert_eq!(pairs(&found.rows), applied);
    });
    simulated.run();
    assert_eq!(done.get(), all);
    simulated.drop_object(object);
    simulated.end();
}
