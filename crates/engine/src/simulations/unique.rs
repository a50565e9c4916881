//! Rows of two data objects, a table and the keys of a UNIQUE constraint of it, changed together in one thread under a
//! seeded schedule. Other statements take write locks, and changes are given up anywhere. Every snapshot shows the same
//! values in both, each once.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::unique`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds, move_keys};
use crate::{EngineError, HeldSnapshot, Partitioning, RowClient, Writer};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId, RowId};
use futures::StreamExt;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

const KEYS: usize = 12;
const VALUES: usize = 10;
const VALUE: ColumnId = ColumnId(1);

/// Rows that came and went.
#[derive(Default)]
struct History {
    rows: i64,
    /// Statements of which nobody knows whether they took effect.
    unknown: i64,
}

struct Client {
    engine: Engine,
    /// Of keys and values, by key; and of values.
    objects: [ObjectId; 2],
    history: Rc<RefCell<History>>,
    random: Random,
}

fn schema(columns: &[&str]) -> SchemaRef {
    let fields = columns.iter();
    let fields = fields.map(|name| Field::new(*name, DataType::Int64, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn column(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

fn row(key: i64, value: i64) -> RecordBatch {
    let columns = vec![column(key), column(value)];
    RecordBatch::try_new(schema(&["key", "value"]), columns).unwrap()
}

fn only(value: i64) -> RecordBatch {
    RecordBatch::try_new(schema(&["value"]), vec![column(value)]).unwrap()
}

/// Polls a future so often, then gives it up.
async fn at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..16 {
            let done = match self.random.below(10) {
                8.. => {
                    let object = self.objects[self.random.below(2)];
                    move_keys(
                        &self.engine,
                        object,
                        &mut self.random,
                        -1..KEYS.max(VALUES) as i64 + 1,
                    )
                    .await;
                    Ok(())
                }
                0..=4 => self.change_one().await,
                5 => self.add().await,
                6 => self.remove_some().await,
                _ => self.read().await.map(|_| ()),
            };
            match done {
                Ok(())
                | Err(EngineError::DuplicateKey { .. })
                | Err(EngineError::Panicked { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Inserts, changes or removes the row of one key, perhaps not to the end.
    async fn change_one(&mut self) -> Result<(), EngineError> {
        let polls = match self.random.one_in(4) {
            true => self.random.below(6),
            false => usize::MAX,
        };
        let key = self.random.below(KEYS) as i64;
        let value = self.random.below(VALUES) as i64;
        let keeps = self.random.one_in(3);
        let engine = self.engine.clone();
        let change = change_row(&engine, self.objects, key, value, keeps);
        match at_most(polls, change).await {
            Some(more) => self.history.borrow_mut().rows += more?,
            None => self.history.borrow_mut().unknown += 1,
        }
        Ok(())
    }

    /// Adds a row in several steps.
    async fn add(&mut self) -> Result<(), EngineError> {
        let key = self.random.below(KEYS) as i64;
        let value = self.random.below(VALUES) as i64;
        let [table, values] = self.objects;
        let mut writers = vec![self.engine.writer(values)?, self.engine.writer(table)?];
        writers[0].append(only(value)).await?;
        writers[1].append(row(key, value)).await?;
        self.finish(writers, 1).await
    }

    /// Ends the rows with some values in both.
    async fn remove_some(&mut self) -> Result<(), EngineError> {
        let mut writers = Vec::new();
        for object in self.objects {
            writers.push(self.engine.changer(object).await?);
        }
        let snapshot = self.engine.hold_applied();
        let rest = self.random.below(3) as i64;
        let mut count = 0;
        for (place, object) in self.objects.into_iter().enumerate() {
            let rows = self.rows(object, 1 - place as u32, &snapshot).await?;
            let deleted: Vec<RowId> = (rows.iter())
                .filter(|(value, _)| value % 3 == rest)
                .map(|(_, id)| *id)
                .collect();
            count = deleted.len() as i64;
            writers[place].delete(deleted.into_iter())?;
        }
        self.finish(writers, -count).await
    }

    async fn finish(&mut self, writers: Vec<Writer>, more: i64) -> Result<(), EngineError> {
        if self.random.one_in(5) {
            return Ok(());
        }
        Writer::commit_all(writers).await?;
        self.history.borrow_mut().rows += more;
        Ok(())
    }

    /// How many rows there are.
    async fn read(&mut self) -> Result<i64, EngineError> {
        let snapshot = self.engine.hold();
        let mut seen = Vec::new();
        for (place, object) in self.objects.into_iter().enumerate() {
            let rows = self.rows(object, 1 - place as u32, &snapshot).await?;
            let mut values: Vec<i64> = rows.into_iter().map(|(value, _)| value).collect();
            values.sort_unstable();
            seen.push(values);
        }
        assert_eq!(seen[0], seen[1], "one object is ahead of the other");
        let twice = seen[1].windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "a value is visible twice");
        Ok(seen[0].len() as i64)
    }

    /// The values of a column, and the rows' ids.
    async fn rows(
        &mut self,
        object: ObjectId,
        column: u32,
        snapshot: &HeldSnapshot,
    ) -> Result<Vec<(i64, RowId)>, EngineError> {
        let fragment = Fragment {
            object,
            snapshot: snapshot.at(),
            order: None,
            columns: vec![ColumnId(column), ColumnId::ROW_ID],
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: vec![Expr::Column(0), Expr::Column(1)],
                limit: None,
            },
            options: ScanOptions::default(),
        };
        let execution = self.engine.execute(Arc::new(fragment), 1).unwrap();
        let mut batches = futures::stream::select_all(execution.streams);
        let mut rows = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| match error {
                FragmentError::Panicked { message, .. } => EngineError::Panicked {
                    worker: String::new(),
                    table: String::new(),
                    message,
                },
                other => panic!("{other}"),
            })?;
            let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
            let ids = column(1).iter().map(|&id| RowId(id as u64));
            rows.extend(column(0).iter().copied().zip(ids));
        }
        Ok(rows)
    }
}

/// Puts a row with a key in, or replaces or removes the one that has it; how many rows more there are.
async fn change_row(
    engine: &Engine,
    [table, values]: [ObjectId; 2],
    key: i64,
    value: i64,
    keeps: bool,
) -> Result<i64, EngineError> {
    let mut rows: RowClient = engine.rows(table)?;
    let found = rows.get(&[column(key)], &[VALUE]).await?;
    let mut changes = engine.row_changes()?;
    let more = if found.rows.num_rows() == 0 {
        changes.replace(table, &found, Some(row(key, value)))?;
        changes.exchange(values, &[column(0).slice(0, 0)], Some(only(value)))?;
        1
    } else {
        let before = found.rows.column(0).as_primitive::<Int64Type>().value(0);
        if keeps {
            // The value stays, so the other object has nothing to do with it.
            let put = rows.put_if_unchanged(&found, row(key, before)).await;
            return put.map(|_| 0);
        }
        if before == value {
            changes.replace(table, &found, None)?;
            changes.exchange(values, &[column(before)], None)?;
            -1
        } else {
            changes.replace(table, &found, Some(row(key, value)))?;
            changes.exchange(values, &[column(before)], Some(only(value)))?;
            0
        }
    };
    Ok(if changes.commit().await? { more } else { 0 })
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 80);
    let engine = simulated.engine.clone();
    let create = |columns: &[&str]| {
        let object =
            engine.create_with_key("t", schema(columns), Partitioning::Size, &[ColumnId(0)]);
        object.unwrap()
    };
    let objects = [create(&["key", "value"]), create(&["value"])];
    let history = Rc::new(RefCell::new(History::default()));
    let client = |random: &mut Random| Client {
        engine: engine.clone(),
        objects,
        history: history.clone(),
        random: Random::new(random.bits()),
    };
    for _ in 0..2 + random.below(4) {
        simulated.client(client(&mut random).statements());
    }
    simulated.run();
    let mut last = client(&mut random);
    simulated.client(async move {
        // A scan may still panic on purpose.
        if let Ok(rows) = last.read().await {
            let history = last.history.borrow();
            let apart = (rows - history.rows).abs();
            assert!(
                apart <= history.unknown,
                "{rows} rows, not {}, {} unknown",
                history.rows,
                history.unknown
            );
        }
    });
    simulated.run();
    for object in objects {
        simulated.drop_object(object);
    }
    drop(engine);
    simulated.end();
}

#[test]
fn a_table_and_its_keys_change_together_whatever_the_schedule() {
    for_seeds(400, simulate);
}
