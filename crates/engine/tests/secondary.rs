//! Secondary indexes that fail while they are made.
#![allow(missing_docs)]

mod common;

use common::*;
use eris_engine::{Engine, EngineError, IndexKind, Partitioning};
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId};
use futures::executor::block_on;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 300_000;

fn make(engine: &Engine, object: ObjectId, kind: IndexKind) -> Result<u32, EngineError> {
    let columns = [ColumnId(0)];
    block_on(engine.create_index(object, &columns, kind, Arc::default()))
}

/// The rows with this id.
fn rows_with(engine: &Engine, object: ObjectId, id: i64) -> usize {
    let mut fragment = fragment(engine, object, all_rows());
    fragment.filter = vec![Expr::Binary {
        op: BinaryOp::Eq,
        left: Box::new(Expr::Column(0)),
        right: Box::new(Expr::Literal(Scalar {
            data_type: Type::Int64,
            value: Value::Integer(id.into()),
        })),
    }];
    let batches = collect(engine, fragment, 2).unwrap();
    batches.iter().map(|batch| batch.num_rows()).sum()
}

#[test]
fn a_panic_leaves_nothing_of_an_index() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, ROWS)).unwrap();
        let before = engine.memory().budget().used();
        for kind in [IndexKind::Ordered, IndexKind::Hashed, IndexKind::Shared] {
            engine.poison(object).unwrap();
            match make(engine, object, kind) {
                Err(EngineError::Panicked { message, .. }) => {
                    assert_eq!(message, "poisoned on purpose");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(engine.indexes(object).unwrap(), []);
            let began = Instant::now();
            while engine.memory().budget().used() != before {
                assert!(
                    began.elapsed() < Duration::from_secs(20),
                    "memory is left over"
                );
                std::thread::yield_now();
            }
        }
        // The object's writes and its next indexes are not harmed.
        insert(engine, object, rows(0, 10)).unwrap();
        for (at, kind) in [IndexKind::Ordered, IndexKind::Shared]
            .into_iter()
            .enumerate()
        {
            let made = make(engine, object, kind).unwrap();
            insert(engine, object, rows(7, 1)).unwrap();
            let now = ROWS + 11 + at;
            assert_eq!(count_sum(engine, object).unwrap().0, now as i64);
            assert_eq!(rows_with(engine, object, 7), 3 + at);
            assert_eq!(rows_with(engine, object, ROWS as i64 - 1), 1);
            let [index] = &engine.indexes(object).unwrap()[..] else {
                panic!("one index was made");
            };
            assert_eq!((index.entries, index.lookups), (now as u64, 2));
            engine.drop_index(object, made).unwrap();
        }
    });
}
