//! The physical rule that joins where the large table's rows are.
//!
//! ```text
//! HashJoinExec inner, lo_suppkey = s_suppkey              FragmentExec lineorder
//!   FragmentExec supplier                                   lookups: lo_orderdate → side 0, lo_suppkey → side 1
//!   HashJoinExec inner, lo_orderdate = d_datekey   ──►      FragmentExec date          side 0
//!     FragmentExec date                                     FragmentExec supplier      side 1
//!     FragmentExec lineorder
//! ```
//!
//! A tree of equi-joins has a *fact*, its largest table, and the path from the root to it is the *spine*. What is
//! joined to the spine by a column of the fact is a *side*, whatever plan it is; what is joined by a column of a side
//! becomes part of that side, as in a snowflake. A side is read first, and its rows become a lookup of the fact's
//! fragment, however often its keys occur; if there is no room for them, the tree is executed as it was. Semi-joins of
//! the spine need no more of a side than its keys. Outer joins that keep the spine's rows are lookups, too.
//!
//! Sides that are too large to be read first are joined above the star of the others, and conditions over columns of
//! several sides are asked there. Runs before joins choose their sides, since this says which one is read first. A join
//! that is none of this stays above the fragment.
//!
//! Why: docs/decisions/0016 and docs/decisions/0042.

mod keys;
mod layers;

use crate::plan::fragment_exec::{BuildSide, FragmentExec, SideJoin, Star};
use crate::plan::origin::origin_of;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use eris_fragment::{Expr, Output, Type};
use keys::{is_key, key_column};
use layers::{Condition, layered};
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct StarJoins;

impl PhysicalOptimizerRule for StarJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            Ok(match star(&node)? {
                // Its sides may be stars as well.
                Some(star) => Transformed::new(star, true, TreeNodeRecursion::Continue),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "star_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a column of the spine is.
#[derive(Clone, Debug)]
enum SpineColumn {
    /// An expression over the fact's columns.
    Fact(Expr),
    /// A column of a side's plan.
    BuildSide(usize, usize),
}

impl PartialEq for SpineColumn {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (SpineColumn::Fact(Expr::Column(own)), SpineColumn::Fact(Expr::Column(other))) => {
                own == other
            }
            // As text, for NaN is not equal to itself, and both zeros are equal.
            (SpineColumn::Fact(own), SpineColumn::Fact(other)) => {
                format!("{own:?}") == format!("{other:?}")
            }
            (SpineColumn::BuildSide(..), SpineColumn::Fact(_)) => false,
            (SpineColumn::Fact(_), SpineColumn::BuildSide(..)) => false,
            (SpineColumn::BuildSide(own, column), SpineColumn::BuildSide(other, of_other)) => {
                (own, column) == (other, of_other)
            }
        }
    }
}

/// A part of the spine: the fact, what has been joined to it, and the columns so far.
struct Spine {
    fact: FragmentExec,
    build_sides: Vec<StarBranch>,
    columns: Vec<SpineColumn>,
    /// What joins ask of its rows beside keys.
    conditions: Vec<Condition>,
    /// Whether something is computed of joined rows: it may fail for rows that a join above the star leaves out.
    computes: bool,
}

/// A side under construction.
#[derive(Clone)]
struct StarBranch {
    plan: Arc<dyn ExecutionPlan>,
    /// What it is joined by.
    on: Vec<SideKey>,
    /// The fact's column by which it can be looked up.
    column: Option<usize>,
    join: SideJoin,
}

/// One of the keys of a side: a column of the spine, perhaps to be cast to the type of the other, and the side's own.
#[derive(Clone)]
struct SideKey {
    spine: SpineColumn,
    own: PhysicalExprRef,
}

/// The plan that does what a tree of joins does by a star; `None` if none can.
fn star(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !node.is::<HashJoinExec>() {
        return Ok(None);
    }
    let Some(spine) = spine(node)? else {
        return Ok(None);
    };
    let large = large_sides(&spine)?;
    if large.len() == spine.build_sides.len() {
        return Ok(None);
    }
    let schema = node.schema();
    if large.is_empty() && spine.conditions.is_empty() {
        let star = fragment(spine, Arc::clone(node), schema)?;
        return Ok(star.map(|star| Arc::new(star) as _));
    }
    match spine.computes {
        true => Ok(None),
        false => layered(&spine, &large, &schema, fragment),
    }
}

