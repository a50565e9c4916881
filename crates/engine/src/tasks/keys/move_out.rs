//! The former owner's side: finds the keys that are to go, segment by segment, and gives each in its way.
//!
//! ```text
//! looking ─┬─ a whole segment, a near owner ──▶ linked ───────────────────────────▶ looking
//!          ├─ some of a segment ──▶ parting ──────────────────────────────────────▶ looking
//!          ├─ a far owner ──▶ streaming ─┬─ all taken in ─────────────────────────▶ looking
//!          │                             └─ failed: what was not stays ─▶ leaving
//!          └─ nothing more, links have arrived ──▶ GIVEN
//! ```
//!
//! Entries that were copied stay where they were, out of reach, until [`CompactTask`]
//! removes them.

use super::compact::CompactTask;
use super::moving::{Doubt, MovingOut, WantedTransfer};
use super::pace::Pace;
use crate::key_index::owned::OwnedKeys;
use crate::key_index::transfer::part::{Parted, Parting};
use crate::key_index::transfer::stream::PieceStream;
use crate::key_index::transfer::{
    Acknowledgement, DROPPED, Handed, LOST, MovedOut, PIECE, Standing, Transfer,
};
use crate::protocol::callback::HandOverId;
use crate::protocol::keys::HandOver;
use crate::protocol::message::{Context, send};
use crate::tasks::owner::Owner;
use eris_aeu::{Slice, Sliced};
use eris_home::Moved;
use eris_route::Endpoint;
use eris_types::ObjectId;
use std::collections::VecDeque;

/// Pieces that may be on their way. An owner that is used copies as many at most in one slice, so that it is over
/// within about a millisecond:
const MOST_PIECES: u64 = 16;
/// one for so many keys that it was asked for since the last slice,
const PER_PIECE: u64 = 8 * PIECE as u64;
/// but so many at least, for which it pays to wake up.
const LEAST_PIECES: u64 = 4;
/// Bytes of an entry.
const ENTRY: u64 = size_of::<(u64, u64)>() as u64;

/// Keys may be added to segments that are leaving, faster than an owner that rests copies: if they are more than half
/// of what it copied, it does not rest, and copies twice as many as were added, however many these are: with 256 pieces
/// at most it did not come to an end. Also if they are added to what stays of these segments, for they are not told
/// apart.
#[derive(Default)]
struct Hurry {
    /// Entries that there were after the last slice.
    left: usize,
    /// Pieces that were to be copied in that slice.
    pieces: usize,
    is_on: bool,
}

impl Hurry {
    /// A slice begins with so many entries left, and means to copy so many pieces: how many it has to.
    fn begin(&mut self, left: usize, pieces: usize) -> usize {
        let needed = 2 * left.saturating_sub(self.left);
        // At first nothing is known.
        self.is_on = self.pieces > 0 && needed > self.pieces * PIECE;
        self.pieces = match self.is_on {
            true => pieces.max(needed.div_ceil(PIECE)),
            false => pieces,
        };
        self.pieces
    }

    fn end(&mut self, left: usize) {
        self.left = left;
    }

    fn is_on(&self) -> bool {
        self.is_on
    }
}

/// The tasks that follow from moving keys out.
pub(crate) trait KeyTasks: Sliced + From<Box<MoveOutTask>> + From<CompactTask> {}

impl<T: Sliced + From<Box<MoveOutTask>> + From<CompactTask>> KeyTasks for T {}

/// The work of a former owner.
pub(crate) struct MoveOutTask {
    wanted: WantedTransfer,
    moved: Moved,
    given: Vec<(u64, u64)>,
    phase: MovePhase,
    /// The copy under way; then the phase is [`MovePhase::Streaming`].
    stream: Option<PieceStream>,
    /// Links that the new owner has not answered.
    links: usize,
    /// Why the rest stays.
    failure: Option<String>,
    pace: Pace,
    hurry: Hurry,
}

