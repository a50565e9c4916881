//! `nextval('sequence')`, `currval('sequence')`, `setval('sequence', number [, is_given])`.

use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is done with a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Next,
    Current,
    Set,
}

/// Whose sequences are meant.
#[derive(Clone)]
enum Sequences {
    /// Of a database without any.
    None,
    Of(StatementContext),
    /// The same, but no number is taken: a DEFAULT is looked at.
    Untouched(StatementContext),
}

/// The functions of a database without sequences.
pub(crate) fn without() -> impl Iterator<Item = ScalarUDF> {
    functions(Sequences::None)
}

/// The functions of a statement.
pub(super) fn of(context: &StatementContext) -> impl Iterator<Item = ScalarUDF> {
    functions(Sequences::Of(context.clone()))
}

/// The functions of a statement, which take no numbers.
pub(crate) fn untouched(context: &StatementContext) -> impl Iterator<Item = ScalarUDF> {
    functions(Sequences::Untouched(context.clone()))
}

fn functions(of: Sequences) -> impl Iterator<Item = ScalarUDF> {
    [Call::Next, Call::Current, Call::Set]
        .into_iter()
        .map(move |call| {
            ScalarUDF::from(SequenceFunction {
                call,
                of: of.clone(),
                signature: call.signature(),
            })
        })
}

/// Whether a function is one of these: what it says is of one session at one time.
pub(crate) fn is_of_sequence(name: &str) -> bool {
    matches!(name, "nextval" | "currval" | "setval")
}

impl Call {
    fn signature(self) -> Signature {
        let number = [DataType::Utf8, DataType::Int64];
        match self {
            Call::Next | Call::Current => {
                Signature::exact(vec![DataType::Utf8], Volatility::Volatile)
            }
            Call::Set => Signature::one_of(
                vec![
                    TypeSignature::Exact(number.to_vec()),
                    TypeSignature::Exact([&number[..], &[DataType::Boolean]].concat()),
                ],
                Volatility::Volatile,
            ),
        }
    }
}

struct SequenceFunction {
    call: Call,
    of: Sequences,
    signature: Signature,
}

impl SequenceFunction {
    /// Numbers for as many rows.
    fn numbers(
        &self,
        name: &str,
        rows: usize,
        set: impl Fn(usize) -> Option<(i64, bool)>,
    ) -> std::result::Result<Vec<Option<i64>>, SqlError> {
        let (context, untouched) = match &self.of {
            Sequences::None => {
                return Err(SqlError::invalid(
                    Mistake::UndefinedTable,
                    format!("sequence \"{name}\" does not exist"),
                ));
            }
            Sequences::Of(context) => (context, false),
            Sequences::Untouched(context) => (context, true),
        };
        let sequence = context.sequence_of(name)?;
        if untouched {
            return Ok(vec![Some(sequence.course.start); rows]);
        }
        let session = &context.session;
        let log = context.catalog.log().map(|log| &**log);
        match self.call {
            Call::Next => {
                let taken = sequence.take(rows, log)?;
                context.took_numbers();
                if let Some(last) = taken.last() {
                    session.took(&sequence, *last);
                }
                Ok(taken.into_iter().map(Some).collect())
            }
            Call::Current => match session.last_taken(&sequence) {
                Some(last) => Ok(vec![Some(last); rows]),
                None => {
                    let message = format!(
                        "currval: this session has not taken a number of sequence \"{}\" yet",
                        sequence.name
                    );
                    Err(SqlError::invalid(Mistake::NotReady, message)
                        .with_hint(Some("nextval takes one")))
                }
            },
            Call::Set => (0..rows)
                .map(|row| {
                    let Some((number, is_given)) = set(row) else {
                        return Ok(None);
                    };
                    sequence.set(number, is_given, log)?;
                    context.took_numbers();
                    if is_given {
                        session.took(&sequence, number);
                    }
                    Ok(Some(number))
                })
                .collect(),
        }
    }
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        match self.call {
            Call::Next => "nextval",
            Call::Current => "currval",
            Call::Set => "setval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let more: Vec<ArrayRef> = (args.args[1..].iter())
            .map(|arg| arg.clone().into_array(rows))
            .collect::<Result<_>>()?;
        let set = |row: usize| {
            let number = more.first()?.as_primitive::<Int64Type>();
            let is_given = match more.get(1) {
                None => true,
                Some(flags) if flags.is_null(row) => return None,
                Some(flags) => flags.as_boolean().value(row),
            };
            number.is_valid(row).then(|| (number.value(row), is_given))
        };
        let numbers = match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::Utf8(None)) => Ok(vec![None; rows]),
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(name))) => self.numbers(name, rows, set),
            ColumnarValue::Scalar(_) => Err(SqlError::not_supported("this name of a sequence")),
            ColumnarValue::Array(names) => {
                let names = names.as_string::<i32>();
                let each = names.iter().enumerate().map(|(row, name)| match name {
                    None => Ok(None),
                    Some(name) => {
                        let number = self.numbers(name, 1, |_| set(row))?;
                        Ok(number.into_iter().next().flatten())
                    }
                });
                each.collect()
            }
        };
        let numbers: Int64Array = numbers.map_err(SqlError::into_datafusion)?.into();
        Ok(ColumnarValue::Array(Arc::new(numbers)))
    }
}

impl fmt::Debug for SequenceFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.name())
    }
}

/// Two are the same if they do the same for one session.
impl PartialEq for SequenceFunction {
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call && self.of.session() == other.of.session()
    }
}

impl Eq for SequenceFunction {}

impl Hash for SequenceFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.call, self.of.session()).hash(state);
    }
}

impl Sequences {
    fn session(&self) -> Option<(u64, bool)> {
        match self {
            Sequences::None => None,
            Sequences::Of(context) => Some((context.session.id, false)),
            Sequences::Untouched(context) => Some((context.session.id, true)),
        }
    }
}