/// The fragment that joins a fact with all sides; `general` has the same rows. `None` if a side has values of a type
/// that fragments do not know.
fn fragment(
    spine: Spine,
    general: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
) -> Result<Option<FragmentExec>> {
    let mut offset = spine.fact.scan().types.len();
    let mut build_sides = Vec::with_capacity(spine.build_sides.len());
    // Per side, for each column of its plan, where it is found in the fragment.
    let mut found = Vec::with_capacity(spine.build_sides.len());
    for (number, branch) in spine.build_sides.iter().enumerate() {
        let of_plan = branch.plan.schema();
        let (Some(column), [SideKey { own: key, .. }]) = (branch.column, &branch.on[..]) else {
            return internal_err!("a side of a star that cannot be looked up");
        };
        let fact = &spine.fact.scan().types[column];
        let mut places = vec![None; of_plan.fields().len()];
        // Of a row without a match, the key is NULL.
        if branch.join != SideJoin::Outer
            && let Some(key) = key.downcast_ref::<Column>()
            && DataType::from(fact) == *of_plan.field(key.index()).data_type()
        {
            places[key.index()] = Some(Expr::Column(column));
        }
        let mut wanted = Vec::new();
        for source in &spine.columns {
            if let SpineColumn::BuildSide(build_side, column) = source
                && *build_side == number
                && places[*column].is_none()
            {
                let data_type = of_plan.field(*column).data_type();
                let Ok(data_type) = Type::try_from(data_type) else {
                    return Ok(None);
                };
                places[*column] = Some(Expr::Column(offset + wanted.len()));
                wanted.push((*column, data_type));
            }
        }
        offset += wanted.len();
        build_sides.push(build_side(branch, (column, key), &wanted)?);
        found.push(places);
    }
    let columns = spine.columns.iter().map(|source| match source {
        SpineColumn::Fact(expr) => expr.clone(),
        SpineColumn::BuildSide(build_side, column) => {
            found[*build_side][*column].clone().expect("noted above")
        }
    });
    let output = Output::Rows {
        columns: columns.collect(),
        limit: None,
    };
    let star = Star::new(build_sides, general, spine.fact.scan());
    Ok(Some(spine.fact.joined(star, output, schema)))
}

/// A side whose first column is its key, followed by the columns that are wanted.
fn build_side(
    branch: &StarBranch,
    (column, key): (usize, &PhysicalExprRef),
    wanted: &[(usize, Type)],
) -> Result<BuildSide> {
    let schema = branch.plan.schema();
    let origin = origin_of(key, &branch.plan);
    let key = ProjectionExpr::new(Arc::clone(key), "key".to_owned());
    let others = wanted.iter().map(|(column, _)| {
        let name = schema.field(*column).name();
        ProjectionExpr::new(Arc::new(Column::new(name, *column)) as _, name.clone())
    });
    let columns: Vec<_> = std::iter::once(key).chain(others).collect();
    let plan = ProjectionExec::try_new(columns, Arc::clone(&branch.plan))?;
    Ok(BuildSide {
        plan: Arc::new(plan),
        column,
        types: wanted
            .iter()
            .map(|(_, data_type)| data_type.clone())
            .collect(),
        join: branch.join,
        origin,
    })
}

/// So many rows, or such a part of the fact's, are read first though other sides leave fewer rows of the fact: that is
/// nothing beside the pass over it.
const FEW: f64 = 65_536.0;
const SMALL_PART: f64 = 32.0;

/// A side is read first only if at least so many times its rows are left: lookups are made of its rows, which cost
/// several times what the table of a hash join costs.
const TIMES: f64 = 8.0;
/// The same where lookups cost little: few rows are few, and of a semi-join only keys are kept.
const TIMES_IF_CHEAP: f64 = 2.0;

/// The sides that are not read before the fact, because that is not the larger part of the work: by their numbers.
fn large_sides(spine: &Spine) -> Result<Vec<usize>> {
    let rows = |plan: &dyn ExecutionPlan| -> Result<Option<usize>> {
        let statistics = StatisticsContext::new().compute(plan, &StatisticsArgs::new())?;
        Ok(statistics.num_rows.get_value().copied())
    };
    let mut large = Vec::new();
    let mut sides = Vec::new();
    for (number, side) in spine.build_sides.iter().enumerate() {
        match side.column {
            Some(column) => sides.push((rows(side.plan.as_ref())?, number, column)),
            None => large.push(number),
        }
    }
    // Each is compared with the rows that smaller ones leave.
    sides.sort_unstable();
    let fact = rows(&spine.fact)?.unwrap_or(0) as f64;
    let mut left = fact;
    for (rows, number, column) in sides {
        let side = &spine.build_sides[number];
        let times = match side.join {
            SideJoin::Semi | SideJoin::Passing => TIMES_IF_CHEAP,
            SideJoin::Inner | SideJoin::Outer | SideJoin::Computed => TIMES,
        };
        let is_large = |rows: usize| {
            let rows = rows as f64;
            match rows <= FEW.max(fact / SMALL_PART) {
                true => rows > fact / TIMES_IF_CHEAP,
                false => rows > left / times,
            }
        };
        if rows.is_some_and(is_large) {
            large.push(number);
            continue;
        }
        // The fact's own keys are only known as a span, which says little where keys are such as 19980131.
        let keys = match origin_of(&side.on[0].own, &side.plan) {
            Some((scan, key)) => scan.statistics.distinct(key),
            None => spine.fact.scan().statistics.distinct(column),
        };
        let found = side.join.matches(rows, keys.unwrap_or(0.0));
        // Conditions are asked before rows become more.
        if found > 1.0 && !spine.conditions.is_empty() {
            large.push(number);
            continue;
        }
        left *= found.min(1.0);
    }
    large.sort_unstable();
    Ok(large)
}

