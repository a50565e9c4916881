//! The sides of a star join: read first, then looked up by the fact's fragment.
//!
//! ```text
//! sides ── all at once ──▶ their rows ───────────────────────▶ lookups of the fragment
//!                              │  └── if only keys matter ─────▶ probes of the fragment
//!                              └── if there is no room ────────▶ the joins as they were planned, optimised only now
//! ```
//!
//! Only keys matter if nothing else of a side is needed, and each key occurs once or it does not matter how often.

use super::columns::expressions;
use super::{FragmentExec, over_scans};
use crate::maintenance::recoding::{Join, Sizes};
use crate::plan::dictionary_exec::DictionaryExec;
use crate::plan::scan::Scan;
use crate::plan::statistics::JoinedRows;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches, filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, execute_stream,
};
use eris_exact::{PhysicalRule, in_key_order};
use eris_fragment::{
    AggregateFunction, Execution, Expr, FragmentError, FragmentReport, FragmentStream, KeySet,
    Lookup, Output, Probe, Type, with_few_buffers,
};
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;

/// Bytes that a row of a lookup takes beside its values: its entries in maps, its bit in a set.
const BYTES_PER_KEY: usize = 16;
/// Bytes that it takes besides if keys occur more than once: while rows are brought together by their keys, and to find
/// them.
const BYTES_PER_MATCH: usize = 32;
/// A star that holds more leaves as much to others.
const HEADROOM: usize = 1 << 20;

/// So many rows are brought together by their keys before the fragment begins, by all threads.
const MANY_ROWS: usize = 1 << 16;

/// The rules for joins that are executed as they were planned: an extension of the session's settings.
pub(crate) struct JoinRules(pub Vec<PhysicalRule>);

/// What is joined to a fragment's rows.
#[derive(Clone, Debug)]
pub(crate) struct Star {
    build_sides: Vec<BuildSide>,
    /// The types of the table's columns and the plan's parameters, and behind them of the sides' columns.
    types: Vec<Type>,
    /// The fields of the same columns.
    schema: SchemaRef,
    /// The same rows by joins, not optimised.
    general: Arc<dyn ExecutionPlan>,
}

/// One relation that is joined.
#[derive(Clone, Debug)]
pub(crate) struct BuildSide {
    /// Its first column is the key.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The table's column that it is joined by.
    pub column: usize,
    /// The types of its other columns.
    pub types: Vec<Type>,
    pub join: SideJoin,
    /// The scan that the key comes from as it is, and which of its columns it is.
    pub origin: Option<(Arc<Scan>, usize)>,
}

/// What a side is to the fact's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideJoin {
    Inner,
    /// Only whether there is a row matters.
    Semi,
    /// Rows without a match stay.
    Outer,
    /// The same with what is computed of all values of the fact's column: if that fails, nobody may have asked for it.
    Computed,
    /// As for semi-joins, with the values of the fact's column for which a condition holds: if that fails, the same.
    Passing,
}

/// The rows of all sides.
pub(super) struct BuildSides {
    rows: Vec<BuildRows>,
    /// Gives their memory back with the last user.
    held: Arc<MemoryReservation>,
}

struct BuildRows {
    rows: RecordBatch,
    /// `None` if nobody asks for them.
    keys: Option<KeySet>,
    column: usize,
    /// Each key is there once, or it does not matter how often.
    unique: bool,
    outer: bool,
}

impl BuildSide {
    /// How many rows of this side a row of the fact finds, on average: of each key that either table has, there are as
    /// many.
    fn per_row(&self, fact: &Scan, side: &Statistics) -> f64 {
        let origin = self.origin.as_ref();
        let of_side = origin.and_then(|(scan, column)| scan.statistics.distinct(*column));
        let of_fact = fact.statistics.distinct(self.column);
        let keys = of_fact.unwrap_or(0.0).max(of_side.unwrap_or(0.0));
        self.join.matches(side.num_rows.get_value().copied(), keys)
    }
}

impl SideJoin {
    /// How many of so many rows of a side a row of the fact finds, on average, if there are so many keys.
    pub fn matches(self, rows: Option<usize>, keys: f64) -> f64 {
        match rows {
            Some(rows) if keys > 0.0 => {
                let found = rows as f64 / keys;
                match self {
                    SideJoin::Inner => found,
                    SideJoin::Semi | SideJoin::Passing => found.min(1.0),
                    SideJoin::Outer => found.max(1.0),
                    SideJoin::Computed => 1.0,
                }
            }
            _ => 1.0,
        }
    }
}

