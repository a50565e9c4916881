//! How keys change their owner (ERIS paper, Section 3.3.2): *link* within a node, *copy* from node to node.
//!
//! ```text
//! link   GIVE ─▶ part the segment that is only partly meant: the smaller side gets a tree of its own
//!             ─▶ segments go over as they are ──────────────────────────────────────── LINK ─▶ linked
//! copy   GIVE ─▶ entries, flat and ascending ── ENTRIES ─▶ a tree is built  ◀─ TOOK ─ …
//!             ─▶ what was changed meanwhile, until little is left  ── CHANGES ─▶ applied
//!             ─▶ the keys are closed, the last changes ── CLOSE ─▶ linked      ◀─ TOOK ─ opened at the new owner
//! ```
//!
//! Until the last step the former owner has the keys and executes everything on them; from then on it forwards. Only while a copy is being
//! closed – for one answer of the new owner – operations on its keys wait. Nobody who fails on the way has changed anything: the copy is
//! thrown away. All that passes between owners, forwarded batches included, is of one kind, so that it arrives in the order in which it was sent.

use super::batch::KeyBatch;
use super::segment::Segment;
use super::{KeyObject, OwnedKeys};
use crate::owner::{Context, Owner, Task};
use crate::protocol::{GIVEN, HAND_OVER, KEYED, TOOK, header};
use crate::reorganize::Reorganizable;
use eris_aeu::{Slice, TaskId};
use eris_index::{Build, IndexError};
use eris_numa::NodeMemory;
use eris_route::{Command, Endpoint, Header, Parcel};
use eris_types::{AeuId, ObjectId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Entries that are copied in one slice, and go over in one piece.
const PIECE: usize = 4_096;
/// Pieces that may be on their way: one that is built from, one that waits.
const UNDER_WAY: usize = 2;
/// Changes that are few enough to make the keys wait for them.
const FEW_CHANGES: usize = 256;
/// How often a copy is brought up to date before it is closed, whatever has changed meanwhile.
const ROUNDS: usize = 16;
/// Keys that are removed in one slice.
const CLEANED: usize = 1_024;
/// Bytes of an entry.
const ENTRY: u64 = size_of::<(u64, u64)>() as u64;

/// GIVE: keys that another owner shall have.
#[derive(Clone)]
pub(crate) struct Transfer {
    pub object: Arc<KeyObject>,
    pub low: u64,
    pub high: u64,
    pub to: AeuId,
}

/// What a transfer has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Keys that changed their owner.
    pub keys: u64,
    /// Bytes of the trees that were linked.
    pub linked: u64,
    /// Bytes of entries that were copied, within a node to part a segment, or to another one.
    pub copied: u64,
}

/// GIVEN: what came of a transfer.
pub(crate) struct Given {
    pub moved: Moved,
    /// The keys that have another owner now.
    pub ranges: Vec<(u64, u64)>,
    /// Why these are not all.
    pub failure: Option<String>,
}

/// HAND_OVER: from owner to owner.
pub(crate) enum Handed {
    /// A segment as it is.
    Link(Box<Segment>),
    /// Entries of keys from `low` to `high`, behind those that came before.
    Entries {
        low: u64,
        high: u64,
        entries: Vec<(u64, u64)>,
    },
    /// Entries that have changed since they were copied; with the last of them the keys are the new owner's.
    Changes {
        changes: Vec<(u64, Option<u64>)>,
        last: bool,
    },
    /// The copy is not wanted any more.
    GiveUp,
    /// Operations on keys that are the receiver's by now.
    Batch(Box<KeyBatch>),
}

/// A copy that is being taken in.
pub(crate) struct Incoming {
    low: u64,
    high: u64,
    state: Taking,
}

enum Taking {
    Building(Box<Build<u64>>),
    Built(Box<Segment>),
}

/// What an owner that gives keys away has heard of the new one.
pub(crate) struct Giving {
    task: TaskId,
    /// That of the transfer under way.
    callback: u64,
    answers: VecDeque<Result<(), String>>,
    /// Transfers that wait for the one under way.
    waiting: VecDeque<Asked>,
}

/// A transfer, and who wants to know what came of it.
struct Asked {
    transfer: Transfer,
    sender: Endpoint,
    callback: u64,
}

/// The work of a former owner.
pub(crate) struct GiveTask {
    asked: Asked,
    moved: Moved,
    given: Vec<(u64, u64)>,
    phase: Phase,
    /// What the new owner has not answered.
    under_way: usize,
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
    /// Keys are removed from where they were.
    Cleaning,
}

/// Keys at one end of a segment, the *side*, get a tree of their own.
struct Parting {
    side: (u64, u64),
    /// The keys at the other end, copied instead if there are fewer of them; `None` if this is known to be so.
    other: Option<(u64, u64)>,
    build: Box<Build<u64>>,
    /// The first key that was not copied; `None` once all are.
    next: Option<u64>,
    copied: usize,
}

