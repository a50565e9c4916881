//! What a former owner is told: which keys it shall move out, and what the new owner says of those that are on their
//! way.

use super::move_out::KeyTasks;
use super::moving::{Doubt, MovingOut, WantedTransfer};
use crate::key_index::transfer::{Acknowledgement, Handed, Transfer};
use crate::protocol::asked::Asked;
use crate::protocol::keys::{HandOver, MoveOut, TransferAcknowledged};
use crate::protocol::message::{Context, send};
use crate::tasks::owner::Owner;

impl Owner {
    /// Begins with a transfer, once those before it are done.
    pub fn move_out<T: KeyTasks>(
        &mut self,
        transfer: Transfer,
        asked: Asked<MoveOut>,
        cx: &mut Context<'_, T>,
    ) {
        let wanted = WantedTransfer { transfer, asked };
        match self.moving_out.get_mut(&wanted.transfer.object.id) {
            Some(moving) => moving.waiting.push_back(wanted),
            None => self.begin_to_move_out([wanted].into(), cx),
        }
    }

    /// Takes note of what the new owner says.
    pub fn acknowledged<T>(
        &mut self,
        asked: Asked<TransferAcknowledged>,
        answer: Acknowledgement,
        cx: &mut Context<'_, T>,
    ) {
        if let Some(moving) = self.moving_out_of(asked) {
            // What was not taken in is nobody's until its former owner knows.
            match answer {
                Acknowledgement::Piece | Acknowledgement::Link => cx.resume(moving.task),
                _ => cx.rouse(moving.task),
            };
            moving.answers.push_back(answer);
        } else if let Acknowledgement::Doubt(_) = answer {
            // Nobody waits for the copy any more that the new owner remembers to have lost.
            if let Some(keys) = self.key_indexes.get(&asked.object) {
                let give_up = HandOver {
                    object: keys.object().clone(),
                    what: Handed::GiveUp,
                };
                send(cx, asked.sender, asked.object, asked.callback, give_up);
            }
        }
    }

    /// An acknowledgement may have been lost in a panic.
    pub fn doubt<T>(&mut self, asked: Asked<TransferAcknowledged>, cx: &mut Context<'_, T>) {
        if let Some(moving) = self.moving_out_of(asked) {
            moving.doubt = Some(Doubt::Noticed);
            cx.rouse(moving.task);
        }
    }

    /// Whether a transfer, over whose command this AEU has panicked, was taken in before: then it will be answered.
    pub fn has_taken_in(&self, asked: Asked<MoveOut>) -> bool {
        let wanted = asked.callback;
        let moving = self.moving_out.get(&asked.object);
        moving.is_some_and(|moving| {
            let mut waiting = moving.waiting.iter().map(|other| other.asked.callback);
            moving.transfer == wanted || waiting.any(|other| other == wanted)
        })
    }

    /// The transfer under way, if this is about it.
    fn moving_out_of(&mut self, asked: Asked<TransferAcknowledged>) -> Option<&mut MovingOut> {
        let transfer = asked.callback.transfer();
        let moving = self.moving_out.get_mut(&asked.object);
        moving.filter(|moving| moving.transfer == transfer)
    }
}
