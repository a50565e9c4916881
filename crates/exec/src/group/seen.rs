//! Which groups have met a value, so that the others' states are NULL.

use super::state::GroupNumbers;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use std::ops::Range;

/// One flag per group. As long as every row counts, no row is looked at: a group exists only because of a row.
#[derive(Debug, Default)]
pub(crate) struct SeenGroups {
    flags: Vec<bool>,
    /// All groups up to this number have met a value.
    complete: usize,
    /// Groups that there were when rows were last marked.
    marked: usize,
}

impl SeenGroups {
    /// Makes entries for new groups.
    pub(super) fn grow(&mut self, groups: usize) {
        self.flags.resize(groups, false);
    }

    /// Marks the groups of the rows that count. Rows that made new groups are among them.
    pub(super) fn mark(&mut self, numbers: GroupNumbers<'_>, counts: Option<&BooleanBuffer>) {
        let groups = self.flags.len();
        match (numbers, counts) {
            (GroupNumbers::One(_), None) => self.flags[0] = true,
            (GroupNumbers::Each(_), None) if self.complete == self.marked => {
                self.flags[self.complete..].fill(true);
                self.complete = groups;
            }
            _ => {
                let flags = &mut self.flags[..];
                numbers.for_each(counts, |_, number| flags[number] = true);
            }
        }
        self.marked = groups;
    }

    /// Those without a value are NULL.
    pub(super) fn into_nulls(self) -> Option<NullBuffer> {
        Some(NullBuffer::from(self.flags)).filter(|nulls| nulls.null_count() > 0)
    }

    /// The flags of some groups, in this order.
    pub(super) fn gather(&self, groups: &[u32]) -> Self {
        SeenGroups {
            flags: groups
                .iter()
                .map(|&group| self.flags[group as usize])
                .collect(),
            ..SeenGroups::default()
        }
    }

    /// Adds what others know: each of these groups of theirs is the group here of the number beside it. Rows are marked
    /// no more behind this.
    pub(super) fn merge(&mut self, other: &SeenGroups, groups: Range<usize>, numbers: &[u32]) {
        for (&number, &flag) in numbers.iter().zip(&other.flags[groups]) {
            self.flags[number as usize] |= flag;
        }
    }

    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        self.flags.clear();
        (self.complete, self.marked) = (0, 0);
    }

    pub(super) fn bytes(&self) -> usize {
        self.flags.capacity()
    }
}
