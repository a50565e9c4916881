//! One endpoint's side of the routing layer.

use crate::doorbell::{Bell, WakerBell};
use crate::inbox::Inbox;
use crate::{
    Endpoint, FlushState, Incoming, Outgoing, Rank, Received, RouteError, Router, Traffic,
};
use eris_types::AeuId;
use std::sync::Arc;
use std::task::Waker;

/// The sending and the receiving half of one endpoint. Not `Clone` and used through `&mut`: an inbox has one reader and
/// an outgoing buffer one writer by construction. It may move to another thread.
///
/// Dropping a port closes the endpoint: what was sent and not flushed, and what arrived and was not read, is dropped
/// with its parcels, and everything sent to it later is rejected.
pub struct Port<P = ()> {
    outgoing: Outgoing<P>,
    incoming: Incoming<P>,
    endpoint: Endpoint,
    /// A session's own bell; an AEU is rung through the bell it was given.
    bell: Option<Arc<WakerBell>>,
}

impl<P> Router<P> {
    /// The port of an AEU. Taken once, on the AEU's own core: the calling thread touches the incoming buffers first and
    /// thereby places them. Commands sent before are kept by their senders.
    ///
    /// # Panics
    /// If there is no such AEU, or its port was taken.
    pub fn aeu_port(self: &Arc<Self>, id: AeuId) -> Port<P> {
        let inbox = self.take_aeu(id);
        self.port(Endpoint::aeu(id), inbox, None)
    }

    /// A port for a new session.
    ///
    /// # Errors
    /// All slots are taken.
    pub fn session(self: &Arc<Self>) -> Result<Port<P>, RouteError> {
        let (endpoint, inbox, bell) = self.take_session()?;
        Ok(self.port(endpoint, inbox, Some(bell)))
    }

    fn port(
        self: &Arc<Self>,
        endpoint: Endpoint,
        inbox: Arc<Inbox<P>>,
        bell: Option<Arc<WakerBell>>,
    ) -> Port<P> {
        Port {
            incoming: Incoming::open(self.clone(), inbox, endpoint),
            outgoing: Outgoing::new(self.clone()),
            endpoint,
            bell,
        }
    }
}

impl<P> Port<P> {
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
