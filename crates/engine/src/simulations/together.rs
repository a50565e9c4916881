//! Statements that write to two data objects, one with a key and one without, in one thread under a seeded schedule:
//! every snapshot shows the same rows in both, and no key twice.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::together`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds, move_keys};
use crate::{EngineError, HeldSnapshot, Partitioning, Writer};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId, RowId};
use futures::StreamExt;
use std::sync::Arc;

const KEYS: usize = 40;

struct Client {
    engine: Engine,
    /// Without a key, and with one.
    objects: [ObjectId; 2],
    random: Random,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("key", DataType::Int64, false)]))
}

fn batch(keys: &[i64]) -> RecordBatch {
    let keys = Arc::new(Int64Array::from(keys.to_vec()));
    RecordBatch::try_new(schema(), vec![keys]).unwrap()
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..12 {
            let done = match self.random.below(5) {
                4 => {
                    let keyed = self.objects[1];
                    move_keys(
                        &self.engine,
                        keyed,
                        &mut self.random,
                        -1..KEYS as i64 + 9_000,
                    )
                    .await;
                    Ok(())
                }
                0 | 1 => self.add().await,
                2 => self.remove().await,
                _ => self.read().await,
            };
            match done {
                Ok(())
                | Err(EngineError::DuplicateKey { .. })
                | Err(EngineError::Panicked { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn keys(&mut self) -> Vec<i64> {
        if self.random.one_in(15) {
            let first = KEYS as i64 + self.random.below(9_000) as i64;
            return (first..first + 9_000).collect();
        }
        let keys = (0..1 + self.random.below(3)).map(|_| self.random.below(KEYS) as i64);
        keys.collect()
    }

    async fn add(&mut self) -> Result<(), EngineError> {
        let keys = self.keys();
        let [plain, keyed] = self.objects;
        let mut writers = vec![self.engine.writer(keyed)?, self.engine.writer(plain)?];
        for writer in &mut writers {
            writer.append(batch(&keys)).await?;
        }
        self.finish(writers).await
    }

    /// Ends the rows with every other key, in both.
    async fn remove(&mut self) -> Result<(), EngineError> {
        let mut writers = Vec::new();
        for object in self.objects {
            writers.push(self.engine.changer(object).await?);
        }
        let snapshot = self.engine.hold_applied();
        let parity = self.random.below(2) as i64;
        for (writer, object) in writers.iter_mut().zip(self.objects) {
            let rows = self.rows(object, &snapshot).await?;
            let deleted: Vec<RowId> = (rows.iter())
                .filter(|(key, _)| key % 2 == parity)
                .map(|(_, id)| *id)
                .collect();
            writer.delete(deleted.into_iter())?;
        }
        self.finish(writers).await
    }

    async fn finish(&mut self, writers: Vec<Writer>) -> Result<(), EngineError> {
        match self.random.one_in(5) {
            true => Ok(()),
            false => Writer::commit_all(writers).await,
        }
    }

    async fn read(&mut self) -> Result<(), EngineError> {
        let snapshot = self.engine.hold();
        let mut seen = Vec::new();
        for object in self.objects {
            let rows = self.rows(object, &snapshot).await?;
            let mut keys: Vec<i64> = rows.into_iter().map(|(key, _)| key).collect();
            keys.sort_unstable();
            seen.push(keys);
        }
        assert_eq!(seen[0], seen[1], "one object is ahead of the other");
        let twice = seen[1].windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "a key is visible twice");
        Ok(())
    }

    async fn rows(
        &mut self,
        object: ObjectId,
        snapshot: &HeldSnapshot,
    ) -> Result<Vec<(i64, RowId)>, EngineError> {
        let fragment = Fragment {
            object,
            snapshot: snapshot.at(),
            order: None,
            columns: vec![ColumnId(0), ColumnId::ROW_ID],
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
            let batch = match batch {
                Ok(batch) => batch,
                Err(FragmentError::Panicked { message, .. }) => {
                    return Err(EngineError::Panicked {
                        worker: String::new(),
                        table: String::new(),
                        message,
                    });
                }
                Err(other) => panic!("{other}"),
            };
            let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
            let ids = column(1).iter().map(|&id| RowId(id as u64));
            rows.extend(column(0).iter().copied().zip(ids));
        }
        Ok(rows)
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 80);
    let engine = simulated.engine.clone();
    let create = |key: &[ColumnId]| {
        let object = engine.create_with_key("t", schema(), Partitioning::Size, key);
        object.unwrap()
    };
    let objects = [create(&[]), create(&[ColumnId(0)])];
    for _ in 0..2 + random.below(3) {
        let client = Client {
            engine: engine.clone(),
            objects,
            random: Random::new(random.bits()),
        };
        simulated.client(client.statements());
    }
    simulated.run();
    let mut last = Client {
        engine: engine.clone(),
        objects,
        random,
    };
    simulated.client(async move {
        // A scan may still panic on purpose.
        let _ = last.read().await;
    });
    simulated.run();
    for object in objects {
        simulated.drop_object(object);
    }
    drop(engine);
    simulated.end();
}

#[test]
fn two_objects_change_together_whatever_the_schedule() {
    for_seeds(60, simulate);
}
