//! A home of tables that is as small as a home can be: batches of rows in a list, each with when it was inserted and
//! when its rows were deleted. It has no workers, no indexes and nothing optional.
//!
//! ```text
//! object    schema, key, write lock
//!   batch   inserted t3   row ids 7 8 9    deleted   –  t5  –        a snapshot at t4 sees 7 8 9, one at t5 sees 7 9
//!   batch   inserted t5   row ids 10 11    deleted   –  –
//! ```
//!
//! Rows are never collected; keys are looked for by reading all rows. It shows what SQL needs of a home, and it is a
//! second opinion: whatever a fragment means is written here once more, without chunks, encodings or partial work.

mod expression;
mod fragment;
mod groups;
mod write;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, UInt32Array, new_empty_array,
};
use datafusion::arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::row::OwnedRow;
use eris_fragment::{
    Execution, Executor, Fragment, FragmentError, FragmentReport, FragmentStream, Type,
    WorkerReport, integer_keys,
};
use eris_home::{
    Budget, ChunkInspection, ColumnChunkInspection, ColumnStatistics, Found, HeldSnapshot, Home,
    HomeError, HugePages, Inspection, Newest, NodeDescription, ObjectDefinition, ObjectStatistics,
    Partitioning, SegmentInspection, Usage, WorkerDescription, Write,
};
use eris_types::{AeuId, ColumnId, NodeId, ObjectId, RowId, SegmentId, Timestamp};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// A home in memory. Clones are the same one.
#[derive(Clone)]
pub struct MemoryHome(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    budget: Budget,
}

#[derive(Default)]
struct State {
    objects: HashMap<ObjectId, Object>,
    created: u32,
    /// The newest commit.
    newest: Timestamp,
    /// Ids that were given to rows.
    rows: u64,
}

struct Object {
    definition: ObjectDefinition,
    batches: Vec<Stored>,
    /// Held by the statement that may delete rows, or check keys, until it has committed.
    write_lock: Arc<tokio::sync::Mutex<()>>,
    newest: Timestamp,
}

/// Rows that were inserted together.
struct Stored {
    rows: RecordBatch,
    first: RowId,
    inserted: Timestamp,
    /// Per row; [`Timestamp::NEVER`] while it is there.
    deleted: Vec<Timestamp>,
}

impl Stored {
    /// The rows that a snapshot shows, by their positions.
    fn visible(&self, at: Timestamp) -> impl Iterator<Item = usize> + '_ {
        let rows = 0..if self.inserted <= at {
            self.deleted.len()
        } else {
            0
        };
        rows.filter(move |&row| self.deleted[row] > at)
    }
}

