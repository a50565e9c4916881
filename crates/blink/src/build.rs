//! A tree is built from entries that ascend, level by level.
//!
//! ```text
//! level 1    [ ≤ 40 │ ≤ 90 │ all ]          its entries are the fences and the numbers of the leaves
//! level 0    [ 20 40 ]─▶[ 50 90 ]─▶[ 95     being filled           ─▶ a number that is known already
//!            └── one part ──┘ └── another one …
//! ```
//! A node is written once, when the next entry has no room. Its right link is the number of the node that is filled
//! next. The leaves may be filled in parts, by several threads: the first leaf of each part has its number before
//! anything is filled. Nothing leads to these nodes until the root does, which is changed at one moment.

use crate::entries::Buffer;
use crate::error::BuildError;
use crate::key::Key;
use crate::node::Meta;
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::tree::{Tree, root_word};
use eris_numa::OutOfMemory;

/// Keys of a tree that is being built: those behind a fence, up to another one. The first part has no low fence, and
/// the last one no high fence.
#[derive(Debug)]
pub struct Part<K: Key + ?Sized> {
    low: Option<K::Owned>,
    high: Option<K::Owned>,
    /// The numbers of its first leaf, and of the next part's.
    first: u32,
    right: u32,
}

/// The leaves of a part, with all entries of its keys.
#[derive(Debug)]
pub struct Leaves<K: Key + ?Sized>(Vec<Filled<K>>);

/// A node with its high fence: none if it is the last one of its level, or is still being filled.
#[derive(Debug)]
struct Filled<K: Key + ?Sized> {
    high: Option<K::Owned>,
    number: u32,
}

/// Nodes of a level that are filled, one after the other. The last one is being filled.
struct Level<'a, K: Key + ?Sized> {
    tree: &'a Tree<K>,
    level: u8,
    nodes: Vec<Filled<K>>,
    /// Of the node that is being filled.
    low: Option<K::Owned>,
    entries: K::Entries,
    filling: K::Filling,
}

impl<'a, K: Key + ?Sized> Level<'a, K> {
    fn new(tree: &'a Tree<K>, level: u8, first: u32, low: Option<K::Owned>) -> Self {
        Level {
            tree,
            level,
            nodes: vec![Filled {
                high: None,
                number: first,
            }],
            low,
            entries: K::Entries::default(),
            filling: K::Filling::default(),
        }
    }

    /// Adds an entry: of a leaf, or a child with its high fence.
    fn add(&mut self, key: K::Ref<'_>, value: u64) -> Result<(), OutOfMemory> {
        if !self.has_room(key) {
            let last = self.last();
            let high = match self.level {
                0 => K::separator(K::lend(&last), key),
                _ => last,
            };
            self.close(high)?;
            self.has_room(key);
        }
        self.entries.add(key, value);
        Ok(())
    }

    fn has_room(&mut self, key: K::Ref<'_>) -> bool {
        let low = self.low.as_ref().map(K::lend);
        K::has_room(&mut self.filling, low, &self.entries, key, self.level)
    }

    /// The last key.
    fn last(&self) -> K::Owned {
        K::own(self.entries.entry(self.entries.count() - 1).0)
    }

    fn filled(&mut self) -> &mut Filled<K> {
        self.nodes.last_mut().expect("one is being filled")
    }

    /// Writes the node that is being filled, if its entries fit between these fences.
    fn write(&mut self, right: u32, high: Option<&K::Owned>) -> bool {
        let number = self.filled().number;
        let mut node = self.tree.space.node(number).hold();
        let fences = (self.low.as_ref().map(K::lend), high.map(K::lend));
        K::write(&mut node, (self.level, right), fences, &self.entries)
    }

