//! What every request to an owner says of itself.

use super::callback::Callback;
use eris_route::Rank;

/// A message to an owner.
pub(crate) trait Request: Sized {
    /// What it may wait for; see the page of [`eris_route`].
    const RANK: Rank;
    /// What the callback is to its sender.
    type Callback: Callback;
    /// What it is answered with, if somebody waits.
    type Reply: Reply;
    /// Whether somebody waits, who must hear of it if the owner panics.
    const AWAITED: bool = <Self::Reply as Reply>::IS_SENT;
}

/// What a request is answered with.
pub(crate) trait Reply {
    const IS_SENT: bool = true;
}

/// Nobody waits.
pub(crate) enum NoReply {}

impl Reply for NoReply {
    const IS_SENT: bool = false;
}
