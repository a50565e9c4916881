//! What planners may know of a data object.

use arrow_schema::{DataType, SchemaRef};
use eris_atomics::Record;
use eris_column::{ColumnChunk, ZoneRange, from_integer};
use eris_fragment::{Scalar, Type, Value};
use eris_home::{ColumnStatistics, ObjectStatistics};
use eris_store::{Chunk, Segment};
use eris_types::Timestamp;

/// The share of one AEU.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionStatistics {
    /// Deleted ones included.
    pub rows: u64,
    pub deleted: u64,
    pub sealed: u64,
    pub bytes: u64,
    /// Those of sealed rows.
    pub sealed_bytes: u64,
    pub newest: Timestamp,
    /// Per column.
    pub columns: Vec<ColumnSummary>,
}

/// NULLs and extremes of some column chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnSummary {
    pub nulls: u64,
    /// Rows of those that are stored by a key order.
    pub ordered: u64,
    /// Encoded bytes.
    pub bytes: u64,
    /// None: no value yet, or none that has an order across chunks.
    pub range: Option<ZoneRange>,
}

impl ColumnSummary {
    fn add(&mut self, chunk: &ColumnChunk) {
        let zone = chunk.zone();
        self.bytes += chunk.bytes() as u64;
        self.merge(zone.nulls as u64, &zone.range);
        if chunk.order().is_some() {
            self.ordered += chunk.rows() as u64;
        }
    }

    pub fn add_summary(&mut self, other: &ColumnSummary) {
        self.bytes += other.bytes;
        match &other.range {
            Some(range) => self.merge(other.nulls, range),
            None => self.nulls += other.nulls,
        }
    }

    fn merge(&mut self, nulls: u64, range: &ZoneRange) {
        use ZoneRange::{Float, Integer, Wide};
        self.nulls += nulls;
        self.range = match (self.range.take(), range) {
            (None, Integer(..) | Float(..) | Wide(..)) => Some(range.clone()),
            (Some(Integer(a, b)), Integer(c, d)) => Some(Integer(a.min(*c), b.max(*d))),
            (Some(Float(a, b)), Float(c, d)) => Some(Float(a.min(*c), b.max(*d))),
            (Some(Wide(a, b)), Wide(c, d)) => Some(Wide(a.min(*c), b.max(*d))),
            (known, _) => known,
        };
    }
}

/// Words of a partition's statistics, and of a column's.
const WORDS: usize = 6;
const COLUMN_WORDS: usize = 8;

/// A partition's statistics as everybody reads them: its owner writes them with every commit, and nobody waits.
#[derive(Debug)]
pub(crate) struct PublishedStatistics(Record);

impl PublishedStatistics {
    /// Nothing yet, of a table with so many columns.
    pub fn new(columns: usize) -> Self {
        PublishedStatistics(Record::new(WORDS + columns * COLUMN_WORDS))
    }

    /// Makes new ones known. Called by the owner alone.
    pub fn write(&self, new: &PartitionStatistics) {
        let PartitionStatistics {
            rows,
            deleted,
            sealed,
            bytes,
            sealed_bytes,
            newest,
            columns,
        } = new;
        let numbers = [*rows, *deleted, *sealed, *bytes, *sealed_bytes, newest.0];
        let columns = columns.iter().flat_map(ColumnSummary::to_words);
        self.0.write(numbers.into_iter().chain(columns));
    }

    /// All of them, as they were after one commit.
    pub fn read(&self) -> PartitionStatistics {
        let words = self.0.read();
        let (numbers, columns) = words.split_at(WORDS);
        let columns = columns.chunks_exact(COLUMN_WORDS);
        PartitionStatistics {
            rows: numbers[0],
            deleted: numbers[1],
            sealed: numbers[2],
            bytes: numbers[3],
            sealed_bytes: numbers[4],
            newest: Timestamp(numbers[5]),
            columns: columns.map(ColumnSummary::of_words).collect(),
        }
    }

