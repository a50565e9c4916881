//! What travels: a command's header, its inline data segment and its parcel.

use crate::Endpoint;
use eris_types::ObjectId;

/// The class of a command. Back-pressure on one rank may only wait for a strictly higher one; see the crate's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rank {
    /// Work that a session brings in. Waits at the session while the engine is busy.
    Client = 0,
    /// Work that AEUs make for each other: scans, lookups of a join, intermediate results.
    Scan = 1,
    /// Answers and credits.
    Reply = 2,
    /// Cancels, balancing, transfers. Never waits.
    Control = 3,
}

impl Rank {
    /// All ranks, lowest first.
    pub const ALL: [Rank; 4] = [Rank::Client, Rank::Scan, Rank::Reply, Rank::Control];
}

/// What every command says about itself. `kind` and `callback` mean something to the handler alone.
///
/// The fields lie as they do in a buffer (drawn in `wire.rs`), so that reading one is a copy of 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// The data object the command is about.
    pub object: ObjectId,
    /// Where the answer goes. A forwarded command keeps its first sender.
    pub sender: Endpoint,
    /// What the sender needs to find the answer's continuation.
    pub callback: u64,
    /// The storage operation. Commands of one object and one kind are executed as one group.
    pub kind: u16,
    /// The class for back-pressure.
    pub rank: Rank,
}

impl Header {
    /// Words that it takes in a buffer.
    pub const WORDS: usize = 3;
}

/// A received command. Its words lie in the inbox buffer and are valid until the next receive.
///
/// A parcel is what is too large or too typed to be copied: it travels as a pointer, and whoever holds the command owns
/// it. All parcels of a [`Router`](crate::Router) are of one type `P`, mostly an enum. The parcel of a command that is
/// rejected, or that its receiver never looks at, is dropped. In its box, so that a command without one stays small.
#[derive(Debug)]
pub struct Command<'a, P = ()> {
    /// The header.
    pub header: Header,
    /// The inline data segment.
    pub words: &'a [u64],
    /// The parcel, if one was sent along.
    pub parcel: Option<Box<P>>,
}

impl<P> Command<'_, P> {
    /// A copy that outlives the inbox buffer: for a command that is put off.
    pub fn into_owned(self) -> OwnedCommand<P> {
        OwnedCommand {
            header: self.header,
            words: self.words.into(),
            parcel: self.parcel,
        }
    }
}

/// A command with its own copy of the data segment.
#[derive(Debug)]
pub struct OwnedCommand<P = ()> {
    /// The header.
    pub header: Header,
    /// The data segment.
    pub words: Box<[u64]>,
    /// The parcel, if one was sent along.
    pub parcel: Option<Box<P>>,
}

impl<P> OwnedCommand<P> {
    /// A copy of a command without a parcel.
    pub fn of((header, words): (&Header, &[u64])) -> Self {
        OwnedCommand {
            header: *header,
            words: words.into(),
            parcel: None,
        }
    }
}