impl Star {
    /// Sides, and the plan that has the same rows as their joins with a scan.
    pub fn new(build_sides: Vec<BuildSide>, general: Arc<dyn ExecutionPlan>, scan: &Scan) -> Self {
        let own = scan.types.iter();
        let types = own.chain(build_sides.iter().flat_map(|build_side| &build_side.types));
        let joined = build_sides.iter().flat_map(|build_side| {
            let fields = build_side.plan.schema().fields().clone();
            fields.iter().skip(1).cloned().collect::<Vec<_>>()
        });
        let parameters = scan.types[scan.parameters()..].iter().zip(1..);
        let parameters = parameters.map(|(data_type, number)| {
            Arc::new(Field::new(format!("${number}"), data_type.into(), true))
        });
        let own = scan.schema.fields().iter().cloned().chain(parameters);
        let fields = own.chain(joined);
        Star {
            types: types.cloned().collect(),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            build_sides,
            general,
        }
    }

    /// All columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same with more sides, which are joined to rows that stay.
    fn with_sides(&self, more: Vec<BuildSide>, scan: &Scan) -> Self {
        let sides = self.build_sides.iter().cloned().chain(more);
        Star::new(sides.collect(), Arc::clone(&self.general), scan)
    }

    /// The types of all columns.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    pub(super) fn plans(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.build_sides
            .iter()
            .map(|build_side| &build_side.plan)
            .collect()
    }

    /// The same with these plans of the sides.
    pub(super) fn with_plans(&self, plans: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let mut star = self.clone();
        for (build_side, plan) in star.build_sides.iter_mut().zip(plans) {
            build_side.plan = plan;
        }
        star
    }

    /// What the sides are expected to join to rows of a scan, by the statistics of their plans.
    pub(super) fn joined_rows(&self, fact: &Scan, sides: &[Arc<Statistics>]) -> JoinedRows {
        let both = || self.build_sides.iter().zip(sides);
        let columns = both().flat_map(|(_, side)| side.column_statistics.iter().skip(1).cloned());
        JoinedRows {
            per_row: both()
                .map(|(side, rows)| side.per_row(fact, rows))
                .product(),
            first_column: fact.types.len(),
            columns: columns.collect(),
        }
    }

    /// The same with something on top of the joins.
    pub(super) fn over(
        &self,
        put: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Self> {
        Ok(Star {
            general: put(Arc::clone(&self.general))?,
            ..self.clone()
        })
    }

    /// The same over other scans of all tables; `None` if one is not among them.
    pub(super) fn on(&self, scans: &[Arc<Scan>]) -> Option<Self> {
        let mut star = self.clone();
        for build_side in &mut star.build_sides {
            build_side.plan = over_scans(&build_side.plan, scans)?;
            if let Some((scan, _)) = &mut build_side.origin {
                *scan = Arc::clone(scan.among(scans)?);
            }
        }
        star.general = over_scans(&star.general, scans)?;
        Some(star)
    }

    /// The table's columns that sides are joined by.
    pub(super) fn build_sides(&self) -> &[BuildSide] {
        &self.build_sides
    }

    /// Reads the sides; `None` if their rows cannot be looked up.
    pub(super) async fn read(&self, context: &Arc<TaskContext>) -> Result<Option<BuildSides>> {
        let held = MemoryConsumer::new("star join").register(context.memory_pool());
        let build_sides = self
            .build_sides
            .iter()
            .map(|build_side| build_side.read(&held, context));
        let rows: Option<Vec<BuildRows>> = try_join_all(build_sides).await?.into_iter().collect();
        // What is above the star must get something, too. Joins give memory back, lookups do not.
        let others = MemoryConsumer::new("star join").register(context.memory_pool());
        if held.size() > HEADROOM && others.try_grow(HEADROOM).is_err() {
            return Ok(None);
        }
        let held = Arc::new(held);
        Ok(rows.map(|rows| BuildSides { rows, held }))
    }

    /// Tells of its joins with tables.
    pub(super) fn tell(&self, fact: &Scan) {
        let Some(recodings) = &fact.recodings else {
            return;
        };
        for build_side in &self.build_sides {
            if let Some((scan, key)) = &build_side.origin {
                recodings.saw(Join {
                    fact: fact.table.object,
                    column: build_side.column,
                    dimension: Arc::clone(&scan.table),
                    key: *key,
                    sizes: Sizes {
                        fact_rows: fact.statistics.rows(),
                        late_rows: fact.statistics.unordered(build_side.column),
                        dimension_rows: scan.statistics.rows(),
                    },
                });
            }
        }
    }

    /// Executes the joins as they were planned. If they are grouped by so many keys, their first columns, a stream gets
    /// all there is of a group.
    pub(super) fn execute_general(
        &self,
        streams: usize,
        keys: usize,
        context: &Arc<TaskContext>,
    ) -> Result<Execution> {
        let options = context.session_config().options();
        // Joins of the sides have been executed already, and the same ones are in here: they would go on with what they
        // hold.
        let mut plan = reset_plan_states(Arc::clone(&self.general))?;
        let rules = context.session_config().get_extension::<JoinRules>();
        for rule in rules.iter().flat_map(|rules| &rules.0) {
            plan = rule.optimize(plan, options)?;
        }
        if keys > 0 || plan.output_partitioning().partition_count() != streams {
            let fields = plan.schema();
            let key = |key: usize| Arc::new(Column::new(fields.field(key).name(), key)) as _;
            plan = match (streams, keys) {
                (1, _) => Arc::new(CoalescePartitionsExec::new(plan)),
                (_, 0) => {
                    let repartitioning = Partitioning::RoundRobinBatch(streams);
                    Arc::new(RepartitionExec::try_new(plan, repartitioning)?)
                }
                _ => {
                    let repartitioning = Partitioning::Hash((0..keys).map(key).collect(), streams);
                    Arc::new(RepartitionExec::try_new(plan, repartitioning)?)
                }
            };
        }
        let streams = (0..streams).map(|partition| {
            let stream = plan.execute(partition, Arc::clone(context))?;
            Ok(stream.map_err(into_fragment_error).boxed() as FragmentStream)
        });
        Ok(Execution {
            streams: streams.collect::<Result<_>>()?,
            is_merged: Arc::new(|| false),
            report: Arc::new(FragmentReport::default),
        })
    }
}

