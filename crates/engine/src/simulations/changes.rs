//! Statements that change rows, in one thread under a seeded schedule, against what must hold of any history of them.
//!
//! Rows come in groups. A statement adds a group, adds one to the value of every row of a group, or deletes a group,
//! and may be given up or panic on the way. At every snapshot, a group has all rows or none, and all have one value.
//! The value is between the increments committed before and those begun before. A reader that holds its snapshot reads
//! the same twice, whatever is collected in between.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::changes`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds};
use crate::{EngineError, HeldSnapshot, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_column::KeyOrder;
use eris_fragment::*;
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use futures::StreamExt;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of a group.
#[derive(Clone, Copy, Debug)]
struct Group {
    rows: usize,
    /// It was added for certain.
    added: bool,
    /// Increments that have committed, and those that have begun.
    committed: i64,
    begun: i64,
    /// Somebody has begun to delete it, and is done.
    deleting: bool,
    deleted: bool,
}

/// Bytes that were moved, in all simulations of a test.
static LINKED: AtomicU64 = AtomicU64::new(0);
static COPIED: AtomicU64 = AtomicU64::new(0);

type History = Rc<RefCell<BTreeMap<i64, Group>>>;

/// Rows and the value of the groups that a snapshot shows.
type Seen = BTreeMap<i64, (usize, i64)>;

struct Client {
    engine: Engine,
    object: ObjectId,
    history: History,
    random: Random,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("group", DataType::Int64, false),
        Field::new("value", DataType::Int64, false),
    ]))
}

fn rows(group: i64, values: Int64Array) -> RecordBatch {
    let groups = Int64Array::from_value(group, values.len());
    RecordBatch::try_new(schema(), vec![Arc::new(groups), Arc::new(values)]).unwrap()
}

