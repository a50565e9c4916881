//! The column interface of Listing 1 against a plain vector, over owners on one node and on several.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use common::*;
use eris_engine::{Column, ColumnError, ColumnPosition, Engine};
use eris_fragment::{BinaryOp, Value};
use futures::executor::block_on;
use proptest::prelude::*;
use std::sync::LazyLock;

const COMPARATORS: [BinaryOp; 6] = [
    BinaryOp::Lt,
    BinaryOp::LtEq,
    BinaryOp::Eq,
    BinaryOp::NotEq,
    BinaryOp::GtEq,
    BinaryOp::Gt,
];

/// One engine per topology for all cases: each makes a column of its own and drops it.
static ENGINES: LazyLock<[Engine; 3]> =
    LazyLock::new(|| [(1, 1), (1, 2), (4, 2)].map(|(nodes, cores)| engine(nodes, cores)));

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

fn holds((comparator, value): &(BinaryOp, Value), left: &Value) -> bool {
    let order = match (left, value) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        other => panic!("{other:?}"),
    };
    match comparator {
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::LtEq => order.is_le(),
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::NotEq => order.is_ne(),
        BinaryOp::GtEq => order.is_ge(),
        BinaryOp::Gt => order.is_gt(),
        other => panic!("{other:?}"),
    }
}

/// Changes, scans, probes and snapshots, in random order. `sizes`: values that are restored, and that are appended.
fn check(
    column: &Column,
    mut fresh: impl FnMut(&mut Random) -> Value,
    sizes: [usize; 2],
    seed: u64,
) -> Result<(), TestCaseError> {
    let random = &mut Random(seed | 1);
    let mut model: Vec<Value> = (0..sizes[0]).map(|_| fresh(random)).collect();
    block_on(column.restore(&model)).unwrap();
    for _ in 0..sizes[1] {
        let value = fresh(random);
        let position = block_on(column.append(value.clone())).unwrap();
        prop_assert_eq!(position, ColumnPosition(model.len() as u64));
        model.push(value);
    }
    let before = (column.snapshot(), model.clone());
    for _ in 0..20 {
        if model.is_empty() {
            break;
        }
        let (at, value) = (random.below(model.len() as u64), fresh(random));
        block_on(column.set(ColumnPosition(at), value.clone())).unwrap();
        prop_assert_eq!(&block_on(column.get(ColumnPosition(at))).unwrap(), &value);
        model[at as usize] = value;
    }
    let after = (column.snapshot(), model.clone());
    // Readers keep what was there.
    let shorter = &model[..model.len() / 2];
    block_on(column.restore(shorter)).unwrap();
    prop_assert_eq!(
        &block_on(column.snapshot().materialize(None)).unwrap(),
        shorter
    );
    for (column, model) in [&after, &before] {
        prop_assert_eq!(block_on(column.size()).unwrap(), model.len() as u64);
        prop_assert_eq!(&block_on(column.materialize(None)).unwrap(), model);
        let all: Vec<_> = (0..model.len() as u64).map(ColumnPosition).collect();
        let some: Vec<_> = (0..model.len().min(50))
            .map(|_| random.pick(&all))
            .collect();
        let picked: Vec<_> = some.iter().map(|at| model[at.0 as usize].clone()).collect();
        prop_assert_eq!(&block_on(column.materialize(Some(&some))).unwrap(), &picked);

        let any_value = |random: &mut Random, fresh: &mut dyn FnMut(&mut Random) -> Value| {
            let known = !model.is_empty() && random.below(2) == 0;
            if known {
                random.pick(model)
            } else {
                fresh(random)
            }
        };
        for round in 0..6 {
            let conditions: Vec<_> = (0..1 + round % 2)
                .map(|_| (random.pick(&COMPARATORS), any_value(random, &mut fresh)))
                .collect();
            let passes = |at: &ColumnPosition| {
                let value = &model[at.0 as usize];
                conditions.iter().all(|condition| holds(condition, value))
            };
            for (positions, list) in [(None, &all), (Some(&some[..]), &some)] {
                let expected: Vec<_> = list.iter().copied().filter(passes).collect();
                let found = block_on(column.scan(&conditions, positions)).unwrap();
                prop_assert_eq!(found, expected);
            }
            let keys: Vec<_> = (0..round * round)
                .map(|_| any_value(random, &mut fresh))
                .collect();
            let passes = |at: &ColumnPosition| keys.contains(&model[at.0 as usize]);
            for (positions, list) in [(None, &all), (Some(&some[..]), &some)] {
                let expected: Vec<_> = list.iter().copied().filter(passes).collect();
                let found = block_on(column.join_probe(&keys, positions)).unwrap();
                prop_assert_eq!(found, expected);
            }
        }
    }
    Ok(())
}

