//! The secondary indexes of a data object as all parts of the engine see them. Their entries are with the owners.

use arrow_schema::Schema;
use eris_column::Domain;
use eris_home::{IndexKind, IndexStatistics};
use eris_types::{AeuId, ColumnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of values that are looked at. Rows whose values differ only behind them share an entry, and are told apart by
/// whoever asked.
pub(crate) const KEY_BYTES: usize = 1024;

/// How large one owner's part of an index is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexSize {
    /// Rows that are entered.
    pub entries: u64,
    /// Different values.
    pub keys: u64,
    pub bytes: u64,
}

/// A secondary index: what it is of, and its size.
#[derive(Debug)]
pub(crate) struct Index {
    pub id: u32,
    pub columns: Box<[ColumnId]>,
    pub kind: IndexKind,
    /// Set once all owners have built their part; from then on fragments use it.
    ready: AtomicBool,
    /// Per AEU; written by it alone, read by planners.
    parts: Box<[OwnerPart]>,
    /// Fragments that were led by it.
    lookups: AtomicU64,
    /// Rows that were entered when it was made.
    built: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct OwnerPart {
    entries: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
}

impl Index {
    pub fn new(
        id: u32,
        columns: &[ColumnId],
        kind: IndexKind,
        aeus: usize,
        built: Arc<AtomicU64>,
    ) -> Self {
        Index {
            id,
            columns: columns.into(),
            kind,
            ready: AtomicBool::new(false),
            parts: (0..aeus).map(|_| OwnerPart::default()).collect(),
            lookups: AtomicU64::new(0),
            built,
        }
    }

    /// So many more rows were entered.
    pub fn count_built(&self, rows: usize) {
        self.built.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub fn count_lookup(&self) {
        self.lookups.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether its keys are numbers.
    pub fn has_words(&self, schema: &Schema) -> bool {
        match self.columns[..] {
            [one] => Domain::of(schema.field(one.index()).data_type()) == Some(Domain::Integer),
            _ => false,
        }
    }

    /// The part of an AEU has changed.
    pub fn tell(&self, aeu: AeuId, part: IndexSize) {
        let told = &self.parts[aeu.index()];
        told.entries.store(part.entries, Ordering::Relaxed);
        told.keys.store(part.keys, Ordering::Relaxed);
        told.bytes.store(part.bytes, Ordering::Relaxed);
    }

    /// How many rows are entered, and how many different values, each part's counted on its own.
    pub fn size(&self) -> (u64, u64) {
        let sum = |of: fn(&OwnerPart) -> &AtomicU64| {
            self.parts
                .iter()
                .map(|part| of(part).load(Ordering::Relaxed))
                .sum()
        };
        (sum(|part| &part.entries), sum(|part| &part.keys))
    }

    pub fn statistics(&self) -> IndexStatistics {
        let (entries, keys) = self.size();
        let bytes = self
            .parts
            .iter()
            .map(|part| part.bytes.load(Ordering::Relaxed));
        IndexStatistics {
            id: self.id,
            columns: self.columns.to_vec(),
            kind: self.kind,
            entries,
            keys,
            bytes: bytes.sum(),
            lookups: self.lookups.load(Ordering::Relaxed),
        }
    }
}
