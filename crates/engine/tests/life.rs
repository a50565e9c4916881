//! The life of rows: written, seen, given back.
#![allow(missing_docs)]

mod common;

use common::*;
use eris_engine::{EngineError, Partitioning};
use eris_fragment::*;
use eris_types::ColumnId;
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeSet;
use std::sync::Arc;

fn sum(first: i64, count: i64) -> i64 {
    (first..first + count).sum()
}

#[test]
fn an_empty_object_has_one_empty_group() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        assert_eq!(count_sum(engine, object).unwrap(), (0, 0));
    });
}

#[test]
fn rows_are_seen_after_commit_whatever_their_number() {
    on_all_topologies(|engine| {
        for count in [1usize, 1000, 40_000, 65_536, 65_537, 300_000] {
            let object = create(engine, Partitioning::Size);
            assert_eq!(
                insert(engine, object, rows(0, count)).unwrap(),
                count as u64
            );
            let expected = (count as i64, sum(0, count as i64));
            assert_eq!(count_sum(engine, object).unwrap(), expected, "{count} rows");
            assert_eq!(engine.statistics(object).unwrap().rows, count as u64);
        }
    });
}

#[test]
fn every_row_comes_back_as_it_was() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        let written = rows(0, 150_000);
        insert(engine, object, written.clone()).unwrap();
        let read = collect(engine, fragment(engine, object, all_rows()), 3).unwrap();
        let set = |batches: &[arrow_array::RecordBatch]| {
            let mut set = BTreeSet::new();
            for batch in batches {
                let ids = batch.column(0);
                let ids = ids.as_any().downcast_ref::<arrow_array::Int64Array>();
                let names = batch.column(1);
                let names = names
                    .as_any()
                    .downcast_ref::<arrow_array::StringViewArray>();
                for (id, name) in ids.unwrap().iter().zip(names.unwrap().iter()) {
                    assert!(set.insert((id, name.map(str::to_owned))), "twice: {id:?}");
                }
            }
            set
        };
        assert_eq!(set(&read), set(&[written]));
    });
}

#[test]
fn many_small_statements_are_joined_to_chunks() {
    let engine = engine(1, 2);
    let object = create(&engine, Partitioning::Size);
    for statement in 0..3_000 {
        insert(&engine, object, rows(statement * 50, 50)).unwrap();
        if statement % 500 == 0 {
            let count = (statement + 1) * 50;
            assert_eq!(count_sum(&engine, object).unwrap(), (count, sum(0, count)));
        }
    }
    assert_eq!(
        count_sum(&engine, object).unwrap(),
        (150_000, sum(0, 150_000))
    );
}

#[test]
fn rows_of_a_statement_that_is_given_up_leave_no_trace() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 10)).unwrap();
        let before = engine.statistics(object).unwrap();
        let mut writer = engine.writer(object).unwrap();
        block_on(writer.append(rows(10, 200_000))).unwrap();
        drop(writer);
        assert_eq!(count_sum(engine, object).unwrap(), (10, 45));
        assert_eq!(engine.statistics(object).unwrap().rows, before.rows);
    });
}

#[test]
fn null_and_foreign_columns_are_rejected() {
    let engine = engine(1, 1);
    let object = create(&engine, Partitioning::Size);
    let good = rows(0, 5);
    let ids = arrow_array::Int64Array::from(vec![Some(1), Some(2), None, Some(4), Some(5)]);
    let columns = vec![Arc::new(ids) as _, good.column(1).clone()];
    let nullable = arrow_schema::Schema::new(vec![
        arrow_schema::Field::new("id", arrow_schema::DataType::Int64, true),
        good.schema().field(1).clone(),
    ]);
    let batch = arrow_array::RecordBatch::try_new(Arc::new(nullable), columns).unwrap();
    match insert(&engine, object, batch) {
        Err(EngineError::Null { column, row, .. }) => assert_eq!((column.as_str(), row), ("id", 3)),
        other => panic!("{other:?}"),
    }
    let narrow = rows(0, 5).project(&[0]).unwrap();
    let denied = insert(&engine, object, narrow);
    assert!(
        matches!(denied, Err(EngineError::Shape { .. })),
        "{denied:?}"
    );
    assert_eq!(count_sum(&engine, object).unwrap(), (0, 0));
}

#[test]
fn range_partitions_have_disjoint_keys() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Range(ColumnId(0)));
        insert(engine, object, rows(0, 200_000)).unwrap();
        insert(engine, object, rows(200_000, 100_000)).unwrap();
        let expected = (300_000, sum(0, 300_000));
        assert_eq!(count_sum(engine, object).unwrap(), expected);
        // Every worker's rows come on a stream of their own, so that ranges can be told apart.
        let streams = engine.topology().aeus().len();
        let fragment = fragment(engine, object, all_rows());
        let execution = engine.execute(Arc::new(fragment), streams).unwrap();
        let mut read = 0;
        for stream in execution.streams {
            for batch in block_on(stream.collect::<Vec<_>>()) {
                read += batch.unwrap().num_rows();
            }
        }
        assert_eq!(read, 300_000);
    });
}

#[test]
fn a_dropped_object_is_gone_with_its_memory() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 300_000)).unwrap();
        let used = |object| -> u64 {
            let usage = engine.memory().usage();
            let own = usage.iter().filter(|usage| usage.object == object);
            own.map(|usage| usage.bytes).sum()
        };
        assert!(used(object) > 100_000);
        block_on(engine.drop(object)).unwrap();
        assert_eq!(used(object), 0);
        assert!(matches!(
            count_sum(engine, object),
            Err(FragmentError::NoSuchObject(_))
        ));
        assert!(engine.writer(object).is_err());
        assert!(block_on(engine.drop(object)).is_err());
    });
}