impl BuildSide {
    async fn read(
        &self,
        held: &MemoryReservation,
        context: &Arc<TaskContext>,
    ) -> Result<Option<BuildRows>> {
        match self.read_rows(held, context).await {
            Err(_) if matches!(self.join, SideJoin::Computed | SideJoin::Passing) => Ok(None),
            rows => rows,
        }
    }

    async fn read_rows(
        &self,
        held: &MemoryReservation,
        context: &Arc<TaskContext>,
    ) -> Result<Option<BuildRows>> {
        let mut stream = execute_stream(Arc::clone(&self.plan), Arc::clone(context))?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            // The strings of a dictionary are there anyway.
            let own = match self.plan.is::<DictionaryExec>() {
                true => (batch.columns()[1..].iter())
                    .map(|results| results.get_array_memory_size())
                    .sum(),
                false => batch.get_array_memory_size(),
            };
            let bytes = 2 * own + BYTES_PER_KEY * batch.num_rows();
            if held.try_grow(bytes).is_err() {
                return Ok(None);
            }
            batches.push(batch);
        }
        let rows = match &batches[..] {
            [rows] if self.plan.is::<DictionaryExec>() => rows.clone(),
            _ => with_few_buffers(concat_batches(&self.plan.schema(), &batches)?)?,
        };
        drop(batches);
        let rows = with_view_texts(&rows)?;
        let rows = match rows.column(0).null_count() {
            0 => rows,
            _ => filter_record_batch(&rows, &is_not_null(rows.column(0))?)?,
        };
        if self.join == SideJoin::Computed {
            return Ok(Some(BuildRows {
                rows,
                keys: None,
                column: self.column,
                unique: true,
                outer: true,
            }));
        }
        let Some((keys, unique)) = KeySet::of_values(rows.column(0)) else {
            return Ok(None);
        };
        let unique = unique || matches!(self.join, SideJoin::Semi | SideJoin::Passing);
        if !unique && held.try_grow(BYTES_PER_MATCH * rows.num_rows()).is_err() {
            return Ok(None);
        }
        let rows = match unique || rows.num_rows() < MANY_ROWS {
            true => rows,
            false => {
                let threads = context.session_config().target_partitions();
                in_key_order(rows, threads).await?
            }
        };
        Ok(Some(BuildRows {
            rows,
            keys: Some(keys),
            column: self.column,
            unique,
            outer: self.join == SideJoin::Outer,
        }))
    }
}

impl BuildSides {
    /// What becomes of the sides in a fragment with an output: `chosen` has the columns that are needed, side by side.
    pub(super) fn into_parts(
        self,
        chosen: &[Vec<usize>],
        output: &Output,
    ) -> Result<(Vec<Lookup>, Vec<Probe>)> {
        let often_matters = matters_how_often(output);
        let mut lookups = Vec::new();
        let mut probes = Vec::new();
        for (build_side, chosen) in self.rows.into_iter().zip(chosen) {
            let BuildRows {
                rows,
                keys,
                column,
                unique,
                outer,
            } = build_side;
            if chosen.is_empty() && (unique || !often_matters) {
                // Of an outer join, nothing is left then.
                if let Some(keys) = keys.filter(|_| !outer) {
                    probes.push(Probe { column, keys });
                }
                continue;
            }
            let columns: Vec<usize> = std::iter::once(0)
                .chain(chosen.iter().map(|column| column + 1))
                .collect();
            let rows = rows.project(&columns)?;
            lookups.push(match keys {
                None => Lookup::of_each_value(column, rows),
                Some(keys) if outer => Lookup::with_set(column, rows, keys).into_outer(),
                Some(keys) => Lookup::with_set(column, rows, keys),
            });
        }
        Ok((lookups, probes))
    }

