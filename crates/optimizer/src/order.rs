//! The cheapest order.
//!
//! A join costs what it reads and what it makes. Its smaller input becomes a table, whose rows cost more than those
//! that are looked up. How much these cost depends on how many different keys there may be: with few, what is looked
//! at is in a cache. Measured with 10 million rows, a row costs about 40 ns in the table, and 2 to 10 ns as a probe;
//! as a row of the result it is copied, and read by whatever comes next, which is 10 ns more.

use crate::enumerate::connected_pairs;
use crate::graph::JoinGraph;
use crate::set::RelationSet;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What a row of a join's build side costs, in rows of its result.
const BUILD: f64 = 4.0;
/// What a row of its probe side costs, if all keys there may be lie in a cache of the core, and if they do not.
const PROBE: (f64, f64) = (0.2, 1.0);
/// So many keys there are at most in the first case, and at least in the second.
const KEYS: (f64, f64) = (65_536.0, 1_048_576.0);
/// So many pairs of sets dynamic programming looks at, at most.
const PAIRS: usize = 8192;

/// An order of joins.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinTree {
    /// The relation of this number.
    Relation(usize),
    /// Two trees, joined by all equal columns that each has one of.
    Join(Box<JoinTree>, Box<JoinTree>),
}

impl JoinTree {
    /// The relations in it.
    pub fn relations(&self) -> RelationSet {
        match self {
            JoinTree::Relation(relation) => RelationSet::one(*relation),
            JoinTree::Join(left, right) => left.relations().union(right.relations()),
        }
    }
}

/// An order and what it costs.
#[derive(Clone, Debug)]
pub struct Order {
    /// What is joined with what.
    pub tree: JoinTree,
    /// In rows of a join's result.
    pub cost: f64,
}

/// The cheapest order of a set that is known.
#[derive(Clone, Copy)]
struct Best {
    rows: f64,
    cost: f64,
    /// What is joined, if it is more than one relation.
    parts: Option<(RelationSet, RelationSet)>,
}

impl Best {
    /// Both joined by columns that may have so many values, or by comparing each row with each.
    fn join(
        (one, other): (&Best, &Best),
        rows: f64,
        keys: Option<f64>,
        parts: (RelationSet, RelationSet),
    ) -> Self {
        let (build, probe) = (one.rows.min(other.rows), one.rows.max(other.rows));
        let work = match keys {
            Some(keys) => {
                let far = ((keys - KEYS.0) / (KEYS.1 - KEYS.0)).clamp(0.0, 1.0);
                BUILD * build + (PROBE.0 + far * (PROBE.1 - PROBE.0)) * probe
            }
            None => PROBE.0 * build * probe,
        };
        Best {
            rows,
            cost: one.cost + other.cost + work + rows,
            parts: Some(parts),
        }
    }
}

type Table = HashMap<RelationSet, Best>;

impl JoinGraph {
    /// The cheapest order of all relations. Those that no equal columns connect are joined last, the smallest first:
    /// all their pairs are made.
    ///
    /// # Panics
    /// If there is no relation.
    pub fn best_order(&self) -> Order {
        let table = self.programmed().unwrap_or_else(|| self.greedy());
        let mut parts: Vec<_> = self.components();
        parts.sort_by(|one, other| table[one].rows.total_cmp(&table[other].rows));
        let orders = parts.iter().map(|&set| tree(&table, set));
        let tree = orders.reduce(|all, next| JoinTree::Join(Box::new(all), Box::new(next)));
        let tree = tree.expect("there is a relation");
        Order {
            cost: self.cost(&tree),
            tree,
        }
    }

    /// Sets of relations that are connected, and with no other one.
    fn components(&self) -> Vec<RelationSet> {
        let mut left = self.all();
        let mut components = Vec::new();
        while let Some(relation) = left.iter().next() {
            let mut set = RelationSet::one(relation);
            loop {
                let more = self.neighbours(set);
                if more.is_empty() {
                    break;
                }
                set = set.union(more);
            }
            left = left.without(set);
            components.push(set);
        }
        components
    }

    /// What a given order costs.
    pub fn cost(&self, tree: &JoinTree) -> f64 {
        self.evaluate(tree).cost
    }

    fn evaluate(&self, tree: &JoinTree) -> Best {
        match tree {
            JoinTree::Relation(relation) => self.leaf(*relation),
            JoinTree::Join(left, right) => {
                let parts = (left.relations(), right.relations());
                let rows = self.rows(parts.0.union(parts.1));
                let keys = self.keys(parts.0, parts.1);
                let inputs = (&self.evaluate(left), &self.evaluate(right));
                Best::join(inputs, rows, keys, parts)
            }
        }
    }

    fn leaf(&self, relation: usize) -> Best {
        Best {
            rows: self.rows(RelationSet::one(relation)),
            cost: 0.0,
            parts: None,
        }
    }

    fn leaves(&self) -> Table {
        let leaves = (0..self.count()).map(|of| (RelationSet::one(of), self.leaf(of)));
        leaves.collect()
    }

