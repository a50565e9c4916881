//! Group keys as fixed-width words, whatever their types.
//!
//! ```text
//! GROUP BY d_year (INTEGER), p_brand1 (VARCHAR), lo_price (BIGINT)
//!
//!   lanes    d_year 32 bits    p_brand1 32 bits (its code)    lo_price 64 bits    one bit per key: is it NULL?
//!   words    ┌─ p_brand1 ── d_year ─┐  ┌────── lo_price ──────┐  ┌── … n n n ┐
//!            └ 63 ─── 32 ─ 31 ─── 0 ┘  └──────────────────────┘  └───────────┘
//! ```
//!
//! A lane never crosses words. That of a NULL is 0, so equal keys have equal words. Text is its dictionary's code, or one
//! from an [`Interner`] where there is none; a float is its bits, with both zeros made one; a wide decimal takes two lanes.

use super::input::{Values, Window, values};
use super::interner::Interner;
use crate::columns::Columns;
use crate::expr::Expression;
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use eris_column::Domain;
use eris_fragment::{Expr, FragmentError};

/// The keys of a grouping and how they are packed.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<Key>,
    pub(crate) lanes: Vec<Lane>,
    /// Words of a packed key.
    pub(crate) words: usize,
    /// Whether each key is one lane that counts something, so that a dense table may do.
    pub(crate) countable: bool,
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) expression: Expression,
    pub(crate) domain: Domain,
    /// The first of its lanes.
    pub(crate) lane: usize,
    /// Where its NULL bit lies.
    pub(crate) null: Place,
}

/// A number inside a packed key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) place: Place,
    /// 1 to 64.
    bits: u32,
    signed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) shift: u32,
}

impl Lane {
    /// The value's bits, at their place in the word.
    pub(crate) fn pack(&self, value: i64) -> u64 {
        (value as u64 & (u64::MAX >> (64 - self.bits))) << self.place.shift
    }

    pub(crate) fn unpack(&self, words: &[u64]) -> i64 {
        let left = 64 - self.bits;
        let top = words[self.place.word] >> self.place.shift << left;
        match self.signed {
            true => top as i64 >> left,
            false => (top >> left) as i64,
        }
    }
}

impl Place {
    pub(crate) fn is_set(self, words: &[u64]) -> bool {
        words[self.word] >> self.shift & 1 == 1
    }
}

/// First fit, without crossing words.
#[derive(Default)]
struct Packer(Vec<u32>);

impl Packer {
    fn place(&mut self, bits: u32) -> Place {
        let free = self.0.iter().position(|&used| used + bits <= 64);
        let word = free.unwrap_or_else(|| {
            self.0.push(0);
            self.0.len() - 1
        });
        let shift = self.0[word];
        self.0[word] += bits;
        Place { word, shift }
    }
}

impl Keys {
    pub(crate) fn compile(exprs: &[Expr], columns: &Columns) -> Result<Self, FragmentError> {
        let mut packer = Packer::default();
        let mut lanes = Vec::new();
        let mut keys = Vec::new();
        for expr in exprs {
            let expression = Expression::compile(expr, columns)?;
            let domain = Domain::of(&expression.data_type).expect("a type of the language");
            let (bits, signed) = width(&expression.data_type);
            let lane = lanes.len();
            for _ in 0..if domain == Domain::Wide { 2 } else { 1 } {
                let place = packer.place(bits);
                lanes.push(Lane {
                    place,
                    bits,
                    signed,
                });
            }
            let null = Place { word: 0, shift: 0 };
            keys.push(Key {
                expression,
                domain,
                lane,
                null,
            });
        }
        for key in &mut keys {
            key.null = packer.place(1);
        }
        Ok(Keys {
            countable: keys
                .iter()
                .all(|key| matches!(key.domain, Domain::Integer | Domain::Text)),
            keys,
            lanes,
            words: packer.0.len(),
        })
    }

