//! DataFusion, set up for Eris: its settings, its rules and ours.

use crate::aggregate_rule::PushAggregates;
use crate::catalog::{CATALOG, SCHEMA};
use crate::comparison_rule::CompareAsDouble;
use crate::exact::ExactArithmetic;
use crate::membership::ExactMembership;
use crate::memory_pool::BudgetPool;
use crate::sum::ExactSum;
use crate::types::{Types, ZONE};
use crate::yield_rule::YieldAfterJoins;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use eris_engine::Engine;
use std::sync::Arc;

/// Rows of a batch above the fragments.
const BATCH_ROWS: usize = 8192;
/// A build side up to this size is read as a whole, so that the probe side, mostly the fact table, needs no exchange of
/// its rows and gets one filter for all of the build side.
const BUILD_ROWS: usize = 4 << 20;
/// The same in bytes.
const BUILD_BYTES: usize = 512 << 20;

/// The state that every statement's state is a copy of.
pub(crate) fn state(engine: &Engine) -> Result<SessionState, crate::SqlError> {
    let pool = BudgetPool::new(engine.memory().budget())
        .map_err(|refused| eris_fragment::FragmentError::OutOfMemory(refused.to_string()))?;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .build_arc()
        .map_err(crate::SqlError::from_datafusion)?;
    let mut state = SessionStateBuilder::new()
        .with_config(config(engine.topology().aeus().len().max(1)))
        .with_runtime_env(runtime)
        .with_default_features()
        .with_type_planner(Arc::new(Types))
        .with_analyzer_rules(analyzer_rules())
        .with_physical_optimizer_rules(physical_rules())
        .build();
    state
        .register_udaf(Arc::new(AggregateUDF::from(ExactSum::default())))
        .map_err(crate::SqlError::from_datafusion)?;
    Ok(state)
}

fn config(aeus: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(aeus)
        .with_batch_size(BATCH_ROWS)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.time_zone = Some(ZONE.into());
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    options.optimizer.hash_join_single_partition_threshold = BUILD_BYTES;
    options.optimizer.hash_join_single_partition_threshold_rows = BUILD_ROWS;
    options.sql_parser.collect_spans = true;
    // 10.25 means just that, and compares with a DECIMAL column without a cast of the column.
    options.sql_parser.parse_float_as_decimal = true;
    config
}

/// DataFusion's rules that find out types, among ours.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(CompareAsDouble));
    rules.push(Arc::new(ExactArithmetic));
    rules.push(Arc::new(ExactMembership));
    rules
}

/// DataFusion's rules, with ours among them: aggregates move into the scan before exchanges are added, joins get their
/// yield points before the last rule looks for places of dynamic filters.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let mut insert_before = |name: &str, rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| {
        let place = rules.iter().position(|other| other.name() == name);
        rules.insert(place.expect("DataFusion has this rule"), rule);
    };
    insert_before("EnsureRequirements", Arc::new(PushAggregates));
    insert_before("EnsureCooperative", Arc::new(YieldAfterJoins));
    rules
}
