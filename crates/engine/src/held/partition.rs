//! What one AEU owns of one data object.

mod change;
mod fetch;
mod keys;
mod logged;
mod offer;
mod prepare;
mod restored;

pub(crate) use change::{Changed, Expected, New, RowChange, Run};
pub(crate) use fetch::Fetched;
pub(crate) use keys::{KeySelection, OfferedRows};
pub(crate) use offer::OfferedChunk;
pub(crate) use prepare::{Prepare, Prepared};
pub(crate) use restored::{Misplaced, pass_segment};

use crate::durability::Log;
use crate::error::EngineError;
use crate::held::deleted::DeletedRows;
use crate::held::index_part::IndexPart;
use crate::held::primary::{PrimaryIndex, SharedKeys};
use crate::held::reorganize::Reorganizable;
use crate::held::segment_view::SegmentView;
use crate::held::superseded::{Superseded, SupersedingCommit, key_bytes};
use crate::held::unique::Pending;
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::object::profile::Profiler;
use crate::object::statement::Statement;
use crate::object::statistics::Tally;
use crate::sequencer::Seen;
use arrow_array::ArrayRef;
use arrow_select::concat::concat;
use eris_column::{Dictionary, EncodeError, KeyOrder, ObjectMemory, Selection};
use eris_index::IndexError;
use eris_store::{Adoption, ChunkView, Encoder, Recoder, Rewrite, Segment, StoreError};
use eris_types::{AeuId, ColumnId, RowId, SegmentId, StatementId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A segment takes no more rows once it has so many chunks (four million rows): what is moved or re-coded in one piece
/// should take milliseconds.
const SEGMENT_CHUNKS: usize = 64;

/// Segment numbers, unique in the process. Only ever incremented.
static NEXT_SEGMENT: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Partition {
    pub object: Arc<DataObject>,
    pub(crate) owner: AeuId,
    /// In the order in which they were opened; the last one takes new rows.
    pub(crate) segments: Vec<Segment>,
    /// This AEU's replicas of the column dictionaries; `None` where text is stored as it is.
    dictionaries: Vec<Option<Dictionary>>,
    /// The same, but of a column whose text is stored as it is by now, the last that was used.
    pub(crate) known: Vec<Option<Dictionary>>,
    tally: Tally,
    profiler: Profiler,
    /// If the object has a key.
    pub(crate) index: Option<PrimaryIndex>,
    /// The newest commit with which a key may have gone from the index, so that older snapshots miss it.
    keys_removed: Timestamp,
    /// What the index does not know any more of what is visible still.
    superseded: Superseded,
    /// Rows that it does not know any more.
    pub(crate) deleted: DeletedRows,
    /// The keys of statements that are still writing.
    arriving: HashMap<StatementId, Pending>,
    /// What a statement that is about to commit does to the keys; and statements that were given up so late.
    pub(crate) pending: HashMap<StatementId, Pending>,
    /// Who is [about to commit](prepare) while it shares the object's write lock; nobody else may change keys
    /// meanwhile.
    prepared: Option<Arc<Statement>>,
    /// Keys that a statement gives another owner when it commits, and those that it brings.
    offered: Option<keys::Offered>,
    adopted: Option<(StatementId, SharedKeys)>,
    /// Where commits are logged, if the object is durable.
    log: Option<Log>,
    /// What statements that have not committed will say.
    unlogged: HashMap<StatementId, logged::Unlogged>,
    /// The secondary indexes.
    pub(crate) secondary: Vec<IndexPart>,
    /// The chunk that the shared pass has come to, and how many fragments take part in it.
    pass: usize,
    scans_in_pass: usize,
}

impl Partition {
    pub fn new(
        object: Arc<DataObject>,
        owner: AeuId,
        log: Option<&Log>,
        home: ObjectMemory<'_>,
    ) -> Self {
        let types = object.key.iter();
        let types = types.map(|column| object.schema.field(column.index()).data_type());
        let index = (!object.key.is_empty()).then(|| PrimaryIndex::new(types, home));
        let indexes = object.indexes();
        let secondary = indexes
            .iter()
            .map(|index| IndexPart::empty(index.clone(), &object, owner, home));
        Partition {
            secondary: secondary.collect(),
            index,
            keys_removed: Timestamp::ZERO,
            superseded: Superseded::default(),
            deleted: DeletedRows::default(),
            arriving: HashMap::new(),
            pending: HashMap::new(),
            prepared: None,
            log: log.filter(|_| object.is_durable).cloned(),
            unlogged: HashMap::new(),
            offered: None,
            adopted: None,
            dictionaries: object.dictionaries(),
            known: object.dictionaries(),
            object,
            owner,
            segments: Vec::new(),
            tally: Tally::default(),
            profiler: Profiler::default(),
            pass: 0,
            scans_in_pass: 0,
        }
    }

    pub fn dictionaries(&self) -> &[Option<Dictionary>] {
        &self.dictionaries
    }

    /// Takes in what the column's dictionary has become; none if its text gets no codes any more. Answers to two
    /// statements may come in another order than they were given, so an older one changes nothing.
    pub fn set_dictionary(&mut self, column: usize, dictionary: Option<Dictionary>) {
        let Some(dictionary) = dictionary else {
            self.dictionaries[column] = None;
            return;
        };
        let is_news = |held: &Dictionary| held.len() < dictionary.len();
        if self.dictionaries[column].as_ref().is_some_and(is_news) {
            self.dictionaries[column] = Some(dictionary.clone());
        }
        if self.known[column].as_ref().is_none_or(is_news) {
            self.known[column] = Some(dictionary);
        }
    }

    pub fn write(
        &mut self,
        statement: StatementId,
        rows: Encoder,
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        let pieces = rows.batches().iter();
        let pieces = pieces.map(|rows| self.object.key_columns(rows));
        let keys = (self.index.is_some()).then(|| Keys::of_pieces(&pieces.collect::<Vec<_>>()));
        let first = self.place(statement, rows, !self.secondary.is_empty())?;
        if let Some(keys) = keys {
            let arriving = self.arriving.entry(statement).or_default();
            arriving.add(keys, first, home.memory.budget())?;
        }
        self.store_forms(statement, home)
    }

    /// Writes rows and enters them into the secondary indexes, for which they must get their ids at once. Returns the
    /// id of the first, if they get ids. On error nothing is written or entered.
    fn place(
        &mut self,
        statement: StatementId,
        rows: Encoder,
        with_ids: bool,
    ) -> Result<Option<RowId>, StoreError> {
        let open = self.open(statement);
        if !self.secondary.is_empty() {
            let columns = self.indexed_columns(&rows)?;
            let first = self.segments[open].next_id();
            self.enter(&columns, first).map_err(index_error)?;
        }
        let segment = &mut self.segments[open];
        segment.insert_uncommitted(statement, rows);
        Ok(with_ids.then(|| segment.number(statement)[0]))
    }

    /// Writes rows that were another partition's. On error nothing is written.
    pub fn adopt(
        &mut self,
        statement: StatementId,
        rows: Adoption,
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        assert!(self.index.is_none(), "rows with a key come with it");
        let columns: Vec<Option<ArrayRef>> = (rows.columns().iter().enumerate())
            .map(|(at, column)| {
                let all = Selection::all(rows.rows());
                let data_type = self.object.schema.field(at).data_type();
                let known = self.known[at].as_ref();
                (self.is_indexed(at)).then(|| column.select(&all, data_type, known))
            })
            .collect();
        let open = self.open(statement);
        if !self.secondary.is_empty() {
            let first = self.segments[open].next_id();
            self.enter(&columns, first).map_err(index_error)?;
        }
        let segment = &mut self.segments[open];
        segment.adopt(statement, rows);
        if !self.secondary.is_empty() {
            segment.number(statement);
        }
        self.store_forms(statement, home)
    }

    /// Takes in what the columns' dictionaries have become, so that rows of other partitions can be read; text of
    /// `plain` columns gets no codes any more.
    pub fn refresh_dictionaries(&mut self, plain: &[bool]) {
        let newest = self.object.dictionaries();
        for (column, newest) in newest.into_iter().enumerate() {
            let Some(newest) = newest else {
                continue;
            };
            let known = self.known[column].as_ref();
            let is_news = known.is_none_or(|known| known.len() < newest.len());
            if plain[column] {
                self.dictionaries[column] = None;
            } else if is_news && self.dictionaries[column].is_some() {
                self.dictionaries[column] = Some(newest.clone());
            }
            if is_news {
                self.known[column] = Some(newest);
            }
        }
    }

    /// What rows are decoded and encoded with here.
    pub fn recoder<'a>(&'a self, home: ObjectMemory<'a>, horizon: Timestamp) -> Recoder<'a> {
        recoder(&self.object, &self.known, &self.dictionaries, home, horizon)
    }

    /// The columns that secondary indexes are of.
    fn indexed_columns(&self, rows: &Encoder) -> Result<Vec<Option<ArrayRef>>, StoreError> {
        let columns = 0..self.object.schema.fields().len();
        let column = |column: usize| {
            let pieces = rows.batches().iter();
            let pieces: Vec<_> = pieces.map(|rows| rows.column(column)).collect();
            match &pieces[..] {
                [piece] => Ok(ArrayRef::clone(piece)),
                _ => {
                    let pieces: Vec<_> = pieces.into_iter().map(AsRef::as_ref).collect();
                    concat(&pieces)
                }
            }
        };
        let columns = columns.map(|at| self.is_indexed(at).then(|| column(at)).transpose());
        Ok(columns.collect::<Result<_, _>>()?)
    }

    /// The segment that takes new rows of a statement.
    fn open(&mut self, statement: StatementId) -> usize {
        let full = |one: &Segment| one.chunks() >= SEGMENT_CHUNKS || one.is_exhausted();
        let free = |one: &Segment| !full(one) && self.is_free(one, statement);
        let found = match self.segments.last() {
            Some(last) if free(last) => Some(self.segments.len() - 1),
            // Rows that get their ids later get them in the order in which segments were opened.
            _ if self.secondary.is_empty() => None,
            _ => self.segments.iter().position(free),
        };
        found.unwrap_or_else(|| {
            let id = SegmentId(NEXT_SEGMENT.fetch_add(1, Ordering::Relaxed));
            self.segments.push(Segment::new(id));
            self.segments.len() - 1
        })
    }

    /// Whether a statement may write rows in a segment. Ids ascend in the order of commits, which is that of checks but
    /// not of writing: of rows that get their ids when they are written, a segment takes those of one statement at a
    /// time, and no others meanwhile.
    fn is_free(&self, segment: &Segment, statement: StatementId) -> bool {
        let mut uncommitted_statements = segment.uncommitted_statements();
        let mut own = segment.uncommitted_rows(statement);
        match self.secondary.is_empty() {
            true => !uncommitted_statements.any(|other| {
                let mut rows = segment.uncommitted_rows(other);
                let is_checked = other == statement || self.pending.contains_key(&other);
                !is_checked && rows.any(|(_, first)| first.is_some())
            }),
            false => {
                uncommitted_statements.all(|other| other == statement)
                    && own.all(|(_, first)| first.is_some())
            }
        }
    }

    /// Forgets statements that were given up: they have had the write lock, and their Abort is on the way.
    fn forget_others(&mut self, statement: StatementId) {
        let others = self.pending.keys().copied();
        let dead: Vec<_> = others.filter(|other| *other != statement).collect();
        dead.into_iter().for_each(|dead| self.abort(dead));
    }

    /// All rows of the statement are written: its keys can be [checked](Self::check). It has the write lock.
    pub fn begin_check(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        if self.index.is_none() {
            return Ok(());
        }
        self.forget_others(statement);
        self.note_unentered(statement);
        let arrived = self.arriving.remove(&statement).unwrap_or_default();
        let pending = self
            .pending
            .entry(statement)
            .insert_entry(arrived)
            .into_mut();
        let budget = home.memory.budget();
        for segment in &self.segments {
            for (chunk, positions, ids) in segment.uncommitted_deletes(statement) {
                let mut rows = Selection::none(chunk.rows());
                positions.into_iter().for_each(|row| rows.insert(row));
                let columns = self.object.key.iter().map(|column| {
                    let data_type = self.object.schema.field(column.index()).data_type();
                    let dictionary = self.known[column.index()].as_ref();
                    chunk.column(*column).select(&rows, data_type, dictionary)
                });
                let columns: Vec<_> = columns.collect();
                pending.delete(Keys::of(&columns, 0, ids.len()), ids, budget)?;
            }
        }
        let segments = self.segments.iter_mut();
        let ids = segments.flat_map(|segment| segment.number(statement));
        let index = self.index.as_ref().expect("looked above");
        pending.begin_check(ids, index);
        Ok(())
    }

    /// Checks some more keys of the statement, and takes room in the log behind the last; says whether all is done.
    pub fn check(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<bool, EngineError> {
        let are_checked = match (&mut self.index, self.pending.get_mut(&statement)) {
            (Some(index), Some(pending)) => pending.check(index, &self.object, home)?,
            _ => true,
        };
        Ok(are_checked && self.reserve_room(statement, home)?)
    }

    /// Cannot fail: all that can was done when the rows were written. Says whether it is time to
    /// [merge](Self::merge).
    #[must_use]
    pub fn commit(
        &mut self,
        statement: StatementId,
        at: Timestamp,
        home: ObjectMemory<'_>,
        seen: Seen,
    ) -> bool {
        let horizon = seen.horizon;
        self.say(statement, at);
        self.end_prepared(statement);
        if let (Some(index), Some(pending)) = (&mut self.index, self.pending.remove(&statement)) {
            if !pending.deleted_ids().is_empty() {
                self.deleted.add(pending.deleted_ids(), at, horizon);
            }
            match seen.behind {
                None => {
                    if !pending.deleted_ids().is_empty() {
                        self.keys_removed = at;
                    }
                    pending.commit(index, |_, _, _| {});
                }
                Some(visible) => {
                    let mut commit = SupersedingCommit::at(at);
                    commit.added = pending.added().collect();
                    commit.replaced = pending.replaced().collect();
                    pending.commit(index, |keys, row, id| {
                        commit.removed.push((key_bytes(keys, row), id));
                    });
                    self.supersede(commit, visible, home);
                }
            }
        }
        self.commit_keys(statement, at);
        self.note_unentered(statement);
        let mut may_merge = false;
        for segment in &mut self.segments {
            let committed = segment.commit(statement, at, horizon, home.memory.budget());
            may_merge |= committed.inserted > 0 && segment.needs_merge();
        }
        self.tell_planners();
        may_merge
    }

    /// Keeps what a commit has done to the keys, until it is visible.
    fn supersede(&mut self, commit: SupersedingCommit, visible: Timestamp, home: ObjectMemory<'_>) {
        if let Some(removed) = self.superseded.forget(visible) {
            self.keys_removed = removed;
        }
        self.superseded.add(commit, home.memory.budget());
    }

    /// Merges append buffers that have become long.
    pub fn merge(&mut self, home: ObjectMemory<'_>, horizon: Timestamp) {
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        for segment in self
            .segments
            .iter_mut()
            .filter(|segment| segment.needs_merge())
        {
            // Short of memory, the append buffer stays as it is; the next reader or writer tries again.
            let _ = segment.merge(recoder);
        }
        self.tell_planners();
    }

    /// Forgets what nobody can see, as far as that is done at once; what is worth rewriting is begun and given back.
    pub fn collect(&mut self, home: ObjectMemory<'_>, horizon: Timestamp) -> Option<Rewrite> {
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        let mut rewrite = None;
        for segment in &mut self.segments {
            // Without memory the append buffer keeps its garbage until it is merged.
            let _ = segment.merge(recoder);
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
        home: ObjectMemory<'_>,
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

    /// Stores a column of the next sealed chunk, of a segment by its number, by an order of keys; says how many of its
    /// rows stay as they are. `None`: there is none left.
    pub fn recode(
        &mut self,
        next: &mut (usize, usize),
        column: ColumnId,
        order: &Arc<KeyOrder>,
        home: ObjectMemory<'_>,
    ) -> Result<Option<u64>, EncodeError> {
        let (segment, chunk) = *next;
        let Some(segment_there) = self.segments.get_mut(segment) else {
            return Ok(None);
        };
        let left = segment_there.recode(chunk, column, order, home)?;
        *next = match left {
            Some(_) => (segment, chunk + 1),
            None => (segment + 1, 0),
        };
        Ok(Some(left.unwrap_or(0)))
    }

    /// Takes stock again, after columns were [recoded](Self::recode), all chunks of them or some.
    pub fn recount(&mut self) {
        self.segments.iter_mut().for_each(Segment::recount);
        self.tally.reset();
        self.tell_planners();
    }

    pub fn abort(&mut self, statement: StatementId) {
        self.end_prepared(statement);
        self.unlogged.remove(&statement);
        self.arriving.remove(&statement);
        if let (Some(index), Some(pending)) = (&mut self.index, self.pending.remove(&statement)) {
            pending.undo(index);
        }
        self.abort_keys(statement);
        self.leave(statement);
        for segment in &mut self.segments {
            segment.abort(statement);
        }
    }

    fn tell_planners(&mut self) {
        let columns = self.object.schema.fields().len();
        let statistics = self.tally.of(&self.segments, columns);
        self.object
            .set_partition_statistics(self.owner, &statistics);
        let table = self.object.readable(&self.known);
        let profile = (self.profiler).catch_up(&self.segments, &statistics, table);
        if let Some(profile) = profile {
            self.object.set_partition_profile(self.owner, profile);
        }
    }

    /// Tells planners what the values of all rows are like, also of those in append buffers.
    pub fn analyze(&mut self) {
        let statistics = self.object.partition_statistics(self.owner);
        let table = self.object.readable(&self.known);
        let profile = (self.profiler).all(&self.segments, &statistics, table);
        self.object.set_partition_profile(self.owner, profile);
    }

    /// The rows of a snapshot, frozen. Readers like few chunks, so a long append buffer is merged first, if memory
    /// allows.
    pub fn view(
        &mut self,
        snapshot: Timestamp,
        home: ObjectMemory<'_>,
        horizon: Timestamp,
    ) -> Vec<ChunkView> {
        let mut views = Vec::new();
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home, horizon);
        for segment in &mut self.segments {
            if segment.is_slow_to_read() {
                let _ = segment.merge(recoder);
            }
            views.extend(segment.view(snapshot));
        }
        views
    }

    /// The index, if the object has a key.
    pub fn index(&mut self) -> Option<&mut dyn Reorganizable> {
        self.index.as_mut().map(PrimaryIndex::reorganizable)
    }

    /// The segments as they are, append buffers not merged.
    pub fn segment_views(&self) -> Vec<SegmentView> {
        let segments = self.segments.iter();
        segments
            .map(|segment| SegmentView::new(segment, self.owner))
            .collect()
    }

    /// A fragment joins the pass; returns the chunk to begin with. Alone it begins at the front.
    pub fn join_pass(&mut self) -> usize {
        self.scans_in_pass += 1;
        if self.scans_in_pass == 1 {
            self.pass = 0;
        }
        self.pass
    }

    /// The pass has come to `chunk`.
    pub fn advance(&mut self, chunk: usize) {
        self.pass = chunk;
    }

    /// A fragment has left the pass.
    pub fn leave_pass(&mut self) {
        self.scans_in_pass -= 1;
    }
}

fn index_error(error: IndexError) -> StoreError {
    match error {
        IndexError::OutOfMemory(denied) => StoreError::OutOfMemory(denied),
        other => StoreError::Index(other.to_string()),
    }
}

fn recoder<'a>(
    object: &'a DataObject,
    known: &'a [Option<Dictionary>],
    coding: &'a [Option<Dictionary>],
    home: ObjectMemory<'a>,
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