#[test]
fn a_limit_stops_early_and_sends_enough() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 1_000_000)).unwrap();
        let output = Output::Rows {
            columns: vec![Expr::Column(0)],
            limit: Some(10),
        };
        let read = collect(engine, fragment(engine, object, output), 2).unwrap();
        let sent: usize = read.iter().map(|batch| batch.num_rows()).sum();
        assert!((10..1_000_000).contains(&sent), "{sent} rows");
    });
}

#[test]
fn a_stream_that_is_not_read_holds_back_and_can_be_dropped() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 2_000_000)).unwrap();
        for _ in 0..20 {
            let fragment = fragment(engine, object, all_rows());
            let mut execution = engine.execute(Arc::new(fragment), 2).unwrap();
            let first = block_on(execution.streams[0].next());
            assert!(first.unwrap().unwrap().num_rows() > 0);
            drop(execution);
        }
        let expected = (2_000_000, sum(0, 2_000_000));
        assert_eq!(count_sum(engine, object).unwrap(), expected);
    });
}

#[test]
fn a_panic_fails_one_statement_only() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 500_000)).unwrap();
        for _ in 0..5 {
            engine.poison(object).unwrap();
            match count_sum(engine, object) {
                Err(FragmentError::Panicked { message, .. }) => {
                    assert_eq!(message, "poisoned on purpose")
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(
                count_sum(engine, object).unwrap(),
                (500_000, sum(0, 500_000))
            );
        }
    });
}

#[test]
fn an_overflow_fails_the_statement() {
    let engine = engine(1, 2);
    let object = create(&engine, Partitioning::Size);
    insert(&engine, object, rows(i64::MAX - 200_000, 100_000)).unwrap();
    let overflow = count_sum(&engine, object);
    assert!(
        matches!(overflow, Err(FragmentError::Overflow { .. })),
        "{overflow:?}"
    );
}

#[test]
fn no_rows_are_no_rows() {
    on_all_topologies(|engine| {
        for partitioning in [Partitioning::Size, Partitioning::Range(ColumnId(0))] {
            let object = create(engine, partitioning);
            assert_eq!(insert(engine, object, rows(0, 0)).unwrap(), 0);
            assert_eq!(insert(engine, object, rows(0, 3)).unwrap(), 3);
            assert_eq!(count_sum(engine, object).unwrap(), (3, 3));
        }
    });
}

/// What cannot be encoded is rejected before it is committed, however few rows it is: nothing committed is unreadable.
#[test]
fn a_value_beyond_its_type_fails_its_statement_only() {
    use arrow_array::{Decimal128Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};
    let engine = engine(1, 2);
    let schema = Schema::new(vec![Field::new("d", DataType::Decimal128(10, 2), true)]);
    let schema = Arc::new(schema);
    let object = engine
        .create("t", schema.clone(), Partitioning::Size)
        .unwrap();
    let row = |value: i128| {
        let array = Decimal128Array::from(vec![value]).with_precision_and_scale(10, 2);
        RecordBatch::try_new(schema.clone(), vec![Arc::new(array.unwrap())]).unwrap()
    };
    insert(&engine, object, row(125)).unwrap();
    let denied = insert(&engine, object, row(i128::MAX));
    assert!(
        matches!(denied, Err(EngineError::Store { .. })),
        "{denied:?}"
    );
    let output = Output::Rows {
        columns: vec![Expr::Column(0)],
        limit: None,
    };
    let mut all = fragment(&engine, object, output);
    all.columns.truncate(1);
    let read = collect(&engine, all, 1).unwrap();
    assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
}

#[test]
fn dropping_goes_on_when_nobody_waits_for_it() {
    use std::future::Future;
    use std::task::{Context, Waker};
    let engine = engine(4, 2);
    let object = create(&engine, Partitioning::Size);
    insert(&engine, object, rows(0, 200_000)).unwrap();
    {
        let mut dropping = std::pin::pin!(engine.drop(object));
        let _ = dropping
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
    let gone = || {
        engine
            .memory()
            .usage()
            .iter()
            .all(|usage| usage.object != object)
    };
    while !gone() {
        std::thread::yield_now();
    }
}

#[test]
fn an_inspection_shows_every_row_once_and_where_it_is() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Range(ColumnId(0)));
        assert!(
            block_on(engine.inspect(object))
                .unwrap()
                .segments
                .is_empty()
        );
        for count in [10, 300_000, 7] {
            insert(engine, object, rows(0, count)).unwrap();
        }
        let found = block_on(engine.inspect(object)).unwrap();
        let chunks = || found.segments.iter().flat_map(|segment| &segment.chunks);
        assert_eq!(chunks().map(|chunk| chunk.rows).sum::<u64>(), 300_017);
        let nulls = chunks().map(|chunk| chunk.columns[1].nulls).sum::<u64>();
        assert_eq!(nulls, engine.statistics(object).unwrap().columns[1].nulls);
        assert_eq!(found.dictionaries[1].unwrap().entries, 90);
        assert!(found.dictionaries[0].is_none());
        let mut ids = BTreeSet::new();
        for segment in &found.segments {
            assert!(ids.insert(segment.segment));
            assert_eq!(segment.node, engine.topology().node_of(segment.aeu));
            let bytes = segment.chunks.iter().flat_map(|chunk| &chunk.columns);
            assert!(segment.bytes >= bytes.map(|column| column.bytes).sum());
        }
        block_on(engine.drop(object)).unwrap();
        assert!(matches!(
            block_on(engine.inspect(object)),
            Err(EngineError::NoSuchObject(_))
        ));
    });
}
