//! In which order relations are joined.
//!
//! ```text
//!   JoinGraph                                  Order
//!   relations  rows, rows of their tables      (orders ⋈ customer) ⋈ (lineitem ⋈ part)
//!   classes    columns that are equal    ──►   and what it costs
//!   conditions on several relations
//! ```
//!
//! Equal columns are an equivalence class, whoever wrote which equality. So `a.x = b.x AND b.x = c.x` lets `a` be
//! joined with `c` at once. What a set of relations has of rows is a function of the set, and not of the order in
//! which it was joined ([`JoinGraph::rows`]). The cheapest order is found by dynamic programming over connected sets,
//! or greedily where these are too many ([`JoinGraph::best_order`]).
//!
//! It knows numbers and sets. Plans, columns and types are its callers'.
//!
//! Sources: Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic Programming Algorithm for the
//! Generation of Optimal Bushy Join Trees without Cross Products" (VLDB 2006), for DPccp; Fegaras, "A New Heuristic
//! for Optimizing Large Queries" (DEXA 1998), for greedy operator ordering; Selinger et al., "Access Path Selection
//! in a Relational Database Management System" (SIGMOD 1979), for the share of rows that equalities leave.

#![forbid(unsafe_code)]

mod enumerate;
mod graph;
mod order;
mod set;

pub use graph::{Condition, EquivalenceClass, JoinGraph, Member, Relation};
pub use order::{JoinTree, Order};
pub use set::RelationSet;
