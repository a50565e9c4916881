//! Keys of rows, as codes of 64 bits.
//!
//! ```text
//! keys that are integers     k1 - least │ k2 - least       side by side, each in the bits that the build side's span
//! other keys                 a hash of all                 equal codes are compared again
//! ```
//!
//! A row of the probe side with a value that the build side's do not span has no match, and no code.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes_with_hasher};
use datafusion::common::{NullEquality, Result, internal_err};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::joins::utils::JoinKeyComparator;
use eris_fragment::integer_keys;
use eris_join::{NO_KEY, Pairs};

/// Bits of a code, one less than it has: no key is [`NO_KEY`].
const BITS: u32 = u64::BITS - 1;

/// The keys of a batch.
#[derive(Debug)]
pub(super) struct BatchKeys {
    pub arrays: Vec<ArrayRef>,
    pub rows: usize,
}

/// Integers from one to another; none if the first is greater.
pub(super) type Span = (i64, i64);

impl BatchKeys {
    pub fn evaluate(keys: &[PhysicalExprRef], batch: &RecordBatch) -> Result<Self> {
        let rows = batch.num_rows();
        let arrays = keys
            .iter()
            .map(|key| key.evaluate(batch)?.into_array(rows))
            .collect::<Result<Vec<_>>>()?;
        Ok(BatchKeys { arrays, rows })
    }

    /// The range of each key, if all are integers.
    pub fn ranges(&self) -> Option<Vec<Span>> {
        let range = |array: &ArrayRef| {
            let values = integers(array)?;
            let nothing = (i64::MAX, i64::MIN);
            let wider = |(low, high): Span, value: i64| (low.min(value), high.max(value));
            let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
            Some(match nulls {
                None => values.iter().copied().fold(nothing, wider),
                Some(nulls) => {
                    let valid = nulls.valid_indices();
                    valid.map(|row| values[row]).fold(nothing, wider)
                }
            })
        };
        self.arrays.iter().map(range).collect()
    }
}

/// The values of an array as integers. Those of 8 bytes are not copied.
pub(super) fn integers(array: &ArrayRef) -> Option<ScalarBuffer<i64>> {
    match array.data_type() {
        DataType::Int64 => Some(array.as_primitive::<Int64Type>().values().clone()),
        _ => Some(ScalarBuffer::from(integer_keys(array)?)),
    }
}

/// How keys become codes.
#[derive(Debug)]
pub(super) enum Coding {
    Packed(Vec<PackedKey>),
    Hashed(QualityRandomState),
}

/// The place of a key in a code.
#[derive(Debug)]
pub(super) struct PackedKey {
    range: Span,
    shift: u32,
}

impl Coding {
    /// For keys of these ranges, if they are integers.
    pub fn new(ranges: Option<Vec<Span>>) -> Self {
        let mut bits = 0;
        let mut packed = Vec::new();
        for (low, high) in ranges.unwrap_or_default() {
            let width = if low > high { 0 } else { high.abs_diff(low) };
            packed.push(PackedKey {
                range: (low, high),
                shift: bits,
            });
            bits += u64::BITS - width.leading_zeros();
        }
        match packed.is_empty() || bits > BITS {
            true => Coding::Hashed(QualityRandomState::with_seed(0)),
            false => Coding::Packed(packed),
        }
    }

    /// Whether equal codes are equal keys.
    pub fn is_exact(&self) -> bool {
        matches!(self, Coding::Packed(_))
    }

    /// The greatest code that the build side may have, if it is known.
    pub fn span(&self) -> Option<u64> {
        match self {
            Coding::Packed(packed) => Some(packed.iter().fold(0, |span, key| span | key.span())),
            Coding::Hashed(_) => None,
        }
    }

    /// The codes of a batch's rows.
    pub fn codes(&self, keys: &BatchKeys) -> Result<Vec<u64>> {
        let mut codes = vec![0; keys.rows];
        match self {
            Coding::Packed(packed) => {
                for (key, array) in packed.iter().zip(&keys.arrays) {
                    let Some(values) = integers(array) else {
                        return internal_err!("keys of both sides differ in type");
                    };
                    key.add(&values, &mut codes);
                }
            }
            Coding::Hashed(state) => {
                create_hashes_with_hasher(&keys.arrays, state, &mut codes)?;
                for code in &mut codes {
                    *code -= u64::from(*code == NO_KEY);
                }
            }
        }
        let nulls = keys.arrays.iter().filter_map(|key| key.logical_nulls());
        for nulls in nulls.filter(|nulls: &NullBuffer| nulls.null_count() > 0) {
            let valid = nulls.iter();
            for (code, _) in codes.iter_mut().zip(valid).filter(|(_, valid)| !valid) {
                *code = NO_KEY;
            }
        }
        Ok(codes)
    }
}

impl PackedKey {
    /// What the key adds to a code at most.
    fn span(&self) -> u64 {
        let (low, high) = self.range;
        if low > high {
            0
        } else {
            high.abs_diff(low) << self.shift
        }
    }

    /// Adds the values to codes.
    fn add(&self, values: &[i64], codes: &mut [u64]) {
        let (low, high) = self.range;
        for (code, &value) in codes.iter_mut().zip(values) {
            let is_key = low <= value && value <= high;
            let distance = (value.wrapping_sub(low) as u64) << self.shift;
            *code = if is_key { *code | distance } else { NO_KEY };
        }
    }
}

/// Keeps the pairs whose keys are equal.
pub(super) fn retain_equal(
    pairs: &mut Pairs,
    build: &[ArrayRef],
    probe: &[ArrayRef],
) -> Result<()> {
    if let ([build], [probe]) = (build, probe)
        && let (DataType::Utf8View, DataType::Utf8View) = (build.data_type(), probe.data_type())
    {
        let (build, probe) = (build.as_string_view(), probe.as_string_view());
        pairs.retain(|_, of_probe, of_build| {
            probe.value(of_probe as usize) == build.value(of_build as usize)
        });
        return Ok(());
    }
    // Only what is compared: a comparison of whole arrays begins with a look at all of them.
    let taken = |arrays: &[ArrayRef], rows: &[u32]| {
        let rows = UInt32Array::from(rows.to_vec());
        let taken = arrays.iter().map(|array| Ok(take(array, &rows, None)?));
        taken.collect::<Result<Vec<_>>>()
    };
    let build = taken(build, &pairs.build)?;
    let probe = taken(probe, &pairs.probe)?;
    let options = vec![SortOptions::default(); build.len()];
    let nothing = NullEquality::NullEqualsNothing;
    let keys = JoinKeyComparator::new(&build, &probe, &options, nothing)?;
    pairs.retain(|pair, _, _| keys.is_equal(pair, pair));
    Ok(())
}
