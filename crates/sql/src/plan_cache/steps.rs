//! The operators above the rows of one key, applied to them without starting a plan.
//!
//! A plan of a few rows takes longer to start than to run: streams, channels, metrics. Where it only computes and
//! filters, row by row, its expressions are evaluated on the batch at hand.

use crate::write::quick::is_quick;
use datafusion::arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// Operators that change nothing about a few rows.
const PASSING: [&str; 4] = [
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "RepartitionExec",
];

/// Operators in the order in which rows pass them.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<Step>);

#[derive(Debug)]
enum Step {
    Filter(Arc<dyn PhysicalExpr>),
    Choose(Vec<usize>),
    Compute(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
}

impl Steps {
    /// The operators above a plan's leaf, and this. `None`: there are others than can be applied so.
    pub fn above_leaf(plan: &Arc<dyn ExecutionPlan>) -> Option<(Steps, &Arc<dyn ExecutionPlan>)> {
        let children = plan.children();
        let input = match children.as_slice() {
            [] => return Some((Steps::default(), plan)),
            [input] => *input,
            _ => return None,
        };
        let (mut steps, leaf) = Steps::above_leaf(input)?;
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr().iter();
            let exprs = exprs.map(|column| Arc::clone(&column.expr)).collect();
            steps.0.push(Step::Compute(exprs, plan.schema()));
        } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.fetch().is_some() {
                return None;
            }
            steps.0.push(Step::Filter(Arc::clone(filter.predicate())));
            if let Some(columns) = filter.projection().as_ref() {
                steps.0.push(Step::Choose(columns.to_vec()));
            }
        } else if !PASSING.contains(&plan.name()) || plan.fetch().is_some() {
            return None;
        }
        Some((steps, leaf))
    }

    /// Whether all of it is quick, for rows of the leaf's schema.
    pub fn are_quick(&self, leaf: &SchemaRef) -> bool {
        let mut schema = Arc::clone(leaf);
        self.0.iter().all(|step| match step {
            Step::Filter(condition) => is_quick(condition, &schema),
            Step::Choose(columns) => {
                let chosen = schema.project(columns);
                chosen.is_ok_and(|chosen| {
                    schema = Arc::new(chosen);
                    true
                })
            }
            Step::Compute(exprs, computed) => {
                let are_quick = exprs.iter().all(|expr| is_quick(expr, &schema));
                schema = Arc::clone(computed);
                are_quick
            }
        })
    }

    /// What becomes of rows of the leaf.
    pub fn apply(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let mut rows = rows;
        for step in &self.0 {
            rows = match step {
                Step::Filter(condition) => {
                    let passed = condition.evaluate(&rows)?.into_array(rows.num_rows())?;
                    filter_record_batch(&rows, passed.as_boolean())?
                }
                Step::Choose(columns) => rows.project(columns)?,
                Step::Compute(exprs, schema) => {
                    let count = rows.num_rows();
                    let columns = exprs.iter();
                    let columns = columns.map(|expr| expr.evaluate(&rows)?.into_array(count));
                    let columns = columns.collect::<Result<Vec<_>>>()?;
                    let options = RecordBatchOptions::new().with_row_count(Some(count));
                    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?
                }
            };
        }
        Ok(rows)
    }
}

/// The rows with another schema of the same types.
pub(super) fn with_schema(schema: &SchemaRef, rows: RecordBatch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let (_, columns, _) = rows.into_parts();
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}
