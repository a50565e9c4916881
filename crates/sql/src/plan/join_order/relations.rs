//! What a tree of inner joins joins.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion::physical_plan::projection::ProjectionExec;
use eris_optimizer::{JoinTree, RelationSet};
use std::sync::Arc;

/// A column of one of the relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RelationColumn {
    pub relation: usize,
    pub column: usize,
}

/// What is asked of columns beside their equality.
pub(super) struct JoinCondition {
    /// Over columns by their place in the list.
    pub condition: PhysicalExprRef,
    pub columns: Vec<(RelationColumn, FieldRef)>,
}

impl JoinCondition {
    fn of(filter: &JoinFilter, left: &[RelationColumn], right: &[RelationColumn]) -> Self {
        let columns = filter.column_indices().iter().map(|at| match at.side {
            JoinSide::Right => right[at.index],
            JoinSide::Left | JoinSide::None => left[at.index],
        });
        JoinCondition {
            condition: Arc::clone(filter.expression()),
            columns: columns
                .zip(filter.schema().fields().iter().cloned())
                .collect(),
        }
    }

    /// Those that must be joined before it can be asked.
    pub fn relations(&self) -> RelationSet {
        RelationSet::from_iter(self.columns.iter().map(|(column, _)| column.relation))
    }
}

/// Relations, and all that inner joins ask of them.
#[derive(Default)]
pub(super) struct JoinedRelations {
    pub relations: Vec<Arc<dyn ExecutionPlan>>,
    /// Columns that are equal to one another, in classes.
    pub equal: Vec<Vec<RelationColumn>>,
    pub conditions: Vec<JoinCondition>,
    /// How hash joins were to be executed.
    pub mode: Option<PartitionMode>,
}

impl JoinedRelations {
    /// Those of a tree, the order in which it joins them, and its columns. The number of relations is not limited.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> (Self, JoinTree, Vec<RelationColumn>) {
        let mut joined = JoinedRelations::default();
        let (tree, columns) = joined.read(plan);
        (joined, tree, columns)
    }

    /// Whether any order asks all equalities: equal columns are of one type and of different relations. Two of one
    /// relation would have to be compared before it is joined: by whom, no join says.
    pub fn fits_any_order(&self) -> bool {
        self.equal.iter().all(|class| {
            let mut relations = RelationSet::EMPTY;
            let data_type = |of: &RelationColumn| {
                let schema = self.relations[of.relation].schema();
                schema.field(of.column).data_type().clone()
            };
            let first = class.first().map(data_type);
            class.iter().all(|column| {
                let relation = RelationSet::one(column.relation);
                let is_other = !relations.meets(relation);
                relations = relations.union(relation);
                is_other && Some(data_type(column)) == first
            })
        })
    }

    fn read(&mut self, plan: &Arc<dyn ExecutionPlan>) -> (JoinTree, Vec<RelationColumn>) {
        if let Some(join) = inner_join(plan) {
            let (left, left_columns) = self.read(join.left);
            let (right, right_columns) = self.read(join.right);
            self.mode = self.mode.or(join.mode);
            for (own, other) in join.on {
                self.equate(left_columns[column(own)], right_columns[column(other)]);
            }
            if let Some(filter) = join.filter {
                let condition = JoinCondition::of(filter, &left_columns, &right_columns);
                self.conditions.push(condition);
            }
            let mut columns = [left_columns, right_columns].concat();
            if let Some(projection) = join.projection {
                columns = projection.iter().map(|&at| columns[at]).collect();
            }
            return (JoinTree::Join(Box::new(left), Box::new(right)), columns);
        }
        if let Some((input, projection)) = projected_join(plan) {
            let (tree, columns) = self.read(input);
            let columns = projection.into_iter().map(|at| columns[at]).collect();
            return (tree, columns);
        }
        let relation = self.relations.len();
        self.relations.push(Arc::clone(plan));
        let columns = 0..plan.schema().fields().len();
        let columns = columns.map(|column| RelationColumn { relation, column });
        (JoinTree::Relation(relation), columns.collect())
    }

    /// Notes that two columns are equal, and so is all that is equal to either.
    fn equate(&mut self, one: RelationColumn, other: RelationColumn) {
        let mut class = vec![one];
        if other != one {
            class.push(other);
        }
        let (same, others) = std::mem::take(&mut self.equal)
            .into_iter()
            .partition(|known: &Vec<_>| known.contains(&one) || known.contains(&other));
        self.equal = others;
        let same: Vec<Vec<_>> = same;
        for column in same.into_iter().flatten() {
            if !class.contains(&column) {
                class.push(column);
            }
        }
        self.equal.push(class);
    }
}

