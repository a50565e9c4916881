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
use eris_aeu::{Group, Slice, TaskId};
use eris_index::{Build, IndexError};
use eris_numa::NodeMemory;
use eris_route::{Command, Endpoint, Header, Parcel};
use eris_types::{AeuId, ObjectId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Entries that are copied in one slice, and go over in one piece.
const PIECE: usize = 1_024;
/// Pieces that may be on their way: one that is built from, one that waits.
const UNDER_WAY: usize = 2;
/// Changes that are few enough to make the keys wait for them.
const FEW_CHANGES: usize = 256;
/// How many pieces of changes are sent before a copy is closed, whatever has changed meanwhile.
const ROUNDS: usize = 10_000;
/// Keys that are removed in one slice.
const CLEANED: usize = 512;
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
    /// Until who sends it hears of it and gives it up, too.
    Failed,
}

/// TOOK: what the new owner says.
#[derive(Clone, Debug)]
pub(crate) enum Took {
    /// Entries or changes, but not the last.
    Some,
    /// All: the keys are its own.
    Linked,
    /// Nothing, and nothing of this copy.
    Failed(String),
}

/// What an owner that gives keys away has heard of the new one.
pub(crate) struct Giving {
    task: TaskId,
    /// That of the transfer under way.
    callback: u64,
    answers: VecDeque<Took>,
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
    /// Keys are removed from where they were.
    Cleaning,
    /// It is over once what was linked has arrived.
    Leaving,
}

/// Keys at one end of a segment, the *side*, get a tree of their own.
struct Parting {
    side: (u64, u64),
    /// The keys at the other end, copied instead if there are fewer of them; `None` if this is known to be so.
    other: Option<(u64, u64)>,
    build: Option<Box<Build<u64>>>,
    /// The side by itself, once all of it has been copied.
    part: Option<Box<Segment>>,
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
        match self.phase {
            Phase::Closing { low, high } => return self.close(low, high, owner, cx),
            Phase::Leaving => return self.leave(owner, cx),
            _ => {}
        }
        let advanced = match self.failure.take() {
            None => self.advance(owner, cx),
            Some(failure) => Err(failure),
        };
        match advanced {
            Ok(slice) => slice,
            Err(reason) => self.fail(reason, owner, cx),
        }
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
            Phase::Closing { .. } | Phase::Leaving => unreachable!("looked for before"),
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

