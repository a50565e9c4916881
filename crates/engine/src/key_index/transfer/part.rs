//! A segment becomes two, while it is used: one of its ends gets a tree of its own, the smaller one.

use super::PIECE;
use super::rounds::some_changes;
use crate::key_index::OwnedKeys;
use crate::key_index::segment::Segment;
use eris_index::{Build, IndexError};

/// Keys at one end of a segment, the *side*, get a tree of their own.
pub(super) struct Parting {
    side: (u64, u64),
    /// The keys at the other end, copied instead if there are fewer of them; `None` if this is known to be so.
    other: Option<(u64, u64)>,
    build: Option<Box<Build<u64>>>,
    /// The side by itself, once all of it has been copied.
    part: Option<Box<Segment>>,
    /// The first key that was not copied; `None` once all are.
    next: Option<u64>,
    copied: usize,
}

pub(super) enum Parted {
    Again(Parting),
    /// So many entries were copied.
    Done(usize),
}

impl Parting {
    /// Begins with a side; with the other one, if that is given and turns out to be the smaller.
    pub fn new(segment: &mut Segment, side: (u64, u64), other: Option<(u64, u64)>) -> Self {
        segment.begin_copy(side.0..=side.1);
        let tree = segment.tree();
        Parting {
            build: Some(Box::new(Build::new(tree.memory().clone(), tree.object()))),
            part: None,
            side,
            other,
            next: Some(side.0),
            copied: 0,
        }
    }

    /// Copies some more of the side.
    pub fn step(mut self, keys: &mut OwnedKeys) -> Result<Parted, IndexError> {
        let (low, high) = self.side;
        let segment = keys.segment(low).expect("it stays until it is parted");
        if let Some(next) = self.next {
            let entries: Vec<_> = segment.range(next, high).take(PIECE).collect();
            self.copied += entries.len();
            if let Some(other) = self.other
                && self.copied > segment.len() / 2
            {
                return Ok(Parted::Again(Parting::new(segment, other, None)));
            }
            let build = self.build.as_mut().expect("entries are left");
            build.extend(entries.iter().copied())?;
            self.next = match entries.len() < PIECE {
                true => None,
                false => behind(&entries, high),
            };
            segment.set_copied(self.next);
            return Ok(Parted::Again(self));
        }
        if let Some(build) = self.build.take() {
            let tree = build.finish()?;
            self.part = Some(Box::new(Segment::new(low, high, tree.into())));
        }
        let part = self.part.as_mut().expect("made above");
        part.apply(&segment.take_changes(some_changes(segment.changes()))?)?;
        // Nobody has changed anything since: nothing is left once no more was than a round takes.
        if segment.changes().left > 0 {
            return Ok(Parted::Again(self));
        }
        segment.end_copy();
        keys.part(*self.part.expect("made above"));
        Ok(Parted::Done(self.copied))
    }
}

/// Where to go on behind these entries.
pub(super) fn behind(entries: &[(u64, u64)], high: u64) -> Option<u64> {
    let (last, _) = entries.last()?;
    last.checked_add(1).filter(|next| *next <= high)
}
