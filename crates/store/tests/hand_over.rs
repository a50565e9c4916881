//! Rows go from owner to owner as they are, and back, while others come, are deleted and are collected: every snapshot
//! in use sees each row once, whoever has it.
#![allow(missing_docs)]

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_column::{ColumnValue, Dictionary, ObjectMemory, Selection};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_store::{ChunkPart, Encoder, Recoder, Segment};
use eris_types::{NodeId, ObjectId, RowId, SegmentId, StatementId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

const OWNERS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

struct Owners {
    node: NodeMemory,
    /// The first takes new rows, the others what is given to them: parts of the same segment.
    segments: Vec<Segment>,
    /// By the row's id: its number, when it came and when it went.
    rows: BTreeMap<RowId, (i64, Timestamp, Timestamp)>,
    random: Random,
    now: Timestamp,
    horizon: Timestamp,
    next: i64,
    given: usize,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]))
}

fn seen(segment: &Segment, at: Timestamp) -> Vec<(RowId, i64)> {
    let mut seen = Vec::new();
    for view in segment.view(at) {
        let mut rows = Selection::all(view.chunk.rows());
        view.visible(at, &mut rows);
        for row in rows.iter_ones() {
            let ColumnValue::Integer(id) = view.chunk.columns()[0].get(row, None) else {
                panic!("a number");
            };
            seen.push((view.chunk.ids().get(row), id));
        }
    }
    seen
}

const NO_TEXT: [Option<Dictionary>; 1] = [None];

impl Owners {
    fn recoder<'a>(&'a self, schema: &'a SchemaRef) -> Recoder<'a> {
        Recoder {
            schema,
            known: &NO_TEXT,
            coding: &NO_TEXT,
            home: ObjectMemory {
                memory: &self.node,
                object: ObjectId(1),
            },
            horizon: self.horizon,
        }
    }

    fn statement(&mut self) -> StatementId {
        StatementId(self.now.0 + 1_000 * self.random.below(1_000) as u64)
    }

    fn commit(&mut self, statement: StatementId) -> (u64, u64) {
        self.now.0 += 1;
        let budget = self.node.budget().clone();
        let (now, horizon) = (self.now, self.horizon);
        let segments = self.segments.iter_mut();
        let committed = segments.map(|one| one.commit(statement, now, horizon, &budget));
        committed.fold((0, 0), |all, one| {
            (all.0 + one.inserted, all.1 + one.deleted)
        })
    }

    fn insert(&mut self) {
        let rows = match self.random.below(5) {
            0 => 33_000 + self.random.below(8_000),
            _ => 1 + self.random.below(40),
        };
        let ids = Int64Array::from_iter_values(self.next..self.next + rows as i64);
        let batch = RecordBatch::try_new(schema(), vec![Arc::new(ids)]).unwrap();
        let mut encoder = Encoder::new(schema(), vec![batch]);
        let home = ObjectMemory {
            memory: &self.node,
            object: ObjectId(1),
        };
        encoder.step(&NO_TEXT, home).unwrap();
        let statement = self.statement();
        self.segments[0].insert_uncommitted(statement, encoder);
        let first = self.segments[0].number(statement)[0];
        assert_eq!(self.commit(statement), (rows as u64, 0));
        for row in 0..rows {
            let known = (self.next + row as i64, self.now, Timestamp::NEVER);
            self.rows.insert(first.plus(row), known);
        }
        self.next += rows as i64;
    }

    /// All owners are told of all rows, as by a statement.
    fn delete(&mut self) {
        let every = 1 + self.random.below(9);
        let living = self
            .rows
            .iter()
            .filter(|(_, row)| row.2 == Timestamp::NEVER);
        let ids: Vec<RowId> = living.map(|(id, _)| *id).step_by(every).collect();
        let from = self.random.below(ids.len());
        let ids = &ids[from..(from + 1 + self.random.below(500)).min(ids.len())];
        let statement = self.statement();
        let budget = self.node.budget().clone();
        let segments = self.segments.iter_mut();
        let found = segments.map(|one| one.delete_uncommitted(statement, ids, &budget).unwrap());
        assert_eq!(found.sum::<u64>(), ids.len() as u64, "each is one owner's");
        assert_eq!(self.commit(statement), (0, ids.len() as u64));
        for id in ids {
            self.rows.get_mut(id).unwrap().2 = self.now;
        }
    }

