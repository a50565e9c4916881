//! A model of translation buffers and caches: how many misses a lookup costs, where the machine does not count them.
//!
//! ```text
//! address ─► page ─► L1 TLB ─miss─► L2 TLB ─miss─► walk: the page's table entry, 8 bytes, is read through the caches
//!        └─► line ─► L1 ─miss─► L2 ─miss─► L3 ─miss─► memory
//! ```
//! Each level is a table of sets of some ways, of which the least recently used is replaced. Fed with what
//! [`Art::trace`](crate::Art::trace) shows, it answers the question of the TLB paper's Tables 2 and 3 for any machine.
//! It knows nothing of prefetching, of speculation, of other data and of other programs, and only the last level of a
//! walk.

use crate::{LINE, Visit};

/// Sets of ways, each way a number that was there lately: a cache of lines or of translations.
#[derive(Clone, Debug)]
pub struct SetTable {
    /// The newest first within a set.
    tags: Vec<u64>,
    ways: usize,
}

impl SetTable {
    const EMPTY: u64 = u64::MAX;

    /// Nothing in it.
    ///
    /// # Panics
    /// If `entries` are no multiple of `ways`, or there are none.
    pub fn new(entries: usize, ways: usize) -> Self {
        assert!(
            ways > 0 && entries > 0 && entries.is_multiple_of(ways),
            "{entries} entries in sets of {ways}"
        );
        SetTable {
            tags: vec![Self::EMPTY; entries],
            ways,
        }
    }

    /// Looks for a number, which is there afterwards; whether it was.
    pub fn touch(&mut self, number: u64) -> bool {
        let sets = (self.tags.len() / self.ways) as u64;
        let first = (number % sets) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        let found = set.iter().position(|&tag| tag == number);
        set[..=found.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = number;
        found.is_some()
    }
}

/// The size of the pages that an index lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

impl Pages {
    /// Log2 of the bytes of a page.
    pub fn bits(self) -> u32 {
        match self {
            Pages::Small => 12,
            Pages::Huge => 21,
        }
    }
}

/// Entries and ways.
pub type Shape = (usize, usize);

/// What a processor has for one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Its name.
    pub name: &'static str,
    /// First-level translations of data: of small and of huge pages.
    pub first: [Shape; 2],
    /// Second-level ones; huge pages may have none.
    pub second: [Option<Shape>; 2],
    /// Bytes and ways of the data caches, the innermost first.
    pub caches: [Shape; 3],
}

/// The machine of the TLB paper: a Core i7 2630QM (its Section 3 and Table 1).
pub const SANDY_BRIDGE: Processor = Processor {
    name: "Sandy Bridge",
    first: [(64, 4), (32, 4)],
    second: [Some((512, 4)), None],
    caches: [(32 << 10, 8), (256 << 10, 8), (6 << 20, 12)],
};

/// A core of AMD's Zen 4, with the L3 of a core complex.
pub const ZEN4: Processor = Processor {
    name: "Zen 4",
    first: [(72, 72), (72, 72)],
    second: [Some((3072, 24)), Some((3072, 24))],
    caches: [(32 << 10, 8), (1 << 20, 8), (32 << 20, 16)],
};

/// A processor at work: what is in its tables, and what was not.
#[derive(Clone, Debug)]
pub struct Model {
    pages: Pages,
    first: SetTable,
    second: Option<SetTable>,
    caches: Vec<SetTable>,
    counts: Counts,
}

/// Events; see [`Model`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read, each with a translation.
    pub reads: u64,
    /// Translations that the first level did not have.
    pub first_misses: u64,
    /// Translations that no level had.
    pub walks: u64,
    /// Lines that the caches did not have, by level; page table entries are among them.
    pub cache_misses: [u64; 3],
}

