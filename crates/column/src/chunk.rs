//! One column of a chunk: encoded values, validity, zone.

use crate::data::{Data, Integers, Plain};
use crate::dictionary::Dictionary;
use crate::distinct::DistinctSketch;
use crate::domain::Domain;
use crate::encoding::Encoding;
use crate::floats::TotalOrder;
use crate::strings::StringKind;
use crate::validity::Validity;
use crate::value::ColumnValue;
use crate::zone::Zone;
use arrow_array::types::StringViewType;
use arrow_buffer::ArrowNativeType;
use eris_numa::Extent;
use eris_types::Code;
use std::sync::OnceLock;

/// Up to [`CHUNK_ROWS`](crate::CHUNK_ROWS) values of one column, encoded and immutable, in node-local memory. Made by
/// [`ColumnChunk::encode`].
#[derive(Debug)]
pub struct ColumnChunk {
    pub(crate) rows: usize,
    pub(crate) zone: Zone,
    pub(crate) data: Data,
    pub(crate) validity: Validity,
    /// Of chunks with many rows, if somebody has counted their values. Written once.
    pub(crate) distinct: OnceLock<DistinctSketch>,
}

impl ColumnChunk {
    /// Asks for the first lines of the data, if they are integers or codes, without waiting for them: whoever does so
    /// before its turn finds them there.
    pub fn prefetch(&self) {
        match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => integers.prefetch(),
            Data::Ordinals { ordinals, .. } => ordinals.prefetch(),
            Data::Float32(_)
            | Data::Float64(_)
            | Data::Wide(_)
            | Data::Strings(_)
            | Data::Bytes(_) => {}
        }
    }

    /// Number of rows, NULLs included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of node-local memory that values and validity take.
    pub fn bytes(&self) -> usize {
        let values = match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => integers.bytes(),
            Data::Ordinals { ordinals, .. } => ordinals.bytes(),
            Data::Float32(plain) => plain.bytes(),
            Data::Float64(plain) => plain.bytes(),
            Data::Wide(plain) => plain.bytes(),
            Data::Strings(text) => text.bytes(),
            Data::Bytes(bytes) => bytes.bytes(),
        };
        values + self.validity.bytes()
    }

    /// The memory that these bytes lie in.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => integers.extents(all),
            Data::Ordinals { ordinals, .. } => ordinals.extents(all),
            Data::Float32(plain) => plain.extents(all),
            Data::Float64(plain) => plain.extents(all),
            Data::Wide(plain) => plain.extents(all),
            Data::Strings(text) => text.extents(all),
            Data::Bytes(bytes) => bytes.extents(all),
        }
        self.validity.extents(all);
    }

    /// Number of NULLs.
    pub fn nulls(&self) -> usize {
        self.zone.nulls
    }

    /// What the values are.
    pub fn domain(&self) -> Domain {
        match &self.data {
            Data::Integers(_) | Data::Ordinals { .. } => Domain::Integer,
            Data::Codes(_) | Data::Strings(_) => Domain::String,
            Data::Bytes(_) => Domain::Bytes,
            Data::Float32(_) => Domain::Float32,
            Data::Float64(_) => Domain::Float64,
            Data::Wide(_) => Domain::Wide,
        }
    }

    /// Whether this is text stored as dictionary codes.
    pub fn is_coded(&self) -> bool {
        matches!(self.data, Data::Codes(_))
    }

    /// How the values are encoded.
    pub fn encoding(&self) -> Encoding {
        match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => integers.encoding(),
            Data::Ordinals { ordinals, .. } => ordinals.encoding(),
            Data::Float32(Plain::Constant(_))
            | Data::Float64(Plain::Constant(_))
            | Data::Wide(Plain::Constant(_)) => Encoding::Constant,
            Data::Float32(_) | Data::Float64(_) | Data::Wide(_) => Encoding::Plain,
            Data::Strings(text) => text.encoding(),
            Data::Bytes(bytes) => bytes.encoding(),
        }
    }

    /// NULLs and range of the values.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The value of one row. `dictionary` is needed for coded text only.
    ///
    /// # Panics
    /// If there is no such row, or no dictionary (or too old a version) for coded text.
    pub fn get(&self, row: usize, dictionary: Option<&Dictionary>) -> ColumnValue {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if !self.validity.is_valid(row) {
            return ColumnValue::Null;
        }
        match &self.data {
            Data::Integers(integers) => ColumnValue::Integer(integers.get(row)),
            Data::Ordinals {
                ordinals, order, ..
            } => ColumnValue::Integer(order.keys()[ordinals.get(row) as usize]),
            Data::Codes(integers) => {
                let code = Code(integers.get(row) as u32);
                let text = dictionary.expect("text is coded").get(code);
                ColumnValue::String(text.expect("the dictionary has all codes").to_owned())
            }
            Data::Float32(plain) => ColumnValue::Float32(plain.get(row)),
            Data::Float64(plain) => ColumnValue::Float64(plain.get(row)),
            Data::Wide(plain) => ColumnValue::Wide(plain.get(row)),
            Data::Strings(text) => StringViewType::value(text.get(row)),
            Data::Bytes(bytes) => ColumnValue::Bytes(bytes.get(row)),
        }
    }
}

impl Integers {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Integers::Constant(_) => 0,
            Integers::Packed(packed) => packed.bytes(),
            Integers::Runs(runs) => runs.bytes(),
            Integers::ShortRuns(runs) => runs.bytes(),
            Integers::Framed(framed) => framed.bytes(),
        }
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        match self {
            Integers::Constant(_) => {}
            Integers::Packed(packed) => packed.extents(all),
            Integers::Runs(runs) => runs.extents(all),
            Integers::ShortRuns(runs) => runs.extents(all),
            Integers::Framed(framed) => framed.extents(all),
        }
    }

    fn encoding(&self) -> Encoding {
        match self {
            Integers::Constant(_) => Encoding::Constant,
            Integers::Packed(packed) => Encoding::Packed {
                width: packed.width(),
            },
            Integers::Runs(runs) => Encoding::RunLength {
                width: runs.width(),
                runs: runs.runs(),
            },
            Integers::ShortRuns(runs) => Encoding::ShortRuns {
                width: runs.width(),
                runs: runs.runs(),
            },
            Integers::Framed(framed) if framed.is_delta() => Encoding::Delta {
                width: framed.width(),
            },
            Integers::Framed(framed) => Encoding::Framed {
                width: framed.width(),
            },
        }
    }

    pub(crate) fn get(&self, row: usize) -> i64 {
        match self {
            Integers::Constant(value) => *value,
            Integers::Packed(packed) => packed.get(row),
            Integers::Runs(runs) => runs.get(row),
            Integers::ShortRuns(runs) => runs.get(row),
            Integers::Framed(framed) => framed.get(row),
        }
    }
}

impl<T: ArrowNativeType> Plain<T> {
    fn bytes(&self) -> usize {
        match self {
            Plain::Constant(_) => 0,
            Plain::Values(values) => values.inner().len(),
        }
    }

    fn extents(&self, all: &mut Vec<Extent>) {
        if let Plain::Values(values) = self {
            all.push(Extent::of(values));
        }
    }

    pub(crate) fn get(&self, row: usize) -> T {
        match self {
            Plain::Constant(value) => *value,
            Plain::Values(values) => values[row],
        }
    }
}

/// Least and greatest of floats, by their keys.
pub(crate) fn float_range<T: TotalOrder>(min: i64, max: i64) -> crate::zone::ZoneRange {
    crate::zone::ZoneRange::Float(T::from_key(min).widen(), T::from_key(max).widen())
}
