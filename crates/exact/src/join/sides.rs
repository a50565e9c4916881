//! Which side of a hash join is made a table.
//!
//! A row of the build side costs more than one of the probe side. It is scattered and put into the table, its columns
//! are copied, and of an outer join it is looked at once more at the end. What a row has in bytes matters less, but
//! it does: a few wide rows are left to be the probe side of more rows that are narrow.
//!
//! **Stands for** DataFusion's `JoinSelection`, which goes by bytes.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// So much of the probe side's rows the build side has at most.
const PART: f64 = 1.2;
/// So many times its bytes the other side may have to become the build side.
const BYTES: f64 = 2.0;
/// So many times its rows the other side may have to become the build side, if it has far fewer bytes.
const ROWS: f64 = 4.0;

/// What is taken for the bytes of a text.
const TEXT: usize = 24;

/// The rule; behind DataFusion's own.
#[derive(Debug)]
pub(crate) struct SmallerBuildSides;

impl PhysicalOptimizerRule for SmallerBuildSides {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.optimizer.join_reordering {
            return Ok(plan);
        }
        plan.transform_up(|node| match node.downcast_ref::<HashJoinExec>() {
            Some(join) if should_swap(join)? => Ok(Transformed::yes(
                join.swap_inputs(PartitionMode::CollectLeft)?,
            )),
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "smaller_build_sides"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the probe side would be the better build side.
fn should_swap(join: &HashJoinExec) -> Result<bool> {
    let can_be = *join.partition_mode() == PartitionMode::CollectLeft
        && join.join_type().supports_swap()
        && !join.null_aware;
    if !can_be {
        return Ok(false);
    }
    let size = |plan: &Arc<dyn ExecutionPlan>| -> Result<Option<(f64, f64)>> {
        let bytes = width(&plan.schema());
        Ok(rows(plan)?.map(|rows| (rows, rows * bytes)))
    };
    let (Some((rows, bytes)), Some((probe_rows, probe_bytes))) =
        (size(join.left())?, size(join.right())?)
    else {
        return Ok(false);
    };
    // Far fewer rows may be as many times wider.
    let times = BYTES.max(rows / probe_rows.max(1.0));
    let has_fewer_rows = rows > PART * probe_rows && probe_bytes <= times * bytes;
    let has_fewer_bytes = bytes > BYTES * probe_bytes && probe_rows <= ROWS * rows;
    Ok(has_fewer_rows || has_fewer_bytes)
}

/// How many rows a plan yields, if that can be told.
///
/// Of joins by several columns DataFusion takes the one with most values, as if the others told nothing.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<f64>> {
    let hands_on = plan.is::<CoalescePartitionsExec>() || plan.is::<RepartitionExec>();
    if hands_on && plan.fetch().is_none() {
        return rows(plan.children()[0]);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && *join.join_type() == JoinType::Inner
        && join.on().len() > 1
    {
        let (left, right): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
        let (left, right) = (keys(join.left(), &left)?, keys(join.right(), &right)?);
        return Ok(left
            .zip(right)
            .map(|((left, left_keys), (right, right_keys))| {
                left * right / left_keys.max(right_keys).max(1.0)
            }));
    }
    let statistics = statistics(plan)?;
    let rows = statistics.num_rows.get_value();
    Ok(rows.map(|&rows| rows as f64))
}

/// The rows of a plan, and how many keys they have at most.
fn keys(plan: &Arc<dyn ExecutionPlan>, keys: &[PhysicalExprRef]) -> Result<Option<(f64, f64)>> {
    let Some(rows) = rows(plan)? else {
        return Ok(None);
    };
    let columns = statistics(plan)?;
    let distinct = keys.iter().map(|key| {
        let column = key.downcast_ref::<Column>();
        let column = column.and_then(|column| columns.column_statistics.get(column.index()));
        let distinct = column.and_then(|column| column.distinct_count.get_value());
        distinct.map_or(rows, |&distinct| distinct as f64)
    });
    Ok(Some((rows, distinct.product::<f64>().min(rows))))
}

fn statistics(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<Statistics>> {
    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())
}

/// The bytes of a row.
fn width(schema: &Schema) -> f64 {
    let widths = schema.fields().iter().map(|field| {
        let fixed = field.data_type().primitive_width();
        fixed.unwrap_or(TEXT)
    });
    widths.sum::<usize>() as f64
}
