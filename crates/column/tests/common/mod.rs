//! Arrays made from a seed, so that a failing case is a handful of numbers, with the values they were made of as
//! oracle.

#![allow(dead_code, reason = "each test program uses its part")]

use arrow_array::types::*;
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};
use eris_column::{Dictionary, ObjectMemory, Selection};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_types::{NodeId, ObjectId};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

pub mod forms;

pub const OBJECT: ObjectId = ObjectId(7);

pub static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
    Memory::new(&Topology::fake(1, 1), HugePages::Never, None).expect("node memory")
});

pub static NODE: LazyLock<NodeMemory> = LazyLock::new(|| MEMORY.node(NodeId(0)));

pub fn home() -> ObjectMemory<'static> {
    ObjectMemory {
        memory: &NODE,
        object: OBJECT,
    }
}

/// A small generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number from an inclusive range.
    pub fn within(&mut self, low: i128, high: i128) -> i128 {
        let span = (high - low) as u128;
        let bits = (self.next() as u128) << 64 | self.next() as u128;
        low + (if span == u128::MAX {
            bits
        } else {
            bits % (span + 1)
        }) as i128
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// How many rows, how they repeat, and how many are NULL.
#[derive(Clone, Debug)]
pub struct Shape {
    pub seed: u64,
    pub rows: usize,
    /// Distinct values at most; 0 for no limit.
    pub distinct: usize,
    /// Length of runs on average.
    pub run: u64,
    /// NULLs per thousand.
    pub nulls: u64,
    /// How integers follow each other.
    pub order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    None,
    Rising,
    Falling,
    /// Rising in pieces of so many rows, between which they jump.
    Pieces(usize),
    /// Each some steps from the one before.
    Close,
}

pub fn shapes() -> impl Strategy<Value = Shape> {
    let rows = prop_oneof![
        3 => prop::sample::select(vec![0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 2047]),
        4 => 0usize..6000,
        1 => prop::sample::select(vec![65_535, 65_536]),
    ];
    let distinct = prop::sample::select(vec![0, 0, 1, 2, 3, 17, 300]);
    let run = prop::sample::select(vec![1, 1, 3, 100, 500]);
    let nulls = prop::sample::select(vec![0, 0, 1, 500, 990, 1000]);
    let order = prop::sample::select(vec![
        Order::None,
        Order::None,
        Order::Rising,
        Order::Falling,
        Order::Pieces(1500),
        Order::Pieces(4096),
        Order::Close,
    ]);
    (any::<u64>(), rows, distinct, run, nulls, order).prop_map(
        |(seed, rows, distinct, run, nulls, order)| Shape {
            seed,
            rows,
            distinct,
            run,
            nulls,
            order,
        },
    )
}

impl Shape {
    /// The values of the rows, each new one from `fresh`.
    pub fn values<T: Clone>(&self, mut fresh: impl FnMut(&mut Random) -> T) -> Vec<Option<T>> {
        let mut random = Random(self.seed);
        let pool: Vec<T> = (0..self.distinct).map(|_| fresh(&mut random)).collect();
        let mut values = Vec::with_capacity(self.rows);
        let mut current = None;
        for _ in 0..self.rows {
            if current.is_none() || random.below(self.run) == 0 {
                let pooled = !pool.is_empty();
                current = Some(if pooled {
                    random.pick(&pool)
                } else {
                    fresh(&mut random)
                });
            }
            let null = random.below(1000) < self.nulls;
            values.push(current.clone().filter(|_| !null));
        }
        values
    }

    /// Some of the rows.
    pub fn selection(&self, per_thousand: u64) -> Selection {
        let mut random = Random(!self.seed);
        let mut selection = Selection::none(self.rows);
        for row in 0..self.rows {
            if random.below(1000) < per_thousand {
                selection.insert(row);
            }
        }
        selection
    }
}

/// Least and greatest value of each type of the integer domain.
pub fn integer_types() -> Vec<(DataType, i128, i128)> {
    let signed = |bits: u32| (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    let unsigned = |bits: u32| (0, (1i128 << bits) - 1);
    let long = 999_999_999_999_999_999;
    let with = |data_type, (low, high)| (data_type, low, high);
    vec![
        (DataType::Boolean, 0, 1),
        with(DataType::Int8, signed(8)),
        with(DataType::Int16, signed(16)),
        with(DataType::Int32, signed(32)),
        with(DataType::Int64, signed(64)),
        with(DataType::UInt8, unsigned(8)),
        with(DataType::UInt16, unsigned(16)),
        with(DataType::UInt32, unsigned(32)),
        with(DataType::UInt64, unsigned(64)),
        with(DataType::Date32, signed(32)),
        with(DataType::Timestamp(TimeUnit::Second, None), signed(64)),
        with(
            DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            signed(64),
        ),
        with(
            DataType::Timestamp(TimeUnit::Microsecond, Some("+01:00".into())),
            signed(64),
        ),
        with(DataType::Timestamp(TimeUnit::Nanosecond, None), signed(64)),
        (DataType::Decimal128(18, 2), -long, long),
        (DataType::Decimal128(5, -2), -99_999, 99_999),
    ]
}

/// Values of a type with these bounds: everywhere, at the ends, or from a window that takes `bits` bits.
pub fn integers(shape: &Shape, low: i128, high: i128, bits: u32) -> Vec<Option<i128>> {
    let window = ((1i128 << bits) - 1).min(high - low);
    let start = Random(shape.seed ^ 1).within(low, high - window);
    let mut last = start + window / 2;
    let mut values = shape.values(|random| match (bits, random.below(8)) {
        _ if shape.order == Order::Close => {
            last = (last + random.within(-3, 3)).clamp(start, start + window);
            last
        }
        (64, 0) => low,
        (64, 1) => high,
        _ => random.within(start, start + window),
    });
    let piece = match shape.order {
        Order::None | Order::Close => return values,
        Order::Rising | Order::Falling => shape.rows.max(1),
        Order::Pieces(rows) => rows,
    };
    for piece in values.chunks_mut(piece) {
        // NULLs stay where they are.
        let mut sorted: Vec<i128> = piece.iter().flatten().copied().collect();
        sorted.sort_unstable();
        if shape.order == Order::Falling {
            sorted.reverse();
        }
        for (value, sorted) in piece.iter_mut().flatten().zip(sorted) {
            *value = sorted;
        }
    }
    values
}

/// The array of a type of the integer or wide domain.
pub fn integer_array(data_type: &DataType, values: &[Option<i128>]) -> ArrayRef {
    macro_rules! primitive {
        ($t:ty) => {{
            let values = values.iter().map(|value| value.map(|value| value as _));
            let array: PrimitiveArray<$t> = values.collect();
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    match data_type {
        DataType::Boolean => {
            let values = values.iter().map(|value| value.map(|value| value == 1));
            Arc::new(values.collect::<BooleanArray>())
        }
        DataType::Int8 => primitive!(Int8Type),
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt16 => primitive!(UInt16Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Date32 => primitive!(Date32Type),
        DataType::Timestamp(TimeUnit::Second, _) => primitive!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => primitive!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(TimestampNanosecondType),
        DataType::Decimal128(..) => primitive!(Decimal128Type),
        other => panic!("{other} is no integer"),
    }
}

/// Floats, special ones among them.
pub fn float(random: &mut Random) -> f64 {
    let special = [
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.5,
        -1.5,
    ];
    match random.below(3) {
        0 => random.pick(&special),
        1 => random.within(-50, 50) as f64,
        _ => f64::from_bits(random.next()),
    }
}

/// Single-precision floats, likewise.
pub fn single(random: &mut Random) -> f32 {
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1.5,
        -1.5,
    ];
    match random.below(3) {
        0 => random.pick(&special),
        1 => random.within(-50, 50) as f32,
        _ => f32::from_bits(random.next() as u32),
    }
}

/// Strings: empty, short, at the limit of a view, long, of several bytes a character.
pub fn string(random: &mut Random) -> String {
    let number = random.below(2000);
    match random.below(6) {
        0 => String::new(),
        1 => format!("{number}"),
        2 => format!("{number:012}"),
        3 => format!("{number:013}"),
        4 => format!("größer als zwölf Bytes: {number} 🦀"),
        _ => "é".repeat(number as usize % 40),
    }
}

pub fn string_array(values: &[Option<String>]) -> StringViewArray {
    values.iter().map(Option::as_deref).collect()
}

/// The selected rows as Arrow's mask.
pub fn mask(selection: &Selection) -> BooleanArray {
    let rows = 0..selection.rows();
    rows.map(|row| Some(selection.contains(row))).collect()
}

/// The strings that a dictionary does not have.
pub fn unknown(dictionary: &Dictionary, array: &StringViewArray) -> Vec<String> {
    match dictionary.look_up([array]) {
        Ok(_) => Vec::new(),
        Err(unknown) => unknown.strings().to_vec(),
    }
}
