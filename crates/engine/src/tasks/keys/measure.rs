//! What an owner says of the use of its keys.

use crate::key_index::measure::Measurement;
use crate::key_index::owned::OwnedKeys;
use crate::protocol::asked::Asked;
use crate::protocol::keys::Measure;
use crate::protocol::message::Context;
use crate::tasks::owner::Owner;

impl Owner {
    /// Says what its segments were asked for since the last time.
    pub fn measure<T>(&mut self, asked: Asked<Measure>, cx: &mut Context<'_, T>) {
        let keys = self.key_indexes.get_mut(&asked.object);
        let nothing = || Measurement::nothing(self.aeu);
        asked.answer(keys.map_or_else(nothing, OwnedKeys::measurement), cx);
    }
}
