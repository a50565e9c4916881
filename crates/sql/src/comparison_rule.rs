//! DECIMAL against DOUBLE is compared as DOUBLE, as arithmetic on them is done.
//!
//! DataFusion would compare as DECIMAL(30, 15), which fails for large numbers and, at a bare column, keeps the comparison
//! from being made on the stored values. Numbers that are written with a point are DECIMAL, so `x > 0.5` is such a case.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// The rule. Runs before DataFusion makes the types of operands equal.
#[derive(Debug)]
pub(crate) struct CompareAsDouble;

impl AnalyzerRule for CompareAsDouble {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| Ok(rewrite(expr, &schema)))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "compare_as_double"
    }
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let double = |expr: Box<Expr>| Box::new(to_double(*expr, schema));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && mixed([&*left, &*right], schema) =>
        {
            let (left, right) = (double(left), double(right));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) if mixed([&*expr, &*low, &*high], schema) => {
            let (expr, low, high) = (double(expr), double(low), double(high));
            Transformed::yes(Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }))
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) if mixed(std::iter::once(&*expr).chain(&list), schema) => {
            let list = list
                .into_iter()
                .map(|value| to_double(value, schema))
                .collect();
            let expr = double(expr);
            Transformed::yes(Expr::InList(InList {
                expr,
                list,
                negated,
            }))
        }
        other => Transformed::no(other),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether there are both DECIMAL and floating-point operands.
fn mixed<'a>(operands: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let (mut decimal, mut float) = (false, false);
    for operand in operands {
        match operand.get_type(schema) {
            Ok(DataType::Decimal128(..) | DataType::Decimal256(..)) => decimal = true,
            Ok(DataType::Float32 | DataType::Float64) => float = true,
            _ => {}
        }
    }
    decimal && float
}

fn to_double(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Decimal128(..) | DataType::Decimal256(..)) => cast(expr, DataType::Float64),
        _ => expr,
    }
}