struct Streaming {
    low: u64,
    high: u64,
    /// As above.
    next: Option<u64>,
    /// How often changes have been sent.
    rounds: usize,
}

impl GiveTask {
    fn new(asked: Asked) -> Self {
        GiveTask {
            asked,
            moved: Moved::default(),
            given: Vec::new(),
            phase: Phase::Looking,
            under_way: 0,
        }
    }

    fn object(&self) -> ObjectId {
        self.asked.transfer.object.id
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        match self.advance(owner, cx) {
            Ok(slice) => slice,
            Err(reason) => self.fail(&reason, owner, cx),
        }
    }

    fn advance(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, String> {
        let object = self.object();
        self.take_answers(owner)?;
        let Some(keys) = owner.key_indexes.get_mut(&object) else {
            return Err(DROPPED.to_owned());
        };
        self.phase = match std::mem::replace(&mut self.phase, Phase::Looking) {
            Phase::Looking => match self.look(keys, cx) {
                Some(phase) => phase,
                // Nobody may hear of it before the new owner has.
                None if self.under_way > 0 => return Ok(Slice::Suspend),
                None => return Ok(self.end(None, owner, cx)),
            },
            Phase::Parting(parting) => match parting.step(keys).map_err(|e| e.to_string())? {
                Parted::Again(parting) => Phase::Parting(parting),
                Parted::Done(entries) => {
                    self.moved.copied += entries as u64 * ENTRY;
                    Phase::Cleaning
                }
            },
            Phase::Streaming(streaming) => {
                if self.under_way == UNDER_WAY {
                    self.phase = Phase::Streaming(streaming);
                    return Ok(Slice::Suspend);
                }
                self.stream(streaming, keys, cx)
            }
            Phase::Closing { low, high } => {
                if self.under_way > 0 {
                    self.phase = Phase::Closing { low, high };
                    return Ok(Slice::Suspend);
                }
                let held = keys.give(low, high, self.asked.transfer.to);
                self.given.push((low, high));
                owner.execute_keys(object, held, cx);
                Phase::Cleaning
            }
            Phase::Cleaning => {
                let mut segments = keys.segments().iter_mut();
                match segments.any(|segment| segment.clean(CLEANED)) {
                    true => Phase::Cleaning,
                    false => Phase::Looking,
                }
            }
        };
        Ok(Slice::Again)
    }

    /// Takes in what the new owner has said.
    fn take_answers(&mut self, owner: &mut Owner) -> Result<(), String> {
        let giving = owner.giving.get_mut(&self.object());
        let giving = giving.expect("as long as its task lives");
        while let Some(answer) = giving.answers.pop_front() {
            // Whoever panics answers once more for what was done before.
            self.under_way = self.under_way.saturating_sub(1);
            answer?;
        }
        Ok(())
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
            if segment.has_garbage() {
                return Some(Phase::Cleaning);
            }
            if piece == all && is_near {
                let segment = keys.unlink(piece.0, to);
                self.moved.keys += segment.len() as u64;
                self.moved.linked += segment.bytes();
                self.given.push(piece);
                self.under_way += 1;
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
            return Some(Phase::Streaming(Streaming {
                low: piece.0,
                high: piece.1,
                next: Some(piece.0),
                rounds: 0,
            }));
        }
    }

    /// Sends some more of a copy.
    fn stream(
        &mut self,
        mut streaming: Streaming,
        keys: &mut OwnedKeys,
        cx: &mut Context<'_>,
    ) -> Phase {
        let Streaming { low, high, .. } = streaming;
        let segment = keys
            .segment(low)
            .expect("it is this owner's until it is closed");
        self.under_way += 1;
        if let Some(next) = streaming.next {
            let entries: Vec<_> = segment.range(next, high).take(PIECE).collect();
            streaming.next = match entries.len() < PIECE {
                true => None,
                false => behind(&entries, high),
            };
            self.moved.keys += entries.len() as u64;
            self.moved.copied += entries.len() as u64 * ENTRY;
            self.hand(Handed::Entries { low, high, entries }, cx);
            return Phase::Streaming(streaming);
        }
        streaming.rounds += 1;
        let last = segment.changes() <= FEW_CHANGES || streaming.rounds > ROUNDS;
        let changes = segment.take_changes();
        if last {
            segment.end_copy();
            keys.close(low, high);
        }
        self.hand(Handed::Changes { changes, last }, cx);
        match last {
            true => Phase::Closing { low, high },
            false => Phase::Streaming(streaming),
        }
    }

    fn hand(&self, what: Handed, cx: &mut Context<'_>) {
        let to = Endpoint::aeu(self.asked.transfer.to);
        let header = header(HAND_OVER, self.object(), cx.endpoint(), self.asked.callback);
        let object = self.asked.transfer.object.clone();
        cx.send(to, header, &[], Some(Parcel::owned((object, what))));
    }

    /// Gives the transfer up: what has not been given stays.
    pub fn fail(&mut self, reason: &str, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let object = self.object();
        // Perhaps there is no copy.
        self.hand(Handed::GiveUp, cx);
        if let Some(keys) = owner.key_indexes.get_mut(&object) {
            keys.segments().iter_mut().for_each(Segment::end_copy);
            let held = keys.open();
            owner.execute_keys(object, held, cx);
        }
        self.end(Some(reason.to_owned()), owner, cx)
    }

    /// Says what came of it, and begins with the next transfer of the index.
    fn end(&mut self, failure: Option<String>, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let object = self.object();
        let reply = header(GIVEN, object, cx.endpoint(), self.asked.callback);
        let given = Given {
            moved: self.moved,
            ranges: std::mem::take(&mut self.given),
            failure,
        };
        cx.send(self.asked.sender, reply, &[], Some(Parcel::owned(given)));
        let giving = owner
            .giving
            .remove(&object)
            .expect("as long as its task lives");
        owner.begin_to_give(giving.waiting, cx);
        Slice::Done
    }
}

enum Parted {
    Again(Parting),
    /// So many entries were copied.
    Done(usize),
}

impl Parting {
    fn new(segment: &mut Segment, side: (u64, u64), other: Option<(u64, u64)>) -> Self {
        segment.begin_copy(side.0..=side.1);
        let tree = segment.tree();
        Parting {
            build: Box::new(Build::new(tree.memory().clone(), tree.object())),
            side,
            other,
            next: Some(side.0),
            copied: 0,
        }
    }