enum MovePhase {
    /// Which keys are next.
    Looking,
    Parting(Parting),
    Streaming,
    /// It is over once what was linked has arrived.
    Leaving,
}

impl MoveOutTask {
    /// Of an owner at this pace.
    pub fn new(wanted: WantedTransfer, pace: Pace) -> Self {
        MoveOutTask {
            pace,
            hurry: Hurry::default(),
            wanted,
            moved: Moved::default(),
            given: Vec::new(),
            phase: MovePhase::Looking,
            stream: None,
            links: 0,
            failure: None,
        }
    }

    fn object(&self) -> ObjectId {
        self.wanted.transfer.object.id
    }

    pub fn slice<T: KeyTasks>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        self.take_answers(owner);
        if !self.is_certain(owner, cx) {
            return Slice::Suspend;
        }
        if let MovePhase::Leaving = self.phase {
            return self.leave(owner, cx);
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

    /// Goes on by some steps: as fast as it can, as long as its owner is not used otherwise.
    fn copy<T: KeyTasks>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, String> {
        let Some(keys) = owner.key_indexes.get(&self.object()) else {
            return Err(DROPPED.to_owned());
        };
        let asked = self.pace.begin(keys.asked());
        let is_behind = self.stream.as_ref().is_some_and(PieceStream::is_behind);
        if asked > 0 && is_behind && !self.hurry.is_on() {
            // Who takes the keys in shall have time for others, too.
            return Ok(self.pace.rest());
        }
        let pieces = (asked / PER_PIECE).clamp(LEAST_PIECES, MOST_PIECES);
        let pieces = self.hurry.begin(keys.leaving(), pieces as usize);
        let mut slice = Slice::Again;
        for _ in 0..pieces {
            slice = self.advance(owner, cx)?;
            if slice != Slice::Again {
                break;
            }
        }
        let keys = owner.key_indexes.get(&self.object());
        self.hurry.end(keys.map_or(0, OwnedKeys::leaving));
        Ok(match slice {
            Slice::Again if !self.hurry.is_on() => self.pace.end(),
            slice => slice,
        })
    }

    fn advance<T: KeyTasks>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, String> {
        let object = self.object();
        let Some(keys) = owner.key_indexes.get_mut(&object) else {
            return Err(DROPPED.to_owned());
        };
        self.phase = match std::mem::replace(&mut self.phase, MovePhase::Looking) {
            MovePhase::Looking => match self.look(keys, cx) {
                Some(phase) => phase,
                // Nobody may hear of it before the new owner has.
                None if self.links > 0 => return Ok(Slice::Suspend),
                None => return Ok(self.end(owner, cx)),
            },
            MovePhase::Parting(parting) => match parting.step(keys).map_err(|e| e.to_string())? {
                Parted::Again(parting) => MovePhase::Parting(parting),
                Parted::Done(entries) => {
                    self.moved.copied += entries as u64 * ENTRY;
                    MovePhase::Looking
                }
            },
            MovePhase::Streaming => {
                self.phase = MovePhase::Streaming;
                return Ok(self.stream(keys, cx));
            }
            MovePhase::Leaving => unreachable!("looked for before"),
        };
        Ok(Slice::Again)
    }

    /// Sends the next piece, if there is one and not too much is on its way.
    fn stream<T: KeyTasks>(&mut self, keys: &mut OwnedKeys, cx: &mut Context<'_, T>) -> Slice {
        let stream = self.stream.as_mut().expect("the phase says so");
        let Some(next) = stream.next_key() else {
            if stream.under_way() > 0 {
                return Slice::Suspend;
            }
            self.end_copy(keys);
            return Slice::Again;
        };
        if stream.under_way() >= self.hurry.pieces.max(MOST_PIECES as usize) {
            return Slice::Suspend;
        }
        let segment = keys
            .segment(next)
            .expect("it is this owner's until it is sent");
        let (piece, follows) = stream.send(segment);
        keys.lend(&piece);
        self.hand(Handed::Piece { piece, follows }, cx);
        Slice::Again
    }

    /// What was taken in of the copy under way is given; what was not is this owner's as before.
    fn end_copy(&mut self, keys: &mut OwnedKeys) {
        self.phase = MovePhase::Looking;
        let Some(stream) = self.stream.take() else {
            return;
        };
        let (taken, entries) = stream.taken();
        self.given.extend(taken);
        keys.end_copy(taken, entries);
        self.moved.keys += entries as u64;
        self.moved.copied += entries as u64 * ENTRY;
    }

    /// Takes in what the new owner has said.
    fn take_answers(&mut self, owner: &mut Owner) {
        let moving = owner.moving_out.get_mut(&self.object());
        let moving = moving.expect("as long as its task lives");
        for answer in moving.answers.drain(..) {
            match answer {
                Acknowledgement::Piece => {
                    if let Some(stream) = &mut self.stream {
                        stream.note_taken();
                    }
                }
                Acknowledgement::Link => self.links = self.links.saturating_sub(1),
                Acknowledgement::Failed(reason) => {
                    self.failure.get_or_insert(reason);
                    moving.doubt.get_or_insert(Doubt::Noticed);
                }
                Acknowledgement::Doubt(reason) => {
                    self.failure.get_or_insert(reason);
                    moving.doubt = Some(Doubt::Noticed);
                }
                Acknowledgement::Certain(number, Standing { has, failure }) => {
                    // There is a newer question otherwise.
                    if moving.doubt == Some(Doubt::Asked) && number == moving.questions {
                        moving.doubt = None;
                        self.links = 0;
                        let stream = self.stream.as_mut();
                        let is_all = stream.is_none_or(|stream| stream.note_standing(has));
                        let lost = (!is_all).then(|| LOST.to_owned());
                        if let Some(reason) = failure.or(lost) {
                            self.failure.get_or_insert(reason);
                        }
                    }
                }
            }
        }
    }

    /// Whether it is known how things stand. If it is not, the new owner is asked, and nothing else is sent until it
    /// has answered: what it has answered up to then, and how often, does not matter any more.
    fn is_certain<T: KeyTasks>(&self, owner: &mut Owner, cx: &mut Context<'_, T>) -> bool {
        let moving = owner.moving_out.get_mut(&self.object());
        let moving = moving.expect("as long as its task lives");
        if moving.doubt == Some(Doubt::Noticed) {
            moving.doubt = Some(Doubt::Asked);
            moving.questions += 1;
            let number = moving.questions;
            let keys = self.stream.as_ref().and_then(PieceStream::unanswered);
            self.hand(Handed::Again { number, keys }, cx);
        }
        moving.doubt.is_none()
    }

    /// Finds the next keys that are to be given, and links those that can be as they are.
    fn look<T: KeyTasks>(
        &mut self,
        keys: &mut OwnedKeys,
        cx: &mut Context<'_, T>,
    ) -> Option<MovePhase> {
        let Transfer { low, high, to, .. } = self.wanted.transfer;
        let is_near = cx.topology().node_of(to) == cx.node();
        loop {
            let mut segments = keys.segments().iter();
            let segment = segments.find(|segment| segment.low <= high && segment.high >= low)?;
            let all = (segment.low, segment.high);
            let (low, high) = (low.max(segment.low), high.min(segment.high));
            if (low, high) == all && is_near {
                let (entries, bytes) = (segment.len() as u64, segment.bytes());
                let segment = keys.unlink(low, to);
                self.hand(Handed::Link(Box::new(segment)), cx);
                self.links += 1;
                self.given.push(all);
                self.moved.keys += entries;
                self.moved.linked += bytes;
                continue;
            }
            let is_within = low > all.0 && high < all.1;
            if is_near || is_within {
                let cut = match low > all.0 {
                    true => low,
                    false => high + 1,
                };
                return Some(MovePhase::Parting(Parting::new(segment, cut)));
            }
            self.stream = Some(PieceStream::new(segment, low, high));
            return Some(MovePhase::Streaming);
        }
    }

    fn hand<T: KeyTasks>(&self, what: Handed, cx: &mut Context<'_, T>) {
        let Transfer { object, to, .. } = &self.wanted.transfer;
        let message = HandOver {
            object: object.clone(),
            what,
        };
        let transfer = HandOverId::from(self.wanted.asked.callback);
        send(cx, Endpoint::aeu(*to), object.id, transfer, message);
    }

    /// A slice panicked. What was sent of a piece, if anything, the new owner knows.
    pub fn panicked<T: KeyTasks>(
        mut self: Box<Self>,
        message: &str,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) {
        let object = self.object();
        let moving = owner.moving_out.get_mut(&object);
        let moving = moving.expect("as long as its task lives");
        self.failure
            .get_or_insert_with(|| format!("the owner panicked: {message}"));
        moving.doubt = Some(Doubt::Noticed);
        moving.task = cx.spawn(self.into());
    }

    /// Gives the transfer up: what has not been given stays.
    fn fail<T: KeyTasks>(
        &mut self,
        reason: String,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        self.failure.get_or_insert(reason);
        // Perhaps there is no copy.
        self.hand(Handed::GiveUp, cx);
        if let Some(keys) = owner.key_indexes.get_mut(&self.object()) {
            self.end_copy(keys);
        }
        self.phase = MovePhase::Leaving;
        self.leave(owner, cx)
    }

    /// Ends once what was linked has arrived: nobody may hear of it before.
    fn leave<T: KeyTasks>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        let moving = owner.moving_out.get(&self.object());
        let is_in_doubt = moving.is_some_and(|moving| moving.doubt.is_some());
        match self.links {
            _ if is_in_doubt => Slice::Again,
            0 => self.end(owner, cx),
            _ => Slice::Suspend,
        }
    }

