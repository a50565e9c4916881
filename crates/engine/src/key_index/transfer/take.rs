//! The new owner's side: segments are linked, copies are built, and batches executed that are its own by now.

use super::{DROPPED, Handed, Took};
use crate::key_index::KeyObject;
use crate::key_index::segment::Segment;
use crate::owner::{Context, Owner};
use crate::protocol::{TOOK, header};
use eris_aeu::Group;
use eris_index::{Build, IndexError};
use eris_numa::NodeMemory;
use eris_route::{Header, Parcel};
use eris_types::ObjectId;
use std::sync::Arc;

const GIVEN_UP: &str = "the copy was given up";
const LOST: &str = "some of it was lost when an owner panicked";

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

impl Incoming {
    fn new(object: &KeyObject, low: u64, high: u64, memory: &NodeMemory) -> Self {
        let build = Build::new(memory.clone(), object.id);
        Incoming {
            low,
            high,
            state: Taking::Building(Box::new(build)),
        }
    }

    /// Of what got lost.
    fn failed() -> Self {
        Incoming {
            low: 0,
            high: 0,
            state: Taking::Failed,
        }
    }

    fn has_failed(&self) -> bool {
        matches!(self.state, Taking::Failed)
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

impl Owner {
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
            Handed::Again { number, closed } => {
                let standing = self.standing(copy, closed);
                return tell(request, Took::Settled(number, Box::new(standing)), cx);
            }
            Handed::Link(_) | Handed::Batch(_) => unreachable!("not of a copy"),
        };
        if matches!(taken, Ok(Took::Linked)) || object.is_dropped() {
            self.incoming.remove(&copy);
        }
        tell(request, taken.unwrap_or_else(Took::Failed), cx);
    }

    /// What has become of a copy that is on its way or, if all of it was sent, of the keys that it is of.
    fn standing(&mut self, copy: (ObjectId, u64), closed: Option<(u64, u64)>) -> Took {
        let has_failed = self.incoming.get(&copy).is_some_and(Incoming::has_failed);
        match closed {
            Some((low, _)) => {
                let keys = self.key_indexes.get_mut(&copy.0);
                // Nobody else can have given them.
                match keys.and_then(|keys| keys.segment(low)) {
                    Some(_) => Took::Linked,
                    None => Took::Failed(LOST.to_owned()),
                }
            }
            None if has_failed => Took::Failed(LOST.to_owned()),
            None => Took::Some,
        }
    }

    /// A command of a transfer panicked: what it was about cannot be trusted. The former owner gives it up, whatever there was.
    pub(crate) fn distrust(&mut self, header: &Header, message: &str, cx: &mut Context<'_>) {
        let copy = (header.object, header.callback);
        self.incoming.insert(copy, Incoming::failed());
        let reason = format!("the new owner panicked: {message}");
        tell(header, Took::Doubt(reason), cx);
    }
}

/// Tells a former owner what became of what it sent.
fn tell(request: &Header, taken: Took, cx: &mut Context<'_>) {
    let reply = header(TOOK, request.object, cx.endpoint(), request.callback);
    cx.send(request.sender, reply, &[], Some(Parcel::owned(taken)));
}
