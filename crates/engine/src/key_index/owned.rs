//! The keys that one AEU owns: segments in the order of their keys, and what has lately been another's.
//!
//! ```text
//! batch ─▶ directory ─┬─▶ segment ─▶ executed
//!                     └─▶ nobody's here ─▶ `rest` of the batch ─▶ whoever has it by now
//! ```

use super::KeyObject;
use super::batch::{KeyBatch, Operation, Rest, Span};
use super::layout::Table;
use super::segment::Segment;
use crate::reorganize::{IndexReorganization, Reorganizable, Watched};
use eris_numa::{Extent, NodeMemory};
use eris_route::{Header, RangeTable, Split};
use eris_types::{AeuId, NodeId};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// Operations on fewer keys of a segment than this gain by being done together with others.
const FEW: usize = 32;

/// The position of no segment in the directory.
const NOBODY: u32 = u32::MAX;

/// The part of an index that belongs to one AEU.
pub(crate) struct OwnedKeys {
    object: Arc<KeyObject>,
    aeu: AeuId,
    /// The newest table, as far as this owner knows.
    table: Arc<Table>,
    /// Ascending by key.
    pub(super) segments: Vec<Segment>,
    /// From keys to positions of segments, or [`NOBODY`].
    directory: Arc<RangeTable<u64, u32>>,
    /// What was given away, to whom, until a table of this version says so, too.
    given: Vec<Given>,
    /// Keys of a segment, up to its end or from its beginning, for which everything has to wait, and what waits.
    closed: Option<(u64, u64)>,
    held: Vec<(Header, Box<KeyBatch>)>,
    /// For how many keys it was asked since a transfer looked last.
    asked: usize,
    split: Split,
    /// Keys of entries, or of several batches; and the runs of keys that lie in one segment.
    keys: Vec<u64>,
    runs: Vec<(u32, Range<usize>)>,
}

struct Given {
    low: u64,
    high: u64,
    to: AeuId,
    version: u64,
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
            given: Vec::new(),
            closed: None,
            held: Vec::new(),
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

