//! One endpoint's side of the routing layer.

use crate::doorbell::{Bell, WakerBell};
use crate::{Endpoint, FlushState, Incoming, Outgoing, Rank, Received, Router, Traffic};
use std::sync::Arc;
use std::task::Waker;

/// The sending and the receiving half of one endpoint. Not `Clone` and used through `&mut`: an inbox has one reader and
/// an outgoing buffer one writer by construction. It may move to another thread.
///
/// Dropping a port closes the endpoint: what was sent and not flushed, and what arrived and was not read, is dropped
/// with its parcels, and everything sent to it later is refused.
pub struct Port<P = ()> {
    outgoing: Outgoing<P>,
    incoming: Incoming<P>,
    endpoint: Endpoint,
    /// A session's own bell; an AEU is rung through the bell it was given.
    bell: Option<Arc<WakerBell>>,
}

impl<P> Port<P> {
    pub(crate) fn new(
        outgoing: Outgoing<P>,
        incoming: Incoming<P>,
        endpoint: Endpoint,
        bell: Option<Arc<WakerBell>>,
    ) -> Self {
        Port {
            outgoing,
            incoming,
            endpoint,
            bell,
        }
    }

    /// Who this is.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// The sending half.
    #[inline]
    pub fn outgoing(&mut self) -> &mut Outgoing<P> {
        &mut self.outgoing
    }

    /// See [`Outgoing::flush`].
    pub fn flush(&mut self) -> FlushState {
        self.outgoing.flush()
    }

    /// See [`Incoming::receive`].
    #[inline]
    pub fn receive(&mut self) -> Option<Received<'_, P>> {
        self.incoming.receive()
    }

    /// See [`Incoming::ready`].
    #[inline]
    pub fn ready(&mut self) -> bool {
        self.incoming.ready()
    }

    /// See [`Outgoing::pending`].
    pub fn pending(&self, target: Endpoint) -> usize {
        self.outgoing.pending(target)
    }

    /// See [`Outgoing::traffic`].
    pub fn traffic(&self) -> Traffic {
        self.outgoing.traffic()
    }

    /// See [`Incoming::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty()
    }

    /// See [`Incoming::admit_from`].
    pub fn admit_from(&mut self, lowest: Rank) {
        self.incoming.admit_from(lowest);
    }

    /// Both halves at once, so that one can send while it reads what it received.
    pub fn split(&mut self) -> (&mut Outgoing<P>, &mut Incoming<P>) {
        (&mut self.outgoing, &mut self.incoming)
    }

    /// Whom to wake when something arrives at this AEU, or room appears for it. The first bell counts. A session has
    /// one from birth.
    pub fn set_bell(&self, bell: Arc<dyn Bell>) {
        Router::set_bell(&self.outgoing.router, self.endpoint, bell);
    }

    /// A session's announcement that it waits: the waker is woken, once, by the next delivery or the next room that
    /// appears. Look once more, with [`Port::ready`] or [`Port::flush`], before waiting. An AEU has its own bell and is
    /// not woken by this.
    pub fn wake_by(&self, waker: &Waker) {
        if let Some(bell) = &self.bell {
            bell.arm(waker);
        }
    }

    /// Takes a [`Port::wake_by`] back.
    pub fn awake(&self) {
        if let Some(bell) = &self.bell {
            bell.disarm();
        }
    }
}
