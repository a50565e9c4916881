//! From Arrow arrays to column chunks.
//!
//! ```text
//! booleans · integers · dates · decimals ─┐            pass 1: least, greatest, changes, differences
//! strings ── codes (a look-up each) ──────┼─▶ source ─▶ constant │ run-length │ packed │ short runs │ framed, delta
//!                                         │            pass 2: subtract the base, pack
//! floats ── keys ── pass 1 ─▶ constant │ plain
//! strings without codes ─▶ constant │ dictionary of the chunk ── its numbers as above │ FSST │ plain
//! ```
//!
//! Both passes go in blocks of 1,024 values through the first-level cache: widened to `i64`, the slots of NULLs filled,
//! then a plain loop for each step.

mod codes;
mod integers;
mod plain;
mod source;
mod strings;

use crate::CHUNK_ROWS;
use crate::chunk::{ColumnChunk, float_range};
use crate::data::Data;
use crate::dictionary::Dictionary;
use crate::domain::{Domain, wide_of_intervals, wide_of_uuids};
use crate::error::EncodeError;
use crate::key_order::KeyOrder;
use crate::object_memory::ObjectMemory;
use crate::validity::Validity;
use crate::zone::{Zone, ZoneRange};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use integers::Profile;
use source::{Booleans, Filled, ValueSource};
use std::sync::{Arc, OnceLock};

impl ColumnChunk {
    /// Encodes an array of any supported type, or a dictionary array of one. Text becomes codes of `dictionary` if
    /// there is one, and then every string has to be in it; else it stays plain.
    ///
    /// # Errors
    /// [`EncodeError`]: the type is not supported, a string is not in the dictionary, a decimal of up to 18 digits does
    /// not fit in 64 bits, or the memory of the home is exhausted.
    ///
    /// # Panics
    /// If the array has more than [`CHUNK_ROWS`] rows.
    pub fn encode(
        array: &dyn Array,
        dictionary: Option<&Dictionary>,
        home: ObjectMemory<'_>,
    ) -> Result<ColumnChunk, EncodeError> {
        let rows = array.len();
        assert!(rows <= CHUNK_ROWS, "{rows} rows in a chunk");
        let data_type = array.data_type();
        let unsupported = || EncodeError::UnsupportedType(data_type.clone());
        let domain = Domain::of(data_type).ok_or_else(unsupported)?;
        let nulls = array.logical_nulls();
        if let (Domain::String, Some(dictionary)) = (domain, dictionary) {
            return Self::build(rows, nulls.as_ref(), home, |encoder| {
                encoder.codes(&codes::codes(array, dictionary)?)
            });
        }
        let plain = without_dictionary(array, domain)?;
        let array = plain.as_deref().unwrap_or(array);
        let chunk = Self::build(rows, nulls.as_ref(), home, |encoder| encoder.encode(array))?;
        chunk.count_values_of(array);
        Ok(chunk)
    }

    /// Encodes text whose codes are known, as [`Dictionary::look_up`] gives them.
    ///
    /// # Errors
    /// [`EncodeError`]: the memory of the home is exhausted.
    ///
    /// # Panics
    /// If there are more than [`CHUNK_ROWS`] codes.
    pub fn encode_codes(
        codes: &[u32],
        nulls: Option<&NullBuffer>,
        home: ObjectMemory<'_>,
    ) -> Result<ColumnChunk, EncodeError> {
        let rows = codes.len();
        assert!(rows <= CHUNK_ROWS, "{rows} rows in a chunk");
        Self::build(rows, nulls, home, |encoder| encoder.codes(codes))
    }

    fn build(
        rows: usize,
        nulls: Option<&NullBuffer>,
        home: ObjectMemory<'_>,
        data: impl FnOnce(&mut Encoder<'_>) -> Result<Data, EncodeError>,
    ) -> Result<ColumnChunk, EncodeError> {
        let validity = Validity::encode(nulls, rows, home)?;
        let nulls = validity.null_buffer(rows);
        let mut encoder = Encoder {
            rows,
            nulls: nulls.as_ref(),
            home,
            range: ZoneRange::Empty,
        };
        let data = data(&mut encoder)?;
        let zone = Zone {
            nulls: encoder.nulls.map_or(0, NullBuffer::null_count),
            range: encoder.range,
        };
        Ok(ColumnChunk {
            rows,
            zone,
            data,
            validity,
            distinct: OnceLock::new(),
        })
    }
}

/// Integers, in the encoding that suits them best.
pub(crate) fn integers(
    values: &[i64],
    nulls: Option<&NullBuffer>,
    home: ObjectMemory<'_>,
) -> Result<ColumnChunk, EncodeError> {
    ColumnChunk::build(values.len(), nulls, home, |encoder| {
        encoder.integers(values)
    })
}

/// Integers as their places in an order. The zone is left to whoever knows the integers.
pub(crate) fn ordinals(
    places: &[i64],
    nulls: Option<&NullBuffer>,
    order: &Arc<KeyOrder>,
    home: ObjectMemory<'_>,
) -> Result<ColumnChunk, EncodeError> {
    ColumnChunk::build(places.len(), nulls, home, |encoder| {
        let (ordinals, profile) = integers::encode(encoder, places)?;
        let (low, high) = profile.map_or((0, 0), |profile| (profile.min, profile.max));
        Ok(Data::Ordinals {
            ordinals: Arc::new(ordinals),
            order: order.clone(),
            low,
            high,
        })
    })
}

/// The array with the values of its dictionary in their places, text as `Utf8View`, and bytes as `BinaryView`; `None`
/// if it is that already.
fn without_dictionary(array: &dyn Array, domain: Domain) -> Result<Option<ArrayRef>, EncodeError> {
    let target = match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => return Ok(None),
        _ if domain == Domain::String => DataType::Utf8View,
        _ if domain == Domain::Bytes => DataType::BinaryView,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        _ => return Ok(None),
    };
    Ok(Some(arrow_cast::cast(array, &target)?))
}

