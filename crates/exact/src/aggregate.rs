//! Aggregates that fail rather than wrap, and groups and sort keys that DataFusion takes for others.

pub(crate) mod average;
pub(crate) mod cast_names;
pub(crate) mod extreme;
pub(crate) mod extreme_row;
pub(crate) mod group_keys;
pub(crate) mod grouping_sets;
pub(crate) mod held_filter;
pub(crate) mod holistic;
mod interval_total;
pub(crate) mod mode;
mod nested_extreme;
pub(crate) mod ordered_list;
pub(crate) mod repeated_keys;
pub(crate) mod single_distinct;
pub(crate) mod sum;