/// Whether a statement took effect; a panic on purpose has stopped it otherwise.
fn succeeded<T>(result: Result<T, EngineError>) -> Option<T> {
    match result {
        Ok(result) => Some(result),
        Err(EngineError::Panicked { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..8 {
            match self.random.below(12) {
                0..2 => self.add().await,
                11 => self.move_rows().await,
                2..6 => self.increment().await,
                6 => self.delete().await,
                7 => self.recode().await,
                _ => self.read().await,
            }
        }
    }

    async fn add(&mut self) {
        let number = self.history.borrow().len() as i64;
        let rows_of = match self.random.below(12) {
            0 => 70_000,
            1..4 => 3_000,
            _ => 1 + self.random.below(30),
        };
        let group = Group {
            rows: rows_of,
            added: false,
            committed: 0,
            begun: 0,
            deleting: false,
            deleted: false,
        };
        self.history.borrow_mut().insert(number, group);
        let written = async {
            let mut writer = self.engine.writer(self.object)?;
            let batch = rows(number, Int64Array::from_value(0, rows_of));
            writer.append(batch).await?;
            writer.commit().await.map(|_| ())
        };
        let added = succeeded(written.await).is_some();
        self.history.borrow_mut().get_mut(&number).unwrap().added = added;
    }

    fn any_group(&mut self) -> Option<i64> {
        let groups = self.history.borrow().len();
        (groups > 0).then(|| self.random.below(groups) as i64)
    }

    /// Adds one to every row of a group.
    async fn increment(&mut self) {
        let Some(group) = self.any_group() else {
            return;
        };
        let give_up = self.random.one_in(4);
        self.history.borrow_mut().get_mut(&group).unwrap().begun += 1;
        let changed = succeeded(self.try_change(group, true, give_up).await);
        let mut history = self.history.borrow_mut();
        let known = history.get_mut(&group).unwrap();
        match changed {
            // It was still being added, or deleted already.
            Some(0) | None => known.begun -= 1,
            Some(_) if give_up => known.begun -= 1,
            Some(_) => known.committed += 1,
        }
    }

    async fn delete(&mut self) {
        let Some(group) = self.any_group() else {
            return;
        };
        (self.history.borrow_mut().get_mut(&group).unwrap()).deleting = true;
        let changed = succeeded(self.try_change(group, false, false).await);
        let deleted = changed.is_some_and(|rows| rows > 0);
        let mut history = self.history.borrow_mut();
        history.get_mut(&group).unwrap().deleted |= deleted;
    }

    /// Gives rows another owner: chunks as they are, or copies.
    async fn move_rows(&mut self) {
        let aeus = self.engine.topology().aeus().len();
        let mut aeu = || AeuId(self.random.below(aeus) as u16);
        let (from, to) = (aeu(), aeu());
        let rows = 1 + self.random.below(100_000) as u64;
        let moved = self.engine.move_rows(self.object, from, to, rows).await;
        if let Some(moved) = succeeded(moved) {
            LINKED.fetch_add(moved.linked, Ordering::Relaxed);
            COPIED.fetch_add(moved.copied, Ordering::Relaxed);
        }
    }

    /// Stores the groups' numbers by some order, which may not have all of them.
    async fn recode(&mut self) {
        let most = self.history.borrow().len() + 1;
        let mut keys: Vec<i64> = (0..most as i64).collect();
        for place in (1..most).rev() {
            keys.swap(place, self.random.below(place + 1));
        }
        let late = keys.split_off(1 + self.random.below(2 * most).min(most - 1));
        let order = KeyOrder::new(keys).expect("each number once");
        let order = match self.random.below(3) {
            // First by the order without late keys, which some chunks need.
            0 => {
                let longer = order.extended(&late).expect("none was in it");
                let recoded = self
                    .engine
                    .recode(self.object, ColumnId(0), Arc::new(order));
                succeeded(recoded.await);
                longer
            }
            _ => order,
        };
        let order = Arc::new(order);
        let recoded = self.engine.recode(self.object, ColumnId(0), order).await;
        succeeded(recoded);
    }

    async fn try_change(
        &mut self,
        group: i64,
        increment: bool,
        give_up: bool,
    ) -> Result<usize, EngineError> {
        let mut writer = self.engine.changer(self.object).await?;
        let snapshot = self.engine.hold_applied();
        let condition = Expr::Binary {
            op: BinaryOp::Eq,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Literal(Scalar {
                data_type: Type::Int64,
                value: Value::Integer(group.into()),
            })),
        };
        let output = vec![Expr::Column(2), Expr::Column(1)];
        let Some(batches) = self.collect(&snapshot, vec![condition], output).await else {
            return Err(panicked());
        };
        let mut changed = 0;
        for batch in batches {
            changed += batch.num_rows();
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            writer.delete(ids.iter().map(|&id| RowId(id as u64)))?;
            if increment {
                let values = batch.column(1).as_primitive::<Int64Type>();
                writer
                    .append(rows(group, values.unary(|value| value + 1)))
                    .await?;
            }
        }
        if !give_up {
            writer.commit().await?;
        }
        Ok(changed)
    }

    /// The rows that pass; `None` if somebody has panicked on purpose.
    async fn collect(
        &mut self,
        snapshot: &HeldSnapshot,
        filter: Vec<Expr>,
        columns: Vec<Expr>,
    ) -> Option<Vec<RecordBatch>> {
        let fragment = Fragment {
            object: self.object,
            snapshot: snapshot.at(),
            order: None,
            columns: vec![ColumnId(0), ColumnId(1), ColumnId::ROW_ID],
            filter,
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns,
                limit: None,
            },
            options: ScanOptions::default(),
        };
        let streams = 1 + self.random.below(2);
        let execution = self.engine.execute(Arc::new(fragment), streams).unwrap();
        let mut batches = futures::stream::select_all(execution.streams);
        let mut all = Vec::new();
        while let Some(batch) = batches.next().await {
            match batch {
                Ok(batch) => all.push(batch),
                Err(FragmentError::Panicked { .. }) => return None,
                Err(other) => panic!("{other}"),
            }
        }
        Some(all)
    }

    async fn read(&mut self) {
        let known = self.history.borrow().clone();
        let snapshot = self.engine.hold();
        let Some(seen) = self.groups(&snapshot).await else {
            return;
        };
        let history = self.history.borrow().clone();
        for (group, (rows, value)) in &seen {
            let now = &history[group];
            assert_eq!(*rows, now.rows, "a part of group {group} is visible");
            // Those that were given up while this was reading count no more.
            let begun = now
                .begun
                .max(known.get(group).map_or(0, |known| known.begun));
            assert!(*value <= begun, "group {group} has {value} of {begun}");
        }
        for (group, known) in &known {
            match seen.get(group) {
                Some((_, value)) => {
                    assert!(!known.deleted, "group {group} was deleted");
                    assert!(
                        *value >= known.committed,
                        "group {group} has lost something"
                    );
                }
                None => assert!(
                    !known.added || history[group].deleting,
                    "group {group} is missing"
                ),
            }
        }
        if self.random.one_in(2) {
            self.increment().await;
            if let Some(again) = self.groups(&snapshot).await {
                assert_eq!(seen, again, "a snapshot has changed");
            }
        }
    }

    async fn groups(&mut self, snapshot: &HeldSnapshot) -> Option<Seen> {
        let output = vec![Expr::Column(0), Expr::Column(1)];
        let mut seen = Seen::new();
        for batch in self.collect(snapshot, Vec::new(), output).await? {
            let groups = batch.column(0).as_primitive::<Int64Type>().values();
            let values = batch.column(1).as_primitive::<Int64Type>().values();
            for (group, value) in groups.iter().zip(values) {
                let (rows, all) = seen.entry(*group).or_insert((0, *value));
                assert_eq!(all, value, "rows of group {group} differ");
                *rows += 1;
            }
        }
        Some(seen)
    }
}

fn panicked() -> EngineError {
    EngineError::Panicked {
        worker: String::new(),
        table: String::new(),
        message: String::new(),
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 60);
    let engine = simulated.engine.clone();
    let partitioning = match random.below(3) {
        0 => Partitioning::Range(ColumnId(0)),
        _ => Partitioning::Size,
    };
    let object = engine.create("t", schema(), partitioning).unwrap();
    let history = History::default();
    for _ in 0..1 + random.below(4) {
        let client = Client {
            engine: engine.clone(),
            object,
            history: history.clone(),
            random: Random::new(random.bits()),
        };
        simulated.client(client.statements());
    }
    simulated.run();
    let statistics = engine.statistics(object).unwrap();
    let living = history
        .borrow()
        .values()
        .fold((0, 0), |(least, most), group| {
            let (added, gone) = (group.added, group.deleting);
            let least = least + if added && !gone { group.rows } else { 0 };
            let most = most
                + if added && !group.deleted {
                    group.rows
                } else {
                    0
                };
            (least, most)
        });
    let rows = statistics.rows as usize;
    assert!(
        living.0 <= rows && rows <= living.1,
        "{rows} rows, not {living:?}"
    );
    simulated.drop_object(object);
    drop(engine);
    simulated.end();
}

#[test]
fn changes_add_up_whatever_the_schedule() {
    for_seeds(150, simulate);
    let moved = [&LINKED, &COPIED].map(|bytes| bytes.load(Ordering::Relaxed));
    assert!(moved.iter().all(|bytes| *bytes > 0), "{moved:?}");
}
