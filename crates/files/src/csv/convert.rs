//! From fields to arrays, column by column.

use super::dialect::CsvDialect;
use super::tokenize::{CsvField, unescape};
use crate::column::FileColumn;
use crate::error::Misfit;
use crate::values::{self, ValueFormats};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, BooleanBufferBuilder, Decimal128Array,
    PrimitiveArray, StringViewBuilder,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use eris_exact::text::{has_own_text, nanoseconds, read_exactly};
use std::borrow::Cow;
use std::sync::Arc;

/// A value that does not fit: the row within the cells, and why.
#[derive(Debug)]
pub(crate) struct BadCell {
    pub row: usize,
    pub text: String,
    pub misfit: Misfit,
}

/// The fields of one column.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub dialect: &'a CsvDialect,
    pub formats: &'a ValueFormats,
    pub text: &'a str,
    /// Of all columns, record by record.
    pub fields: &'a [CsvField],
    pub width: usize,
    /// This column's place among them.
    pub place: usize,
    /// Whether a number with a fraction is no BIGINT.
    pub exact: bool,
}

impl<'a> Cells<'a> {
    fn len(&self) -> usize {
        self.fields.len() / self.width
    }

    fn fields(self) -> impl Iterator<Item = CsvField> + 'a {
        let place = self.place.min(self.fields.len());
        self.fields[place..].iter().step_by(self.width).copied()
    }

    /// The text of a field; `None` is NULL. Within quotes nothing is NULL, unless the column cannot hold texts.
    pub fn value(&self, field: CsvField, of_string: bool) -> Option<Cow<'a, str>> {
        let raw = &self.text[field.range()];
        if (!field.is_quoted() || !of_string) && self.formats.nulls.iter().any(|null| null == raw) {
            return None;
        }
        Some(if field.is_escaped() {
            Cow::Owned(unescape(self.dialect, raw))
        } else {
            Cow::Borrowed(raw)
        })
    }

    /// The column's values.
    ///
    /// # Errors
    /// The first one that does not fit.
    pub fn convert(&self, column: &FileColumn) -> Result<ArrayRef, BadCell> {
        let data_type = column.field.data_type();
        let date = |text: &str| self.formats.date(text);
        Ok(match data_type {
            DataType::Boolean => self.booleans(column)?,
            DataType::Int8 => self.primitive::<Int8Type>(column, values::integer)?,
            DataType::Int16 => self.primitive::<Int16Type>(column, values::integer)?,
            DataType::Int32 => self.primitive::<Int32Type>(column, values::integer)?,
            DataType::Int64 if self.exact => self.primitive::<Int64Type>(column, values::whole)?,
            DataType::Int64 => self.primitive::<Int64Type>(column, values::integer)?,
            DataType::UInt8 => self.primitive::<UInt8Type>(column, values::integer)?,
            DataType::UInt16 => self.primitive::<UInt16Type>(column, values::integer)?,
            DataType::UInt32 => self.primitive::<UInt32Type>(column, values::integer)?,
            DataType::UInt64 => self.primitive::<UInt64Type>(column, values::integer)?,
            DataType::Float32 => self.primitive::<Float32Type>(column, values::float)?,
            DataType::Float64 => self.primitive::<Float64Type>(column, values::float)?,
            DataType::Date32 => self.primitive::<Date32Type>(column, date)?,
            DataType::Time64(TimeUnit::Nanosecond) => {
                self.primitive::<Time64NanosecondType>(column, nanoseconds)?
            }
            DataType::Time64(_) => self.primitive::<Time64MicrosecondType>(column, values::time)?,
            DataType::Decimal128(precision, scale) => {
                let parse = |text: &str| values::decimal(text, *precision, *scale);
                let (values, nulls) = self.collect::<Decimal128Type>(column, parse)?;
                let array = Decimal128Array::new(values.into(), nulls);
                Arc::new(array.with_data_type(data_type.clone()))
            }
            DataType::Timestamp(unit, _) => self.timestamps(column, *unit)?,
            DataType::Utf8View => self.strings(column)?,
            other if has_own_text(other) => self.with_own_text(column)?,
            other => unreachable!("no column of a text file has type {other}"),
        })
    }

    fn bad(&self, row: usize, field: CsvField, misfit: Misfit) -> BadCell {
        BadCell {
            row,
            text: self.text[field.range()].to_owned(),
            misfit,
        }
    }

    fn collect<T: ArrowPrimitiveType>(
        &self,
        column: &FileColumn,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<(Vec<T::Native>, Option<NullBuffer>), BadCell> {
        let mut values = Vec::with_capacity(self.len());
        let mut validity = BooleanBufferBuilder::new(self.len());
        for (row, field) in self.fields().enumerate() {
            match self.value(field, false) {
                Some(text) => {
                    values.push(parse(&text).ok_or_else(|| self.bad(row, field, Misfit::Type))?);
                    validity.append(true);
                }
                None if column.field.is_nullable() => {
                    values.push(T::Native::default());
                    validity.append(false);
                }
                None => return Err(self.bad(row, field, Misfit::Null)),
            }
        }
        let nulls = NullBuffer::new(validity.finish());
        Ok((values, Some(nulls).filter(|nulls| nulls.null_count() > 0)))
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        column: &FileColumn,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<ArrayRef, BadCell> {
        let (values, nulls) = self.collect::<T>(column, parse)?;
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Ok(Arc::new(
            array.with_data_type(column.field.data_type().clone()),
        ))
    }

    fn timestamps(&self, column: &FileColumn, unit: TimeUnit) -> Result<ArrayRef, BadCell> {
        let (per_second, divisor) = match unit {
            TimeUnit::Second => (1, 1_000_000_000),
            TimeUnit::Millisecond => (1_000, 1_000_000),
            TimeUnit::Microsecond => (1_000_000, 1_000),
            TimeUnit::Nanosecond => (1_000_000_000, 1),
        };
        let parse = |text: &str| {
            let (seconds, nanos, _) = self.formats.timestamp(text)?;
            seconds
                .checked_mul(per_second)?
                .checked_add(i64::from(nanos / divisor))
        };
        match unit {
            TimeUnit::Second => self.primitive::<TimestampSecondType>(column, parse),
            TimeUnit::Millisecond => self.primitive::<TimestampMillisecondType>(column, parse),
            TimeUnit::Microsecond => self.primitive::<TimestampMicrosecondType>(column, parse),
            TimeUnit::Nanosecond => self.primitive::<TimestampNanosecondType>(column, parse),
        }
    }

    fn booleans(&self, column: &FileColumn) -> Result<ArrayRef, BadCell> {
        let mut values = Vec::with_capacity(self.len());
        for (row, field) in self.fields().enumerate() {
            values.push(match self.value(field, false) {
                Some(text) => {
                    Some(values::boolean(&text).ok_or_else(|| self.bad(row, field, Misfit::Type))?)
                }
                None if column.field.is_nullable() => None,
                None => return Err(self.bad(row, field, Misfit::Null)),
            });
        }
        Ok(Arc::new(BooleanArray::from(values)))
    }

    /// Values that are written as SQL writes them.
    fn with_own_text(&self, column: &FileColumn) -> Result<ArrayRef, BadCell> {
        // An empty BLOB is a value.
        let is_blob = *column.field.data_type() == DataType::BinaryView;
        let mut builder = StringViewBuilder::with_capacity(self.len());
        for (row, field) in self.fields().enumerate() {
            match self.value(field, is_blob) {
                Some(text) => builder.append_value(text),
                None if column.field.is_nullable() => builder.append_null(),
                None => return Err(self.bad(row, field, Misfit::Null)),
            }
        }
        let texts: ArrayRef = Arc::new(builder.finish());
        let values = read_exactly(&texts, column.field.data_type()).expect("they are strings");
        let lost = |row: &usize| values.is_null(*row) && texts.is_valid(*row);
        match (0..texts.len()).find(lost) {
            None => Ok(values),
            Some(row) => {
                let field = self.fields().nth(row).expect("a field for each row");
                Err(self.bad(row, field, Misfit::Type))
            }
        }
    }

    fn strings(&self, column: &FileColumn) -> Result<ArrayRef, BadCell> {
        let mut builder = StringViewBuilder::with_capacity(self.len());
        let most = column.max_characters.unwrap_or(u64::MAX);
        for (row, field) in self.fields().enumerate() {
            match self.value(field, true) {
                Some(text) => {
                    if text.len() as u64 > most && text.chars().count() as u64 > most {
                        return Err(self.bad(row, field, Misfit::Long));
                    }
                    builder.append_value(text);
                }
                None if column.field.is_nullable() => builder.append_null(),
                None => return Err(self.bad(row, field, Misfit::Null)),
            }
        }
        Ok(Arc::new(builder.finish()))
    }
}
