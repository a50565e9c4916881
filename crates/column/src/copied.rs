//! Column chunks whose words were copied to another node.
//!
//! ```text
//! chunk   zone │ words ─┐ │ validity      immutable, at its owner's node
//!                       ▼       ┆
//! copy    zone │ words'   │ validity       the same encoding; its words lie in a block of whoever reads
//! ```
//!
//! What is read as a stream is copied. Views of text, strings of a dictionary and orders of keys are read here and
//! there: they stay where they are. So does validity: batches are handed out with it, and 8 KiB would keep a whole
//! block.

use crate::chunk::ColumnChunk;
use crate::copier::Copier;
use crate::data::{Data, Integers, Plain};
use crate::strings::{StringKind, Strings};
use arrow_buffer::ArrowNativeType;
use eris_numa::{CopyBlock, CopyEngine};
use std::sync::{Arc, OnceLock};

impl ColumnChunk {
    /// The same values, with what is read of them as a stream in this block. `None` if it has no room; part of it may
    /// then be taken.
    pub fn copied(&self, block: &mut CopyBlock, engine: CopyEngine) -> Option<ColumnChunk> {
        let copier = &mut Copier { block, engine };
        let data = match &self.data {
            Data::Integers(integers) => Data::Integers(integers.copied(copier)?),
            Data::Codes(integers) => Data::Codes(integers.copied(copier)?),
            Data::Ordinals {
                ordinals,
                order,
                low,
                high,
            } => Data::Ordinals {
                ordinals: Arc::new(ordinals.copied(copier)?),
                order: order.clone(),
                low: *low,
                high: *high,
            },
            Data::Float32(plain) => Data::Float32(plain.copied(copier)?),
            Data::Float64(plain) => Data::Float64(plain.copied(copier)?),
            Data::Wide(plain) => Data::Wide(plain.copied(copier)?),
            Data::Strings(text) => Data::Strings(text.copied(copier)?),
            Data::Bytes(bytes) => Data::Bytes(bytes.copied(copier)?),
        };
        Some(ColumnChunk {
            rows: self.rows,
            zone: self.zone.clone(),
            data,
            validity: self.validity.clone(),
            distinct: OnceLock::new(),
        })
    }

    /// The bytes that a [copy](Self::copied) has in its block.
    pub fn bytes_to_copy(&self) -> usize {
        let in_place = match &self.data {
            Data::Strings(text) => text.bytes_in_place(),
            Data::Bytes(bytes) => bytes.bytes_in_place(),
            _ => 0,
        };
        self.bytes() - in_place - self.validity.bytes()
    }
}

impl Integers {
    fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(match self {
            Integers::Constant(value) => Integers::Constant(*value),
            Integers::Packed(packed) => Integers::Packed(packed.copied(copier)?),
            Integers::Runs(runs) => Integers::Runs(runs.copied(copier)?),
            Integers::ShortRuns(runs) => Integers::ShortRuns(runs.copied(copier)?),
            Integers::Framed(framed) => Integers::Framed(framed.copied(copier)?),
        })
    }
}

impl<T: ArrowNativeType + eris_numa::Plain> Plain<T> {
    fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(match self {
            Plain::Constant(value) => Plain::Constant(*value),
            Plain::Values(values) => Plain::Values(copier.numbers(values)?),
        })
    }
}