impl MemoryHome {
    pub fn new(memory: u64) -> Self {
        MemoryHome(Arc::new(Shared {
            state: Mutex::default(),
            budget: Budget::new(memory),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl State {
    fn object(&self, id: ObjectId) -> Result<&Object, HomeError> {
        self.objects.get(&id).ok_or(HomeError::NoSuchObject(id))
    }
}

impl Object {
    /// The rows that a snapshot shows, all columns of them, and their ids.
    fn rows(&self, at: Timestamp) -> (RecordBatch, Vec<RowId>) {
        let mut ids = Vec::new();
        let parts = self.batches.iter().map(|stored| {
            ids.extend(stored.visible(at).map(|row| stored.first.plus(row)));
            let mut visible = vec![false; stored.deleted.len()];
            stored.visible(at).for_each(|row| visible[row] = true);
            filter_record_batch(&stored.rows, &BooleanArray::from(visible)).unwrap()
        });
        let parts: Vec<RecordBatch> = parts.collect();
        (
            concat_batches(&self.definition.schema, &parts).unwrap(),
            ids,
        )
    }

    /// The columns of the key.
    fn key(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        let key = self.definition.key.iter();
        key.map(|column| Arc::clone(rows.column(column.index())))
            .collect()
    }

    /// Which row has which key.
    fn by_key(&self, rows: &RecordBatch) -> HashMap<OwnedRow, usize> {
        let keys = groups::row_keys(&self.key(rows)).unwrap();
        keys.into_iter().zip(0..).collect()
    }
}

impl Executor for MemoryHome {
    fn execute(&self, fragment: Arc<Fragment>, streams: usize) -> Result<Execution, FragmentError> {
        let state = self.state();
        let object = state.object(fragment.object);
        let object = object.map_err(|_| FragmentError::NoSuchObject(fragment.object))?;
        let (rows, ids) = object.rows(fragment.snapshot);
        let columns = fragment.columns.iter().map(|&column| match column {
            ColumnId::ROW_ID => {
                let ids = ids.iter().map(|id| id.0 as i64);
                Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef
            }
            column => Arc::clone(rows.column(column.index())),
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let schema = &object.definition.schema;
        let names = fragment.columns.iter().map(|&column| match column {
            ColumnId::ROW_ID => "row".to_owned(),
            column => schema.field(column.index()).name().clone(),
        });
        let names: Vec<String> = names.collect();
        drop(state);
        let result = fragment::run(&fragment, columns, ids.len(), names);
        let mut worker = WorkerReport {
            chunks: 1,
            rows_scanned: ids.len() as u64,
            ..WorkerReport::default()
        };
        if let Ok((batch, passed)) = &result {
            worker.rows_passed = *passed as u64;
            worker.rows_sent = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        }
        let report = FragmentReport {
            workers: vec![worker],
            ..FragmentReport::default()
        };
        // All of it arrives on the first stream.
        let answer = result.map(|(batch, _)| batch).transpose();
        let first = futures::stream::iter(answer).boxed_stream();
        let others = (1..streams).map(|_| futures::stream::empty().boxed_stream());
        Ok(Execution {
            streams: std::iter::once(first).chain(others).collect(),
            is_merged: Arc::new(|| true),
            report: Arc::new(move || report.clone()),
        })
    }
}

trait BoxedStream {
    fn boxed_stream(self) -> FragmentStream;
}

impl<S> BoxedStream for S
where
    S: futures::Stream<Item = Result<RecordBatch, FragmentError>> + Send + 'static,
{
    fn boxed_stream(self) -> FragmentStream {
        Box::pin(self)
    }
}

impl Home for MemoryHome {
    fn create(&self, definition: ObjectDefinition) -> BoxFuture<'_, Result<ObjectId, HomeError>> {
        let create = || {
            for field in definition.schema.fields() {
                Type::try_from(field.data_type()).map_err(|source| HomeError::Type {
                    column: field.name().clone(),
                    source,
                })?;
            }
            for key in &definition.key {
                let field = definition.schema.field(key.index());
                if matches!(field.data_type(), DataType::Interval(_)) {
                    return Err(HomeError::KeyColumn {
                        table: definition.name,
                        column: field.name().clone(),
                    });
                }
            }
            if let Partitioning::Range(column) = definition.partitioning {
                let field = definition.schema.field(column.index());
                if integer_keys(&new_empty_array(field.data_type())).is_none() {
                    return Err(HomeError::PartitionColumn {
                        table: definition.name,
                        column: field.name().clone(),
                    });
                }
            }
            let mut state = self.state();
            state.created += 1;
            let id = ObjectId(state.created);
            let object = Object {
                definition,
                batches: Vec::new(),
                write_lock: Arc::default(),
                newest: Timestamp::ZERO,
            };
            state.objects.insert(id, object);
            Ok(id)
        };
        let created = create();
        async { created }.boxed()
    }

    fn drop_object(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>> {
        let dropped = self.state().objects.remove(&object);
        let dropped = dropped.map(drop).ok_or(HomeError::NoSuchObject(object));
        async { dropped }.boxed()
    }

    fn hold(&self) -> HeldSnapshot {
        HeldSnapshot::new(self.state().newest, Arc::new(()))
    }

    fn hold_applied(&self) -> HeldSnapshot {
        self.hold()
    }

    fn barrier(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        async { Ok(()) }.boxed()
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn statistics(&self, object: ObjectId) -> Result<ObjectStatistics, HomeError> {
        let state = self.state();
        let object = state.object(object)?;
        let (rows, _) = object.rows(Timestamp(u64::MAX - 1));
        let columns = rows.columns().iter().map(|column| ColumnStatistics {
            nulls: column.null_count() as u64,
            ..ColumnStatistics::default()
        });
        Ok(ObjectStatistics {
            rows: rows.num_rows() as u64,
            bytes: rows.get_array_memory_size() as u64,
            newest: object.newest,
            columns: columns.collect(),
            ..ObjectStatistics::default()
        })
    }

    fn row_count(&self, object: ObjectId) -> Result<u64, HomeError> {
        let state = self.state();
        let batches = state.object(object)?.batches.iter();
        Ok(batches.map(|stored| stored.deleted.len() as u64).sum())
    }

    fn lookup<'a>(
        &'a self,
        object: ObjectId,
        keys: &'a [ArrayRef],
        columns: Arc<[ColumnId]>,
        _: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>> {
        let find = || {
            let state = self.state();
            let (object, newest) = (state.object(object)?, state.newest);
            let (rows, row_ids) = object.rows(newest);
            let places = object.by_key(&rows);
            let (mut found, mut of, mut ids) = (Vec::new(), Vec::new(), Vec::new());
            for (key, at) in groups::row_keys(keys).unwrap().iter().zip(0u32..) {
                if keys.iter().any(|part| part.is_null(at as usize)) {
                    continue;
                }
                let place = places.get(key).copied();
                ids.push(place.map(|place| row_ids[place]));
                if let Some(place) = place {
                    found.push(place as u32);
                    of.push(at);
                }
            }
            let columns: Vec<usize> = columns.iter().map(|column| column.index()).collect();
            let rows = rows.project(&columns).unwrap();
            let rows = match columns.is_empty() {
                true => nameless(found.len()),
                false => take_record_batch(&rows, &UInt32Array::from(found)).unwrap(),
            };
            Ok(Found {
                rows,
                of,
                ids,
                keys: Arc::new(()),
            })
        };
        let found = find();
        async { found }.boxed()
    }

    fn add(&self, objects: &[ObjectId]) -> Result<Box<dyn Write>, HomeError> {
        Ok(Box::new(write::MemoryWrite::new(self, objects, false)?))
    }

    fn change<'a>(
        &'a self,
        objects: &'a [ObjectId],
    ) -> BoxFuture<'a, Result<Box<dyn Write>, HomeError>> {
        async move {
            let mut write = write::MemoryWrite::new(self, objects, true)?;
            write.lock().await?;
            Ok(Box::new(write) as Box<dyn Write>)
        }
        .boxed()
    }

    fn budget(&self) -> &Budget {
        &self.0.budget
    }

    fn usage(&self) -> Vec<Usage> {
        Vec::new()
    }

    fn worker_count(&self) -> usize {
        1
    }

    fn workers(&self) -> Vec<WorkerDescription> {
        vec![WorkerDescription {
            aeu: AeuId(0),
            node: NodeId(0),
            cpu: None,
            counters: Default::default(),
            work: Vec::new(),
        }]
    }

    fn nodes(&self) -> Vec<NodeDescription> {
        vec![NodeDescription {
            node: NodeId(0),
            os_node: None,
            cores: 1,
            memory_bytes: self.0.budget.limit(),
            resident: None,
            elsewhere: None,
        }]
    }

    fn huge_pages(&self) -> HugePages {
        HugePages::Never
    }

    fn inspect(&self, object: ObjectId) -> BoxFuture<'_, Result<Inspection, HomeError>> {
        let inspect = || {
            let state = self.state();
            let object = state.object(object)?;
            let chunks = object.batches.iter().map(|stored| {
                let columns = stored
                    .rows
                    .columns()
                    .iter()
                    .map(|column| ColumnChunkInspection {
                        encoding: "plain".to_owned(),
                        is_by_key_order: false,
                        width: None,
                        nulls: column.null_count() as u64,
                        bytes: column.get_array_memory_size() as u64,
                        range: None,
                    });
                let deleted = stored.deleted.iter();
                ChunkInspection {
                    sealed: true,
                    rows: stored.deleted.len() as u64,
                    deleted: deleted.filter(|at| **at < Timestamp::NEVER).count() as u64,
                    columns: columns.collect(),
                }
            });
            let bytes = object.batches.iter();
            let segment = SegmentInspection {
                segment: SegmentId(u64::from(state.created)),
                aeu: AeuId(0),
                node: NodeId(0),
                bytes: bytes
                    .map(|stored| stored.rows.get_array_memory_size() as u64)
                    .sum(),
                chunks: chunks.collect(),
            };
            Ok(Inspection {
                segments: vec![segment],
                dictionaries: vec![None; object.definition.schema.fields().len()],
            })
        };
        let inspection = inspect();
        async { inspection }.boxed()
    }
}

/// Rows without columns.
fn nameless(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap()
}

impl fmt::Debug for MemoryHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryHome")
    }
}
