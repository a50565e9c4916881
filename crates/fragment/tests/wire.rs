//! The wire form: what is sent arrives, and damage is noticed.

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringViewArray};
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

fn data_type() -> impl Strategy<Value = Type> {
    let unit = prop_oneof![
        Just(TimeUnit::Second),
        Just(TimeUnit::Millisecond),
        Just(TimeUnit::Microsecond),
        Just(TimeUnit::Nanosecond),
    ];
    prop_oneof![
        prop::sample::select(vec![
            Type::Boolean,
            Type::Int8,
            Type::Int16,
            Type::Int32,
            Type::Int64,
            Type::UInt8,
            Type::UInt16,
            Type::UInt32,
            Type::UInt64,
            Type::Float32,
            Type::Float64,
            Type::String,
            Type::Date,
        ]),
        (1..=38u8, -5..=38i8).prop_map(|(precision, scale)| Type::Decimal { precision, scale }),
        (unit, option::of("[A-Z][a-z]{0,3}/[A-Z][a-z]{0,5}"))
            .prop_map(|(unit, zone)| Type::Timestamp { unit, zone }),
    ]
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i128>().prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        ".{0,20}".prop_map(Value::String),
    ];
    (data_type(), value).prop_map(|(data_type, value)| Scalar { data_type, value })
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::*;
    prop::sample::select(vec![
        And, Or, Eq, NotEq, Lt, LtEq, Gt, GtEq, Add, Subtract, Multiply, Divide, Modulo,
    ])
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        any::<usize>().prop_map(Expr::Column),
        scalar().prop_map(Expr::Literal)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            (binary_op(), boxed.clone(), boxed.clone())
                .prop_map(|(op, left, right)| Expr::Binary { op, left, right }),
            boxed.clone().prop_map(Expr::Not),
            boxed.clone().prop_map(Expr::Negate),
            boxed.clone().prop_map(Expr::IsNull),
            boxed.clone().prop_map(Expr::IsNotNull),
            (boxed.clone(), vec(scalar(), 0..4), any::<bool>()).prop_map(
                |(operand, list, negated)| Expr::InList {
                    operand,
                    list,
                    negated
                }
            ),
            (boxed.clone(), ".{0,8}", any::<bool>(), any::<bool>()).prop_map(
                |(operand, pattern, negated, case_insensitive)| Expr::Like {
                    operand,
                    pattern,
                    negated,
                    case_insensitive,
                }
            ),
            (vec((inner.clone(), inner), 0..3), option::of(boxed.clone())).prop_map(
                |(branches, otherwise)| Expr::Case {
                    branches,
                    otherwise
                }
            ),
            (boxed, data_type()).prop_map(|(operand, to)| Expr::Cast { operand, to }),
        ]
    })
}

fn keys() -> impl Strategy<Value = KeySet> {
    prop_oneof![
        any::<(i64, i64)>().prop_map(|(low, high)| KeySet::Range { low, high }),
        (any::<i64>(), vec(any::<u64>(), 0..5))
            .prop_map(|(first, words)| KeySet::Bitmap { first, words }),
        vec(any::<i64>(), 0..5).prop_map(KeySet::Integers),
        vec(".{0,8}", 0..5).prop_map(KeySet::Strings),
    ]
}

fn aggregate() -> impl Strategy<Value = Aggregate> {
    use AggregateFunction::*;
    let function = prop::sample::select(vec![Sum, Count, Min, Max]);
    (
        function,
        option::of(expr()),
        option::of(expr()),
        data_type(),
    )
        .prop_map(|(function, input, filter, state)| Aggregate {
            function,
            input,
            filter,
            state,
        })
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        (vec(expr(), 0..3), option::of(any::<u64>()))
            .prop_map(|(columns, limit)| Output::Rows { columns, limit }),
        (vec(expr(), 0..3), vec(aggregate(), 0..3))
            .prop_map(|(keys, aggregates)| Output::Groups { keys, aggregates }),
    ]
}

