//! Commands that lie one after the other and are alike, taken from a batch in one piece.
//!
//! A sender mostly sends many commands of one kind in a row, and a flush copies them as they are. So their headers
//! repeat. One look at each finds how far a *stretch* of them goes, and they are then known by the first.
//!
//! ```text
//!  received  │A·│A·│A·│A·│ B··· │A·│A·│A·│P│A·│A·│      A, B: kinds   P: with a parcel
//!             └─stretch─┘└─────┘└─stretch┘ │ └────┘
//!                                     one command
//! ```
//!
//! All of a stretch are of one length. So the place of the next one does not depend on what lies in this one, and the
//! processor fetches many at a time. It would wait for each length otherwise, and lines of another core's cache come
//! slowly (docs/decisions/0033).

use crate::wire::{self, HEADER_WORDS};
use crate::{Command, Header};

/// Commands of one object, kind, rank and length, without parcels. An iterator over their headers and words.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Whole commands.
    words: &'a [u64],
    /// Words of each.
    each: usize,
    count: usize,
}

/// A piece of a batch.
#[derive(Debug)]
pub enum Piece<'a, P = ()> {
    /// Commands that are alike.
    Stretch(Stretch<'a>),
    /// One that owns something.
    Command(Command<'a, P>),
}

impl<'a> Stretch<'a> {
    pub(crate) const EMPTY: Stretch<'static> = Stretch {
        words: &[],
        each: HEADER_WORDS,
        count: 0,
    };

    /// The stretch at the front of `words`, which begin with a command without pointers; and the rest.
    #[inline]
    pub(crate) fn take(words: &'a [u64]) -> (Self, &'a [u64]) {
        let each = wire::command_len(words);
        let (mut end, mut count) = (each, 1);
        while words.len() - end >= each && wire::are_alike(words, &words[end..]) {
            end += each;
            count += 1;
            wire::fetch_ahead(words, end);
        }
        let (words, rest) = words.split_at(end);
        (Stretch { words, each, count }, rest)
    }

    /// The header of the first one: object, kind and rank are those of all. `None` when all were taken.
    pub fn header(&self) -> Option<&'a Header> {
        (self.count > 0).then(|| wire::header(self.words))
    }
}

impl<'a> Iterator for Stretch<'a> {
    type Item = (&'a Header, &'a [u64]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.count == 0 {
            return None;
        }
        let (command, rest) = self.words.split_at(self.each);
        self.words = rest;
        self.count -= 1;
        Some((wire::header(command), &command[HEADER_WORDS..]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Stretch<'_> {}
