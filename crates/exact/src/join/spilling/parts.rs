//! One side of a join, dealt to files by a hash of its keys.

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

/// Files of one side. More make smaller hash tables; each has a buffer of some 64 KiB while it is written.
pub(super) const PARTS: usize = 32;
/// Unlike the seeds of exchanges and hash tables.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// Rows that wait for being written together, per file.
const WRITTEN_ROWS: usize = 1024;

/// What one side became.
#[derive(Clone, Default)]
pub(super) struct Parts {
    /// Per part its files; none if it has no rows.
    pub files: Vec<Vec<Arc<dyn SpillFile>>>,
    /// Per part its rows.
    pub rows: Vec<usize>,
    /// Whether the key of some row is NULL; if there are several keys, the first.
    pub has_null: bool,
}

impl Parts {
    pub fn all_rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Both together.
    pub fn join(mut self, other: Parts) -> Parts {
        if self.files.is_empty() {
            return other;
        }
        for (part, (files, rows)) in other.files.into_iter().zip(other.rows).enumerate() {
            self.files[part].extend(files);
            self.rows[part] += rows;
        }
        self.has_null |= other.has_null;
        self
    }
}

/// Deals rows to files.
pub(super) struct Dealer {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Of its own at each depth, or rows that went to one part once would do so again.
    hash: RandomState,
    parts: Vec<Part>,
    has_null: bool,
    what: &'static str,
    files: SpillManager,
    hashes: Vec<u64>,
}

/// Appends a batch to a file, or without one finishes it. The type of an open file has no name here.
type Append = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

struct Part {
    waiting: BatchCoalescer,
    rows: usize,
    open: Option<Append>,
}

impl Dealer {
    pub fn new(
        keys: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
        depth: usize,
        what: &'static str,
        context: Arc<TaskContext>,
        metrics: SpillMetrics,
    ) -> Self {
        let part = || Part {
            waiting: BatchCoalescer::new(Arc::clone(&schema), WRITTEN_ROWS),
            rows: 0,
            open: None,
        };
        Dealer {
            keys,
            hash: RandomState::with_seed(SEED + depth as u64),
            parts: (0..PARTS).map(|_| part()).collect(),
            has_null: false,
            what,
            files: SpillManager::new(context.runtime_env(), metrics, schema),
            hashes: Vec::new(),
        }
    }

    /// Deals the rows of a batch.
    pub fn deal(&mut self, batch: RecordBatch) -> Result<()> {
        let keys = evaluate_expressions_to_arrays(&self.keys, &batch)?;
        self.has_null |= keys.first().is_some_and(|key| key.logical_null_count() > 0);
        self.hashes.clear();
        self.hashes.resize(batch.num_rows(), 0);
        create_hashes(&keys, &self.hash, &mut self.hashes)?;
        let mut dealt = vec![Vec::new(); PARTS];
        for (row, hash) in self.hashes.iter().enumerate() {
            // The high bits: hash tables take the low ones.
            let part = (u128::from(*hash) * PARTS as u128) >> 64;
            dealt[part as usize].push(row as u32);
        }
        for (part, rows) in dealt.into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            self.parts[part].rows += rows.len();
            let rows = UInt32Array::from(rows);
            let waiting = &mut self.parts[part].waiting;
            waiting.push_batch_with_indices(batch.clone(), &rows)?;
            self.write(part)?;
        }
        Ok(())
    }

    fn write(&mut self, part: usize) -> Result<()> {
        let Part { waiting, open, .. } = &mut self.parts[part];
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

    /// The files, complete.
    pub fn finish(mut self) -> Result<Parts> {
        let mut all = Parts {
            has_null: self.has_null,
            ..Parts::default()
        };
        for part in 0..PARTS {
            self.parts[part].waiting.finish_buffered_batch()?;
            self.write(part)?;
            let file = match self.parts[part].open.take() {
                Some(mut append) => append(None)?,
                None => None,
            };
            all.files.push(file.into_iter().collect());
            all.rows.push(self.parts[part].rows);
        }
        Ok(all)
    }
}
