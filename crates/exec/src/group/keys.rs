//! Group keys as fixed-width words, whatever their types.
//!
//! ```text
//! GROUP BY d_year (INTEGER), p_brand1 (VARCHAR), lo_price (BIGINT)
//!
//!   fields    d_year 32 bits    p_brand1 32 bits (its code)    lo_price 64 bits    one bit per key: is it NULL?
//!   words    ┌─ p_brand1 ── d_year ─┐  ┌────── lo_price ──────┐  ┌── … n n n ┐
//!            └ 63 ─── 32 ─ 31 ─── 0 ┘  └──────────────────────┘  └───────────┘
//! ```
//!
//! A field never crosses words. That of a NULL is 0, so equal keys have equal words. A string is its dictionary's code,
//! or one from an [`Interner`] where there is none; a float is its bits, with both zeros made one; a wide decimal takes
//! two fields.

use super::input::Window;
use super::interner::Interner;
use crate::columns::FragmentColumns;
use crate::expr::Expression;
use crate::lookup::Combinations;
use crate::values::{Values, values};
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use eris_column::Domain;
use eris_fragment::{Expr, FragmentError, Type};

/// The keys of a grouping and how they are packed.
#[derive(Debug)]
pub(crate) struct GroupKeys {
    /// Those of the fragment itself, and one for all columns of each lookup.
    pub(crate) keys: Vec<GroupKey>,
    /// Per key of the grouping, where it is found.
    pub(crate) parts: Vec<KeyPart>,
    pub(crate) fields: Vec<KeyField>,
    /// Words of a packed key.
    pub(crate) words: usize,
    /// Whether each key is one field that counts something, so that a dense table may do.
    pub(crate) countable: bool,
}

#[derive(Debug)]
pub(crate) struct GroupKey {
    pub(crate) source: KeySource,
    pub(crate) domain: Domain,
    /// The first of its fields.
    pub(crate) field: usize,
    /// Where its NULL bit lies.
    pub(crate) null: BitPlace,
}

/// A key of the grouping as part of one of [`GroupKeys::keys`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyPart {
    pub(crate) key: usize,
    /// Of a lookup's: which column of the combination.
    pub(crate) column: usize,
}

/// Where a key's values come from.
#[derive(Debug)]
pub(crate) enum KeySource {
    Expression(Expression),
    Joined(Combinations),
}

/// A number inside a packed key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyField {
    pub(crate) place: BitPlace,
    /// 1 to 64.
    bits: u32,
    signed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BitPlace {
    pub(crate) word: usize,
    pub(crate) shift: u32,
}

impl KeyField {
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

impl BitPlace {
    pub(crate) fn is_set(self, words: &[u64]) -> bool {
        words[self.word] >> self.shift & 1 == 1
    }
}

/// First fit, without crossing words.
#[derive(Default)]
struct Packer(Vec<u32>);

impl Packer {
    fn place(&mut self, bits: u32) -> BitPlace {
        let free = self.0.iter().position(|&used| used + bits <= 64);
        let word = free.unwrap_or_else(|| {
            self.0.push(0);
            self.0.len() - 1
        });
        let shift = self.0[word];
        self.0[word] += bits;
        BitPlace { word, shift }
    }
}

impl GroupKeys {
    pub(crate) fn compile(
        exprs: &[Expr],
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
        let mut packer = Packer::default();
        let mut fields = Vec::new();
        let mut keys = Vec::new();
        let (sources, parts) = sources(exprs, columns)?;
        for source in sources {
            let (domain, (bits, signed)) = match &source {
                KeySource::Expression(Expression { data_type, .. }) => {
                    let domain = Domain::of(data_type).expect("a type of the language");
                    if !Type::try_from(data_type).is_ok_and(|of| of.is_grouped()) {
                        return Err(FragmentError::Malformed {
                            reason: "groups by values of a type that is not grouped",
                        });
                    }
                    (domain, width(data_type))
                }
                KeySource::Joined(_) => (Domain::Integer, (u32::BITS, false)),
            };
            let field = fields.len();
            for _ in 0..if domain == Domain::Wide { 2 } else { 1 } {
                let place = packer.place(bits);
                fields.push(KeyField {
                    place,
                    bits,
                    signed,
                });
            }
            let null = BitPlace { word: 0, shift: 0 };
            keys.push(GroupKey {
                source,
                domain,
                field,
                null,
            });
        }
        for key in &mut keys {
            key.null = packer.place(1);
        }
        Ok(GroupKeys {
            countable: keys
                .iter()
                .all(|key| matches!(key.domain, Domain::Integer | Domain::String)),
            keys,
            parts,
            fields,
            words: packer.0.len(),
        })
    }

    /// The type of a key of the grouping.
    pub(crate) fn data_type(&self, part: KeyPart) -> &DataType {
        match &self.keys[part.key].source {
            KeySource::Expression(expression) => &expression.data_type,
            KeySource::Joined(combinations) => combinations.arrays[part.column].data_type(),
        }
    }

