//! Functions whose results may be far larger than their arguments: `repeat('a', 2000000000)`.
//!
//! Before such a function is evaluated, it is known what its result takes. So much has to be free, or the statement
//! fails. It is not held any longer than the evaluation takes: what holds results accounts for them.
//!
//! **Stands for** DataFusion's functions, which allocate whatever they are asked for.

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use eris_numa::{Budget, Bytes};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Functions that reject a string which is longer than [`LONGEST`] by themselves.
const LIMITED: [&str; 3] = ["repeat", "lpad", "rpad"];
const LONGEST: u64 = i32::MAX as u64;

/// What takes no more is not worth a look.
const SMALL: u64 = 1 << 20;
/// From here on, the operators behind hold a value more than once for a moment: they copy batches into larger ones.
const LARGE: u64 = 64 << 20;
/// How often.
const COPIES: u64 = 3;
/// Bytes of an element of a list.
const ELEMENT: u64 = 8;

/// The bytes of a function's result in one row, from its arguments in that row.
type RowSize = fn(&[Argument], usize) -> u64;

/// The functions that grow, by their names.
pub(crate) const GROWING: [(&str, RowSize); 9] = [
    ("repeat", |args, row| {
        args[0].bytes(row).saturating_mul(args[1].count(row))
    }),
    ("lpad", |args, row| args[1].count(row)),
    ("rpad", |args, row| args[1].count(row)),
    ("concat", |args, row| sum(args, row)),
    ("concat_ws", |args, row| sum(args, row)),
    ("replace", |args, row| {
        let [text, from, to] = [0, 1, 2].map(|place| args[place].bytes(row));
        text.max((text / from.max(1)).saturating_mul(to))
    }),
    ("range", |args, row| {
        elements(args, row).saturating_mul(ELEMENT)
    }),
    ("generate_series", |args, row| {
        elements(args, row).saturating_mul(ELEMENT)
    }),
    ("array_repeat", |args, row| {
        let element = args[0].bytes(row).max(ELEMENT);
        element.saturating_mul(args[1].count(row))
    }),
];

/// Bytes of all arguments together.
pub(crate) fn sum(args: &[Argument], row: usize) -> u64 {
    args.iter()
        .fold(0, |sum, arg| sum.saturating_add(arg.bytes(row)))
}

/// Elements of `range(to)`, `range(from, to)` or `range(from, to, step)`.
fn elements(args: &[Argument], row: usize) -> u64 {
    let integer = |place: usize| args.get(place).and_then(|arg| arg.integer(row));
    let (from, to) = match args.len() {
        1 => (Some(0), integer(0)),
        _ => (integer(0), integer(1)),
    };
    let step = integer(2).unwrap_or(1).unsigned_abs().max(1);
    from.zip(to)
        .map_or(0, |(from, to)| from.abs_diff(to) / step)
}

/// An argument of which sizes are asked.
pub(crate) enum Argument {
    /// The same in all rows: its bytes, and its value if it is an integer.
    Constant(u64, Option<i64>),
    Integers(Int64Array),
    /// The bytes of each row, none of NULL.
    Strings(Vec<u64>),
    /// Of a type that does not matter.
    Other,
}

impl Argument {
    fn of(value: &ColumnarValue) -> Argument {
        match value {
            ColumnarValue::Scalar(value) => {
                let text = match value {
                    ScalarValue::Utf8(text)
                    | ScalarValue::LargeUtf8(text)
                    | ScalarValue::Utf8View(text) => text.as_deref(),
                    _ => None,
                };
                let integer = match value.data_type().is_integer() {
                    true => value.cast_to(&DataType::Int64).ok(),
                    false => None,
                };
                let integer = match integer {
                    Some(ScalarValue::Int64(value)) => value,
                    _ => None,
                };
                Argument::Constant(text.map_or(0, |text| text.len() as u64), integer)
            }
            ColumnarValue::Array(array) => match array.data_type() {
                DataType::Utf8 => strings(array.as_string::<i32>().iter()),
                DataType::LargeUtf8 => strings(array.as_string::<i64>().iter()),
                DataType::Utf8View => strings(array.as_string_view().iter()),
                integers if integers.is_integer() => match cast(array, &DataType::Int64) {
                    Ok(values) => Argument::Integers(values.as_primitive().clone()),
                    Err(_) => Argument::Other,
                },
                _ => Argument::Other,
            },
        }
    }

    fn bytes(&self, row: usize) -> u64 {
        match self {
            Argument::Constant(bytes, _) => *bytes,
            Argument::Strings(bytes) => bytes[row],
            Argument::Integers(_) | Argument::Other => ELEMENT,
        }
    }

    fn integer(&self, row: usize) -> Option<i64> {
        match self {
            Argument::Constant(_, value) => *value,
            Argument::Integers(values) => values.is_valid(row).then(|| values.value(row)),
            Argument::Strings(_) | Argument::Other => None,
        }
    }

    /// The integer, none below zero.
    fn count(&self, row: usize) -> u64 {
        self.integer(row)
            .map_or(0, |value| u64::try_from(value).unwrap_or(0))
    }
}

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Argument {
    Argument::Strings(
        values
            .map(|value| value.map_or(0, |text| text.len() as u64))
            .collect(),
    )
}

/// A function that is evaluated only where its result has room.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Arc<dyn ScalarUDFImpl>,
    row_size: RowSize,
    budget: Budget,
}

impl Bounded {
    /// The function with that bound.
    pub fn scalar(function: &ScalarUDF, row_size: RowSize, budget: &Budget) -> ScalarUDF {
        ScalarUDF::from(Bounded {
            inner: Arc::clone(function.inner()),
            row_size,
            budget: budget.clone(),
        })
    }

    /// What all rows of the result take; nothing if one of them is rejected anyway.
    fn size(&self, args: &ScalarFunctionArgs) -> u64 {
        let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let rows = match args.args.iter().all(is_constant) {
            true => 1,
            false => args.number_rows,
        };
        let arguments: Vec<_> = args.args.iter().map(Argument::of).collect();
        let is_limited = LIMITED.contains(&self.name());
        let mut all = 0_u64;
        for row in 0..rows {
            let size = (self.row_size)(&arguments, row);
            if is_limited && size > LONGEST {
                return 0;
            }
            all = all.saturating_add(size);
        }
        all
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = match self.size(&args) {
            bytes @ LARGE.. => COPIES.saturating_mul(bytes),
            bytes => bytes,
        };
        let room = match bytes {
            0..=SMALL => None,
            _ => Some(self.budget.try_reserve(bytes).map_err(|_| {
                let (limit, used) = (self.budget.limit(), self.budget.used());
                DataFusionError::ResourcesExhausted(format!(
                    "out of memory: {} needs {} at once; of {}, {} are in use",
                    self.name(),
                    Bytes(bytes),
                    Bytes(limit),
                    Bytes(used),
                ))
            })?),
        };
        let result = self.inner.invoke_with_args(args);
        drop(room);
        result
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