    /// What keeps the memory of the rows accounted for.
    pub(super) fn held(&self) -> Arc<MemoryReservation> {
        Arc::clone(&self.held)
    }

    /// Keeps the memory of the rows accounted for as long as one of the streams is there.
    pub(super) fn hold(&self) -> impl Fn(FragmentStream) -> FragmentStream + use<> {
        let held = Arc::clone(&self.held);
        move |stream| {
            let held = Arc::clone(&held);
            stream
                .inspect(move |_| {
                    let _ = &held;
                })
                .boxed()
        }
    }
}

impl FragmentExec {
    /// Its own sides and more, which need not be joined to have the same rows.
    pub fn star_with(&self, more: Vec<BuildSide>) -> Star {
        match &self.star {
            Some(star) => star.with_sides(more, &self.scan),
            None => {
                // It runs if a function of a value has failed, and must not compute the same again.
                let general = FragmentExec {
                    computes_values: false,
                    ..self.clone()
                };
                Star::new(more, Arc::new(general), &self.scan)
            }
        }
    }

    /// The values of a column of its table, in rows that pass its own filter; a value may be there once for each
    /// worker.
    pub fn distinct(&self, column: usize, field: FieldRef) -> Self {
        let output = Output::Groups {
            keys: vec![Expr::Column(column)],
            aggregates: Vec::new(),
        };
        let schema = Arc::new(Schema::new(vec![field]));
        FragmentExec::new(Arc::clone(&self.scan), self.filter.clone(), output, schema)
    }

    /// How many rows its own filter is expected to leave.
    pub fn expected_rows(&self) -> f64 {
        let rows = (self.scan.statistics).rows_out(&[], &self.filter, None, None);
        rows.num_rows.get_value().copied().unwrap_or(0) as f64
    }

    /// The same with sides joined to its rows.
    pub fn joined(&self, star: Star, output: Output, schema: SchemaRef) -> Self {
        let mut joined = self.with_output(output, schema);
        joined.star = Some(Arc::new(star));
        joined
    }

    /// Per side, which of its columns the output needs.
    pub(super) fn chosen(&self) -> Vec<Vec<usize>> {
        let Some(star) = &self.star else {
            return Vec::new();
        };
        let mut used = Vec::new();
        let mut output = self.output.clone();
        for expr in expressions(&mut output) {
            expr.for_each_column(&mut |column| used.push(column));
        }
        let mut offset = self.scan.types.len();
        let chosen = star.build_sides().iter().map(|build_side| {
            let first = offset;
            offset += build_side.types.len();
            let columns = 0..build_side.types.len();
            columns
                .filter(|column| used.contains(&(first + column)))
                .collect()
        });
        chosen.collect()
    }

    /// The columns that are chosen, by their number among all columns of the sides, in the order of the lookups.
    pub(super) fn joined_columns(&self, chosen: &[Vec<usize>]) -> Vec<usize> {
        let build_sides = self.star.iter().flat_map(|star| star.build_sides());
        let mut joined = Vec::new();
        let mut offset = 0;
        for (build_side, chosen) in build_sides.zip(chosen) {
            joined.extend(chosen.iter().map(|column| offset + column));
            offset += build_side.types.len();
        }
        joined
    }
}

/// Whether it makes a difference how often a row is there.
fn matters_how_often(output: &Output) -> bool {
    match output {
        Output::Rows { .. } => true,
        Output::Groups { aggregates, .. } => aggregates.iter().any(|aggregate| {
            !matches!(
                aggregate.function,
                AggregateFunction::Min | AggregateFunction::Max
            )
        }),
    }
}

/// Fragments take texts as views.
fn with_view_texts(rows: &RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let is_other = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
    if !(schema.fields().iter()).any(|field| is_other(field.data_type())) {
        return Ok(rows.clone());
    }
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        let data_type = match is_other(field.data_type()) {
            true => DataType::Utf8View,
            false => field.data_type().clone(),
        };
        columns.push(cast(column, &data_type)?);
        fields.push(Field::new(field.name(), data_type, field.is_nullable()));
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// An error of the joins, as one of the fragment that they stand for.
pub(super) fn into_fragment_error(error: DataFusionError) -> FragmentError {
    match error {
        DataFusionError::External(error) => match error.downcast::<FragmentError>() {
            Ok(error) => *error,
            Err(error) => FragmentError::Evaluation(Arc::from(error)),
        },
        error => FragmentError::Evaluation(Arc::new(error)),
    }
}
