//! How many values are distinct: HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, AofA 2007).
//!
//! ```text
//! value ─hash─▶ 0110… │ 000001…          register: the first 10 bits
//!                            ▲           rank: the place of the first 1 behind them
//! registers   of each the greatest rank so far: 1,024 bytes, whose maximum is that of two chunks together
//!
//! chunk ─▶ DistinctSketch ─┐
//! chunk ─▶ DistinctSketch ─┴─▶ DistinctCount ─▶ estimate, by Apache DataSketches
//! ```
//!
//! Chunks of many rows have a sketch since they were encoded, so that nobody reads their values to count them. In few
//! rows the values are counted when that is asked. Codes of a column's dictionary have none, for the dictionary counts
//! them. An estimate is off by 3.3 % (one standard deviation), and by less than one up to some dozens.
//!
//! Writing waits for this. So registers are filled here, in 2 ns a value where the crate takes 7; and of values that
//! occur again and again only the distinct ones are hashed, where these are known: integers within a narrow range are
//! marked in a bitmap first, and strings may have a dictionary.

use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers, Plain};
use crate::encoding::Encoding;
use crate::selection::Selection;
use crate::strings::{StringKind, Strings};
use crate::zone::ZoneRange;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::ArrowNativeType;
use datasketches::hll::HllSketch;
use eris_kernels::Isa;
use std::fmt;
use twox_hash::XxHash3_64;

/// The binary logarithm of the number of registers.
const LG_REGISTERS: u8 = 10;
const REGISTERS: usize = 1 << LG_REGISTERS;
/// The greatest rank: all bits behind the register's are 0.
const MOST: u8 = 64 - LG_REGISTERS + 1;
/// From so many rows on, a chunk has a sketch since it was encoded.
const SKETCHED_ROWS: usize = 4096;
/// Integers that differ by less are marked in a bitmap of 32 KiB.
const MARKED: u64 = 1 << 18;
/// If they differ by less than so much, a byte each is faster.
const MARKED_IN_BYTES: u64 = 1 << 14;

/// Which values a chunk has, as far as counting goes.
#[derive(Clone, PartialEq)]
pub(crate) struct DistinctSketch(Box<[u8; REGISTERS]>);

impl DistinctSketch {
    pub const REGISTERS: usize = REGISTERS;

    fn new() -> Self {
        DistinctSketch(Box::new([0; REGISTERS]))
    }

    /// Of the values of a chunk; `None` of codes, which are counted by their dictionary. If the caller has them as an
    /// array, strings need not be decompressed.
    fn of(chunk: &ColumnChunk, array: Option<&dyn Array>) -> Option<Self> {
        let mut sketch = DistinctSketch::new();
        match &chunk.data {
            Data::Codes(_) => return None,
            _ if chunk.nulls() == chunk.rows() => {}
            Data::Integers(Integers::Constant(value)) => sketch.add_integer(*value),
            Data::Integers(_) | Data::Ordinals { .. } => sketch.add_integers(chunk),
            Data::Float32(plain) => {
                sketch.add_plain(chunk, plain, |value| mixed(value.to_bits().into()));
            }
            Data::Float64(plain) => sketch.add_plain(chunk, plain, |value| mixed(value.to_bits())),
            Data::Wide(plain) => {
                let word = |value: i128| mixed(value as u64) ^ (value >> 64) as u64;
                sketch.add_plain(chunk, plain, |value| mixed(word(value)));
            }
            Data::Strings(text) => sketch.add_strings(chunk, text, array),
            Data::Bytes(bytes) => sketch.add_strings(chunk, bytes, array),
        }
        Some(sketch)
    }

    /// One with these registers, if they are such.
    pub fn of_registers(registers: &[u8]) -> Option<Self> {
        let all: Box<[u8; REGISTERS]> = registers.to_vec().into_boxed_slice().try_into().ok()?;
        let are_ranks = all.iter().all(|&rank| rank <= MOST);
        are_ranks.then_some(DistinctSketch(all))
    }

    /// The rank of each register, 0 of those that no value has.
    pub fn registers(&self) -> &[u8; REGISTERS] {
        &self.0
    }