    /// The lanes' values for the rows of a window, and the validity of each key.
    pub(crate) fn load(
        &self,
        window: &mut Window<'_>,
        interners: &mut [Interner],
    ) -> Result<(Vec<LaneValues>, Vec<Option<NullBuffer>>), FragmentError> {
        let mut lanes = Vec::with_capacity(self.lanes.len());
        let mut nulls = Vec::with_capacity(self.keys.len());
        for (key, interner) in self.keys.iter().zip(interners) {
            if let Some(column) = key.expression.as_column() {
                let stored = match key.domain {
                    Domain::Integer => true,
                    Domain::Text => window.is_coded(column),
                    _ => false,
                };
                if stored {
                    window.load_integers(column);
                    lanes.push(LaneValues::Column(column));
                    nulls.push(window.validity(column));
                    continue;
                }
                if key.domain != Domain::Wide && key.domain != Domain::Text {
                    let floats = window.floats(column);
                    lanes.push(LaneValues::Computed(bits_of(&floats)));
                    nulls.push(window.validity(column));
                    continue;
                }
            }
            let array = window.evaluate(&key.expression)?;
            match values(&array) {
                Values::Integers(values) => lanes.push(LaneValues::Computed(values.into_owned())),
                Values::Floats(floats) => lanes.push(LaneValues::Computed(bits_of(&floats))),
                Values::Wide(values) if key.domain == Domain::Integer => {
                    // Decimals of up to 18 digits.
                    let values = values.iter().map(|&value| value as i64);
                    lanes.push(LaneValues::Computed(values.collect()));
                }
                Values::Wide(values) => {
                    let low = values.iter().map(|&value| value as i64).collect();
                    let high = values.iter().map(|&value| (value >> 64) as i64).collect();
                    lanes.extend([LaneValues::Computed(low), LaneValues::Computed(high)]);
                }
                Values::Texts(texts) => {
                    let dictionary = dictionary(key, window.columns);
                    let mut codes = Vec::with_capacity(texts.len());
                    interner.codes(&texts, dictionary, &mut codes);
                    lanes.push(LaneValues::Computed(codes));
                }
                Values::Codes(..) => unreachable!("an array holds no codes"),
            }
            nulls.push(
                array
                    .nulls()
                    .filter(|nulls| nulls.null_count() > 0)
                    .cloned(),
            );
        }
        Ok((lanes, nulls))
    }
}

/// The dictionary in whose codes a key is expressed, if there is one.
pub(super) fn dictionary<'a>(
    key: &Key,
    columns: &'a Columns,
) -> Option<&'a eris_column::Dictionary> {
    columns.dictionaries[key.expression.as_column()?].as_ref()
}

/// The values of one lane: those of a column that the window has loaded, or others.
pub(crate) enum LaneValues {
    Column(usize),
    Computed(Vec<i64>),
}

impl LaneValues {
    pub(crate) fn of<'a>(&'a self, window: &'a Window<'_>) -> &'a [i64] {
        match self {
            LaneValues::Column(column) => window.integers(*column),
            LaneValues::Computed(values) => values,
        }
    }
}

/// The bits of floats, both zeros alike.
fn bits_of(floats: &[f64]) -> Vec<i64> {
    floats
        .iter()
        .map(|&value| (value + 0.0).to_bits() as i64)
        .collect()
}

/// Bits of a lane, and whether its values are signed.
fn width(data_type: &DataType) -> (u32, bool) {
    match data_type {
        DataType::Boolean => (1, false),
        DataType::Int8 => (8, true),
        DataType::Int16 => (16, true),
        DataType::Int32 | DataType::Date32 => (32, true),
        DataType::UInt8 => (8, false),
        DataType::UInt16 => (16, false),
        DataType::UInt32 => (32, false),
        DataType::Decimal128(0..=9, _) => (32, true),
        DataType::Utf8View => (32, false),
        _ => (64, true),
    }
}
