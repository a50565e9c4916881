//! A segment against a list of rows with their versions: random statements, commits, aborts, deletes, snapshots that
//! are in use for a while, and collections of garbage.
#![allow(missing_docs)]

use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use eris_column::{
    CHUNK_ROWS, ColumnChunk, ColumnValue, Dictionary, FormReader, ObjectMemory, Selection,
    StoredColumns,
};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_store::{
    Committed, Encoder, ReadColumns, Recoder, RestoredRows, Segment, SnapshotChunks, StoredIn,
};
use eris_types::{NodeId, ObjectId, RowId, SegmentId, StatementId, Timestamp};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    /// Stage so many rows and commit or abort.
    Write { rows: usize, commit: bool },
    /// Delete every n-th living row of a range, given in thousandths of all rows, and insert some; or abort.
    Change {
        from: usize,
        to: usize,
        every: usize,
        rows: usize,
        commit: bool,
    },
    /// Snapshots older than so many commits are in use no more.
    Horizon { ago: u64 },
    /// Collect garbage; delete a few rows while chunks are being rewritten.
    Collect,
    /// Encode the append buffer.
    Settle,
    /// Compare what a snapshot so many commits ago sees.
    Read { ago: u64 },
    /// Store what a snapshot so many commits ago sees, and recover it and the commits since.
    Recover { ago: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let rows = prop_oneof![
        8 => 1usize..50,
        4 => 50usize..5_000,
        2 => 30_000usize..=CHUNK_ROWS,
        1 => CHUNK_ROWS..4 * CHUNK_ROWS,
    ];
    prop_oneof![
        6 => (rows, prop::bool::weighted(0.8)).prop_map(|(rows, commit)| Step::Write { rows, commit }),
        4 => (0usize..900, 1usize..1_000, 1usize..9, 0usize..100, prop::bool::weighted(0.8)).prop_map(
            |(from, to, every, rows, commit)| Step::Change { from, to, every, rows, commit }
        ),
        2 => (0u64..4).prop_map(|ago| Step::Horizon { ago }),
        2 => Just(Step::Collect),
        1 => Just(Step::Settle),
        3 => (0u64..5).prop_map(|ago| Step::Read { ago }),
        3 => (0u64..5).prop_map(|ago| Step::Recover { ago }),
    ]
}

fn batch(first: i64, rows: usize) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]);
    let ids = Int64Array::from_iter_values(first..first + rows as i64);
    let texts = (0..rows).map(|row| (row % 3 != 0).then(|| format!("v{}", row % 5)));
    let texts = StringViewArray::from_iter(texts);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids), Arc::new(texts)]).unwrap()
}

/// The same rows as they come from a writer: in up to three pieces, text looked up before or not.
fn uncommitted(first: i64, rows: usize) -> Encoder {
    let whole = batch(first, rows);
    let cuts = [0, rows / 3, rows - rows / 4, rows];
    let pieces = cuts.windows(2).filter(|cut| cut[0] < cut[1]);
    let pieces = pieces.map(|cut| whole.slice(cut[0], cut[1] - cut[0]));
    Encoder::new(whole.schema(), pieces.collect())
}

struct Row {
    id: i64,
    row: RowId,
    inserted: Timestamp,
    deleted: Timestamp,
}

fn id(column: &ColumnChunk, row: usize) -> i64 {
    match column.get(row, None) {
        ColumnValue::Integer(id) => id,
        other => panic!("{other:?}"),
    }
}

/// The ids that a snapshot sees, with those of the rows that have them.
fn read(segment: &Segment, at: Timestamp) -> Vec<(i64, RowId)> {
    let mut ids = Vec::new();
    for view in segment.view(at) {
        let mut selection = Selection::all(view.chunk.rows());
        if !view.all_visible(at) {
            view.visible(at, &mut selection);
        }
        let column = &view.chunk.columns()[0];
        let rows = selection.iter_ones();
        ids.extend(rows.map(|row| (id(column, row), view.chunk.ids().get(row))));
    }
    ids.sort_unstable();
    ids
}

