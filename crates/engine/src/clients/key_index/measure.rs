//! What the segments of an index were asked for.

use super::KeyIndex;
use crate::error::EngineError;
use crate::key_index::measure::SegmentLoad;
use crate::protocol::keys::Measure;

impl KeyIndex {
    /// The segments in the order of their keys, and what they were asked for since the last call. Segments that change
    /// their owner meanwhile may be missing, or be there twice.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    pub async fn measure(&self) -> Result<Vec<SegmentLoad>, EngineError> {
        let object = self.object();
        if object.is_dropped() {
            return Ok(Vec::new());
        }
        // Who has done nothing since is not woken for it.
        let active = object.measured.active();
        let answers = (self.engine()).ask(active, self.id(), self.name(), Measure);
        Ok(object.measured.take_in(answers.await?))
    }
}
