//! A lane: the receiver's end of a running fragment.
//!
//! Why it is an endpoint of its own: docs/decisions/0004.

use crate::clients::client::Client;
use crate::clients::engine::Shared;
use crate::protocol::commands::*;
use crate::protocol::run::{CREDITS, Run};
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use eris_types::AeuId;
use futures::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) struct LaneStream {
    shared: Arc<Shared>,
    client: Client,
    run: Arc<Run>,
    lane: usize,
    /// The AEUs that send to this lane and have not ended.
    open: Vec<AeuId>,
    /// Batches that came and were not yet taken, with their senders.
    ready: VecDeque<(AeuId, RecordBatch)>,
    /// Per AEU, credits that were used up and not yet given back.
    owed: Vec<u32>,
    failure: Option<FragmentError>,
    /// Given up before its end. Batches may still arrive, with memory that they hold: the session is closed, not kept.
    cancelled: bool,
}

impl LaneStream {
    pub fn new(shared: Arc<Shared>, client: Client, run: Arc<Run>, lane: usize) -> Self {
        let is_keyed = run.is_keyed();
        let shares = run.shares.iter();
        let senders = shares.filter(|share| is_keyed || share.lane == lane);
        LaneStream {
            open: senders.map(|share| share.aeu).collect(),
            owed: vec![0; shared.topology.aeus().len()],
            ready: VecDeque::new(),
            failure: None,
            cancelled: false,
            shared,
            client,
            run,
            lane,
        }
    }

    /// Gives credit back in halves of what an AEU has: one command for several batches.
    fn pay(&mut self, aeu: AeuId) {
        let owed = &mut self.owed[aeu.index()];
        *owed += 1;
        if *owed >= CREDITS / 2 && self.open.contains(&aeu) {
            let credits = [u64::from(*owed), self.lane as u64];
            *owed = 0;
            (self.client).tell(aeu, CREDIT, self.run.object.id, self.run.id, &credits);
            self.client.flush();
        }
    }

    /// Tells the AEUs that have not ended that nobody listens any more, also those that wait for credit or help.
    fn cancel(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.cancelled = true;
        self.run.drop_lane(self.lane);
        for aeu in std::mem::take(&mut self.open) {
            (self.client).tell(aeu, CANCEL, self.run.object.id, self.run.id, &[]);
        }
        self.client.flush_all();
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let LaneStream {
            client,
            run,
            open,
            ready,
            failure,
            ..
        } = self;
        client.poll(cx, |command| {
            if command.header.callback != run.id {
                return;
            }
            let Some(aeu) = command.header.sender.as_aeu() else {
                return;
            };
            let Some(parcel) = command.parcel else {
                return;
            };
            match command.header.kind {
                BATCH => {
                    if let Ok(batch) = parcel.into_owned::<RecordBatch>() {
                        ready.push_back((aeu, *batch));
                    }
                }
                END => {
                    open.retain(|&other| other != aeu);
                    if let Ok(result) = parcel.into_owned::<Result<(), FragmentError>>()
                        && let Err(error) = *result
                    {
                        failure.get_or_insert(error);
                    }
                }
                PANICKED => {
                    let message = parcel.into_owned::<String>();
                    let error = FragmentError::Panicked {
                        worker: aeu.to_string(),
                        object: run.object.id,
                        message: message.map(|message| *message).unwrap_or_default(),
                    };
                    run.fail(error.clone());
                    failure.get_or_insert(error);
                }
                _ => {}
            }
        })
    }
}

impl Stream for LaneStream {
    type Item = Result<RecordBatch, FragmentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(error) = this.failure.take() {
                // What came before is part of no answer.
                this.ready.clear();
                this.cancel();
                return Poll::Ready(Some(Err(error)));
            }
            if let Some((aeu, batch)) = this.ready.pop_front() {
                this.pay(aeu);
                return Poll::Ready(Some(Ok(batch)));
            }
            if this.open.is_empty() {
                return Poll::Ready(None);
            }
            if !this.receive(cx) {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for LaneStream {
    fn drop(&mut self) {
        self.cancel();
        if !self.cancelled {
            self.shared.give_back(&mut self.client);
        }
    }
}