impl<T: StringKind> Strings<T> {
    fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(match self {
            Strings::Constant(array) => Strings::Constant(array.clone()),
            Strings::Dictionary { strings, numbers } => Strings::Dictionary {
                strings: strings.clone(),
                numbers: numbers.copied(copier)?,
            },
            Strings::Compressed(compressed) => Strings::Compressed(compressed.copied(copier)?),
            Strings::Values(array) => Strings::Values(array.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectMemory;
    use arrow_array::{
        ArrayRef, Float64Array, Int32Array, Int64Array, StringArray, StringViewArray,
    };
    use arrow_cast::cast;
    use arrow_schema::DataType;
    use eris_numa::{HugePages, Memory, Topology};
    use eris_types::{NodeId, ObjectId};

    const ROWS: i64 = 5000;

    fn columns() -> Vec<ArrayRef> {
        let of = |value: fn(i64) -> i64| (0..ROWS).map(value);
        let text = |value: fn(i64) -> String| {
            let text: StringArray = (0..ROWS).map(|row| Some(value(row))).collect();
            cast(&text, &DataType::Utf8View).unwrap()
        };
        let scattered = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        vec![
            Arc::new(Int64Array::from_iter_values(of(|_| 7))),
            Arc::new(Int64Array::from_iter_values(of(scattered))),
            Arc::new(Int64Array::from_iter_values(of(|row| row / 900))),
            Arc::new(Int64Array::from_iter_values(of(|row| row / 5 * 31 % 1000))),
            Arc::new(Int64Array::from_iter_values(of(|row| row * 1_000_003))),
            Arc::new(
                (0..ROWS)
                    .map(|row| (row % 3 > 0).then_some(row as i32 % 77))
                    .collect::<Int32Array>(),
            ),
            Arc::new(Float64Array::from_iter_values(
                (0..ROWS).map(|row| row as f64 / 7.0),
            )),
            text(|row| format!("name {}", row % 9)),
            text(|row| format!("https://example.org/{}/{}", row % 70, row)),
            text(|row| {
                format!(
                    "{:x}{:x}",
                    row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64),
                    row
                )
            }),
            Arc::new(StringViewArray::from_iter((0..ROWS).map(|_| None::<&str>))),
        ]
    }

    #[test]
    fn copies_of_all_encodings_have_the_same_values_and_lie_in_the_block() {
        let memory = Memory::new(&Topology::fake(2, 1), HugePages::Never, Some(64 << 20)).unwrap();
        let object = ObjectId(1);
        let (owner, reader) = (memory.node(NodeId(0)), memory.node(NodeId(1)));
        let home = ObjectMemory {
            memory: &owner,
            object,
        };
        let mut encodings = Vec::new();
        for array in columns() {
            let chunk = ColumnChunk::encode(&array, None, home).unwrap();
            encodings.push(chunk.encoding().to_string());
            let mut block = CopyBlock::allocate(&reader, object, 1 << 20).unwrap();
            let used = memory.budget().used();
            let copy = chunk.copied(&mut block, CopyEngine::Streaming).unwrap();
            assert_eq!(memory.budget().used(), used);
            assert_eq!(copy.bytes(), chunk.bytes());
            let all: Vec<_> = (0..chunk.rows()).map(|row| copy.get(row, None)).collect();
            // Not even the last one is read at the owner's.
            let values: Vec<_> = (0..chunk.rows()).map(|row| chunk.get(row, None)).collect();
            assert_eq!(all, values, "{}", chunk.encoding());
            let (mut before, mut after) = (Vec::new(), Vec::new());
            chunk.extents(&mut before);
            copy.extents(&mut after);
            let moved: usize = (before.iter().zip(&after))
                .filter(|(before, after)| before != after)
                .map(|(extent, _)| extent.bytes())
                .sum();
            assert_eq!(moved, chunk.bytes_to_copy(), "{}", chunk.encoding());

            let bytes = chunk.bytes_to_copy();
            let mut small = CopyBlock::allocate(&reader, object, bytes.saturating_sub(1)).unwrap();
            let fits = chunk.copied(&mut small, CopyEngine::Plain).is_some();
            assert_eq!(fits, bytes == 0, "{}", chunk.encoding());
        }
        encodings.sort();
        encodings.dedup();
        for kind in [
            "constant",
            "packed",
            "run-length",
            "short-runs",
            "delta",
            "dictionary",
            "fsst",
            "plain",
        ] {
            let has = encodings.iter().any(|encoding| encoding.starts_with(kind));
            assert!(has, "no {kind} among {encodings:?}");
        }
    }
}
