//! What the segments of an index were asked for, merged on reading.

use super::{KeyIndex, OwnedKeys};
use crate::error::EngineError;
use crate::owner::{Context, Owner};
use crate::protocol::{MEASURE, MEASURED, PANICKED, header};
use eris_route::{Command, Parcel};
use eris_types::AeuId;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// A segment and what it was asked for since the last look.
#[derive(Clone, Debug)]
pub struct SegmentLoad {
    /// Its owner.
    pub aeu: AeuId,
    /// Its keys are from this one
    pub low: u64,
    /// to this one.
    pub high: u64,
    /// Keys in its tree.
    pub keys: u64,
    /// Bytes of its nodes and records.
    pub bytes: u64,
    /// Keys that were asked for.
    pub asked: u64,
    /// What that took the owner.
    pub busy: Duration,
    /// Some of these keys, ascending; each as likely as any other.
    pub samples: Vec<u64>,
}

impl KeyIndex {
    /// The segments in the order of their keys, and what they were asked for since the last call. Segments that change their owner
    /// meanwhile may be missing, or be there twice.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    pub async fn measure(&self) -> Result<Vec<SegmentLoad>, EngineError> {
        let mut client = self.engine().client()?;
        let callback = self.engine().next_callback();
        let mut open = 0;
        for place in self.engine().topology().aeus() {
            client.tell(place.aeu, MEASURE, self.id(), callback, &[]);
            open += 1;
        }
        client.flush();
        let (mut all, mut failure) = (Vec::new(), None);
        poll_fn(|cx| {
            while open > 0 {
                let received = client.poll(cx, |command: Command<'_>| {
                    if command.header.callback != callback {
                        return;
                    }
                    open -= 1;
                    let parcel = command.parcel.expect("every answer has one");
                    match command.header.kind {
                        MEASURED => {
                            let part = parcel.into_owned::<Vec<SegmentLoad>>();
                            all.extend(*part.expect("the kind says what is in the parcel"));
                        }
                        PANICKED => failure = parcel.into_owned::<String>().ok(),
                        other => unreachable!("no AEU answers so with kind {other}"),
                    }
                });
                if !received {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        self.engine().give_back(&mut client);
        if let Some(message) = failure {
            return Err(EngineError::Panicked {
                worker: "an owner".to_owned(),
                table: self.name().to_owned(),
                message: *message,
            });
        }
        all.sort_by_key(|segment: &SegmentLoad| segment.low);
        Ok(all)
    }
}

impl Owner {
    /// MEASURE.
    pub(crate) fn measure(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let request = command.header;
        let segments = self.key_indexes.get_mut(&request.object);
        let segments = segments.map_or_else(Vec::new, OwnedKeys::loads);
        let reply = header(MEASURED, request.object, cx.endpoint(), request.callback);
        cx.send(request.sender, reply, &[], Some(Parcel::owned(segments)));
    }
}

impl OwnedKeys {
    /// Its segments, and what they were asked for since the last call.
    fn loads(&mut self) -> Vec<SegmentLoad> {
        let aeu = self.aeu();
        let segments = self.segments().iter_mut();
        segments
            .map(|segment| {
                let asked = segment.take_asked();
                let busy = asked.busy();
                let mut samples = asked.samples;
                samples.sort_unstable();
                SegmentLoad {
                    aeu,
                    low: segment.low,
                    high: segment.high,
                    keys: segment.len() as u64,
                    bytes: segment.bytes(),
                    asked: asked.keys,
                    busy,
                    samples,
                }
            })
            .collect()
    }
}
