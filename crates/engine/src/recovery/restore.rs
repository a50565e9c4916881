//! What was read becomes the engine's: partitions of its owners, with all that follows from rows.

use super::Recovery;
use super::objects::RecoveredObject;
use crate::durability::Log;
use crate::durability::records::StoredRanges;
use crate::error::EngineError;
use crate::held::dictionaries::Numbering;
use crate::held::partition::{Misplaced, Partition, pass_segment};
use crate::object::data_object::DataObject;
use eris_column::{Dictionary, ObjectMemory};
use eris_home::Definition;
use eris_numa::{Memory, Topology};
use eris_store::Segment;
use eris_types::{AeuId, ObjectId, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// What the log has had.
pub(crate) struct Restored {
    pub objects: Vec<Arc<DataObject>>,
    pub definitions: BTreeMap<String, Definition>,
    /// The number of the next object.
    pub next_object: ObjectId,
    /// What each AEU has.
    pub owners: Vec<RestoredOwner>,
}

/// What an AEU has.
#[derive(Default)]
pub(crate) struct RestoredOwner {
    pub partitions: HashMap<ObjectId, Partition>,
    pub numberings: HashMap<(ObjectId, usize), Numbering>,
}

impl Recovery {
    /// Gives what was read to owners, each of which has a log; the last log is that of clients. There are none if
    /// nothing is written.
    ///
    /// # Errors
    /// There is no memory, or rows contradict each other.
    pub fn restore(self, logs: &[Log]) -> Result<Restored, EngineError> {
        let Recovery {
            machine,
            objects,
            definitions,
            last_object,
            last_segment,
            through,
            ..
        } = self;
        let (topology, memory) = (machine.topology, machine.memory);
        pass_segment(last_segment);
        let mut owners: Vec<RestoredOwner> = Vec::new();
        owners.resize_with(topology.aeus().len(), RestoredOwner::default);
        let nodes = Nodes {
            topology: &topology,
            memory: &memory,
        };
        let mut all = Vec::with_capacity(objects.len());
        for recovered in objects.into_values() {
            all.push(nodes.place(recovered, &mut owners, through, logs)?);
        }
        nodes.index(&mut owners, through)?;
        for (object, plain) in &all {
            nodes.number(object, plain, &mut owners)?;
        }
        Ok(Restored {
            objects: all.into_iter().map(|(object, _)| object).collect(),
            definitions,
            next_object: ObjectId(last_object.0 + 1),
            owners,
        })
    }
}

struct Nodes<'a> {
    topology: &'a Topology,
    memory: &'a Memory,
}

impl Nodes<'_> {
    /// Works where an AEU has an object's memory.
    fn at<R>(&self, aeu: AeuId, object: ObjectId, work: impl FnOnce(ObjectMemory<'_>) -> R) -> R {
        let memory = self.memory.node(self.topology.node_of(aeu));
        work(ObjectMemory {
            memory: &memory,
            object,
        })
    }

    /// Makes the partitions of an object, and sees to it that each key is with its owner.
    fn place(
        &self,
        recovered: RecoveredObject,
        owners: &mut [RestoredOwner],
        through: Timestamp,
        logs: &[Log],
    ) -> Result<(Arc<DataObject>, Vec<bool>), EngineError> {
        let RecoveredObject {
            object,
            ranges,
            segments,
            plain,
            ..
        } = recovered;
        let plain: Vec<bool> = plain.into_iter().map(AtomicBool::into_inner).collect();
        let object = Arc::new(match logs.last() {
            Some(of_clients) => object.durable(of_clients.clone()),
            None => object.read_only(),
        });
        let id = object.id;
        if object.is_ranged_by_key() && !segments.is_empty() {
            // A disk that was nearly full may have had no room for them.
            let all = || StoredRanges {
                common: Vec::new(),
                bounds: vec![(i64::MIN, AeuId(0))],
            };
            let ranges = ranges.unwrap_or_else(all);
            object.ranges.restore(&ranges, owners.len());
        }
        let mut of_owners: BTreeMap<AeuId, Vec<Segment>> = BTreeMap::new();
        for recovered in segments.into_values() {
            let owner = AeuId(recovered.owner.0 % owners.len() as u16);
            let segments = of_owners.entry(owner).or_default();
            segments.push(recovered.segment);
        }
        for (aeu, segments) in of_owners {
            let log = logs.get(aeu.index());
            let partition = self.at(aeu, id, |home| {
                Partition::restored(Arc::clone(&object), aeu, log, segments, &plain, home)
            });
            owners[aeu.index()].partitions.insert(id, partition);
        }
        if object.is_ranged_by_key() {
            self.move_misplaced(&object, owners, through, logs)?;
        }
        Ok((object, plain))
    }

    fn move_misplaced(
        &self,
        object: &Arc<DataObject>,
        owners: &mut [RestoredOwner],
        through: Timestamp,
        logs: &[Log],
    ) -> Result<(), EngineError> {
        let Some(ranges) = object.ranges.get() else {
            return Ok(());
        };
        let mut misplaced: Vec<Misplaced> = Vec::new();
        for (aeu, owner) in (0..).map(AeuId).zip(&mut *owners) {
            if let Some(partition) = owner.partitions.get_mut(&object.id) {
                let of_others = partition.misplaced(&ranges);
                self.at(aeu, object.id, |home| {
                    partition.give_misplaced(&of_others, through, home)
                })?;
                misplaced.extend(of_others);
            }
        }
        for (aeu, owner) in (0..).map(AeuId).zip(&mut *owners) {
            let own = misplaced.iter().filter(|one| one.owner == aeu);
            let own: Vec<&Misplaced> = own.collect();
            if own.is_empty() {
                continue;
            }
            self.at(aeu, object.id, |home| {
                let log = logs.get(aeu.index());
                let new = || Partition::new(Arc::clone(object), aeu, log, home);
                let partition = owner.partitions.entry(object.id).or_insert_with(new);
                partition.take_misplaced(&own, through, home)
            })?;
        }
        Ok(())
    }

    /// Leaves out garbage and builds the indexes of keys, those of different owners side by side.
    fn index(&self, owners: &mut [RestoredOwner], through: Timestamp) -> Result<(), EngineError> {
        thread::scope(|scope| {
            let built: Vec<_> = (0..)
                .map(AeuId)
                .zip(owners)
                .map(|(aeu, owner)| {
                    scope.spawn(move || {
                        (owner.partitions.iter_mut()).try_for_each(|(id, partition)| {
                            self.at(aeu, *id, |home| partition.index_restored(through, home))
                        })
                    })
                })
                .collect();
            built.into_iter().try_for_each(|built| match built.join() {
                Ok(built) => built,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Gives dictionaries to the owners that number them.
    fn number(
        &self,
        object: &DataObject,
        plain: &[bool],
        owners: &mut [RestoredOwner],
    ) -> Result<(), EngineError> {
        let rows = object.total_rows();
        for (column, dictionary) in object.dictionaries().into_iter().enumerate() {
            let closed = plain[column];
            if closed {
                object.set_plain(column);
            }
            let is_known = |one: &Dictionary| closed || !one.is_empty();
            let Some(dictionary) = dictionary.filter(is_known) else {
                continue;
            };
            let numbering = Numbering::restored(dictionary, rows, closed, self.memory.budget());
            let numbering = numbering.map_err(|denied| EngineError::OutOfMemory {
                table: object.name.clone(),
                reason: denied.to_string(),
            })?;
            let owner = object.dictionary_owner(column);
            (owners[owner.index()].numberings).insert((object.id, column), numbering);
        }
        Ok(())
    }
}