fn lookup() -> impl Strategy<Value = Lookup> {
    let rows = vec((any::<i32>(), option::of(".{0,20}"), any::<f64>()), 0..5);
    (any::<usize>(), any::<bool>(), rows).prop_map(|(column, outer, rows)| {
        let keys: Int32Array = rows.iter().map(|(key, _, _)| Some(*key)).collect();
        let texts: StringViewArray = rows.iter().map(|(_, text, _)| text.as_deref()).collect();
        let floats: Float64Array = rows.iter().map(|(_, _, float)| Some(*float)).collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("k", Arc::new(keys)),
            ("t", Arc::new(texts)),
            ("f", Arc::new(floats)),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let lookup = Lookup::new(column, rows);
        if outer { lookup.into_outer() } else { lookup }
    })
}

fn fragment() -> impl Strategy<Value = Fragment> {
    let probe = (any::<usize>(), keys()).prop_map(|(column, keys)| Probe { column, keys });
    (
        any::<(u32, u64)>(),
        vec(any::<u32>(), 0..4),
        vec(expr(), 0..3),
        vec(probe, 0..3),
        vec(lookup(), 0..3),
        output(),
    )
        .prop_map(
            |((object, snapshot), columns, filter, probes, lookups, output)| Fragment {
                object: ObjectId(object),
                snapshot: Timestamp(snapshot),
                order: None,
                columns: columns.into_iter().map(ColumnId).collect(),
                filter,
                probes,
                lookups,
                output,
                options: ScanOptions {
                    strategy: NumaStrategy::Pull,
                    sharing: snapshot % 2 == 0,
                    statement: snapshot.rotate_left(17),
                },
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_sent_arrives(fragment in fragment()) {
        let bytes = fragment.to_bytes();
        prop_assert_eq!(Fragment::from_bytes(&bytes), Ok(fragment));
    }

    /// No prefix is a fragment, and no flipped byte makes the reader panic.
    #[test]
    fn damage_is_an_error_not_a_panic(fragment in fragment(), at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let mut bytes = fragment.to_bytes();
        let cut = at.index(bytes.len());
        prop_assert!(Fragment::from_bytes(&bytes[..cut]).is_err());
        bytes[cut] ^= flip;
        prop_assert_ne!(Fragment::from_bytes(&bytes), Ok(fragment));
    }
}

#[test]
fn another_version_is_named() {
    let fragment = Fragment {
        object: ObjectId(1),
        snapshot: Timestamp(1),
        order: None,
        columns: vec![],
        filter: vec![],
        probes: vec![],
        lookups: vec![],
        output: Output::Rows {
            columns: vec![],
            limit: None,
        },
        options: ScanOptions::default(),
    };
    let mut bytes = fragment.to_bytes();
    assert_eq!(&bytes[..3], b"EF\x05");
    bytes[2] = 9;
    let error = Fragment::from_bytes(&bytes).unwrap_err();
    assert_eq!(error, WireError::Version(9));
    assert_eq!(
        error.to_string(),
        "fragment of wire version 9, this build reads version 5"
    );
    assert_eq!(
        Fragment::from_bytes(b"GIF89a"),
        Err(WireError::NotAFragment)
    );
    assert_eq!(Fragment::from_bytes(b"EF"), Err(WireError::NotAFragment));
}

#[test]
fn bytes_behind_a_fragment_are_damage() {
    let fragment = Fragment {
        object: ObjectId(1),
        snapshot: Timestamp(1),
        order: None,
        columns: vec![ColumnId(0)],
        filter: vec![],
        probes: vec![],
        lookups: vec![],
        output: Output::Groups {
            keys: vec![],
            aggregates: vec![],
        },
        options: ScanOptions::default(),
    };
    let mut bytes = fragment.to_bytes();
    bytes.push(0);
    assert!(matches!(
        Fragment::from_bytes(&bytes),
        Err(WireError::Damaged(_))
    ));
}
