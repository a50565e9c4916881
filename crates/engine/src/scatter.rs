//! Which AEU a row belongs to.

use crate::object::DataObject;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::DataType;
use arrow_select::take::take_record_batch;
use eris_column::to_integer;
use eris_route::{RangeTable, Split};
use eris_types::AeuId;
use std::sync::Arc;

/// Keys of so many rows are looked at before the first ranges are cut.
const SAMPLE_ROWS: usize = 1 << 20;

/// Splits batches by partition.
pub(crate) struct Scatter {
    object: Arc<DataObject>,
    aeus: usize,
    /// Rows that came before the object had ranges.
    held: Vec<RecordBatch>,
    held_rows: usize,
}

impl Scatter {
    pub fn new(object: &Arc<DataObject>, aeus: usize) -> Self {
        Scatter {
            object: object.clone(),
            aeus,
            held: Vec::new(),
            held_rows: 0,
        }
    }

    /// The parts of a batch with the target of each: an AEU's number by range, always 0 by size.
    pub fn split(&mut self, batch: RecordBatch) -> Vec<(usize, RecordBatch)> {
        if !self.object.is_ranged() {
            return vec![(0, batch)];
        }
        if self.object.ranges.get().is_none() {
            self.held_rows += batch.num_rows();
            self.held.push(batch);
            return if self.held_rows < SAMPLE_ROWS {
                Vec::new()
            } else {
                self.flush()
            };
        }
        let ranges = self.object.ranges.get().expect("looked above");
        scatter(&batch, &self.object.routing(&batch), ranges)
    }

    /// What was held back, split; ranges are cut now if need be.
    pub fn flush(&mut self) -> Vec<(usize, RecordBatch)> {
        let held = std::mem::take(&mut self.held);
        self.held_rows = 0;
        if held.is_empty() {
            return Vec::new();
        }
        let object = &self.object;
        let ranges = (object.ranges)
            .get_or_init(|| cut(held.iter().map(|batch| object.routing(batch)), self.aeus));
        let parts = held.iter();
        parts
            .flat_map(|batch| scatter(batch, &object.routing(batch), ranges))
            .collect()
    }
}

/// Ranges that give every AEU the same share of the keys seen; with few distinct keys, some AEUs get none.
fn cut(keys: impl Iterator<Item = Vec<i64>>, aeus: usize) -> RangeTable<i64, AeuId> {
    let mut sorted: Vec<i64> = keys.flatten().collect();
    sorted.sort_unstable();
    let mut bounds = vec![(i64::MIN, AeuId(0))];
    for aeu in 1..aeus {
        let bound = sorted[sorted.len() * aeu / aeus];
        if bound > bounds.last().expect("it has a first").0 {
            bounds.push((bound, AeuId(aeu as u16)));
        }
    }
    RangeTable::new(bounds).expect("the bounds ascend from the least key")
}

/// The keys in their 64-bit order. NULL sorts first.
pub(crate) fn keys_of(array: &ArrayRef) -> Vec<i64> {
    macro_rules! keys {
        ($($kind:pat => $native:ty),+ $(,)?) => {
            match array.data_type() {
                DataType::Boolean => {
                    let values = array.as_boolean().iter();
                    values.map(|value| value.map_or(i64::MIN, i64::from)).collect()
                }
                $($kind => {
                    let values = array.as_primitive::<$native>().iter();
                    let key = |value| to_integer(array.data_type(), i128::from(value));
                    values.map(|value| value.map_or(i64::MIN, key)).collect()
                })+
                other => unreachable!("{other} is no partitioning type; checked when the object was made"),
            }
        };
    }
    use arrow_schema::TimeUnit::*;
    keys! {
        DataType::Int8 => Int8Type,
        DataType::Int16 => Int16Type,
        DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type,
        DataType::UInt8 => UInt8Type,
        DataType::UInt16 => UInt16Type,
        DataType::UInt32 => UInt32Type,
        DataType::UInt64 => UInt64Type,
        DataType::Date32 => Date32Type,
        DataType::Decimal128(..) => Decimal128Type,
        DataType::Timestamp(Second, _) => TimestampSecondType,
        DataType::Timestamp(Millisecond, _) => TimestampMillisecondType,
        DataType::Timestamp(Microsecond, _) => TimestampMicrosecondType,
        DataType::Timestamp(Nanosecond, _) => TimestampNanosecondType,
    }
}

fn scatter(
    batch: &RecordBatch,
    keys: &[i64],
    ranges: &RangeTable<i64, AeuId>,
) -> Vec<(usize, RecordBatch)> {
    let mut split = Split::default();
    ranges.split(keys, &mut split);
    let parts = ranges.parts(&split);
    parts
        .map(|(aeu, rows)| {
            let part = take_record_batch(batch, &UInt32Array::from(rows.to_vec()));
            (aeu.index(), part.expect("the rows are of this batch"))
        })
        .collect()
}
