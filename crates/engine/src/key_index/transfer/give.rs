//! The former owner's side: finds the keys that are to go, segment by segment, and gives each in its way.
//!
//! ```text
//! looking ─┬─ a whole segment, a near owner ──▶ linked ───────────────────────────▶ looking
//!          ├─ some of a segment ──▶ parting ──────────────────────────────────────▶ looking
//!          ├─ a far owner ──▶ streaming ──▶ closing ─┬─ linked there ──────────────▶ looking
//!          │                                         └─ failed: the keys stay ─▶ leaving
//!          └─ nothing more, links have arrived ──▶ GIVEN
//! ```
//!
//! Entries that were copied stay where they were, out of reach, until [`TidyTask`](crate::key_index::TidyTask) removes them.

use super::answers::{Asked, Doubt};
use super::part::{Parted, Parting, behind};
use super::rounds::Rounds;
use super::{DROPPED, Given, Handed, Moved, PIECE, Took, Transfer};
use crate::key_index::OwnedKeys;
use crate::key_index::batch::KeyBatch;
use crate::key_index::segment::Segment;
use crate::owner::{Context, Owner, Task};
use crate::protocol::{GIVEN, HAND_OVER, header};
use eris_aeu::Slice;
use eris_index::IndexError;
use eris_route::{Endpoint, Header, Parcel};
use eris_types::ObjectId;

/// Pieces that may be on their way. An owner with much else to do comes to them once in a long step, so that some are to be there then.
const UNDER_WAY: usize = 16;
/// An owner copies a piece for so many keys that it is asked for, which is about a third of its time: who is asked for much comes to a slice less often,
/// and shall be relieved the sooner.
const PER_PIECE: usize = 8 * PIECE;
/// Pieces that are copied in one slice, so that it is over within about a millisecond.
const MOST_PIECES: usize = 16;
/// Bytes of an entry.
const ENTRY: u64 = size_of::<(u64, u64)>() as u64;

/// The work of a former owner.
pub(crate) struct GiveTask {
    asked: Asked,
    moved: Moved,
    given: Vec<(u64, u64)>,
    /// Entries of the copy under way.
    streamed: usize,
    phase: Phase,
    /// What the new owner has not answered, and how many of that are links.
    under_way: usize,
    links: usize,
    /// The new owner has linked what it has got.
    is_linked: bool,
    /// Why the rest stays.
    failure: Option<String>,
}

enum Phase {
    /// Which keys are next.
    Looking,
    Parting(Parting),
    Streaming(Streaming),
    /// The copied keys are closed until the new owner has answered.
    Closing {
        low: u64,
        high: u64,
    },
    /// It is over once what was linked has arrived.
    Leaving,
}

struct Streaming {
    low: u64,
    high: u64,
    /// As above.
    next: Option<u64>,
    rounds: Rounds,
}

impl GiveTask {
    pub fn new(asked: Asked) -> Self {
        GiveTask {
            asked,
            moved: Moved::default(),
            given: Vec::new(),
            streamed: 0,
            phase: Phase::Looking,
            under_way: 0,
            links: 0,
            is_linked: false,
            failure: None,
        }
    }

    fn object(&self) -> ObjectId {
        self.asked.transfer.object.id
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        self.take_answers(owner);
        if !self.is_settled(owner, cx) {
            return Slice::Suspend;
        }
        match self.phase {
            Phase::Closing { low, high } => return self.close(low, high, owner, cx),
            Phase::Leaving => return self.leave(owner, cx),
            _ => {}
        }
        let advanced = match self.failure.take() {
            None => self.copy(owner, cx),
            Some(failure) => Err(failure),
        };
        match advanced {
            Ok(slice) => slice,
            Err(reason) => self.fail(reason, owner, cx),
        }
    }