    /// Rows whose numbers lie between two; or it is given up.
    fn give(&mut self) {
        let (from, to) = (self.random.below(OWNERS), self.random.below(OWNERS));
        let (one, other) = (
            self.random.below(self.next as usize),
            self.random.below(self.next as usize),
        );
        let (low, high) = (one.min(other) as i64, one.max(other) as i64);
        if from == to {
            return;
        }
        let statement = self.statement();
        let budget = self.node.budget().clone();
        let mut parts = Vec::new();
        for (chunk, mut rows) in self.segments[from].living_chunks() {
            for row in rows.clone().iter_ones() {
                match chunk.columns()[0].get(row, None) {
                    ColumnValue::Integer(id) if (low..=high).contains(&id) => {}
                    _ => rows.remove(row),
                }
            }
            if !rows.is_empty() {
                parts.push(ChunkPart { chunk, rows });
            }
        }
        for part in &parts {
            self.segments[from]
                .give(statement, part.clone(), &budget)
                .unwrap();
            self.segments[to].receive(statement, part, &budget).unwrap();
        }
        if self.random.below(3) == 0 {
            // Levels that were noted become others.
            let schema = schema();
            let mut segment =
                std::mem::replace(&mut self.segments[from], Segment::new(SegmentId(2)));
            segment.merge(self.recoder(&schema)).unwrap();
            self.segments[from] = segment;
        }
        if self.random.below(4) == 0 {
            self.segments
                .iter_mut()
                .for_each(|one| one.abort(statement));
            return;
        }
        let rows: usize = parts.iter().map(|part| part.rows.count()).sum();
        assert_eq!(self.commit(statement), (rows as u64, rows as u64));
        self.given += parts.len();
    }

    fn collect(&mut self, owner: usize) {
        let schema = schema();
        let mut segment = std::mem::replace(&mut self.segments[owner], Segment::new(SegmentId(2)));
        let budget = self.node.budget().clone();
        segment.merge(self.recoder(&schema)).unwrap();
        while let Some(mut rewrite) = segment.collect(self.horizon) {
            while !rewrite.is_done() {
                rewrite.step(self.recoder(&schema)).unwrap();
            }
            segment.finish_rewrite(rewrite, &budget);
        }
        self.segments[owner] = segment;
    }

    fn check(&mut self) {
        let at = Timestamp(
            self.horizon.0
                + self
                    .random
                    .below((self.now.0 - self.horizon.0 + 1) as usize) as u64,
        );
        let mut all: Vec<(RowId, i64)> =
            self.segments.iter().flat_map(|one| seen(one, at)).collect();
        all.sort_unstable();
        let expected = self
            .rows
            .iter()
            .filter(|(_, (_, from, to))| *from <= at && at < *to);
        let expected: Vec<(RowId, i64)> = expected.map(|(id, row)| (*id, row.0)).collect();
        assert!(
            all == expected,
            "{} of {} rows at {at}",
            all.len(),
            expected.len()
        );
        for _ in 0..20 {
            let id = *self
                .rows
                .keys()
                .nth(self.random.below(self.rows.len()))
                .unwrap();
            let (_, from, to) = self.rows[&id];
            let found = self.segments.iter().filter(|one| one.sees(id, at)).count();
            assert_eq!(found, usize::from(from <= at && at < to), "{id:?}");
        }
        let living = self.segments.iter().map(Segment::statistics);
        let living: u64 = living.map(|one| one.rows - one.deleted).sum();
        let now = self
            .rows
            .values()
            .filter(|row| row.2 == Timestamp::NEVER)
            .count();
        assert_eq!(living, now as u64);
    }
}

fn simulate(seed: u64) -> usize {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(256 << 20)).unwrap();
    let others = (1..OWNERS).map(|_| Segment::of_others(SegmentId(1)));
    let mut owners = Owners {
        node: memory.node(NodeId(0)),
        segments: [Segment::new(SegmentId(1))]
            .into_iter()
            .chain(others)
            .collect(),
        rows: BTreeMap::new(),
        random: Random(seed),
        now: Timestamp(1),
        horizon: Timestamp::ZERO,
        next: 0,
        given: 0,
    };
    owners.insert();
    for _ in 0..60 {
        match owners.random.below(10) {
            0..2 => owners.insert(),
            2..4 => owners.delete(),
            4..7 => owners.give(),
            7 => {
                let lag = owners.random.below(4) as u64;
                owners.horizon = owners
                    .horizon
                    .max(Timestamp(owners.now.0.saturating_sub(lag)));
            }
            _ => {
                let owner = owners.random.below(OWNERS);
                owners.collect(owner);
            }
        }
        owners.check();
    }
    let given = owners.given;
    drop(owners);
    assert_eq!(memory.budget().used(), 0, "memory is left over");
    given
}

#[test]
fn every_snapshot_sees_rows_that_change_owners_once() {
    let mut given = 0;
    for seed in 0..12 {
        println!("seed {seed}");
        given += simulate(seed);
    }
    assert!(given > 40, "{given}");
}
