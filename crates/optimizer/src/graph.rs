//! What is joined, and how many rows that leaves.

use crate::set::RelationSet;

/// A relation as it is read, behind what is asked of it alone.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// Rows that are read of it.
    pub rows: f64,
    /// Rows that it has before anything is asked of it: so many values its columns have together, at most.
    pub table_rows: f64,
}

/// Columns whose values are equal in each row of the result.
#[derive(Clone, Debug, Default)]
pub struct EquivalenceClass {
    /// The relations that have one.
    pub members: Vec<Member>,
}

/// A relation's column in a class.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Whose column it is.
    pub relation: usize,
    /// Distinct values that the column has before anything is asked of its relation.
    pub distinct: f64,
}

/// What is asked of several relations, beside the equality of columns.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Those whose columns it needs.
    pub relations: RelationSet,
    /// The share of rows for which it is true.
    pub selectivity: f64,
}

/// Relations, which of their columns are equal, and what else is asked.
#[derive(Clone, Debug)]
pub struct JoinGraph {
    relations: Vec<Relation>,
    /// A member of each relation at most, those of the smallest tables first.
    classes: Vec<EquivalenceClass>,
    conditions: Vec<Condition>,
    /// For each relation, the others that have a column equal to one of its own.
    neighbours: Vec<RelationSet>,
}

impl JoinGraph {
    /// A graph of up to [`RelationSet::CAPACITY`] relations. Of a class, one column of each relation counts.
    pub fn new(
        relations: Vec<Relation>,
        mut classes: Vec<EquivalenceClass>,
        conditions: Vec<Condition>,
    ) -> Self {
        assert!(relations.len() <= RelationSet::CAPACITY);
        let mut neighbours = vec![RelationSet::EMPTY; relations.len()];
        for class in &mut classes {
            class.members.sort_by_key(|member| member.relation);
            class.members.dedup_by_key(|member| member.relation);
            let table = |member: &Member| relations[member.relation].table_rows;
            class
                .members
                .sort_by(|one, other| table(one).total_cmp(&table(other)));
            let members = class.members.iter().map(|member| member.relation);
            let members = RelationSet::from_iter(members);
            for relation in members.iter() {
                let others = members.without(RelationSet::one(relation));
                neighbours[relation] = neighbours[relation].union(others);
            }
        }
        JoinGraph {
            relations,
            classes,
            conditions,
            neighbours,
        }
    }

    /// How many relations there are.
    pub fn count(&self) -> usize {
        self.relations.len()
    }

    /// All relations.
    pub fn all(&self) -> RelationSet {
        RelationSet::first(self.count())
    }

    /// Relations outside of a set that have a column equal to one of the set's.
    pub(crate) fn neighbours(&self, set: RelationSet) -> RelationSet {
        let all = set.iter().map(|relation| self.neighbours[relation]);
        all.fold(RelationSet::EMPTY, RelationSet::union)
            .without(set)
    }

    /// Whether two sets can be joined without making all their pairs.
    pub(crate) fn are_joined(&self, one: RelationSet, other: RelationSet) -> bool {
        self.neighbours(one).meets(other)
    }

    /// How many keys two sets may be joined by: the combinations of values of their equal columns. `None` if they have
    /// none.
    pub(crate) fn keys(&self, one: RelationSet, other: RelationSet) -> Option<f64> {
        let classes = self.classes.iter().filter_map(|class| {
            // Columns that are equal already have the values of the one with the fewest.
            let values = |set: RelationSet| {
                let members = class.members.iter();
                let of_set = members.filter(|member| set.contains(member.relation));
                of_set.map(|member| member.distinct).min_by(f64::total_cmp)
            };
            Some(values(one)?.max(values(other)?))
        });
        classes.reduce(|keys, more| keys * more)
    }

