//! Conditions that fragments cannot evaluate, on text that repeats: computed once for each string.
//!
//! ```text
//! FilterExec regexp_like(s, 'a.c')          FragmentExec t, lookups=[passing s]
//!   FragmentExec t: columns=[s, …]   ──►      DictionaryExec s: the strings for which it holds
//! ```
//!
//! What is left of the filter stays above. Of a fragment that other relations are joined to, nothing is moved. If the
//! condition fails for a string, or holds for very many, all is executed as it was planned. What is not true of NULL is
//! right for it: rows with NULL find nothing.

use crate::plan::dictionary_exec::{DictionaryExec, has_few_strings};
use crate::plan::fragment_exec::{BuildSide, FragmentExec, SideJoin, Star};
use crate::plan::one_column::{of_null, on_column, only_column};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::utils::conjunction;
use datafusion::physical_expr::{PhysicalExprRef, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use eris_fragment::{Expr, Output, Type};
use std::sync::Arc;

/// Of fewer rows the condition is computed as fast as the strings are looked for.
const MANY_ROWS: f64 = 16_384.0;

/// The rule.
#[derive(Debug)]
pub(crate) struct ComputeFilters;

impl PhysicalOptimizerRule for ComputeFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let filter = node.downcast_ref::<FilterExec>();
            let computed = filter.map(computed).transpose()?.flatten();
            Ok(match computed {
                Some(computed) => Transformed::yes(computed),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "compute_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same rows with conditions of strings moved into the fragment; `None` if there is none to move.
fn computed(filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(fragment) = filter.input().downcast_ref::<FragmentExec>() else {
        return Ok(None);
    };
    let columns = fragment.open_rows().filter(|_| fragment.computes_values());
    let (Some(columns), None, false) = (columns, filter.projection(), fragment.is_joined()) else {
        return Ok(None);
    };
    let (mut left, mut sides) = (Vec::new(), Vec::new());
    for conjunct in split_conjunction(filter.predicate()) {
        match side(conjunct, fragment, columns)? {
            Some(side) => sides.push(side),
            None => left.push(Arc::clone(conjunct)),
        }
    }
    if sides.is_empty() {
        return Ok(None);
    }
    // As a whole: what one condition leaves out, another may fail for.
    let planned: Arc<dyn ExecutionPlan> = Arc::new(filter.clone());
    let star: Star = fragment.star_with(sides);
    let output = Output::Rows {
        columns: columns.to_vec(),
        limit: None,
    };
    let joined = fragment.joined(star, output, fragment.schema());
    let joined: Arc<dyn ExecutionPlan> = Arc::new(joined.with_joins_below(&planned)?);
    Ok(Some(match left.is_empty() {
        true => joined,
        false => Arc::new(FilterExec::try_new(conjunction(left), joined)?),
    }))
}

/// The strings for which a condition holds, if it is one of a column whose strings are known.
fn side(
    condition: &PhysicalExprRef,
    fragment: &FragmentExec,
    columns: &[Expr],
) -> Result<Option<BuildSide>> {
    let (Some(place), scan) = (only_column(condition)?, fragment.scan()) else {
        return Ok(None);
    };
    let column = match columns[place] {
        Expr::Column(column) if column < scan.table.types.len() => column,
        _ => return Ok(None),
    };
    let rows = fragment.expected_rows();
    let are_few = || rows >= MANY_ROWS && has_few_strings(scan, column, rows);
    if scan.types[column] != Type::String || !are_few() {
        return Ok(None);
    }
    let of_null = of_null(condition, place, &fragment.schema())?;
    let is_true = |result: &dyn Array| result.is_valid(0) && result.as_boolean().value(0);
    if of_null.is_none_or(|result| is_true(&result)) {
        return Ok(None);
    }
    let name = fragment.schema().field(place).name().clone();
    let condition = on_column(condition, &name, 0)?;
    let strings = DictionaryExec::passing(scan, column, condition);
    Ok(strings.map(|strings| BuildSide {
        plan: Arc::new(strings),
        column,
        types: Vec::new(),
        join: SideJoin::Passing,
        origin: None,
    }))
}
