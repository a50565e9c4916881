//! The keys that one AEU owns: segments in the order of their keys, and what has lately been another's.
//!
//! ```text
//! batch ─▶ directory ─┬─▶ segment ─▶ executed
//!                     └─▶ nobody's here ─▶ `rest` of the batch ─▶ whoever has it by now
//! ```
//!
//! Keys that go to another node are out of the directory from the moment they are sent. Only once it is known which of
//! them have been taken in are they out of the segment; the rest is used here again.

mod execute;
mod reorganize;

use super::layout::PartitionTable;
use super::object::KeyObject;
use super::segment::{Piece, Segment};
use super::shift::Shift;
use crate::held::reorganize::Watched;
use eris_index::IndexError;
use eris_numa::{Extent, NodeMemory};
use eris_route::{RangeTable, Split};
use eris_types::AeuId;
use std::ops::Range;
use std::sync::Arc;

/// Keys are not moved when less than one part of so many of all memory is left.
const SPARED: u64 = 16;

/// The position of no segment in the directory.
const NOBODY: u32 = u32::MAX;

/// The part of an index that belongs to one AEU.
pub(crate) struct OwnedKeys {
    object: Arc<KeyObject>,
    aeu: AeuId,
    /// For the trees of new segments.
    memory: NodeMemory,
    /// The newest table, as far as this owner knows.
    table: Arc<PartitionTable>,
    /// Ascending by key.
    pub(crate) segments: Vec<Segment>,
    /// From keys to positions of segments, or [`NOBODY`].
    directory: Arc<RangeTable<u64, u32>>,
    /// What was given away, to whom, until a table of this version says so, too.
    given: Vec<Given>,
    /// What is being given away.
    leaving: Option<Leaving>,
    /// For how many keys it was ever asked.
    asked: u64,
    split: Split,
    /// Keys of entries, or of several batches; and the runs of keys that lie in one segment.
    keys: Vec<u64>,
    runs: Vec<(u32, Range<usize>)>,
}

struct Given {
    keys: Shift,
    version: u64,
}

/// Keys that another owner shall have.
struct Leaving {
    /// Other keys must not be added to their segments meanwhile.
    low: u64,
    high: u64,
    to: AeuId,
    /// Those of them, side by side at one end of a segment, that have been sent: the other owner has them, or will once
    /// it comes to it. And about how many entries that is.
    sent: Option<(u64, u64)>,
    entries: usize,
}

impl Leaving {
    fn sent(&self) -> Option<Shift> {
        let to = self.to;
        self.sent.map(|(low, high)| Shift { low, high, to })
    }
}

impl OwnedKeys {
    /// What the table says that this AEU has, without any entry.
    pub fn new(object: Arc<KeyObject>, aeu: AeuId, memory: &NodeMemory) -> Self {
        object.measured.note(aeu);
        let table = object.layout.newest();
        let empty = || Watched::new(memory.clone(), object.id);
        let segments = table
            .of(aeu)
            .map(|(low, high)| Segment::new(low, high, empty()));
        let segments: Vec<_> = segments.collect();
        OwnedKeys {
            directory: directory(&segments, None),
            segments,
            table,
            aeu,
            memory: memory.clone(),
            given: Vec::new(),
            leaving: None,
            asked: 0,
            split: Split::default(),
            keys: Vec::new(),
            runs: Vec::new(),
            object,
        }
    }

    pub fn aeu(&self) -> AeuId {
        self.aeu
    }

    pub fn object(&self) -> &Arc<KeyObject> {
        &self.object
    }

    /// Notes that its keys are used, or its segments changed.
    pub fn note_work(&self) {
        self.object.measured.note(self.aeu);
    }

    /// For how many keys it was ever asked.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Ascending by key.
    pub fn segments(&mut self) -> &mut [Segment] {
        &mut self.segments
    }

