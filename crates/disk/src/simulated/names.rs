//! The names of a simulated directory: what is seen, and what is on the medium.
//!
//! ```text
//!  create, rename, remove ──▶ now
//!                  └────────▶ pending ── flush of the directory ──▶ medium
//!                                └────── crash: each or not ───────▶ medium
//! ```
//!
//! Changes of different names come to the medium in any order. Those of one name keep theirs, and a rename is one
//! change of two names.

use super::random::{Kept, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

/// A file or directory, whatever its names are.
pub(super) type Inode = u64;
pub(super) type Map = BTreeMap<OsString, Inode>;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    now: Map,
    medium: Map,
    pending: Vec<Change>,
}

/// One change: a name that goes, and one that comes.
#[derive(Clone, Debug)]
struct Change {
    gone: Option<OsString>,
    named: Option<(OsString, Inode)>,
}

impl Names {
    /// A directory all of whose names are on the medium.
    pub(super) fn durable(names: Map) -> Self {
        Names {
            now: names.clone(),
            medium: names,
            pending: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> &Map {
        &self.now
    }

    pub(super) fn get(&self, name: &OsStr) -> Option<Inode> {
        self.now.get(name).copied()
    }

    pub(super) fn set(&mut self, name: &OsStr, inode: Inode) {
        self.change(Change {
            gone: None,
            named: Some((name.into(), inode)),
        });
    }

    pub(super) fn remove(&mut self, name: &OsStr) {
        self.change(Change {
            gone: Some(name.into()),
            named: None,
        });
    }

    pub(super) fn rename(&mut self, from: &OsStr, to: &OsStr, inode: Inode) {
        self.change(Change {
            gone: Some(from.into()),
            named: Some((to.into(), inode)),
        });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    pub(super) fn flush(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.medium);
        }
    }

    /// A flush fails: some changes are on the medium, and the others never will be. They are seen until the machine
    /// stops.
    pub(super) fn fail_flush(&mut self, random: &mut Random) {
        let kept = Kept::any(random);
        self.medium = self.after_crash(kept, random);
        self.pending.clear();
    }

    /// What is found on the medium after a crash.
    pub(super) fn after_crash(&self, kept: Kept, random: &mut Random) -> Map {
        let kept = kept.part(random);
        let mut medium = self.medium.clone();
        let mut lost = BTreeSet::new();
        for change in &self.pending {
            // What follows a lost change of the same name is lost with it.
            if kept.is_kept(random) && !change.names().any(|name| lost.contains(name)) {
                change.apply(&mut medium);
            } else {
                lost.extend(change.names());
            }
        }
        medium
    }

    /// All inodes that have or may yet have a name here.
    pub(super) fn inodes(&self) -> impl Iterator<Item = Inode> {
        let pending = self
            .pending
            .iter()
            .filter_map(|change| change.named.as_ref());
        let there = self.now.values().chain(self.medium.values());
        there.copied().chain(pending.map(|(_, inode)| *inode))
    }
}

impl Change {
    fn apply(&self, names: &mut Map) {
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((name, inode)) = &self.named {
            names.insert(name.clone(), *inode);
        }
    }

    fn names(&self) -> impl Iterator<Item = &OsString> {
        self.gone
            .iter()
            .chain(self.named.iter().map(|(name, _)| name))
    }
}