    /// Goes on by one step, or by more if its owner has much else to do.
    fn copy(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, String> {
        let keys = owner.key_indexes.get_mut(&self.object());
        let asked = keys.map_or(0, OwnedKeys::take_asked);
        for _ in 1..(asked / PER_PIECE).min(MOST_PIECES) {
            let slice = self.advance(owner, cx)?;
            if slice != Slice::Again || matches!(self.phase, Phase::Closing { .. }) {
                return Ok(slice);
            }
        }
        self.advance(owner, cx)
    }

    fn advance(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, String> {
        let object = self.object();
        let Some(keys) = owner.key_indexes.get_mut(&object) else {
            return Err(DROPPED.to_owned());
        };
        self.phase = match std::mem::replace(&mut self.phase, Phase::Looking) {
            Phase::Looking => match self.look(keys, cx) {
                Some(phase) => phase,
                // Nobody may hear of it before the new owner has.
                None if self.under_way > 0 => return Ok(Slice::Suspend),
                None => return Ok(self.end(owner, cx)),
            },
            Phase::Parting(parting) => match parting.step(keys).map_err(|e| e.to_string())? {
                Parted::Again(parting) => Phase::Parting(parting),
                Parted::Done(entries) => {
                    self.moved.copied += entries as u64 * ENTRY;
                    Phase::Looking
                }
            },
            Phase::Streaming(streaming) => {
                // Changes go one round at a time, so that closed keys wait for the last of them alone.
                let most = match streaming.next {
                    Some(_) => UNDER_WAY,
                    None => 1,
                };
                if self.under_way >= most {
                    self.phase = Phase::Streaming(streaming);
                    return Ok(Slice::Suspend);
                }
                self.stream(streaming, keys, cx)
                    .map_err(|e| e.to_string())?
            }
            Phase::Closing { .. } | Phase::Leaving => unreachable!("looked for before"),
        };
        Ok(Slice::Again)
    }

    /// Closed keys are whose the new owner says they are, whatever happens here: it may have linked them.
    fn close(&mut self, low: u64, high: u64, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let object = self.object();
        if self.under_way > 0 && !self.is_linked {
            return Slice::Suspend;
        }
        let Some(keys) = owner.key_indexes.get_mut(&object) else {
            return self.end(owner, cx);
        };
        self.phase = Phase::Looking;
        self.under_way = 0;
        let held = match self.is_linked {
            true => {
                self.given.push((low, high));
                keys.give((low, high), self.streamed, self.asked.transfer.to)
            }
            false => keys.open(),
        };
        self.resend(held, cx);
        match self.failure.take() {
            None => Slice::Again,
            Some(reason) => self.fail(reason, owner, cx),
        }
    }

    /// Takes in what the new owner has said.
    fn take_answers(&mut self, owner: &mut Owner) {
        let giving = owner.giving.get_mut(&self.object());
        let giving = giving.expect("as long as its task lives");
        for answer in giving.answers.drain(..) {
            self.under_way = self.under_way.saturating_sub(1);
            match answer {
                Took::Doubt(reason) => {
                    self.failure.get_or_insert(reason);
                    giving.doubt = Some(Doubt::Noticed);
                }
                Took::Settled(number, standing) => {
                    // There is a newer question otherwise.
                    if giving.doubt == Some(Doubt::Asked) && number == giving.questions {
                        giving.doubt = None;
                        (self.under_way, self.links) = (0, 0);
                        match *standing {
                            Took::Linked => self.is_linked = true,
                            Took::Failed(reason) => _ = self.failure.get_or_insert(reason),
                            _ => {}
                        }
                    }
                }
                Took::Some => {}
                Took::Linked => {
                    self.is_linked = true;
                    self.links = self.links.saturating_sub(1);
                }
                Took::Failed(reason) => {
                    self.links = self.links.saturating_sub(1);
                    self.failure.get_or_insert(reason);
                }
            }
        }
    }

    /// Whether it is known how things stand. If it is not, the new owner is asked, and nothing else is sent until it has answered: what it
    /// has answered up to then, and how often, does not matter any more.
    fn is_settled(&self, owner: &mut Owner, cx: &mut Context<'_>) -> bool {
        let giving = owner.giving.get_mut(&self.object());
        let giving = giving.expect("as long as its task lives");
        if giving.doubt == Some(Doubt::Noticed) {
            giving.doubt = Some(Doubt::Asked);
            giving.questions += 1;
            let number = giving.questions;
            let closed = match self.phase {
                Phase::Closing { low, high } => Some((low, high)),
                _ => None,
            };
            self.hand(Handed::Again { number, closed }, cx);
        }
        giving.doubt.is_none()
    }

    /// Finds the next keys that are to be given, and links those that can be as they are.
    fn look(&mut self, keys: &mut OwnedKeys, cx: &mut Context<'_>) -> Option<Phase> {
        let Transfer { low, high, to, .. } = self.asked.transfer;
        let is_near = cx.topology().node_of(to) == cx.node();
        loop {
            let mut segments = keys.segments().iter_mut();
            let segment = segments.find(|segment| segment.low <= high && segment.high >= low)?;
            let all = (segment.low, segment.high);
            let piece = (low.max(segment.low), high.min(segment.high));
            if piece == all && is_near {
                let segment = keys.unlink(piece.0, to);
                self.moved.keys += segment.len() as u64;
                self.moved.linked += segment.bytes();
                self.given.push(piece);
                self.under_way += 1;
                self.links += 1;
                self.hand(Handed::Link(Box::new(segment)), cx);
                continue;
            }
            let is_within = piece.0 > all.0 && piece.1 < all.1;
            if is_near || is_within {
                let (side, other) = match piece.0 > all.0 {
                    true => ((piece.0, all.1), (all.0, piece.0 - 1)),
                    false => ((all.0, piece.1), (piece.1 + 1, all.1)),
                };
                return Some(Phase::Parting(Parting::new(segment, side, Some(other))));
            }
            segment.begin_copy(piece.0..=piece.1);
            self.streamed = 0;
            return Some(Phase::Streaming(Streaming {
                low: piece.0,
                high: piece.1,
                next: Some(piece.0),
                rounds: Rounds::default(),
            }));
        }
    }

    /// Sends some more of a copy.
    fn stream(
        &mut self,
        mut streaming: Streaming,
        keys: &mut OwnedKeys,
        cx: &mut Context<'_>,
    ) -> Result<Phase, IndexError> {
        let Streaming { low, high, .. } = streaming;
        let segment = keys
            .segment(low)
            .expect("it is this owner's until it is closed");
        if let Some(next) = streaming.next {
            let entries: Vec<_> = segment.range(next, high).take(PIECE).collect();
            streaming.next = match entries.len() < PIECE {
                true => None,
                false => behind(&entries, high),
            };
            segment.set_copied(streaming.next);
            self.streamed += entries.len();
            self.moved.keys += entries.len() as u64;
            self.moved.copied += entries.len() as u64 * ENTRY;
            self.under_way += 1;
            self.hand(Handed::Entries { low, high, entries }, cx);
            return Ok(Phase::Streaming(streaming));
        }
        let round = streaming.rounds.next(segment.changes());
        let changes = segment.take_changes(round.unwrap_or(usize::MAX))?;
        let last = round.is_none();
        self.under_way += 1;
        if !last {
            self.hand(Handed::Changes { changes, last }, cx);
            return Ok(Phase::Streaming(streaming));
        }
        // Whatever happens from here on, the new owner's answer counts.
        self.phase = Phase::Closing { low, high };
        self.is_linked = false;
        segment.end_copy();
        keys.close(low, high);
        self.hand(Handed::Changes { changes, last }, cx);
        Ok(Phase::Closing { low, high })
    }

    /// What has waited for closed keys, as if it had just come: here it is executed, or forwarded, like others of its kind.
    fn resend(&self, held: Vec<(Header, Box<KeyBatch>)>, cx: &mut Context<'_>) {
        for (request, batch) in held {
            let again = header(HAND_OVER, request.object, request.sender, request.callback);
            let object = self.asked.transfer.object.clone();
            let parcel = Parcel::owned((object, Handed::Batch(batch)));
            cx.send(cx.endpoint(), again, &[], Some(parcel));
        }
    }

    fn hand(&self, what: Handed, cx: &mut Context<'_>) {
        let to = Endpoint::aeu(self.asked.transfer.to);
        let header = header(HAND_OVER, self.object(), cx.endpoint(), self.asked.callback);
        let object = self.asked.transfer.object.clone();
        cx.send(to, header, &[], Some(Parcel::owned((object, what))));
    }

    /// A slice panicked.
    pub fn panicked(mut self: Box<Self>, message: &str, owner: &mut Owner, cx: &mut Context<'_>) {
        let reason = format!("the owner panicked: {message}");
        let goes_on = match self.phase {
            Phase::Closing { .. } => {
                self.failure.get_or_insert(reason);
                true
            }
            _ => self.fail(reason, owner, cx) != Slice::Done,
        };
        if goes_on {
            let object = self.object();
            let task = cx.spawn(Task::Give(self));
            let giving = owner.giving.get_mut(&object);
            giving.expect("as long as its task lives").task = task;
        }
    }

    /// Gives the transfer up: what has not been given stays.
    fn fail(&mut self, reason: String, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        self.failure.get_or_insert(reason);
        // Perhaps there is no copy.
        self.hand(Handed::GiveUp, cx);
        if let Some(keys) = owner.key_indexes.get_mut(&self.object()) {
            keys.segments().iter_mut().for_each(Segment::end_copy);
            let held = keys.open();
            self.resend(held, cx);
        }
        self.phase = Phase::Leaving;
        self.leave(owner, cx)
    }

    /// Ends once what was linked has arrived: nobody may hear of it before.
    fn leave(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let giving = owner.giving.get(&self.object());
        let is_in_doubt = giving.is_some_and(|giving| giving.doubt.is_some());
        match self.links {
            _ if is_in_doubt => Slice::Again,
            0 => self.end(owner, cx),
            _ => Slice::Suspend,
        }
    }

    /// Says what came of it, and begins with the next transfer of the index.
    fn end(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let object = self.object();
        let reply = header(GIVEN, object, cx.endpoint(), self.asked.callback);
        let given = Given {
            moved: self.moved,
            ranges: std::mem::take(&mut self.given),
            failure: self.failure.take(),
        };
        cx.send(self.asked.sender, reply, &[], Some(Parcel::owned(given)));
        let giving = owner
            .giving
            .remove(&object)
            .expect("as long as its task lives");
        if giving.questions > 0 {
            // The new owner may remember to have lost something.
            self.hand(Handed::GiveUp, cx);
        }
        owner.begin_to_give(giving.waiting, cx);
        owner.tidy(object, cx);
        Slice::Done
    }
}
