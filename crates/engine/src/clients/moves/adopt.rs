//! The owners' sides: chunks that are offered, and chunks that are adopted.

use crate::error::EngineError;
use crate::held::partition::Partition;
use crate::object::data_object::DataObject;
use crate::protocol::commands::{OFFERED, REFUSED, STAGED, Statement, header};
use crate::tasks::owner::{Context, Owner};
use crate::tasks::stage::store_error;
use eris_aeu::Slice;
use eris_column::Selection;
use eris_route::{Command, Endpoint, Parcel};
use eris_store::{Adoption, Chunk, Segment};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A chunk that may be moved.
#[derive(Debug)]
pub(crate) struct Offered {
    pub chunk: Arc<Chunk>,
    /// The rows that have not ended.
    pub living: Selection,
    /// The columns whose text is stored as it is from now on, where others may still give it codes.
    pub plain: Arc<[bool]>,
}

/// ADOPT: a chunk whose rows are the receiver's once the statement has committed.
pub(crate) struct Adopt {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub offered: Offered,
    pub is_linked: bool,
}

impl Owner {
    /// OFFER: about so many rows, and so many chunks at most.
    pub(crate) fn offer(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let request = command.header;
        let (rows, chunks) = (command.words[0], command.words[1]);
        let partition = self.existing(request.object);
        let offered = partition.map_or_else(Vec::new, |one| one.offer(rows, chunks as usize));
        let reply = header(OFFERED, request.object, cx.endpoint(), request.callback);
        cx.send(request.sender, reply, &[], Some(Parcel::owned(offered)));
    }
}

impl Partition {
    /// Whole chunks, so many at most, which have about `rows` rows together.
    fn offer(&self, rows: u64, chunks: usize) -> Vec<Offered> {
        let plain = self.dictionaries().iter().map(Option::is_none).collect();
        let plain: Arc<[bool]> = plain;
        let segments = self.segments.iter().rev();
        let all = segments.flat_map(Segment::living_chunks);
        let mut left = rows as usize;
        let mut offered = Vec::new();
        for (chunk, living) in all {
            if left == 0 || offered.len() == chunks {
                break;
            }
            // Half of it too many is as good as none.
            if living.count() < 2 * left {
                left = left.saturating_sub(living.count());
                offered.push(Offered {
                    chunk,
                    living,
                    plain: plain.clone(),
                });
            }
        }
        offered
    }
}

/// A chunk on its way into a partition: column by column if it is copied, then staged.
pub(crate) struct AdoptTask {
    object: Arc<DataObject>,
    statement: Arc<Statement>,
    session: Endpoint,
    plain: Arc<[bool]>,
    rows: Option<Adoption>,
}

impl AdoptTask {
    pub fn new(adopt: Adopt, session: Endpoint) -> Self {
        let Offered {
            chunk,
            living,
            plain,
        } = adopt.offered;
        AdoptTask {
            object: adopt.object,
            statement: adopt.statement,
            session,
            plain,
            rows: Some(match adopt.is_linked {
                true => Adoption::link(&chunk),
                false => Adoption::copy(&chunk, living),
            }),
        }
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        if self.statement.aborted.load(Ordering::Acquire) {
            return Slice::Done;
        }
        if self.object.is_dropped() {
            return self.refuse(EngineError::NoSuchObject(self.object.id), cx);
        }
        self.object.trip();
        let horizon = owner.sequencer.horizon();
        let (partition, home) = owner.partition(&self.object);
        let mut rows = self.rows.take().expect("it is not over");
        let stepped = match rows.is_done() {
            false => {
                partition.learn(&self.plain);
                let stepped = rows.step(partition.recoder(home, horizon));
                self.rows = Some(rows);
                stepped.map(|()| Slice::Again)
            }
            true => {
                partition.learn(&self.plain);
                let adopted = partition.adopt(self.statement.id, rows);
                adopted.map(|()| Slice::Done)
            }
        };
        match stepped {
            Ok(Slice::Done) => {
                let reply = header(STAGED, self.object.id, cx.endpoint(), self.statement.id.0);
                cx.send(self.session, reply, &[], None);
                Slice::Done
            }
            Ok(slice) => slice,
            Err(error) => self.refuse(store_error(&self.object.name, &error), cx),
        }
    }

    /// A panic in a slice refuses the statement.
    pub fn panicked(&mut self, message: &str, owner: &Owner, cx: &mut Context<'_>) {
        let error = EngineError::Panicked {
            worker: owner.aeu.to_string(),
            table: self.object.name.clone(),
            message: message.to_owned(),
        };
        self.refuse(error, cx);
    }

    fn refuse(&mut self, error: EngineError, cx: &mut Context<'_>) -> Slice {
        let reply = header(REFUSED, self.object.id, cx.endpoint(), self.statement.id.0);
        cx.send(self.session, reply, &[], Some(Parcel::owned(error)));
        Slice::Done
    }
}