    #[inline(always)]
    fn add(&mut self, hash: u64) {
        let register = (hash >> (64 - LG_REGISTERS)) as usize;
        // The lowest bit of the register's ends the count.
        let rank = (hash << LG_REGISTERS | 1 << (LG_REGISTERS - 1)).leading_zeros() as u8 + 1;
        let greatest = &mut self.0[register];
        if *greatest < rank {
            *greatest = rank;
        }
    }

    #[inline(always)]
    fn add_integer(&mut self, value: i64) {
        self.add(mixed(value as u64));
    }

    fn add_integers(&mut self, chunk: &ColumnChunk) {
        let ZoneRange::Integer(min, max) = chunk.zone.range else {
            return;
        };
        let span = max.wrapping_sub(min) as u64;
        if span >= MARKED {
            return for_each(chunk, |value| self.add_integer(value));
        }
        if span < MARKED_IN_BYTES {
            // Bytes are only written, bits read before.
            let mut marks = vec![false; span as usize + 1];
            for_each(chunk, |value| {
                marks[value.wrapping_sub(min) as usize] = true;
            });
            let marked = (min..).zip(marks).filter(|(_, is_marked)| *is_marked);
            return marked.for_each(|(value, _)| self.add_integer(value));
        }
        let mut marks = vec![0u64; span as usize / 64 + 1];
        for_each(chunk, |value| {
            let place = value.wrapping_sub(min) as usize;
            marks[place / 64] |= 1 << (place % 64);
        });
        for (word, mut bits) in marks.into_iter().enumerate() {
            while bits != 0 {
                let place = word as i64 * 64 + i64::from(bits.trailing_zeros());
                self.add_integer(min.wrapping_add(place));
                bits &= bits - 1;
            }
        }
    }

    fn add_plain<T: ArrowNativeType>(
        &mut self,
        chunk: &ColumnChunk,
        plain: &Plain<T>,
        hash: impl Fn(T) -> u64,
    ) {
        match plain {
            Plain::Constant(value) => self.add(hash(*value)),
            Plain::Values(values) => {
                for (row, value) in values.iter().enumerate() {
                    if chunk.validity.is_valid(row) {
                        self.add(hash(*value));
                    }
                }
            }
        }
    }

    fn add_strings<T: StringKind>(
        &mut self,
        chunk: &ColumnChunk,
        strings: &Strings<T>,
        array: Option<&dyn Array>,
    ) {
        let gathered;
        let array = match strings {
            Strings::Constant(array) => array,
            // All of them occur.
            Strings::Dictionary { strings, .. } => strings,
            Strings::Values(array) => array,
            Strings::Compressed(_) if let Some(array) = array => array.as_byte_view(),
            Strings::Compressed(compressed) => {
                let all = Selection::all(chunk.rows);
                let nulls = chunk.gather_validity(&all);
                gathered = compressed.gather::<T>(Isa::best(), &all, chunk.rows, nulls);
                &gathered
            }
        };
        for string in array.iter().flatten() {
            self.add(XxHash3_64::oneshot(string.as_ref()));
        }
    }
}

impl fmt::Debug for DistinctSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hit = self.0.iter().filter(|&&rank| rank > 0).count();
        write!(f, "DistinctSketch({hit} registers)")
    }
}

impl ColumnChunk {
    /// Whether no sketch is needed to count the values: there is one, they are few, or a dictionary counts them.
    pub fn is_counted(&self) -> bool {
        let has_one_value = self.encoding() == Encoding::Constant;
        self.rows < SKETCHED_ROWS
            || has_one_value
            || self.is_coded()
            || self.distinct.get().is_some()
    }

    /// Counts the values, if they are many and nobody has done so. They are counted when they are encoded; only those
    /// that were written by a version that did not count are left.
    pub fn count_values(&self) {
        self.keep_sketch(None);
    }

    /// The same with the array that the chunk was made of.
    pub(crate) fn count_values_of(&self, array: &dyn Array) {
        self.keep_sketch(Some(array));
    }

