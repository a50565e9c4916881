//! What one AEU owns of one data object.

mod change;
mod fetch;

pub(crate) use change::{Change, Changed, Expected};
pub(crate) use fetch::Fetched;

use crate::error::EngineError;
use crate::inspect::SegmentView;
use crate::keys::{Keys, PrimaryIndex};
use crate::object::DataObject;
use crate::reorganize::Reorganizable;
use crate::statistics::Tally;
use crate::unique::Pending;
use eris_column::{Dictionary, Home, Selection};
use eris_store::{ChunkView, Encoder, Recoder, Rewrite, Segment, StoreError};
use eris_types::{AeuId, RowId, SegmentId, StatementId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A segment takes no more rows once it has so many chunks (four million rows): what is moved or re-coded in one piece
/// should take milliseconds.
const SEGMENT_CHUNKS: usize = 64;

/// A fragment of one key takes as long as so many lookups in a batch.
const POINT_LOOKUPS: u64 = 100;

/// Segment numbers, unique in the process. Only ever incremented.
static NEXT_SEGMENT: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Partition {
    pub object: Arc<DataObject>,
    owner: AeuId,
    /// In the order in which they were opened; the last one takes new rows.
    segments: Vec<Segment>,
    /// This AEU's replicas of the column dictionaries; `None` where text is stored as it is.
    dictionaries: Vec<Option<Dictionary>>,
    /// The same, but of a column whose text is stored as it is by now, the last that was used.
    known: Vec<Option<Dictionary>>,
    tally: Tally,
    /// If the object has a key.
    index: Option<PrimaryIndex>,
    /// The newest commit with which a key may have gone from the index.
    keys_removed: Timestamp,
    /// The keys of statements that are still staging.
    arriving: HashMap<StatementId, Pending>,
    /// What a statement that is about to commit does to the keys; and statements that were given up so late.
    pending: HashMap<StatementId, Pending>,
    /// The chunk that the shared pass has come to, and how many fragments take part in it.
    pass: usize,
    riders: usize,
}

impl Partition {
    pub fn new(object: Arc<DataObject>, owner: AeuId, home: Home<'_>) -> Self {
        let types = object.key.iter();
        let types = types.map(|column| object.schema.field(column.index()).data_type());
        let index = (!object.key.is_empty()).then(|| PrimaryIndex::new(types, home));
        Partition {
            index,
            keys_removed: Timestamp::ZERO,
            arriving: HashMap::new(),
            pending: HashMap::new(),
            dictionaries: object.dictionaries(),
            known: object.dictionaries(),
            object,
            owner,
            segments: Vec::new(),
            tally: Tally::default(),
            pass: 0,
            riders: 0,
        }
    }

    pub fn dictionaries(&self) -> &[Option<Dictionary>] {
        &self.dictionaries
    }

    pub fn set_dictionary(&mut self, column: usize, dictionary: Option<Dictionary>) {
        if dictionary.is_some() {
            self.known[column] = dictionary.clone();
        }
        self.dictionaries[column] = dictionary;
    }

    pub fn stage(
        &mut self,
        statement: StatementId,
        rows: Encoder,
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        if self.index.is_some() {
            let pieces = rows.batches().iter();
            let pieces: Vec<_> = pieces.map(|rows| self.object.key_columns(rows)).collect();
            let arriving = self.arriving.entry(statement).or_default();
            arriving.add(Keys::of_pieces(&pieces), home.memory.budget())?;
        }
        self.open().stage(statement, rows);
        Ok(())
    }

    /// The segment that takes new rows.
    fn open(&mut self) -> &mut Segment {
        let full = |last: &Segment| last.chunks() >= SEGMENT_CHUNKS || last.is_exhausted();
        if self.segments.last().is_none_or(full) {
            let id = SegmentId(NEXT_SEGMENT.fetch_add(1, Ordering::Relaxed));
            self.segments.push(Segment::new(id));
        }
        self.segments.last_mut().expect("opened above")
    }

    /// Takes the keys of statements out of the index that were given up: they have had their turn, and their ABORT is on
    /// the way.
    fn forget_others(&mut self, statement: StatementId) {
        if let Some(index) = &mut self.index {
            for (_, dead) in self.pending.extract_if(|other, _| *other != statement) {
                dead.undo(index);
            }
        }
    }

    /// All rows of the statement are staged: its keys can be [checked](Self::check). It has its turn.
    pub fn begin_check(
        &mut self,
        statement: StatementId,
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        if self.index.is_none() {
            return Ok(());
        }
        self.forget_others(statement);
        let arrived = self.arriving.remove(&statement).unwrap_or_default();
        let pending = self
            .pending
            .entry(statement)
            .insert_entry(arrived)
            .into_mut();
        let budget = home.memory.budget();
        for segment in &self.segments {
            for (chunk, positions, ids) in segment.staged_deletes(statement) {
                let mut rows = Selection::none(chunk.rows());
                positions.into_iter().for_each(|row| rows.insert(row));
                let columns = self.object.key.iter().map(|column| {
                    let data_type = self.object.schema.field(column.index()).data_type();
                    let dictionary = self.known[column.index()].as_ref();
                    chunk.column(*column).select(&rows, data_type, dictionary)
                });
                let columns: Vec<_> = columns.collect();
                pending.end(Keys::of(&columns, 0, ids.len()), ids, budget)?;
            }
        }
        let segments = self.segments.iter_mut();
        let ids = segments.flat_map(|segment| segment.number(statement));
        let index = self.index.as_ref().expect("looked above");
        pending.begin_check(ids, index, budget);
        Ok(())
    }

    /// Checks some more keys of the statement; says whether these were the last.
    pub fn check(&mut self, statement: StatementId, home: Home<'_>) -> Result<bool, EngineError> {
        match (&mut self.index, self.pending.get_mut(&statement)) {
            (Some(index), Some(pending)) => pending.check(index, &self.object, home),
            _ => Ok(true),
        }
    }

    /// Notes which rows the statement will delete: those of `ids` that are here. Says how many they are.
    pub fn stage_deletes(
        &mut self,
        statement: StatementId,
        ids: &[RowId],
        home: Home<'_>,
    ) -> Result<u64, StoreError> {
        let mut found = 0;
        for segment in &mut self.segments {
            let first = ids.partition_point(|id| id.segment() < segment.id());
            let end = ids.partition_point(|id| id.segment() <= segment.id());
            let budget = home.memory.budget();
            found += segment.stage_deletes(statement, &ids[first..end], budget)?;
        }
        Ok(found)
    }

    /// Cannot fail: all that can was done when the rows were staged.
    pub fn commit(
        &mut self,
        statement: StatementId,
        at: Timestamp,
        home: Home<'_>,
        horizon: Timestamp,
    ) {
        if let (Some(index), Some(pending)) = (&mut self.index, self.pending.remove(&statement)) {
            if pending.ends_rows() {
                self.keys_removed = at;
            }
            pending.commit(index);
        }
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        for segment in &mut self.segments {
            let committed = segment.commit(statement, at, horizon, home.memory.budget());
            if committed.inserted > 0 && segment.is_unsettled() {
                // Short of memory, the append buffer stays as it is; the next reader or writer tries again.
                let _ = segment.settle(recoder);
            }
        }
        self.tell_planners();
    }

    /// Forgets what nobody can see, as far as that is done at once; what is worth rewriting is begun and given back.
    pub fn collect(&mut self, home: Home<'_>, horizon: Timestamp) -> Option<Rewrite> {
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        let mut rewrite = None;
        for segment in &mut self.segments {
            // Without memory the append buffer keeps its garbage until it is settled.
            let _ = segment.settle(recoder);
            rewrite = segment.collect(horizon);
            if rewrite.is_some() {
                break;
            }
        }
        let last = self.segments.last().map(Segment::id);
        self.segments
            .retain(|segment| Some(segment.id()) == last || !segment.is_empty());
        self.tally.reset();
        self.tell_planners();
        rewrite
    }

    /// Encodes one more column of what is being rewritten; puts it in place once all are. Says whether that was it.
    pub fn rewrite(
        &mut self,
        mut rewrite: Rewrite,
        home: Home<'_>,
        horizon: Timestamp,
    ) -> Result<Option<Rewrite>, StoreError> {
        if !rewrite.is_done() {
            let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
            rewrite.step(recoder)?;
            return Ok(Some(rewrite));
        }
        let segment = rewrite.segment();
        let mut segments = self.segments.iter_mut();
        if let Some(segment) = segments.find(|other| other.id() == segment) {
            segment.finish_rewrite(rewrite, home.memory.budget());
        }
        self.tally.reset();
        self.tell_planners();
        Ok(None)
    }

    pub fn abort(&mut self, statement: StatementId) {
        self.arriving.remove(&statement);
        if let (Some(index), Some(pending)) = (&mut self.index, self.pending.remove(&statement)) {
            pending.undo(index);
        }
        for segment in &mut self.segments {
            segment.abort(statement);
        }
    }

    fn tell_planners(&mut self) {
        let columns = self.object.schema.fields().len();
        let statistics = self.tally.of(&self.segments, columns);
        self.object.set_partition_statistics(self.owner, statistics);
    }

    /// The rows of a snapshot, frozen. Readers like few chunks, so the append buffer is settled first, if memory allows.
    pub fn view(
        &mut self,
        snapshot: Timestamp,
        home: Home<'_>,
        horizon: Timestamp,
    ) -> Vec<ChunkView> {
        let mut views = Vec::new();
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        for segment in &mut self.segments {
            let _ = segment.settle(recoder);
            views.extend(segment.view(snapshot));
        }
        views
    }

    /// The chunk with the row that has a key at a snapshot, or none if no row has it. `None`: the index does not tell.
    pub fn view_of_key(&mut self, key: &Keys, snapshot: Timestamp) -> Option<Vec<ChunkView>> {
        let index = self.index.as_mut()?;
        let row = index.get(key, 0);
        index.reorganizable().tend(POINT_LOOKUPS);
        match row {
            Some(row) => {
                let segment = self.segments.iter().find(|one| one.id() == row.segment())?;
                segment.view_of_row(row, snapshot).map(|view| vec![view])
            }
            None => (self.keys_removed <= snapshot).then(Vec::new),
        }
    }

    /// The index, if the object has a key.
    pub fn index(&mut self) -> Option<&mut dyn Reorganizable> {
        self.index.as_mut().map(PrimaryIndex::reorganizable)
    }

    /// The segments as they are, append buffers unsettled.
    pub fn segment_views(&self) -> Vec<SegmentView> {
        let segments = self.segments.iter();
        segments
            .map(|segment| SegmentView::new(segment, self.owner))
            .collect()
    }

    /// A fragment joins the pass; returns the chunk to begin with. Alone it begins at the front.
    pub fn board(&mut self) -> usize {
        self.riders += 1;
        if self.riders == 1 {
            self.pass = 0;
        }
        self.pass
    }

    /// The pass has come to `chunk`.
    pub fn advance(&mut self, chunk: usize) {
        self.pass = chunk;
    }

    /// A fragment has left the pass.
    pub fn alight(&mut self) {
        self.riders -= 1;
    }
}

fn recoder<'a>(
    object: &'a DataObject,
    known: &'a [Option<Dictionary>],
    coding: &'a [Option<Dictionary>],
    home: Home<'a>,
    horizon: Timestamp,
) -> Recoder<'a> {
    Recoder {
        horizon,
        schema: &object.schema,
        known,
        coding,
        home,
    }
}
