//! One input of a join, repartitioned by a hash of its keys: a *bucket* holds the rows whose keys hash alike, in files.

use datafusion::arrow::array::{Array, UInt32Array};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::spill_file::SpillFile;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::metrics::SpillMetrics;
use datafusion::physical_plan::spill::SpillManager;
use std::sync::Arc;

/// Buckets of one input. More make smaller hash tables; each has a buffer of some 64 KiB while it is written.
pub(super) const BUCKETS: usize = 32;
/// Unlike the seeds of exchanges and hash tables.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// Rows that wait for being written together, per bucket.
const WRITTEN_ROWS: usize = 1024;

/// The buckets of one input.
#[derive(Clone, Default)]
pub(super) struct Buckets {
    /// Per bucket its files; none if it has no rows.
    pub files: Vec<Vec<Arc<dyn SpillFile>>>,
    /// Per bucket its rows.
    pub rows: Vec<usize>,
    /// Whether the key of some row is NULL; if there are several keys, the first.
    pub has_null: bool,
}

impl Buckets {
    pub fn all_rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Both together.
    pub fn join(mut self, other: Buckets) -> Buckets {
        if self.files.is_empty() {
            return other;
        }
        for (bucket, (files, rows)) in other.files.into_iter().zip(other.rows).enumerate() {
            self.files[bucket].extend(files);
            self.rows[bucket] += rows;
        }
        self.has_null |= other.has_null;
        self
    }
}

/// Repartitions the rows of one input.
pub(super) struct Repartitioner {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Of its own at each depth, or rows that went to one bucket once would do so again.
    hash: RandomState,
    buckets: Vec<OpenBucket>,
    has_null: bool,
    what: &'static str,
    files: SpillManager,
    hashes: Vec<u64>,
}

/// Appends a batch to a file, or without one finishes it. The type of an open file has no name here.
type Append = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

struct OpenBucket {
    waiting: BatchCoalescer,
    rows: usize,
    open: Option<Append>,
}

impl Repartitioner {
    pub fn new(
        keys: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
        depth: usize,
        what: &'static str,
        context: Arc<TaskContext>,
        metrics: SpillMetrics,
    ) -> Self {
        let bucket = || OpenBucket {
            waiting: BatchCoalescer::new(Arc::clone(&schema), WRITTEN_ROWS),
            rows: 0,
            open: None,
        };
        Repartitioner {
            keys,
            hash: RandomState::with_seed(SEED + depth as u64),
            buckets: (0..BUCKETS).map(|_| bucket()).collect(),
            has_null: false,
            what,
            files: SpillManager::new(context.runtime_env(), metrics, schema),
            hashes: Vec::new(),
        }
    }

    /// Sends each row of a batch to its bucket.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let keys = evaluate_expressions_to_arrays(&self.keys, &batch)?;
        self.has_null |= keys.first().is_some_and(|key| key.logical_null_count() > 0);
        self.hashes.clear();
        self.hashes.resize(batch.num_rows(), 0);
        create_hashes(&keys, &self.hash, &mut self.hashes)?;
        let mut rows_of = vec![Vec::new(); BUCKETS];
        for (row, hash) in self.hashes.iter().enumerate() {
            // The high bits: hash tables take the low ones.
            let bucket = (u128::from(*hash) * BUCKETS as u128) >> 64;
            rows_of[bucket as usize].push(row as u32);
        }
        for (bucket, rows) in rows_of.into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            self.buckets[bucket].rows += rows.len();
            let rows = UInt32Array::from(rows);
            let waiting = &mut self.buckets[bucket].waiting;
            waiting.push_batch_with_indices(batch.clone(), &rows)?;
            self.write(bucket)?;
        }
        Ok(())
    }

    fn write(&mut self, bucket: usize) -> Result<()> {
        let OpenBucket { waiting, open, .. } = &mut self.buckets[bucket];
        while let Some(batch) = waiting.next_completed_batch() {
            let append = match open {
                Some(append) => append,
                None => {
                    let mut file = self.files.create_in_progress_file(self.what)?;
                    open.insert(Box::new(move |batch| match batch {
                        Some(batch) => file.append_batch(batch).map(|_| None),
                        None => file.finish(),
                    }))
                }
            };
            append(Some(&batch))?;
        }
        Ok(())
    }

    /// The buckets, complete.
    pub fn finish(mut self) -> Result<Buckets> {
        let mut all = Buckets {
            has_null: self.has_null,
            ..Buckets::default()
        };
        for bucket in 0..BUCKETS {
            self.buckets[bucket].waiting.finish_buffered_batch()?;
            self.write(bucket)?;
            let file = match self.buckets[bucket].open.take() {
                Some(mut append) => append(None)?,
                None => None,
            };
            all.files.push(file.into_iter().collect());
            all.rows.push(self.buckets[bucket].rows);
        }
        Ok(all)
    }
}
