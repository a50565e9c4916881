//! Statements that take in rows where they are found, in one thread under a seeded schedule: with panics, statements
//! that are given up, sources that change owners, and a history that must add up.
//!
//! A statement reads a table and adds what it finds to the same table or to another one, each row with the statement's
//! number. It knows how many these are by a query at the same snapshot.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::appends`.

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
use futures::{FutureExt, StreamExt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Open,
    Committed,
    Lost,
}

/// By statement: its target, the rows it has added, and what became of it.
type History = Rc<RefCell<BTreeMap<i64, (ObjectId, i64, Fate)>>>;

struct Client {
    engine: Engine,
    objects: [ObjectId; 2],
    history: History,
    random: Random,
    has_index: Rc<Cell<bool>>,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("statement", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

/// Rows of no statement: number 0.
fn rows(count: usize) -> RecordBatch {
    let numbers = Int64Array::from_value(0, count);
    let texts = (0..count).map(|row| (row % 7 != 0).then(|| format!("text of row {}", row % 23)));
    let texts = StringViewArray::from_iter(texts);
    RecordBatch::try_new(schema(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..5 {
            match self.random.below(8) {
                0..4 => self.append().await,
                4 => self.move_rows().await,
                _ => self.read().await,
            }
        }
    }

    /// A fragment over the rows with these texts.
    fn fragment(&mut self, of: ObjectId, snapshot: &HeldSnapshot, few: bool) -> Fragment {
        let strategies = [NumaStrategy::Auto, NumaStrategy::Push, NumaStrategy::Pull];
        let text = Expr::Literal(Scalar {
            data_type: Type::String,
            value: Value::String("text of row 5".to_owned()),
        });
        let is_one = Expr::Binary {
            op: BinaryOp::Eq,
            left: Box::new(Expr::Column(1)),
            right: Box::new(text),
        };
        Fragment {
            object: of,
            snapshot: snapshot.at(),
            order: None,
            columns: vec![ColumnId(0), ColumnId(1)],
            filter: if few { vec![is_one] } else { Vec::new() },
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: Vec::new(),
                limit: None,
            },
            options: ScanOptions {
                strategy: strategies[self.random.below(3)],
                sharing: !self.random.one_in(4),
                statement: self.random.below(3) as u64,
            },
        }
    }

    async fn append(&mut self) {
        let number = 1 + self.history.borrow().len() as i64;
        let (from, to) = (
            self.objects[self.random.below(2)],
            self.objects[self.random.below(2)],
        );
        self.history
            .borrow_mut()
            .insert(number, (to, 0, Fate::Open));
        let fate = match self.try_append(number, from, to).await {
            Ok(fate) => fate,
            Err(
                EngineError::Panicked { .. }
                | EngineError::Fragment(FragmentError::Panicked { .. }),
            ) => Fate::Lost,
            Err(other) => panic!("{other}"),
        };
        self.history.borrow_mut().get_mut(&number).unwrap().2 = fate;
    }

    async fn try_append(
        &mut self,
        number: i64,
        from: ObjectId,
        to: ObjectId,
    ) -> Result<Fate, EngineError> {
        let snapshot = self.engine.hold();
        let few = self.random.one_in(3);
        let fragment = self.fragment(from, &snapshot, few);
        let expected: i64 = self.counts(&fragment).await?.values().sum();
        self.history.borrow_mut().get_mut(&number).unwrap().1 = expected;
        let tag = Scalar {
            data_type: Type::Int64,
            value: Value::Integer(number.into()),
        };
        let fragment = Fragment {
            output: Output::Rows {
                columns: vec![Expr::Literal(tag), Expr::Column(1)],
                limit: None,
            },
            ..fragment
        };
        let mut writer = self.engine.writer(to)?;
        let mut done = match writer.append_rows_from(&fragment, 0)? {
            Some(appending) => appending.done,
            // An index leads to the rows: they are few.
            None => {
                assert!(few && self.has_index.get());
                return Ok(Fate::Lost);
            }
        };
        if self.random.one_in(4) {
            // Polled a few times, and given up.
            for _ in 0..self.random.below(200) {
                if (&mut done).now_or_never().is_some() {
                    break;
                }
                pause().await;
            }
            return Ok(Fate::Lost);
        }
        assert_eq!(done.await?, expected as u64);
        if self.random.one_in(6) {
            return Ok(Fate::Lost);
        }
        assert_eq!(writer.commit().await?, expected as u64);
        Ok(Fate::Committed)
    }

    /// Gives rows another owner.
    async fn move_rows(&mut self) {
        let aeus = self.engine.topology().aeus().len();
        let mut aeu = || AeuId(self.random.below(aeus) as u16);
        let (from, to) = (aeu(), aeu());
        let object = self.objects[self.random.below(2)];
        let rows = 1 + self.random.below(100_000) as u64;
        match self.engine.move_rows(object, from, to, rows).await {
            Ok(_) | Err(EngineError::Panicked { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// The rows of each statement that a fragment finds.
    async fn counts(&mut self, fragment: &Fragment) -> Result<BTreeMap<i64, i64>, FragmentError> {
        let count = Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        };
        let fragment = Fragment {
            output: Output::Groups {
                keys: vec![Expr::Column(0)],
                aggregates: vec![count],
            },
            ..fragment.clone()
        };
        let execution = self.engine.execute(Arc::new(fragment), 2)?;
        let mut counts = BTreeMap::new();
        let mut batches = futures::stream::select_all(execution.streams);
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let keys = batch.column(0).as_primitive::<Int64Type>().values();
            let found = batch.column(1).as_primitive::<Int64Type>().values();
            for (key, count) in keys.iter().zip(found) {
                *counts.entry(*key).or_default() += count;
            }
        }
        Ok(counts)
    }

    /// Each statement's rows are all there, or none of them is.
    async fn read(&mut self) {
        let known = self.history.borrow().clone();
        let snapshot = self.engine.hold();
        let object = self.objects[self.random.below(2)];
        let fragment = self.fragment(object, &snapshot, false);
        let counts = match self.counts(&fragment).await {
            Ok(counts) => counts,
            Err(FragmentError::Panicked { .. }) => return,
            Err(other) => panic!("{other}"),
        };
        let history = self.history.borrow();
        for (number, count) in counts.iter().filter(|(number, _)| **number > 0) {
            let (target, rows, _) = history[number];
            assert_eq!((target, rows), (object, *count), "statement {number}");
            let was = known.get(number).map(|(.., fate)| *fate);
            assert_ne!(was, Some(Fate::Lost), "statement {number} was lost");
        }
        for (number, (target, rows, fate)) in known {
            let is_due = fate == Fate::Committed && target == object && rows > 0;
            assert!(
                !is_due || counts.contains_key(&number),
                "statement {number} is missing"
            );
        }
    }
}

/// Lets others take their turns.
async fn pause() {
    let mut is_first = true;
    std::future::poll_fn(|_| match std::mem::take(&mut is_first) {
        true => std::task::Poll::Pending,
        false => std::task::Poll::Ready(()),
    })
    .await;
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 80);
    let engine = &simulated.engine;
    let objects = ["s", "t"].map(|name| engine.create(name, schema(), Partitioning::Size).unwrap());
    let has_index = Rc::new(Cell::new(false));
    if random.one_in(3) {
        let index = engine.clone();
        let has_index = has_index.clone();
        simulated.client(async move {
            let made = index.create_index(
                objects[1],
                &[ColumnId(1)],
                crate::IndexKind::Ordered,
                Arc::default(),
            );
            match made.await {
                Ok(_) => has_index.set(true),
                Err(EngineError::Panicked { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        });
    }
    for _ in 0..1 + random.below(3) {
        let engine = simulated.engine.clone();
        let count = match random.below(4) {
            0 => 200_000,
            _ => 1 + random.below(2_000),
        };
        simulated.client(async move {
            loop {
                let mut writer = engine.writer(objects[0]).unwrap();
                let written = match writer.append(rows(count)).await {
                    Ok(()) => writer.commit().await.map(|_| ()),
                    Err(error) => Err(error),
                };
                match written {
                    Ok(()) => break,
                    Err(EngineError::Panicked { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    simulated.run();
    let history = History::default();
    for _ in 0..1 + random.below(3) {
        let client = Client {
            engine: simulated.engine.clone(),
            objects,
            history: history.clone(),
            random: Random::new(random.bits()),
            has_index: has_index.clone(),
        };
        simulated.client(client.statements());
    }
    simulated.run();
    let mut last = Client {
        engine: simulated.engine.clone(),
        objects,
        history,
        random: Random::new(random.bits()),
        has_index,
    };
    simulated.client(async move {
        for _ in 0..4 {
            last.read().await;
        }
    });
    simulated.run();
    objects
        .into_iter()
        .for_each(|object| simulated.drop_object(object));
    simulated.end();
}

#[test]
fn histories_of_appends_add_up_whatever_the_schedule() {
    for_seeds(100, simulate);
}
