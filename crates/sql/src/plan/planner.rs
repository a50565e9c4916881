//! DataFusion, set up for Eris: made exact, and with our rules that move work into scans.

use crate::catalog::{CATALOG, SCHEMA};
use crate::context::Variables;
use crate::error::SqlError;
use crate::plan::aggregate_rule::PushAggregates;
use crate::plan::computed_filter::ComputeFilters;
use crate::plan::fragment_exec::JoinRules;
use crate::plan::join_order::JoinOrder;
use crate::plan::order_rule::TellOrder;
use crate::plan::star_rule::StarJoins;
use datafusion::execution::context::SessionState;
use datafusion::prelude::SessionConfig;
use eris_exact::{PhysicalRule, Spill, insert_before};
use eris_files::ContainDamage;
use eris_home::Home;
use std::sync::Arc;

/// The state that every statement's state is a copy of.
pub(crate) fn state(home: &dyn Home, spill: &Spill) -> Result<SessionState, SqlError> {
    let config = config(&Variables::new(home.worker_count()));
    let budget = home.budget();
    let mut state = eris_exact::session_state(config, physical_rules(), budget, spill)
        .map_err(SqlError::from_datafusion)?;
    crate::system::functions::register(&mut state).map_err(SqlError::from_datafusion)?;
    Ok(state)
}

fn config(variables: &Variables) -> SessionConfig {
    let mut config = eris_exact::session_config()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false)
        .with_extension(Arc::new(JoinRules(rules_without_stars())));
    variables.apply(&mut config);
    config
}

/// DataFusion's rules, repaired, with ours among them.
fn physical_rules() -> Vec<PhysicalRule> {
    let mut rules = rules_without_stars();
    insert_before(&mut rules, "join_selection", Arc::new(JoinOrder));
    insert_before(&mut rules, "join_selection", Arc::new(StarJoins));
    rules
}

/// The same, but for joins that become part of fragments: aggregates move into the scan before exchanges are added, and
/// scans tell their order once all operators are there.
fn rules_without_stars() -> Vec<PhysicalRule> {
    let mut rules = eris_exact::physical_rules();
    insert_before(&mut rules, "EnsureRequirements", Arc::new(ComputeFilters));
    insert_before(&mut rules, "EnsureRequirements", Arc::new(PushAggregates));
    insert_before(&mut rules, "spill_joins", Arc::new(TellOrder));
    rules.push(Arc::new(ContainDamage));
    rules
}
