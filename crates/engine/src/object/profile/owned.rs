//! An owner's side: chunks are looked at once, unless many of their rows have gone.

use super::{ColumnProfile, LONG, PartitionProfile, thinned};
use crate::object::statistics::PartitionStatistics;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat;
use eris_column::{Dictionary, DistinctCount, Domain, Selection};
use eris_store::{Chunk, Segment};
use eris_types::{RowId, SegmentId};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Owners look again if what they know differs from what there is by more than one row in so many.
const DIFFERENT: u64 = 8;
/// Values that are as many as these are needed to tell whether a column's are long.
const FEW: usize = 64;

/// Keeps the profile of a partition.
#[derive(Debug, Default)]
pub(crate) struct Profiler {
    /// The last row of each segment's sealed chunks that is in `sealed`. Chunks may be rewritten, but rows keep their
    /// ids.
    counted: HashMap<SegmentId, RowId>,
    sealed: Counted,
    /// What there was when somebody last looked.
    seen: PartitionStatistics,
}

/// What is needed to read chunks.
#[derive(Clone, Copy)]
pub(crate) struct Readable<'a> {
    pub schema: &'a Schema,
    pub dictionaries: &'a [Option<Dictionary>],
    /// Rows of the sample, at most.
    pub sampled_rows: usize,
}

/// What is known of some chunks.
#[derive(Clone, Debug, Default)]
struct Counted {
    /// Rows of the chunks, deleted ones included.
    rows: u64,
    /// Rows that were there to be sampled.
    living: usize,
    step: usize,
    sampled: usize,
    columns: Vec<CountedColumn>,
}

#[derive(Clone, Debug)]
struct CountedColumn {
    distinct: Option<DistinctCount>,
    /// The sampled values, of which those of new chunks lie behind; `None` if they are too long.
    sample: Option<Vec<ArrayRef>>,
}

impl Profiler {
    /// A new profile, if there is enough that is not in the last one.
    pub fn catch_up(
        &mut self,
        segments: &[Segment],
        now: &PartitionStatistics,
        table: Readable<'_>,
    ) -> Option<PartitionProfile> {
        let seen = &self.seen;
        let has_doubled = now.rows >= 2 * seen.rows && now.rows > 0;
        let has_fewer = now.rows < seen.rows.div_ceil(2);
        let are_deleted = differ(now.deleted, seen.deleted, now.rows);
        // After almost all commits.
        if now.sealed == seen.sealed && !has_doubled && !has_fewer && !are_deleted {
            return None;
        }
        if has_fewer || are_deleted {
            return Some(self.all(segments, now, table));
        }
        for segment in segments {
            let Some(last) = segment.last_sealed_row() else {
                continue;
            };
            let counted = self.counted.insert(segment.id(), last);
            if counted == Some(last) {
                continue;
            }
            for (chunk, living) in segment.living_sealed() {
                if chunk.ids().last() > counted {
                    self.sealed.add(chunk, &living, table);
                }
            }
        }
        // Rows have come whose ids were passed, or many have gone.
        if differ(self.sealed.rows, now.sealed, now.sealed) {
            return Some(self.all(segments, now, table));
        }
        self.seen = now.clone();
        let mut all = self.sealed.clone();
        if now.rows - now.sealed.min(now.rows) > now.rows / DIFFERENT {
            all.add_buffers(segments, table);
        }
        Some(all.into_profile())
    }

    /// A new profile of all rows that are not deleted.
    pub fn all(
        &mut self,
        segments: &[Segment],
        now: &PartitionStatistics,
        table: Readable<'_>,
    ) -> PartitionProfile {
        *self = Profiler::default();
        self.seen = now.clone();
        for segment in segments {
            for (chunk, living) in segment.living_sealed() {
                self.sealed.add(chunk, &living, table);
            }
            if let Some(last) = segment.last_sealed_row() {
                self.counted.insert(segment.id(), last);
            }
        }
        let mut all = self.sealed.clone();
        all.add_buffers(segments, table);
        all.into_profile()
    }
}

