//! Rows with some keys that another owner of the node gets as they are: found chunk by chunk.
//!
//! ```text
//! chunks with living rows ─▶ (how many keys are enough?) ─▶ rows with such keys, some chunks per slice ─▶ OfferedKeys
//! ```

use super::owner::Owner;
use crate::error::{EngineError, store_error};
use crate::held::partition::Partition;
use crate::protocol::answers::OfferedKeys;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::statements::OfferKeys;
use eris_aeu::Slice;
use eris_column::Selection;
use eris_store::{Chunk, ChunkPart};
use eris_types::SegmentId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Chunks that are looked at in one slice, of those whose statistics do not tell.
const LOOKED_AT: usize = 4;
/// Keys of each chunk that tell how many rows have which.
const SAMPLES: usize = 64;

/// Finds the rows.
pub(crate) struct OfferKeysTask {
    offer: OfferKeys,
    asked: Asked<OfferKeys>,
    /// The chunks that are left, once it has begun.
    left: Option<Vec<(SegmentId, Arc<Chunk>, Selection)>>,
    found: Vec<(SegmentId, ChunkPart)>,
}

impl OfferKeysTask {
    pub fn new(offer: OfferKeys, asked: Asked<OfferKeys>) -> Self {
        OfferKeysTask {
            offer,
            asked,
            left: None,
            found: Vec::new(),
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        let object = self.offer.object.clone();
        if self.offer.statement.aborted.load(Ordering::Acquire) {
            return Slice::Done;
        }
        if object.is_dropped() {
            return self.reject(EngineError::NoSuchObject(object.id), cx);
        }
        object.panic_if_poisoned();
        let (partition, home) = owner.partition(&object);
        let statement = self.offer.statement.id;
        let Some(left) = &mut self.left else {
            let begun = partition.begin_offer(statement, &self.offer.keys);
            let Some(chunks) = begun else {
                return self.answer(OfferedKeys::OnlyCopied, cx);
            };
            self.cut(&chunks, partition);
            self.left = Some(chunks);
            return Slice::Again;
        };
        let mut looked_at = 0;
        while looked_at < LOOKED_AT
            && let Some((segment, chunk, mut rows)) = left.pop()
        {
            looked_at += usize::from(partition.select_keys(&chunk, &self.offer.keys, &mut rows));
            if !rows.is_empty() {
                self.found.push((segment, ChunkPart { chunk, rows }));
            }
        }
        if !left.is_empty() {
            return Slice::Again;
        }
        let found = std::mem::take(&mut self.found);
        if found.is_empty() {
            return self.answer(OfferedKeys::Nothing, cx);
        }
        match partition.offer_keys(statement, &self.offer.keys, found, home) {
            Ok(offered) => {
                let last = self.offer.keys.numbers.1;
                self.answer(OfferedKeys::Rows(Box::new(offered), last), cx)
            }
            Err(error) => self.reject(store_error(&object.name, &error), cx),
        }
    }

    /// Leaves only so many keys as about so many rows have as are enough, by a sample.
    fn cut(&mut self, chunks: &[(SegmentId, Arc<Chunk>, Selection)], partition: &Partition) {
        let OfferKeys { keys, enough, .. } = &mut self.offer;
        let living: usize = chunks.iter().map(|(_, _, rows)| rows.count()).sum();
        if living as u64 <= *enough {
            return;
        }
        let mut samples: Vec<(i64, f64)> = Vec::new();
        for (_, chunk, rows) in chunks {
            let step = rows.count().div_ceil(SAMPLES);
            let mut some = Selection::none(chunk.rows());
            rows.iter_ones()
                .step_by(step)
                .for_each(|row| some.insert(row));
            let numbers = partition.key_numbers(chunk, &some, &keys.assignment);
            let weight = rows.count() as f64 / numbers.len() as f64;
            samples.extend(numbers.into_iter().map(|number| (number, weight)));
        }
        let (low, high) = keys.numbers;
        samples.retain(|(number, _)| (low..=high).contains(number));
        samples.sort_unstable_by_key(|(number, _)| *number);
        let mut all = 0.0;
        let mut numbers = samples.into_iter();
        let last = numbers.find(|(_, weight)| {
            all += weight;
            all >= *enough as f64
        });
        if let Some((last, _)) = last {
            keys.numbers.1 = last;
        }
    }

    /// A panic in a slice rejects the statement.
    pub fn panicked<T>(&mut self, message: &str, owner: &Owner, cx: &mut Context<'_, T>) {
        self.reject(owner.panic(&self.offer.object.name, message), cx);
    }

    fn answer<T>(&self, given: OfferedKeys, cx: &mut Context<'_, T>) -> Slice {
        self.asked.answer(given, cx);
        Slice::Done
    }

    fn reject<T>(&self, error: EngineError, cx: &mut Context<'_, T>) -> Slice {
        self.asked.reject(error, cx);
        Slice::Done
    }
}
