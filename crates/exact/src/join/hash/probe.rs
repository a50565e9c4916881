//! The probe side: batch by batch, and then what is left of the build side.

use super::build::BuildSide;
use super::keys::{BatchKeys, retain_equal};
use super::output::{Rows, retain_true};
use super::{Building, JoinSpec};
use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::JoinType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use eris_join::{Cursor, Located, NO_ROW, Pairs};
use futures::{StreamExt, TryStreamExt, stream};
use std::ops::Range;
use std::sync::Arc;

/// A partition of the probe side.
pub(super) struct Prober {
    spec: Arc<JoinSpec>,
    /// Until it has ended.
    input: Option<SendableRecordBatchStream>,
    /// What is being joined.
    batch: Option<ProbeBatch>,
    /// Rows of the build side that have not been looked at yet, once the probe side has ended.
    rest: Option<Range<usize>>,
    /// Small results become larger ones.
    results: BatchCoalescer,
    batch_rows: usize,
    /// Rows of the result that are still wanted.
    wanted: usize,
    metrics: BaselineMetrics,
}

/// A batch of the probe side that is being joined.
struct ProbeBatch {
    batch: RecordBatch,
    keys: BatchKeys,
    codes: Vec<u64>,
    located: Vec<Located>,
    cursor: Cursor,
    /// Whether the row that the cursor is in has had a match.
    has_match: bool,
}

impl Prober {
    pub fn new(
        spec: Arc<JoinSpec>,
        input: SendableRecordBatchStream,
        batch_rows: usize,
        metrics: BaselineMetrics,
    ) -> Self {
        let results = BatchCoalescer::new(Arc::clone(&spec.schema), batch_rows);
        Prober {
            results: results.with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            wanted: spec.planned.fetch().unwrap_or(usize::MAX),
            spec,
            input: Some(input),
            batch: None,
            rest: None,
            batch_rows,
            metrics,
        }
    }

    /// The result, once there is a build side.
    pub fn stream(self, building: Building) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.spec.schema);
        let joined = async move {
            let side = building.await.map_err(DataFusionError::Shared)?;
            Ok::<_, DataFusionError>(stream::try_unfold(
                (self, side),
                |(mut prober, side)| async move {
                    let next = prober.next(&side).await?;
                    Ok::<_, DataFusionError>(next.map(|batch| (batch, (prober, side))))
                },
            ))
        };
        let joined = stream::once(joined).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, joined))
    }

    async fn next(&mut self, side: &Arc<BuildSide>) -> Result<Option<RecordBatch>> {
        loop {
            if self.wanted == 0 {
                return Ok(None);
            }
            if let Some(batch) = self.results.next_completed_batch() {
                let batch = batch.slice(0, batch.num_rows().min(self.wanted));
                self.wanted -= batch.num_rows();
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if self.batch.is_some() || self.rest.is_some() {
                let time = self.metrics.elapsed_compute().clone();
                let _timer = time.timer();
                let joined = self.step(side)?;
                drop(_timer);
                match joined {
                    Some(joined) => self.results.push_batch(joined)?,
                    // A batch may have any number of pairs of which nothing is left.
                    None => tokio::task::consume_budget().await,
                }
                continue;
            }
            let Some(input) = &mut self.input else {
                return Ok(None);
            };
            let none = self.spec.has_no_result(side);
            let batch = if none {
                None
            } else {
                input.next().await.transpose()?
            };
            let time = self.metrics.elapsed_compute().clone();
            let _timer = time.timer();
            match batch {
                Some(batch) => self.batch = Some(ProbeBatch::new(batch, &self.spec, side)?),
                None => {
                    self.input = None;
                    let is_last = side.end_of_probe();
                    self.rest =
                        (is_last && self.spec.asks_for_matches_of_build()).then_some(0..side.rows);
                    if self.rest.is_none() {
                        self.results.finish_buffered_batch()?;
                    }
                }
            }
        }
    }

    /// Some rows of what is being joined, if there are any among those that were looked at.
    fn step(&mut self, side: &BuildSide) -> Result<Option<RecordBatch>> {
        if let Some(batch) = &mut self.batch {
            let joined = batch.step(&self.spec, side, self.batch_rows)?;
            if batch.cursor.row == batch.codes.len() {
                self.batch = None;
            }
            return Ok(joined);
        }
        let rest = self.rest.take().unwrap_or_default();
        let now = rest.start..rest.end.min(rest.start + self.batch_rows);
        match now.end == rest.end {
            true => {
                let joined = self.spec.rest(side, now)?;
                if let Some(joined) = joined {
                    self.results.push_batch(joined)?;
                }
                self.results.finish_buffered_batch()?;
                Ok(None)
            }
            false => {
                self.rest = Some(now.end..rest.end);
                self.spec.rest(side, now)
            }
        }
    }
}

impl ProbeBatch {
    fn new(batch: RecordBatch, spec: &JoinSpec, side: &BuildSide) -> Result<Self> {
        let keys = BatchKeys::evaluate(&spec.probe_keys, &batch)?;
        let codes = side.coding.codes(&keys)?;
        let mut located = Vec::new();
        side.table.locate(&codes, &mut located);
        Ok(ProbeBatch {
            batch,
            keys,
            codes,
            located,
            cursor: Cursor::default(),
            has_match: false,
        })
    }

