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

#[cfg(test)]
mod tests;

use crate::join::hash::on_threads;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::*;
use datafusion::error::Result;
use std::ops::Range;
use std::sync::Arc;

/// The bits of the widest number.
const BITS: u32 = u128::BITS;

/// A number that has keys side by side.
trait Number: Copy + Ord + Default + Send + Sync + 'static {
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
pub(crate) fn is_packed(data_type: &DataType) -> bool {
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
    /// Batch by batch.
    values: Vec<ArrayRef>,
    has_nulls: bool,
    range: Option<(i64, i64)>,
}

impl KeyColumn {
    pub fn new(options: SortOptions) -> Self {
        KeyColumn {
            options,
            values: Vec::new(),
            has_nulls: false,
            range: None,
        }
    }

    /// Adds the values of a batch; whether they can be packed.
    pub fn add(&mut self, array: ArrayRef) -> bool {
        let mut own = Vec::new();
        let Some(integers) = integers(&array, &mut own) else {
            return false;
        };
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (least, greatest) = match nulls {
            None => range(integers.iter().copied()),
            Some(nulls) => range(nulls.valid_indices().map(|row| integers[row])),
        };
        self.has_nulls |= nulls.is_some();
        self.include(least, greatest);
        self.values.push(array);
        true
    }

    fn include(&mut self, least: i64, greatest: i64) {
        if least <= greatest {
            let (low, high) = self.range.unwrap_or((least, greatest));
            self.range = Some((low.min(least), high.max(greatest)));
        }
    }

    /// Adds the batches behind them.
    pub fn append(&mut self, behind: KeyColumn) {
        self.values.extend(behind.values);
        self.has_nulls |= behind.has_nulls;
        if let Some((least, greatest)) = behind.range {
            self.include(least, greatest);
        }
    }

    /// What it takes to read its values out of numbers.
    fn without_values(&self) -> Self {
        KeyColumn {
            values: Vec::new(),
            ..*self
        }
    }

    /// How many numbers there are for its values.
    fn numbers(&self) -> u128 {
        let values = self
            .range
            .map_or(0, |(low, high)| u128::from(high.abs_diff(low)) + 1);
        values + u128::from(self.has_nulls)
    }

    fn bits(&self) -> u32 {
        bits_of(self.numbers())
    }

