//! Sort keys as one number for each row.
//!
//! ```text
//! ORDER BY k, d DESC          k: 3 … 905     d: 0 … 9, some NULL          which row
//!   row                      ┌─────────────┬──────────────────────┬───────────────────┐
//!   k = 7, d = 2             │    7 - 3    │ 9 - 2, or 10 of NULL │ batch, row of it  │
//!                            └─────────────┴──────────────────────┴───────────────────┘
//! ```
//!
//! Each key takes the bits that its values span. What all keys and the row's place take must fit into 128 bits; most
//! often it fits into 64. Then rows are compared by one comparison, and nothing is looked at but these numbers.
//!
//! A column that is a key is read out of the numbers, one after the other. If all columns are, rows have no place:
//! equal ones have nothing that tells them apart.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::*;
use std::ops::Range;
use std::sync::Arc;

/// The bits of the widest number.
const BITS: u32 = u128::BITS;

/// A number that has keys side by side.
trait Number: Copy + Ord + Default + Send {
    /// The number with another one behind it.
    fn push(self, bits: u32, number: u128) -> Self;
    /// So many bits, behind which there are others.
    fn bits(self, bits: u32, behind: u32) -> u64;
}

macro_rules! number {
    ($number:ty) => {
        impl Number for $number {
            #[inline(always)]
            fn push(self, bits: u32, number: u128) -> Self {
                self.unbounded_shl(bits) | number as $number
            }

            #[inline(always)]
            fn bits(self, bits: u32, behind: u32) -> u64 {
                let all = self.unbounded_shr(behind) as u64;
                all & (1u64.unbounded_shl(bits)).wrapping_sub(1)
            }
        }
    };
}

number!(u64);
number!(u128);

/// Calls a macro with the Arrow type of values that are as they are packed.
macro_rules! unpacked_types {
    ($data_type:expr, $call:ident, $other:expr) => {
        match $data_type {
            DataType::Int8 => $call!(Int8Type),
            DataType::Int16 => $call!(Int16Type),
            DataType::Int32 => $call!(Int32Type),
            DataType::Int64 => $call!(Int64Type),
            DataType::UInt8 => $call!(UInt8Type),
            DataType::UInt16 => $call!(UInt16Type),
            DataType::UInt32 => $call!(UInt32Type),
            DataType::Date32 => $call!(Date32Type),
            DataType::Timestamp(TimeUnit::Second, _) => $call!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => $call!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => $call!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => $call!(TimestampNanosecondType),
            _ => $other,
        }
    };
}

/// Whether values of a type can be packed, if they lie close enough together.
pub(super) fn is_packed(data_type: &DataType) -> bool {
    use DataType::*;
    data_type.is_integer()
        || matches!(data_type, Boolean | Float32 | Float64 | Decimal128(..))
        || matches!(
            data_type,
            Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..)
        )
}

/// One key of all rows: numbers in the order of the values.
#[derive(Debug)]
pub(super) struct KeyColumn {
    options: SortOptions,
    values: Vec<i64>,
    /// Rows whose value is NULL.
    nulls: Vec<usize>,
    range: Option<(i64, i64)>,
}

impl KeyColumn {
    pub fn new(options: SortOptions) -> Self {
        KeyColumn {
            options,
            values: Vec::new(),
            nulls: Vec::new(),
            range: None,
        }
    }

    /// Adds the values of a batch; whether they can be packed.
    pub fn add(&mut self, array: &ArrayRef) -> bool {
        let first = self.values.len();
        if !append(array, &mut self.values) {
            return false;
        }
        let added = &self.values[first..];
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (least, greatest) = match nulls {
            None => range(added.iter().copied()),
            Some(nulls) => {
                let rows = 0..array.len();
                let places = rows.filter(|&row| nulls.is_null(row));
                self.nulls.extend(places.map(|row| first + row));
                range(nulls.valid_indices().map(|row| added[row]))
            }
        };
        if least <= greatest {
            let (low, high) = self.range.unwrap_or((least, greatest));
            self.range = Some((low.min(least), high.max(greatest)));
        }
        true
    }

