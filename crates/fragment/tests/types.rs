//! Types: their mapping to Arrow, the rules of arithmetic against Arrow's kernels, and how expressions are spelt.

use arrow_arith::numeric::{add, div, mul, rem, sub};
use arrow_array::{ArrayRef, Datum, Decimal128Array, new_null_array};
use arrow_schema::{ArrowError, DataType};
use eris_fragment::*;
use proptest::prelude::*;
use std::sync::Arc;

const OPS: [BinaryOp; 5] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Modulo,
];

fn by_arrow(op: BinaryOp, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    match op {
        BinaryOp::Add => add(left, right),
        BinaryOp::Subtract => sub(left, right),
        BinaryOp::Multiply => mul(left, right),
        BinaryOp::Divide => div(left, right),
        _ => rem(left, right),
    }
}

fn of(op: BinaryOp, left: Type, right: Type) -> Result<Type, FragmentError> {
    let expr = Expr::Binary {
        op,
        left: Box::new(Expr::Column(0)),
        right: Box::new(Expr::Column(1)),
    };
    expr.data_type(&[left, right])
}

fn decimal(precision: u8, scale: i8) -> Type {
    Type::Decimal { precision, scale }
}

proptest! {
    #[test]
    fn decimals_have_the_types_of_the_kernels(
        p1 in 1..=38u8, s1 in 0..=38i8, p2 in 1..=38u8, s2 in 0..=38i8,
    ) {
        let (s1, s2) = (s1.min(p1 as i8), s2.min(p2 as i8));
        let array = |precision, scale| {
            let one = Decimal128Array::from(vec![None::<i128>]);
            Arc::new(one.with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
        };
        for op in OPS {
            // Arrow rejects scales beyond 38; there is no type to agree upon.
            if let Ok(result) = by_arrow(op, &array(p1, s1), &array(p2, s2)) {
                let ours = of(op, decimal(p1, s1), decimal(p2, s2)).unwrap();
                prop_assert_eq!(&DataType::from(&ours), result.data_type(), "{:?}", op);
            }
        }
    }
}

#[test]
fn numbers_keep_their_type() {
    use Type::*;
    for data_type in [
        Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64,
    ] {
        let null = new_null_array(&(&data_type).into(), 1);
        for op in OPS {
            let result = by_arrow(op, &null, &null).unwrap();
            let ours = of(op, data_type.clone(), data_type.clone()).unwrap();
            assert_eq!(&DataType::from(&ours), result.data_type());
        }
        assert!(matches!(
            of(BinaryOp::Add, data_type, Type::String),
            Err(FragmentError::Malformed { .. })
        ));
    }
}

#[test]
fn every_type_is_one_of_arrow_and_back() {
    use TimeUnit::*;
    let zone = Some("Europe/Berlin".to_owned());
    let timestamps = [Second, Millisecond, Microsecond, Nanosecond].map(|unit| Type::Timestamp {
        unit,
        zone: zone.clone(),
    });
    let types = [
        Type::Boolean,
        Type::String,
        Type::Date,
        decimal(38, -3),
        Type::UInt64,
    ];
    for data_type in types.into_iter().chain(timestamps) {
        assert_eq!(Type::try_from(&DataType::from(&data_type)), Ok(data_type));
    }
    for text in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        assert_eq!(Type::try_from(&text), Ok(Type::String));
    }
    assert_eq!(
        Type::try_from(&DataType::Null).unwrap_err().to_string(),
        "type Null is not supported"
    );
}

#[test]
fn types_of_other_expressions() {
    let inputs = [Type::Date, Type::Boolean];
    let case = |branches, otherwise| Expr::Case {
        branches,
        otherwise,
    };
    let date = case(vec![(Expr::Column(1), Expr::Column(0))], None);
    assert_eq!(date.data_type(&inputs).unwrap(), Type::Date);
    assert_eq!(
        Expr::IsNull(Box::new(date)).data_type(&inputs).unwrap(),
        Type::Boolean
    );
    assert!(case(vec![], None).data_type(&inputs).is_err());
    assert!(Expr::Column(2).data_type(&inputs).is_err());
}

#[test]
fn expressions_are_spelt_as_in_sql() {
    let literal = |data_type, value| Expr::Literal(Scalar { data_type, value });
    let price = literal(decimal(10, 2), Value::Integer(-1_205));
    let expr = Expr::Binary {
        op: BinaryOp::And,
        left: Box::new(Expr::Like {
            operand: Box::new(Expr::Column(0)),
            pattern: "O'%".to_owned(),
            negated: true,
            case_insensitive: true,
        }),
        right: Box::new(Expr::Binary {
            op: BinaryOp::LtEq,
            left: Box::new(Expr::Cast {
                operand: Box::new(Expr::Column(1)),
                to: decimal(10, 2),
            }),
            right: Box::new(price),
        }),
    };
    assert_eq!(
        expr.to_string(),
        "(#0 NOT ILIKE 'O''%' AND (CAST(#1 AS DECIMAL(10, 2)) <= -12.05))"
    );
    let names = ["name", "balance"];
    let case = Expr::Case {
        branches: vec![(Expr::IsNotNull(Box::new(Expr::Column(1))), Expr::Column(0))],
        otherwise: Some(Box::new(literal(
            Type::String,
            Value::String("it's".to_owned()),
        ))),
    };
    assert_eq!(
        case.named(&|column| names[column].to_owned()).to_string(),
        "CASE WHEN balance IS NOT NULL THEN name ELSE 'it''s' END"
    );
    let list = Expr::InList {
        operand: Box::new(Expr::Negate(Box::new(Expr::Column(1)))),
        list: vec![
            Scalar::null(Type::Int32),
            Scalar {
                data_type: Type::Float64,
                value: Value::Float(1.0),
            },
        ],
        negated: false,
    };
    assert_eq!(list.to_string(), "-#1 IN (NULL, 1.0)");
    assert_eq!(scale_five(7), "0.00007");
}

fn scale_five(value: i128) -> String {
    Scalar {
        data_type: decimal(10, 5),
        value: Value::Integer(value),
    }
    .to_string()
}

#[test]
fn key_sets_know_their_size() {
    let range = |low, high| KeySet::Range { low, high }.len();
    assert_eq!((range(1, 3), range(3, 1)), (3, 0));
    assert_eq!(range(i64::MIN, i64::MAX), u64::MAX);
    let bitmap = KeySet::Bitmap {
        first: 5,
        words: vec![0b101, 1 << 63],
    };
    assert_eq!(bitmap.len(), 3);
    assert!(KeySet::Strings(vec![]).is_empty());
}
