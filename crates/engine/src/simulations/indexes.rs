//! Secondary indexes and that of the key, in one thread under a seeded schedule. Whatever an index leads to at a
//! snapshot is what a scan finds there. Meanwhile rows come and go, by statements and by their keys, and the index is
//! made, dropped and built anew.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::indexes`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds, move_keys, turn};
use crate::{EngineError, HeldSnapshot, IndexKind, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::{Faults, Random};
use eris_fragment::*;
use eris_numa::Topology;
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use futures::StreamExt;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, false),
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

struct Client {
    engine: Engine,
    object: ObjectId,
    keyed: bool,
    /// Keys that were given out.
    next: Rc<RefCell<i64>>,
    /// Snapshots that are read again later.
    held: Vec<HeldSnapshot>,
    random: Random,
}

fn column(at: usize) -> Box<Expr> {
    Box::new(Expr::Column(at))
}

fn number(value: i64) -> Scalar {
    Scalar {
        data_type: Type::Int64,
        value: Value::Integer(value.into()),
    }
}

fn text(value: String) -> Scalar {
    Scalar {
        data_type: Type::String,
        value: Value::String(value),
    }
}

fn compare(at: usize, op: BinaryOp, with: Scalar) -> Expr {
    Expr::Binary {
        op,
        left: column(at),
        right: Box::new(Expr::Literal(with)),
    }
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..16 {
            match self.random.below(12) {
                0..3 => self.change().await,
                11 => self.move_rows().await,
                8..11 if self.keyed => self.change_by_key().await,
                3 => self.index().await,
                4 => {
                    let snapshot = self.engine.hold();
                    self.held.push(snapshot);
                }
                _ => self.compare().await,
            }
        }
    }

    /// Rows of new keys.
    fn rows(&mut self) -> RecordBatch {
        let many = if self.random.one_in(10) { 5_000 } else { 40 };
        let rows = 1 + self.random.below(many);
        let first = {
            let mut next = self.next.borrow_mut();
            *next += rows as i64;
            *next - rows as i64
        };
        self.batch((first..first + rows as i64).collect())
    }

    fn batch(&mut self, keys: Vec<i64>) -> RecordBatch {
        let salt = self.random.below(3) as i64;
        let numbers = keys
            .iter()
            .map(|key| (key % 7 != salt).then_some((key * 37 + salt) % 101));
        let numbers: Int64Array = numbers.collect();
        let texts = keys
            .iter()
            .map(|key| (key % 11 != salt).then(|| format!("t{:03}", (key * 53 + salt) % 307)));
        let texts: StringViewArray = texts.collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(keys)),
            Arc::new(numbers),
            Arc::new(texts),
        ];
        RecordBatch::try_new(schema(), columns).unwrap()
    }

    /// Adds rows, and deletes some; or gives up.
    async fn change(&mut self) {
        fine(self.try_change().await);
    }

    /// Puts or removes rows by their keys, a few or many: those of one partition in one go.
    async fn change_by_key(&mut self) {
        let next = *self.next.borrow() as usize;
        let count = match self.random.below(4) {
            0..2 => 1,
            2 => 1 + self.random.below(4),
            _ => 1 + self.random.below(40),
        };
        // Some of them are being inserted by others, or nobody's.
        let first = self.random.below(next + 1) as i64;
        let keys: Vec<i64> = (first..first + count as i64).collect();
        let wanted: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
        let rows = self.batch(keys.into_iter().filter(|key| *key < next as i64).collect());
        let mut client = self.engine.rows(self.object).unwrap();
        match self.random.below(6) {
            0..3 => fine(client.put(rows).await.map(drop)),
            3 => fine(client.insert(rows).await.map(drop)),
            _ => fine(client.remove(&[wanted]).await.map(drop)),
        }
    }

    /// Gives rows another owner.
    async fn move_rows(&mut self) {
        let aeus = self.engine.topology().aeus().len();
        if self.keyed {
            let keys = -1..*self.next.borrow() + 1;
            return move_keys(&self.engine, self.object, &mut self.random, keys).await;
        }
        let mut aeu = || AeuId(self.random.below(aeus) as u16);
        let (from, to) = (aeu(), aeu());
        let rows = 1 + self.random.below(3_000) as u64;
        let moved = self.engine.move_rows(self.object, from, to, rows).await;
        fine(moved.map(drop));
    }

    async fn try_change(&mut self) -> Result<(), EngineError> {
        let rows = self.rows();
        let mut writer = if self.random.one_in(2) {
            let mut writer = self.engine.changer(self.object).await?;
            let snapshot = self.engine.hold_applied();
            if let Some(all) = self.read(&snapshot, Vec::new(), None).await {
                let part = 2 + self.random.below(5);
                let deleted = all
                    .iter()
                    .filter(|row| (row.0 as usize).is_multiple_of(part));
                let deleted: Vec<RowId> = deleted.map(|row| RowId(row.3 as u64)).collect();
                writer.delete(deleted.into_iter())?;
            }
            writer
        } else {
            self.engine.writer(self.object)?
        };
        writer.append(rows).await?;
        match self.random.one_in(5) {
            true => Ok(()),
            false => writer.commit().await.map(|_| ()),
        }
    }

    /// Makes an index, or drops one.
    async fn index(&mut self) {
        let indexes = self.engine.indexes(self.object).unwrap();
        if indexes.len() >= 3 {
            let index = &indexes[self.random.below(indexes.len())];
            return self.engine.drop_index(self.object, index.id).unwrap();
        }
        let columns = match self.random.below(3) {
            0 => vec![ColumnId(1)],
            1 => vec![ColumnId(2)],
            _ => vec![ColumnId(2), ColumnId(1)],
        };
        let kind = match self.random.below(5) {
            0 => IndexKind::Hashed,
            1..3 => IndexKind::Ordered,
            _ => IndexKind::Shared,
        };
        let made = self
            .engine
            .create_index(self.object, &columns, kind, Arc::default())
            .await;
        // Another client may have dropped it before it was complete.
        let fine = matches!(
            made,
            Ok(_) | Err(EngineError::Panicked { .. } | EngineError::NoSuchObject(_))
        );
        assert!(fine, "{made:?}");
    }

    fn condition(&mut self) -> Vec<Expr> {
        let n = self.random.below(101) as i64;
        let t = self.random.below(307);
        let is_text = compare(2, BinaryOp::Eq, text(format!("t{t:03}")));
        match self.random.below(9) {
            0 => vec![compare(1, BinaryOp::Eq, number(n))],
            1 => vec![
                compare(1, BinaryOp::GtEq, number(n)),
                compare(1, BinaryOp::Lt, number(n + 2)),
            ],
            2 => vec![Expr::InList {
                operand: column(2),
                list: (0..4).map(|i| text(format!("t{:03}", t + i))).collect(),
                negated: false,
            }],
            3 => vec![is_text],
            4 => vec![Expr::Like {
                operand: column(2),
                pattern: format!("t{:02}%", t / 10),
                negated: false,
                case_insensitive: false,
            }],
            5 => vec![is_text, compare(1, BinaryOp::LtEq, number(n))],
            6 => vec![
                Expr::IsNull(column(1)),
                compare(0, BinaryOp::Lt, number(300)),
            ],
            7 => vec![compare(0, BinaryOp::Eq, number(t as i64))],
            _ => vec![
                compare(0, BinaryOp::GtEq, number(10 * n)),
                compare(0, BinaryOp::LtEq, number(10 * n + 8)),
            ],
        }
    }

    async fn compare(&mut self) {
        let snapshot = match self.held.len() {
            count if count > 0 && self.random.one_in(2) => {
                self.held[self.random.below(count)].clone()
            }
            _ => self.engine.hold(),
        };
        let conditions = self.condition();
        // What says the same in a way that no index understands.
        let opaque = conditions
            .iter()
            .map(|condition| Expr::Not(Box::new(Expr::Not(Box::new(condition.clone())))));
        let Some(expected) = self.read(&snapshot, opaque.collect(), None).await else {
            return;
        };
        let Some(found) = self.read(&snapshot, conditions.clone(), None).await else {
            return;
        };
        assert_eq!(found, expected, "{conditions:?}");
        // The first rows by a column.
        let (at, descending, nulls_first) = (
            self.random.below(3),
            self.random.one_in(2),
            self.random.one_in(2),
        );
        let order = Order {
            keys: vec![OrderKey {
                column: at,
                descending,
                nulls_first,
            }],
            rows: 1 + self.random.below(5) as u64,
        };
        let Some(mut all) = self.read(&snapshot, Vec::new(), None).await else {
            return;
        };
        let Some(mut first) = self.read(&snapshot, Vec::new(), Some(order.clone())).await else {
            return;
        };
        for rows in [&mut all, &mut first] {
            rows.sort_by_key(|row| {
                let (value, text) = match at {
                    0 => (Some(row.0), None),
                    1 => (row.1, None),
                    _ => (None, row.2.clone()),
                };
                let is_null = value.is_none() && text.is_none();
                let value = value.map(|value| if descending { -value } else { value });
                let text = text.map(|text| match descending {
                    true => text.bytes().map(|byte| 255 - byte).collect::<Vec<u8>>(),
                    false => text.into_bytes(),
                });
                (is_null != nulls_first, value, text)
            });
            rows.truncate(order.rows as usize);
        }
        let value = |row: &Row| match at {
            0 => (Some(row.0), None),
            1 => (row.1, None),
            _ => (None, row.2.clone()),
        };
        let (all, first): (Vec<_>, Vec<_>) = (
            all.iter().map(value).collect(),
            first.iter().map(value).collect(),
        );
        assert_eq!(first, all, "{order:?}");
    }

    /// Rows with their ids, ascending; `None` if somebody has panicked on purpose.
    async fn read(
        &mut self,
        snapshot: &HeldSnapshot,
        filter: Vec<Expr>,
        order: Option<Order>,
    ) -> Option<Vec<Row>> {
        let fragment = Fragment {
            object: self.object,
            snapshot: snapshot.at(),
            order,
            columns: vec![ColumnId(0), ColumnId(1), ColumnId(2), ColumnId::ROW_ID],
            filter,
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: (0..4).map(Expr::Column).collect(),
                limit: None,
            },
            options: ScanOptions::default(),
        };
        let streams = 1 + self.random.below(2);
        let execution = self.engine.execute(Arc::new(fragment), streams).unwrap();
        let mut batches = futures::stream::select_all(execution.streams);
        let mut rows = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = match batch {
                Ok(batch) => batch,
                Err(FragmentError::Panicked { .. }) => return None,
                Err(other) => panic!("{other}"),
            };
            let keys = batch.column(0).as_primitive::<Int64Type>();
            let numbers = batch.column(1).as_primitive::<Int64Type>();
            let texts = batch.column(2).as_string_view();
            let ids = batch.column(3).as_primitive::<Int64Type>();
            let all = keys.iter().zip(numbers).zip(texts).zip(ids);
            rows.extend(all.map(|(((key, number), text), id)| {
                (key.unwrap(), number, text.map(str::to_owned), id.unwrap())
            }));
        }
        rows.sort();
        Some(rows)
    }
}

