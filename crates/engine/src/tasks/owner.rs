//! What one AEU has: partitions, indexes, dictionaries, and what is known of the work under way. Its tasks work on it.

use super::copies::CopyBlocks;
use super::keys::moving::MovingOut;
use super::repartition::ReceivedGroups;
use crate::durability::Log;
use crate::error::EngineError;
use crate::held::dictionaries::Numbering;
use crate::held::partition::Partition;
use crate::held::reorganize::Reorganizable;
use crate::key_index::owned::OwnedKeys;
use crate::object::data_object::DataObject;
use crate::protocol::callback::{EncodingId, RunId, TransferId};
use crate::protocol::message::{Context, send};
use crate::protocol::run::Run;
use crate::protocol::runs::Help;
use crate::remote::Remote;
use crate::sequencer::Sequencer;
use eris_aeu::TaskId;
use eris_column::ObjectMemory;
use eris_home::BUFFERS;
use eris_numa::{Budget, NodeAccount, NodeMemory, Topology};
use eris_route::Endpoint;
use eris_types::{AeuId, ObjectId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// The partitions of one AEU and the work on them.
pub(crate) struct Owner {
    pub aeu: AeuId,
    pub memory: NodeMemory,
    pub budget: Budget,
    /// For what statements keep here beside buffers.
    pub buffers: NodeAccount,
    pub topology: Arc<Topology>,
    pub sequencer: Arc<Sequencer>,
    /// Where commits are logged, if the engine is durable.
    pub log: Option<Log>,
    pub remote: Arc<Remote>,
    pub copies: CopyBlocks,
    /// What chunks are timed by. Simulations have a clock of their own, so that a seed always does the same.
    pub clock: fn() -> Instant,
    pub partitions: HashMap<ObjectId, Partition>,
    /// Fragments under way here.
    pub runs: HashMap<RunId, ActiveRun>,
    /// Rows that wait for codes.
    pub encodings: HashMap<EncodingId, WaitingRows>,
    pub next_encoding: u64,
    /// The dictionaries that this AEU numbers, by object and column.
    pub numberings: HashMap<(ObjectId, usize), Numbering>,
    pub key_indexes: HashMap<ObjectId, OwnedKeys>,
    /// Indexes of which keys are being moved out.
    pub moving_out: HashMap<ObjectId, MovingOut>,
    /// Indexes whose segments are being put together.
    pub compacting: HashSet<ObjectId>,
    /// Copies of which a piece was rejected: what follows is, too, until the former owner has heard.
    pub rejected: HashSet<(ObjectId, TransferId)>,
    /// The objects whose garbage is being collected.
    pub collecting: HashSet<ObjectId>,
    /// The objects of whose keys some are being brought to where they belong.
    pub unsharing: HashSet<ObjectId>,
    /// The objects whose index has a task.
    pub reorganizing: HashSet<ObjectId>,
}

/// What commands about a run find here.
pub(crate) struct ActiveRun {
    pub task: TaskId,
    /// Per result stream of the run.
    pub credits: Box<[u32]>,
    pub received: ReceivedGroups,
    /// Whether rows that were found here are being inserted.
    pub is_appending: bool,
    pub run: Arc<Run>,
}

/// Rows that wait for codes.
pub(crate) struct WaitingRows {
    pub task: TaskId,
    pub answers_due: usize,
    pub failure: Option<EngineError>,
}

impl Owner {
    pub fn new(
        aeu: AeuId,
        memory: NodeMemory,
        budget: Budget,
        topology: Arc<Topology>,
        sequencer: Arc<Sequencer>,
        remote: Arc<Remote>,
    ) -> Self {
        Owner {
            aeu,
            buffers: memory.account(BUFFERS),
            memory,
            budget,
            topology,
            sequencer,
            log: None,
            remote,
            copies: CopyBlocks::default(),
            clock: Instant::now,
            partitions: HashMap::new(),
            runs: HashMap::new(),
            encodings: HashMap::new(),
            next_encoding: 0,
            numberings: HashMap::new(),
            key_indexes: HashMap::new(),
            moving_out: HashMap::new(),
            compacting: HashSet::new(),
            rejected: HashSet::new(),
            collecting: HashSet::new(),
            unsharing: HashSet::new(),
            reorganizing: HashSet::new(),
        }
    }

    /// The partition of `object`, and where its memory comes from.
    pub fn partition(&mut self, object: &Arc<DataObject>) -> (&mut Partition, ObjectMemory<'_>) {
        let home = ObjectMemory {
            memory: &self.memory,
            object: object.id,
        };
        let partition = (self.partitions.entry(object.id))
            .or_insert_with(|| Partition::new(object.clone(), self.aeu, self.log.as_ref(), home));
        (partition, home)
    }

    /// The partition of an object, if there is one: work that was under way when the object was dropped makes no new
    /// one.
    pub fn existing(&mut self, object: ObjectId) -> Option<&mut Partition> {
        self.partitions.get_mut(&object)
    }

    /// The key index of an object, or the bare index.
    pub fn index(&mut self, object: ObjectId) -> Option<&mut dyn Reorganizable> {
        match self.key_indexes.get_mut(&object) {
            Some(keys) => Some(keys),
            None => self.partitions.get_mut(&object)?.index(),
        }
    }

    /// A statement's failure, for the message of a panic here.
    pub fn panic(&self, table: &str, message: &str) -> EngineError {
        EngineError::Panicked {
            worker: self.aeu.to_string(),
            table: table.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Wakes the participants that wait for a work queue, or all others.
    pub fn call_for_help<T>(&self, run: &Run, willing: Vec<AeuId>, cx: &mut Context<'_, T>) {
        for aeu in willing {
            send(cx, Endpoint::aeu(aeu), run.object.id, run.id, Help);
        }
    }
}