    /// What it takes to read its values out of numbers.
    fn without_values(self) -> Self {
        KeyColumn {
            values: Vec::new(),
            nulls: self.nulls.into_iter().take(1).collect(),
            ..self
        }
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> usize {
        (self.values.capacity() + self.nulls.capacity()) * size_of::<i64>()
    }

    /// How many numbers there are for its values.
    fn numbers(&self) -> u128 {
        let values = self
            .range
            .map_or(0, |(low, high)| u128::from(high.abs_diff(low)) + 1);
        values + u128::from(!self.nulls.is_empty())
    }

    fn bits(&self) -> u32 {
        bits_of(self.numbers())
    }

    /// Puts its numbers behind those that are there.
    fn pack<N: Number>(&self, packed: &mut [N]) {
        let SortOptions {
            descending,
            nulls_first,
        } = self.options;
        let (low, high) = self.range.unwrap_or((0, 0));
        let first = self.first();
        let bits = self.bits();
        // What stands for NULL may be anything, and must not get into the other keys.
        let own = (1 << bits) - 1;
        let mut nulls = self.nulls.iter().copied().peekable();
        let null = match nulls_first {
            true => 0,
            false => self.numbers().saturating_sub(1),
        };
        for (row, (packed, value)) in packed.iter_mut().zip(&self.values).enumerate() {
            let distance = match descending {
                false => value.wrapping_sub(low) as u64,
                true => high.wrapping_sub(*value) as u64,
            };
            let number = match nulls.next_if_eq(&row) {
                None => (u128::from(distance) + first) & own,
                Some(_) => null,
            };
            *packed = packed.push(bits, number);
        }
    }

    /// Whether its values can be read out of the numbers, if those of its type can.
    pub fn is_unpacked(&self) -> bool {
        self.bits() <= u64::BITS
    }

    /// What the number of the first value is: NULL may be before it.
    fn first(&self) -> u128 {
        u128::from(!self.nulls.is_empty() && self.options.nulls_first)
    }

    /// The values that some packed numbers have, `behind` so many other bits. They are of a type that
    /// [can be read out of them](is_unpacked).
    fn unpack<N: Number>(&self, packed: &[N], behind: u32, data_type: &DataType) -> ArrayRef {
        let bits = self.bits();
        let (low, high) = self.range.unwrap_or((0, 0));
        let first = self.first() as u64;
        let value = |packed: &N| {
            let distance = packed.bits(bits, behind).wrapping_sub(first) as i64;
            match self.options.descending {
                false => low.wrapping_add(distance),
                true => high.wrapping_sub(distance),
            }
        };
        let nulls = (!self.nulls.is_empty()).then(|| {
            let null = match self.options.nulls_first {
                true => 0,
                false => (self.numbers() - 1) as u64,
            };
            let is_valid = |row: usize| packed[row].bits(bits, behind) != null;
            NullBuffer::new(BooleanBuffer::collect_bool(packed.len(), is_valid))
        });
        macro_rules! array {
            ($kind:ty) => {{
                let values = packed.iter().map(|packed| value(packed) as _);
                let array = PrimitiveArray::<$kind>::new(values.collect(), nulls);
                Arc::new(array.with_data_type(data_type.clone()))
            }};
        }
        unpacked_types!(data_type, array, unreachable!("it is asked before"))
    }
}

/// Whether values of a type can be read out of packed numbers.
pub(super) fn is_unpacked(data_type: &DataType) -> bool {
    macro_rules! yes {
        ($kind:ty) => {
            true
        };
    }
    unpacked_types!(data_type, yes, false)
}

/// How many bits it takes to tell so many numbers apart.
fn bits_of(numbers: u128) -> u32 {
    BITS - numbers.saturating_sub(1).leading_zeros()
}

fn range(values: impl Iterator<Item = i64>) -> (i64, i64) {
    values.fold((i64::MAX, i64::MIN), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Appends numbers in the order of an array's values, anything for NULL; whether there are such numbers.
fn append(array: &ArrayRef, out: &mut Vec<i64>) -> bool {
    // In the order of `total_cmp`: the greater the bits of a negative number, the smaller it is.
    let of_bits = |bits: u64| (bits as i64) ^ ((bits as i64 >> 63) as u64 >> 1) as i64;
    match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            out.extend(values.iter().map(|value| of_bits(value.to_bits())));
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().iter();
            out.extend(values.map(|value| of_bits(f64::from(*value).to_bits())));
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            out.extend(values.iter().map(|value| (value ^ 1 << 63) as i64));
        }
        DataType::Decimal128(..) => {
            for (row, value) in array
                .as_primitive::<Decimal128Type>()
                .values()
                .iter()
                .enumerate()
            {
                match i64::try_from(*value) {
                    Ok(value) => out.push(value),
                    Err(_) if array.is_null(row) => out.push(0),
                    Err(_) => return false,
                }
            }
        }
        _ => {
            let Ok(integers) = cast(array, &DataType::Int64) else {
                return false;
            };
            out.extend_from_slice(integers.as_primitive::<Int64Type>().values());
        }
    }
    true
}

/// Rows in the order of their keys.
#[derive(Debug)]
pub(super) struct Order {
    keys: Vec<KeyColumn>,
    packed: Packed,
    of_rows: u32,
    of_batches: u32,
}

#[derive(Debug)]
enum Packed {
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
}

/// Does the same with numbers of either width.
macro_rules! either {
    ($packed:expr, $name:ident => $result:expr) => {
        match $packed {
            Packed::Narrow($name) => $result,
            Packed::Wide($name) => $result,
        }
    };
}

impl Order {
    /// Of batches with so many rows each. Rows that are equal stay as they are. If they have no places, only their keys
    /// can be read. Gives the keys back if a row takes more bits than there are.
    pub fn new(
        keys: Vec<KeyColumn>,
        batches: &[usize],
        have_places: bool,
    ) -> Result<Self, Vec<KeyColumn>> {
        let bits_if = |number: usize| match have_places {
            true => bits_of(number as u128),
            false => 0,
        };
        let of_rows = bits_if(batches.iter().max().copied().unwrap_or(0));
        let of_batches = bits_if(batches.len());
        let bits = keys.iter().map(KeyColumn::bits).sum::<u32>() + of_rows + of_batches;
        let places = have_places.then_some((batches, of_rows, of_batches));
        let rows = batches.iter().sum();
        if bits > BITS {
            return Err(keys);
        }
        let packed = match bits <= u64::BITS {
            true => Packed::Narrow(sorted(&keys, rows, places)),
            false => Packed::Wide(sorted(&keys, rows, places)),
        };
        Ok(Order {
            keys: keys.into_iter().map(KeyColumn::without_values).collect(),
            packed,
            of_rows,
            of_batches,
        })
    }