    /// For how many keys it was asked since the last call.
    pub fn take_asked(&mut self) -> usize {
        mem::take(&mut self.asked)
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
        self.given
            .retain(|given| given.high < segment.low || given.low > segment.high);
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

    /// From here on whatever is to be done with these keys, which are some of one segment's, has to wait.
    pub fn close(&mut self, low: u64, high: u64) {
        self.closed = Some((low, high));
        self.renew();
    }

    /// No keys have to wait any more; what has waited.
    pub fn open(&mut self) -> Vec<(Header, Box<KeyBatch>)> {
        self.closed = None;
        self.renew();
        mem::take(&mut self.held)
    }

    /// Whether operations on this key have to wait.
    pub fn is_closed(&self, key: u64) -> bool {
        (self.closed).is_some_and(|(low, high)| (low..=high).contains(&key))
    }

    /// Has a batch wait for its keys.
    pub fn hold(&mut self, request: Header, batch: Box<KeyBatch>) {
        self.held.push((request, batch));
    }

    /// The keys that were closed, with about so many entries, are another owner's from here on, who has these; what has waited for them.
    pub fn give(
        &mut self,
        (low, high): (u64, u64),
        entries: usize,
        to: AeuId,
    ) -> Vec<(Header, Box<KeyBatch>)> {
        let segment = self.segment(low).expect("a segment of this owner");
        match (segment.low, segment.high) == (low, high) {
            true => drop(self.unlink(low, to)),
            false => {
                segment.shrink(low, high, entries);
                self.note_given(low, high, to);
            }
        }
        self.open()
    }

    /// Puts a segment's first or last keys into a segment of their own, whose tree has been made.
    pub fn part(&mut self, part: Segment) {
        let (low, high) = (part.low, part.high);
        let segment = self.segment(low).expect("a segment of this owner");
        segment.shrink(low, high, part.len());
        let at = self.segments.partition_point(|other| other.high < low);
        self.segments.insert(at, part);
        self.renew();
    }

    /// Whether keys of a segment are being copied or closed.
    pub(super) fn is_changing(&self) -> bool {
        self.closed.is_some() || self.segments.iter().any(Segment::is_copied)
    }

    fn note_given(&mut self, low: u64, high: u64, to: AeuId) {
        self.object.layout.refresh(&mut self.table);
        let newest = self.table.version;
        self.given.retain(|given| given.version > newest);
        self.given.push(Given {
            low,
            high,
            to,
            version: newest + 1,
        });
        self.renew();
    }

    pub(super) fn renew(&mut self) {
        self.note_work();
        self.directory = directory(&self.segments, self.closed);
    }

    /// Who has a key that nobody has here.
    ///
    /// # Panics
    /// If that is nobody elsewhere either.
    pub fn holder(&mut self, key: u64) -> AeuId {
        self.object.layout.refresh(&mut self.table);
        let (given, table) = (self.given.iter().rev(), &self.table);
        let mut given = given.filter(|given| given.version > table.version);
        let holder = match given.find(|given| (given.low..=given.high).contains(&key)) {
            Some(given) => given.to,
            None => table.owner(key),
        };
        assert!(holder != self.aeu, "key {key} has been lost");
        holder
    }

    /// Executes batches in their order; lookups that follow each other become one if they have few keys for each segment. What belongs to others
    /// is left.
    pub fn execute(&mut self, batches: &mut [(Header, Box<KeyBatch>)]) {
        self.note_work();
        let keys = batches.iter().map(|(_, batch)| batch.left());
        self.asked += keys.sum::<usize>();
        let few = FEW * self.segments.len();
        let joins = |batch: &KeyBatch| {
            let is_whole = matches!(batch.rest, Rest::All);
            is_whole && batch.operation == Operation::Get && batch.keys.len() < few
        };
        for run in batches.chunk_by_mut(|a, b| joins(&a.1) && joins(&b.1)) {
            match run {
                [(_, batch)] => self.execute_one(batch),
                lookups => self.get_together(lookups),
            }
        }
    }

    fn execute_one(&mut self, batch: &mut KeyBatch) {
        let KeyBatch {
            operation,
            keys,
            entries,
            runs,
            values,
            rest,
            failure,
            ..
        } = batch;
        match *operation {
            Operation::Ranges => {
                let Rest::Spans(spans) = mem::replace(rest, Rest::All) else {
                    unreachable!("ranges have spans");
                };
                *rest = Rest::Spans(self.read(&spans, entries, runs));
            }
            Operation::Put => {
                values.resize(entries.len(), None);
                let mut keys = mem::take(&mut self.keys);
                keys.clear();
                keys.extend(entries.iter().map(|entry| entry.0));
                *rest =
                    self.by_segment(rest, &keys, entries, values, |segment, entries, values| {
                        let put = segment.put_many(entries, values);
                        put.map_err(|error| *failure = Some(error.error)).is_ok()
                    });
                self.keys = keys;
            }
            Operation::Get => {
                values.resize(keys.len(), None);
                *rest = self.by_segment(rest, keys, keys, values, get);
            }
            Operation::Remove => {
                values.resize(keys.len(), None);
                *rest = self.by_segment(rest, keys, keys, values, |segment, keys, values| {
                    segment.remove_many(keys, values);
                    true
                });
            }
        }
    }

    /// Has something done for each key for which it is still to be done, segment by segment, until one says that it failed: `inputs[i]` is what
    /// goes with `keys[i]`, and `values[i]` becomes what comes of it. Returns what others have.
    fn by_segment<T: Copy>(
        &mut self,
        rest: &Rest,
        keys: &[u64],
        inputs: &[T],
        values: &mut [Option<u64>],
        mut execute: impl FnMut(&mut Segment, &[T], &mut [Option<u64>]) -> bool,
    ) -> Rest {
        let wanted = match rest {
            Rest::All if self.find_runs(keys) => {
                let runs = self.runs.iter().cloned();
                let left = in_runs(&mut self.segments, runs, inputs, values, execute);
                return Rest::Positions(left);
            }
            Rest::Positions(positions) => Some(positions),
            _ => None,
        };
        let keys_of_wanted: Vec<u64>;
        let keys = match wanted {
            None => keys,
            Some(wanted) => {
                keys_of_wanted = wanted.iter().map(|&at| keys[at as usize]).collect();
                &keys_of_wanted
            }
        };
        self.directory.split(keys, &mut self.split);
        let (mut part, mut found, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (at, positions) in self.directory.parts(&self.split) {
            let of_batch = |at: &u32| wanted.map_or(*at, |wanted| wanted[*at as usize]);
            let positions = positions.iter().map(of_batch);
            let Some(segment) = self.segments.get_mut(at as usize) else {
                left.extend(positions);
                continue;
            };
            part.clear();
            part.extend(positions.clone().map(|at| inputs[at as usize]));
            found.clear();
            found.resize(part.len(), None);
            let is_done = execute(segment, &part, &mut found);
            positions
                .zip(&found)
                .for_each(|(at, value)| values[at as usize] = *value);
            if !is_done {
                left.clear();
                break;
            }
        }
        left.sort_unstable();
        Rest::Positions(left)
    }

    /// Finds the runs of keys that lie in one segment; says whether they are long enough to be executed as they are. They are if a client has split
    /// his batch by the ranges that segments have.
    fn find_runs(&mut self, keys: &[u64]) -> bool {
        let most = 1 + keys.len() / FEW;
        self.runs.clear();
        self.runs.extend(self.directory.runs(keys).take(most + 1));
        self.runs.len() <= most
    }

    /// Appends the entries of these spans, and a run of each; returns the parts of them that others have.
    fn read(
        &mut self,
        spans: &[Span],
        entries: &mut Vec<(u64, u64)>,
        runs: &mut Vec<(usize, usize)>,
    ) -> Vec<Span> {
        let directory = self.directory.clone();
        let mut others = Vec::new();
        for span in spans {
            let first = entries.len();
            let most = first.saturating_add(span.limit);
            for (low, high, at) in super::layout::spans(&directory, span.low, span.high) {
                match self.segments.get_mut(at as usize) {
                    Some(segment) => segment.read(low, high, most - entries.len(), entries),
                    None => others.push(Span { low, high, ..*span }),
                }
            }
            runs.push((span.range, entries.len() - first));
        }
        others
    }

    fn get_together(&mut self, lookups: &mut [(Header, Box<KeyBatch>)]) {
        let mut keys = mem::take(&mut self.keys);
        keys.clear();
        keys.extend(lookups.iter().flat_map(|(_, batch)| &batch.keys));
        let mut values = vec![None; keys.len()];
        let Rest::Positions(left) = self.by_segment(&Rest::All, &keys, &keys, &mut values, get)
        else {
            unreachable!("keys have positions");
        };
        let (mut first, mut left) = (0, &left[..]);
        for (_, batch) in lookups {
            let end = first + batch.keys.len();
            batch.values.extend_from_slice(&values[first..end]);
            let (of_batch, others) = left.split_at(left.partition_point(|at| (*at as usize) < end));
            let of_batch = of_batch.iter().map(|at| at - first as u32);
            batch.rest = Rest::Positions(of_batch.collect());
            (first, left) = (end, others);
        }
        self.keys = keys;
    }
}

fn get(segment: &mut Segment, keys: &[u64], values: &mut [Option<u64>]) -> bool {
    segment.get_many(keys, values);
    true
}

/// Has something done run by run, without a copy of anything; returns the positions of what is in no segment here.
fn in_runs<T>(
    segments: &mut [Segment],
    runs: impl Iterator<Item = (u32, Range<usize>)>,
    inputs: &[T],
    values: &mut [Option<u64>],
    mut execute: impl FnMut(&mut Segment, &[T], &mut [Option<u64>]) -> bool,
) -> Vec<u32> {
    let mut left = Vec::new();
    for (at, run) in runs {
        let Some(segment) = segments.get_mut(at as usize) else {
            left.extend(run.map(|at| at as u32));
            continue;
        };
        if !execute(segment, &inputs[run.clone()], &mut values[run]) {
            return Vec::new();
        }
    }
    left
}

/// From keys to segments, but for those that are closed.
fn directory(segments: &[Segment], closed: Option<(u64, u64)>) -> Arc<RangeTable<u64, u32>> {
    let mut bounds: Vec<(u64, u32)> = Vec::with_capacity(2 * segments.len() + 3);
    let mut add = |low: u64, at: u32| match bounds.last_mut() {
        Some(last) if last.0 == low => last.1 = at,
        _ => bounds.push((low, at)),
    };
    add(0, NOBODY);
    for (segment, at) in segments.iter().zip(0..) {
        add(segment.low, at);
        if let Some((low, high)) = closed.filter(|(low, _)| segment.has(*low)) {
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

impl Reorganizable for OwnedKeys {
    fn tend(&mut self, extra: u64) {
        (self.segments.iter_mut()).for_each(|segment| segment.tree().tend(extra));
    }

    fn begin(&mut self) {
        let segments = self.segments.iter_mut();
        segments.for_each(|segment| Reorganizable::begin(segment.tree()));
    }

    fn is_at_work(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.watched().is_at_work())
    }

    fn slice(&mut self) -> bool {
        let segments = self.segments.iter_mut();
        // None of them must miss its turn.
        segments.fold(false, |any, segment| segment.tree().slice() | any)
    }

    fn give_up(&mut self, reason: &str) {
        let segments = self.segments.iter_mut();
        segments.for_each(|segment| segment.tree().give_up(reason));
    }

    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>) {
        let segments = self.segments.iter();
        segments.for_each(|segment| segment.watched().status(aeu, node, all));
    }
}