    /// Writes the node that is being filled, and begins the next one.
    fn close(&mut self, mut high: K::Owned) -> Result<(), OutOfMemory> {
        self.tree.space.prepare();
        let next = self.tree.space.take(self.level)?;
        if !self.write(next, Some(&high)) {
            // A fence behind the last key may have less in common with the others.
            high = self.last();
            assert!(self.write(next, Some(&high)), "what was counted fits");
        }
        self.filled().high = Some(high.clone());
        self.nodes.push(Filled {
            high: None,
            number: next,
        });
        self.low = Some(high);
        self.entries.empty();
        self.filling = K::Filling::default();
        Ok(())
    }

    /// Writes the last leaf.
    fn finish_leaves(&mut self, right: u32, high: Option<K::Owned>) -> Result<(), OutOfMemory> {
        if !self.write(right, high.as_ref()) {
            // With a fence far away they have less of a prefix. So these get one, and a leaf behind it has no entries.
            let last = self.last();
            self.close(last)?;
            assert!(self.write(right, high.as_ref()), "nothing fits");
        }
        self.filled().high = high;
        Ok(())
    }

    /// Writes the last node above the leaves, with the last child.
    fn finish_children(&mut self, child: u32) -> Result<(), OutOfMemory> {
        let child = u64::from(child);
        self.entries.add(K::least(), child);
        if !self.write(0, None) {
            self.entries.drop_last();
            let last = self.last();
            self.close(last)?;
            self.entries.add(K::least(), child);
            assert!(self.write(0, None), "one child fits");
        }
        Ok(())
    }

    /// All entries of a part.
    fn fill<'e>(
        &mut self,
        entries: impl IntoIterator<Item = (K::Ref<'e>, u64)>,
        high: Option<K::Owned>,
        right: u32,
    ) -> Result<(), BuildError<K::Error>> {
        let no_memory = |error: OutOfMemory| BuildError::Entry(error.into());
        let low = self.low.clone();
        let mut last: Option<K::Ref<'e>> = None;
        for (at, (key, value)) in entries.into_iter().enumerate() {
            K::check(key).map_err(BuildError::Entry)?;
            let is_behind = match (last, &low) {
                (Some(last), _) => K::compare(last, key).is_lt(),
                (None, Some(low)) => K::compare(K::lend(low), key).is_lt(),
                (None, None) => true,
            };
            let is_below = |high| K::compare(key, K::lend(high)).is_le();
            if !is_behind || !high.as_ref().is_none_or(is_below) {
                return Err(BuildError::NotAscending(at));
            }
            self.add(key, value).map_err(no_memory)?;
            last = Some(key);
        }
        self.finish_leaves(right, high).map_err(no_memory)
    }

    /// All nodes of the level below.
    fn lead_to(&mut self, below: &[Filled<K>]) -> Result<(), OutOfMemory> {
        let (last, others) = below.split_last().expect("there is a leaf");
        for node in others {
            let high = node.high.as_ref().expect("a node follows");
            self.add(K::lend(high), u64::from(node.number))?;
        }
        self.finish_children(last.number)
    }
}

impl<K: Key + ?Sized> Tree<K> {
    /// Puts entries into an empty tree, in the order of their keys, much faster than one by one. Leaves are 90 % full.
    /// Others may use the tree meanwhile: they see it empty, and all entries from one moment on.
    ///
    /// # Errors
    /// [`BuildError`]. Then nothing is put in.
    pub fn build<'e>(
        &self,
        entries: impl IntoIterator<Item = (K::Ref<'e>, u64)>,
    ) -> Result<(), BuildError<K::Error>> {
        if !self.is_unused() {
            return Err(BuildError::NotEmpty);
        }
        let part = self.parts(&[]).map_err(BuildError::Entry)?.pop();
        let leaves = self.fill(part.expect("at least one"), entries)?;
        self.raise([leaves])
    }