    fn step(mut self, keys: &mut OwnedKeys) -> Result<Parted, IndexError> {
        let (low, high) = self.side;
        let segment = keys.segment(low).expect("it stays until it is parted");
        if let Some(next) = self.next {
            let entries: Vec<_> = segment.range(next, high).take(PIECE).collect();
            self.copied += entries.len();
            if let Some(other) = self.other
                && self.copied > segment.len() / 2
            {
                return Ok(Parted::Again(Parting::new(segment, other, None)));
            }
            self.build.extend(entries.iter().copied())?;
            self.next = match entries.len() < PIECE {
                true => None,
                false => behind(&entries, high),
            };
            return Ok(Parted::Again(self));
        }
        let mut part = Segment::new(low, high, self.build.finish()?.into());
        // Nothing else happens between this and the parting.
        part.apply(&segment.take_changes())?;
        segment.end_copy();
        keys.part(part);
        Ok(Parted::Done(self.copied))
    }
}

/// Where to go on behind these entries.
fn behind(entries: &[(u64, u64)], high: u64) -> Option<u64> {
    let (last, _) = entries.last()?;
    last.checked_add(1).filter(|next| *next <= high)
}

impl Incoming {
    fn new(object: Arc<KeyObject>, low: u64, high: u64, memory: &NodeMemory) -> Self {
        let build = Build::new(memory.clone(), object.id);
        Incoming {
            low,
            high,
            state: Taking::Building(Box::new(build)),
        }
    }

    fn extend(&mut self, entries: Vec<(u64, u64)>) -> Result<(), IndexError> {
        match &mut self.state {
            Taking::Building(build) => build.extend(entries),
            Taking::Built(_) => unreachable!("entries come before changes"),
        }
    }

    /// With the changes, as a segment.
    fn change(self, changes: &[(u64, Option<u64>)]) -> Result<Box<Segment>, IndexError> {
        let mut segment = match self.state {
            Taking::Building(build) => {
                Box::new(Segment::new(self.low, self.high, build.finish()?.into()))
            }
            Taking::Built(segment) => segment,
        };
        segment.apply(changes)?;
        Ok(segment)
    }
}

impl Owner {
    /// GIVE.
    pub(crate) fn give(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let (sender, callback) = (command.header.sender, command.header.callback);
        let parcel = command.parcel.and_then(|parcel| parcel.into_owned().ok());
        let asked = Asked {
            transfer: *parcel.expect("the kind says what is in the parcel"),
            sender,
            callback,
        };
        match self.giving.get_mut(&asked.transfer.object.id) {
            Some(giving) => giving.waiting.push_back(asked),
            None => self.begin_to_give([asked].into(), cx),
        }
    }