    /// Puts the numbers of some rows of a batch behind those that are there.
    fn pack<N: Number>(&self, batch: usize, rows: &Range<usize>, packed: &mut [N]) {
        let SortOptions {
            descending,
            nulls_first,
        } = self.options;
        let (low, high) = self.range.unwrap_or((0, 0));
        let first = self.first();
        let bits = self.bits();
        // What stands for NULL may be anything, and must not get into the other keys.
        let own = (1 << bits) - 1;
        let null = match nulls_first {
            true => 0,
            false => self.numbers().saturating_sub(1),
        };
        let array = self.values[batch].slice(rows.start, rows.len());
        let mut converted = Vec::new();
        let values = integers(&array, &mut converted).expect("they have been added");
        let number = |value: i64| {
            let distance = match descending {
                false => value.wrapping_sub(low) as u64,
                true => high.wrapping_sub(value) as u64,
            };
            (u128::from(distance) + first) & own
        };
        let pairs = packed.iter_mut().zip(values);
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => pairs.for_each(|(packed, &value)| *packed = packed.push(bits, number(value))),
            Some(nulls) => {
                for ((packed, &value), valid) in pairs.zip(nulls) {
                    let number = if valid { number(value) } else { null };
                    *packed = packed.push(bits, number);
                }
            }
        }
    }

    /// Whether its values can be read out of the numbers, if those of its type can.
    pub fn is_unpacked(&self) -> bool {
        self.bits() <= u64::BITS
    }

    /// What the number of the first value is: NULL may be before it.
    fn first(&self) -> u128 {
        u128::from(self.has_nulls && self.options.nulls_first)
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
        let nulls = self.has_nulls.then(|| {
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

/// Numbers in the order of an array's values, anything for NULL; `None` if there are no such numbers. If they are not
/// the values themselves, they are put into `own`.
pub(crate) fn integers<'a>(array: &'a ArrayRef, own: &'a mut Vec<i64>) -> Option<&'a [i64]> {
    // In the order of `total_cmp`: the greater the bits of a negative number, the smaller it is.
    let of_bits = |bits: u64| (bits as i64) ^ ((bits as i64 >> 63) as u64 >> 1) as i64;
    macro_rules! each {
        ($kind:ty, $number:expr) => {{
            let values = array.as_primitive::<$kind>().values();
            own.extend(values.iter().map($number));
        }};
    }
    match array.data_type() {
        DataType::Int64 => return Some(array.as_primitive::<Int64Type>().values()),
        DataType::Int32 => each!(Int32Type, |&value| i64::from(value)),
        DataType::Date32 => each!(Date32Type, |&value| i64::from(value)),
        DataType::Float64 => each!(Float64Type, |value| of_bits(value.to_bits())),
        DataType::Float32 => each!(Float32Type, |&value| of_bits(f64::from(value).to_bits())),
        DataType::UInt64 => each!(UInt64Type, |value| (value ^ 1 << 63) as i64),
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            for (row, value) in values.iter().enumerate() {
                match i64::try_from(*value) {
                    Ok(value) => own.push(value),
                    Err(_) if array.is_null(row) => own.push(0),
                    Err(_) => return None,
                }
            }
        }
        _ => {
            let integers = cast(array, &DataType::Int64).ok()?;
            own.extend_from_slice(integers.as_primitive::<Int64Type>().values());
        }
    }
    Some(own)
}

/// Rows in the order of their keys.
#[derive(Debug)]
pub(super) struct Order {
    keys: Vec<KeyColumn>,
    packed: Packed,
    of_rows: u32,
    of_batches: u32,
}

/// The numbers of all rows: those of a part are less than those of the next, and in order.
#[derive(Debug)]
enum Packed {
    Narrow(Vec<Vec<u64>>),
    Wide(Vec<Vec<u128>>),
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
    /// Of some rows, by so many threads.
    ///
    /// # Panics
    /// If a row takes more bits than there are.
    pub async fn new(rows: Rows, threads: usize) -> Result<Self> {
        let keys = rows.keys.iter().map(KeyColumn::without_values).collect();
        let (of_rows, of_batches) = rows.places.unwrap_or((0, 0));
        let bytes = rows.bytes_of_number().expect("the bits of a row");
        let rows = Arc::new(rows);
        let packed = match bytes == size_of::<u64>() {
            true => Packed::Narrow(sorted(rows, threads).await?),
            false => Packed::Wide(sorted(rows, threads).await?),
        };
        Ok(Order {
            keys,
            packed,
            of_rows,
            of_batches,
        })
    }

    /// Some of the rows of a part: which batch each is of, and which of its rows it is.
    pub fn rows(&self, part: usize, range: Range<usize>) -> Vec<(usize, usize)> {
        let (of_rows, of_batches) = (self.of_rows, self.of_batches);
        either!(&self.packed, packed => packed[part][range]
            .iter()
            .map(|packed| (packed.bits(of_batches, of_rows) as usize, packed.bits(of_rows, 0) as usize))
            .collect())
    }

    /// The values of a key in some of the rows of a part.
    pub fn key(
        &self,
        key: usize,
        part: usize,
        range: Range<usize>,
        data_type: &DataType,
    ) -> ArrayRef {
        let behind = self.keys[key + 1..]
            .iter()
            .map(KeyColumn::bits)
            .sum::<u32>();
        let behind = behind + self.of_rows + self.of_batches;
        either!(&self.packed, packed => self.keys[key].unpack(&packed[part][range], behind, data_type))
    }

    /// The rows of each part.
    pub fn parts(&self) -> Vec<usize> {
        either!(&self.packed, packed => packed.iter().map(Vec::len).collect())
    }
}

/// The rows of all batches. Those that are equal stay as they are.
#[derive(Debug)]
pub(super) struct Rows {
    keys: Vec<KeyColumn>,
    /// How many each batch has.
    batches: Vec<usize>,
    /// The bits of a row's place: of the row in its batch, and of the batch.
    places: Option<(u32, u32)>,
}

/// Rows that are packed at once: what is written to them again and again stays in the nearest cache.
const PACKED_ROWS: usize = 2_048;

impl Rows {
    /// Rows of batches with so many each. If they have no places, only their keys can be read.
    pub fn new(keys: Vec<KeyColumn>, batches: Vec<usize>, have_places: bool) -> Self {
        let of_rows = bits_of(batches.iter().max().copied().unwrap_or(0) as u128);
        let of_batches = bits_of(batches.len() as u128);
        Rows {
            keys,
            batches,
            places: have_places.then_some((of_rows, of_batches)),
        }
    }

    /// The bytes of a row's number; `None` if it takes more bits than there are.
    pub fn bytes_of_number(&self) -> Option<usize> {
        let keys: u32 = self.keys.iter().map(KeyColumn::bits).sum();
        let places = self
            .places
            .map_or(0, |(of_rows, of_batches)| of_rows + of_batches);
        match keys + places {
            bits if bits <= u64::BITS => Some(size_of::<u64>()),
            bits if bits <= BITS => Some(size_of::<u128>()),
            _ => None,
        }
    }

    /// Adds the numbers of some rows of a batch to those that are there.
    fn pack<N: Number>(&self, batch: usize, range: Range<usize>, out: &mut Vec<N>) {
        for start in range.clone().step_by(PACKED_ROWS) {
            let rows = start..range.end.min(start + PACKED_ROWS);
            let first = out.len();
            out.resize(first + rows.len(), N::default());
            let packed = &mut out[first..];
            self.keys
                .iter()
                .for_each(|key| key.pack(batch, &rows, packed));
            if let Some((of_rows, of_batches)) = self.places {
                for (packed, row) in packed.iter_mut().zip(rows) {
                    *packed = packed.push(of_batches, batch as u128);
                    *packed = packed.push(of_rows, row as u128);
                }
            }
        }
    }

    /// Numbers between the parts, of which there are about so many: those of some rows of some batches.
    fn splitters<N: Number>(&self, parts: usize) -> Vec<N> {
        let mut sample = Vec::new();
        let step = self.batches.len().div_ceil(SAMPLED_BATCHES).max(1);
        for (batch, &rows) in self.batches.iter().enumerate().step_by(step) {
            for row in (0..rows).step_by(rows.div_ceil(SAMPLED_ROWS).max(1)) {
                self.pack(batch, row..row + 1, &mut sample);
            }
        }
        sample.sort_unstable();
        let places = (1..parts).map(|part| part * sample.len() / parts);
        let mut splitters: Vec<N> = places.filter_map(|at| sample.get(at).copied()).collect();
        splitters.dedup();
        splitters
    }
}

/// Batches of which rows are sampled, at most about so many …
const SAMPLED_BATCHES: usize = 512;
/// … and how many rows of each.
const SAMPLED_ROWS: usize = 16;

/// Parts for each thread: their sizes are by a sample.
const PARTS: usize = 8;
/// Fewer rows are sorted by one thread.
const FEW_ROWS: usize = 1 << 16;

/// The numbers of all rows, in their order.
///
/// ```text
/// batches ──packed──▶ by parts │ by parts │ …      each thread its batches
///                        └──────────┴──▶ part, sorted      each thread its parts
/// ```
async fn sorted<N: Number>(rows: Arc<Rows>, threads: usize) -> Result<Vec<Vec<N>>> {
    let all: usize = rows.batches.iter().sum();
    if threads == 1 || all < FEW_ROWS {
        let mut packed = Vec::with_capacity(all);
        for (batch, &own) in rows.batches.iter().enumerate() {
            rows.pack(batch, 0..own, &mut packed);
        }
        packed.sort_unstable();
        return Ok(vec![packed]);
    }
    let splitters: Vec<N> = rows.splitters(PARTS * threads);
    let parts = splitters.len() + 1;
    let step = rows.batches.len().div_ceil(2 * threads);
    let of_batches = move |number: usize| {
        let mut apart: Vec<Vec<N>> = vec![Vec::new(); parts];
        let mut packed = Vec::new();
        for (batch, &own) in rows
            .batches
            .iter()
            .enumerate()
            .skip(number * step)
            .take(step)
        {
            packed.clear();
            rows.pack(batch, 0..own, &mut packed);
            for &number in &packed {
                apart[splitters.partition_point(|&splitter| splitter <= number)].push(number);
            }
        }
        Ok(apart)
    };
    let apart: Vec<Vec<Vec<N>>> = on_threads(2 * threads, threads, of_batches).await?;
    let of_part = move |part: usize| {
        let pieces: Vec<&[N]> = apart.iter().map(|apart| &apart[part][..]).collect();
        let mut numbers = pieces.concat();
        numbers.sort_unstable();
        Ok(numbers)
    };
    on_threads(parts, threads, of_part).await
}
