//! What is known of relations before they are joined.

use super::relations::{JoinCondition, JoinedRelations, RelationColumn};
use crate::plan::origin::origin;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use eris_optimizer::{Condition, EquivalenceClass, JoinGraph, Member, Relation};

/// The rows of a relation of which nothing is known: many, so that it is not read first for nothing.
const UNKNOWN_ROWS: f64 = 1_048_576.0;
/// The share of rows for which two columns are equal, if that is asked beside other things.
const EQUAL: f64 = 0.1;
/// The share for which another condition is true.
const UNKNOWN: f64 = 0.3;

impl JoinedRelations {
    /// The same as numbers.
    pub fn graph(&self) -> Result<JoinGraph> {
        let mut relations = Vec::with_capacity(self.relations.len());
        let mut distinct = Vec::with_capacity(self.relations.len());
        for plan in &self.relations {
            let statistics =
                StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
            let rows = statistics.num_rows.get_value();
            let rows = rows.map_or(UNKNOWN_ROWS, |&rows| rows as f64);
            relations.push(Relation {
                rows,
                table_rows: rows,
            });
            let columns = statistics.column_statistics.iter();
            let columns = columns.map(|column| column.distinct_count.get_value().copied());
            distinct.push(columns.collect::<Vec<_>>());
        }
        let mut classes = Vec::with_capacity(self.equal.len());
        for class in &self.equal {
            let mut members = Vec::with_capacity(class.len());
            for &RelationColumn { relation, column } in class {
                // What the table's column has, whatever is asked of other columns.
                let table = origin(&self.relations[relation], column);
                let of_table = table.map(|(scan, column)| {
                    let table_rows = scan.statistics.rows() as f64;
                    let of_relation = &mut relations[relation];
                    of_relation.table_rows = of_relation.table_rows.max(table_rows);
                    scan.statistics.distinct(column).unwrap_or(table_rows)
                });
                let of_rows = || match distinct[relation].get(column) {
                    Some(Some(distinct)) => *distinct as f64,
                    _ => relations[relation].rows,
                };
                members.push(Member {
                    relation,
                    distinct: of_table.unwrap_or_else(of_rows),
                });
            }
            classes.push(EquivalenceClass { members });
        }
        let conditions = self.conditions.iter().map(JoinCondition::estimate);
        Ok(JoinGraph::new(relations, classes, conditions.collect()))
    }
}

impl JoinCondition {
    fn estimate(&self) -> Condition {
        Condition {
            relations: self.relations(),
            selectivity: selectivity(&self.condition),
        }
    }
}

/// The share of rows for which a condition is true.
fn selectivity(condition: &PhysicalExprRef) -> f64 {
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else {
        return UNKNOWN;
    };
    match binary.op() {
        Operator::And => selectivity(binary.left()) * selectivity(binary.right()),
        Operator::Or => (selectivity(binary.left()) + selectivity(binary.right())).min(1.0),
        Operator::Eq => EQUAL,
        Operator::NotEq => 1.0 - EQUAL,
        _ => UNKNOWN,
    }
}
