//! All pairs of connected sets that can be joined: DPccp.
//!
//! Each pair comes once, and after all pairs that make up its parts. Their number is what dynamic programming takes:
//! of n relations in a chain (n³ - n) / 6, of n around one in the middle (n - 1) · 2ⁿ⁻².

use crate::graph::JoinGraph;
use crate::set::RelationSet;
use std::ops::ControlFlow;

/// Calls `visit` for each pair of connected sets that have equal columns and no relation in common.
pub(crate) fn connected_pairs<B>(
    graph: &JoinGraph,
    visit: &mut impl FnMut(RelationSet, RelationSet) -> ControlFlow<B>,
) -> ControlFlow<B> {
    connected_sets(graph, &mut |set| counterparts(graph, set, visit))
}

/// Calls `visit` for each connected set, once.
fn connected_sets<B>(
    graph: &JoinGraph,
    visit: &mut impl FnMut(RelationSet) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for relation in (0..graph.count()).rev() {
        let one = RelationSet::one(relation);
        visit(one)?;
        larger_sets(graph, one, RelationSet::first(relation + 1), visit)?;
    }
    ControlFlow::Continue(())
}

/// Calls `visit` for each connected set that has a given one and none of the excluded relations beside it.
fn larger_sets<B>(
    graph: &JoinGraph,
    set: RelationSet,
    excluded: RelationSet,
    visit: &mut impl FnMut(RelationSet) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let neighbours = graph.neighbours(set).without(excluded);
    for more in neighbours.subsets() {
        visit(set.union(more))?;
    }
    let excluded = excluded.union(neighbours);
    for more in neighbours.subsets() {
        larger_sets(graph, set.union(more), excluded, visit)?;
    }
    ControlFlow::Continue(())
}

/// Calls `visit` with this set and each connected one that it can be joined with, of which the least relation is
/// greater than its own least one.
fn counterparts<B>(
    graph: &JoinGraph,
    set: RelationSet,
    visit: &mut impl FnMut(RelationSet, RelationSet) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let least = set.iter().next().expect("the set has a relation");
    let excluded = RelationSet::first(least + 1).union(set);
    let neighbours = graph.neighbours(set).without(excluded);
    for relation in neighbours.iter().rev() {
        let one = RelationSet::one(relation);
        visit(set, one)?;
        let smaller = RelationSet::from_iter(neighbours.iter().take_while(|&of| of <= relation));
        larger_sets(graph, one, excluded.union(smaller), &mut |other| {
            visit(set, other)
        })?;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EquivalenceClass, Member, Relation};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn graph(count: usize, edges: &[(usize, usize)]) -> JoinGraph {
        let relation = Relation {
            rows: 10.0,
            table_rows: 10.0,
        };
        let member = |relation| Member {
            relation,
            distinct: 10.0,
        };
        let classes = edges.iter().map(|&(one, other)| EquivalenceClass {
            members: vec![member(one), member(other)],
        });
        JoinGraph::new(vec![relation; count], classes.collect(), Vec::new())
    }

    fn pairs(graph: &JoinGraph) -> Vec<(RelationSet, RelationSet)> {
        let mut pairs = Vec::new();
        let all = connected_pairs(graph, &mut |one, other| {
            pairs.push((one, other));
            ControlFlow::<()>::Continue(())
        });
        assert!(all.is_continue());
        pairs
    }

    #[test]
    fn their_number_is_what_the_paper_says() {
        let chain: Vec<_> = (1..10).map(|n| (n - 1, n)).collect();
        assert_eq!(pairs(&graph(10, &chain)).len(), (1000 - 10) / 6);
        let star: Vec<_> = (1..10).map(|n| (0, n)).collect();
        assert_eq!(pairs(&graph(10, &star)).len(), 9 << 8);
        let clique: Vec<_> = (0..6).flat_map(|n| (0..n).map(move |m| (m, n))).collect();
        assert_eq!(pairs(&graph(6, &clique)).len(), 301);
    }

    fn is_connected(graph: &JoinGraph, set: RelationSet) -> bool {
        let mut reached = RelationSet::one(set.iter().next().unwrap());
        loop {
            let more: Vec<_> = graph.neighbours(reached).iter().collect();
            let more = RelationSet::from_iter(more.into_iter().filter(|&of| set.contains(of)));
            if more.is_empty() {
                return reached == set;
            }
            reached = reached.union(more);
        }
    }

    proptest! {
        #[test]
        fn each_pair_comes_once_and_after_its_parts(
            edges in prop::collection::vec((0_usize..7, 0_usize..7), 0..12)
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|(one, other)| one != other).collect();
            let graph = graph(7, &edges);
            let mut known: HashSet<_> = (0..7).map(RelationSet::one).collect();
            let mut seen = HashSet::new();
            for (one, other) in pairs(&graph) {
                prop_assert!(known.contains(&one) && known.contains(&other));
                known.insert(one.union(other));
                prop_assert!(seen.insert((one, other)) && !seen.contains(&(other, one)));
            }
            let sets: Vec<_> = graph.all().subsets().filter(|set| is_connected(&graph, *set)).collect();
            let mut expected = 0;
            for (number, one) in sets.iter().enumerate() {
                let others = sets[..number].iter().filter(|other| !one.meets(**other));
                expected += others.filter(|other| graph.are_joined(*one, **other)).count();
            }
            prop_assert_eq!(seen.len(), expected);
        }
    }
}