    /// Begins with the first of these transfers, if there is one.
    fn begin_to_give(&mut self, mut waiting: VecDeque<Asked>, cx: &mut Context<'_>) {
        let Some(asked) = waiting.pop_front() else {
            return;
        };
        let object = asked.transfer.object.clone();
        if !object.is_dropped() {
            // It may have been asked for nothing yet.
            self.keys_of(&object);
        }
        let callback = asked.callback;
        let task = cx.spawn(Task::Give(Box::new(GiveTask::new(asked))));
        let giving = Giving {
            task,
            callback,
            answers: VecDeque::new(),
            waiting,
        };
        self.giving.insert(object.id, giving);
    }

    /// HAND_OVER.
    pub(crate) fn hand_over(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let request = command.header;
        let parcel = command.parcel.and_then(|parcel| parcel.into_owned().ok());
        let (object, what): (Arc<KeyObject>, Handed) =
            *parcel.expect("the kind says what is in the parcel");
        let copy = (request.object, request.callback);
        if object.is_dropped() {
            self.incoming.remove(&copy);
        }
        let taken = match what {
            Handed::Batch(batch) => {
                return self.execute_keys(object.id, vec![(request, batch)], cx);
            }
            Handed::GiveUp => {
                self.incoming.remove(&copy);
                return;
            }
            Handed::Link(segment) => {
                if !object.is_dropped() {
                    self.keys_of(&object).link(*segment);
                }
                Ok(())
            }
            _ if object.is_dropped() => Err(DROPPED.to_owned()),
            Handed::Entries { low, high, entries } => {
                let memory = &self.memory;
                let incoming = (self.incoming.entry(copy))
                    .or_insert_with(|| Incoming::new(object, low, high, memory));
                incoming.extend(entries).map_err(|error| error.to_string())
            }
            Handed::Changes { changes, last } => match self.incoming.remove(&copy) {
                Some(incoming) => {
                    let (low, high) = (incoming.low, incoming.high);
                    (incoming.change(&changes))
                        .map_err(|error| error.to_string())
                        .map(|segment| {
                            if last {
                                return self.keys_of(&object).link(*segment);
                            }
                            let state = Taking::Built(segment);
                            self.incoming.insert(copy, Incoming { low, high, state });
                        })
                }
                // It failed before, and who sent this will hear of it.
                None => Err("the copy was given up".to_owned()),
            },
        };
        if taken.is_err() {
            self.incoming.remove(&copy);
        }
        let reply = header(TOOK, request.object, cx.endpoint(), request.callback);
        cx.send(request.sender, reply, &[], Some(Parcel::owned(taken)));
    }

    /// TOOK, or the new owner has panicked.
    pub(crate) fn took(
        &mut self,
        header: &Header,
        taken: Result<(), String>,
        cx: &mut Context<'_>,
    ) {
        let giving = self.giving.get_mut(&header.object);
        if let Some(giving) = giving.filter(|giving| giving.callback == header.callback) {
            giving.answers.push_back(taken);
            cx.resume(giving.task);
        }
    }

    /// What this AEU has of an index.
    fn keys_of(&mut self, object: &Arc<KeyObject>) -> &mut OwnedKeys {
        let (aeu, memory) = (self.aeu, &self.memory);
        (self.key_indexes.entry(object.id))
            .or_insert_with(|| OwnedKeys::new(object.clone(), aeu, memory))
    }

    /// Executes batches of keys, all of one index, and sends each back, or on to whoever has the rest of its keys.
    pub(crate) fn execute_keys(
        &mut self,
        object: ObjectId,
        mut batches: Vec<(Header, Box<KeyBatch>)>,
        cx: &mut Context<'_>,
    ) {
        let Some((_, first)) = batches.first() else {
            return;
        };
        // Who comes after DROP must not bring the index back.
        if first.is_dropped() {
            return batches
                .into_iter()
                .for_each(|(request, batch)| answer(&request, batch, cx));
        }
        let index = first.object.clone();
        let keys = self.keys_of(&index);
        keys.execute(&mut batches);
        for (request, batch) in batches {
            let Some(key) = batch.next_key() else {
                answer(&request, batch, cx);
                continue;
            };
            if keys.is_closed(key) {
                keys.hold(request, batch);
                continue;
            }
            let to = Endpoint::aeu(keys.holder(key));
            let on = header(HAND_OVER, object, request.sender, request.callback);
            let parcel = Parcel::owned((index.clone(), Handed::Batch(batch)));
            cx.send(to, on, &[], Some(parcel));
        }
        Reorganizable::tend(keys, 0);
    }
}

/// Sends a batch back to whoever wants it done.
fn answer(request: &Header, batch: Box<KeyBatch>, cx: &mut Context<'_>) {
    let reply = header(KEYED, request.object, cx.endpoint(), request.callback);
    cx.send(request.sender, reply, &[], Some(Parcel::from_box(batch)));
}

const DROPPED: &str = "the index was dropped";
