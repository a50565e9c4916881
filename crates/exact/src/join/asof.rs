//! `ASOF JOIN`: each row with the row of the other side that is nearest before it, or behind it.
//!
//! **Adds** it. It arrives as a join whose condition calls a function that is nothing but a mark:
//!
//! ```text
//! l JOIN r ON l.k = r.k AND l.t >= r.t AND "asof("()    an AsOfJoin node, and AsOfJoinExec: a merge of sorted inputs
//! ```

mod exec;
mod filters;
mod merge;

use crate::walk::rewrite_nodes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, exec_err, internal_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::build_join_schema;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Extension, Join, JoinType, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDFImpl, Signature, UserDefinedLogicalNodeCore, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
pub(crate) use exec::PlannerWithJoins;
pub(crate) use filters::FilterBelowAsOf;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The function that marks the condition of an ASOF join. No name that is written without quotes is the same.
pub const ASOF: &str = "asof(";

/// The mark.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    signature: Signature,
}

impl Default for Mark {
    fn default() -> Self {
        Mark {
            signature: Signature::nullary(Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &str {
        ASOF
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{ASOF}) stands for a kind of join, and has no value")
    }
}

/// The rule that makes ASOF joins of the marked ones.
#[derive(Debug)]
pub(crate) struct MarkedJoins;

impl AnalyzerRule for MarkedJoins {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found |= is_marked(node);
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        if !found {
            return Ok(plan);
        }
        rewrite_nodes(plan, &mut |node| match (is_marked(&node), node) {
            (true, LogicalPlan::Join(join)) => Ok(Transformed::yes(asof(join)?)),
            (_, node) => Ok(Transformed::no(node)),
        })
    }

    fn name(&self) -> &str {
        "marked_joins"
    }
}

fn is_marked(node: &LogicalPlan) -> bool {
    let LogicalPlan::Join(Join {
        filter: Some(filter),
        ..
    }) = node
    else {
        return false;
    };
    split_conjunction(filter).into_iter().any(is_mark)
}

fn is_mark(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Mark>())
}

fn asof(join: Join) -> Result<LogicalPlan> {
    let conditions = split_conjunction_owned(join.filter.unwrap_or_default());
    let mut conditions: Vec<Expr> = conditions
        .into_iter()
        .filter(|condition| !is_mark(condition))
        .collect();
    let is_equality = |condition: &Expr| {
        matches!(
            condition,
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Eq,
                ..
            })
        )
    };
    // The comparison that goes on comes last.
    conditions.sort_by_key(|condition| !is_equality(condition));
    let node = AsOfJoin::new(join.left, join.right, conditions, join.join_type)?;
    for condition in &node.conditions {
        if node.sides(condition).is_none() {
            return plan_err!(
                "ASOF JOIN compares an expression of its left side with one of its right side, not {condition}"
            );
        }
    }
    Ok(LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    }))
}

/// An ASOF join.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AsOfJoin {
    left: Arc<LogicalPlan>,
    right: Arc<LogicalPlan>,
    /// Equalities, and the comparison that goes on as the last one.
    conditions: Vec<Expr>,
    join_type: JoinType,
    schema: DFSchemaRef,
}

impl AsOfJoin {
    fn new(
        left: Arc<LogicalPlan>,
        right: Arc<LogicalPlan>,
        conditions: Vec<Expr>,
        join_type: JoinType,
    ) -> Result<Self> {
        let schema = build_join_schema(left.schema(), right.schema(), &join_type)?;
        Ok(AsOfJoin {
            left,
            right,
            conditions,
            join_type,
            schema: Arc::new(schema),
        })
    }

    /// What a condition compares: of the left side, how, and of the right side.
    fn sides<'a>(&self, condition: &'a Expr) -> Option<(&'a Expr, Operator, &'a Expr)> {
        let (left, op, right) = match condition {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left, op, right),
            // A rule that changes an expression keeps its name.
            Expr::Alias(alias) => return self.sides(&alias.expr),
            _ => return None,
        };
        let is_of = |expr: &Expr, side: &LogicalPlan| {
            let columns = expr.column_refs();
            !columns.is_empty()
                && columns
                    .iter()
                    .all(|column| side.schema().has_column(column))
        };
        if is_of(left, &self.left) && is_of(right, &self.right) {
            Some((left, *op, right))
        } else if is_of(right, &self.left) && is_of(left, &self.right) {
            Some((right, op.swap()?, left))
        } else {
            None
        }
    }
}

impl PartialOrd for AsOfJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.conditions.partial_cmp(&other.conditions)
    }
}

impl UserDefinedLogicalNodeCore for AsOfJoin {
    fn name(&self) -> &str {
        "AsOfJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.conditions.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsOfJoin: {}", self.join_type)?;
        self.conditions
            .iter()
            .try_for_each(|condition| write!(f, " {condition}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return internal_err!("an ASOF join has two inputs");
        };
        AsOfJoin::new(Arc::new(left), Arc::new(right), exprs, self.join_type)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.left.schema().fields().len();
        let (left, right): (Vec<_>, Vec<_>) = output.iter().partition(|column| **column < width);
        let right = right.into_iter().map(|column| column - width);
        Some(vec![left, right.collect()])
    }
}
