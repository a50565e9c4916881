//! The whole engine in one thread under a seeded schedule: AEUs that step, statements that are polled, panics, given-up
//! statements and dropped streams, and a history that must add up.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::fragments`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds};
use crate::{EngineError, HeldSnapshot, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_fragment::*;
use eris_types::{AeuId, ColumnId, ObjectId};
use futures::StreamExt;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What is known of a statement that writes: every row has the statement's number as its key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Readers see all of its rows or none.
    Open,
    /// Whoever starts now sees it.
    Committed,
    /// Nobody ever sees it.
    Lost,
}

#[derive(Debug)]
struct Written {
    rows: i64,
    fate: Fate,
}

/// Statements by number.
type History = Rc<RefCell<BTreeMap<i64, Written>>>;

struct Client {
    engine: Engine,
    object: ObjectId,
    history: History,
    random: Random,
    topology: usize,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("statement", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

fn rows(statement: i64, count: usize) -> RecordBatch {
    let numbers = Int64Array::from_value(statement, count);
    let texts = (0..count).map(|row| (row % 7 != 0).then(|| format!("text of row {}", row % 23)));
    let texts = StringViewArray::from_iter(texts);
    RecordBatch::try_new(schema(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..6 {
            match self.random.below(10) {
                0..4 => self.write().await,
                4 => self.read_a_little().await,
                5 => self.move_rows().await,
                _ => self.read().await,
            }
        }
    }

    async fn write(&mut self) {
        let number = self.history.borrow().len() as i64;
        let count = match self.random.below(24) {
            0 => 150_000,
            1..4 => 2_000,
            _ => 1 + self.random.below(40),
        };
        let written = Written {
            rows: count as i64,
            fate: Fate::Open,
        };
        self.history.borrow_mut().insert(number, written);
        let give_up = self.random.one_in(4);
        let fate = match self.try_write(number, count, give_up).await {
            Ok(()) if !give_up => Fate::Committed,
            Ok(()) | Err(EngineError::Panicked { .. }) => Fate::Lost,
            Err(other) => panic!("{other}"),
        };
        self.history.borrow_mut().get_mut(&number).unwrap().fate = fate;
    }

    async fn try_write(&self, number: i64, count: usize, give_up: bool) -> Result<(), EngineError> {
        let mut writer = self.engine.writer(self.object)?;
        writer.append(rows(number, count)).await?;
        if !give_up {
            assert_eq!(writer.commit().await?, count as u64);
        }
        Ok(())
    }

    /// Gives rows another owner.
    async fn move_rows(&mut self) {
        let mut aeu = || AeuId(self.random.below(self.topology) as u16);
        let (from, to) = (aeu(), aeu());
        let rows = 1 + self.random.below(100_000) as u64;
        match self.engine.move_rows(self.object, from, to, rows).await {
            Ok(_) | Err(EngineError::Panicked { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn fragment(&mut self, snapshot: &HeldSnapshot, output: Output) -> Arc<Fragment> {
        let strategies = [NumaStrategy::Auto, NumaStrategy::Push, NumaStrategy::Pull];
        Arc::new(Fragment {
            object: self.object,
            snapshot: snapshot.at(),
            order: None,
            columns: vec![ColumnId(0), ColumnId(1)],
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output,
            options: ScanOptions {
                strategy: strategies[self.random.below(3)],
                sharing: !self.random.one_in(4),
                statement: self.random.below(3) as u64,
            },
        })
    }

    /// Counts every statement's rows and compares with what was known before and is known after.
    async fn read(&mut self) {
        let known: BTreeMap<i64, Fate> = {
            let history = self.history.borrow();
            history
                .iter()
                .map(|(number, written)| (*number, written.fate))
                .collect()
        };
        let count = Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        };
        let snapshot = self.engine.hold();
        let fragment = self.fragment(
            &snapshot,
            Output::Groups {
                keys: vec![Expr::Column(0)],
                aggregates: vec![count],
            },
        );
        let streams = 1 + self.random.below(self.topology);
        let execution = self.engine.execute(fragment, streams).unwrap();
        let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
        let mut batches = futures::stream::select_all(execution.streams);
        while let Some(batch) = batches.next().await {
            let batch = match batch {
                Ok(batch) => batch,
                Err(FragmentError::Panicked { .. }) => return,
                Err(other) => panic!("{other}"),
            };
            let keys = batch.column(0).as_primitive::<Int64Type>().values();
            let counts = batch.column(1).as_primitive::<Int64Type>().values();
            for (key, count) in keys.iter().zip(counts) {
                *seen.entry(*key).or_default() += count;
            }
        }
        let history = self.history.borrow();
        for (number, count) in &seen {
            assert_eq!(
                *count, history[number].rows,
                "part of statement {number} is visible"
            );
            assert_ne!(
                known.get(number),
                Some(&Fate::Lost),
                "statement {number} was lost"
            );
        }
        for (number, fate) in known {
            let visible = seen.contains_key(&number);
            assert!(
                fate != Fate::Committed || visible,
                "statement {number} is missing"
            );
        }
    }

    /// Takes a batch at most and goes away.
    async fn read_a_little(&mut self) {
        let columns = vec![Expr::Column(1), Expr::Column(0)];
        let snapshot = self.engine.hold();
        let fragment = self.fragment(
            &snapshot,
            Output::Rows {
                columns,
                limit: None,
            },
        );
        let mut execution = self.engine.execute(fragment, 2).unwrap();
        if self.random.one_in(2) {
            let _ = execution.streams[0].next().await;
        }
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 60);
    let engine = &simulated.engine;
    let partitioning = match random.below(3) {
        0 => Partitioning::Range(ColumnId(0)),
        _ => Partitioning::Size,
    };
    let object = engine.create("t", schema(), partitioning).unwrap();
    let history = History::default();
    for _ in 0..1 + random.below(4) {
        let client = Client {
            engine: simulated.engine.clone(),
            object,
            history: history.clone(),
            random: Random::new(random.bits()),
            topology: simulated.engine.topology().aeus().len(),
        };
        simulated.client(client.statements());
    }
    simulated.run();
    simulated.drop_object(object);
    simulated.check_memory();
}

#[test]
fn histories_add_up_whatever_the_schedule() {
    for_seeds(200, simulate);
}
