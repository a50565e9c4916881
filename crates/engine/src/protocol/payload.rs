//! What a parcel leads to that its receiver reads from the sender's memory, in bytes: rows, keys, strings. What both
//! share anyway (an object, a run, a statement) does not count, nor what is little beside the command itself.

use super::answers::{
    Batch, End, Frozen, Indexes, KeysDone, LocatedParts, OfferedChunks, OfferedKeys, Panicked,
    Rejected, RowsDone, Segments,
};
use super::keys::{ExecuteKeys, ExecuteRows, HandOver, MoveOut, TransferAcknowledged};
use super::objects::{Build, Recode};
use super::rows::{RowBatch, RowOperation};
use super::runs::{Repartition, RepartitionEnd, Scan};
use super::statements::{
    Adopt, AdoptKeys, Check, Commit, Delete, Insert, Intern, Interned, OfferKeys,
};
use crate::held::partition::New;
use crate::key_index::batch::{KeyBatch, Rest};
use crate::key_index::measure::Measurement;
use crate::key_index::transfer::{Handed, MovedOut};
use crate::object::keys::Keys;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

/// A message that is a parcel.
pub(crate) trait Payload {
    fn bytes(&self) -> u64 {
        0
    }
}

/// The bytes of these rows alone: the arrays may be parts of larger ones.
fn of_array(array: &ArrayRef) -> u64 {
    let rows = array.len();
    if let Some(width) = array.data_type().primitive_width() {
        // Most are of this kind. The general way makes a copy of what the array says of itself.
        let nulls = array.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
        return (width * rows + nulls) as u64;
    }
    let bytes = match array.data_type() {
        // Views lead to bytes elsewhere, unless they have them in themselves.
        DataType::Utf8View => 16 * rows + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => 16 * rows + array.as_binary_view().total_buffer_bytes_used(),
        _ => (array.to_data().get_slice_memory_size())
            .unwrap_or_else(|_| array.get_array_memory_size()),
    };
    bytes as u64
}

fn of_arrays(arrays: &[ArrayRef]) -> u64 {
    arrays.iter().map(of_array).sum()
}

fn of_rows(rows: &RecordBatch) -> u64 {
    of_arrays(rows.columns())
}

fn of_keys(keys: &Keys) -> u64 {
    let bytes = match keys {
        Keys::Words(words) => size_of_val(&**words),
        Keys::Bytes(bytes, ends) => bytes.len() + size_of_val(&**ends),
    };
    bytes as u64
}

impl RowBatch {
    fn bytes(&self) -> u64 {
        match &self.operation {
            RowOperation::Get(keys, _) => of_keys(keys),
            RowOperation::Found(Some(found)) => {
                of_arrays(&found.columns) + size_of_val(&*found.ids) as u64
            }
            RowOperation::Change(change) => {
                let new = match &change.new {
                    New::Rows(rows) => of_rows(rows),
                    New::Nothing | New::Computed(_) => 0,
                };
                of_keys(&change.keys) + new
            }
            RowOperation::Prepare(prepare) => {
                of_keys(&prepare.keys) + prepare.rows.as_ref().map_or(0, of_rows)
            }
            RowOperation::Range(..)
            | RowOperation::Found(None)
            | RowOperation::Changed(_)
            | RowOperation::Prepared(_)
            | RowOperation::Gone => 0,
        }
    }
}

impl KeyBatch {
    fn bytes(&self) -> u64 {
        let rest = match &self.rest {
            Rest::All => 0,
            Rest::Positions(positions) => size_of_val(&**positions),
            Rest::Reads(reads) => size_of_val(&**reads),
        };
        let lists = size_of_val(&*self.keys) + size_of_val(&*self.entries);
        (lists + size_of_val(&*self.values) + rest) as u64
    }
}

macro_rules! payloads {
    ($($name:ident($self:ident) $bytes:expr;)*) => {
        $(impl Payload for $name {
            fn bytes(&$self) -> u64 {
                $bytes
            }
        })*
    };
}

macro_rules! without_payload {
    ($($name:ident),* $(,)?) => {
        $(impl Payload for $name {})*
    };
}

payloads! {
    Insert(self) self.batches.iter().map(of_rows).sum();
    Delete(self) size_of_val(&*self.ids) as u64;
    Intern(self) self.0.values.iter().map(|value| value.len() as u64).sum();
    Repartition(self) self.reserved.bytes();
    ExecuteRows(self) self.0.bytes();
    RowsDone(self) self.0.bytes();
    ExecuteKeys(self) self.0.bytes();
    KeysDone(self) self.0.bytes();
    HandOver(self) match &self.what {
        Handed::Piece { piece, .. } => size_of_val(&*piece.entries) as u64,
        Handed::Batch(batch) => batch.bytes(),
        Handed::Link(_) | Handed::GiveUp | Handed::Again { .. } => 0,
    };
    Batch(self) of_rows(&self.0);
}

without_payload!(
    // Its new owner counts what it copies, for the chunk comes from the former one.
    Adopt,
    // These stay within a node.
    OfferKeys,
    AdoptKeys,
    OfferedKeys,
    Check,
    Commit,
    Interned,
    Scan,
    RepartitionEnd,
    MoveOut,
    TransferAcknowledged,
    Build,
    Recode,
    Rejected,
    Panicked,
    End,
    MovedOut,
    Measurement,
    OfferedChunks,
    Segments,
    Frozen,
    LocatedParts,
    Indexes,
);

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Int64Array, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn parts_of_arrays_count_for_themselves() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        assert_eq!(of_array(&numbers.slice(7, 10)), 80);
        let some: Int64Array = (0..1_000).map(|n| (n % 3 != 0).then_some(n)).collect();
        let some: ArrayRef = Arc::new(some);
        assert_eq!(of_array(&some.slice(7, 10)), 80 + 2);
        let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1_000]));
        assert_eq!(of_array(&bits.slice(8, 10)), 2);
        let texts = (0..1_000).map(|n| format!("{n:020}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        assert_eq!(of_array(&texts.slice(7, 10)), 10 * (16 + 20));
    }
}
