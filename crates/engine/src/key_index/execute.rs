//! What an owner does with batches of keys: those that are its own are executed, others go on.

use super::batch::KeyBatch;
use super::transfer::Handed;
use super::{KeyObject, OwnedKeys};
use crate::protocol::commands::{HAND_OVER, KEYED, header};
use crate::tasks::owner::{Context, Owner};
use crate::tasks::reorganize::Reorganizable;
use eris_route::{Endpoint, Header, Parcel};
use eris_types::ObjectId;
use std::sync::Arc;

impl Owner {
    /// What this AEU has of an index.
    pub(crate) fn keys_of(&mut self, object: &Arc<KeyObject>) -> &mut OwnedKeys {
        let (aeu, memory) = (self.aeu, &self.memory);
        (self.key_indexes.entry(object.id))
            .or_insert_with(|| OwnedKeys::new(object.clone(), aeu, memory))
    }

    /// Executes batches of keys, all of one index, and sends each back, or on to whoever has the rest of its keys.
    pub(crate) fn execute_keys(
        &mut self,
        object: ObjectId,
        mut batches: Vec<(Header, Box<KeyBatch>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((_, first)) = batches.first() else {
            return;
        };
        // Who comes after DROP must not bring the index back.
        if first.is_dropped() {
            return batches
                .into_iter()
                .for_each(|(request, batch)| answer(&request, batch, cx));
        }
        if !self.key_indexes.contains_key(&object) {
            let index = first.object.clone();
            self.keys_of(&index);
        }
        let keys = self.key_indexes.get_mut(&object).expect("made above");
        keys.execute(&mut batches);
        for (request, mut batch) in batches {
            let Some(key) = batch.next_key() else {
                answer(&request, batch, cx);
                continue;
            };
            let (holder, news) = keys.holder(key);
            // Whoever has refused it meanwhile goes by the table.
            let told = batch
                .news
                .filter(|told| !(told.low..=told.high).contains(&key));
            batch.news = news.or(told);
            let to = Endpoint::aeu(holder);
            let on = header(HAND_OVER, object, request.sender, request.callback);
            let parcel = Parcel::owned((batch.object.clone(), Handed::Batch(batch)));
            cx.send(to, on, &[], Some(parcel));
        }
        Reorganizable::tend(keys, 0);
    }
}

/// Sends a batch back to whoever wants it done.
fn answer(request: &Header, batch: Box<KeyBatch>, cx: &mut Context<'_>) {
    let reply = header(KEYED, request.object, cx.endpoint(), request.callback);
    cx.send(request.sender, reply, &[], Some(Parcel::from_box(batch)));
}
