//! DataFusion's session state and settings with the repairs in place.
//!
//! **Stands for** DataFusion's defaults: constants with a point are DOUBLE, the order of a subquery is dropped, spilled
//! exchanges can wait for each other without end, and few keys of a join reach its other side.

use crate::aggregate::average::ExactAverage;
use crate::aggregate::cast_names::CastNames;
use crate::aggregate::extreme::Extreme;
use crate::aggregate::extreme_row::ExtremeRow;
use crate::aggregate::mode::Mode;
use crate::aggregate::ordered_list::OrderedList;
use crate::aggregate::sum::ExactSum;
use crate::arithmetic::interval::IntervalOperators;
use crate::comparison::coalesce::Coalesce;
use crate::datetime::age::Age;
use crate::datetime::bin::Binned;
use crate::datetime::bucket::TimeBucket;
use crate::datetime::difference::{Counted, Difference};
use crate::datetime::series::Series;
use crate::datetime::strptime::Strptime;
use crate::datetime::ticks::Ticks;
use crate::datetime::to_char::ToChar;
use crate::datetime::truncated::Truncated;
use crate::formatting::{Formatting, Language};
use crate::hash::HashOf;
use crate::join::asof::{Mark, PlannerWithJoins};
use crate::memory::growth::{Bounded, GROWING};
use crate::memory::pool::BudgetPool;
use crate::memory::spill::Spill;
use crate::memory::string_agg::PiecewiseStringAgg;
use crate::replaced::Replaced;
use crate::rules::{PhysicalRule, analyzer_rules, optimizer_rules};
use crate::signed_rank::SignedRank;
use crate::text::beside::Beside;
use crate::text::length::OctetLength;
use crate::text::random::RandomUuid;
use crate::types::{Types, ZONE};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions::datetime::to_char;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, LogicalPlan, ScalarUDF};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use eris_numa::Budget;
use futures::future::BoxFuture;
use std::sync::Arc;

/// What a sort sets aside, per partition, for merging what it has spilled.
const MERGE_BYTES: usize = 1 << 20;

/// Keys of a join's build side that are told one by one.
const LISTED_KEYS: usize = 4096;

/// A state without tables: DataFusion's functions, types and rules, ours in the place of those that they repair.
/// Operators take their memory from the budget and put what does not fit into files of `spill`.
///
/// # Errors
/// DataFusion's, if it cannot be set up.
pub fn session_state(
    config: SessionConfig,
    physical_rules: Vec<PhysicalRule>,
    budget: &Budget,
    spill: &Spill,
) -> Result<SessionState> {
    let files = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(spill.clone()));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool::new(budget)))
        .with_disk_manager_builder(files)
        .build_arc()?;
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(CastNames));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_expr_planners(planners)
        .with_query_planner(Arc::new(PlannerWithJoins))
        .with_type_planner(Arc::new(Types))
        .with_analyzer_rules(analyzer_rules(budget))
        .with_optimizer_rules(optimizer_rules())
        .with_physical_optimizer_rules(physical_rules)
        .build();
    for function in [
        AggregateUDF::from(ExactSum::default()),
        AggregateUDF::from(ExactAverage::default()),
        AggregateUDF::from(Extreme::greatest()),
        AggregateUDF::from(Extreme::least()),
        AggregateUDF::from(PiecewiseStringAgg::new(budget)),
        AggregateUDF::from(ExtremeRow::greatest()),
        AggregateUDF::from(ExtremeRow::least()),
        AggregateUDF::from(Mode::default()),
        AggregateUDF::from(OrderedList::default()),
    ] {
        state.register_udaf(Arc::new(function))?;
    }
    for function in SignedRank::functions() {
        state.register_udwf(Arc::new(function))?;
    }
    // What DataFusion calls to_char is DuckDB's strftime.
    let strftime = to_char().as_ref().clone().with_aliases(["strftime"]);
    for function in [
        strftime,
        ScalarUDF::from(Coalesce::of_many()),
        ScalarUDF::from(Coalesce::of_two()),
        ScalarUDF::from(ToChar::default()),
        ScalarUDF::from(Replaced::default()),
        ScalarUDF::from(RandomUuid::default()),
        ScalarUDF::from(OctetLength::default()),
        ScalarUDF::from(Age::default()),
        ScalarUDF::from(TimeBucket::default()),
        ScalarUDF::from(Binned::default()),
        ScalarUDF::from(Truncated::default()),
        ScalarUDF::from(Strptime::new(false)),
        ScalarUDF::from(Strptime::new(true)),
        ScalarUDF::from(Difference::new(Counted::Begun)),
        ScalarUDF::from(Difference::new(Counted::Whole)),
        ScalarUDF::from(Formatting::new(Language::Printf)),
        ScalarUDF::from(Formatting::new(Language::Format)),
        ScalarUDF::from(HashOf::default()),
        ScalarUDF::from(Mark::default()),
    ] {
        state.register_udf(Arc::new(function))?;
    }
    for function in Ticks::functions() {
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    for name in ["generate_series", "range"] {
        let known = state.table_functions().get(name).cloned();
        let series = Series(known.expect("DataFusion has this function"));
        state.register_udtf(name, Arc::new(series));
    }
    state.register_expr_planner(Arc::new(Beside))?;
    state.register_expr_planner(Arc::new(IntervalOperators))?;
    for (name, row_size) in GROWING {
        let known = state.scalar_functions().get(name);
        let bounded = known.map(|function| Bounded::scalar(function, row_size, budget));
        state.register_udf(Arc::new(bounded.expect("DataFusion has this function")))?;
    }
    Ok(state)
}

/// Plans a statement: names and types are resolved. The future is boxed, for a crate that awaits DataFusion's own one
/// compiles its whole SQL planner again.
///
/// # Errors
/// What planning says of the statement.
pub fn plan_statement(
    state: &SessionState,
    statement: Statement,
) -> BoxFuture<'_, Result<LogicalPlan>> {
    Box::pin(state.statement_to_plan(statement))
}

/// DataFusion's settings where its defaults would be wrong, or slow.
pub fn session_config() -> SessionConfig {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    options.execution.time_zone = Some(ZONE.into());
    // In `CASE WHEN a > b THEN a ELSE 0 END` only a logical plan knows that `a` is never NULL. As keys and arguments of
    // aggregates such expressions would be rejected for the difference.
    options.execution.skip_physical_aggregate_schema_check = true;
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    options.execution.sort_spill_reservation_bytes = MERGE_BYTES;
    // An exchange begins another file after each batch. Of larger files, several threads fill one each, but the reader
    // empties them one after the other: it may wait for a batch in the first while the exchange lets nobody send until
    // it has read the one in the second.
    options.execution.max_spill_file_size_bytes =
        ConfigNonZeroUsize::try_new(1).expect("it is not zero");
    options.sql_parser.collect_spans = true;
    // The order of a subquery or view is that of what is read from it, as long as nothing in between asks for another.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // A join with few keys tells them all, so that they can be looked up instead of scanned for.
    options
        .optimizer
        .hash_join_inlist_pushdown_max_distinct_values = LISTED_KEYS;
    // 10.25 means just that, and compares with a DECIMAL column without a cast of the column.
    options.sql_parser.parse_float_as_decimal = true;
    config
}
