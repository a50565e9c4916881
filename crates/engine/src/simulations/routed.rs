//! Groups that are assigned between AEUs under a seeded schedule: slices that panic, commands that get lost in a panic,
//! streams that are dropped, statements that are given up, objects that are dropped, little memory. Nobody waits for
//! ever, nothing is left over, and whoever gets an answer gets the right one.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::routed`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds};
use crate::{EngineError, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId};
use futures::StreamExt;
use futures::future::join_all;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("text", DataType::Utf8View, true),
        Field::new("value", DataType::Int64, false),
    ]))
}

/// What is asked of the rows, and what is right.
struct Expected {
    keys: i64,
    rows: i64,
}

impl Expected {
    /// Keys come in no order, each about as often as any other; one row in 1,000 has none.
    fn key(&self, row: i64) -> Option<i64> {
        let mixed = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (row % 1_000 != 7).then_some((mixed % self.keys as u64) as i64)
    }

    fn text(&self, row: i64) -> Option<String> {
        self.key(row).map(|key| format!("text {key}"))
    }

    fn value(row: i64) -> i64 {
        row * 7 % 1_000_003
    }

    fn batch(&self, rows: std::ops::Range<i64>) -> RecordBatch {
        let keys: Int64Array = rows.clone().map(|row| self.key(row)).collect();
        let texts: StringViewArray = rows.clone().map(|row| self.text(row)).collect();
        let values: Int64Array = rows.map(|row| Some(Self::value(row))).collect();
        let columns = vec![
            Arc::new(keys) as _,
            Arc::new(texts) as _,
            Arc::new(values) as _,
        ];
        RecordBatch::try_new(schema(), columns).unwrap()
    }

    /// Count and greatest value per key.
    fn groups(&self) -> HashMap<Option<i64>, (i64, i64)> {
        let mut groups = HashMap::new();
        for row in 0..self.rows {
            let (count, greatest) = groups.entry(self.key(row)).or_insert((0, i64::MIN));
            *count += 1;
            *greatest = Self::value(row).max(*greatest);
        }
        groups
    }
}

#[derive(Default)]
struct Outcomes {
    right: Cell<u64>,
    merged: Cell<u64>,
    failed: Cell<u64>,
}

struct Reader {
    engine: Engine,
    object: ObjectId,
    groups: Rc<HashMap<Option<i64>, (i64, i64)>>,
    random: Random,
    seen: Rc<Outcomes>,
}

impl Reader {
    fn fragment(&self, by_text: bool) -> Arc<Fragment> {
        let aggregate = |function, input: Option<usize>| Aggregate {
            function,
            input: input.map(Expr::Column),
            filter: None,
            state: Type::Int64,
        };
        Arc::new(Fragment {
            object: self.object,
            snapshot: self.engine.snapshot(),
            order: None,
            columns: vec![ColumnId(0), ColumnId(1), ColumnId(2)],
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Groups {
                keys: vec![Expr::Column(usize::from(by_text))],
                aggregates: vec![
                    aggregate(AggregateFunction::Count, None),
                    aggregate(AggregateFunction::Max, Some(2)),
                ],
            },
            options: ScanOptions::default(),
        })
    }

