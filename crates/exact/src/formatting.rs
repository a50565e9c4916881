//! `printf('%05d', n)` and `format('{:05d}', n)`: values in a text.
//!
//! ```text
//! printf('%-5s|%.2f', 'ab', 1.5)     'ab   |1.50'      as in C
//! format('{1} {0:,}', 1000, 'a')     'a 1,000'         as in the library fmt
//! ```
//!
//! Both become pieces: a text, or a value and how it is shown ([`spec`]).
//!
//! **Adds** what DataFusion does not have.

mod spec;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use spec::{Piece, Shown};
use std::sync::Arc;

/// Which of the two languages a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    Printf,
    Format,
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Formatting {
    language: Language,
    signature: Signature,
}

impl Formatting {
    pub fn new(language: Language) -> Self {
        Formatting {
            language,
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }

    fn wrong(&self, what: &str) -> DataFusionError {
        exec_datafusion_err!("{}: {what}", self.name())
    }
}

impl ScalarUDFImpl for Formatting {
    fn name(&self) -> &str {
        match self.language {
            Language::Printf => "printf",
            Language::Format => "format",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns: Vec<ArrayRef> = args
            .args
            .iter()
            .map(|arg| arg.to_array(args.number_rows))
            .collect::<Result<_>>()?;
        let [pattern, values @ ..] = &columns[..] else {
            return Err(self.wrong("a text comes first"));
        };
        let pattern = cast(pattern, &DataType::Utf8)?;
        let pattern = pattern.as_string::<i32>();
        let values: Vec<Values> = values.iter().map(Values::of).collect::<Result<_>>()?;
        let mut built = StringBuilder::new();
        let mut known: Option<(&str, Vec<Piece>)> = None;
        for row in 0..args.number_rows {
            if pattern.is_null(row) || values.iter().any(|values| values.is_null(row)) {
                built.append_null();
                continue;
            }
            let text = pattern.value(row);
            if known.as_ref().is_none_or(|(known, _)| *known != text) {
                let pieces = match self.language {
                    Language::Printf => spec::of_printf(text),
                    Language::Format => spec::of_format(text),
                };
                known = Some((text, pieces.map_err(|wrong| self.wrong(&wrong))?));
            }
            let pieces = known.iter().flat_map(|(_, pieces)| pieces);
            let mut shown = String::new();
            for piece in pieces {
                match piece {
                    Piece::Text(text) => shown.push_str(text),
                    Piece::Value(place, spec) => {
                        let Some(values) = values.get(*place) else {
                            let wrong = format!("'{text}' needs more values than are given");
                            return Err(self.wrong(&wrong));
                        };
                        let result = spec.show(values.value(row), &mut shown);
                        result.map_err(|wrong| self.wrong(&wrong))?;
                    }
                }
            }
            built.append_value(shown);
        }
        Ok(ColumnarValue::Array(Arc::new(built.finish())))
    }
}

/// The values of an argument.
enum Values {
    Integers(ArrayRef),
    Floats(ArrayRef),
    Strings(ArrayRef),
}

impl Values {
    fn of(column: &ArrayRef) -> Result<Self> {
        use DataType::{
            Decimal128, Decimal256, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8,
            UInt16, UInt32,
        };
        Ok(match column.data_type() {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => {
                Values::Integers(cast(column, &Int64)?)
            }
            Float16 | Float32 | Float64 | Decimal128(..) | Decimal256(..) => {
                Values::Floats(cast(column, &Float64)?)
            }
            _ => Values::Strings(cast(column, &DataType::Utf8)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        let (Values::Integers(column) | Values::Floats(column) | Values::Strings(column)) = self;
        column.is_null(row)
    }

    fn value(&self, row: usize) -> Shown<'_> {
        match self {
            Values::Integers(column) => {
                Shown::Integer(column.as_primitive::<Int64Type>().value(row))
            }
            Values::Floats(column) => Shown::Float(column.as_primitive::<Float64Type>().value(row)),
            Values::Strings(column) => Shown::String(column.as_string::<i32>().value(row)),
        }
    }
}
