//! A result stream: the receiver's end of a running fragment.
//!
//! Why it is an endpoint of its own: docs/decisions/0004.

use super::client::Client;
use super::shared::EngineState;
use crate::protocol::answers::{Batch, End, Panicked};
use crate::protocol::callback::RunId;
use crate::protocol::lists::ToClient;
use crate::protocol::run::{CREDITS, Run};
use crate::protocol::runs::{Cancel, Credit};
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use eris_types::AeuId;
use futures::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) struct ResultStream {
    shared: Arc<EngineState>,
    client: Client,
    run: Arc<Run>,
    /// Its number among those of the run.
    number: usize,
    /// The AEUs that send to this stream and have not ended.
    open: Vec<AeuId>,
    /// Batches that came and were not yet taken, with their senders.
    ready: VecDeque<(AeuId, RecordBatch)>,
    /// Per AEU, credits that were used up and not yet given back.
    owed: Vec<u32>,
    failure: Option<FragmentError>,
    /// Given up before its end. Batches may still arrive, with memory that they hold: the session is closed, not kept.
    cancelled: bool,
}

impl ResultStream {
    pub fn new(shared: Arc<EngineState>, client: Client, run: Arc<Run>, number: usize) -> Self {
        let is_keyed = run.is_keyed();
        let shares = run.shares.iter();
        let senders = shares.filter(|share| is_keyed || share.stream == number);
        ResultStream {
            open: senders.map(|share| share.aeu).collect(),
            owed: vec![0; shared.topology.aeus().len()],
            ready: VecDeque::new(),
            failure: None,
            cancelled: false,
            shared,
            client,
            run,
            number,
        }
    }

    /// Gives credit back in halves of what an AEU has: one command for several batches.
    fn pay(&mut self, aeu: AeuId) {
        let owed = &mut self.owed[aeu.index()];
        *owed += 1;
        if *owed >= CREDITS / 2 && self.open.contains(&aeu) {
            let credit = Credit {
                batches: std::mem::take(owed),
                stream: self.number as u32,
            };
            (self.client).send(aeu, self.run.object.id, self.run.id, credit);
            self.client.flush();
        }
    }

    /// Tells the AEUs that have not ended that nobody listens any more, also those that wait for credit or help.
    fn cancel(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.cancelled = true;
        self.run.drop_stream(self.number);
        for aeu in std::mem::take(&mut self.open) {
            (self.client).send(aeu, self.run.object.id, self.run.id, Cancel);
        }
        self.client.flush_all();
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let ResultStream {
            client,
            run,
            open,
            ready,
            failure,
            ..
        } = self;
        client.poll(cx, |received| {
            let of_run = received.callback::<RunId>() == run.id;
            let Some(aeu) = received.sender.as_aeu().filter(|_| of_run) else {
                return;
            };
            match received.answer {
                ToClient::Batch(Batch(batch)) => ready.push_back((aeu, batch)),
                ToClient::End(End(result)) => {
                    open.retain(|&other| other != aeu);
                    if let Err(error) = result {
                        failure.get_or_insert(error);
                    }
                }
                ToClient::Panicked(Panicked(message)) => {
                    let error = FragmentError::Panicked {
                        worker: aeu.to_string(),
                        object: run.object.id,
                        message,
                    };
                    run.fail(error.clone());
                    failure.get_or_insert(error);
                }
                _ => {}
            }
        })
    }
}

impl Stream for ResultStream {
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

impl Drop for ResultStream {
    fn drop(&mut self) {
        self.cancel();
        if !self.cancelled {
            self.shared.give_back(&mut self.client);
        }
    }
}
