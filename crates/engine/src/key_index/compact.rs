//! Entries that are out of reach are removed, and neighbouring segments become one when there are many: batches are
//! looked up tree by tree.

use super::owned::OwnedKeys;
use eris_index::IndexError;

/// Segments beyond which neighbours are put together.
const MOST_SEGMENTS: usize = 8;
/// Entries that are moved from tree to tree in one step.
const MERGED: usize = 256;
/// Entries that are removed in one step.
const CLEANED: usize = 512;

impl OwnedKeys {
    /// Removes some entries that are out of reach. If there are none: puts some entries of one segment into its
    /// neighbour's tree, if there are more segments than are good for batches, whose keys are looked up tree by tree.
    /// Says whether there is more to be done.
    ///
    /// # Errors
    /// No memory.
    pub fn compact(&mut self) -> Result<bool, IndexError> {
        let mut segments = self.segments.iter_mut();
        if let Some(segment) = segments.find(|segment| segment.has_garbage()) {
            segment.clean(CLEANED);
            self.note_work();
            return Ok(true);
        }
        if self.segments.len() <= MOST_SEGMENTS || self.is_changing() {
            return Ok(false);
        }
        let neighbours = (1..self.segments.len())
            .filter(|&at| self.segments[at - 1].high.checked_add(1) == Some(self.segments[at].low));
        let Some(at) = neighbours.min_by_key(|&at| self.segments[at].len()) else {
            return Ok(false);
        };
        // The one behind is copied: if that is by far the larger one, it is not worth it.
        if self.segments[at].len() > 4 * self.segments[at - 1].len().max(MERGED) {
            return Ok(false);
        }
        let (before, behind) = self.segments.split_at_mut(at);
        let (first, next) = (&mut before[at - 1], &mut behind[0]);
        if !first.absorb(next, MERGED)? {
            self.segments.remove(at);
        }
        self.renew();
        Ok(true)
    }
}
