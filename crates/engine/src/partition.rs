//! What one AEU owns of one data object.

use crate::inspect::SegmentView;
use crate::object::DataObject;
use crate::statistics::Tally;
use eris_column::{Dictionary, Home};
use eris_store::{ChunkView, Encoder, Recoder, Segment};
use eris_types::{AeuId, SegmentId, StatementId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A segment takes no more rows once it has so many chunks (four million rows): what is moved or re-coded in one piece
/// should take milliseconds.
const SEGMENT_CHUNKS: usize = 64;

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
    /// The chunk that the shared pass has come to, and how many fragments take part in it.
    pass: usize,
    riders: usize,
}

impl Partition {
    pub fn new(object: Arc<DataObject>, owner: AeuId) -> Self {
        Partition {
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

    pub fn stage(&mut self, statement: StatementId, rows: Encoder) {
        if (self.segments.last()).is_none_or(|last| last.chunks() >= SEGMENT_CHUNKS) {
            let id = SegmentId(NEXT_SEGMENT.fetch_add(1, Ordering::Relaxed));
            self.segments.push(Segment::new(id));
        }
        let open = self.segments.last_mut().expect("opened above");
        open.stage(statement, rows);
    }

    /// Cannot fail: all that can was done when the rows were staged.
    pub fn commit(&mut self, statement: StatementId, at: Timestamp, home: Home<'_>) {
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home);
        for segment in &mut self.segments {
            if segment.commit(statement, at) > 0 && segment.is_unsettled() {
                // Short of memory, the append buffer stays as it is; the next reader or writer tries again.
                let _ = segment.settle(recoder);
            }
        }
        self.tell_planners();
    }

    pub fn abort(&mut self, statement: StatementId) {
        for segment in &mut self.segments {
            segment.abort(statement);
        }
    }

    fn tell_planners(&mut self) {
        let columns = self.object.schema.fields().len();
        let statistics = self.tally.of(&self.segments, columns);
        self.object.set_partition_statistics(self.owner, statistics);
    }

    /// All committed rows, frozen. Readers like few chunks, so the append buffer is settled first, if memory allows.
    pub fn view(&mut self, home: Home<'_>) -> Vec<ChunkView> {
        let mut views = Vec::new();
        let recoder = recoder(&self.object, &self.known, &self.dictionaries, home);
        for segment in &mut self.segments {
            let _ = segment.settle(recoder);
            views.extend(segment.view());
        }
        views
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
) -> Recoder<'a> {
    Recoder {
        schema: &object.schema,
        known,
        coding,
        home,
    }
}
