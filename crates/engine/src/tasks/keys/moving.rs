//! What a former owner knows of keys that it moves out: which they are, and what the new owner has said of them.
//!
//! Answers may get lost when an owner panics over them, and come twice when the new one panics after it has answered.
//! Then the former owner is in *doubt*: it sends nothing more but the question how things stand, and what it had
//! counted up to the answer does not matter.

use crate::key_index::transfer::{Acknowledgement, Transfer};
use crate::protocol::asked::Asked;
use crate::protocol::callback::TransferId;
use crate::protocol::keys::MoveOut;
use eris_aeu::TaskId;
use std::collections::VecDeque;

/// What an owner that moves keys out has heard of the new one.
pub(crate) struct MovingOut {
    pub task: TaskId,
    /// The transfer under way.
    pub transfer: TransferId,
    pub answers: VecDeque<Acknowledgement>,
    /// Answers may have been lost in a panic, or come twice.
    pub doubt: Option<Doubt>,
    /// How often the new owner was asked how things stand.
    pub questions: u64,
    /// Transfers that wait for the one under way.
    pub waiting: VecDeque<WantedTransfer>,
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
pub(crate) struct WantedTransfer {
    pub transfer: Transfer,
    pub asked: Asked<MoveOut>,
}
