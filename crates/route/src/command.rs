//! What travels: a command's header, its inline data segment and its parcel.

use crate::Endpoint;
use eris_types::ObjectId;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

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

/// What is too large or too typed to be copied: it travels as a pointer, and whoever holds the command owns it. The
/// parcel of a command that is refused, or that its receiver never looks at, is dropped.
///
/// One thin pointer, so that a command without one stays small.
pub struct Parcel(Box<Content>);

enum Content {
    Owned(Box<dyn Any + Send>),
    Shared(Arc<dyn Any + Send + Sync>),
}

impl Parcel {
    /// A value for one receiver.
    pub fn owned<T: Any + Send>(value: T) -> Self {
        Parcel(Box::new(Content::Owned(Box::new(value))))
    }

    /// A value for one receiver that has its box already.
    pub fn from_box<T: Any + Send>(value: Box<T>) -> Self {
        Parcel(Box::new(Content::Owned(value)))
    }

    /// A value shared by the receivers of a multicast, or with the sender.
    pub fn shared(value: Arc<dyn Any + Send + Sync>) -> Self {
        Parcel(Box::new(Content::Shared(value)))
    }

    /// The value of an owned parcel, if it is of this type; otherwise the parcel again.
    pub fn into_owned<T: Any>(self) -> Result<Box<T>, Parcel> {
        match *self.0 {
            Content::Owned(value) => value
                .downcast()
                .map_err(|value| Parcel(Box::new(Content::Owned(value)))),
            shared => Err(Parcel(Box::new(shared))),
        }
    }

    /// The value of a shared parcel, if it is of this type; otherwise the parcel again.
    pub fn into_shared<T: Any + Send + Sync>(self) -> Result<Arc<T>, Parcel> {
        match *self.0 {
            Content::Shared(value) => value.downcast().map_err(Parcel::shared),
            owned => Err(Parcel(Box::new(owned))),
        }
    }

    /// As one word that owns the parcel.
    pub(crate) fn into_word(self) -> u64 {
        Box::into_raw(self.0).expose_provenance() as u64
    }

    /// The parcel of a word.
    ///
    /// # Safety
    /// `word` came from [`Parcel::into_word`] and was not turned back before.
    pub(crate) unsafe fn from_word(word: u64) -> Parcel {
        // SAFETY: by the caller the pointer came from `Box::into_raw` and is owned here.
        Parcel(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(word as usize)) })
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.0 {
            Content::Owned(_) => "Parcel::owned",
            Content::Shared(_) => "Parcel::shared",
        })
    }
}

/// A received command. Its words lie in the inbox buffer and are valid until the next receive.
#[derive(Debug)]
pub struct Command<'a> {
    /// The header.
    pub header: Header,
    /// The inline data segment.
    pub words: &'a [u64],
    /// The parcel, if one was sent along.
    pub parcel: Option<Parcel>,
}

impl Command<'_> {
    /// A copy that outlives the inbox buffer: for a command that is put off.
    pub fn into_owned(self) -> OwnedCommand {
        OwnedCommand {
            header: self.header,
            words: self.words.into(),
            parcel: self.parcel,
        }
    }
}

/// A command with its own copy of the data segment.
#[derive(Debug)]
pub struct OwnedCommand {
    /// The header.
    pub header: Header,
    /// The data segment.
    pub words: Box<[u64]>,
    /// The parcel, if one was sent along.
    pub parcel: Option<Parcel>,
}