    /// Some of the rows: which batch each is of, and which of its rows it is.
    pub fn rows(&self, range: Range<usize>) -> Vec<(usize, usize)> {
        let (of_rows, of_batches) = (self.of_rows, self.of_batches);
        either!(&self.packed, packed => packed[range]
            .iter()
            .map(|packed| (packed.bits(of_batches, of_rows) as usize, packed.bits(of_rows, 0) as usize))
            .collect())
    }

    /// The values of a key in some of the rows.
    pub fn key(&self, key: usize, range: Range<usize>, data_type: &DataType) -> ArrayRef {
        let behind = self.keys[key + 1..]
            .iter()
            .map(KeyColumn::bits)
            .sum::<u32>();
        let behind = behind + self.of_rows + self.of_batches;
        either!(&self.packed, packed => self.keys[key].unpack(&packed[range], behind, data_type))
    }

    pub fn len(&self) -> usize {
        either!(&self.packed, packed => packed.len())
    }
}

/// The numbers of all rows, in their order.
fn sorted<N: Number>(
    keys: &[KeyColumn],
    rows: usize,
    places: Option<(&[usize], u32, u32)>,
) -> Vec<N> {
    let mut packed = vec![N::default(); rows];
    keys.iter().for_each(|key| key.pack(&mut packed));
    if let Some((batches, of_rows, of_batches)) = places {
        let rows = batches.iter().enumerate();
        let rows = rows.flat_map(|(batch, &rows)| (0..rows).map(move |row| (batch, row)));
        for (packed, (batch, row)) in packed.iter_mut().zip(rows) {
            *packed = packed.push(of_batches, batch as u128);
            *packed = packed.push(of_rows, row as u128);
        }
    }
    packed.sort_unstable();
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
        Int64Array, UInt64Array,
    };
    use datafusion::arrow::compute::{SortColumn, lexsort_to_indices, take};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn array(kind: usize, values: &[Option<(i64, u8)>]) -> ArrayRef {
        let small = |value: &Option<(i64, u8)>| value.map(|(value, _)| value % 5);
        let float = |value: &Option<(i64, u8)>| {
            value.map(|(value, special)| match special {
                0 => f64::NAN,
                1 => -0.0,
                2 => f64::NEG_INFINITY,
                3 => 0.0,
                _ => value as f64 / 3.0,
            })
        };
        let wide = |value: &Option<(i64, u8)>| {
            value.map(|(value, special)| match special {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => value,
            })
        };
        let rows = values.iter();
        match kind {
            0 => Arc::new(rows.map(wide).collect::<Int64Array>()),
            1 => Arc::new(
                rows.map(|row| small(row).map(|value| value as i8))
                    .collect::<Int8Array>(),
            ),
            2 => Arc::new(rows.map(float).collect::<Float64Array>()),
            3 => Arc::new(
                rows.map(|row| float(row).map(|value| value as f32))
                    .collect::<Float32Array>(),
            ),
            4 => Arc::new(
                rows.map(|row| wide(row).map(|value| value as u64))
                    .collect::<UInt64Array>(),
            ),
            5 => Arc::new(
                rows.map(|row| small(row).map(i128::from))
                    .collect::<Decimal128Array>(),
            ),
            6 => Arc::new(
                rows.map(|row| small(row).map(|value| value as i32))
                    .collect::<Date32Array>(),
            ),
            _ => Arc::new(
                rows.map(|row| small(row).map(|value| value > 0))
                    .collect::<BooleanArray>(),
            ),
        }
    }

