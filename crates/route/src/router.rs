//! The directory of all inboxes.

use crate::doorbell::{Bell, WakerBell};
use crate::inbox::Inbox;
use crate::{Endpoint, RouteError, wire};
use eris_types::AeuId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Sizes of the buffers, in 64-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// One outgoing buffer: when it is full it is flushed. At least 6, at most half an inbox, so that a whole buffer
    /// of the lowest rank fits an empty inbox.
    pub outgoing: usize,
    /// Each of an AEU's two incoming buffers.
    pub aeu_inbox: usize,
    /// Each of a session's two incoming buffers.
    pub session_inbox: usize,
}

impl Default for BufferSizes {
    /// 8 KiB outgoing, a good hundred lookups; 512 KiB incoming at an AEU, 64 KiB at a session.
    fn default() -> Self {
        BufferSizes {
            outgoing: 1 << 10,
            aeu_inbox: 1 << 16,
            session_inbox: 1 << 13,
        }
    }
}

/// A session's inbox and bell: made for the first session of the slot, reused by the later ones.
struct SessionSlot<P> {
    inbox: Arc<Inbox<P>>,
    bell: Arc<WakerBell>,
}

struct AeuSlot<P> {
    inbox: Arc<Inbox<P>>,
    taken: AtomicBool,
}

/// What a session's port is made of.
type SessionParts<P> = (Endpoint, Arc<Inbox<P>>, Arc<WakerBell>);

/// A slot rests until so many others have closed after it: generations then repeat later. Under the model checker it
/// does not, so that the reuse of a slot is reached.
const RESTING: usize = if cfg!(loom) { 0 } else { 64 };

/// The inboxes of all AEUs and sessions. Ports are taken from it. `P` is what travels as a parcel.
pub struct Router<P = ()> {
    sizes: BufferSizes,
    aeus: Box<[AeuSlot<P>]>,
    sessions: Box<[OnceLock<SessionSlot<P>>]>,
    /// Closed slots, oldest first. Locked when a session opens or closes, never on the data path.
    closed: Mutex<VecDeque<usize>>,
    /// Slots from here on were never used. Written under the lock above; read without it by [`Router::ring_all`],
    /// relaxed: a sender that was rejected has marked the inbox and fenced after it opened, the owner fenced before it
    /// looked.
    unused: AtomicUsize,
}

impl<P: Send + 'static> Router<P> {
    /// A router for the AEUs `0..aeus`, and sessions as they come.
    ///
    /// # Panics
    /// If the sizes break the bounds given at [`BufferSizes`].
    pub fn new(aeus: usize, sizes: BufferSizes) -> Arc<Router<P>> {
        assert!(
            sizes.outgoing >= wire::MIN_BUFFER_WORDS,
            "an outgoing buffer holds no command"
        );
        let smallest = sizes.aeu_inbox.min(sizes.session_inbox);
        assert!(
            sizes.outgoing <= smallest / 2,
            "an outgoing buffer must fit half an inbox"
        );
        let aeu = || AeuSlot {
            inbox: Arc::new(Inbox::new(sizes.aeu_inbox)),
            taken: AtomicBool::new(false),
        };
        Arc::new(Router {
            sizes,
            aeus: (0..aeus).map(|_| aeu()).collect(),
            sessions: (0..Endpoint::MAX_SESSIONS)
                .map(|_| OnceLock::new())
                .collect(),
            closed: Mutex::new(VecDeque::new()),
            unused: AtomicUsize::new(0),
        })
    }
}

impl<P> Router<P> {
    /// The sizes of the buffers.
    pub fn sizes(&self) -> BufferSizes {
        self.sizes
    }

    /// How many AEUs there are.
    pub fn aeus(&self) -> usize {
        self.aeus.len()
    }

    /// The inbox of an AEU, for its one owner.
    ///
    /// # Panics
    /// If there is no such AEU, or it has its owner already.
    pub(crate) fn take_aeu(&self, id: AeuId) -> Arc<Inbox<P>> {
        let slot = &self.aeus[id.index()];
        assert!(
            !slot.taken.swap(true, Ordering::Relaxed),
            "the port of {id} is taken"
        );
        slot.inbox.clone()
    }

    /// A slot for a new session: its endpoint, inbox and bell.
    pub(crate) fn take_session(&self) -> Result<SessionParts<P>, RouteError> {
        let number = {
            let mut closed = self
                .closed
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            let limit = self.sessions.len();
            if (closed.is_empty() || closed.len() < RESTING)
                && self.unused.load(Ordering::Relaxed) < limit
            {
                self.unused.fetch_add(1, Ordering::Relaxed)
            } else {
                closed
                    .pop_front()
                    .ok_or(RouteError::TooManySessions { limit })?
            }
        };
        let mut used = true;
        let slot = self.sessions[number].get_or_init(|| {
            used = false;
            let bell = Arc::new(WakerBell::new());
            let inbox = Arc::new(Inbox::new(self.sizes.session_inbox));
            inbox.set_bell(bell.clone());
            SessionSlot { inbox, bell }
        });
        let generation = if used { slot.inbox.generation() + 1 } else { 0 };
        let endpoint = Endpoint::session(number as u32, generation);
        Ok((endpoint, slot.inbox.clone(), slot.bell.clone()))
    }

    /// The inbox of an endpoint; `None` if it never was one. Whether it is alive, the inbox knows.
    pub(crate) fn inbox(&self, endpoint: Endpoint) -> Option<&Arc<Inbox<P>>> {
        match endpoint.as_aeu() {
            Some(aeu) => self.aeus.get(aeu.index()).map(|slot| &slot.inbox),
            None => self.sessions[endpoint.slot()].get().map(|slot| &slot.inbox),
        }
    }

    pub(crate) fn set_bell(&self, endpoint: Endpoint, bell: Arc<dyn Bell>) {
        if let Some(inbox) = self.inbox(endpoint) {
            inbox.set_bell(bell);
        }
    }

    /// Rings every endpoint: room appeared that some sender had been rejected.
    pub(crate) fn ring_all(&self) {
        let unused = self.unused.load(Ordering::Relaxed);
        let sessions = self.sessions[..unused].iter().filter_map(|slot| slot.get());
        let inboxes = self
            .aeus
            .iter()
            .map(|slot| &slot.inbox)
            .chain(sessions.map(|slot| &slot.inbox));
        inboxes.for_each(|inbox| inbox.ring());
    }

    /// A closed session's slot may be used again.
    pub(crate) fn release(&self, endpoint: Endpoint) {
        if endpoint.as_aeu().is_none() {
            let mut closed = self
                .closed
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            closed.push_back(endpoint.slot());
        }
    }
}
