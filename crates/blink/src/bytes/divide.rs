//! Nodes in which an entry has no room.

use super::plan::{Fences, Plan, Whole};
use super::strings::separator;
use super::{SPACE, SPARE};
use crate::entries::{Buffer, Entries};
use crate::node::Held;
use std::iter::repeat;
use std::ops::Range;

/// Writes a node with another entry anew, if there is room enough then.
pub fn insert_anew(node: &mut Held<'_, [u8]>, at: usize, key: &[u8], value: u64) -> bool {
    let whole = Whole::of(node.node);
    let (level, count) = (whole.level, whole.entries.len());
    let mut with = Entries::default();
    let copy = |with: &mut Entries, range: Range<usize>| {
        range
            .map(|at| whole.entries.get(at))
            .for_each(|(key, value)| with.add(key, value));
    };
    copy(&mut with, 0..at);
    match level {
        0 => {
            with.add(key, value);
            copy(&mut with, at..count);
        }
        _ => {
            // The child that was divided keeps the range below the new fence.
            let (fence, child) = whole.entries.get(at);
            with.add(key, child);
            with.add(fence, value);
            copy(&mut with, at + 1..count);
        }
    }
    let plan = Plan::new(level, whole.fences(), &with, 0..with.len());
    // What cannot be divided gets the last word.
    let spare = if count < 2 { 0 } else { SPARE };
    let fits = plan.fits() && plan.size() + spare <= SPACE;
    if fits {
        plan.write(node, whole.right);
    }
    fits
}

/// Where a full node is divided so that both have room: the number of entries that stay, and the fence.
pub fn division(whole: &Whole, is_at_end: bool, new: (usize, &[u8])) -> (usize, Vec<u8>) {
    let Whole { level, entries, .. } = whole;
    let count = entries.len();
    let key = |at: usize| entries.get(at).0;
    if count == 1 {
        // One leaf for each of both.
        return match new.0 {
            0 => (0, separator(new.1, key(0))),
            _ => (1, separator(key(0), new.1)),
        };
    }
    let fence = |kept: usize| match level {
        0 => separator(key(kept - 1), key(kept)),
        _ => key(kept - 1).to_vec(),
    };
    let fits = |kept: usize, fence: &[u8]| {
        let left = Fences {
            low: whole.low(),
            high: Some(fence),
        };
        let right = Fences {
            low: Some(fence),
            high: whole.high(),
        };
        Plan::new(*level, left, entries, 0..kept).fits()
            && Plan::new(*level, right, entries, kept..count).fits()
    };
    // Keys that ascend leave full nodes behind.
    let middle = match is_at_end {
        true => count - 1,
        false => whole.middle(),
    };
    // The nearest place at which both have room; nearly always it is this one.
    let before = (1..=middle).rev().map(Some).chain(repeat(None));
    let behind = (middle + 1..count).map(Some).chain(repeat(None));
    before
        .zip(behind)
        .take(count)
        .flat_map(|(before, behind)| [before, behind])
        .flatten()
        .map(|kept| (kept, fence(kept)))
        .find(|(kept, fence)| fits(*kept, fence))
        .expect("both fences and a key leave room")
}
