//! Grouping: the commands of one step by data object and kind (ERIS, Section 3.1: it lets scans be shared and lookups
//! be coalesced into one batch).

use eris_route::{Command, Header, Rank};
use eris_types::ObjectId;
use std::cell::Cell;
use std::fmt;

/// The end of a chain of entries.
const END: u32 = u32::MAX;

/// A command of this step; chained to the next one of its group.
struct GroupedCommand<'a, P> {
    header: Header,
    words: &'a [u64],
    /// In a cell, so that a group can be consumed through a shared borrow and the headers remain for [`Headers`].
    parcel: Cell<Option<Box<P>>>,
    next: u32,
}

/// A group as a chain of entries.
struct Chain {
    rank: Rank,
    object: ObjectId,
    kind: u16,
    head: u32,
    tail: u32,
    len: usize,
}

/// The commands of a step, sorted into groups: higher ranks first, then in the order of their first command.
///
/// Two numbers are recorded per command and nothing is moved, so grouping costs a few nanoseconds each.
pub(crate) struct Batch<'a, P> {
    entries: Vec<GroupedCommand<'a, P>>,
    chains: Vec<Chain>,
    /// The chain of the command before.
    last: usize,
}

impl<'a, P> Batch<'a, P> {
    pub(crate) fn new() -> Self {
        Batch {
            entries: Vec::new(),
            chains: Vec::new(),
            last: 0,
        }
    }

    /// Inlined into the loop over the inbox, so that a command goes from the buffer into its entry without a copy
    /// between.
    #[inline(always)]
    pub(crate) fn push(&mut self, command: Command<'a, P>) {
        let Command {
            header,
            words,
            parcel,
        } = command;
        let at = self.entries.len() as u32;
        self.entries.push(GroupedCommand {
            header,
            words,
            parcel: Cell::new(parcel),
            next: END,
        });
        let same = |chain: &Chain| {
            chain.object == header.object && chain.kind == header.kind && chain.rank == header.rank
        };
        // Commands of a kind mostly come in runs, and the kinds of a step are few.
        let found = match self.chains.get(self.last) {
            Some(chain) if same(chain) => Some(self.last),
            _ => self.chains.iter().rposition(same),
        };
        match found {
            Some(found) => {
                let chain = &mut self.chains[found];
                self.entries[chain.tail as usize].next = at;
                chain.tail = at;
                chain.len += 1;
                self.last = found;
            }
            None => {
                let Header {
                    rank, object, kind, ..
                } = header;
                self.last = self.chains.len();
                self.chains.push(Chain {
                    rank,
                    object,
                    kind,
                    head: at,
                    tail: at,
                    len: 1,
                });
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The groups, in the order of their execution.
    pub(crate) fn groups(&mut self) -> impl Iterator<Item = Group<'_, P>> {
        self.chains
            .sort_by_key(|chain| std::cmp::Reverse(chain.rank));
        let entries: &[GroupedCommand<'_, P>] = &self.entries;
        self.chains.iter().map(move |chain| {
            let Chain {
                rank,
                object,
                kind,
                head,
                len,
                ..
            } = *chain;
            Group {
                entries,
                at: head,
                left: len,
                rank,
                object,
                kind,
            }
        })
    }

    /// An empty batch with the same memory, for other commands.
    pub(crate) fn recycle<'b>(mut self) -> Batch<'b, P> {
        self.chains.clear();
        self.entries.clear();
        // Collecting an empty vector into one of the same layout keeps its allocation.
        let entries = self
            .entries
            .into_iter()
            .map(|_| unreachable!("it is empty"))
            .collect();
        Batch {
            entries,
            chains: self.chains,
            last: 0,
        }
    }
}

/// Commands of one data object, kind and rank, in arrival order. An iterator: what is not taken is dropped later.
pub struct Group<'a, P = ()> {
    entries: &'a [GroupedCommand<'a, P>],
    at: u32,
    left: usize,
    rank: Rank,
    object: ObjectId,
    kind: u16,
}

impl<'a, P> Group<'a, P> {
    /// The rank of every command in it.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The headers of the commands not yet taken.
    pub fn headers(&self) -> Headers<'a, P> {
        Headers {
            entries: self.entries,
            at: self.at,
            left: self.left,
        }
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.object
    }

    pub(crate) fn kind(&self) -> u16 {
        self.kind
    }
}

impl<'a, P> Iterator for Group<'a, P> {
    type Item = Command<'a, P>;

    #[inline]
    fn next(&mut self) -> Option<Command<'a, P>> {
        let entry = self.entries.get(self.at as usize)?;
        self.at = entry.next;
        self.left -= 1;
        Some(Command {
            header: entry.header,
            words: entry.words,
            parcel: entry.parcel.take(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<P> ExactSizeIterator for Group<'_, P> {}

/// The headers of a group, in arrival order.
pub struct Headers<'a, P = ()> {
    entries: &'a [GroupedCommand<'a, P>],
    at: u32,
    left: usize,
}

impl<P> Clone for Headers<'_, P> {
    fn clone(&self) -> Self {
        Headers { ..*self }
    }
}

impl<'a, P> Iterator for Headers<'a, P> {
    type Item = &'a Header;

    fn next(&mut self) -> Option<&'a Header> {
        let entry = self.entries.get(self.at as usize)?;
        self.at = entry.next;
        self.left -= 1;
        Some(&entry.header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<P> ExactSizeIterator for Headers<'_, P> {}

impl<P> fmt::Debug for Headers<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