    /// By dynamic programming; `None` if there are too many pairs.
    fn programmed(&self) -> Option<Table> {
        let mut table = self.leaves();
        let mut left = PAIRS;
        let done = connected_pairs(self, &mut |one, other| {
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => return ControlFlow::Break(()),
            }
            let both = one.union(other);
            let known = table.get(&both).copied();
            let rows = known.map_or_else(|| self.rows(both), |known| known.rows);
            let inputs = (&table[&one], &table[&other]);
            let best = Best::join(inputs, rows, self.keys(one, other), (one, other));
            if known.is_none_or(|known| best.cost < known.cost) {
                table.insert(both, best);
            }
            ControlFlow::Continue(())
        });
        done.is_continue().then_some(table)
    }

    /// Joins those two that have the fewest rows together, as long as any are connected.
    fn greedy(&self) -> Table {
        let mut table = self.leaves();
        let mut sets: Vec<_> = (0..self.count()).map(RelationSet::one).collect();
        loop {
            let mut least: Option<(Best, usize, usize)> = None;
            for (right, &other) in sets.iter().enumerate() {
                for (left, &one) in sets[..right].iter().enumerate() {
                    if !self.are_joined(one, other) {
                        continue;
                    }
                    let rows = self.rows(one.union(other));
                    let inputs = (&table[&one], &table[&other]);
                    let best = Best::join(inputs, rows, self.keys(one, other), (one, other));
                    let key = |best: &Best| (best.rows, best.cost);
                    if least.as_ref().is_none_or(|(of, ..)| key(&best) < key(of)) {
                        least = Some((best, left, right));
                    }
                }
            }
            let Some((best, left, right)) = least else {
                return table;
            };
            let both = sets[left].union(sets[right]);
            table.insert(both, best);
            sets.swap_remove(right);
            sets[left] = both;
        }
    }
}

fn tree(table: &Table, set: RelationSet) -> JoinTree {
    match table[&set].parts {
        Some((one, other)) => {
            JoinTree::Join(Box::new(tree(table, one)), Box::new(tree(table, other)))
        }
        None => JoinTree::Relation(set.iter().next().expect("a set of one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Condition, EquivalenceClass, Member, Relation};
    use proptest::prelude::*;

    /// All trees of a set, but those that need pairs of everything.
    fn all_trees(graph: &JoinGraph, set: RelationSet) -> Vec<JoinTree> {
        if set.count() == 1 {
            return vec![JoinTree::Relation(set.iter().next().unwrap())];
        }
        let mut trees = Vec::new();
        for left in set.subsets().filter(|left| *left != set) {
            let right = set.without(left);
            if left.contains(set.iter().next().unwrap()) && graph.are_joined(left, right) {
                let rights = all_trees(graph, right);
                for left in all_trees(graph, left) {
                    let join = |right: &JoinTree| {
                        JoinTree::Join(Box::new(left.clone()), Box::new(right.clone()))
                    };
                    trees.extend(rights.iter().map(join));
                }
            }
        }
        trees
    }

    fn graphs(count: usize) -> impl Strategy<Value = JoinGraph> {
        let relation = (0_u32..7, 0_u32..4).prop_map(|(size, filter)| Relation {
            rows: 10_f64.powi(size.saturating_sub(filter) as i32),
            table_rows: 10_f64.powi(size as i32),
        });
        let member = (0..count, 0_i32..5).prop_map(|(relation, distinct)| Member {
            relation,
            distinct: 10_f64.powi(distinct),
        });
        let class =
            prop::collection::vec(member, 2..4).prop_map(|members| EquivalenceClass { members });
        let condition = prop::collection::vec(0..count, 2..3).prop_map(|relations| Condition {
            relations: RelationSet::from_iter(relations),
            selectivity: 0.25,
        });
        let relations = prop::collection::vec(relation, count);
        let classes = prop::collection::vec(class, 1..count + 2);
        let conditions = prop::collection::vec(condition, 0..2);
        (relations, classes, conditions).prop_map(|(relations, classes, conditions)| {
            JoinGraph::new(relations, classes, conditions)
        })
    }

    proptest! {
        #[test]
        fn no_tree_is_cheaper(graph in graphs(5)) {
            let trees = all_trees(&graph, graph.all());
            let least = trees.iter().map(|tree| graph.cost(tree)).min_by(f64::total_cmp);
            let best = graph.best_order();
            prop_assert_eq!(best.tree.relations(), graph.all());
            prop_assert_eq!(least.is_some(), graph.components().len() == 1);
            if let Some(least) = least {
                prop_assert!(best.cost <= least * 1.000_001, "{} > {least}", best.cost);
                let programmed = graph.programmed().expect("these are few")[&graph.all()].cost;
                prop_assert!((programmed - best.cost).abs() <= best.cost * 1e-6);
            }
        }

        #[test]
        fn a_greedy_order_has_all_relations_and_costs_no_less(graph in graphs(6)) {
            let table = graph.greedy();
            let best = graph.best_order();
            if graph.components().len() == 1 {
                let greedy = tree(&table, graph.all());
                prop_assert_eq!(greedy.relations(), graph.all());
                prop_assert!(graph.cost(&greedy) >= best.cost * 0.999_999);
            }
        }
    }

    /// Forty relations around one, which dynamic programming would not end.
    #[test]
    fn large_graphs_are_ordered_greedily() {
        let relation = |rows: f64| Relation {
            rows,
            table_rows: 1000.0,
        };
        let relations = std::iter::once(relation(1e6)).chain((1..41).map(|n| relation(n as f64)));
        let classes = (1..41).map(|relation| EquivalenceClass {
            members: [0, relation]
                .map(|relation| Member {
                    relation,
                    distinct: 1000.0,
                })
                .to_vec(),
        });
        let graph = JoinGraph::new(relations.collect(), classes.collect(), Vec::new());
        let order = graph.best_order();
        assert_eq!(order.tree.relations(), graph.all());
        let mut tree = &order.tree;
        while let JoinTree::Join(left, _) = tree
            && left.relations().count() > 1
        {
            tree = left;
        }
        // The one in the middle meets the smallest first.
        assert_eq!(tree.relations(), RelationSet::from_iter([0, 1]));
    }
}
