//! The plan of an order.

use super::relations::{JoinCondition, JoinedRelations, RelationColumn};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, NullEquality, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use eris_optimizer::{JoinGraph, JoinTree, RelationSet};
use std::sync::Arc;

/// Relations that have been joined.
struct Rows {
    plan: Arc<dyn ExecutionPlan>,
    relations: RelationSet,
    columns: Vec<RelationColumn>,
}

impl Rows {
    /// Where a column is; `None` if it is not there.
    fn place(&self, column: &RelationColumn) -> Option<usize> {
        self.columns.iter().position(|own| own == column)
    }

    fn column(&self, place: usize) -> PhysicalExprRef {
        Arc::new(Column::new(self.plan.schema().field(place).name(), place))
    }
}

/// An order of relations, as it becomes a plan.
struct Rebuilding<'a> {
    joined: &'a JoinedRelations,
    graph: &'a JoinGraph,
    /// The columns of the result.
    output: &'a [RelationColumn],
}

impl JoinedRelations {
    /// The plan that joins in this order, and what is computed of its rows: expressions over these columns, with the
    /// metadata of this schema.
    pub fn plan(
        &self,
        tree: &JoinTree,
        graph: &JoinGraph,
        columns: &[RelationColumn],
        exprs: &[ProjectionExpr],
        schema: &Schema,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let used = exprs.iter().flat_map(|expr| collect_columns(&expr.expr));
        let output: Vec<_> = used.map(|column| columns[column.index()]).collect();
        let rebuilding = Rebuilding {
            joined: self,
            graph,
            output: &output,
        };
        let rows = rebuilding.rows(tree)?;
        let exprs = exprs.iter().map(|expr| {
            let moved = Arc::clone(&expr.expr).transform_up(|part| {
                let Some(column) = part.downcast_ref::<Column>() else {
                    return Ok(Transformed::no(part));
                };
                match rows.place(&columns[column.index()]) {
                    Some(place) => Ok(Transformed::yes(rows.column(place))),
                    None => internal_err!("joins in another order lack the column {column}"),
                }
            });
            Ok(ProjectionExpr::new(moved.data()?, expr.alias.clone()))
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        let plan = Arc::clone(&rows.plan);
        let projection = ProjectionExec::try_new_with_schema_metadata(exprs, plan, schema)?;
        Ok(Arc::new(projection))
    }
}

impl Rebuilding<'_> {
    fn rows(&self, tree: &JoinTree) -> Result<Rows> {
        match tree {
            JoinTree::Relation(relation) => {
                let plan = Arc::clone(&self.joined.relations[*relation]);
                let columns = 0..plan.schema().fields().len();
                let columns = columns.map(|column| RelationColumn {
                    relation: *relation,
                    column,
                });
                Ok(Rows {
                    relations: RelationSet::one(*relation),
                    columns: columns.collect(),
                    plan,
                })
            }
            JoinTree::Join(one, other) => {
                let (one, other) = (self.rows(one)?, self.rows(other)?);
                // The smaller one is read first, unless statistics of the plan say something else later.
                match self.graph.rows(one.relations) <= self.graph.rows(other.relations) {
                    true => self.join(one, other),
                    false => self.join(other, one),
                }
            }
        }
    }

    fn join(&self, left: Rows, right: Rows) -> Result<Rows> {
        let mut on = Vec::new();
        for class in &self.joined.equal {
            let place = |rows: &Rows| class.iter().find_map(|column| rows.place(column));
            if let (Some(own), Some(other)) = (place(&left), place(&right)) {
                on.push((left.column(own), right.column(other)));
            }
        }
        let relations = left.relations.union(right.relations);
        let columns = [&left.columns[..], &right.columns].concat();
        let wanted = (0..columns.len()).filter(|&at| {
            self.is_wanted(&columns[at], relations) || self.is_key(at, &columns, relations)
        });
        let wanted: Vec<usize> = wanted.collect();
        let (inner, projection) = (JoinType::Inner, Some(wanted.clone()));
        let filter = self.filter(&left, &right)?;
        let (one, other) = (left.plan, right.plan);
        let plan: Arc<dyn ExecutionPlan> = match (on.is_empty(), filter) {
            (false, filter) => {
                let (mode, nulls) = (self.joined.mode, NullEquality::NullEqualsNothing);
                let mode = mode.unwrap_or(PartitionMode::Auto);
                let join = HashJoinExec::try_new(
                    one, other, on, filter, &inner, projection, mode, nulls, false,
                )?;
                Arc::new(join)
            }
            (true, Some(filter)) => {
                let filter = Some(filter);
                let join = NestedLoopJoinExec::try_new(one, other, filter, &inner, projection)?;
                Arc::new(join)
            }
            (true, None) => {
                let pairs = Arc::new(CrossJoinExec::new(one, other));
                let schema = pairs.schema();
                let columns = wanted.iter().map(|&place| {
                    let name = schema.field(place).name();
                    ProjectionExpr::new(Arc::new(Column::new(name, place)) as _, name.clone())
                });
                Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), pairs)?)
            }
        };
        Ok(Rows {
            plan,
            relations,
            columns: wanted.into_iter().map(|at| columns[at]).collect(),
        })
    }

    /// Whether a column of these relations is asked for by the result, or by a condition that cannot be asked yet.
    fn is_wanted(&self, column: &RelationColumn, relations: RelationSet) -> bool {
        let later = self
            .joined
            .conditions
            .iter()
            .filter(|condition| !relations.includes(condition.relations()));
        let mut of_conditions = later.flat_map(|condition| &condition.columns);
        self.output.contains(column) || of_conditions.any(|(of, _)| of == column)
    }

    /// Whether a column is the one by which its class is joined with other relations: the first of it that is there.
    fn is_key(&self, at: usize, columns: &[RelationColumn], relations: RelationSet) -> bool {
        let mut classes = self.joined.equal.iter();
        classes.any(|class| {
            let mut outside = class.iter();
            outside.any(|of| !relations.contains(of.relation))
                && columns.iter().position(|column| class.contains(column)) == Some(at)
        })
    }

    /// What can be asked once these are joined, and could not be before.
    fn filter(&self, left: &Rows, right: &Rows) -> Result<Option<JoinFilter>> {
        let relations = left.relations.union(right.relations);
        let mut all: Option<PhysicalExprRef> = None;
        let (mut places, mut fields) = (Vec::new(), Vec::new());
        for condition in &self.joined.conditions {
            let asked = condition.relations();
            // A relation alone has been asked nothing.
            let was_asked =
                |rows: &Rows| rows.relations.count() > 1 && rows.relations.includes(asked);
            if was_asked(left) || was_asked(right) || !relations.includes(asked) {
                continue;
            }
            let expr = moved(condition, places.len())?;
            for (column, field) in &condition.columns {
                let (side, place) = match (left.place(column), right.place(column)) {
                    (Some(place), _) => (JoinSide::Left, place),
                    (None, Some(place)) => (JoinSide::Right, place),
                    (None, None) => {
                        return internal_err!(
                            "joins in another order lack a condition's column {}",
                            field.name()
                        );
                    }
                };
                places.push(ColumnIndex { index: place, side });
                fields.push(Arc::clone(field));
            }
            all = Some(match all {
                Some(all) => Arc::new(BinaryExpr::new(all, Operator::And, expr)),
                None => expr,
            });
        }
        Ok(all.map(|all| JoinFilter::new(all, places, Arc::new(Schema::new(fields)))))
    }
}

/// The condition with its columns so many places further on.
fn moved(condition: &JoinCondition, by: usize) -> Result<PhysicalExprRef> {
    Arc::clone(&condition.condition)
        .transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    let column = Column::new(column.name(), column.index() + by);
                    Transformed::yes(Arc::new(column) as _)
                }
                None => Transformed::no(part),
            })
        })
        .data()
}
