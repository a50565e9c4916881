//! IN lists over computed values: one hash set, whatever the type.

use super::literal::literal;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, BinaryViewArray, BooleanArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use eris_column::wide_of_uuids;
use eris_fragment::{FragmentError, Scalar, Type};
use hashbrown::HashSet;

/// The members of a list.
#[derive(Debug)]
pub(crate) struct Members {
    numbers: HashSet<i128>,
    /// Of strings and blobs.
    bytes: HashSet<Box<[u8]>>,
    /// NULL is among them: what is not in the list is neither in nor not in it.
    unknown: bool,
}

impl Members {
    pub(super) fn new(list: &[Scalar], data_type: &Type) -> Result<Self, FragmentError> {
        let mut members = Members {
            numbers: HashSet::new(),
            bytes: HashSet::new(),
            unknown: false,
        };
        for scalar in list {
            if scalar.data_type != *data_type {
                return Err(FragmentError::Malformed {
                    reason: "an IN list with constants of another type than its operand",
                });
            }
            if scalar.is_null() {
                members.unknown = true;
                continue;
            }
            let array = literal(scalar)?;
            match Bytes::of(&array) {
                Some(bytes) => members.bytes.extend([bytes.value(0).into()]),
                None => members.numbers.extend(numbers(&array)),
            }
        }
        Ok(members)
    }

    /// For each value whether it is a member, in three-valued logic.
    pub(super) fn contains(&self, array: &dyn Array, negated: bool) -> BooleanArray {
        let found: BooleanBuffer = match Bytes::of(array) {
            Some(bytes) => BooleanBuffer::collect_bool(array.len(), |row| {
                !array.is_null(row) && self.bytes.contains(bytes.value(row))
            }),
            None => numbers(array)
                .map(|number| self.numbers.contains(&number))
                .collect(),
        };
        let mut nulls = array.logical_nulls();
        if self.unknown {
            nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(found.clone())));
        }
        BooleanArray::new(if negated { !&found } else { found }, nulls)
    }
}

/// Strings or blobs.
enum Bytes<'a> {
    Strings(&'a StringViewArray),
    Blobs(&'a BinaryViewArray),
}

impl<'a> Bytes<'a> {
    fn of(array: &'a dyn Array) -> Option<Self> {
        let strings = array.as_string_view_opt().map(Bytes::Strings);
        strings.or_else(|| array.as_binary_view_opt().map(Bytes::Blobs))
    }

    fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Bytes::Strings(strings) => strings.value(row).as_bytes(),
            Bytes::Blobs(blobs) => blobs.value(row),
        }
    }
}

/// Every value as a number that is equal for equal values and only for them. NULLs give any number.
fn numbers(array: &dyn Array) -> Box<dyn Iterator<Item = i128> + '_> {
    // Adding +0.0 makes both zeros one.
    match array.data_type() {
        DataType::Boolean => Box::new(array.as_boolean().values().iter().map(i128::from)),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            Box::new(values.iter().map(|&value| (value + 0.0).to_bits().into()))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            Box::new(values.iter().map(|&value| (value + 0.0).to_bits().into()))
        }
        _ => integers(array),
    }
}

fn integers(array: &dyn Array) -> Box<dyn Iterator<Item = i128> + '_> {
    macro_rules! of {
        ($kind:ty) => {
            Box::new(
                array
                    .as_primitive::<$kind>()
                    .values()
                    .iter()
                    .map(|&value| value as i128),
            )
        };
    }
    use arrow_schema::TimeUnit::*;
    match array.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Date32 => of!(Date32Type),
        DataType::Time64(Microsecond) => of!(Time64MicrosecondType),
        DataType::Time64(Nanosecond) => of!(Time64NanosecondType),
        DataType::Timestamp(Second, _) => of!(TimestampSecondType),
        DataType::Timestamp(Millisecond, _) => of!(TimestampMillisecondType),
        DataType::Timestamp(Microsecond, _) => of!(TimestampMicrosecondType),
        DataType::Timestamp(Nanosecond, _) => of!(TimestampNanosecondType),
        DataType::Decimal128(..) => of!(Decimal128Type),
        DataType::FixedSizeBinary(_) => Box::new(wide_of_uuids(array.as_fixed_size_binary())),
        other => unreachable!("{other} cannot be a column's type"),
    }
}
