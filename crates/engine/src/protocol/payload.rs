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
use arrow_array::{ArrayRef, RecordBatch};
use eris_fragment::bytes_of;

/// A message that is a parcel.
pub(crate) trait Payload {
    fn bytes(&self) -> u64 {
        0
    }
}

fn of_arrays(arrays: &[ArrayRef]) -> u64 {
    arrays.iter().map(bytes_of).sum()
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