/// A change may lose against a slice that panics, or rows against others with their keys.
fn fine(result: Result<(), EngineError>) {
    let fine = matches!(
        result,
        Ok(()) | Err(EngineError::Panicked { .. } | EngineError::DuplicateKey { .. })
    );
    assert!(fine, "{result:?}");
}

type Row = (i64, Option<i64>, Option<String>, i64);

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 80);
    let engine = simulated.engine.clone();
    let keyed = random.one_in(2);
    let key = [ColumnId(0)];
    let key = if keyed { &key[..] } else { &[] };
    let object = engine
        .create_with_key("t", schema(), Partitioning::Size, key)
        .unwrap();
    let next = Rc::new(RefCell::new(0));
    for _ in 0..1 + random.below(4) {
        let client = Client {
            engine: engine.clone(),
            object,
            keyed,
            next: next.clone(),
            held: Vec::new(),
            random: Random::new(random.bits()),
        };
        simulated.client(client.statements());
    }
    simulated.run();
    simulated.drop_object(object);
    drop(engine);
    simulated.end();
}

#[test]
fn indexes_find_what_scans_find_whatever_the_schedule() {
    for_seeds(200, simulate);
}

/// Rows that were given away and have come back are in two chunks of their owner. An index that is built then must have
/// each of them once: a second entry cuts off the rows of the same value between the two.
#[test]
fn rows_that_have_come_back_are_entered_once() {
    let mut simulated = Simulated::new(1, Topology::fake(1, 2), Faults::default());
    let engine = simulated.engine.clone();
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    let mut client = Client {
        engine: engine.clone(),
        object,
        keyed: true,
        next: Rc::default(),
        held: Vec::new(),
        random: Random::new(1),
    };
    // What was given away is not collected meanwhile.
    let held = Rc::new(RefCell::new(Vec::new()));
    let holding = held.clone();
    simulated.client(async move {
        let engine = client.engine.clone();
        let rows = client.batch((0..2_000).collect());
        let mut writer = engine.writer(object).unwrap();
        writer.append(rows).await.unwrap();
        writer.commit().await.unwrap();
        holding.borrow_mut().push(engine.hold());
        for to in [AeuId(1), AeuId(0), AeuId(1), AeuId(0)] {
            let moved = engine.move_keys(object, 100, 900, to).await.unwrap();
            assert!(moved.linked > 0 || moved.keys == 0, "{moved:?}");
            // Until their entries are in a tree of the new owner's.
            for _ in 0..5_000 {
                turn().await;
            }
        }
        for column in 0..3 {
            let columns = [ColumnId(column)];
            for kind in [IndexKind::Ordered, IndexKind::Shared] {
                let made = engine.create_index(object, &columns, kind, Arc::default());
                made.await.unwrap();
            }
        }
        for _ in 0..50 {
            client.compare().await;
        }
    });
    simulated.run();
    for owner in simulated.owners() {
        let partition = &owner.partitions[&object];
        let segments = partition.segments.iter();
        let chunks = segments.flat_map(|segment| segment.chunks_of_rows());
        let rows = chunks.flat_map(|chunk| {
            let rows = 0..chunk.rows();
            rows.map(|row| chunk.ids().get(row)).collect::<Vec<_>>()
        });
        let rows: HashSet<RowId> = rows.collect();
        for part in &partition.secondary[..2] {
            let size = part.usable().expect("nothing has come since").size();
            assert_eq!(size.entries, rows.len() as u64, "of different keys");
        }
    }
    held.borrow_mut().clear();
    simulated.drop_object(object);
    drop(engine);
    simulated.end();
}
