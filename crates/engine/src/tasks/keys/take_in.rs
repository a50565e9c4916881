//! The new owner's side: segments are linked, pieces taken in, and batches executed that are its own by now.

use super::compact::CompactTask;
use crate::key_index::object::KeyObject;
use crate::key_index::transfer::{Acknowledgement, DROPPED, Handed, LOST, Standing};
use crate::protocol::asked::Asked;
use crate::protocol::callback::TransferId;
use crate::protocol::keys::{HandOver, TransferAcknowledged};
use crate::protocol::lists::Parcel;
use crate::protocol::lists::ToOwner;
use crate::protocol::message::{Context, List, Message};
use crate::tasks::owner::Owner;
use eris_aeu::{Group, Sliced};
use eris_types::ObjectId;
use std::sync::Arc;

const GIVEN_UP: &str = "the copy was given up";

impl Owner {
    /// Executes a group of [`HandOver`]. Keys that others have moved out come first, so that no panic over something
    /// else loses them.
    pub fn hand_over<T: Sliced + From<CompactTask>>(
        &mut self,
        object: ObjectId,
        commands: Group<'_, Parcel>,
        cx: &mut Context<'_, T>,
    ) {
        let (mut copies, mut batches) = (Vec::new(), Vec::new());
        for command in commands {
            let handed = match ToOwner::unpack(HandOver::KIND, command.words, command.parcel) {
                ToOwner::HandOver(handed) => handed,
                _ => unreachable!("commands of a group are of its kind"),
            };
            let asked = Asked::by(&handed, &command.header);
            let HandOver { object, what } = handed;
            match what {
                Handed::Link(segment) => {
                    if !object.is_dropped() {
                        self.keys_of(&object).link(*segment);
                    }
                    acknowledge(asked, Acknowledgement::Link, cx);
                }
                Handed::Batch(batch) => batches.push((asked.of_batch(), batch)),
                copy => copies.push((asked, object, copy)),
            }
        }
        for (asked, object, copy) in copies {
            self.take_in(asked, &object, copy, cx);
        }
        self.compact(object, cx);
        if let Some((asked, _)) = batches.first() {
            self.execute_keys(asked.object, batches, cx);
        }
    }

    /// Takes in some more of a copy.
    fn take_in<T>(
        &mut self,
        asked: Asked<HandOver>,
        object: &Arc<KeyObject>,
        what: Handed,
        cx: &mut Context<'_, T>,
    ) {
        let copy = copy_of(asked);
        let taken = match what {
            Handed::GiveUp => {
                self.rejected.remove(&copy);
                return;
            }
            Handed::Again { number, keys } => {
                let standing = self.standing(copy, keys);
                let answer = Acknowledgement::Certain(number, standing);
                return acknowledge(asked, answer, cx);
            }
            _ if object.is_dropped() => Err(DROPPED.to_owned()),
            _ if self.rejected.contains(&copy) => Err(GIVEN_UP.to_owned()),
            Handed::Piece { piece, follows } => {
                let taken = self.keys_of(object).take_in(&piece, follows);
                taken.map_err(|error| error.to_string())
            }
            Handed::Link(_) | Handed::Batch(_) => unreachable!("not of a copy"),
        };
        let answer = match taken {
            Ok(()) => Acknowledgement::Piece,
            Err(reason) => {
                self.rejected.insert(copy);
                Acknowledgement::Failed(reason)
            }
        };
        acknowledge(asked, answer, cx);
    }

    /// What has become of a copy, of which these keys were sent and may have been taken in.
    fn standing(&mut self, copy: (ObjectId, TransferId), keys: Option<(u64, u64)>) -> Standing {
        let owned = self.key_indexes.get_mut(&copy.0);
        // What it has of them it can only have from this copy, which goes from one end to the other.
        let has = owned.zip(keys).and_then(|(owned, (low, high))| {
            let segments = owned.segments().iter();
            let parts = segments.map(|segment| (segment.low.max(low), segment.high.min(high)));
            let parts = parts.filter(|(low, high)| low <= high);
            parts.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        });
        let is_rejected = self.rejected.contains(&copy);
        Standing {
            has,
            failure: is_rejected.then(|| LOST.to_owned()),
        }
    }

    /// A command of a transfer panicked: what it was about cannot be trusted. The former owner gives it up, whatever
    /// there was.
    pub fn distrust<T>(&mut self, asked: Asked<HandOver>, message: &str, cx: &mut Context<'_, T>) {
        self.rejected.insert(copy_of(asked));
        let reason = format!("the new owner panicked: {message}");
        acknowledge(asked, Acknowledgement::Doubt(reason), cx);
    }
}

/// The copy that a command is about.
fn copy_of(asked: Asked<HandOver>) -> (ObjectId, TransferId) {
    (asked.object, asked.callback.transfer())
}

/// Tells a former owner what became of what it sent.
fn acknowledge<T>(asked: Asked<HandOver>, answer: Acknowledgement, cx: &mut Context<'_, T>) {
    asked.answer(TransferAcknowledged(answer), cx);
}