/// What all kinds of values need on the way.
struct Encoder<'a> {
    rows: usize,
    /// Those of the chunk, if there are any: in node-local memory already, starting at bit 0.
    nulls: Option<&'a NullBuffer>,
    home: ObjectMemory<'a>,
    /// Found on the way.
    range: ZoneRange,
}

impl Encoder<'_> {
    fn encode(&mut self, array: &dyn Array) -> Result<Data, EncodeError> {
        macro_rules! integers {
            ($t:ty) => {
                self.integers(array.as_primitive::<$t>().values().as_ref())
            };
        }
        match array.data_type() {
            DataType::Boolean => self.integers(Booleans(array.as_boolean().values())),
            DataType::Int8 => integers!(Int8Type),
            DataType::Int16 => integers!(Int16Type),
            DataType::Int32 => integers!(Int32Type),
            DataType::Int64 => integers!(Int64Type),
            DataType::UInt8 => integers!(UInt8Type),
            DataType::UInt16 => integers!(UInt16Type),
            DataType::UInt32 => integers!(UInt32Type),
            DataType::UInt64 => integers!(UInt64Type),
            DataType::Date32 => integers!(Date32Type),
            DataType::Time64(TimeUnit::Microsecond) => integers!(Time64MicrosecondType),
            DataType::Time64(TimeUnit::Nanosecond) => integers!(Time64NanosecondType),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => integers!(TimestampSecondType),
                TimeUnit::Millisecond => integers!(TimestampMillisecondType),
                TimeUnit::Microsecond => integers!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => integers!(TimestampNanosecondType),
            },
            DataType::Decimal128(..) if Domain::of(array.data_type()) == Some(Domain::Wide) => {
                self.wide(array.as_primitive::<Decimal128Type>().values())
            }
            DataType::Decimal128(..) => {
                let values = array.as_primitive::<Decimal128Type>().values();
                self.check_narrow(values, array.data_type())?;
                integers!(Decimal128Type)
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Ok(Data::Float32(self.floats(values)?))
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                Ok(Data::Float64(self.floats(values)?))
            }
            DataType::Utf8View => Ok(Data::Strings(self.strings(array.as_string_view())?)),
            DataType::BinaryView => Ok(Data::Bytes(self.strings(array.as_binary_view())?)),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let values = array.as_primitive::<IntervalMonthDayNanoType>();
                let values: Vec<i128> = wide_of_intervals(values).collect();
                self.wide(&values)
            }
            DataType::FixedSizeBinary(_) => {
                let values: Vec<i128> = wide_of_uuids(array.as_fixed_size_binary()).collect();
                self.wide(&values)
            }
            other => Err(EncodeError::UnsupportedType(other.clone())),
        }
    }

    /// The first row that is not NULL.
    fn first_valid(&self) -> Option<usize> {
        match self.nulls {
            None => (self.rows > 0).then_some(0),
            Some(nulls) => nulls.valid_indices().next(),
        }
    }

    /// The source with the slots of NULLs filled; `None` if there are only NULLs.
    fn filled<S: ValueSource>(&self, source: S) -> Option<Filled<'_, S>> {
        let mut first = [0];
        source.read(self.first_valid()?, &mut first);
        Some(Filled::new(source, self.nulls, first[0]))
    }

    fn integers(&mut self, source: impl ValueSource) -> Result<Data, EncodeError> {
        let (integers, profile) = integers::encode(self, source)?;
        if let Some(Profile { min, max, .. }) = profile {
            self.range = ZoneRange::Integer(min, max);
        }
        Ok(Data::Integers(integers))
    }

    fn codes(&mut self, codes: &[u32]) -> Result<Data, EncodeError> {
        let (integers, profile) = integers::encode(self, codes)?;
        if let Some(Profile { min, max, .. }) = profile {
            self.range = ZoneRange::Codes(min as u32, max as u32);
        }
        Ok(Data::Codes(integers))
    }
}
