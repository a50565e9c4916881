//! Which operator a reservation is for. DataFusion tells its name only, such as `ExternalSorterMerge[3]`. The tests run
//! its operators, and fail when a name changes upstream.

#[cfg(test)]
mod tests;

use datafusion::execution::memory_pool::MemoryConsumer;

/// How an operator uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatorKind {
    Sort,
    /// What a sort merges its batches or files with, or, without a sort, a merge of rows that are sorted already.
    Merge {
        sort: Option<usize>,
    },
    Aggregate,
    /// Its input comes in order of some keys or all; then it keeps few groups, but cannot spill these.
    OrderedAggregate,
    Join,
    /// It writes what it gets, and needs nothing to get on.
    Exchange,
    CannotSpill,
}

impl OperatorKind {
    /// What a new consumer is, beside the others by their ids and names.
    pub fn of<'a>(
        consumer: &MemoryConsumer,
        others: impl Iterator<Item = (usize, &'a str)>,
    ) -> Self {
        let name = consumer.name();
        if let Some(partition) = name.strip_prefix("ExternalSorterMerge") {
            // DataFusion registers a sort, then its merge.
            let sorts = others.filter(|(id, other)| {
                let sorter = other.strip_prefix("ExternalSorter");
                *id < consumer.id() && sorter == Some(partition)
            });
            let sort = sorts.map(|(id, _)| id).max();
            return OperatorKind::Merge { sort };
        }
        if name.starts_with("SortPreservingMerge") || name.contains("[Merge ") {
            return OperatorKind::Merge { sort: None };
        }
        // DataFusion's hash join does not spill, but ours does.
        if name.starts_with("HashJoin") {
            return OperatorKind::Join;
        }
        match name {
            name if name.starts_with("Ordered") => OperatorKind::OrderedAggregate,
            name if is_aggregate(name) => OperatorKind::Aggregate,
            _ if !consumer.can_spill() => OperatorKind::CannotSpill,
            name if name.starts_with("Repartition") => OperatorKind::Exchange,
            _ => OperatorKind::Sort,
        }
    }

    pub fn is_guaranteed(self) -> bool {
        self.is_aggregate() || matches!(self, OperatorKind::Sort | OperatorKind::Join)
    }

    pub fn is_aggregate(self) -> bool {
        matches!(
            self,
            OperatorKind::Aggregate | OperatorKind::OrderedAggregate
        )
    }
}

fn is_aggregate(name: &str) -> bool {
    let plain = name.split('[').next().unwrap_or(name);
    plain.contains("Aggregate") || plain.contains("GroupedHash")
}

/// Operators by the beginnings of their names, and what users call them.
const WORDS: [(&str, &str); 12] = [
    ("ExternalSorter", "a sort"),
    ("PackedSort", "a sort of numbers"),
    ("SortPreservingMerge", "a merge of sorted rows"),
    ("TopK", "a sort with a limit"),
    ("FirstRanks", "a filter by ranks"),
    ("HashJoin", "a join's hash table"),
    ("NestedLoopJoin", "a nested-loop join"),
    ("CrossJoin", "a cross join"),
    ("SMJ", "a merge join"),
    ("Repartition", "an exchange between threads"),
    ("RecursiveQuery", "a recursive query"),
    ("Window", "a window function"),
];

/// What users call the operator of this name, such as `ExternalSorterMerge[3]`.
pub(super) fn in_words(name: &str) -> &str {
    if is_aggregate(name) {
        return "an aggregate";
    }
    let plain = name.split('[').next().unwrap_or(name);
    let known = WORDS.iter().find(|(start, _)| plain.starts_with(start));
    known.map_or(name, |(_, words)| words)
}
