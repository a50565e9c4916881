//! The words of commands that go to several targets, stored once.
//!
//! It is the sender's own, so that nobody else has to be told when it is used again. That is when the last reference
//! has been copied into an inbox, replaced by a copy for want of room, or dropped with its target. What it saves is
//! small: see docs/decisions/0033.

use crate::wire::{self, HEADER_WORDS};

/// Commands that references in the buffers of targets name.
#[derive(Default)]
pub(crate) struct Multicast {
    pub words: Vec<u64>,
    pub entries: Vec<SharedCommand>,
    /// References in all buffers.
    pub references: usize,
}

/// A command: where its words lie.
pub(crate) struct SharedCommand {
    pub start: usize,
    pub end: usize,
    pub spilled: Option<Box<[u64]>>,
}

impl Multicast {
    /// Hands the words of a command to `write`, for one target; true if some of them own pointers. Gives one reference
    /// back.
    pub fn copy(&mut self, entry: usize, mut write: impl FnMut(&[u64])) -> bool {
        self.references -= 1;
        let SharedCommand {
            start,
            end,
            spilled,
        } = &self.entries[entry];
        let words = &self.words[*start..*end];
        match spilled {
            None => write(words),
            Some(data) => {
                write(&words[..HEADER_WORDS]);
                write(&wire::spill_words(data));
            }
        }
        spilled.is_some()
    }

    pub fn reset_if_unused(&mut self) {
        if self.references == 0 {
            self.words.clear();
            self.entries.clear();
        }
    }
}
