//! Cancelling operators that do not yield.
//!
//! A task is aborted where it yields. A nested-loop join compares all pairs of two inputs and yields only with what it finds,
//! which may be never. But it evaluates its condition for every few thousand pairs: so the condition asks whether anybody
//! still wants the answer.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use eris_fragment::FragmentError;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a statement was given up. Set once by its holder, read by its operators; it alone is the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

tokio::task_local! {
    /// The token of the statement that the current task serves.
    pub(crate) static STATEMENT: CancelToken;
}

impl CancelToken {
    /// Gives the statement up.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(DataFusionError::External(Box::new(
                FragmentError::Cancelled,
            )));
        }
        Ok(())
    }
}

/// The plan, whose nested-loop joins end when the current statement is given up.
pub(crate) fn heed(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Ok(token) = STATEMENT.try_with(CancelToken::clone) else {
        return Ok(plan);
    };
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(filter) = join.filter() else {
            return Ok(Transformed::no(node));
        };
        let asking = JoinFilter::new(
            Arc::new(UnlessCancelled {
                condition: Arc::clone(filter.expression()),
                token: token.clone(),
            }),
            filter.column_indices().to_vec(),
            Arc::clone(filter.schema()),
        );
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(asking));
        Ok(Transformed::yes(Arc::new(join.build()?) as _))
    })
    .data()
}

/// A condition that fails once the statement is given up.
#[derive(Debug)]
struct UnlessCancelled {
    condition: Arc<dyn PhysicalExpr>,
    token: CancelToken,
}

impl PartialEq for UnlessCancelled {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition) && Arc::ptr_eq(&self.token.0, &other.token.0)
    }
}

impl Eq for UnlessCancelled {}

impl Hash for UnlessCancelled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for UnlessCancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for UnlessCancelled {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.token.check()?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(UnlessCancelled {
            condition: children.remove(0),
            token: self.token.clone(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