/// The check on every topology.
fn check_all(
    create: impl Fn(&Engine) -> Column,
    fresh: impl FnMut(&mut Random) -> Value + Clone,
    sizes: [usize; 2],
    seed: u64,
) -> Result<(), TestCaseError> {
    for engine in &*ENGINES {
        let column = create(engine);
        check(&column, fresh.clone(), sizes, seed)?;
        block_on(engine.drop(column.object())).unwrap();
    }
    Ok(())
}

fn string(random: &mut Random) -> String {
    let number = random.below(2000);
    match random.below(6) {
        0 => String::new(),
        1 => format!("{number}"),
        2 => format!("{number:012}"),
        3 => format!("{number:013}"),
        4 => format!("größer als zwölf Bytes: {number} 🦀"),
        _ => "é".repeat(number as usize % 40),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn of_integers(seed in any::<u64>(), chunks in 0usize..3, rest in 0usize..300, bits in 1u32..64) {
        let fresh = move |random: &mut Random| {
            let extreme = random.below(500) == 0;
            let value = (random.next() >> (64 - bits)) as i64 - 1;
            let value = if extreme { random.pick(&[i64::MIN, i64::MAX]) } else { value };
            Value::Integer(value.into())
        };
        let create = |engine: &Engine| Column::of_integers(engine, "c").unwrap();
        check_all(create, fresh, [chunks * 40_000, rest], seed)?;
    }

    #[test]
    fn of_strings(seed in any::<u64>(), chunks in 0usize..2, rest in 0usize..300) {
        let fresh = |random: &mut Random| Value::String(string(random));
        let create = |engine: &Engine| Column::of_strings(engine, "c").unwrap();
        check_all(create, fresh, [chunks * 70_000, rest], seed)?;
    }
}

#[test]
fn misuse_is_rejected_and_changes_nothing() {
    let integer = |value: i64| Value::Integer(value.into());
    let text = || Value::String("x".to_owned());
    let column = Column::of_integers(&ENGINES[1], "c").unwrap();
    block_on(column.append(integer(5))).unwrap();
    let beyond = ColumnPosition(1);
    let error = block_on(column.set(beyond, integer(6))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "position 1 is beyond the column's 1 values"
    );
    assert!(matches!(
        block_on(column.get(beyond)),
        Err(ColumnError::Position { size: 1, .. })
    ));
    for wrong in [text(), Value::Null, Value::Integer(1 << 63)] {
        assert!(matches!(
            block_on(column.append(wrong)),
            Err(ColumnError::Type { .. })
        ));
    }
    assert!(matches!(
        block_on(column.restore(&[integer(1), text()])),
        Err(ColumnError::Type { .. })
    ));
    let now = column.snapshot();
    assert!(matches!(
        block_on(now.scan(&[], None)),
        Err(ColumnError::Conditions(0))
    ));
    let sum = (BinaryOp::Add, integer(1));
    assert!(matches!(
        block_on(now.scan(&[sum], None)),
        Err(ColumnError::Fragment(_))
    ));
    assert!(block_on(now.join_probe(&[text()], None)).is_err());
    assert!(block_on(now.join_probe(&[integer(5)], Some(&[beyond]))).is_err());
    assert_eq!(block_on(now.materialize(None)).unwrap(), [integer(5)]);
    block_on(ENGINES[1].drop(column.object())).unwrap();
}

/// Values that several clients append at once all get positions, each one of its own.
#[test]
fn clients_that_append_do_not_meet() {
    let column = Column::of_integers(&ENGINES[2], "c").unwrap();
    std::thread::scope(|scope| {
        for client in 0..4 {
            let column = column.clone();
            scope.spawn(move || {
                for _ in 0..10 {
                    let position = block_on(column.append(Value::Integer(client))).unwrap();
                    assert_eq!(
                        block_on(column.get(position)).unwrap(),
                        Value::Integer(client)
                    );
                }
            });
        }
    });
    let now = column.snapshot();
    let values = block_on(now.materialize(None)).unwrap();
    assert_eq!(block_on(now.size()).unwrap(), 40);
    for client in 0..4 {
        let own = values
            .iter()
            .filter(|value| **value == Value::Integer(client));
        assert_eq!(own.count(), 10);
    }
    block_on(ENGINES[2].drop(column.object())).unwrap();
}