impl Model {
    /// Nothing is cached. Everything lies on pages of this size.
    pub fn new(processor: &Processor, pages: Pages) -> Self {
        let table = |(entries, ways): Shape| SetTable::new(entries, ways);
        Model {
            pages,
            first: table(processor.first[pages as usize]),
            second: processor.second[pages as usize].map(table),
            caches: (processor.caches.into_iter())
                .map(|(bytes, ways)| table((bytes / LINE, ways)))
                .collect(),
            counts: Counts::default(),
        }
    }

    /// The same without caches, which take most of a model's memory: it only counts translations.
    pub fn of_translations(processor: &Processor, pages: Pages) -> Self {
        Model {
            caches: Vec::new(),
            ..Self::new(processor, pages)
        }
    }

    /// A lookup goes through a node or a record.
    pub fn visit(&mut self, visit: &Visit) {
        let [keys, child] = visit.reads;
        self.read(keys);
        if keys / LINE != child / LINE {
            self.read(child);
        }
    }

    /// Reads at an address.
    pub fn read(&mut self, address: usize) {
        self.counts.reads += 1;
        let page = (address >> self.pages.bits()) as u64;
        if !self.first.touch(page) {
            self.counts.first_misses += 1;
            if !(self.second.as_mut()).is_some_and(|second| second.touch(page)) {
                self.counts.walks += 1;
                // Tables lie elsewhere, eight entries in a line.
                self.load((1 << 60) + page / 8);
            }
        }
        self.load((address / LINE) as u64);
    }

    fn load(&mut self, line: u64) {
        for (cache, misses) in self.caches.iter_mut().zip(&mut self.counts.cache_misses) {
            if cache.touch(line) {
                return;
            }
            *misses += 1;
        }
    }

    /// What has happened since the last time.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_replaced_within_its_set() {
        let mut table = SetTable::new(4, 2);
        assert!(!table.touch(0) && !table.touch(2), "a set of even numbers");
        assert!(!table.touch(1), "another");
        assert!(table.touch(0), "still there");
        assert!(!table.touch(4), "instead of 2");
        assert!(table.touch(0) && table.touch(1) && !table.touch(2));
    }

    #[test]
    fn what_fits_is_missed_once_and_what_does_not_always() {
        let mut model = Model::new(&SANDY_BRIDGE, Pages::Small);
        let pass = |model: &mut Model, pages: usize| {
            (0..pages).for_each(|page| model.read(page << 12));
            model.take_counts()
        };
        assert_eq!(pass(&mut model, 512).walks, 512);
        let again = pass(&mut model, 512);
        assert_eq!(
            (again.reads, again.first_misses, again.walks),
            (512, 512, 0)
        );
        // In turn, one more way than there is in every set.
        pass(&mut model, 640);
        assert_eq!(pass(&mut model, 640).walks, 640);

        let mut model = Model::new(&SANDY_BRIDGE, Pages::Huge);
        pass(&mut model, 640);
        assert_eq!(pass(&mut model, 640).walks, 0, "two huge pages");
    }

    #[test]
    fn a_walk_reads_the_table_through_the_caches() {
        let mut model = Model::new(&SANDY_BRIDGE, Pages::Small);
        model.read(0);
        assert_eq!(model.take_counts().cache_misses, [2; 3], "entry and line");
        model.read(64);
        assert_eq!(model.take_counts().cache_misses, [1; 3], "the line");
        model.read(1 << 12);
        let next = model.take_counts();
        assert_eq!((next.walks, next.cache_misses), (1, [1; 3]));
    }

    #[test]
    fn a_wide_node_is_read_where_its_keys_and_the_child_are() {
        let mut model = Model::new(&ZEN4, Pages::Small);
        let visit = |child| Visit {
            address: 4096,
            bytes: 512,
            reads: [4096, child],
        };
        model.visit(&visit(4100));
        assert_eq!(model.take_counts().reads, 1);
        model.visit(&visit(4096 + 64));
        let counts = model.take_counts();
        assert_eq!((counts.reads, counts.first_misses), (2, 0));
        assert_eq!(counts.cache_misses, [1; 3]);
    }
}