/// Rows of the largest table that a spine from here may lead to.
fn largest(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return as_fact(fragment).map(|_| fragment.scan().statistics.rows());
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return largest(projection.input());
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    match join.join_type() {
        JoinType::Inner => largest(join.left()).max(largest(join.right())),
        JoinType::LeftSemi | JoinType::Left => largest(join.left()),
        JoinType::RightSemi | JoinType::Right => largest(join.right()),
        _ => None,
    }
}

/// The columns of a fragment that others can be joined to.
fn as_fact(fragment: &FragmentExec) -> Option<&[Expr]> {
    let columns = fragment.open_rows()?;
    (!fragment.is_joined()).then_some(columns)
}

fn spine(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Spine>> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        let Some(columns) = as_fact(fragment) else {
            return Ok(None);
        };
        return Ok(Some(Spine {
            columns: columns.iter().cloned().map(SpineColumn::Fact).collect(),
            build_sides: Vec::new(),
            conditions: Vec::new(),
            computes: false,
            fact: fragment.clone(),
        }));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(mut spine) = spine(projection.input())? else {
            return Ok(None);
        };
        let inputs: Vec<_> = spine.columns.iter().map(of_fact).collect();
        let schema = projection.input().schema();
        let scope = spine.fact.scope(&schema, &inputs);
        let is_joined = !spine.build_sides.is_empty();
        let mut exprs = projection.expr().iter();
        let computes = is_joined && exprs.any(|column| !column.expr.is::<Column>());
        let columns = projection.expr().iter().map(|column| {
            match column.expr.downcast_ref::<Column>() {
                Some(column) => spine.columns.get(column.index()).cloned(),
                // A key that is widened to be compared, for one.
                None => scope.translate_output(&column.expr).map(SpineColumn::Fact),
            }
        });
        let Some(columns) = columns.collect() else {
            return Ok(None);
        };
        spine.columns = columns;
        spine.computes |= computes;
        return Ok(Some(spine));
    }
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => joined(join),
        None => Ok(None),
    }
}

fn of_fact(source: &SpineColumn) -> Option<Expr> {
    match source {
        SpineColumn::Fact(expr) => Some(expr.clone()),
        SpineColumn::BuildSide(..) => None,
    }
}

/// The spine behind one more join.
fn joined(join: &HashJoinExec) -> Result<Option<Spine>> {
    let is_inner = *join.join_type() == JoinType::Inner;
    let plain = (join.filter().is_none() || is_inner)
        && !join.null_aware
        && join.null_equality() == NullEquality::NullEqualsNothing;
    // Whether the spine goes on to the left, and what the other side is to it.
    let (left, kind) = match join.join_type() {
        _ if !plain => return Ok(None),
        JoinType::Inner => {
            let left = largest(join.left()) >= largest(join.right());
            (left, SideJoin::Inner)
        }
        JoinType::LeftSemi => (true, SideJoin::Semi),
        JoinType::RightSemi => (false, SideJoin::Semi),
        JoinType::Left => (true, SideJoin::Outer),
        JoinType::Right => (false, SideJoin::Outer),
        _ => return Ok(None),
    };
    let semi = kind == SideJoin::Semi;
    let (along, other) = match left {
        true => (join.left(), join.right()),
        false => (join.right(), join.left()),
    };
    let Some(mut spine) = spine(along)? else {
        return Ok(None);
    };
    let keys: Vec<_> = join
        .on()
        .iter()
        .map(|(l, r)| if left { (l, r) } else { (r, l) })
        .collect();
    let Some(others) = attach(&mut spine, &keys, other, kind)? else {
        return Ok(None);
    };
    let width = if semi {
        0
    } else {
        other.schema().fields().len()
    };
    let others = (0..width).map(|column| SpineColumn::BuildSide(others.0, others.1 + column));
    let mut columns = std::mem::take(&mut spine.columns);
    match left || semi {
        true => columns.extend(others),
        false => columns = others.chain(columns).collect(),
    }
    if let Some(filter) = join.filter() {
        let left = join.left().schema().fields().len();
        let condition = Condition::of_join(filter, &columns, left);
        spine.conditions.push(condition);
    }
    if let Some(projection) = &join.projection {
        columns = projection.iter().map(|&at| columns[at].clone()).collect();
    }
    spine.columns = columns;
    Ok(Some(spine))
}

