//! Joins and conditions that stay above a star.
//!
//! ```text
//! ProjectionExec                   the columns of the tree
//!   FilterExec                     conditions over columns of several sides
//!     HashJoinExec orders          a side that is too large to be read first
//!       FragmentExec lineitem      the star, with the columns that all of these need
//! ```
//!
//! Such a join may be a star itself, of the larger table: the rule looks at it next.

use super::{Spine, SpineColumn, StarBranch};
use crate::plan::fragment_exec::{FragmentExec, SideJoin};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, NullEquality, internal_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use eris_fragment::{Expr, Output};
use std::sync::Arc;

/// A condition over columns of the spine, beside the equality of keys.
pub(super) struct Condition {
    condition: PhysicalExprRef,
    /// What its columns are.
    columns: Vec<(SpineColumn, FieldRef)>,
}

impl Condition {
    /// What a join asks beside its keys; `columns` are those of both its inputs, of which the left one has so many.
    pub fn of_join(filter: &JoinFilter, columns: &[SpineColumn], left: usize) -> Self {
        let places = filter.column_indices().iter().map(|at| match at.side {
            JoinSide::Right => left + at.index,
            JoinSide::Left | JoinSide::None => at.index,
        });
        let columns = places.map(|place| columns[place].clone());
        Condition {
            condition: Arc::clone(filter.expression()),
            columns: columns
                .zip(filter.schema().fields().iter().cloned())
                .collect(),
        }
    }
}

/// Rows, and which columns of the spine they have.
struct Layer {
    plan: Arc<dyn ExecutionPlan>,
    columns: Vec<SpineColumn>,
}

impl Layer {
    /// Those of these columns that are the fact's.
    fn of_fact(fact: &FragmentExec, columns: &[(SpineColumn, FieldRef)]) -> Self {
        let of_fact = columns.iter().filter_map(|(column, field)| match column {
            SpineColumn::Fact(expr) => Some((expr.clone(), Arc::clone(field))),
            SpineColumn::BuildSide(..) => None,
        });
        let (columns, fields): (Vec<_>, Vec<_>) = of_fact.unzip();
        let output = Output::Rows {
            columns: columns.clone(),
            limit: None,
        };
        Layer {
            plan: Arc::new(fact.with_output(output, Arc::new(Schema::new(fields)))),
            columns: columns.into_iter().map(SpineColumn::Fact).collect(),
        }
    }

    /// Where a column is.
    fn column(&self, column: &SpineColumn) -> Result<PhysicalExprRef> {
        let place = self.columns.iter().position(|own| own == column);
        let Some(place) = place else {
            return internal_err!("a layer of a star lacks the column {column:?}");
        };
        let schema = self.plan.schema();
        Ok(Arc::new(Column::new(schema.field(place).name(), place)))
    }

    /// Joins a side.
    fn join(&mut self, number: usize, side: &StarBranch) -> Result<()> {
        let on = side.on.iter().map(|key| {
            let spine = self.column(&key.spine)?;
            let key_type = key.own.data_type(&side.plan.schema())?;
            let spine = match spine.data_type(&self.plan.schema())? == key_type {
                true => spine,
                false => Arc::new(CastExpr::new(spine, key_type, None)) as _,
            };
            Ok((Arc::clone(&key.own), spine))
        });
        let on = on.collect::<Result<Vec<_>>>()?;
        let join_type = match side.join {
            SideJoin::Inner => JoinType::Inner,
            SideJoin::Semi | SideJoin::Passing => JoinType::RightSemi,
            SideJoin::Outer | SideJoin::Computed => JoinType::Right,
        };
        let join = HashJoinExec::try_new(
            Arc::clone(&side.plan),
            Arc::clone(&self.plan),
            on,
            None,
            &join_type,
            None,
            PartitionMode::Auto,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        self.plan = Arc::new(join);
        if side.join != SideJoin::Semi {
            let width = side.plan.schema().fields().len();
            let joined = (0..width).map(|column| SpineColumn::BuildSide(number, column));
            let own = std::mem::take(&mut self.columns);
            self.columns = joined.chain(own).collect();
        }
        Ok(())
    }

    /// Asks the conditions whose columns are there, which are not left then.
    fn filter_by(&mut self, conditions: &mut Vec<&Condition>) -> Result<()> {
        let has_all = |condition: &&Condition| {
            let mut columns = condition.columns.iter();
            columns.all(|(column, _)| self.columns.contains(column))
        };
        let (now, later) = std::mem::take(conditions).into_iter().partition(has_all);
        let now: Vec<&Condition> = now;
        *conditions = later;
        now.into_iter()
            .try_for_each(|condition| self.filter(condition))
    }

    fn filter(&mut self, condition: &Condition) -> Result<()> {
        let expr = Arc::clone(&condition.condition).transform_up(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expr));
            };
            let column = self.column(&condition.columns[column.index()].0)?;
            Ok(Transformed::yes(column))
        });
        self.plan = Arc::new(FilterExec::try_new(expr.data()?, Arc::clone(&self.plan))?);
        Ok(())
    }

    /// Only these columns, by these names.
    fn project<'a>(
        self,
        columns: impl Iterator<Item = (&'a SpineColumn, &'a FieldRef)>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = columns.map(|(column, field)| {
            let expr = self.column(column)?;
            Ok(ProjectionExpr::new(expr, field.name().clone()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, self.plan)?))
    }
}