    /// Closed keys are whose the new owner says they are, whatever happens here: it may have linked them.
    fn close(&mut self, low: u64, high: u64, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let object = self.object();
        if self.under_way > 0 && !self.is_linked {
            return Slice::Suspend;
        }
        let Some(keys) = owner.key_indexes.get_mut(&object) else {
            return self.end(owner, cx);
        };
        self.phase = Phase::Cleaning;
        self.under_way = 0;
        let held = match self.is_linked {
            true => {
                self.given.push((low, high));
                keys.give(low, high, self.asked.transfer.to)
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
            // Whoever panics answers once more for what was done before.
            self.under_way = self.under_way.saturating_sub(1);
            match answer {
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
            segment.set_copied(streaming.next);
            self.moved.keys += entries.len() as u64;
            self.moved.copied += entries.len() as u64 * ENTRY;
            self.hand(Handed::Entries { low, high, entries }, cx);
            return Phase::Streaming(streaming);
        }
        streaming.rounds += 1;
        let last = segment.changes() <= FEW_CHANGES || streaming.rounds > ROUNDS;
        let most = if last { usize::MAX } else { PIECE };
        let changes = segment.take_changes(most);
        if !last {
            self.hand(Handed::Changes { changes, last }, cx);
            return Phase::Streaming(streaming);
        }
        // Whatever happens from here on, the new owner's answer counts.
        self.phase = Phase::Closing { low, high };
        self.is_linked = false;
        segment.end_copy();
        keys.close(low, high);
        self.hand(Handed::Changes { changes, last }, cx);
        Phase::Closing { low, high }
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
        match self.links {
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
        owner.begin_to_give(giving.waiting, cx);
        owner.tidy(object, cx);
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
            build: Some(Box::new(Build::new(tree.memory().clone(), tree.object()))),
            part: None,
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
            let build = self.build.as_mut().expect("entries are left");
            build.extend(entries.iter().copied())?;
            self.next = match entries.len() < PIECE {
                true => None,
                false => behind(&entries, high),
            };
            segment.set_copied(self.next);
            return Ok(Parted::Again(self));
        }
        if let Some(build) = self.build.take() {
            let tree = build.finish()?;
            self.part = Some(Box::new(Segment::new(low, high, tree.into())));
        }
        let part = self.part.as_mut().expect("made above");
        part.apply(&segment.take_changes(PIECE))?;
        if segment.changes() > 0 {
            return Ok(Parted::Again(self));
        }
        segment.end_copy();
        keys.part(*self.part.expect("made above"));
        Ok(Parted::Done(self.copied))
    }
}

/// Where to go on behind these entries.
fn behind(entries: &[(u64, u64)], high: u64) -> Option<u64> {
    let (last, _) = entries.last()?;
    last.checked_add(1).filter(|next| *next <= high)
}

impl Incoming {
    fn new(object: &KeyObject, low: u64, high: u64, memory: &NodeMemory) -> Self {
        let build = Build::new(memory.clone(), object.id);
        Incoming {
            low,
            high,
            state: Taking::Building(Box::new(build)),
        }
    }

    fn extend(&mut self, entries: Vec<(u64, u64)>) -> Result<(), String> {
        match &mut self.state {
            Taking::Building(build) => (build.extend(entries))
                .inspect_err(|_| self.state = Taking::Failed)
                .map_err(text),
            Taking::Built(_) => unreachable!("entries come before changes"),
            Taking::Failed => Err(GIVEN_UP.to_owned()),
        }
    }

    /// Takes in changes; the segment with the last of them.
    fn change(
        &mut self,
        changes: &[(u64, Option<u64>)],
        last: bool,
    ) -> Result<Option<Box<Segment>>, String> {
        // What fails on the way stays failed.
        let mut segment = match std::mem::replace(&mut self.state, Taking::Failed) {
            Taking::Building(build) => {
                let tree = build.finish().map_err(text)?;
                Box::new(Segment::new(self.low, self.high, tree.into()))
            }
            Taking::Built(segment) => segment,
            Taking::Failed => return Err(GIVEN_UP.to_owned()),
        };
        segment.apply(changes).map_err(text)?;
        if last {
            return Ok(Some(segment));
        }
        self.state = Taking::Built(segment);
        Ok(None)
    }
}

fn text(error: IndexError) -> String {
    error.to_string()
}

/// Puts segments together that lie side by side, until there are few.
pub(crate) struct TidyTask(ObjectId);

impl TidyTask {
    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let keys = owner.key_indexes.get_mut(&self.0);
        // Short of memory it stays as it is.
        if keys.is_some_and(|keys| keys.tidy().unwrap_or(false)) {
            return Slice::Again;
        }
        self.end(owner);
        Slice::Done
    }

    pub fn end(&self, owner: &mut Owner) {
        owner.tidying.remove(&self.0);
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

    /// HAND_OVER. What others have given comes first, so that no panic over something else loses it.
    pub(crate) fn hand_over(
        &mut self,
        object: ObjectId,
        commands: Group<'_>,
        cx: &mut Context<'_>,
    ) {
        let (mut copies, mut batches) = (Vec::new(), Vec::new());
        for command in commands {
            let request = command.header;
            let parcel = command.parcel.and_then(|parcel| parcel.into_owned().ok());
            let (object, what): (Arc<KeyObject>, Handed) =
                *parcel.expect("the kind says what is in the parcel");
            match what {
                Handed::Link(segment) => {
                    if !object.is_dropped() {
                        self.keys_of(&object).link(*segment);
                    }
                    tell(&request, Took::Linked, cx);
                }
                Handed::Batch(batch) => batches.push((request, batch)),
                copy => copies.push((request, object, copy)),
            }
        }
        for (request, object, copy) in copies {
            self.take_in(&request, &object, copy, cx);
        }
        self.tidy(object, cx);
        if let Some((request, _)) = batches.first() {
            self.execute_keys(request.object, batches, cx);
        }
    }

    /// Takes in some more of a copy.
    fn take_in(
        &mut self,
        request: &Header,
        object: &Arc<KeyObject>,
        what: Handed,
        cx: &mut Context<'_>,
    ) {
        let copy = (request.object, request.callback);
        let taken = match what {
            _ if object.is_dropped() => Err(DROPPED.to_owned()),
            Handed::Entries { low, high, entries } => {
                let memory = &self.memory;
                let incoming = (self.incoming.entry(copy))
                    .or_insert_with(|| Incoming::new(object, low, high, memory));
                incoming.extend(entries).map(|()| Took::Some)
            }
            Handed::Changes { changes, last } => match self.incoming.get_mut(&copy) {
                Some(incoming) => incoming
                    .change(&changes, last)
                    .map(|segment| match segment {
                        Some(segment) => {
                            self.keys_of(object).link(*segment);
                            Took::Linked
                        }
                        None => Took::Some,
                    }),
                None => Err(GIVEN_UP.to_owned()),
            },
            Handed::GiveUp => {
                self.incoming.remove(&copy);
                return;
            }
            Handed::Link(_) | Handed::Batch(_) => unreachable!("not of a copy"),
        };
        if matches!(taken, Ok(Took::Linked)) || object.is_dropped() {
            self.incoming.remove(&copy);
        }
        tell(request, taken.unwrap_or_else(Took::Failed), cx);
    }

    /// A command of a transfer panicked: what it was about cannot be trusted.
    pub(crate) fn distrust(&mut self, header: &Header, message: &str, cx: &mut Context<'_>) {
        if let Some(incoming) = self.incoming.get_mut(&(header.object, header.callback)) {
            incoming.state = Taking::Failed;
        }
        let reason = format!("the new owner panicked: {message}");
        tell(header, Took::Failed(reason), cx);
    }

    /// TOOK.
    pub(crate) fn took(&mut self, header: &Header, taken: Took, cx: &mut Context<'_>) {
        let giving = self.giving.get_mut(&header.object);
        if let Some(giving) = giving.filter(|giving| giving.callback == header.callback) {
            giving.answers.push_back(taken);
            cx.resume(giving.task);
        }
    }

    /// Sees to it that segments are few.
    fn tidy(&mut self, object: ObjectId, cx: &mut Context<'_>) {
        let is_giving = self.giving.contains_key(&object);
        if self.key_indexes.contains_key(&object) && !is_giving && self.tidying.insert(object) {
            cx.spawn(Task::Tidy(TidyTask(object)));
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
        if !self.key_indexes.contains_key(&object) {
            let index = first.object.clone();
            self.keys_of(&index);
        }
        let keys = self.key_indexes.get_mut(&object).expect("made above");
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
            let parcel = Parcel::owned((batch.object.clone(), Handed::Batch(batch)));
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

/// Tells a former owner what became of what it sent.
fn tell(request: &Header, taken: Took, cx: &mut Context<'_>) {
    let reply = header(TOOK, request.object, cx.endpoint(), request.callback);
    cx.send(request.sender, reply, &[], Some(Parcel::owned(taken)));
}

const GIVEN_UP: &str = "the copy was given up";
const DROPPED: &str = "the index was dropped";
