//! The column interface of Listing 1 against a plain vector.

mod common;

use common::*;
use eris_column::{
    CHUNK_ROWS, Column, ColumnError, ColumnPosition, ColumnValue, Comparator, Condition,
};
use proptest::prelude::*;

const COMPARATORS: [Comparator; 6] = [
    Comparator::Less,
    Comparator::LessOrEqual,
    Comparator::Equal,
    Comparator::NotEqual,
    Comparator::GreaterOrEqual,
    Comparator::Greater,
];

fn holds(condition: &Condition, value: &ColumnValue) -> bool {
    match (value, &condition.value) {
        (ColumnValue::Integer(a), ColumnValue::Integer(b)) => condition.comparator.holds(a, b),
        (ColumnValue::String(a), ColumnValue::String(b)) => condition.comparator.holds(a, b),
        other => panic!("{other:?}"),
    }
}

/// Changes, scans, probes and snapshots, in random order.
fn check(
    mut column: Column,
    mut fresh: impl FnMut(&mut Random) -> ColumnValue,
    sizes: [usize; 2],
    seed: u64,
) -> Result<(), TestCaseError> {
    let random = &mut Random(seed);
    let mut model: Vec<ColumnValue> = (0..sizes[0]).map(|_| fresh(random)).collect();
    column.restore(model.clone()).unwrap();
    for _ in 0..sizes[1] {
        let value = fresh(random);
        let position = column.append(value.clone()).unwrap();
        prop_assert_eq!(position, ColumnPosition(model.len() as u64));
        model.push(value);
    }
    let snapshot = (column.clone(), model.clone());
    for _ in 0..20 {
        if model.is_empty() {
            break;
        }
        let (at, value) = (random.below(model.len() as u64), fresh(random));
        column.set(ColumnPosition(at), value.clone()).unwrap();
        model[at as usize] = value;
    }
    for (column, model) in [(&column, &model), (&snapshot.0, &snapshot.1)] {
        prop_assert_eq!(column.size(), model.len() as u64);
        prop_assert_eq!(&column.materialize(None).unwrap(), model);
        let all: Vec<_> = (0..model.len() as u64).map(ColumnPosition).collect();
        let some: Vec<_> = (0..model.len().min(50))
            .map(|_| random.pick(&all))
            .collect();
        let picked: Vec<_> = some.iter().map(|at| model[at.0 as usize].clone()).collect();
        prop_assert_eq!(&column.materialize(Some(&some)).unwrap(), &picked);

        let any_value = |random: &mut Random, fresh: &mut dyn FnMut(&mut Random) -> ColumnValue| {
            let known = !model.is_empty() && random.below(2) == 0;
            if known {
                random.pick(model)
            } else {
                fresh(random)
            }
        };
        for round in 0..6 {
            let conditions: Vec<_> = (0..1 + round % 2)
                .map(|_| Condition {
                    comparator: random.pick(&COMPARATORS),
                    value: any_value(random, &mut fresh),
                })
                .collect();
            let passes = |at: &ColumnPosition| {
                conditions
                    .iter()
                    .all(|condition| holds(condition, &model[at.0 as usize]))
            };
            for (positions, list) in [(None, &all), (Some(&some[..]), &some)] {
                let expected: Vec<_> = list.iter().copied().filter(passes).collect();
                prop_assert_eq!(column.scan(&conditions, positions).unwrap(), expected);
            }
            let keys: Vec<_> = (0..round * round)
                .map(|_| any_value(random, &mut fresh))
                .collect();
            let passes = |at: &ColumnPosition| keys.contains(&model[at.0 as usize]);
            for (positions, list) in [(None, &all), (Some(&some[..]), &some)] {
                let expected: Vec<_> = list.iter().copied().filter(passes).collect();
                prop_assert_eq!(column.join_probe(&keys, positions).unwrap(), expected);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn of_integers(seed in any::<u64>(), chunks in 0usize..3, rest in 0usize..300, bits in 1u32..64) {
        let fresh = |random: &mut Random| {
            let extreme = random.below(500) == 0;
            let value = (random.next() >> (64 - bits)) as i64 - 1;
            ColumnValue::Integer(if extreme { random.pick(&[i64::MIN, i64::MAX]) } else { value })
        };
        let column = Column::of_integers(NODE.clone(), OBJECT);
        check(column, fresh, [chunks * CHUNK_ROWS, rest], seed)?;
    }

    #[test]
    fn of_text(seed in any::<u64>(), chunks in 0usize..2, rest in 0usize..300) {
        let fresh = |random: &mut Random| ColumnValue::String(string(random));
        let column = Column::of_text(NODE.clone(), OBJECT);
        check(column, fresh, [chunks * (CHUNK_ROWS - 7), rest], seed)?;
    }
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let mut column = Column::of_integers(NODE.clone(), OBJECT);
    column.append(5.into()).unwrap();
    let beyond = ColumnPosition(1);
    let error = column.set(beyond, 6.into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "position 1 is beyond the column's 1 values"
    );
    assert!(matches!(
        column.get(beyond),
        Err(ColumnError::Position { size: 1, .. })
    ));
    assert!(matches!(
        column.append("text".into()),
        Err(ColumnError::Kind { .. })
    ));
    assert!(matches!(
        column.restore([1.into(), "x".into()]),
        Err(ColumnError::Kind { .. })
    ));
    assert!(matches!(
        column.append(ColumnValue::Null),
        Err(ColumnError::Kind { .. })
    ));
    assert!(matches!(
        column.scan(&[], None),
        Err(ColumnError::Conditions(0))
    ));
    assert!(column.join_probe(&["x".into()], None).is_err());
    assert!(column.join_probe(&[5.into()], Some(&[beyond])).is_err());
    assert_eq!(column.materialize(None).unwrap(), [5.into()]);
}
