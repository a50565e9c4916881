//! What a former owner is told: which keys it shall give away, and what the new owner says of those that are on their way.
//!
//! Answers may get lost when an owner panics over them, and come twice when the new one panics after it has answered. Then the former owner is in
//! *doubt*: it sends nothing more but the question how things stand, and what it had counted up to the answer does not matter.

use super::give::GiveTask;
use super::{Handed, Took, Transfer};
use crate::key_index::pace::Pace;
use crate::protocol::commands::{self, HAND_OVER};
use crate::tasks::owner::{Context, Owner, Task};
use eris_aeu::TaskId;
use eris_route::{Command, Endpoint, Header, Parcel};
use std::collections::VecDeque;

/// What an owner that gives keys away has heard of the new one.
pub(crate) struct Giving {
    pub(crate) task: TaskId,
    /// That of the transfer under way.
    pub(crate) callback: u64,
    pub(crate) answers: VecDeque<Took>,
    /// Answers may have been lost in a panic, or come twice.
    pub(crate) doubt: Option<Doubt>,
    /// How often the new owner was asked how things stand.
    pub(crate) questions: u64,
    /// Transfers that wait for the one under way.
    pub(crate) waiting: VecDeque<Asked>,
}

/// What is not known of a new owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It has to be asked, before anything else is sent.
    Noticed,
    /// It was.
    Asked,
}

/// A transfer, and who wants to know what came of it.
pub(crate) struct Asked {
    pub(crate) transfer: Transfer,
    pub(crate) sender: Endpoint,
    pub(crate) callback: u64,
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
    pub(crate) fn begin_to_give(&mut self, mut waiting: VecDeque<Asked>, cx: &mut Context<'_>) {
        let Some(asked) = waiting.pop_front() else {
            return;
        };
        let Transfer {
            ref object,
            low,
            high,
            to,
        } = asked.transfer;
        let object = object.clone();
        let mut pace = Pace::new(0);
        if !object.is_dropped() {
            // It may have been asked for nothing yet.
            let keys = self.keys_of(&object);
            pace = Pace::new(keys.asked());
            keys.begin_to_leave(low, high, to);
        }
        let callback = asked.callback;
        let task = cx.spawn(Task::Give(Box::new(GiveTask::new(asked, pace))));
        let giving = Giving {
            task,
            callback,
            answers: VecDeque::new(),
            doubt: None,
            questions: 0,
            waiting,
        };
        self.giving.insert(object.id, giving);
    }

    /// TOOK.
    pub(crate) fn took(&mut self, header: &Header, taken: Took, cx: &mut Context<'_>) {
        if let Some(giving) = self.giving_of(header) {
            // What was not taken in is nobody's until its former owner knows.
            match taken {
                Took::Piece | Took::Link => cx.resume(giving.task),
                _ => cx.rouse(giving.task),
            };
            giving.answers.push_back(taken);
        } else if let Took::Doubt(_) = taken {
            // Nobody waits for the copy any more that the new owner remembers to have lost.
            if let Some(keys) = self.key_indexes.get(&header.object) {
                let object = keys.object().clone();
                let give_up =
                    commands::header(HAND_OVER, header.object, cx.endpoint(), header.callback);
                let parcel = Parcel::owned((object, Handed::GiveUp));
                cx.send(header.sender, give_up, &[], Some(parcel));
            }
        }
    }

    /// TOOK panicked: an answer may be lost.
    pub(crate) fn doubt(&mut self, header: &Header, cx: &mut Context<'_>) {
        if let Some(giving) = self.giving_of(header) {
            giving.doubt = Some(Doubt::Noticed);
            cx.rouse(giving.task);
        }
    }

    /// Whether a GIVE, over which this AEU has panicked, was taken in before: then it will be answered.
    pub(crate) fn has_taken_in(&self, header: &Header) -> bool {
        let giving = self.giving.get(&header.object);
        giving.is_some_and(|giving| {
            let mut waiting = giving.waiting.iter().map(|asked| asked.callback);
            giving.callback == header.callback || waiting.any(|other| other == header.callback)
        })
    }

    /// The transfer under way, if this is about it.
    fn giving_of(&mut self, header: &Header) -> Option<&mut Giving> {
        let giving = self.giving.get_mut(&header.object);
        giving.filter(|giving| giving.callback == header.callback)
    }
}
