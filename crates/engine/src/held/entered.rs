//! What one partition has entered in a secondary index: into an index of its own, or into the tree of all owners.

use crate::held::secondary::{IndexedValues, Secondary, Tree};
use crate::object::coding::ByteRange;
use crate::object::indexes::{Index, IndexSize};
use crate::object::path::{Enough, Path};
use crate::object::shared_index::{SharedBuild, SharedIndex};
use eris_blink::PutError;
use eris_column::ObjectMemory;
use eris_index::IndexError;
use eris_numa::Extent;
use eris_types::{AeuId, RowId};
use std::sync::Arc;

/// The entries.
#[derive(Debug)]
pub(crate) enum Entered {
    Own(Box<Secondary>),
    Shared(SharedEntries),
}

/// The entries of one owner in the tree of all.
#[derive(Debug)]
pub(crate) struct SharedEntries {
    index: Arc<Index>,
    owner: AeuId,
    /// Until the tree is built.
    build: Option<Arc<SharedBuild>>,
}

impl Entered {
    /// None yet, unless they are in the tree of all owners.
    pub fn new(index: &Arc<Index>, words: bool, owner: AeuId, home: ObjectMemory<'_>) -> Self {
        match index.tree() {
            None => Entered::Own(Box::new(Secondary::new(index.kind, words, home))),
            Some(_) => Entered::Shared(SharedEntries {
                index: Arc::clone(index),
                owner,
                build: index.build(),
            }),
        }
    }

    /// How many there are.
    pub fn size(&self) -> IndexSize {
        match self {
            Entered::Own(own) => own.size(),
            Entered::Shared(shared) => IndexSize {
                entries: shared.index.entries_of(shared.owner) as u64,
                ..IndexSize::default()
            },
        }
    }

    /// The memory that they are. A shared tree is told by the owner with whom it lies.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        match self {
            Entered::Own(own) => own.extents(all),
            Entered::Shared(shared) if shared.tree().home == shared.owner => {
                shared.tree().extents(all);
            }
            Entered::Shared(_) => {}
        }
    }

    /// Enters consecutive rows.
    ///
    /// # Errors
    /// No memory. None of them is entered then.
    pub fn insert(&mut self, values: &IndexedValues, first: RowId) -> Result<(), IndexError> {
        match self {
            Entered::Own(own) => own.insert(values, first),
            Entered::Shared(shared) => {
                let (index, owner) = (&shared.index, shared.owner);
                let tree = match &shared.build {
                    Some(build) if !build.is_raised() => build.beside(),
                    _ => shared.tree(),
                };
                let new = tree.enter(owner, values.all_bytes(), first);
                index.count(owner, new.map_err(index_error)?, 0);
                Ok(())
            }
        }
    }

    /// Takes consecutive rows out again, if they are entered.
    pub fn remove(&mut self, values: &IndexedValues, first: RowId) {
        match self {
            Entered::Own(own) => own.remove(values, first),
            Entered::Shared(shared) => {
                let leave =
                    |tree: &SharedIndex| tree.leave(shared.owner, values.all_bytes(), first);
                // Until all that was beside is entered, some are in both.
                let beside = shared.build.as_ref().map(|build| leave(build.beside()));
                let left = leave(shared.tree()).max(beside.unwrap_or(0));
                shared.index.count(shared.owner, 0, left);
            }
        }
    }

    /// The tree, if there is an order.
    pub fn tree(&self) -> Option<Tree<'_>> {
        match self {
            Entered::Own(own) => own.tree(),
            Entered::Shared(shared) => Some(Tree::Shared(shared.tree(), shared.owner)),
        }
    }

    /// An index of its own.
    pub fn own(&self) -> Option<&Secondary> {
        match self {
            Entered::Own(own) => Some(own),
            Entered::Shared(_) => None,
        }
    }
}

/// Why rows were not entered.
pub(crate) fn index_error(error: PutError) -> IndexError {
    match error {
        PutError::OutOfMemory(denied) => IndexError::OutOfMemory(denied),
        PutError::TooLong(bytes) => IndexError::KeyTooLong(bytes),
    }
}

impl SharedEntries {
    fn tree(&self) -> &SharedIndex {
        self.index.tree().expect("all owners share one")
    }

    /// Enters some of the rows that were written while the tree was built, behind an entry. The one behind which it
    /// goes on, if it does.
    ///
    /// # Errors
    /// No memory.
    pub fn enter_beside(&self, behind: Option<&[u8]>) -> Result<Option<Vec<u8>>, IndexError> {
        let build = self.build.as_ref().expect("the tree is built");
        let entered = (self.tree()).enter_from(build.beside(), self.owner, behind);
        entered.map_err(index_error)
    }

    /// The tree has all rows.
    pub fn end_build(&mut self) {
        self.build = None;
    }

    /// Says whether rows have come that are not entered.
    pub fn set_incomplete(&self, is_incomplete: bool) {
        self.index.set_incomplete(self.owner, is_incomplete);
    }

    /// Takes out some entries of rows that are gone, from where a path begins.
    pub fn clean(&self, path: &Path, is_gone: impl Fn(RowId) -> bool) {
        let clean = |ranges: &mut dyn Iterator<Item = &ByteRange>, from_end| {
            let removed = (self.tree()).clean(self.owner, ranges, from_end, &is_gone);
            self.index.count(self.owner, 0, removed);
        };
        let ranges = path.ranges.iter();
        match path.enough {
            Enough::All | Enough::First(_) => clean(&mut { ranges }, path.descending),
            Enough::Ends { first, last } => {
                if first {
                    clean(&mut ranges.clone(), false);
                }
                if last {
                    clean(&mut ranges.rev(), true);
                }
            }
        }
    }

    /// The same of some entries behind one. The one behind which it goes on, if it does.
    pub fn sweep(&self, behind: Option<&[u8]>, is_gone: impl Fn(RowId) -> bool) -> Option<Vec<u8>> {
        let (removed, next) = self.tree().sweep(self.owner, behind, is_gone);
        self.index.count(self.owner, 0, removed);
        next
    }
}