/// Joins a plan to the fact as a side, or to a side. Which side has its columns now, and from which on.
fn attach(
    spine: &mut Spine,
    keys: &[(&PhysicalExprRef, &PhysicalExprRef)],
    other: &Arc<dyn ExecutionPlan>,
    join: SideJoin,
) -> Result<Option<(usize, usize)>> {
    let sources: Option<Vec<_>> = keys.iter().map(|(own, _)| source(spine, own)).collect();
    let Some(sources) = sources else {
        return Ok(None);
    };
    // Parameters of the plan lie behind these.
    let own = spine.fact.scan().schema.fields().len();
    if let [(SpineColumn::Fact(expr), cast)] = &sources[..]
        && let Some((column, widened)) = key_column(expr, cast.as_ref())
        && column < own
        && let (_, key) = keys[0]
        && is_key(
            &spine.fact.scan().types,
            column,
            widened.as_ref(),
            key,
            other,
        )?
    {
        let key = SideKey {
            spine: SpineColumn::Fact(Expr::Column(column)),
            own: Arc::clone(key),
        };
        return Ok(Some(spine.add(StarBranch {
            plan: Arc::clone(other),
            on: vec![key],
            column: Some(column),
            join,
        })));
    }
    if let Some(places) = attach_to_side(spine, keys, &sources, other, join)? {
        return Ok(Some(places));
    }
    let is_plain = |(source, _): &(SpineColumn, _)| match source {
        SpineColumn::Fact(Expr::Column(column)) => *column < own,
        SpineColumn::Fact(_) => false,
        SpineColumn::BuildSide(..) => true,
    };
    if !sources.iter().all(is_plain) {
        return Ok(None);
    }
    let on = keys
        .iter()
        .zip(sources)
        .map(|((_, key), (source, _))| SideKey {
            spine: source,
            own: Arc::clone(key),
        });
    Ok(Some(spine.add(StarBranch {
        plan: Arc::clone(other),
        on: on.collect(),
        column: None,
        join,
    })))
}

impl Spine {
    /// Adds a side. Which one it is, and where its columns begin.
    fn add(&mut self, side: StarBranch) -> (usize, usize) {
        self.build_sides.push(side);
        (self.build_sides.len() - 1, 0)
    }
}

/// Joins a plan to the side that has all its keys; `None` if none has, or not as it is joined itself.
fn attach_to_side(
    spine: &mut Spine,
    keys: &[(&PhysicalExprRef, &PhysicalExprRef)],
    sources: &[(SpineColumn, Option<DataType>)],
    other: &Arc<dyn ExecutionPlan>,
    join: SideJoin,
) -> Result<Option<(usize, usize)>> {
    let mut on = Vec::with_capacity(keys.len());
    let mut build_side = None;
    for ((own, key), (source, _)) in keys.iter().zip(sources) {
        let SpineColumn::BuildSide(number, column) = source else {
            return Ok(None);
        };
        if *build_side.get_or_insert(*number) != *number {
            return Ok(None);
        }
        let schema = spine.build_sides[*number].plan.schema();
        let column = Arc::new(Column::new(schema.field(*column).name(), *column)) as _;
        let own = match own.downcast_ref::<CastExpr>() {
            Some(cast) => Arc::new(cast.clone()).with_new_children(vec![column])?,
            None => column,
        };
        on.push((own, Arc::clone(key)));
    }
    let Some(number) = build_side else {
        return Ok(None);
    };
    let branch = &mut spine.build_sides[number];
    let join_type = match (branch.join, join) {
        (SideJoin::Inner, SideJoin::Semi) => JoinType::LeftSemi,
        (SideJoin::Inner, SideJoin::Inner) => JoinType::Inner,
        (SideJoin::Inner | SideJoin::Outer, SideJoin::Outer) => JoinType::Left,
        // What has no match there would stay, or only keys are there.
        _ => return Ok(None),
    };
    let width = branch.plan.schema().fields().len();
    branch.plan = Arc::new(HashJoinExec::try_new(
        Arc::clone(&branch.plan),
        Arc::clone(other),
        on,
        None,
        &join_type,
        None,
        PartitionMode::Auto,
        NullEquality::NullEqualsNothing,
        false,
    )?);
    Ok(Some((number, width)))
}

/// Where the column of a key comes from, and what it is cast to.
fn source(spine: &Spine, key: &PhysicalExprRef) -> Option<(SpineColumn, Option<DataType>)> {
    let (column, cast) = match key.downcast_ref::<CastExpr>() {
        Some(cast) => (cast.expr(), Some(cast.cast_type().clone())),
        None => (key, None),
    };
    let column = column.downcast_ref::<Column>()?;
    Some((spine.columns.get(column.index())?.clone(), cast))
}