    /// The memory that its trees lie in.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        let trees = self.segments.iter().map(Segment::watched);
        trees.for_each(|tree| tree.extents(all));
    }

    /// The segment that has a key.
    pub fn segment(&mut self, key: u64) -> Option<&mut Segment> {
        self.segments.iter_mut().find(|segment| segment.has(key))
    }

    /// A segment that was another owner's.
    ///
    /// # Panics
    /// If somebody here has some of its keys.
    pub fn link(&mut self, segment: Segment) {
        let at = self
            .segments
            .partition_point(|other| other.high < segment.low);
        let next = self.segments.get(at);
        assert!(
            next.is_none_or(|next| segment.high < next.low),
            "two have one key"
        );
        self.forget_given(segment.low, segment.high);
        self.segments.insert(at, segment);
        self.renew();
    }

    /// Takes the segment out that begins with this key, for another owner.
    pub fn unlink(&mut self, low: u64, to: AeuId) -> Segment {
        let at = self.segments.iter().position(|segment| segment.low == low);
        let segment = self.segments.remove(at.expect("a segment of this owner"));
        self.note_given(segment.low, segment.high, to);
        segment
    }

    /// These keys begin to leave for another owner.
    pub fn begin_to_leave(&mut self, low: u64, high: u64, to: AeuId) {
        self.leaving = Some(Leaving {
            low,
            high,
            to,
            sent: None,
            entries: 0,
        });
    }

    /// What was to leave has left, or stays.
    pub fn end_leaving(&mut self) {
        self.leaving = None;
    }

    /// A piece is being sent to the owner that its keys leave for, beside those that were before: from here on it is
    /// asked for them.
    ///
    /// # Panics
    /// If nothing is leaving.
    pub fn lend(&mut self, piece: &Piece) {
        let leaving = self.leaving.as_mut().expect("its keys are leaving");
        leaving.entries += piece.entries.len();
        leaving.sent = Some(match leaving.sent {
            None => (piece.low, piece.high),
            Some((low, high)) => (low.min(piece.low), high.max(piece.high)),
        });
        self.renew();
    }

    /// Of what was sent these keys, with about so many entries, are the other owner's now; all else is used here again.
    ///
    /// # Panics
    /// If nothing is leaving.
    pub fn end_copy(&mut self, taken: Option<(u64, u64)>, entries: usize) {
        let leaving = self.leaving.as_mut().expect("its keys are leaving");
        let to = leaving.to;
        (leaving.sent, leaving.entries) = (None, 0);
        if let Some((low, high)) = taken {
            let segment = self.segment(low).expect("a segment of this owner");
            match (segment.low, segment.high) == (low, high) {
                true => drop(self.unlink(low, to)),
                false => {
                    segment.shrink(low, high, entries);
                    self.note_given(low, high, to);
                }
            }
        }
        self.renew();
    }

    /// Takes in keys that were another owner's; if they `follow` others, into the same segment.
    ///
    /// # Errors
    /// No memory: they are still the other owner's.
    ///
    /// # Panics
    /// If somebody here has some of them.
    pub fn take_in(&mut self, piece: &Piece, follow: bool) -> Result<(), IndexError> {
        self.check_memory()?;
        let Piece { low, high, .. } = *piece;
        let leaving = self.leaving.as_ref();
        let fits = |segment: &&mut Segment| segment.adjoins(piece) && !is_among(segment, leaving);
        let mut segments = self.segments.iter_mut().filter(|_| follow);
        let Some(segment) = segments.find(fits) else {
            self.link(Segment::of(piece, self.new_tree())?);
            return Ok(());
        };
        segment.take_in(piece)?;
        let is_disjoint = |pair: &[Segment]| pair[0].high < pair[1].low;
        assert!(
            self.segments.windows(2).all(is_disjoint),
            "two have one key"
        );
        self.forget_given(low, high);
        self.renew();
        Ok(())
    }

    /// Puts a piece of a segment, from one of its ends, into a segment of its own; if there is a `neighbour` beside it,
    /// into that one's.
    ///
    /// # Errors
    /// No memory: nothing has changed.
    ///
    /// # Panics
    /// If it is in no segment here, or not at its end.
    pub fn part(&mut self, piece: &Piece, neighbour: Option<u64>) -> Result<(), IndexError> {
        self.check_memory()?;
        let mut segments = self.segments.iter();
        let from = segments.position(|segment| segment.has(piece.low));
        let from = from.expect("a segment of this owner");
        let is_part = |one: &&mut Segment| neighbour.is_some_and(|key| one.has(key));
        let mut part = self.segments.iter_mut().filter(is_part);
        match part.find(|segment| segment.adjoins(piece)) {
            Some(part) => {
                part.take_in(piece)?;
                self.segments[from].shrink(piece.low, piece.high, piece.entries.len());
            }
            None => {
                let part = Segment::of(piece, self.new_tree())?;
                self.segments[from].shrink(piece.low, piece.high, piece.entries.len());
                let at = (self.segments).partition_point(|other| other.high < piece.low);
                self.segments.insert(at, part);
            }
        }
        self.renew();
        Ok(())
    }

    /// Moves do not take what those who write may need: both sides of a move have some memory at times that only the
    /// other one can use.
    fn check_memory(&self) -> Result<(), IndexError> {
        let budget = self.memory.budget();
        let spared = budget.limit() / SPARED;
        if budget.free() < spared {
            drop(budget.try_reserve(spared)?);
        }
        Ok(())
    }

    fn new_tree(&self) -> Watched<u64> {
        Watched::new(self.memory.clone(), self.object.id)
    }

    /// Whether keys of segments are leaving.
    pub(crate) fn is_changing(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| is_among(segment, self.leaving.as_ref()))
    }

    /// The entries of a segment without those that were sent.
    pub fn len_of(&self, segment: &Segment) -> usize {
        let leaving = self.leaving.as_ref();
        let sent = leaving.filter(|leaving| leaving.sent.is_some_and(|(low, _)| segment.has(low)));
        let sent = sent.map_or(0, |leaving| leaving.entries);
        segment.len().saturating_sub(sent)
    }

    /// About how many entries the segments have of which keys are leaving, without those that were sent.
    pub fn leaving(&self) -> usize {
        let segments = self.segments.iter();
        let segments = segments.filter(|segment| is_among(segment, self.leaving.as_ref()));
        segments.map(|segment| self.len_of(segment)).sum()
    }

    /// These keys are its own again.
    fn forget_given(&mut self, low: u64, high: u64) {
        (self.given).retain(|given| given.keys.high < low || given.keys.low > high);
    }

    fn note_given(&mut self, low: u64, high: u64, to: AeuId) {
        self.object.layout.refresh(&mut self.table);
        let newest = self.table.version;
        self.given.retain(|given| given.version > newest);
        self.given.push(Given {
            keys: Shift { low, high, to },
            version: newest + 1,
        });
        self.renew();
    }

    pub(crate) fn renew(&mut self) {
        self.note_work();
        let leaving = self.leaving.as_ref();
        let sent = leaving.and_then(|leaving| leaving.sent);
        self.directory = directory(&self.segments, sent);
    }

    /// Who has a key that nobody has here, and what the tables do not say yet of that.
    ///
    /// # Panics
    /// If that is nobody elsewhere either.
    pub fn holder(&mut self, key: u64) -> (AeuId, Option<Shift>) {
        let has = |shift: &Shift| (shift.low..=shift.high).contains(&key);
        let sent = self.leaving.as_ref().and_then(Leaving::sent);
        self.object.layout.refresh(&mut self.table);
        let given = self.given.iter().rev();
        let given = given.filter(|given| given.version > self.table.version);
        let mut news = sent.into_iter().chain(given.map(|given| given.keys));
        if let Some(shift) = news.find(has) {
            return (shift.to, Some(shift));
        }
        let holder = self.table.owner(key);
        assert!(holder != self.aeu, "key {key} has been lost");
        (holder, None)
    }
}

/// Whether one of its keys is among those that are leaving.
fn is_among(segment: &Segment, leaving: Option<&Leaving>) -> bool {
    leaving.is_some_and(|leaving| leaving.low <= segment.high && segment.low <= leaving.high)
}

/// From keys to segments, but for those that were sent.
fn directory(segments: &[Segment], sent: Option<(u64, u64)>) -> Arc<RangeTable<u64, u32>> {
    let mut bounds: Vec<(u64, u32)> = Vec::with_capacity(2 * segments.len() + 3);
    let mut add = |low: u64, at: u32| match bounds.last_mut() {
        Some(last) if last.0 == low => last.1 = at,
        _ => bounds.push((low, at)),
    };
    add(0, NOBODY);
    for (segment, at) in segments.iter().zip(0..) {
        add(segment.low, at);
        if let Some((low, high)) = sent.filter(|(low, _)| segment.has(*low)) {
            add(low, NOBODY);
            if high < segment.high {
                add(high + 1, at);
            }
        }
        if let Some(next) = segment.high.checked_add(1) {
            add(next, NOBODY);
        }
    }
    Arc::new(RangeTable::new(bounds).expect("segments are disjoint, and in order"))
}
