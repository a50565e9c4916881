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
    type Reply: Reply<Self::Callback>;
}

/// What requests with these callbacks are answered with. A client takes an answer whatever its callback is. To an owner
/// an answer is a request, whose callback must be the same.
pub(crate) trait Reply<C> {}

/// Nobody waits.
pub(crate) enum NoReply {}

impl<C> Reply<C> for NoReply {}
