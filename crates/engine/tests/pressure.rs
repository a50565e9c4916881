//! Fragments when memory is short.
#![allow(missing_docs)]

mod common;

use arrow_array::Int64Array;
use common::*;
use eris_engine::Partitioning;
use eris_fragment::*;
use std::collections::HashMap;

/// A count per id.
fn count_by_id() -> Output {
    Output::Groups {
        keys: vec![Expr::Column(0)],
        aggregates: vec![Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        }],
    }
}

#[test]
fn groups_that_do_not_fit_are_handed_on_and_add_up() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        // Every id twice, far from each other, so that some are begun twice by the same AEU.
        for _ in 0..2 {
            insert(engine, object, rows(0, 300_000)).unwrap();
        }
        let budget = engine.memory().budget();
        let aeus = engine.topology().aeus().len() as u64;
        let (ample, used) = (budget.limit(), budget.used());
        // Not enough for anybody's groups, but enough for those of a chunk.
        budget.set_limit(used + aeus * (1 << 20));
        let batches = collect(engine, fragment(engine, object, count_by_id()), 2).unwrap();
        let mut counts = HashMap::new();
        let mut parts = 0;
        for batch in &batches {
            let column = |column: usize| {
                let column = batch.column(column).as_any();
                column.downcast_ref::<Int64Array>().unwrap().clone()
            };
            for (id, count) in column(0).values().iter().zip(column(1).values()) {
                *counts.entry(*id).or_insert(0) += count;
                parts += 1;
            }
        }
        assert_eq!(counts.len(), 300_000);
        assert!(counts.values().all(|count| *count == 2));
        assert!(parts > 300_000);
        // Nothing at all is left: then each chunk's groups are handed on at once.
        budget.set_limit(1);
        let batches = collect(engine, fragment(engine, object, count_by_id()), 2).unwrap();
        let groups: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(groups, 600_000);
        budget.set_limit(ample);
        assert_eq!(count_sum(engine, object).unwrap().0, 600_000);
        let rows = collect(engine, fragment(engine, object, all_rows()), 2).unwrap();
        let rows: usize = rows.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows, 600_000);
        assert_eq!(budget.used(), used);
    });
}
