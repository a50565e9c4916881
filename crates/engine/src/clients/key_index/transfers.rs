//! Transfers of one cycle, and what has come of them.

use crate::clients::client::Client;
use crate::key_index::layout::PartitionTable;
use crate::key_index::shift::Shift;
use crate::key_index::transfer::MovedOut;
use crate::protocol::answers::Panicked;
use crate::protocol::callback::TransferId;
use crate::protocol::lists::ToClient;
use eris_home::Moved;
use eris_types::AeuId;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Transfers under way. If nobody waits for them any more, a thread does: the table must say what they did before
/// others are published.
pub(crate) struct Transfers {
    pub client: Client,
    pub table: Arc<PartitionTable>,
    /// The first transfer; the others follow.
    pub first: TransferId,
    /// What shall move, and who has it.
    pub wanted: Vec<(Shift, AeuId)>,
    /// What came of each, and after how long.
    pub done: Vec<Option<(MovedOut, Duration)>>,
    pub began: Instant,
}

impl Transfers {
    /// Whether all have come to an end; if not, whoever is polled is woken.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Transfers {
            client,
            first,
            done,
            began,
            ..
        } = self;
        while done.iter().any(Option::is_none) {
            let received = client.poll(cx, |received| {
                let number = received.callback::<TransferId>().0.wrapping_sub(first.0);
                let Some(place) = done.get_mut(number as usize) else {
                    return;
                };
                let answer = match received.answer {
                    ToClient::MovedOut(moved) => moved,
                    ToClient::Panicked(Panicked(message)) => MovedOut {
                        moved: Moved::default(),
                        ranges: Vec::new(),
                        failure: Some(message),
                    },
                    _ => unreachable!("owners answer what they are asked"),
                };
                *place = Some((answer, began.elapsed()));
            });
            if !received {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}