    /// Says what came of it, and begins with the next transfer of the index.
    fn end<T: KeyTasks>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        let object = self.object();
        let moved_out = MovedOut {
            moved: self.moved,
            ranges: std::mem::take(&mut self.given),
            failure: self.failure.take(),
        };
        self.wanted.asked.answer(moved_out, cx);
        let moving = owner
            .moving_out
            .remove(&object)
            .expect("as long as its task lives");
        if let Some(keys) = owner.key_indexes.get_mut(&object) {
            keys.end_leaving();
        }
        if moving.questions > 0 {
            // The new owner may remember to have lost something.
            self.hand(Handed::GiveUp, cx);
        }
        owner.begin_to_move_out(moving.waiting, cx);
        owner.compact(object, cx);
        Slice::Done
    }
}

impl Owner {
    /// Begins with the first of these transfers, if there is one.
    pub fn begin_to_move_out<T: KeyTasks>(
        &mut self,
        mut waiting: VecDeque<WantedTransfer>,
        cx: &mut Context<'_, T>,
    ) {
        let Some(wanted) = waiting.pop_front() else {
            return;
        };
        let Transfer {
            ref object,
            low,
            high,
            to,
        } = wanted.transfer;
        let object = object.clone();
        let mut pace = Pace::new(0);
        if !object.is_dropped() {
            // It may have been asked for nothing yet.
            let keys = self.keys_of(&object);
            pace = Pace::new(keys.asked());
            keys.begin_to_leave(low, high, to);
        }
        let transfer = wanted.asked.callback;
        let task = cx.spawn(Box::new(MoveOutTask::new(wanted, pace)).into());
        let moving = MovingOut {
            task,
            transfer,
            answers: VecDeque::new(),
            doubt: None,
            questions: 0,
            waiting,
        };
        self.moving_out.insert(object.id, moving);
    }
}
