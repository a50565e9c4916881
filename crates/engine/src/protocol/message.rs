//! How a typed message becomes a command, and a command the message again.
//!
//! ```text
//! Insert { … } ── pack ──▶ kind · rank · callback │ parcel: ToOwner::Insert(…) ── unpack ──▶ ToOwner::Insert(…)
//! Credit { … } ── pack ──▶ kind · rank · callback │ words: 2, 0                ── unpack ──▶ ToOwner::Credit(…)
//! ```
//!
//! What is small and can be copied travels as words, without an allocation. All else is a parcel, of one type for all
//! messages, so that nobody has to guess what is in it.

use super::callback::Callback;
use super::lists::Parcel;
use super::words::Words;
use eris_aeu::AeuContext;
use eris_route::{Endpoint, Header, Rank};
use eris_types::ObjectId;

/// What an AEU's handler and its tasks send with; `T` are the tasks.
pub(crate) type Context<'a, T> = AeuContext<'a, T, Parcel>;

/// Something that travels. Which type has which kind and form is listed in [`lists`](super::lists).
pub(crate) trait Message: Sized {
    /// Commands of one object and one kind are executed as one group.
    const KIND: u16;
    const RANK: Rank;

    fn pack(self) -> Packed;
}

/// All that one kind of receiver may get.
pub(crate) trait List: Sized {
    /// The message of a command.
    fn unpack(kind: u16, words: &[u64], parcel: Option<Box<Parcel>>) -> Self;

    /// Whether somebody waits for the answer to a message of this kind.
    fn is_awaited(kind: u16) -> bool;
}

/// A message of a list.
pub(crate) trait Listed<List>: Message {
    /// The message, if it is of this type.
    fn of_list(message: List) -> Option<Self>;
}

/// A message without its header.
pub(crate) struct Packed {
    words: [u64; 2],
    len: usize,
    /// What does not fit into words.
    parcel: Option<Box<Parcel>>,
}

impl Packed {
    pub fn of_parcel(parcel: Parcel) -> Self {
        Packed {
            words: [0; 2],
            len: 0,
            parcel: Some(Box::new(parcel)),
        }
    }

    /// The words and the parcel, as they are sent.
    pub fn take(&mut self) -> (&[u64], Option<Box<Parcel>>) {
        (&self.words[..self.len], self.parcel.take())
    }

    pub fn of_words<W: Words>(message: &W) -> Self {
        Packed {
            words: message.to_words(),
            len: W::LEN,
            parcel: None,
        }
    }
}

/// The list of what one kind of receiver may get: an enum, the kind of each of its messages, and how they are packed
/// and unpacked.
///
/// A row names a message, whether it travels as `words` or as a `parcel`, and its rank, unless it is a [`Request`],
/// which has one.
///
/// [`Request`]: super::request::Request
macro_rules! messages {
    (
        $(#[$meta:meta])*
        enum $list:ident, $kind:ident from $first:literal { $($name:ident: $form:ident $($rank:ident)?),* $(,)? }
    ) => {
        $(#[$meta])*
        pub(crate) enum $list {
            $($name($name)),*
        }

        enum $kind {
            $($name),*
        }

        $(impl $crate::protocol::message::Message for $name {
            const KIND: u16 = $first + $kind::$name as u16;
            const RANK: eris_route::Rank = messages!(@rank $name $($rank)?);

            fn pack(self) -> $crate::protocol::message::Packed {
                messages!(@pack $form $list $name self)
            }
        })*

        $(impl $crate::protocol::message::Listed<$list> for $name {
            fn of_list(message: $list) -> Option<Self> {
                match message {
                    $list::$name(message) => Some(message),
                    _ => None,
                }
            }
        })*

        impl $crate::protocol::message::List for $list {
            fn unpack(kind: u16, words: &[u64], parcel: Option<Box<Parcel>>) -> Self {
                if let Some(parcel) = parcel {
                    return match *parcel {
                        Parcel::$list(message) => message,
                        _ => unreachable!("owners send answers, and clients requests"),
                    };
                }
                $(messages!(@unpack $form $list $name kind words);)*
                unreachable!("no message of kind {kind} has no parcel")
            }

            fn is_awaited(kind: u16) -> bool {
                match kind {
                    $(kind if kind == <$name as $crate::protocol::message::Message>::KIND => {
                        messages!(@awaited $name $($rank)?)
                    })*
                    _ => false,
                }
            }
        }
    };
    (@awaited $name:ident) => {
        <$name as $crate::protocol::request::Request>::AWAITED
    };
    (@awaited $name:ident $rank:ident) => {
        false
    };
    (@rank $name:ident) => {
        <$name as $crate::protocol::request::Request>::RANK
    };
    (@rank $name:ident $rank:ident) => {
        eris_route::Rank::$rank
    };
    (@pack words $list:ident $name:ident $message:ident) => {
        $crate::protocol::message::Packed::of_words(&$message)
    };
    (@pack parcel $list:ident $name:ident $message:ident) => {
        $crate::protocol::message::Packed::of_parcel(Parcel::$list($list::$name($message)))
    };
    (@unpack words $list:ident $name:ident $kind:ident $words:ident) => {
        if $kind == <$name as $crate::protocol::message::Message>::KIND {
            return $list::$name($crate::protocol::words::Words::of($words));
        }
    };
    (@unpack parcel $list:ident $name:ident $kind:ident $words:ident) => {};
}
pub(crate) use messages;

/// A message's header.
pub(crate) fn header<M: Message>(
    object: ObjectId,
    sender: Endpoint,
    callback: impl Callback,
) -> Header {
    Header {
        kind: M::KIND,
        rank: M::RANK,
        object,
        sender,
        callback: callback.to_bits(),
    }
}

/// Sends a message on behalf of this AEU.
pub(crate) fn send<T, M: Message>(
    cx: &mut Context<'_, T>,
    to: Endpoint,
    object: ObjectId,
    callback: impl Callback,
    message: M,
) {
    let header = header::<M>(object, cx.endpoint(), callback);
    forward(cx, to, header, message);
}

/// Sends a message with this header: on behalf of whoever is its sender, and gets the answer.
pub(crate) fn forward<T, M: Message>(
    cx: &mut Context<'_, T>,
    to: Endpoint,
    header: Header,
    message: M,
) {
    let mut packed = message.pack();
    let (words, parcel) = packed.take();
    cx.send(to, header, words, parcel);
}