/// Whether two numbers of rows differ by a part that matters.
fn differ(a: u64, b: u64, rows: u64) -> bool {
    a.abs_diff(b) > rows / DIFFERENT
}

impl CountedColumn {
    fn new(field: &Field) -> Self {
        // Bytes are long as a rule, and nothing compares them but for equality.
        let is_sampled = Domain::of(field.data_type()) != Some(Domain::Bytes);
        CountedColumn {
            distinct: Some(DistinctCount::default()),
            sample: is_sampled.then(Vec::new),
        }
    }

    /// Puts the sampled values into one array.
    fn settle(&mut self) {
        let Some(pieces) = &mut self.sample else {
            return;
        };
        if pieces.len() > 1 {
            let all: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
            *pieces = vec![concat(&all).expect("they are of one type")];
        }
        let are_long = pieces.first().is_some_and(|values| {
            let strings = values.as_string_view_opt();
            let bytes = strings.map_or(0, |strings| strings.total_buffer_bytes_used());
            values.len() >= FEW && bytes > LONG * values.len()
        });
        if are_long {
            self.sample = None;
        }
    }
}

impl Counted {
    fn add_buffers(&mut self, segments: &[Segment], table: Readable<'_>) {
        for (chunk, living) in segments.iter().flat_map(Segment::living_buffered) {
            self.add(chunk, &living, table);
        }
    }

    fn add(&mut self, chunk: &Chunk, living: &Selection, table: Readable<'_>) {
        if self.columns.is_empty() {
            let fields = table.schema.fields().iter();
            self.columns = fields.map(|field| CountedColumn::new(field)).collect();
            self.step = 1;
        }
        self.rows += chunk.rows() as u64;
        for (column, counted) in chunk.columns().iter().zip(&mut self.columns) {
            // Codes are counted by their dictionary.
            if let Some(distinct) = &mut counted.distinct
                && !column.is_coded()
                && !distinct.add(column)
            {
                counted.distinct = None;
            }
        }
        self.sample(chunk, living, table);
    }

    fn sample(&mut self, chunk: &Chunk, living: &Selection, table: Readable<'_>) {
        self.living += living.count();
        while self.living / self.step > table.sampled_rows {
            for counted in &mut self.columns {
                counted.settle();
                if let Some(pieces) = &mut counted.sample {
                    pieces.iter_mut().for_each(|all| *all = thinned(all, 2));
                }
            }
            self.sampled /= 2;
            self.step *= 2;
        }
        let mut rows = Selection::none(chunk.rows());
        for block in (0..chunk.rows()).step_by(self.step) {
            let row = block + chance(chunk, block) % self.step;
            if row < chunk.rows() && living.contains(row) {
                rows.insert(row);
            }
        }
        if rows.is_empty() {
            return;
        }
        self.sampled += rows.count();
        let columns = chunk.columns().iter().zip(table.schema.fields());
        let columns = columns.zip(table.dictionaries).zip(&mut self.columns);
        for (((column, field), dictionary), counted) in columns {
            if let Some(pieces) = &mut counted.sample {
                let values = column.select(&rows, field.data_type(), dictionary.as_ref());
                pieces.push(thinned(&values, 1));
            }
        }
    }

    fn into_profile(mut self) -> PartitionProfile {
        let columns = self.columns.iter_mut().map(|counted| {
            counted.settle();
            ColumnProfile {
                distinct: counted.distinct.take(),
                sample: counted.sample.take().and_then(|mut pieces| pieces.pop()),
            }
        });
        let columns: Vec<_> = columns.collect();
        PartitionProfile {
            rows: self.living as u64,
            step: self.step.max(1),
            sampled: self.sampled,
            // Without rows nothing is known of columns.
            columns: if self.sampled > 0 {
                columns
            } else {
                Vec::new()
            },
        }
    }
}

/// A number by chance, which is always the same for these rows.
fn chance(chunk: &Chunk, block: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (chunk.ids().get(block).0, block).hash(&mut hasher);
    hasher.finish() as usize
}
