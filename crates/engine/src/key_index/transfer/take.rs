//! The new owner's side: segments are linked, pieces taken in, and batches executed that are its own by now.

use super::{DROPPED, Handed, LOST, Standing, Took};
use crate::key_index::KeyObject;
use crate::protocol::commands::{TOOK, header};
use crate::tasks::owner::{Context, Owner};
use eris_aeu::Group;
use eris_route::{Header, Parcel};
use eris_types::ObjectId;
use std::sync::Arc;

const GIVEN_UP: &str = "the copy was given up";

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
                    tell(&request, Took::Link, cx);
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
            Handed::GiveUp => {
                self.refused.remove(&copy);
                return;
            }
            Handed::Again { number, keys } => {
                let standing = self.standing(copy, keys);
                return tell(request, Took::Settled(number, standing), cx);
            }
            _ if object.is_dropped() => Err(DROPPED.to_owned()),
            _ if self.refused.contains(&copy) => Err(GIVEN_UP.to_owned()),
            Handed::Piece { piece, follows } => {
                let taken = self.keys_of(object).take_in(&piece, follows);
                taken.map_err(|error| error.to_string())
            }
            Handed::Link(_) | Handed::Batch(_) => unreachable!("not of a copy"),
        };
        let answer = match taken {
            Ok(()) => Took::Piece,
            Err(reason) => {
                self.refused.insert(copy);
                Took::Failed(reason)
            }
        };
        tell(request, answer, cx);
    }

    /// What has become of a copy, of which these keys were sent and may have been taken in.
    fn standing(&mut self, copy: (ObjectId, u64), keys: Option<(u64, u64)>) -> Standing {
        let owned = self.key_indexes.get_mut(&copy.0);
        // What it has of them it can only have from this copy, which goes from one end to the other.
        let has = owned.zip(keys).and_then(|(owned, (low, high))| {
            let segments = owned.segments().iter();
            let parts = segments.map(|segment| (segment.low.max(low), segment.high.min(high)));
            let parts = parts.filter(|(low, high)| low <= high);
            parts.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        });
        let is_refused = self.refused.contains(&copy);
        Standing {
            has,
            failure: is_refused.then(|| LOST.to_owned()),
        }
    }

    /// A command of a transfer panicked: what it was about cannot be trusted. The former owner gives it up, whatever there was.
    pub(crate) fn distrust(&mut self, header: &Header, message: &str, cx: &mut Context<'_>) {
        let copy = (header.object, header.callback);
        self.refused.insert(copy);
        let reason = format!("the new owner panicked: {message}");
        tell(header, Took::Doubt(reason), cx);
    }
}

/// Tells a former owner what became of what it sent.
fn tell(request: &Header, taken: Took, cx: &mut Context<'_>) {
    let reply = header(TOOK, request.object, cx.endpoint(), request.callback);
    cx.send(request.sender, reply, &[], Some(Parcel::owned(taken)));
}
