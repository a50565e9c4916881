//! Recovery: the data objects of a database as its log has them.
//!
//! ```text
//! log ─ groups ─▶ objects · dictionaries · segments by number · ranges · definitions
//!                      │ each commit is done again, in their order
//!                      ▼
//!                 partitions of the owners that are here ─▶ rows that are another's by now ─▶ indexes
//! ```
//!
//! Nothing is planned or computed again: rows come in the form in which they were stored, and go to the segment and the
//! number that they had. So each segment can be recovered for itself. It is its former owner's, if that is here; on
//! other machines AEU 5 of 8 leaves what it had to AEU 1 of 2.
//!
//! What cannot be read is an error that says where. Nothing is left out.

mod objects;
mod restore;

pub(crate) use restore::{Restored, RestoredOwner};

use crate::durability::records::{self, Record};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use eris_home::{Definition, DefinitionChange};
use eris_log::Group;
use eris_numa::{Memory, Topology};
use eris_types::{ObjectId, SegmentId, Timestamp};
use objects::RecoveredObject;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What has been read so far.
pub(crate) struct Recovery {
    topology: Arc<Topology>,
    memory: Memory,
    objects: HashMap<ObjectId, RecoveredObject>,
    definitions: BTreeMap<String, Definition>,
    /// The greatest numbers that were used.
    last_object: ObjectId,
    last_segment: SegmentId,
    through: Timestamp,
}

impl Recovery {
    /// Nothing yet.
    pub fn new(topology: &Arc<Topology>, memory: &Memory) -> Self {
        Recovery {
            topology: Arc::clone(topology),
            memory: memory.clone(),
            objects: HashMap::new(),
            definitions: BTreeMap::new(),
            last_object: ObjectId(0),
            last_segment: SegmentId(0),
            through: Timestamp::ZERO,
        }
    }

    /// Does what a group says: first what belongs to no commit, then commits in their order.
    ///
    /// # Errors
    /// It says what cannot be, or there is no memory for it.
    pub fn take(&mut self, group: &Group) -> Result<(), EngineError> {
        let wrong = |reason: &dyn std::fmt::Display| {
            EngineError::Open(format!(
                "the log is damaged: group {}: {reason}",
                group.number
            ))
        };
        let mut all = Vec::new();
        for record in group.records() {
            let record = record.map_err(|error| wrong(&error))?;
            let says = records::read(record.body).map_err(|error| wrong(&error))?;
            all.push((record.at, says));
        }
        // Objects are in the log buffer of clients, and what owners say of them in theirs.
        let is_object = |record: &Record<'_>| matches!(record, Record::Object(_));
        all.sort_by_key(|(at, record)| (*at, !is_object(record)));
        for (at, record) in all {
            self.apply(at, record).map_err(|error| match error {
                Wrong::Damaged(reason) => wrong(&reason),
                Wrong::Failed(error) => error,
            })?;
        }
        self.through = group.through;
        Ok(())
    }

    fn apply(&mut self, at: Timestamp, record: Record<'_>) -> Result<(), Wrong> {
        match record {
            Record::Object(stored) => {
                self.last_object = self.last_object.max(stored.id);
                let aeus = self.topology.aeus().len();
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
                if let Some(object) = self.objects.get_mut(&commit.object) {
                    let last = object.replay(at, &commit, &self.topology, &self.memory)?;
                    self.last_segment = self.last_segment.max(last);
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
}

/// Why a record cannot be heeded.
#[derive(Debug)]
enum Wrong {
    /// It says what cannot be.
    Damaged(String),
    /// It could be, but for this.
    Failed(EngineError),
}