    async fn read(mut self) {
        let by_text = self.random.one_in(3);
        let streams = 1 + self.random.below(self.engine.topology().aeus().len());
        let execution = match self.engine.execute(self.fragment(by_text), streams) {
            Ok(execution) => execution,
            Err(FragmentError::NoSuchObject(_)) => return,
            Err(other) => panic!("{other}"),
        };
        // None: the stream is read to its end. Others are dropped before, some before anything has come.
        let ends: Vec<Option<usize>> = (0..streams)
            .map(|_| self.random.one_in(8).then(|| self.random.below(4)))
            .collect();
        let streams = execution.streams.into_iter().zip(&ends);
        let streams = streams.map(|(mut stream, end)| async move {
            let mut batches = Vec::new();
            while end.is_none_or(|end| batches.len() < end) {
                match stream.next().await {
                    Some(Ok(batch)) => batches.push(batch),
                    Some(Err(error)) => return Err(error),
                    None => break,
                }
            }
            Ok(batches)
        });
        let streams = join_all(streams).await;
        let is_merged = (execution.is_merged)();
        let mut groups: HashMap<Option<i64>, (usize, i64, i64)> = HashMap::new();
        for (stream, batches) in streams.into_iter().enumerate() {
            let batches = match batches {
                Ok(batches) => batches,
                Err(FragmentError::Panicked { .. } | FragmentError::NoSuchObject(_)) => {
                    self.seen.failed.set(self.seen.failed.get() + 1);
                    return;
                }
                Err(other) => panic!("{other}"),
            };
            if ends[stream].is_some() {
                continue;
            }
            for batch in batches {
                let counts = batch.column(1).as_primitive::<Int64Type>().values();
                let greatest = batch.column(2).as_primitive::<Int64Type>().values();
                for (row, (count, greatest)) in counts.iter().zip(greatest).enumerate() {
                    let before = groups.entry(key(&batch, row, by_text));
                    let before = before.or_insert((stream, 0, i64::MIN));
                    assert_eq!(before.0, stream, "a group in two streams");
                    assert!(!is_merged || before.1 == 0, "a merged group comes twice");
                    before.1 += count;
                    before.2 = before.2.max(*greatest);
                }
            }
        }
        for (key, (_, count, greatest)) in &groups {
            assert_eq!(self.groups[key], (*count, *greatest), "{key:?}");
        }
        if ends.iter().all(Option::is_none) {
            assert_eq!(groups.len(), self.groups.len());
            self.seen.right.set(self.seen.right.get() + 1);
            self.seen
                .merged
                .set(self.seen.merged.get() + u64::from(is_merged));
        }
    }
}

fn key(batch: &RecordBatch, row: usize, by_text: bool) -> Option<i64> {
    let keys = batch.column(0);
    match keys.is_null(row) {
        true => None,
        false if by_text => {
            let text = keys.as_string_view().value(row);
            Some(text.strip_prefix("text ").unwrap().parse().unwrap())
        }
        false => Some(keys.as_primitive::<Int64Type>().value(row)),
    }
}

fn simulate(seed: u64, seen: &Rc<Outcomes>) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 300);
    let engine = simulated.engine.clone();
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    let expected = Rc::new(Expected {
        keys: [50, 12_000, 40_000, 150_000][random.below(4)],
        rows: 150_000 + random.below(200_000) as i64,
    });
    let groups = Rc::new(expected.groups());
    let is_written = Rc::new(Cell::new(false));
    {
        let (engine, expected, is_written) = (engine.clone(), expected.clone(), is_written.clone());
        simulated.client(async move {
            // Slices may panic: it is tried until they do not.
            loop {
                let mut writer = engine.writer(object).unwrap();
                let mut result = Ok(());
                for start in (0..expected.rows).step_by(20_000) {
                    let rows = start..expected.rows.min(start + 20_000);
                    result = result.and(writer.append(expected.batch(rows)).await);
                }
                match result {
                    Ok(()) => match writer.commit().await {
                        Ok(_) => break,
                        Err(EngineError::Panicked { .. }) => {}
                        Err(other) => panic!("{other}"),
                    },
                    Err(EngineError::Panicked { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            is_written.set(true);
        });
    }
    simulated.run();
    assert!(is_written.get());
    let budget = simulated.memory.budget().clone();
    match random.below(4) {
        // Next to nothing, and nothing that may be used to merge.
        0 => budget.set_limit(budget.used() + (random.below(20) as u64 + 12) * (1 << 20)),
        1 => budget.set_limit(budget.used() * 2 + (1 << 26)),
        _ => {}
    }
    let is_scarce = budget.limit() < budget.used() + (40 << 20);
    for _ in 0..1 + if is_scarce { 0 } else { random.below(3) } {
        let reader = Reader {
            engine: simulated.engine.clone(),
            object,
            groups: groups.clone(),
            random: Random::new(random.bits()),
            seen: seen.clone(),
        };
        simulated.client(reader.read());
    }
    if random.one_in(6) {
        simulated.client(async move { engine.drop(object).await.unwrap() });
        simulated.run();
    } else {
        simulated.run();
        simulated.drop_object(object);
    }
    simulated.check_memory();
    simulated.end();
}

#[test]
fn groups_add_up_whatever_the_schedule() {
    let seen = Rc::new(Outcomes::default());
    for_seeds(60, |seed| simulate(seed, &seen));
    let (right, merged, failed) = (seen.right.get(), seen.merged.get(), seen.failed.get());
    println!("{right} right, {merged} of them merged, {failed} failed");
    if crate::simulations::simulated::number("ERIS_SEED").is_none() {
        // Or else it would prove little.
        assert!(merged > 5 && right > merged && failed > 0);
    }
}