    /// The rows, deleted ones included.
    pub fn rows(&self) -> u64 {
        self.0.word(0)
    }
}

impl ColumnSummary {
    fn to_words(&self) -> [u64; COLUMN_WORDS] {
        let (kind, low, high) = match &self.range {
            Some(ZoneRange::Integer(low, high)) => (1, *low as u128, *high as u128),
            Some(ZoneRange::Float(low, high)) => (2, low.to_bits().into(), high.to_bits().into()),
            Some(ZoneRange::Wide(low, high)) => (3, *low as u128, *high as u128),
            _ => (0, 0, 0),
        };
        let (lows, highs) = ((low >> 64) as u64, (high >> 64) as u64);
        let (low, high) = (low as u64, high as u64);
        let ColumnSummary {
            nulls,
            ordered,
            bytes,
            ..
        } = *self;
        [nulls, ordered, kind, low, lows, high, highs, bytes]
    }

    fn of_words(words: &[u64]) -> Self {
        let wide = |at: usize| (u128::from(words[at + 1]) << 64 | u128::from(words[at])) as i128;
        let float = |at: usize| f64::from_bits(words[at]);
        ColumnSummary {
            nulls: words[0],
            ordered: words[1],
            bytes: words[7],
            range: match words[2] {
                1 => Some(ZoneRange::Integer(words[3] as i64, words[5] as i64)),
                2 => Some(ZoneRange::Float(float(3), float(5))),
                3 => Some(ZoneRange::Wide(wide(3), wide(5))),
                _ => None,
            },
        }
    }
}

fn add_chunk(summaries: &mut [ColumnSummary], chunk: &Chunk) {
    for (summary, column) in summaries.iter_mut().zip(chunk.columns()) {
        summary.add(column);
    }
}

/// Keeps a partition's statistics up to date: chunks are looked at once, those of an append buffer again when they were
/// joined.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Per segment, how many of its sealed chunks are in `sealed`.
    counted: Vec<usize>,
    sealed: Vec<ColumnSummary>,
    /// Per segment.
    append_buffers: Vec<AppendBufferTally>,
    sealed_rows: u64,
    sealed_bytes: u64,
}

/// What is known of an append buffer.
#[derive(Debug, Default)]
struct AppendBufferTally {
    version: u64,
    /// How many of its chunks are in `columns`.
    counted: usize,
    columns: Vec<ColumnSummary>,
}

impl AppendBufferTally {
    fn count(&mut self, segment: &Segment, columns: usize) {
        if self.version != segment.append_buffer_version() {
            self.version = segment.append_buffer_version();
            self.counted = 0;
            self.columns.clear();
        }
        self.columns.resize(columns, ColumnSummary::default());
        for chunk in segment.append_buffer_since(self.counted) {
            add_chunk(&mut self.columns, chunk);
            self.counted += 1;
        }
    }
}

impl Tally {
    /// Forgets what it knows of sealed chunks, because some were rewritten.
    pub fn reset(&mut self) {
        *self = Tally::default();
    }

    pub fn of(&mut self, segments: &[Segment], columns: usize) -> PartitionStatistics {
        self.counted.resize(segments.len(), 0);
        self.append_buffers
            .resize_with(segments.len(), AppendBufferTally::default);
        self.sealed.resize(columns, ColumnSummary::default());
        for (segment, counted) in segments.iter().zip(&mut self.counted) {
            for chunk in segment.sealed_since(*counted) {
                add_chunk(&mut self.sealed, chunk);
                self.sealed_rows += chunk.rows() as u64;
                self.sealed_bytes += chunk.bytes() as u64;
                *counted += 1;
            }
        }
        let mut all = PartitionStatistics {
            columns: self.sealed.clone(),
            sealed: self.sealed_rows,
            sealed_bytes: self.sealed_bytes,
            ..PartitionStatistics::default()
        };
        for (segment, buffer) in segments.iter().zip(&mut self.append_buffers) {
            let statistics = segment.statistics();
            all.rows += statistics.rows;
            all.deleted += statistics.deleted;
            all.bytes += statistics.bytes;
            all.newest = all.newest.max(statistics.newest);
            buffer.count(segment, columns);
            for (summary, buffered) in all.columns.iter_mut().zip(&buffer.columns) {
                summary.add_summary(buffered);
            }
        }
        all
    }
}