struct Bench {
    memory: Memory,
    node: NodeMemory,
    segment: Segment,
    /// The same from what a log has of its commits.
    replica: Segment,
    model: Vec<Row>,
    now: Timestamp,
    horizon: Timestamp,
    next_id: i64,
    next_statement: u64,
    texts: [Option<Dictionary>; 2],
    /// What a log and chunk files have.
    log: Vec<Logged>,
    files: Vec<Vec<u8>>,
    is_recovered: bool,
}

/// A commit as a log has it.
struct Logged {
    at: Timestamp,
    added: Vec<(RowId, usize, StoredIn)>,
    deleted: Vec<RowId>,
}

/// The stored form of columns.
fn bytes(columns: &[Arc<ColumnChunk>], home: ObjectMemory<'_>) -> Vec<u8> {
    let columns = columns.iter().map(|column| column.unordered(home).unwrap());
    StoredColumns::new(columns.collect()).with_pieces(|pieces| pieces.concat())
}

impl Bench {
    fn home(&self) -> ObjectMemory<'_> {
        ObjectMemory {
            memory: &self.node,
            object: ObjectId(1),
        }
    }

    fn insert_uncommitted(&mut self, statement: StatementId, rows: usize) {
        let mut encoder = uncommitted(self.next_id, rows);
        // Some strings are looked up before, as an owner does.
        if statement.0.is_multiple_of(2) {
            let few = [
                None,
                Some(Dictionary::new().extend(["v0", "v1"].into_iter())),
            ];
            let missing = encoder.look_up(&few);
            assert!(
                missing
                    .iter()
                    .all(|(column, strings)| *column == 1 && !strings.is_empty())
            );
            assert_eq!(encoder.look_up(&self.texts), vec![]);
        }
        while !encoder.is_done() {
            encoder.step(&self.texts, self.home()).unwrap();
        }
        self.segment.insert_uncommitted(statement, encoder);
        self.next_id += rows as i64;
    }

    /// Deletes these rows of the model and inserts as many as `rows`.
    fn change(&mut self, delete: &[usize], rows: usize, commit: bool) {
        let statement = StatementId(self.next_statement);
        self.next_statement += 1;
        let budget = self.memory.budget().clone();
        let mut ids: Vec<RowId> = delete.iter().map(|&row| self.model[row].row).collect();
        ids.sort_unstable();
        let found = self
            .segment
            .delete_uncommitted(statement, &ids, &budget)
            .unwrap();
        assert_eq!(found, ids.len() as u64);
        let first = self.next_id;
        // Many rows come in batches that fill no chunk, as wide ones do.
        let piece = if rows > CHUNK_ROWS {
            30_000
        } else {
            rows.max(1)
        };
        for from in (0..rows).step_by(piece) {
            self.insert_uncommitted(statement, piece.min(rows - from));
        }
        if !commit {
            self.segment.abort(statement);
            let nothing = self
                .segment
                .commit(statement, self.now, self.horizon, &budget);
            assert_eq!(nothing, Committed::default());
            return;
        }
        self.now.0 += 1;
        self.replay(statement);
        let committed = self
            .segment
            .commit(statement, self.now, self.horizon, &budget);
        assert_eq!(committed.inserted, rows as u64);
        assert_eq!(committed.deleted, ids.len() as u64);
        delete
            .iter()
            .for_each(|&row| self.model[row].deleted = self.now);
        let new: Vec<(i64, RowId)> = read(&self.segment, self.now);
        let new = new.into_iter().filter(|(id, _)| *id >= first);
        self.model.extend(new.map(|(id, row)| Row {
            id,
            row,
            inserted: self.now,
            deleted: Timestamp::NEVER,
        }));
    }

    /// Does in the replica what the statement is about to commit, and keeps what a log would have of it.
    fn replay(&mut self, statement: StatementId) {
        let schema = batch(0, 0).schema();
        let names = |column: usize| schema.field(column).name().clone();
        let home = ObjectMemory {
            memory: &self.node,
            object: ObjectId(1),
        };
        (self.segment)
            .store_uncommitted(statement, names, home)
            .unwrap();
        for (_, columns, number) in self.segment.chunks_for_files(statement) {
            number.set(self.files.len() as u64, None);
            self.files.push(bytes(columns, home));
        }
        let rows = self.segment.committed_rows(statement);
        let added = rows.added.into_iter();
        let added = added.map(|stored| (stored.first, stored.rows, stored.columns));
        let commit = Logged {
            at: self.now,
            added: added.collect(),
            deleted: rows.deleted,
        };
        let mut replica = std::mem::replace(&mut self.replica, Segment::new(SegmentId(1)));
        self.replay_in(&mut replica, &commit);
        self.replica = replica;
        self.log.push(commit);
    }

    fn replay_in(&self, segment: &mut Segment, commit: &Logged) {
        let added = commit.added.iter();
        let added = added.map(|(first, rows, stored)| (*first, self.read(*rows, stored)));
        let deleted = commit.deleted.clone();
        segment.replay(added.collect(), deleted, commit.at, self.memory.budget());
    }

    fn read(&self, rows: usize, stored: &StoredIn) -> ReadColumns {
        let (form, number) = match stored {
            StoredIn::Bytes(form) => (form, None),
            StoredIn::ChunkFile(number) => (&self.files[*number as usize], Some(*number)),
        };
        let mut reader = FormReader::copying(form);
        let schema = batch(0, 0).schema();
        let columns = schema.fields().iter().map(|field| {
            let column = ColumnChunk::read(&mut reader, field.data_type(), rows, self.home());
            Arc::new(column.unwrap())
        });
        let columns = columns.collect();
        assert!(reader.rest().is_empty());
        ReadColumns { columns, number }
    }

    /// The replica begins anew, with what a snapshot has and the commits since.
    fn recover(&mut self, at: Timestamp) {
        let mut chunks = SnapshotChunks::default();
        let views = self.segment.view(at);
        views.for_each(|view| chunks.add(view, at));
        let mut replica = Segment::new(SegmentId(1));
        for seen in chunks.into_chunks() {
            let chunk = &seen.chunk;
            let stored = match chunk.number().is_open() {
                false => StoredIn::Bytes(bytes(chunk.columns(), self.home())),
                true => StoredIn::ChunkFile(chunk.number().get().unwrap_or_else(|| {
                    self.files.push(bytes(
                        chunk.columns(),
                        ObjectMemory {
                            memory: &self.node,
                            object: ObjectId(1),
                        },
                    ));
                    chunk.number().set(self.files.len() as u64 - 1, None);
                    self.files.len() as u64 - 1
                })),
            };
            let restored = RestoredRows {
                read: self.read(chunk.rows(), &stored),
                ids: seen.ids(),
                deleted: seen.deleted(),
            };
            replica.restore(restored, at, self.memory.budget());
        }
        let since = self.log.iter().filter(|commit| commit.at > at);
        since.for_each(|commit| self.replay_in(&mut replica, commit));
        self.replica = replica;
        self.is_recovered = true;
    }

    fn living(&self) -> Vec<usize> {
        let rows = self.model.iter().enumerate();
        rows.filter(|(_, row)| row.deleted == Timestamp::NEVER)
            .map(|(index, _)| index)
            .collect()
    }

    fn check(&self, at: Timestamp) {
        let rows = self.model.iter();
        let visible = rows.filter(|row| row.inserted <= at && row.deleted > at);
        let mut expected: Vec<(i64, RowId)> = visible.map(|row| (row.id, row.row)).collect();
        expected.sort_unstable();
        assert_eq!(read(&self.segment, at), expected, "at {at}");
        if at == self.now {
            assert_eq!(read(&self.replica, at), expected, "replayed");
            // Ids of rows that were deleted before a snapshot may be given out again.
            let next = (self.replica.next_id(), self.segment.next_id());
            assert!(next.0 == next.1 || self.is_recovered && next.0 < next.1);
        }
        let statistics = self.segment.statistics();
        let living = statistics.rows - statistics.deleted;
        assert_eq!(living, self.living().len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_segment_is_a_list_of_versioned_rows(steps in prop::collection::vec(step(), 1..30)) {
        let topology = Topology::fake(1, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let texts = [None, Some(Dictionary::new().extend(["v0", "v1", "v2", "v3", "v4"].into_iter()))];
        let schema = batch(0, 0).schema();
        let mut bench = Bench {
            node: memory.node(NodeId(0)),
            memory,
            segment: Segment::new(SegmentId(1)),
            replica: Segment::new(SegmentId(1)),
            log: Vec::new(),
            files: Vec::new(),
            is_recovered: false,
            model: Vec::new(),
            now: Timestamp(10),
            horizon: Timestamp(0),
            next_id: 0,
            next_statement: 0,
            texts,
        };
        for (number, step) in steps.into_iter().enumerate() {
            let node = bench.node.clone();
            // Text that was coded is coded no longer now and then.
            let coding = if number % 3 == 0 { [None, None] } else { bench.texts.clone() };
            let known = bench.texts.clone();
            let recoder = Recoder {
                schema: &schema,
                known: &known,
                coding: &coding,
                home: ObjectMemory { memory: &node, object: ObjectId(1) },
                horizon: bench.horizon,
            };
            match step {
                Step::Write { rows, commit } => bench.change(&[], rows, commit),
                Step::Change { from, to, every, rows, commit } => {
                    let living = bench.living();
                    let place = |thousandths| living.len() * thousandths / 1_000;
                    let range = place(from.min(to))..place(from.max(to));
                    let delete: Vec<usize> = living[range].iter().copied().step_by(every).collect();
                    bench.change(&delete, rows, commit);
                }
                Step::Settle => bench.segment.merge(recoder).unwrap(),
                Step::Horizon { ago } => {
                    bench.horizon = bench.horizon.max(Timestamp(bench.now.0 - ago));
                }
                Step::Collect => {
                    let mut rewritten = 0;
                    while let Some(mut rewrite) = bench.segment.collect(bench.horizon) {
                        let living = bench.living();
                        let delete: Vec<usize> = living.iter().copied().step_by(1_000).take(7).collect();
                        bench.change(&delete, 1, true);
                        while !rewrite.is_done() {
                            rewrite.step(recoder).unwrap();
                        }
                        bench.segment.finish_rewrite(rewrite, bench.memory.budget());
                        rewritten += 1;
                        prop_assert!(rewritten < 20, "it goes on and on");
                    }
                }
                Step::Recover { ago } => {
                    let at = (bench.now.0 - ago).max(bench.horizon.0).max(10);
                    bench.recover(Timestamp(at));
                }
                Step::Read { ago } => bench.check(Timestamp((bench.now.0 - ago).max(bench.horizon.0))),
            }
            bench.check(bench.now);
        }
        bench.check(bench.horizon.max(Timestamp(9)));
        let Bench { segment, replica, memory, .. } = bench;
        drop((segment, replica));
        prop_assert!(memory.usage().iter().all(|usage| usage.bytes == 0), "memory is left over");
        prop_assert_eq!(memory.budget().used(), 0);
    }

    #[test]
    fn what_nobody_sees_takes_no_memory(rows in 1usize..CHUNK_ROWS) {
        let topology = Topology::fake(1, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let mut bench = Bench {
            node: memory.node(NodeId(0)),
            memory,
            segment: Segment::new(SegmentId(1)),
            replica: Segment::new(SegmentId(1)),
            log: Vec::new(),
            files: Vec::new(),
            is_recovered: false,
            model: Vec::new(),
            now: Timestamp(10),
            horizon: Timestamp(0),
            next_id: 0,
            next_statement: 0,
            texts: [None, None],
        };
        bench.change(&[], rows, true);
        bench.change(&bench.living(), 0, true);
        let before = bench.segment.statistics();
        prop_assert_eq!(before.deleted, rows as u64);
        prop_assert!(bench.segment.collect(Timestamp(11)).is_none());
        prop_assert_eq!(bench.segment.statistics(), before);
        bench.segment.collect(bench.now);
        let schema = batch(0, 0).schema();
        let node = bench.node.clone();
        let recoder = Recoder {
            schema: &schema,
            known: &[None, None],
            coding: &[None, None],
            home: ObjectMemory { memory: &node, object: ObjectId(1) },
            horizon: bench.now,
        };
        bench.segment.merge(recoder).unwrap();
        prop_assert!(bench.segment.is_empty());
        bench.replica = Segment::new(SegmentId(1));
        prop_assert_eq!(bench.memory.budget().used(), 0);
    }
}