/// Whether a plan is a join that may be brought to another place.
pub(super) fn is_inner_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    inner_join(plan).is_some()
}

/// A join that may be brought to another place.
struct InnerJoin<'a> {
    left: &'a Arc<dyn ExecutionPlan>,
    right: &'a Arc<dyn ExecutionPlan>,
    on: &'a [(PhysicalExprRef, PhysicalExprRef)],
    filter: Option<&'a JoinFilter>,
    projection: Option<&'a [usize]>,
    mode: Option<PartitionMode>,
}

fn inner_join(plan: &Arc<dyn ExecutionPlan>) -> Option<InnerJoin<'_>> {
    let join = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let fits = *join.join_type() == JoinType::Inner
            && join.null_equality() == NullEquality::NullEqualsNothing
            && !join.null_aware;
        fits.then(|| InnerJoin {
            left: join.left(),
            right: join.right(),
            on: join.on(),
            filter: join.filter(),
            projection: join.projection.as_deref(),
            mode: Some(*join.partition_mode()),
        })
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        (*join.join_type() == JoinType::Inner).then(|| InnerJoin {
            left: join.left(),
            right: join.right(),
            on: &[],
            filter: join.filter(),
            projection: join.projection().as_deref(),
            mode: None,
        })
    } else {
        plan.downcast_ref::<CrossJoinExec>().map(|join| InnerJoin {
            left: join.left(),
            right: join.right(),
            on: &[],
            filter: None,
            projection: None,
            mode: None,
        })
    };
    let by_columns = |(own, other): &(PhysicalExprRef, PhysicalExprRef)| {
        own.is::<Column>() && other.is::<Column>()
    };
    join.filter(|join| {
        plan.fetch().is_none()
            && join.on.iter().all(by_columns)
            && join
                .filter
                .is_none_or(|filter| never_fails(filter.expression()))
    })
}

fn column(key: &PhysicalExprRef) -> usize {
    let column = key.downcast_ref::<Column>();
    column.expect("joined by columns").index()
}

/// The join below a projection of nothing but columns, and which of its columns these are.
fn projected_join(plan: &Arc<dyn ExecutionPlan>) -> Option<(&Arc<dyn ExecutionPlan>, Vec<usize>)> {
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let input = projection.input();
    if !is_inner_join(input) && projected_join(input).is_none() {
        return None;
    }
    let columns = projection.expr().iter();
    let columns = columns.map(|column| Some(column.expr.downcast_ref::<Column>()?.index()));
    Some((input, columns.collect::<Option<_>>()?))
}

/// Operators that have a result for all operands.
const OPERATORS: [Operator; 10] = [
    Operator::And,
    Operator::Or,
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// Whether a condition can be asked of any rows: in another order, it is asked of rows that others would have left out.
fn never_fails(condition: &PhysicalExprRef) -> bool {
    let mut fits = true;
    let walked = condition.apply(|part| {
        fits &= match part.downcast_ref::<BinaryExpr>() {
            Some(binary) => OPERATORS.contains(binary.op()),
            None => {
                part.is::<Column>()
                    || part.is::<Literal>()
                    || part.is::<NotExpr>()
                    || part.is::<IsNullExpr>()
                    || part.is::<IsNotNullExpr>()
                    || part.is::<InListExpr>()
                    || part.is::<LikeExpr>()
            }
        };
        Ok(match fits {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    });
    walked.is_ok() && fits
}