    fn keep_sketch(&self, array: Option<&dyn Array>) {
        if !self.is_counted()
            && let Some(sketch) = DistinctSketch::of(self, array)
        {
            // Whoever counts them at the same time comes to the same.
            let _ = self.distinct.set(sketch);
        }
    }
}

/// How many distinct values there are in some chunks of a column.
#[derive(Clone, Debug)]
pub struct DistinctCount(DistinctSketch);

impl Default for DistinctCount {
    fn default() -> Self {
        DistinctCount(DistinctSketch::new())
    }
}

impl DistinctCount {
    /// Adds the values of a chunk. Says whether they are counted now: codes are not, nor are many values that
    /// [nobody has counted](ColumnChunk::count_values).
    pub fn add(&mut self, chunk: &ColumnChunk) -> bool {
        let known = chunk.distinct.get();
        let of_values = match known {
            None if chunk.is_counted() => DistinctSketch::of(chunk, None),
            _ => None,
        };
        let sketch = known.or(of_values.as_ref());
        if let Some(sketch) = sketch {
            self.add_sketch(sketch);
        }
        sketch.is_some()
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &DistinctCount) {
        self.add_sketch(&other.0);
    }

    fn add_sketch(&mut self, sketch: &DistinctSketch) {
        for (greatest, rank) in self.0.0.iter_mut().zip(sketch.registers()) {
            *greatest = (*greatest).max(*rank);
        }
    }

    /// The estimate.
    pub fn count(&self) -> u64 {
        let sketch = HllSketch::deserialize(&self.image()).expect("an image of a sketch");
        sketch.composite_estimate().round() as u64
    }

    /// The registers as DataSketches stores them: its form HLL_8, whose values came in no known order.
    fn image(&self) -> Vec<u8> {
        let registers = self.0.registers();
        let sum = |ranks: std::ops::Range<u8>| -> f64 {
            let ranks = registers.iter().filter(|rank| ranks.contains(rank));
            ranks.map(|&rank| (-f64::from(rank)).exp2()).sum()
        };
        let zeros = registers.iter().filter(|&&rank| rank == 0).count() as u32;
        // Words before the data, version, family, registers, nothing, out of order, least rank, HLL with 8 bits.
        let head = [10, 1, 7, LG_REGISTERS, 0, 16, 0, 2 | 2 << 2];
        let sums = [0.0, sum(0..32), sum(32..u8::MAX)];
        let sums = sums.map(f64::to_le_bytes);
        let counts = [zeros, 0].map(u32::to_le_bytes);
        [
            &head[..],
            sums.as_flattened(),
            counts.as_flattened(),
            registers,
        ]
        .concat()
    }
}

/// All integers, in the order of their rows. The slot of a NULL repeats another one.
fn for_each(chunk: &ColumnChunk, mut f: impl FnMut(i64)) {
    let (isa, all) = (Isa::best(), Selection::all(chunk.rows));
    match &chunk.data {
        Data::Integers(integers) => {
            integers.for_each(isa, &all, |values| {
                values.iter().for_each(|&value| f(value))
            });
        }
        Data::Ordinals {
            ordinals, order, ..
        } => ordinals.for_each(isa, &all, |places| {
            places
                .iter()
                .for_each(|&place| f(order.keys()[place as usize]));
        }),
        _ => {}
    }
}

/// The hash of a word: the last steps of MurmurHash3, of a word that is not 0 for 0.
#[inline(always)]
fn mixed(word: u64) -> u64 {
    let mut word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All the way from no value to a billion.
    #[test]
    fn estimates_of_all_sizes() {
        let mut count = DistinctCount::default();
        let mut next = 0;
        let mut error_squares = 0.0;
        let sizes: Vec<u64> = (0..=90).map(|step| 1.2f64.powi(step) as u64).collect();
        for &size in &sizes {
            (next..size).for_each(|value| count.0.add_integer(value as i64));
            next = size;
            let error = (count.count() as f64 - size as f64) / size as f64;
            assert!(
                error.abs() < 0.13 || size < 8,
                "{} of {size}",
                count.count()
            );
            error_squares += error * error;
        }
        let deviation = (error_squares / sizes.len() as f64).sqrt();
        assert!(deviation < 0.045, "{deviation}");
    }
}
