//! Short statements take no lock, in the client or at the owner: a simulation has both in one thread, which counts.

use super::simulated::Simulated;
use crate::{Becomes, Compute, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Faults;
use eris_atomics::acquisitions;
use eris_numa::Topology;
use eris_types::ColumnId;
use std::sync::Arc;

/// Rows of the table, and operations of each kind.
const ROWS: i64 = 1_000;
const OPERATIONS: i64 = 3_000;

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("k"), field("v")]))
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn rows(keys: std::ops::Range<i64>, value: i64) -> RecordBatch {
    let columns = vec![column(keys.clone()), column(keys.map(|_| value))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// Adds 1 to the value.
#[derive(Debug)]
struct Increment(i64);

impl Compute for Increment {
    fn reads(&self) -> &[ColumnId] {
        &[ColumnId(1)]
    }

    fn may_add(&self) -> bool {
        false
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        let value = row.expect("it is there")[0]
            .as_primitive::<Int64Type>()
            .value(0);
        Becomes::Row(rows(self.0..self.0 + 1, value + 1))
    }
}

#[test]
fn short_statements_take_no_lock() {
    let mut simulated = Simulated::new(1, Topology::fake(2, 2), Faults::default());
    let engine = simulated.engine.clone();
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    simulated.client(async move {
        engine
            .rows(object)
            .unwrap()
            .put(rows(0..ROWS, 0))
            .await
            .unwrap();
        for kind in ["get", "put", "insert", "compute", "remove", "hold"] {
            let (mut taken, mut free) = (0, 0);
            for operation in 0..OPERATIONS {
                let before = acquisitions();
                let any = operation * 7 % ROWS;
                let next = ROWS + operation;
                // A session from the pool for each statement, as SQL takes it.
                let mut client = engine.rows(object).unwrap();
                match kind {
                    "get" => {
                        let found = client.get(&[column([any])], &[ColumnId(1)]).await.unwrap();
                        assert_eq!(found.of, [0]);
                    }
                    "put" => assert_eq!(client.put(rows(any..any + 1, 7)).await.unwrap(), 1),
                    "insert" => assert!(client.insert(rows(next..next + 1, 0)).await.unwrap()),
                    "compute" => {
                        let increment = Arc::new(Increment(any));
                        client.compute(&[column([any])], increment).await.unwrap();
                    }
                    "remove" => assert_eq!(client.remove(&[column([next])]).await.unwrap(), 1),
                    _ => drop(engine.hold()),
                }
                drop(client);
                let count = acquisitions() - before;
                taken += count;
                free += i64::from(count == 0);
            }
            println!("{kind}: {taken} locks in {OPERATIONS} operations, {free} without any");
            // A collection of garbage is due once in a thousand deleted rows, and ranges of ascending keys are looked
            // at again once in some hundred rows.
            assert!(
                free >= OPERATIONS * 99 / 100,
                "{kind}: only {free} took no lock"
            );
            if kind == "get" || kind == "hold" {
                assert_eq!(taken, 0);
            }
        }
    });
    simulated.run();
    simulated.drop_object(object);
    simulated.end();
}