/// The columns of a star that others are put on: once each.
struct Columns<'a> {
    spine: &'a Spine,
    /// Sides that the star has not.
    above: &'a [usize],
    columns: Vec<(SpineColumn, FieldRef)>,
}

impl Columns<'_> {
    fn add(&mut self, column: &SpineColumn, field: &FieldRef) {
        let is_above =
            matches!(column, SpineColumn::BuildSide(number, _) if self.above.contains(number));
        if !is_above && !self.columns.iter().any(|(own, _)| own == column) {
            self.columns.push((column.clone(), Arc::clone(field)));
        }
    }

    /// What a side is joined by.
    fn add_keys(&mut self, side: &StarBranch) -> Result<()> {
        for key in &side.on {
            match &key.spine {
                SpineColumn::Fact(Expr::Column(column)) => {
                    let fields = self.spine.fact.scan().schema.fields();
                    self.add(&key.spine, &fields[*column]);
                }
                SpineColumn::BuildSide(number, column) => {
                    let schema = self.spine.build_sides[*number].plan.schema();
                    self.add(&key.spine, &schema.fields()[*column]);
                }
                SpineColumn::Fact(computed) => {
                    return internal_err!("a side of a star is joined by {computed:?}");
                }
            }
        }
        Ok(())
    }
}

/// The plan of a spine whose sides of these numbers are joined above the star of the others, which `star` makes.
pub(super) fn layered(
    spine: &Spine,
    above: &[usize],
    schema: &Schema,
    star: impl FnOnce(Spine, Arc<dyn ExecutionPlan>, SchemaRef) -> Result<Option<FragmentExec>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let sides = &spine.build_sides;
    let below = (0..sides.len()).filter(|number| !above.contains(number));
    let below: Vec<usize> = below.collect();

    // What is above asks for the columns of the tree, of conditions, and keys.
    let mut columns = Columns {
        spine,
        above,
        columns: Vec::new(),
    };
    let of_conditions = spine
        .conditions
        .iter()
        .flat_map(|condition| &condition.columns);
    let wanted = spine.columns.iter().zip(schema.fields());
    for (column, field) in wanted.chain(of_conditions.map(|(column, field)| (column, field))) {
        columns.add(column, field);
    }
    for number in above {
        columns.add_keys(&sides[*number])?;
    }
    let star_columns = columns.columns.clone();
    let fields: Vec<FieldRef> = star_columns
        .iter()
        .map(|(_, field)| Arc::clone(field))
        .collect();

    // The star's rows, if there is no room for its sides.
    for number in &below {
        columns.add_keys(&sides[*number])?;
    }
    let mut joins = Layer::of_fact(&spine.fact, &columns.columns);
    for number in &below {
        joins.join(*number, &sides[*number])?;
    }
    let joins = joins.project(star_columns.iter().map(|(column, field)| (column, field)))?;

    let columns: Vec<SpineColumn> = star_columns.into_iter().map(|(column, _)| column).collect();
    let renumbered = columns.iter().map(|column| match column {
        SpineColumn::BuildSide(number, column) => {
            let number = below.iter().position(|own| own == number);
            SpineColumn::BuildSide(number.expect("it is not above"), *column)
        }
        fact => fact.clone(),
    });
    let spine_below = Spine {
        fact: spine.fact.clone(),
        build_sides: below.iter().map(|number| sides[*number].clone()).collect(),
        columns: renumbered.collect(),
        conditions: Vec::new(),
        computes: false,
    };
    let Some(star) = star(spine_below, joins, Arc::new(Schema::new(fields)))? else {
        return Ok(None);
    };
    let mut layer = Layer {
        plan: Arc::new(star),
        columns,
    };
    let mut conditions: Vec<&Condition> = spine.conditions.iter().collect();
    layer.filter_by(&mut conditions)?;
    for number in above {
        layer.join(*number, &sides[*number])?;
        layer.filter_by(&mut conditions)?;
    }
    layer
        .project(spine.columns.iter().zip(schema.fields()))
        .map(Some)
}
