//! A data object as every part of the engine sees it: what it is, where its rows go, what it holds.

use crate::durability::Log;
use crate::durability::records::StoredObject;
use crate::error::EngineError;
use crate::object::indexes::Index;
use crate::object::keys::{Keys, is_word};
use crate::object::load::Loads;
use crate::object::numbers::keys_of;
use crate::object::profile::{ObjectProfile, PartitionProfile, Readable, SAMPLED_ROWS};
use crate::object::ranges::{Assignment, Ranges};
use crate::object::shared_index::SharedIndex;
use crate::object::statistics::{PartitionStatistics, PublishedStatistics};
use arc_swap::{ArcSwap, ArcSwapOption};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use eris_atomics::WriteLock;
use eris_column::{Dictionary, Domain, ZoneRange};
use eris_fragment::Type;
use eris_home::{IndexKind, Partitioning};
use eris_route::SharedAeuSet;
use eris_types::{AeuId, ColumnId, ObjectId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The shared part of a data object. Its rows are with its owners.
#[derive(Debug)]
pub(crate) struct DataObject {
    pub id: ObjectId,
    pub name: String,
    pub schema: SchemaRef,
    pub partitioning: Partitioning,
    /// Whether its rows outlive the process.
    pub is_durable: bool,
    /// Whether it is of a database that is open for reading only: nobody writes rows to it.
    is_read_only: bool,
    /// The columns of its key, which no two rows have the same values of; none without a key.
    pub key: Box<[ColumnId]>,
    /// Range partitioning's table, from the first write on. It has every key.
    pub ranges: Ranges,
    /// Per column, the newest version that its owner has published. Written by that owner alone, and read when a
    /// fragment starts: never on the way of rows.
    dictionaries: Box<[ArcSwapOption<Dictionary>]>,
    /// Per column, whether some of its text may have no codes, though there is a dictionary.
    plain: Box<[AtomicBool]>,
    /// Per AEU, what its partition holds: written by the owner after a commit, read by planners.
    statistics: Box<[PublishedStatistics]>,
    /// Per AEU, what it knows of its values: written by the owner now and then, read by planners.
    profiles: Box<[ArcSwapOption<PartitionProfile>]>,
    /// All of them, as they were when somebody last asked.
    profile: ArcSwapOption<ObjectProfile>,
    /// The bitmap partition table: who has rows, by the statistics. So a fragment looks at those of its participants
    /// alone.
    holders: SharedAeuSet,
    /// What owners were asked for.
    pub loads: Loads,
    /// Its secondary indexes, also those that are being built.
    indexes: ArcSwap<Vec<Arc<Index>>>,
    next_index: AtomicU32,
    /// The right to change rows: one statement's that reads before it writes, or writes to several partitions; or
    /// that of any number of [one-partition changes](crate::clients::rows), which their owners order. Served in the
    /// order in which they came.
    pub write_lock: Arc<WriteLock>,
    /// Held by statements that write rows with a key before they have the write lock, from the first row to their end,
    /// and alone by whoever shifts keys: rows are written with who owns their keys when they commit.
    pub early_writes: Arc<tokio::sync::RwLock<()>>,
    /// The newest commit under the write lock. Written under it, read under the next, which waits until it is visible;
    /// a relaxed number, for the lock orders the two.
    changed: AtomicU64,
    /// The same of statements that had it for themselves: who shares it need only wait for these.
    changed_alone: AtomicU64,
    /// Rows that were deleted since they were collected last. A relaxed number, added to by every statement that
    /// deletes: whoever makes it pass the limit is the only one to do so.
    deleted: AtomicU64,
    /// Set once by whoever drops it, read by owners before they write or scan: DROP may overtake what was sent before
    /// it.
    dropped: AtomicBool,
    /// Set by [`Engine::poison`](crate::Engine::poison), cleared by the slice that it makes panic.
    poisoned: AtomicBool,
}

/// Rejects keys that have no order of bytes.
pub(crate) fn check_key(
    table: &str,
    schema: &Schema,
    columns: &[ColumnId],
) -> Result<(), EngineError> {
    for column in columns {
        let field = schema.field(column.index());
        if matches!(field.data_type(), DataType::Interval(_)) {
            return Err(EngineError::KeyColumn {
                table: table.to_owned(),
                column: field.name().clone(),
            });
        }
    }
    Ok(())
}

impl DataObject {
    pub fn new(
        id: ObjectId,
        name: &str,
        schema: SchemaRef,
        partitioning: Partitioning,
        key: &[ColumnId],
        aeus: usize,
    ) -> Result<Self, EngineError> {
        for field in schema.fields() {
            Type::try_from(field.data_type()).map_err(|source| EngineError::Type {
                column: field.name().clone(),
                source,
            })?;
        }
        check_key(name, &schema, key)?;
        if let Partitioning::Range(column) = partitioning {
            let field = schema.field(column.index());
            if Domain::of(field.data_type()) != Some(Domain::Integer) {
                return Err(EngineError::PartitionColumn {
                    table: name.to_owned(),
                    column: field.name().clone(),
                });
            }
        }
        let texts = schema.fields().iter().zip(0..).map(|(field, column)| {
            // Texts that are all different have no use for codes, and whoever adds one would have to wait for its code.
            let is_key = *key == [ColumnId(column)];
            let text = Domain::of(field.data_type()) == Some(Domain::String);
            ArcSwapOption::from_pointee((text && !is_key).then(Dictionary::new))
        });
        Ok(DataObject {
            id,
            name: name.to_owned(),
            dictionaries: texts.collect(),
            plain: (schema.fields().iter().map(|_| AtomicBool::new(false))).collect(),
            statistics: (0..aeus)
                .map(|_| PublishedStatistics::new(schema.fields().len()))
                .collect(),
            profiles: (0..aeus).map(|_| ArcSwapOption::empty()).collect(),
            profile: ArcSwapOption::empty(),
            ranges: Ranges::default(),
            loads: Loads::new(aeus),
            schema,
            partitioning,
            is_durable: false,
            is_read_only: false,
            key: key.into(),
            holders: SharedAeuSet::new(aeus),
            indexes: ArcSwap::default(),
            next_index: AtomicU32::new(1),
            write_lock: Arc::default(),
            early_writes: Arc::default(),
            changed: AtomicU64::new(0),
            changed_alone: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
        })
    }

    /// The same object, whose rows outlive the process.
    pub fn durable(mut self, log: Log) -> Self {
        self.is_durable = true;
        self.ranges.log_to(log, self.id);
        self
    }

    /// The same object, of a database that is open for reading only. Its rows outlive the process, for they stay as
    /// they are.
    pub fn read_only(mut self) -> Self {
        self.is_durable = true;
        self.is_read_only = true;
        self
    }

    /// # Errors
    /// Its rows must stay as they are.
    pub fn check_writable(&self) -> Result<(), EngineError> {
        match self.is_read_only {
            true => Err(EngineError::ReadOnly {
                what: format!("table {}", self.name),
            }),
            false => Ok(()),
        }
    }

    /// What it is made of.
    pub fn stored(&self) -> StoredObject {
        StoredObject {
            id: self.id,
            name: self.name.clone(),
            schema: Arc::clone(&self.schema),
            partitioning: self.partitioning,
            key: self.key.to_vec(),
        }
    }

    /// Whether rows are assigned to partitions by ranges: of the column that was chosen, or of the key.
    pub fn is_ranged(&self) -> bool {
        !self.key.is_empty() || self.partitioning != Partitioning::Size
    }

    /// Whether an owner has the rows of some ranges of a key, and is asked for them alone.
    pub fn is_ranged_by_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// The ranges by which these rows are assigned, and the number of each row.
    pub fn assign(
        &self,
        batches: &[RecordBatch],
        aeus: usize,
    ) -> (Arc<Assignment>, Vec<Int64Array>) {
        let of_column = |column: &ColumnId| {
            let numbers = batches.iter();
            let numbers = numbers.map(|batch| keys_of(batch.column(column.index())));
            let numbers: Vec<Int64Array> = numbers.collect();
            (self.ranges.assign_numbers(&numbers, aeus), numbers)
        };
        match (&*self.key, &self.partitioning) {
            ([], Partitioning::Range(column)) => of_column(column),
            ([column], _) if is_word(self.key_types()) => of_column(column),
            _ => {
                let keys = batches.iter();
                let keys = keys.map(|rows| Keys::of_pieces(&[self.key_columns(rows)]));
                let keys: Vec<Keys> = keys.collect();
                let (assignment, numbers) = self.ranges.assign(&keys, aeus);
                (
                    assignment,
                    numbers.into_iter().map(Int64Array::from).collect(),
                )
            }
        }
    }

    /// The types of the key's columns.
    pub fn key_types(&self) -> Vec<&DataType> {
        let columns = self.key.iter();
        columns
            .map(|column| self.schema.field(column.index()).data_type())
            .collect()
    }

    /// The columns of the key.
    pub fn key_columns(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let columns = self.key.iter();
        columns
            .map(|column| batch.column(column.index()).clone())
            .collect()
    }

    /// The newest commit under the write lock.
    pub fn changed(&self) -> Timestamp {
        Timestamp(self.changed.load(Ordering::Relaxed))
    }

    /// Whoever shares the write lock commits at `at`.
    pub fn set_changed(&self, at: Timestamp) {
        self.changed.fetch_max(at.0, Ordering::Relaxed);
    }

    /// The newest commit of a statement that had the write lock for itself.
    pub fn changed_alone(&self) -> Timestamp {
        Timestamp(self.changed_alone.load(Ordering::Relaxed))
    }

    /// Whoever has the write lock for itself commits at `at`.
    pub fn set_changed_alone(&self, at: Timestamp) {
        self.changed_alone.fetch_max(at.0, Ordering::Relaxed);
        self.set_changed(at);
    }

    /// Rows were deleted; how many had been before.
    pub fn add_deleted(&self, rows: u64) -> u64 {
        self.deleted.fetch_add(rows, Ordering::Relaxed)
    }

    /// Deleted rows are collected.
    pub fn forget_deleted(&self) {
        self.deleted.store(0, Ordering::Relaxed);
    }

    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Says that it is dropped.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// The next slice of a scan of this object shall panic.
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Panics if the object is poisoned.
    pub fn panic_if_poisoned(&self) {
        if self.poisoned.load(Ordering::Relaxed) && self.poisoned.swap(false, Ordering::Relaxed) {
            panic!("poisoned on purpose");
        }
    }

    /// The AEU that numbers the values of a text column.
    pub fn dictionary_owner(&self, column: usize) -> AeuId {
        AeuId(((self.id.index() + column) % self.statistics.len()) as u16)
    }

    /// The newest published dictionaries, one entry per column.
    pub fn dictionaries(&self) -> Vec<Option<Dictionary>> {
        let columns = self.dictionaries.iter();
        let newest = |column: &ArcSwapOption<Dictionary>| column.load().as_deref().cloned();
        columns.map(newest).collect()
    }

    /// The newest published dictionary of a column that has codes for all rows that anybody sees by now.
    pub fn full_dictionary(&self, column: usize) -> Option<Dictionary> {
        if self.plain[column].load(Ordering::SeqCst) {
            return None;
        }
        self.dictionaries[column].load().as_deref().cloned()
    }

    /// From now on, text of a column may have no codes. Said before there are such rows.
    pub fn set_plain(&self, column: usize) {
        self.plain[column].store(true, Ordering::SeqCst);
    }

    /// Makes a dictionary known to fragments that start from now on.
    pub fn publish(&self, column: usize, dictionary: Dictionary) {
        self.dictionaries[column].store(Some(Arc::new(dictionary)));
    }

    /// What the partition of `aeu` holds.
    pub fn partition_statistics(&self, aeu: AeuId) -> PartitionStatistics {
        self.statistics[aeu.index()].read()
    }

    /// Tells planners what the partition of `aeu` holds.
    pub fn set_partition_statistics(&self, aeu: AeuId, statistics: &PartitionStatistics) {
        self.statistics[aeu.index()].write(statistics);
        self.holders.set(aeu, statistics.rows > 0);
    }

    /// What is needed to profile a partition, with its owner's dictionaries.
    pub fn readable<'a>(&'a self, dictionaries: &'a [Option<Dictionary>]) -> Readable<'a> {
        let most = SAMPLED_ROWS / self.statistics.len();
        Readable {
            schema: &self.schema,
            dictionaries,
            sampled_rows: most.clamp(SAMPLED_ROWS / 128, SAMPLED_ROWS / 8),
        }
    }

    /// Tells planners what the values of the partition of `aeu` are like.
    pub fn set_partition_profile(&self, aeu: AeuId, profile: PartitionProfile) {
        self.profiles[aeu.index()].store(Some(Arc::new(profile)));
    }

    /// What the values are like.
    pub fn profile(&self) -> Arc<ObjectProfile> {
        let parts = self.profiles.iter().filter_map(ArcSwapOption::load_full);
        let parts: Vec<_> = parts.collect();
        let known = self.profile.load_full();
        if let Some(known) = known.filter(|known| known.is_of(&parts)) {
            return known;
        }
        let profile = Arc::new(ObjectProfile::new(parts));
        self.profile.store(Some(Arc::clone(&profile)));
        profile
    }

    /// The AEUs whose partitions have rows, and how many, in the order of the AEUs. Deleted rows count as long as they
    /// are not collected: older snapshots see them. Whoever sees a commit finds all who have rows of it.
    pub fn holders(&self) -> impl Iterator<Item = (AeuId, u64)> + '_ {
        (self.holders.iter()).map(|aeu| (aeu, self.partition_rows(aeu)))
    }

    /// Rows of the partition of `aeu`, those included that are deleted but not collected: older snapshots see them.
    pub fn partition_rows(&self, aeu: AeuId) -> u64 {
        self.statistics[aeu.index()].rows()
    }

    /// Rows of all partitions, those included that are deleted but not collected.
    pub fn total_rows(&self) -> u64 {
        self.holders().map(|(_, rows)| rows).sum()
    }

    /// The least and the greatest value of a column, as far as they are known.
    pub fn column_range(&self, column: ColumnId) -> Option<ZoneRange> {
        let mut all = crate::object::statistics::ColumnSummary::default();
        for part in &self.statistics {
            if let Some(summary) = part.read().columns.get(column.index()) {
                all.add_summary(summary);
            }
        }
        all.range
    }

    /// The secondary indexes, also those that are being built.
    pub fn indexes(&self) -> Arc<Vec<Arc<Index>>> {
        self.indexes.load_full()
    }

    /// Whether there is this index.
    pub fn has_index(&self, id: u32) -> bool {
        self.indexes().iter().any(|index| index.id == id)
    }

    /// A new index, not in use yet; with two empty trees, if all owners share one: that one, and what is
    /// [beside](crate::object::shared_index::SharedBuild) it while it is built.
    pub fn add_index(
        &self,
        columns: &[ColumnId],
        kind: IndexKind,
        built: Arc<AtomicU64>,
        trees: Option<[SharedIndex; 2]>,
    ) -> Arc<Index> {
        let id = self.next_index.fetch_add(1, Ordering::Relaxed);
        let aeus = self.statistics.len();
        let index = Arc::new(Index::new(id, columns, kind, aeus, built, trees));
        (self.indexes).rcu(|all| [all.as_slice(), std::slice::from_ref(&index)].concat());
        index
    }

    /// Takes an index away.
    pub fn remove_index(&self, id: u32) {
        self.indexes.rcu(|all| {
            let left = all.iter().filter(|index| index.id != id);
            left.cloned().collect::<Vec<_>>()
        });
    }

    /// Rejects rows of other columns than the object's, and NULL where it allows none. `first_row` counts from 1.
    pub fn check(&self, batch: &RecordBatch, first_row: u64) -> Result<(), EngineError> {
        let types = |schema: &SchemaRef| {
            let types = schema.fields().iter().map(|field| field.data_type());
            types
                .map(|data_type| data_type.to_string())
                .collect::<Vec<_>>()
        };
        let same = batch.num_columns() == self.schema.fields().len()
            && (batch.columns().iter().zip(self.schema.fields()))
                .all(|(array, field)| array.data_type() == field.data_type());
        if !same {
            return Err(EngineError::Shape {
                table: self.name.clone(),
                got: types(batch.schema_ref()).join(", "),
                expected: types(&self.schema).join(", "),
            });
        }
        let columns = batch.columns().iter().zip(self.schema.fields());
        for (position, (array, field)) in columns.enumerate() {
            let keyed = self.key.iter().any(|column| column.index() == position);
            if (keyed || !field.is_nullable()) && array.null_count() > 0 {
                let row = (0..array.len()).find(|&row| array.is_null(row));
                return Err(EngineError::Null {
                    table: self.name.clone(),
                    column: field.name().clone(),
                    row: first_row + row.expect("the array has a NULL") as u64,
                });
            }
        }
        Ok(())
    }
}
