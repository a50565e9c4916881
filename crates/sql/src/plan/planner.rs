//! DataFusion, set up for Eris: its settings, its rules and ours.

use crate::catalog::{CATALOG, SCHEMA};
use crate::comparison_rule::CompareAsDouble;
use crate::context::Variables;
use crate::exact::ExactArithmetic;
use crate::extreme_row::ExtremeRow;
use crate::group_keys::SeparateGroups;
use crate::membership::ExactMembership;
use crate::memory_pool::BudgetPool;
use crate::moment_rule::CompareMoments;
use crate::namesake_rule::UnlessNamesakes;
use crate::plan::aggregate_rule::PushAggregates;
use crate::plan::order_rule::TellOrder;
use crate::plan::star_rule::StarJoins;
use crate::repeated_keys::OmitRepeatedKeys;
use crate::running::spill::Spill;
use crate::spilling_join::SpillJoins;
use crate::sum::ExactSum;
use crate::types::{Types, ZONE};
use crate::windows::AccountWindows;
use crate::yield_rule::YieldAfterJoins;
use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use eris_engine::Engine;
use std::sync::Arc;

/// What a sort sets aside, per partition, for merging what it has spilled.
const MERGE_BYTES: usize = 1 << 20;

/// Keys of a join's build side that are told one by one.
const LISTED_KEYS: usize = 4096;

/// The state that every statement's state is a copy of.
pub(crate) fn state(engine: &Engine, spill: &Spill) -> Result<SessionState, crate::SqlError> {
    let pool = BudgetPool::new(engine.memory().budget());
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(
            DiskManagerBuilder::default().with_temp_file_factory(Arc::new(spill.clone())),
        )
        .build_arc()
        .map_err(crate::SqlError::from_datafusion)?;
    let mut state = SessionStateBuilder::new()
        .with_config(config(&Variables::new(engine.topology().aeus().len())))
        .with_runtime_env(runtime)
        .with_default_features()
        .with_type_planner(Arc::new(Types))
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(crate::single_distinct::optimizer_rules())
        .with_physical_optimizer_rules(physical_rules())
        .build();
    for function in [
        AggregateUDF::from(ExactSum::default()),
        AggregateUDF::from(ExtremeRow::greatest()),
        AggregateUDF::from(ExtremeRow::least()),
    ] {
        state
            .register_udaf(Arc::new(function))
            .map_err(crate::SqlError::from_datafusion)?;
    }
    crate::system::functions::register(&mut state).map_err(crate::SqlError::from_datafusion)?;
    Ok(state)
}

fn config(variables: &Variables) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.time_zone = Some(ZONE.into());
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    options.execution.sort_spill_reservation_bytes = MERGE_BYTES;
    // An exchange begins another file after each batch. Of larger files, several threads fill one each, but the reader empties
    // them one after the other: it may wait for a batch in the first while the exchange lets nobody send until it has
    // read the one in the second.
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
    variables.apply(&mut config);
    config
}

/// DataFusion's rules that find out types, among ours.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(CompareAsDouble));
    rules.insert(0, Arc::new(CompareMoments));
    rules.push(Arc::new(OmitRepeatedKeys));
    rules.push(Arc::new(ExactArithmetic));
    rules.push(Arc::new(ExactMembership));
    rules.push(Arc::new(SeparateGroups));
    rules
}

/// DataFusion's rules, with ours among them: aggregates move into the scan before exchanges are added, joins get their
/// yield points before the last rule looks for places of dynamic filters, and learn to spill when they have theirs.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = rules_without_stars();
    let place = rules
        .iter()
        .position(|rule| rule.name() == "join_selection");
    rules.insert(
        place.expect("DataFusion has this rule"),
        Arc::new(StarJoins),
    );
    rules
}

/// The same, but for joins that become part of fragments.
pub(crate) fn rules_without_stars() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    for rule in &mut rules {
        if rule.name().starts_with("FilterPushdown") {
            *rule = Arc::new(UnlessNamesakes(Arc::clone(rule)));
        }
    }
    let mut insert_before = |name: &str, rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| {
        let place = rules.iter().position(|other| other.name() == name);
        rules.insert(place.expect("DataFusion has this rule"), rule);
    };
    insert_before("EnsureRequirements", Arc::new(PushAggregates));
    insert_before("EnsureCooperative", Arc::new(YieldAfterJoins));
    insert_before("SanityCheckPlan", Arc::new(TellOrder));
    insert_before("SanityCheckPlan", Arc::new(SpillJoins));
    insert_before("SanityCheckPlan", Arc::new(AccountWindows));
    rules
}
