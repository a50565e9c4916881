//! The profiles of all partitions together, as a client sees them.

use super::{ColumnProfile, PartitionProfile, thinned};
use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat;
use eris_column::{ColumnChunk, DistinctCount, ObjectMemory};
use eris_exec::{Program, Work};
use eris_fragment::{Expr, Fragment, Output, ScanOptions};
use eris_home::SampledRows;
use eris_store::{Chunk, ChunkNumber, ChunkView, InsertedRun, RowIds};
use eris_types::{ColumnId, ObjectId, RowId, Timestamp};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Rows of the sample, at most.
const LOOKED_AT: usize = 8192;

/// What is known of the values of a table.
#[derive(Debug)]
pub(crate) struct ObjectProfile {
    parts: Vec<Arc<PartitionProfile>>,
    /// The rows that the sample stands for.
    rows: u64,
    sampled: usize,
    columns: Vec<ColumnProfile>,
    /// Per column; `None` if it is not known.
    distinct: Vec<Option<u64>>,
    /// The samples as column chunks, each once somebody looks for rows in it. `None`: there was no memory.
    encoded: Vec<OnceLock<Option<Arc<ColumnChunk>>>>,
    /// In their places if nobody reads them.
    nulls: OnceLock<Vec<Option<Arc<ColumnChunk>>>>,
}

impl ObjectProfile {
    pub fn new(parts: Vec<Arc<PartitionProfile>>) -> Self {
        let step = parts.iter().map(|part| part.step).max().unwrap_or(1);
        let times = |part: &PartitionProfile| step / part.step;
        let all: usize = parts.iter().map(|part| part.sampled / times(part)).sum();
        let too_many = all.div_ceil(LOOKED_AT).next_power_of_two();
        let has_rows = |part: &&Arc<PartitionProfile>| !part.columns.is_empty();
        let columns = parts
            .iter()
            .find(has_rows)
            .map_or(0, |part| part.columns.len());
        let column = |column: usize| {
            let mut parts = parts.iter().filter(has_rows);
            let first = parts.next().expect("a part has columns");
            let thin = |part: &PartitionProfile| {
                let values = part.columns[column].sample.as_ref()?;
                Some(match times(part) * too_many {
                    1 => Arc::clone(values),
                    times => thinned(values, times),
                })
            };
            let mut distinct = first.columns[column].distinct.clone();
            let mut samples = vec![thin(first)];
            for part in parts {
                distinct = match (distinct, &part.columns[column].distinct) {
                    (Some(mut all), Some(other)) => {
                        all.merge(other);
                        Some(all)
                    }
                    _ => None,
                };
                samples.push(thin(part));
            }
            let samples: Option<Vec<ArrayRef>> = samples.into_iter().collect();
            let sample = samples.map(|samples| {
                let samples: Vec<_> = samples.iter().map(|sample| &**sample).collect();
                concat(&samples).expect("they are of one type")
            });
            ColumnProfile { distinct, sample }
        };
        let columns: Vec<_> = (0..columns).map(column).collect();
        let sampled = columns.iter().find_map(|column| column.sample.as_ref());
        let distinct = columns.iter().map(|column| {
            let distinct = column.distinct.as_ref().map(DistinctCount::count);
            distinct.filter(|&count| count > 0)
        });
        ObjectProfile {
            rows: parts.iter().map(|part| part.rows).sum(),
            distinct: distinct.collect(),
            sampled: sampled.map_or(0, |sample| sample.len()),
            nulls: OnceLock::new(),
            encoded: columns.iter().map(|_| OnceLock::new()).collect(),
            columns,
            parts,
        }
    }

    /// Whether it is of these parts.
    pub fn is_of(&self, parts: &[Arc<PartitionProfile>]) -> bool {
        let same = |(mine, other): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(mine, other);
        self.parts.len() == parts.len() && self.parts.iter().zip(parts).all(same)
    }

    /// About how many distinct values a column has, if that is known.
    pub fn distinct(&self, column: usize) -> Option<u64> {
        self.distinct.get(column).copied().flatten()
    }

    fn sample(&self, column: usize) -> Option<&ArrayRef> {
        self.columns.get(column)?.sample.as_ref()
    }

    /// The sampled values of each column, owner by owner in the order of the rows; `None` of columns whose values are
    /// too long.
    pub fn samples(&self) -> Vec<Option<ArrayRef>> {
        let columns = self.columns.iter();
        columns.map(|column| column.sample.clone()).collect()
    }

    /// For how many of the sampled rows all conjuncts are true. The columns are the table's.
    pub fn find(
        &self,
        filter: &[Expr],
        schema: &SchemaRef,
        home: ObjectMemory<'_>,
    ) -> Option<SampledRows> {
        let mut read = BTreeSet::new();
        for conjunct in filter {
            conjunct.for_each_column(&mut |column| {
                read.insert(column);
            });
        }
        let is_sampled = read.iter().all(|&column| self.sample(column).is_some());
        if self.sampled == 0 || !is_sampled {
            return None;
        }
        let chunk = self.chunk(&read, schema, home)?;
        let passed = count(chunk, filter, schema)?;
        Some(SampledRows {
            of: self.rows,
            rows: self.sampled as u64,
            passed,
        })
    }

    /// The sample with these columns; all others are NULL.
    fn chunk(
        &self,
        read: &BTreeSet<usize>,
        schema: &Schema,
        home: ObjectMemory<'_>,
    ) -> Option<Arc<Chunk>> {
        let encode = |values: &ArrayRef| {
            let encoded = ColumnChunk::encode(values, None, home);
            encoded.ok().map(Arc::new)
        };
        let nulls = self.nulls.get_or_init(|| {
            let fields = schema.fields().iter();
            let nulls = fields.map(|field| new_null_array(field.data_type(), self.sampled));
            nulls.map(|nulls| encode(&nulls)).collect()
        });
        let columns = self.columns.iter().zip(nulls).enumerate();
        let columns = columns.map(|(place, (column, nulls))| match &column.sample {
            Some(values) if read.contains(&place) => {
                let encoded = &self.encoded[place];
                encoded.get_or_init(|| encode(values)).clone()
            }
            _ => nulls.clone(),
        });
        let ids = RowIds::from(RowId(0), self.sampled);
        let inserted = InsertedRun {
            at: Timestamp::ZERO,
            end: self.sampled,
        };
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let number = ChunkNumber::default();
        let chunk = Chunk::sharing(columns, number, Arc::new(ids), vec![inserted]);
        Some(Arc::new(chunk))
    }
}

/// How many rows of a chunk pass.
fn count(chunk: Arc<Chunk>, filter: &[Expr], schema: &SchemaRef) -> Option<u64> {
    let columns = 0..schema.fields().len() as u32;
    let fragment = Fragment {
        object: ObjectId(0),
        snapshot: Timestamp::ZERO,
        columns: columns.map(ColumnId).collect(),
        filter: filter.to_vec(),
        probes: Vec::new(),
        lookups: Vec::new(),
        output: Output::Rows {
            columns: Vec::new(),
            limit: None,
        },
        order: None,
        options: ScanOptions::default(),
    };
    let dictionaries = vec![None; schema.fields().len()];
    let program = Program::compile(&fragment, schema, &dictionaries).ok()?;
    let view = ChunkView {
        chunk,
        deleted: None,
        rows: None,
    };
    let mut work = Work::default();
    // A row for which a condition fails ends the statement, not the estimate.
    program.run(&view, &mut program.start(), &mut work).ok()?;
    Some(work.rows_passed)
}