    /// The parts of all keys between these fences, which ascend; one more than there are fences. They are to be
    /// [filled](Self::fill), each by any thread, and then [raised](Self::raise). What is not raised takes memory as
    /// long as the tree is there.
    ///
    /// # Errors
    /// There is no memory.
    pub fn parts(&self, fences: &[K::Ref<'_>]) -> Result<Vec<Part<K>>, K::Error> {
        let mut firsts = Vec::with_capacity(fences.len() + 1);
        for _ in 0..=fences.len() {
            self.space.prepare();
            firsts.push(self.space.take(0)?);
        }
        let part = |(at, &first): (usize, &u32)| Part {
            low: at.checked_sub(1).map(|before| K::own(fences[before])),
            high: fences.get(at).map(|high| K::own(*high)),
            first,
            right: firsts.get(at + 1).copied().unwrap_or(0),
        };
        Ok(firsts.iter().enumerate().map(part).collect())
    }

    /// Makes the leaves of a part, with these entries, which are all of its keys, in their order.
    ///
    /// # Errors
    /// [`BuildError`], of keys that are not the part's as of those that do not ascend.
    pub fn fill<'e>(
        &self,
        part: Part<K>,
        entries: impl IntoIterator<Item = (K::Ref<'e>, u64)>,
    ) -> Result<Leaves<K>, BuildError<K::Error>> {
        let mut level = Level::new(self, 0, part.first, part.low);
        let filled = level.fill(entries, part.high, part.right);
        match filled {
            Ok(()) => Ok(Leaves(level.nodes)),
            Err(error) => {
                self.give_all(&level.nodes);
                Err(error)
            }
        }
    }

    /// Puts the leaves of all parts, in their order, into the tree, which is empty. Others see it empty, and all
    /// entries from one moment on.
    ///
    /// # Errors
    /// [`BuildError`]. Then nothing is put in.
    pub fn raise(
        &self,
        leaves: impl IntoIterator<Item = Leaves<K>>,
    ) -> Result<(), BuildError<K::Error>> {
        let leaves = leaves.into_iter().flat_map(|leaves| leaves.0);
        let mut levels: Vec<Vec<Filled<K>>> = vec![leaves.collect()];
        let raised = self.raise_levels(&mut levels);
        if raised.is_err() {
            levels.iter().for_each(|level| self.give_all(level));
        }
        raised
    }

    fn raise_levels(&self, levels: &mut Vec<Vec<Filled<K>>>) -> Result<(), BuildError<K::Error>> {
        let no_memory = |error: OutOfMemory| BuildError::Entry(error.into());
        loop {
            let below = levels.last().expect("the leaves");
            let at = levels.len() - 1;
            if let [root] = &below[..] {
                return match self.replace_root(root.number, at as u8) {
                    true => Ok(()),
                    false => Err(BuildError::NotEmpty),
                };
            }
            let at = at as u8 + 1;
            let first = self.space.take(at).map_err(no_memory)?;
            let mut level = Level::new(self, at, first, None);
            let led = level.lead_to(below);
            levels.push(level.nodes);
            led.map_err(no_memory)?;
        }
    }

    fn give_all(&self, nodes: &[Filled<K>]) {
        nodes.iter().for_each(|node| self.bury(node.number));
    }

    fn is_unused(&self) -> bool {
        let (number, level) = self.root();
        level == 0 && self.space.node(number).read(|root| root.count()) == 0
    }

    /// Makes a node the root, if the root is a leaf without entries.
    fn replace_root(&self, number: u32, level: u8) -> bool {
        let root = self.root.0.load(Acquire);
        let (old, height) = self.root();
        if height > 0 {
            return false;
        }
        let mut leaf = self.space.node(old).hold();
        let (meta, count) = (leaf.node.meta(), leaf.node.count());
        if !meta.is_alive() || meta.level() > 0 || !meta.is_last() || count > 0 {
            return false;
        }
        // Nobody else changes it while its only leaf is held and was not split.
        let built = root_word(number, level);
        let replaced = (self.root.0).compare_exchange(root, built, AcqRel, Acquire);
        if replaced.is_err() {
            return false;
        }
        leaf.set_meta(Meta::dead());
        drop(leaf);
        self.space.give(old);
        true
    }
}
