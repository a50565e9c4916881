//! A partial aggregate of a union is the union of partial aggregates.
//!
//! ```text
//! AggregateExec Partial, gby=[k]            UnionExec
//!   UnionExec                                 FragmentExec t: groups=[k]
//!     FragmentExec t: columns=[k]     ──►     FragmentExec u: groups=[l]
//!     FragmentExec u: columns=[l]
//! ```
//!
//! So groups are made where the rows are. It is done if at least one of the inputs can do so.

use super::pushed;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::union::UnionExec;
use std::sync::Arc;

/// The union that has the same partial groups; `None` if nothing is gained.
pub(super) fn below_union(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(union) = aggregate.input().downcast_ref::<UnionExec>() else {
        return Ok(None);
    };
    if *aggregate.mode() != AggregateMode::Partial {
        return Ok(None);
    }
    let mut gains = false;
    let mut inputs = Vec::new();
    for input in union.inputs() {
        let Some(own) = of_input(aggregate, input)? else {
            return Ok(None);
        };
        let planned: Arc<dyn ExecutionPlan> = Arc::new(own.clone());
        inputs.push(match pushed(&own, &planned)? {
            Some(pushed) => {
                gains = true;
                pushed
            }
            None => planned,
        });
    }
    if !gains {
        return Ok(None);
    }
    let union = UnionExec::try_new(inputs)?;
    Ok((union.schema() == aggregate.schema()).then_some(union))
}

/// The same aggregate of one input; `None` if a function cannot be moved.
fn of_input(
    aggregate: &AggregateExec,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Option<AggregateExec>> {
    let schema = input.schema();
    // The union's columns have the names of its first input's.
    let named = |expr: &PhysicalExprRef| {
        let named = Arc::clone(expr).transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    let name = schema.field(column.index()).name();
                    Transformed::yes(Arc::new(Column::new(name, column.index())) as _)
                }
                None => Transformed::no(part),
            })
        });
        named.data()
    };
    let by = aggregate.group_expr();
    let keys = by.expr().iter();
    let keys = keys.map(|(key, name)| Ok((named(key)?, name.clone())));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let mut functions = Vec::new();
    for function in aggregate.aggr_expr() {
        let arguments = function.expressions();
        let arguments = arguments.iter().map(named).collect::<Result<_>>()?;
        let moved = match function.order_bys() {
            [] => function.with_new_expressions(arguments, Vec::new()),
            _ => None,
        };
        let Some(moved) = moved else {
            return Ok(None);
        };
        functions.push(Arc::new(moved));
    }
    let filters = aggregate.filter_expr().iter();
    let filters = filters.map(|filter| filter.as_ref().map(named).transpose());
    let filters = filters.collect::<Result<Vec<_>>>()?;
    let (nulls, sets) = (by.null_expr().to_vec(), by.groups().to_vec());
    let by = PhysicalGroupBy::new(keys, nulls, sets, by.has_grouping_set());
    let (mode, input) = (AggregateMode::Partial, Arc::clone(input));
    AggregateExec::try_new(mode, by, functions, filters, input, schema).map(Some)
}
