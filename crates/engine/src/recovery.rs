//! Recovery: the data objects of a database as its snapshot and its log have them.
//!
//! ```text
//! snapshot ┐
//! log      ┴ groups ─▶ objects · dictionaries · ranges · definitions
//!                  └─▶ what is to be done in each segment ── some at a time ─▶ done, segments side by side
//!                      ▼
//!                 partitions of the owners that are here ─▶ rows that are another's by now ─▶ indexes
//! ```
//!
//! Nothing is planned or computed again: rows come in the form in which they were stored, and go to the segment and the
//! number that they had. So each segment can be recovered for itself. It is its former owner's, if that is here; on
//! other machines AEU 5 of 8 leaves what it had to AEU 1 of 2.
//!
//! The log has commits that the snapshot has, too; they are left out. What belongs to no commit may be in both, and is
//! not done twice.
//!
//! What cannot be read is an error that says where. Nothing is left out. A [check](mod@check) reads the same and goes
//! on. A [salvage](mod@salvage) leaves out what is damaged, and says what that was.

mod check;
mod columns;
mod objects;
mod replay;
mod restore;
mod salvage;

#[cfg(test)]
pub(crate) use check::check;
pub use check::{DatabaseCheck, DatabaseFinding, check_database};
pub(crate) use restore::{Restored, RestoredOwner};
pub use salvage::{DatabaseSalvage, LostRows};
pub(crate) use salvage::{Salvage, UniqueColumns};

use crate::durability::records::{self, Columns, Record};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use eris_home::{Definition, DefinitionChange};
use eris_log::{ChunkFiles, Group, LogError, Origin};
use eris_numa::{Memory, Topology};
use eris_types::{ObjectId, SegmentId, Timestamp};
use objects::RecoveredObject;
use replay::{Machine, Queued};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What has been read so far.
pub(crate) struct Recovery {
    machine: Machine,
    objects: HashMap<ObjectId, RecoveredObject>,
    definitions: BTreeMap<String, Definition>,
    /// What is to be done in segments.
    queued: Queued,
    /// The greatest numbers that were used.
    last_object: ObjectId,
    last_segment: SegmentId,
    /// The snapshot has all up to here.
    snapshot: Timestamp,
    through: Timestamp,
    /// The chunks that the snapshot refers to, and those that the log does, each with its newest commit.
    chunks: BTreeSet<u64>,
    said: BTreeMap<u64, Timestamp>,
}

impl Recovery {
    /// Nothing yet; so many threads will work.
    pub fn new(
        topology: &Arc<Topology>,
        memory: &Memory,
        files: ChunkFiles,
        threads: usize,
    ) -> Self {
        Recovery {
            machine: Machine::new(topology, memory, files, threads),
            objects: HashMap::new(),
            definitions: BTreeMap::new(),
            queued: Queued::new(memory),
            last_object: ObjectId(0),
            last_segment: SegmentId(0),
            snapshot: Timestamp::ZERO,
            through: Timestamp::ZERO,
            chunks: BTreeSet::new(),
            said: BTreeMap::new(),
        }
    }

    /// Does what a group says: first what belongs to no commit, then commits in their order.
    ///
    /// # Errors
    /// It says what cannot be, or there is no memory for it.
    pub fn take(&mut self, origin: Origin, group: &Group) -> Result<(), EngineError> {
        self.hold(group)?;
        let number = group.number;
        if origin == Origin::Snapshot {
            self.snapshot = group.through;
        }
        let all = records_of(origin, group).map_err(|wrong| wrong.of(origin, number))?;
        for (at, record) in all {
            let applied = self.apply((origin, number), at, record);
            applied.map_err(|wrong| wrong.of(origin, number))?;
        }
        self.through = self.through.max(group.through);
        self.do_if_enough()
    }

    /// Counts a group, whose records wait in memory from now on. If there is none, others are done first.
    fn hold(&mut self, group: &Group) -> Result<(), EngineError> {
        if self.queued.hold(group.bytes()).is_ok() {
            return Ok(());
        }
        self.do_queued()?;
        let held = self.queued.hold(group.bytes());
        held.map_err(|denied| {
            let what =
                "all of a database is in memory, and a group while it is read: allow it more";
            EngineError::Open(format!("group {}: {denied}; {what}", group.number))
        })
    }

    fn do_if_enough(&mut self) -> Result<(), EngineError> {
        match self.queued.is_enough(&self.machine.memory) {
            true => self.do_queued(),
            false => Ok(()),
        }
    }

