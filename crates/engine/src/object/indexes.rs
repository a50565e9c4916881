//! The secondary indexes of a data object as all parts of the engine see them. Their entries are with the owners, or in
//! one tree of all owners.

use crate::object::shared_index::{COLUMN_BYTES, SharedBuild, SharedIndex};
use arrow_schema::Schema;
use eris_atomics::Lock;
use eris_column::Domain;
use eris_home::{IndexKind, IndexStatistics, SharedIndexStatistics};
use eris_types::{AeuId, ColumnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of values that an index of a kind looks at. Rows whose values differ only behind them share an entry, or lie
/// in no order, and are told apart by whoever asked.
pub(crate) fn key_bytes(kind: IndexKind) -> usize {
    match kind {
        IndexKind::Ordered | IndexKind::Hashed => 1024,
        IndexKind::Shared => COLUMN_BYTES,
    }
}

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
    /// The entries of all owners, if they share a tree.
    tree: Option<SharedIndex>,
    /// What they share while they build it.
    build: Lock<Option<Arc<SharedBuild>>>,
}

#[derive(Debug, Default)]
struct OwnerPart {
    entries: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
    /// Rows have come that are not in the shared tree. Set before their commit is seen, and taken back when all are in
    /// the tree: whoever reads it before the tree finds all rows of the others.
    is_incomplete: AtomicBool,
}

impl Index {
    pub fn new(
        id: u32,
        columns: &[ColumnId],
        kind: IndexKind,
        aeus: usize,
        built: Arc<AtomicU64>,
        trees: Option<[SharedIndex; 2]>,
    ) -> Self {
        let (tree, beside) = trees.map(|[tree, beside]| (tree, beside)).unzip();
        let build = beside.map(|beside| Arc::new(SharedBuild::new(aeus, beside)));
        Index {
            id,
            columns: columns.into(),
            kind,
            ready: AtomicBool::new(false),
            parts: (0..aeus).map(|_| OwnerPart::default()).collect(),
            lookups: AtomicU64::new(0),
            built,
            tree,
            build: Lock::new(build),
        }
    }

    /// What owners share who build the tree of all, until it is built.
    pub fn build(&self) -> Option<Arc<SharedBuild>> {
        self.build.lock().clone()
    }

    /// All owners have done their part.
    pub fn end_build(&self) {
        *self.build.lock() = None;
    }

    /// The tree of all owners.
    pub fn tree(&self) -> Option<&SharedIndex> {
        self.tree.as_ref()
    }

    /// Whether an owner has rows that are not in the shared tree.
    pub fn set_incomplete(&self, aeu: AeuId, is_incomplete: bool) {
        let part = &self.parts[aeu.index()];
        part.is_incomplete.store(is_incomplete, Ordering::Release);
    }

    /// The owners that have rows which are not in the shared tree, ascending. To be read before the tree.
    pub fn incomplete(&self) -> Vec<AeuId> {
        let parts = self.parts.iter().zip(0..);
        let incomplete = parts.filter(|(part, _)| part.is_incomplete.load(Ordering::Acquire));
        incomplete.map(|(_, aeu)| AeuId(aeu)).collect()
    }

    /// An owner has put so many entries into the shared tree, and taken so many out.
    pub fn count(&self, aeu: AeuId, put: usize, taken: usize) {
        let entries = &self.parts[aeu.index()].entries;
        // Its owner alone writes it.
        let before = entries.load(Ordering::Relaxed);
        let now = (before + put as u64).saturating_sub(taken as u64);
        entries.store(now, Ordering::Relaxed);
    }

    /// How many entries an owner has.
    pub fn entries_of(&self, aeu: AeuId) -> usize {
        self.parts[aeu.index()].entries.load(Ordering::Relaxed) as usize
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
            _ if self.kind == IndexKind::Shared => false,
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

    /// Of a shared tree all leaves are read.
    pub fn statistics(&self) -> IndexStatistics {
        let (entries, keys) = self.size();
        let parts = self.parts.iter();
        let bytes = parts.map(|part| part.bytes.load(Ordering::Relaxed)).sum();
        let tree = self.tree.as_ref().map(SharedIndex::statistics);
        IndexStatistics {
            id: self.id,
            columns: self.columns.to_vec(),
            kind: self.kind,
            entries,
            keys: tree.is_none().then_some(keys),
            bytes: self.tree.as_ref().map_or(bytes, SharedIndex::bytes),
            lookups: self.lookups.load(Ordering::Relaxed),
            tree: tree.map(|tree| SharedIndexStatistics {
                height: tree.height as u64,
                nodes: tree.nodes,
                fill: tree.fill,
                splits: tree.splits,
                right_moves: tree.right_moves,
            }),
        }
    }
}