    proptest! {
        #[test]
        fn rows_are_in_the_order_of_arrow(
            keys in prop::collection::vec((0..8_usize, any::<bool>(), any::<bool>()), 1..4),
            rows in prop::collection::vec(
                prop::collection::vec(prop::option::weighted(0.8, (any::<i64>(), 0..40_u8)), 4), 0..80),
            cuts in prop::collection::vec(0..20_usize, 0..6),
        ) {
            let columns: Vec<ArrayRef> = keys.iter().enumerate().map(|(at, (kind, ..))| {
                let values: Vec<_> = rows.iter().map(|row| row[at]).collect();
                array(*kind, &values)
            }).collect();
            let mut batches = Vec::new();
            let mut left = rows.len();
            for cut in cuts {
                batches.push(cut.min(left));
                left -= cut.min(left);
            }
            batches.push(left);
            let packed: Vec<_> = keys.iter().zip(&columns).map(|((_, descending, nulls_first), column)| {
                let options = SortOptions { descending: *descending, nulls_first: *nulls_first };
                let mut key = KeyColumn::new(options);
                let mut first = 0;
                for &rows in &batches {
                    prop_assert!(key.add(&column.slice(first, rows)));
                    first += rows;
                }
                Ok(key)
            }).collect::<Result<_, _>>()?;
            let options: Vec<SortOptions> = packed.iter().map(|key| key.options).collect();
            let Ok(order) = Order::new(packed, &batches, true) else {
                prop_assert!(keys.iter().filter(|(kind, ..)| [0, 2, 3, 4].contains(kind)).count() > 1);
                return Ok(());
            };
            // The place breaks ties, as it does here.
            let places = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64)) as ArrayRef;
            let options = options.into_iter();
            let by = columns.iter().cloned().zip(options.map(Some)).chain([(places, None)]);
            let by: Vec<_> = by.map(|(values, options)| SortColumn { values, options }).collect();
            let expected = lexsort_to_indices(&by, None).unwrap();
            let starts: Vec<usize> = batches.iter().scan(0, |sum, rows| {
                *sum += rows;
                Some(*sum - rows)
            }).collect();
            let found = order.rows(0..order.len()).into_iter();
            let found: Vec<u32> = found.map(|(batch, row)| (starts[batch] + row) as u32).collect();
            prop_assert_eq!(&found[..], &expected.values()[..]);
            for (key, column) in columns.iter().enumerate() {
                if is_unpacked(column.data_type()) && order.keys[key].is_unpacked() {
                    let unpacked = order.key(key, 0..order.len(), column.data_type());
                    prop_assert_eq!(&unpacked, &take(column, &expected, None).unwrap());
                }
            }
        }
    }
}
