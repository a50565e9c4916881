//! A tree is built from entries that ascend.
//!
//! ```text
//! level 1    [ ≤ 40 │ ≤ 90 │            being filled
//! level 0    [ 20 40 ]─▶[ 50 90 ]─▶[ 95      being filled        ─▶ a number that is known already
//! ```
//! A node is written once, when the next entry has no room. Its right link is the number of the node that is filled
//! next. So all levels are built in one pass. Nothing leads to these nodes until the root does, which is changed at one
//! moment.

use crate::entries::Buffer;
use crate::error::BuildError;
use crate::key::Key;
use crate::node::Meta;
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::tree::{Tree, root_word};
use eris_numa::OutOfMemory;

/// A node that is being filled.
struct Filled<K: Key + ?Sized> {
    number: u32,
    low: Option<K::Owned>,
    entries: K::Entries,
    filling: K::Filling,
}

struct Builder<'a, K: Key + ?Sized> {
    tree: &'a Tree<K>,
    /// From the leaves on.
    levels: Vec<Filled<K>>,
    /// All nodes that were made, to give them back.
    made: Vec<u32>,
}

impl<K: Key + ?Sized> Builder<'_, K> {
    fn take(&mut self, level: usize) -> Result<u32, OutOfMemory> {
        self.tree.space.prepare();
        let number = self.tree.space.take(level as u8)?;
        self.made.push(number);
        Ok(number)
    }

    /// Adds an entry to a level: of a leaf, or a child with its high fence.
    fn add(&mut self, level: usize, key: K::Ref<'_>, value: u64) -> Result<(), OutOfMemory> {
        if level == self.levels.len() {
            let number = self.take(level)?;
            self.levels.push(Filled {
                number,
                low: None,
                entries: K::Entries::default(),
                filling: K::Filling::default(),
            });
        }
        if !self.has_room(level, key) {
            let last = self.last(level);
            let high = match level {
                0 => K::separator(K::lend(&last), key),
                _ => last,
            };
            self.close(level, high)?;
            self.has_room(level, key);
        }
        self.levels[level].entries.add(key, value);
        Ok(())
    }

    fn has_room(&mut self, level: usize, key: K::Ref<'_>) -> bool {
        let Filled {
            low,
            entries,
            filling,
            ..
        } = &mut self.levels[level];
        K::has_room(
            filling,
            low.as_ref().map(K::lend),
            entries,
            key,
            level as u8,
        )
    }

    /// The last key of a level.
    fn last(&self, level: usize) -> K::Owned {
        let entries = &self.levels[level].entries;
        K::own(entries.entry(entries.count() - 1).0)
    }

    /// Writes the node that is being filled, if its entries fit between these fences.
    fn write(&self, level: usize, right: u32, high: Option<&K::Owned>) -> bool {
        let Filled {
            number,
            low,
            entries,
            ..
        } = &self.levels[level];
        let mut node = self.tree.space.node(*number).hold();
        let fences = (low.as_ref().map(K::lend), high.map(K::lend));
        K::write(&mut node, (level as u8, right), fences, entries)
    }

    /// Writes the node that is being filled, and begins the next one. Its parent gets its high fence.
    fn close(&mut self, level: usize, mut high: K::Owned) -> Result<(), OutOfMemory> {
        let next = self.take(level)?;
        if !self.write(level, next, Some(&high)) {
            // A fence behind the last key may have less in common with the others.
            high = self.last(level);
            assert!(
                self.write(level, next, Some(&high)),
                "what was counted fits"
            );
        }
        let node = &mut self.levels[level];
        let number = node.number;
        node.number = next;
        node.low = Some(high.clone());
        node.entries.empty();
        node.filling = K::Filling::default();
        self.add(level + 1, K::lend(&high), u64::from(number))
    }

    /// Writes the last node of each level: the root's number, and its level.
    fn finish(&mut self) -> Result<(u32, u8), OutOfMemory> {
        if !self.write(0, 0, None) {
            // What has no high fence has no prefix. So these get one, and a leaf behind it has no entries.
            let last = self.last(0);
            self.close(0, last)?;
            self.write(0, 0, None);
        }
        let mut level = 0;
        while level + 1 < self.levels.len() {
            let child = u64::from(self.levels[level].number);
            level += 1;
            self.levels[level].entries.add(K::least(), child);
            if !self.write(level, 0, None) {
                self.levels[level].entries.drop_last();
                let last = self.last(level);
                self.close(level, last)?;
                self.levels[level].entries.add(K::least(), child);
                self.write(level, 0, None);
            }
        }
        Ok((self.levels[level].number, level as u8))
    }

    fn build<'e>(
        &mut self,
        entries: impl IntoIterator<Item = (K::Ref<'e>, u64)>,
    ) -> Result<(), BuildError<K::Error>> {
        let no_memory = |error: OutOfMemory| BuildError::Entry(error.into());
        let mut last: Option<K::Ref<'e>> = None;
        for (at, (key, value)) in entries.into_iter().enumerate() {
            K::check(key).map_err(BuildError::Entry)?;
            if last.is_some_and(|last| K::compare(last, key).is_ge()) {
                return Err(BuildError::NotAscending(at));
            }
            self.add(0, key, value).map_err(no_memory)?;
            last = Some(key);
        }
        if last.is_none() {
            return Ok(());
        }
        let (number, level) = self.finish().map_err(no_memory)?;
        if !self.tree.replace_root(number, level) {
            return Err(BuildError::NotEmpty);
        }
        // They are the tree's now.
        self.made.clear();
        Ok(())
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
        let mut builder = Builder {
            tree: self,
            levels: Vec::new(),
            made: Vec::new(),
        };
        if !self.is_unused() {
            return Err(BuildError::NotEmpty);
        }
        let built = builder.build(entries);
        builder.made.iter().for_each(|&number| self.bury(number));
        built
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
