//! What is decided by the types as they are written, before DataFusion makes those of operands equal: one walk over the
//! plan, in which each expression passes all repairs of that kind.

use crate::arithmetic::{date, division};
use crate::comparison::{common_type, mixed, pattern, quantified, timestamp, turned, values};
use crate::lists;
use crate::text;
use crate::walk::{rewrite_expressions, rewrite_nodes, rewrite_parts};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(crate) struct WrittenTypes;

impl AnalyzerRule for WrittenTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |node| {
            common_type::check_node(&node)?;
            let node = match node {
                LogicalPlan::Union(union) => mixed::union(union)?,
                LogicalPlan::Join(join) => mixed::join(join),
                other => Transformed::no(other),
            };
            let node = node.transform_data(|node| rewrite_expressions(node, &rewrite))?;
            node.transform_data(|node| match node {
                LogicalPlan::Values(values) => values::retype(values),
                other => Ok(Transformed::no(other)),
            })
        })
    }

    fn name(&self) -> &str {
        "written_types"
    }
}

/// Rejects a cast to timestamps of a zone that nobody knows: they could not be shown.
fn check_zone(expr: &Expr) -> Result<()> {
    let to = match expr {
        Expr::Cast(cast) => cast.field.data_type(),
        Expr::TryCast(cast) => cast.field.data_type(),
        _ => return Ok(()),
    };
    match to {
        DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err() => {
            plan_err!("Unknown time zone '{zone}'")
        }
        _ => Ok(()),
    }
}

type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// The repairs in their order: each sees what the ones before it have made.
const REPAIRS: [Rewrite; 8] = [
    text::frame::rewrite,
    pattern::rewrite,
    lists::rewrite,
    division::rewrite,
    date::rewrite,
    timestamp::rewrite,
    mixed::rewrite,
    turned::rewrite,
];

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::SetComparison(comparison) = expr {
        // What it becomes has comparisons in it.
        let whole = quantified::by_extremes(comparison)?;
        let whole = rewrite_parts(whole, &mut |part| rewrite(part, schema))?;
        return Ok(Transformed::yes(whole));
    }
    check_zone(&expr)?;
    let mut all = text::rewrite_written(expr, schema)?;
    common_type::check_expr(&all.data, schema)?;
    for repair in REPAIRS {
        all = all.transform_data(|expr| repair(expr, schema))?;
    }
    Ok(all)
}
