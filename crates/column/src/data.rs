//! The values of a column chunk, in one of the encodings.

use crate::framed::Framed;
use crate::key_order::KeyOrder;
use crate::packed::Packed;
use crate::runs::Runs;
use crate::short_runs::ShortRuns;
use crate::strings::Strings;
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use std::sync::Arc;

/// The values.
#[derive(Debug)]
pub(crate) enum Data {
    Integers(Integers),
    /// Integers as their places in an order, which are within `low..=high`. The zone is that of the integers.
    Ordinals {
        /// Shared by chunks that differ in the order only: see [`KeyOrder::extended`].
        ordinals: Arc<Integers>,
        order: Arc<KeyOrder>,
        low: i64,
        high: i64,
    },
    /// Text as dictionary codes.
    Codes(Integers),
    Float32(Plain<f32>),
    Float64(Plain<f64>),
    Wide(Plain<i128>),
    Strings(Strings<StringViewType>),
    Bytes(Strings<BinaryViewType>),
}

/// Integers of one chunk. The slot of a NULL holds one of the other values, so that all are within the zone's range; if
/// there are only NULLs, the constant 0.
#[derive(Debug)]
pub(crate) enum Integers {
    Constant(i64),
    Packed(Packed),
    Runs(Runs),
    ShortRuns(ShortRuns),
    Framed(Framed),
}

impl Integers {
    pub(crate) fn prefetch(&self) {
        match self {
            Integers::Packed(packed) => packed.prefetch(),
            Integers::ShortRuns(runs) => runs.prefetch(),
            Integers::Constant(_) | Integers::Runs(_) | Integers::Framed(_) => {}
        }
    }
}

/// Numbers as they are; the slot of a NULL holds anything.
#[derive(Debug)]
pub(crate) enum Plain<T: ArrowNativeType> {
    Constant(T),
    Values(ScalarBuffer<T>),
}