    /// The fields' values for the rows of a window, and the validity of each key.
    pub(crate) fn load(
        &self,
        window: &mut Window<'_>,
        interners: &mut [Interner],
    ) -> Result<(Vec<FieldValues>, Vec<Option<NullBuffer>>), FragmentError> {
        let mut fields = Vec::with_capacity(self.fields.len());
        let mut nulls = Vec::with_capacity(self.keys.len());
        for (key, interner) in self.keys.iter().zip(interners) {
            let expression = match &key.source {
                KeySource::Expression(expression) => expression,
                KeySource::Joined(combinations) => {
                    fields.push(FieldValues::Computed(window.combinations(combinations)));
                    nulls.push(None);
                    continue;
                }
            };
            if let Some(column) = expression.as_column() {
                let stored = match key.domain {
                    Domain::Integer => true,
                    Domain::String => window.is_coded(column),
                    _ => false,
                };
                if stored {
                    window.load_integers(column);
                    fields.push(FieldValues::Column(column));
                    nulls.push(window.validity(column));
                    continue;
                }
                if matches!(key.domain, Domain::Float32 | Domain::Float64) {
                    let floats = window.floats(column);
                    fields.push(FieldValues::Computed(bits_of(&floats)));
                    nulls.push(window.validity(column));
                    continue;
                }
            }
            let array = window.evaluate(expression)?;
            match values(&array) {
                Values::Integers(values) => fields.push(FieldValues::Computed(values.into_owned())),
                Values::Floats(floats) => fields.push(FieldValues::Computed(bits_of(&floats))),
                Values::Wide(values) if key.domain == Domain::Integer => {
                    // Decimals of up to 18 digits.
                    let values = values.iter().map(|&value| value as i64);
                    fields.push(FieldValues::Computed(values.collect()));
                }
                Values::Wide(values) => {
                    let low = values.iter().map(|&value| value as i64).collect();
                    let high = values.iter().map(|&value| (value >> 64) as i64).collect();
                    fields.extend([FieldValues::Computed(low), FieldValues::Computed(high)]);
                }
                Values::Strings(strings) => {
                    let dictionary = dictionary(key, window.columns);
                    let mut codes = Vec::with_capacity(strings.len());
                    interner.codes(&strings, dictionary, &mut codes);
                    fields.push(FieldValues::Computed(codes));
                }
                Values::Codes(..) => unreachable!("an array holds no codes"),
                Values::Bytes(..) => unreachable!("no groups by bytes"),
            }
            nulls.push(
                array
                    .nulls()
                    .filter(|nulls| nulls.null_count() > 0)
                    .cloned(),
            );
        }
        Ok((fields, nulls))
    }
}

/// The dictionary in whose codes a key is expressed, if there is one.
pub(super) fn dictionary<'a>(
    key: &GroupKey,
    columns: &'a FragmentColumns,
) -> Option<&'a eris_column::Dictionary> {
    match &key.source {
        KeySource::Expression(expression) => columns.dictionaries[expression.as_column()?].as_ref(),
        KeySource::Joined(_) => None,
    }
}

/// What keys come from, and for each expression which of these, and which part of it.
fn sources(
    exprs: &[Expr],
    columns: &FragmentColumns,
) -> Result<(Vec<KeySource>, Vec<KeyPart>), FragmentError> {
    let mut sources = Vec::new();
    let mut parts = vec![KeyPart::default(); exprs.len()];
    let mut chosen = vec![Vec::new(); columns.lookups.all.len()];
    for (at, expr) in exprs.iter().enumerate() {
        if let Expr::Column(column) = expr
            && let Some((lookup, joined)) = columns.joined(*column)
        {
            chosen[lookup].push((at, joined));
            continue;
        }
        parts[at].key = sources.len();
        sources.push(KeySource::Expression(Expression::compile(expr, columns)?));
    }
    let lookups = columns.lookups.all.iter().enumerate();
    for ((own, lookup), chosen) in lookups.zip(&chosen) {
        if chosen.is_empty() {
            continue;
        }
        for (column, &(at, _)) in chosen.iter().enumerate() {
            let key = sources.len();
            parts[at] = KeyPart { key, column };
        }
        let joined: Vec<usize> = chosen.iter().map(|&(_, joined)| joined).collect();
        sources.push(KeySource::Joined(
            lookup.combinations(own, &joined, columns),
        ));
    }
    Ok((sources, parts))
}

/// The values of one field: those of a column that the window has loaded, or others.
pub(crate) enum FieldValues {
    Column(usize),
    Computed(Vec<i64>),
}

impl FieldValues {
    pub(crate) fn of<'a>(&'a self, window: &'a Window<'_>) -> &'a [i64] {
        match self {
            FieldValues::Column(column) => window.integers(*column),
            FieldValues::Computed(values) => values,
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

/// Bits of a field, and whether its values are signed.
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
