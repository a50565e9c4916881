//! DataFusion's rules with the repairs in place.

use crate::aggregate::group_keys::SeparateGroups;
use crate::aggregate::grouping_sets::GroupingSets;
use crate::aggregate::held_filter::stays_above;
use crate::aggregate::holistic::AggregateWholeGroups;
use crate::aggregate::repeated_keys::OmitRepeatedKeys;
use crate::aggregate::single_distinct::sums_decimals;
use crate::arithmetic::rule::ExactArithmetic;
use crate::comparison::interval_keys::IntervalKeys;
use crate::comparison::membership::ExactMembership;
use crate::comparison::zero::OneZero;
use crate::correlated::UnnestSubqueries;
use crate::correlated::join_condition::SubqueriesInOn;
use crate::held::{HeldRule, IsHeld};
use crate::join::asof::{FilterBelowAsOf, MarkedJoins};
use crate::join::null_keys::EqualKeys;
use crate::join::same_names::UnlessSameNames;
use crate::join::sides::SmallerBuildSides;
use crate::join::spilling::SpillJoins;
use crate::join::yielding::YieldAfterJoins;
use crate::memory::cut::CutBatches;
use crate::memory::view_keys::ViewKeys;
use crate::memory::windows::AccountWindows;
use crate::no_columns::LimitWithoutColumns;
use crate::sort::PackSorts;
use crate::sort_keys::SortKeys;
use crate::window::{KeepFirstRanks, RankInBatches};
use crate::written::WrittenTypes;
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use eris_numa::Budget;
use std::sync::Arc;

/// A rule of the analyzer, shared by all statements.
pub type Analysis = Arc<dyn AnalyzerRule + Send + Sync>;

/// A rule over logical plans.
pub type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;

/// A rule over physical plans.
pub type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules that find out types, among ours. What goes by the types that were written comes before operands
/// get one type, all else after.
pub(crate) fn analyzer_rules(budget: &Budget) -> Vec<Analysis> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(MarkedJoins));
    rules.insert(1, Arc::new(GroupingSets));
    rules.insert(2, Arc::new(WrittenTypes));
    rules.push(Arc::new(OmitRepeatedKeys));
    rules.push(Arc::new(ExactArithmetic::new(budget)));
    rules.push(Arc::new(OneZero));
    rules.push(Arc::new(IntervalKeys));
    rules.push(Arc::new(SubqueriesInOn));
    rules.push(Arc::new(ExactMembership));
    rules.push(Arc::new(UnnestSubqueries));
    // After it, for it makes groups.
    rules.push(Arc::new(SeparateGroups));
    rules.push(Arc::new(ViewKeys));
    rules
}

/// DataFusion's rules for logical plans, some of them held back where they are wrong.
pub(crate) fn optimizer_rules() -> Vec<LogicalRule> {
    let held: [(&str, IsHeld); 2] = [
        ("single_distinct_aggregation_to_group_by", sums_decimals),
        ("push_down_filter", stays_above),
    ];
    let mut rules = Optimizer::new().rules;
    for (name, is_held) in held {
        let place = rules.iter().position(|rule| rule.name() == name);
        let rule = &mut rules[place.expect("DataFusion has this rule")];
        *rule = Arc::new(HeldRule {
            rule: Arc::clone(rule),
            is_held,
        });
    }
    let keys = EqualKeys::default();
    let place = rules.iter().position(|rule| rule.name() == keys.name());
    rules[place.expect("DataFusion has this rule")] = Arc::new(keys);
    let place = rules
        .iter()
        .position(|rule| rule.name() == "simplify_expressions");
    let place = place.expect("DataFusion has this rule");
    rules.insert(place + 1, Arc::new(SortKeys));
    let place = rules
        .iter()
        .position(|rule| rule.name() == "push_down_filter");
    let place = place.expect("DataFusion has this rule");
    rules.insert(place, Arc::new(FilterBelowAsOf));
    rules
}

/// DataFusion's rules for physical plans, with the repairs among them. Joins get their yield points before the last
/// rule looks for places of dynamic filters, and become joins that spill once they have their own.
pub fn physical_rules() -> Vec<PhysicalRule> {
    let mut rules = PhysicalOptimizer::new().rules;
    for rule in &mut rules {
        if rule.name().starts_with("FilterPushdown") {
            *rule = Arc::new(UnlessSameNames(Arc::clone(rule)));
        }
    }
    let place = rules
        .iter()
        .position(|rule| rule.name() == "join_selection");
    let place = place.expect("DataFusion has this rule");
    rules.insert(place + 1, Arc::new(SmallerBuildSides));
    insert_before(
        &mut rules,
        "EnsureRequirements",
        Arc::new(AggregateWholeGroups),
    );
    insert_before(&mut rules, "EnsureCooperative", Arc::new(YieldAfterJoins));
    insert_before(&mut rules, "SanityCheckPlan", Arc::new(SpillJoins));
    insert_before(&mut rules, "SanityCheckPlan", Arc::new(KeepFirstRanks));
    insert_before(&mut rules, "SanityCheckPlan", Arc::new(RankInBatches));
    insert_before(&mut rules, "SanityCheckPlan", Arc::new(AccountWindows));
    insert_before(&mut rules, "SanityCheckPlan", Arc::new(PackSorts));
    rules.push(Arc::new(LimitWithoutColumns));
    rules.push(Arc::new(CutBatches));
    rules
}

/// Inserts a rule before the one of this name.
///
/// # Panics
/// If there is none: DataFusion has changed, and the rule needs another place.
pub fn insert_before(rules: &mut Vec<PhysicalRule>, name: &str, rule: PhysicalRule) {
    let place = rules.iter().position(|other| other.name() == name);
    rules.insert(place.expect("DataFusion has this rule"), rule);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rules_that_push_filters_down_are_held_back() {
        let rules = physical_rules();
        let held = |rule: &&PhysicalRule| format!("{rule:?}").starts_with("UnlessSameNames");
        let mut names: Vec<&str> = rules.iter().filter(held).map(|rule| rule.name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["FilterPushdown", "FilterPushdown(Post)"]);
    }
}
