//! Where memory really lies. The system prefers the home node but takes pages elsewhere when that is full; this is the
//! check.
//!
//! ```text
//! extents   ▕███▏  ▕█▏▕██████████▏      pieces of memory, as numbers
//! pages     ▕ 0 │ 0 │ 0 │ ─ │ 2 │       the system's node of each; of very many, of some, evenly spread
//! ```

use crate::os;

/// So many pages are looked at: a fraction of a millisecond.
const MOST: usize = 4096;

/// A piece of memory, as numbers: it may be gone by the time that somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    start: usize,
    bytes: usize,
}

impl Extent {
    /// The memory of a slice.
    pub fn of<T>(slice: &[T]) -> Self {
        Extent {
            start: slice.as_ptr().addr(),
            bytes: size_of_val(slice),
        }
    }

    pub(crate) fn new(start: usize, bytes: usize) -> Self {
        Extent { start, bytes }
    }

    /// Where it begins.
    pub fn start(&self) -> usize {
        self.start
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Where some memory's pages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Pages looked at, by the operating system's node, ascending.
    pub pages: Vec<(u32, usize)>,
    /// Pages looked at that are nowhere, because nothing has been written to them, or because they are gone.
    pub untouched: usize,
    /// Bytes that a page that was looked at stands for: those of a page, or of several of which it was the one.
    pub page_bytes: usize,
}

impl Placement {
    /// Asks the operating system on which of its nodes the pages of these extents are, each page once however many of
    /// them lie on it. No more than 4,096 pages are looked at, evenly spread. `None` where the system does not tell, as
    /// sandboxes may have it.
    pub fn of(extents: impl IntoIterator<Item = Extent>) -> Option<Placement> {
        let page = os::page_bytes();
        let runs = page_runs(extents, page);
        let all: usize = runs.iter().map(|(first, end)| end - first).sum();
        let step = all.div_ceil(MOST).max(1);
        let mut looked_at = Vec::with_capacity(all.div_ceil(step));
        let mut next = 0;
        for (first, end) in runs {
            let mut at = first + next;
            while at < end {
                looked_at.push(at * page);
                at += step;
            }
            next = at - end;
        }
        let mut placement = Placement {
            page_bytes: step * page,
            ..Placement::default()
        };
        for status in os::nodes_of_pages(&looked_at)? {
            match u32::try_from(status) {
                Err(_) => placement.untouched += 1,
                Ok(node) => match placement.pages.iter_mut().find(|(other, _)| *other == node) {
                    Some((_, count)) => *count += 1,
                    None => placement.pages.push((node, 1)),
                },
            }
        }
        placement.pages.sort_unstable();
        Some(placement)
    }

    /// About how many bytes are on the node of the operating system that has this number.
    pub fn bytes_on(&self, node: u32) -> u64 {
        self.bytes_where(|other| other == node)
    }

    /// And on all others.
    pub fn bytes_elsewhere(&self, node: u32) -> u64 {
        self.bytes_where(|other| other != node)
    }

    fn bytes_where(&self, counts: impl Fn(u32) -> bool) -> u64 {
        let pages = self.pages.iter().filter(|(node, _)| counts(*node));
        pages
            .map(|(_, pages)| pages * self.page_bytes)
            .sum::<usize>() as u64
    }
}

/// The numbers of the pages that these extents lie on, as ascending runs from one up to before another.
fn page_runs(extents: impl IntoIterator<Item = Extent>, page: usize) -> Vec<(usize, usize)> {
    let extents = extents.into_iter().filter(|extent| extent.bytes > 0);
    let pages =
        extents.map(|Extent { start, bytes }| (start / page, (start + bytes).div_ceil(page)));
    let mut pages: Vec<_> = pages.collect();
    pages.sort_unstable();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (first, end) in pages {
        match runs.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => runs.push((first, end)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_on_one_page_are_one_page() {
        let extents = [
            (8_200, 10),
            (4_000, 100),
            (8_000, 8),
            (16_384, 4_096),
            (5, 0),
        ];
        let extents = extents.map(|(start, bytes)| Extent::new(start, bytes));
        assert_eq!(page_runs(extents, 4_096), [(0, 3), (4, 5)]);
    }

    #[cfg(not(miri))]
    #[test]
    fn of_many_pages_some_are_looked_at_evenly_spread() {
        let page = os::page_bytes();
        let memory = vec![1u8; 3 * MOST * page];
        let Some(all) = Placement::of([Extent::of(&memory)]) else {
            return;
        };
        let looked_at: usize = all.pages.iter().map(|(_, pages)| pages).sum();
        assert!((MOST * 3 / 4..=MOST).contains(&looked_at), "{all:?}");
        let bytes = all.pages.iter().map(|(node, _)| all.bytes_on(*node));
        let bytes = bytes.sum::<u64>() as usize;
        assert!(bytes.abs_diff(memory.len()) <= 4 * page, "{bytes}");
        // In pieces that are shorter than the step from one to the next.
        let pieces = memory.chunks(page).step_by(2).map(Extent::of);
        let some = Placement::of(pieces).expect("as before");
        assert_eq!(some.untouched, 0);
        let looked_at: usize = some.pages.iter().map(|(_, pages)| pages).sum();
        assert!((MOST / 2..=MOST).contains(&looked_at), "{some:?}");
    }
}