    fn apply(
        &mut self,
        group: (Origin, u64),
        at: Timestamp,
        record: Record<'_>,
    ) -> Result<(), Wrong> {
        match record {
            Record::Object(stored) => {
                self.last_object = self.last_object.max(stored.id);
                if self.objects.contains_key(&stored.id) {
                    return Ok(());
                }
                let aeus = self.machine.topology.aeus().len();
                let object = DataObject::new(
                    stored.id,
                    &stored.name,
                    stored.schema,
                    stored.partitioning,
                    &stored.key,
                    aeus,
                );
                let object = object.map_err(|error| Wrong::Damaged(error.to_string()))?;
                self.objects.insert(stored.id, RecoveredObject::new(object));
            }
            Record::Dropped(object) => {
                self.objects.remove(&object);
            }
            // What was still being written to an object that was dropped is of no use.
            Record::Strings(strings) => {
                if let Some(object) = self.objects.get_mut(&strings.object) {
                    object.add_strings(&strings)?;
                }
            }
            Record::Ranges(object, ranges) => {
                if let Some(object) = self.objects.get_mut(&object) {
                    object.set_ranges(ranges);
                }
            }
            Record::Rows(commit) => {
                for (first, ..) in &commit.added {
                    self.last_segment = self.last_segment.max(first.segment());
                }
                if at <= self.snapshot {
                    return Ok(());
                }
                for (_, _, columns) in &commit.added {
                    if let Columns::ChunkFile(number) = columns {
                        self.said.insert(*number, at);
                    }
                }
                if let Some(object) = self.objects.get_mut(&commit.object) {
                    object.queue_commit(group, at, &commit, &mut self.queued)?;
                }
            }
            Record::Chunk(chunk) => {
                self.last_segment = self.last_segment.max(chunk.segment);
                if let Columns::ChunkFile(number) = chunk.columns {
                    self.chunks.insert(number);
                }
                match self.objects.get_mut(&chunk.object) {
                    Some(object) => object.queue_chunk(group, at, &chunk, &mut self.queued)?,
                    None => {
                        let what = format!("a chunk of {}, which is not there", chunk.object);
                        return Err(Wrong::Damaged(what));
                    }
                }
            }
            Record::Definition(DefinitionChange::Is(definition)) => {
                self.definitions.insert(definition.name.clone(), definition);
            }
            Record::Definition(DefinitionChange::IsGone(name)) => {
                self.definitions.remove(&name);
            }
        }
        Ok(())
    }

    /// Does what is to be done in segments.
    fn do_queued(&mut self) -> Result<(), EngineError> {
        let done = self.machine.work(self.objects.values_mut());
        self.queued = Queued::new(&self.machine.memory);
        done
    }

    /// All groups were taken.
    ///
    /// # Errors
    /// As [`Recovery::take`].
    pub fn finish(&mut self) -> Result<(), EngineError> {
        self.do_queued()
    }

    /// The chunks that are referred to.
    pub fn referred_to(&self) -> BTreeSet<u64> {
        let said = self.said.keys().copied();
        said.chain(self.chunks.iter().copied()).collect()
    }

    /// The chunks that the log refers to, each with its newest commit.
    pub fn said(&self) -> &BTreeMap<u64, Timestamp> {
        &self.said
    }
}

/// The records of a group, each with its commit, in the order in which they are heeded.
fn records_of(origin: Origin, group: &Group) -> Result<Vec<(Timestamp, Record<'_>)>, Wrong> {
    let mut all = Vec::new();
    for record in group.records() {
        let record = record.map_err(|error| Wrong::Damaged(error.to_string()))?;
        let says = records::read(record.body);
        let says = says.map_err(|error| Wrong::Damaged(error.to_string()))?;
        all.push((record.at, says));
    }
    Ok(in_order(origin, all))
}

fn in_order(origin: Origin, mut all: Vec<(Timestamp, Record<'_>)>) -> Vec<(Timestamp, Record<'_>)> {
    // Objects are in the log buffer of clients, and what owners say of them in theirs.
    if origin == Origin::Log {
        let is_object = |record: &Record<'_>| matches!(record, Record::Object(_));
        all.sort_by_key(|(at, record)| (*at, !is_object(record)));
    }
    all
}

/// A group says what cannot be.
fn damaged(origin: Origin, group: u64, reason: &dyn std::fmt::Display) -> EngineError {
    let what = match origin {
        Origin::Snapshot => "snapshot",
        Origin::Log => "log",
    };
    EngineError::Open(format!("the {what} is damaged: group {group}: {reason}"))
}

/// Why a record cannot be heeded.
#[derive(Debug)]
enum Wrong {
    /// It says what cannot be.
    Damaged(String),
    /// A chunk that it refers to cannot be read.
    Chunk(LogError),
    /// It could be, but for this.
    Failed(EngineError),
}

impl Wrong {
    /// Said of a group.
    fn of(self, origin: Origin, group: u64) -> EngineError {
        match self {
            Wrong::Damaged(reason) => damaged(origin, group, &reason),
            Wrong::Chunk(error) => EngineError::Open(error.to_string()),
            Wrong::Failed(error) => error,
        }
    }
}