    /// Joins some of its rows.
    fn step(
        &mut self,
        spec: &JoinSpec,
        side: &BuildSide,
        most: usize,
    ) -> Result<Option<RecordBatch>> {
        use JoinType::*;
        let is_sure = side.coding.is_exact() && spec.filter.is_none();
        if is_sure && matches!(spec.join_type, RightSemi | RightAnti | RightMark) {
            let found = self.located.iter().map(|found| found.len > 0).collect();
            let rows = 0..self.codes.len();
            self.cursor.row = rows.end;
            return self.by_match(spec, side, rows, found);
        }
        let before = self.cursor;
        // Else it is known only later which rows have none.
        let others = is_sure && matches!(spec.join_type, Right | Full);
        let (codes, located) = (&self.codes, &self.located);
        let mut pairs = (side.table).pairs(codes, located, &mut self.cursor, most, others);
        if !side.coding.is_exact() {
            retain_equal(&mut pairs, &side.keys, &self.keys.arrays)?;
        }
        if let Some(filter) = &spec.filter
            && !pairs.probe.is_empty()
        {
            retain_true(&mut pairs, filter, side, &self.batch)?;
        }
        side.note_matches(&pairs.build);
        // Rows that have been paired with all their matches.
        let rows = before.row..self.cursor.row;
        match spec.join_type {
            Inner | Left => self.of_pairs(spec, side, pairs),
            Right | Full if others => self.of_pairs(spec, side, pairs),
            Right | Full => {
                let found = self.found(&pairs, before);
                self.of_pairs_and_others(spec, side, pairs, rows, &found)
            }
            RightSemi | RightAnti | RightMark => {
                let found = self.found(&pairs, before);
                self.by_match(spec, side, rows, found)
            }
            LeftSemi | LeftAnti | LeftMark => Ok(None),
        }
    }

    /// Whether each row that has been paired with all its matches has one; remembers it of the one that has not.
    fn found(&mut self, pairs: &Pairs, before: Cursor) -> Vec<bool> {
        let mut found = vec![false; self.cursor.row - before.row + 1];
        found[0] = before.done > 0 && self.has_match;
        for row in &pairs.probe {
            found[*row as usize - before.row] = true;
        }
        self.has_match = found.pop().unwrap_or(false);
        found
    }

    fn of_pairs(
        &self,
        spec: &JoinSpec,
        side: &BuildSide,
        pairs: Pairs,
    ) -> Result<Option<RecordBatch>> {
        if pairs.probe.is_empty() {
            return Ok(None);
        }
        let rows = (&Rows::of_some(pairs.build), &Rows::of(pairs.probe));
        spec.joined(side, rows, &self.batch, None).map(Some)
    }

    /// Pairs, and among them the rows without a match.
    fn of_pairs_and_others(
        &self,
        spec: &JoinSpec,
        side: &BuildSide,
        pairs: Pairs,
        rows: Range<usize>,
        found: &[bool],
    ) -> Result<Option<RecordBatch>> {
        let mut joined = Pairs::default();
        let mut push = |probe: &[u32], build: &[u32]| {
            joined.probe.extend_from_slice(probe);
            joined.build.extend_from_slice(build);
        };
        let mut next = 0;
        for (row, has_match) in rows.zip(found) {
            let row = row as u32;
            if !has_match {
                push(&[row], &[NO_ROW]);
            }
            let own = pairs.probe[next..]
                .iter()
                .take_while(|other| **other == row);
            let end = next + own.count();
            push(&pairs.probe[next..end], &pairs.build[next..end]);
            next = end;
        }
        // Of the row that is not finished.
        push(&pairs.probe[next..], &pairs.build[next..]);
        self.of_pairs(spec, side, joined)
    }

    /// Rows by whether they have a match.
    fn by_match(
        &self,
        spec: &JoinSpec,
        side: &BuildSide,
        rows: Range<usize>,
        found: Vec<bool>,
    ) -> Result<Option<RecordBatch>> {
        let first = rows.start as u32;
        let (chosen, mark): (Vec<u32>, _) = match spec.join_type {
            JoinType::RightMark => ((first..rows.end as u32).collect(), Some(found)),
            join_type => {
                let wanted = join_type == JoinType::RightSemi;
                let chosen = (first..).zip(found).filter(|(_, found)| *found == wanted);
                (chosen.map(|(row, _)| row).collect(), None)
            }
        };
        if chosen.is_empty() {
            return Ok(None);
        }
        let nothing = Rows::Nulls(0);
        let rows = (&nothing, &Rows::of(chosen));
        spec.joined(side, rows, &self.batch, mark).map(Some)
    }
}

impl JoinSpec {
    /// What is left of these rows of the build side, when all matches are known.
    fn rest(&self, side: &BuildSide, rows: Range<usize>) -> Result<Option<RecordBatch>> {
        let first = rows.start as u32;
        let found = rows.map(|row| side.has_match(row));
        let (chosen, mark): (Vec<u32>, _) = match self.join_type {
            JoinType::LeftMark => {
                let found: Vec<bool> = found.collect();
                ((first..).take(found.len()).collect(), Some(found))
            }
            join_type => {
                let wanted = join_type == JoinType::LeftSemi;
                let chosen = (first..).zip(found).filter(|(_, found)| *found == wanted);
                (chosen.map(|(row, _)| row).collect(), None)
            }
        };
        if chosen.is_empty() {
            return Ok(None);
        }
        let probe = RecordBatch::new_empty(self.planned.right().schema());
        let nulls = Rows::Nulls(chosen.len());
        // Copied: a piece of a column holds all of it.
        let rows = (&Rows::Chosen(UInt32Array::from(chosen)), &nulls);
        self.joined(side, rows, &probe, mark).map(Some)
    }
}
