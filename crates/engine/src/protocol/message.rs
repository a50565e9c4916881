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
use super::payload::Payload;
use super::request::Request;
use super::words::Words;
use eris_aeu::AeuContext;
use eris_home::TrafficKind;
use eris_route::{Endpoint, Header, Rank};
use eris_telemetry::TRAFFIC_KINDS;
use eris_types::ObjectId;

const _: () = assert!(TrafficKind::ALL.len() <= TRAFFIC_KINDS);

/// What an AEU's handler and its tasks send with; `T` are the tasks.
pub(crate) type Context<'a, T> = AeuContext<'a, T, Parcel>;

/// Something that travels. Which type has which kind and form is listed in [`lists`](super::lists).
pub(crate) trait Message: Sized {
    /// Commands of one object and one kind are executed as one group.
    const KIND: u16;
    const RANK: Rank;
    /// What it counts as when it goes to another node.
    const TRAFFIC: TrafficKind;

    /// Bytes beside the command's that its receiver reads from the sender's memory.
    fn payload(&self) -> u64;

    fn pack(self) -> Packed;
}

/// The bytes of a command, and of the box that a parcel is in.
pub(crate) fn command_bytes(words: usize, has_parcel: bool) -> u64 {
    let words = Header::WORDS + words + usize::from(has_parcel);
    let parcel = if has_parcel { size_of::<Parcel>() } else { 0 };
    (words * size_of::<u64>() + parcel) as u64
}

/// The payload of a parcel.
pub(crate) fn payload_of(parcel: &impl Payload) -> u64 {
    parcel.bytes()
}

/// All that one kind of receiver may get.
pub(crate) trait List: Sized {
    /// The message of a command.
    fn unpack(kind: u16, words: &[u64], parcel: Option<Box<Parcel>>) -> Self;

    /// What the message counts as, and its payload.
    fn traffic(&self) -> (TrafficKind, u64);
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
/// A row names a message, whether it travels as `words` or as a `parcel`, and what it counts as between nodes. In a
/// list of `requests` each message must be a [`Request`], which has a rank. In a list of `answers` the row names the
/// rank.
macro_rules! messages {
    (
        $(#[$meta:meta])*
        requests enum $list:ident, $kind:ident from $first:literal {
            $($name:ident: $form:ident $traffic:ident),* $(,)?
        }
    ) => {
        messages! {
            @list $(#[$meta])* $list, $kind, $first,
            $($name: $form $traffic <$name as $crate::protocol::request::Request>::RANK;)*
        }

        impl $kind {
            /// Their names, by kind.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The kind of a command.
            pub fn of(kind: u16) -> Self {
                match kind {
                    $(kind if kind == <$name as $crate::protocol::message::Message>::KIND => $kind::$name,)*
                    _ => unreachable!("no request is of kind {kind}"),
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        answers enum $list:ident, $kind:ident from $first:literal {
            $($name:ident: $form:ident $traffic:ident $rank:ident),* $(,)?
        }
    ) => {
        messages! {
            @list $(#[$meta])* $list, $kind, $first, $($name: $form $traffic eris_route::Rank::$rank;)*
        }
    };
    (
        @list $(#[$meta:meta])* $list:ident, $kind:ident, $first:literal,
        $($name:ident: $form:ident $traffic:ident $rank:expr;)*
    ) => {
        $(#[$meta])*
        pub(crate) enum $list {
            $($name($name)),*
        }

        /// Which of them a message is.
        pub(crate) enum $kind {
            $($name),*
        }

        $(impl $crate::protocol::message::Message for $name {
            const KIND: u16 = $first + $kind::$name as u16;
            const RANK: eris_route::Rank = $rank;
            const TRAFFIC: eris_home::TrafficKind = eris_home::TrafficKind::$traffic;

            fn payload(&self) -> u64 {
                messages!(@payload $form self)
            }

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

            fn traffic(&self) -> (eris_home::TrafficKind, u64) {
                use $crate::protocol::message::Message;
                match self {
                    $($list::$name(message) => ($name::TRAFFIC, message.payload()),)*
                }
            }
        }
    };
    (@payload words $message:ident) => {
        0
    };
    (@payload parcel $message:ident) => {
        $crate::protocol::message::payload_of($message)
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

/// A request's header.
pub(crate) fn header<R: Request + Message>(
    object: ObjectId,
    sender: Endpoint,
    callback: R::Callback,
) -> Header {
    header_of::<R>(object, sender, callback.to_bits())
}

fn header_of<M: Message>(object: ObjectId, sender: Endpoint, callback: u64) -> Header {
    Header {
        kind: M::KIND,
        rank: M::RANK,
        object,
        sender,
        callback,
    }
}

/// Sends a request on behalf of this AEU.
pub(crate) fn send<T, R: Request + Message>(
    cx: &mut Context<'_, T>,
    to: Endpoint,
    object: ObjectId,
    callback: R::Callback,
    request: R,
) {
    let header = header::<R>(object, cx.endpoint(), callback);
    send_with(cx, to, header, request);
}

/// Sends a request on behalf of whoever has sent another one, and gets the answer.
pub(crate) fn forward<T, R: Request + Message>(
    cx: &mut Context<'_, T>,
    to: Endpoint,
    object: ObjectId,
    (sender, callback): (Endpoint, R::Callback),
    request: R,
) {
    send_with(cx, to, header::<R>(object, sender, callback), request);
}

/// Sends an answer. Only [`Asked`](super::asked::Asked) knows whose callback it is.
pub(super) fn send_answer<T, M: Message>(
    cx: &mut Context<'_, T>,
    to: Endpoint,
    object: ObjectId,
    callback: impl Callback,
    answer: M,
) {
    let header = header_of::<M>(object, cx.endpoint(), callback.to_bits());
    send_with(cx, to, header, answer);
}

fn send_with<T, M: Message>(cx: &mut Context<'_, T>, to: Endpoint, header: Header, message: M) {
    // What goes to a client, the client counts.
    let other = to.as_aeu().map(|aeu| cx.topology().node_of(aeu));
    let crosses = other.filter(|node| *node != cx.node());
    let payload = crosses.map_or(0, |_| message.payload());
    let mut packed = message.pack();
    let (words, parcel) = packed.take();
    if let Some(node) = crosses {
        let bytes = command_bytes(words.len(), parcel.is_some()) + payload;
        let nodes = cx.topology().nodes().len();
        let crossed = &cx.counters().crossed;
        crossed.add(nodes, node, M::TRAFFIC as usize, bytes);
    }
    cx.send(to, header, words, parcel);
}