    /// The rows of relations that are joined by all that is asked of them; at least one.
    ///
    /// Of the columns of a class, the one with the fewest values has a row for each value that the others have. So
    /// the rows are as many as all pairs, divided by the distinct values of each column of the class but that one.
    /// Columns of one relation have no more combinations than its table has rows.
    pub fn rows(&self, set: RelationSet) -> f64 {
        // What each relation's columns divide the pairs by, and the most that one of them does.
        let mut divisors = [(1.0_f64, 1.0_f64); RelationSet::CAPACITY];
        for class in &self.classes {
            let members = class.members.iter();
            let members = members.filter(|member| set.contains(member.relation));
            let mut values = [0.0_f64; RelationSet::CAPACITY];
            let mut count = 0;
            for member in members.clone() {
                values[count] = member.distinct.max(1.0);
                count += 1;
            }
            let values = &mut values[..count];
            values.sort_unstable_by(|one, other| other.total_cmp(one));
            // The smallest tables are those whose keys the columns are.
            let all_but_one = count.saturating_sub(1);
            for (member, values) in members.zip(values.iter()).take(all_but_one) {
                let (all, most) = &mut divisors[member.relation];
                *all *= values;
                *most = most.max(*values);
            }
        }
        // One after the other, for the product of all rows may be beyond what a number can be.
        let relations = set.iter().map(|relation| {
            let (all, most) = divisors[relation];
            let Relation { rows, table_rows } = self.relations[relation];
            rows / all.min(table_rows.max(most))
        });
        let conditions = self
            .conditions
            .iter()
            .filter(|condition| set.includes(condition.relations));
        let share: f64 = conditions.map(|condition| condition.selectivity).product();
        (relations.product::<f64>() * share).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class<const N: usize>(members: [(usize, f64); N]) -> EquivalenceClass {
        let members = members.map(|(relation, distinct)| Member { relation, distinct });
        EquivalenceClass {
            members: members.to_vec(),
        }
    }

    fn relation(rows: f64, table_rows: f64) -> Relation {
        Relation { rows, table_rows }
    }

    fn rows<const N: usize>(graph: &JoinGraph, relations: [usize; N]) -> f64 {
        graph.rows(RelationSet::from_iter(relations)).round()
    }

    #[test]
    fn a_key_finds_one_row_or_the_share_that_is_left() {
        let graph = JoinGraph::new(
            vec![relation(6e6, 6e6), relation(1500.0, 150e3)],
            vec![class([(0, 150e3), (1, 150e3)])],
            vec![],
        );
        assert_eq!(rows(&graph, [0]), 6e6);
        assert_eq!(rows(&graph, [0, 1]), 6e4);
    }

    #[test]
    fn equalities_that_follow_from_others_leave_no_fewer_rows() {
        let graph = JoinGraph::new(
            vec![
                relation(1000.0, 1000.0),
                relation(1e5, 1e5),
                relation(100.0, 1000.0),
            ],
            vec![class([(0, 1000.0), (1, 1000.0), (2, 1000.0)])],
            vec![],
        );
        assert_eq!(rows(&graph, [0, 1, 2]), 1e4);
        assert_eq!(rows(&graph, [0, 2]), 100.0);
    }

    #[test]
    fn two_columns_have_no_more_combinations_than_rows() {
        // TPC-H's lineitem, partsupp and part.
        let graph = JoinGraph::new(
            vec![
                relation(6e6, 6e6),
                relation(800e3, 800e3),
                relation(200e3, 200e3),
            ],
            vec![
                class([(0, 200e3), (1, 200e3), (2, 200e3)]),
                class([(0, 10e3), (1, 10e3)]),
            ],
            vec![],
        );
        assert_eq!(rows(&graph, [0, 1]), 6e6);
        assert_eq!(rows(&graph, [0, 1, 2]), 6e6);
    }

    #[test]
    fn many_large_relations_have_a_number_of_rows() {
        let members = (0..64).map(|relation| Member {
            relation,
            distinct: 1e9,
        });
        let class = EquivalenceClass {
            members: members.collect(),
        };
        let graph = JoinGraph::new(vec![relation(1e9, 1e9); 64], vec![class], vec![]);
        assert_eq!(graph.rows(graph.all()), 1e9);
    }

    #[test]
    fn conditions_count_where_all_their_relations_are() {
        let condition = Condition {
            relations: RelationSet::from_iter([0, 2]),
            selectivity: 0.1,
        };
        let graph = JoinGraph::new(
            vec![relation(100.0, 100.0); 3],
            vec![
                class([(0, 100.0), (1, 100.0)]),
                class([(1, 100.0), (2, 100.0)]),
            ],
            vec![condition],
        );
        assert_eq!(rows(&graph, [0, 1]), 100.0);
        assert_eq!(rows(&graph, [0, 1, 2]), 10.0);
    }
}
