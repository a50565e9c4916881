//! What an owner does with batches of keys: those that are its own are executed, others go on.

use crate::key_index::batch::KeyBatch;
use crate::key_index::object::KeyObject;
use crate::key_index::owned::OwnedKeys;
use crate::key_index::transfer::Handed;
use crate::protocol::answers::KeysDone;
use crate::protocol::asked::Asked;
use crate::protocol::callback::HandOverId;
use crate::protocol::keys::{ExecuteKeys, HandOver};
use crate::protocol::lists::Parcel;
use crate::protocol::lists::ToOwner;
use crate::protocol::message::{Context, List, Message, forward};
use crate::tasks::owner::Owner;
use eris_aeu::Group;
use eris_route::Endpoint;
use eris_types::ObjectId;
use std::sync::Arc;

impl Owner {
    /// What this AEU has of an index.
    pub fn keys_of(&mut self, object: &Arc<KeyObject>) -> &mut OwnedKeys {
        let (aeu, memory) = (self.aeu, &self.memory);
        (self.key_indexes.entry(object.id))
            .or_insert_with(|| OwnedKeys::new(object.clone(), aeu, memory))
    }

    /// Executes a group of [`ExecuteKeys`].
    pub fn execute_batches<T>(
        &mut self,
        object: ObjectId,
        commands: Group<'_, Parcel>,
        cx: &mut Context<'_, T>,
    ) {
        let batches = commands.map(|command| {
            match ToOwner::unpack(ExecuteKeys::KIND, command.words, command.parcel) {
                ToOwner::ExecuteKeys(keys) => (Asked::by(&keys, &command.header), keys.0),
                _ => unreachable!("commands of a group are of its kind"),
            }
        });
        self.execute_keys(object, batches.collect(), cx);
    }

    /// Executes batches of keys, all of one index, and sends each back, or on to whoever has the rest of its keys.
    pub fn execute_keys<T>(
        &mut self,
        object: ObjectId,
        mut batches: Vec<(Asked<ExecuteKeys>, Box<KeyBatch>)>,
        cx: &mut Context<'_, T>,
    ) {
        let Some((_, first)) = batches.first() else {
            return;
        };
        // Who comes after DropObject must not bring the index back.
        if first.is_dropped() {
            return batches
                .into_iter()
                .for_each(|(asked, batch)| asked.answer(KeysDone(batch), cx));
        }
        if !self.key_indexes.contains_key(&object) {
            let index = first.object.clone();
            self.keys_of(&index);
        }
        let keys = self.key_indexes.get_mut(&object).expect("made above");
        keys.execute(&mut batches);
        for (asked, mut batch) in batches {
            let Some(key) = batch.next_key() else {
                asked.answer(KeysDone(batch), cx);
                continue;
            };
            let (holder, news) = keys.holder(key);
            // Whoever has rejected it meanwhile goes by the table.
            let told = batch
                .news
                .filter(|told| !(told.low..=told.high).contains(&key));
            batch.news = news.or(told);
            let message = HandOver {
                object: batch.object.clone(),
                what: Handed::Batch(batch),
            };
            // It keeps its first sender, to whom it goes back.
            let wanted_by = (asked.sender, HandOverId::from(asked.callback));
            forward(cx, Endpoint::aeu(holder), object, wanted_by, message);
        }
        crate::held::reorganize::Reorganizable::work_for_lookups(keys, 0);
    }
}