/// The statistics of all partitions together; `distinct` says how many values a column has.
pub(crate) fn merge(
    schema: &SchemaRef,
    partitions: impl Iterator<Item = PartitionStatistics>,
    distinct: impl Fn(usize) -> Option<u64>,
) -> ObjectStatistics {
    let mut all = ObjectStatistics::default();
    let mut columns = vec![ColumnSummary::default(); schema.fields().len()];
    for partition in partitions {
        all.rows += partition.rows - partition.deleted;
        all.deleted += partition.deleted;
        all.sealed += partition.sealed;
        all.bytes += partition.bytes;
        all.newest = all.newest.max(partition.newest);
        for (summary, other) in columns.iter_mut().zip(&partition.columns) {
            summary.nulls += other.nulls;
            summary.ordered += other.ordered;
            if let Some(range) = &other.range {
                summary.merge(0, range);
            }
        }
    }
    let fields = schema.fields().iter().enumerate();
    all.columns = fields
        .zip(columns)
        .map(|((index, field), summary)| {
            let extremes = (summary.range).and_then(|range| extremes(field.data_type(), &range));
            let (min, max) = match extremes {
                Some((min, max)) => (Some(min), Some(max)),
                None => (None, None),
            };
            ColumnStatistics {
                nulls: summary.nulls,
                min,
                max,
                distinct: distinct(index),
                ordered: summary.ordered,
            }
        })
        .collect();
    all
}

/// The ends of a range as values of the column; `None` for strings, whose order zones do not know, and without values.
pub(crate) fn extremes(data_type: &DataType, range: &ZoneRange) -> Option<(Scalar, Scalar)> {
    let declared = Type::try_from(data_type).ok()?;
    let scalar = |value: Value| Scalar {
        data_type: declared.clone(),
        value,
    };
    let integer = |value: i64| match data_type {
        DataType::Boolean => scalar(Value::Boolean(value != 0)),
        _ => scalar(Value::Integer(from_integer(data_type, value))),
    };
    match range {
        ZoneRange::Integer(min, max) => Some((integer(*min), integer(*max))),
        ZoneRange::Float(min, max) => {
            Some((scalar(Value::Float(*min)), scalar(Value::Float(*max))))
        }
        // The order of intervals is not that of their numbers.
        ZoneRange::Wide(..) if declared == Type::Interval => None,
        ZoneRange::Wide(min, max) => {
            Some((scalar(Value::Integer(*min)), scalar(Value::Integer(*max))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_read_again() {
        let column = |nulls, ordered, range| ColumnSummary {
            nulls,
            ordered,
            bytes: 10 * nulls,
            range,
        };
        let columns = vec![
            column(1, 2, None),
            column(0, 0, Some(ZoneRange::Integer(i64::MIN, -1))),
            column(3, 0, Some(ZoneRange::Float(-0.0, f64::NAN))),
            column(0, 9, Some(ZoneRange::Wide(i128::MIN + 5, 1 << 70))),
        ];
        let written = PartitionStatistics {
            rows: 1,
            deleted: 2,
            sealed: 3,
            bytes: 4,
            sealed_bytes: 5,
            newest: Timestamp(6),
            columns,
        };
        let published = PublishedStatistics::new(4);
        assert_eq!(published.rows(), 0);
        published.write(&written);
        // Compared as text: no NaN is equal to itself.
        assert_eq!(format!("{:?}", published.read()), format!("{written:?}"));
        assert_eq!(published.rows(), 1);
    }
}
