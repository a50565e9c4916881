//! Salvage: a recovery that leaves out what is damaged, and says what that was.
//!
//! ```text
//! groups, the first time    objects · strings with their codes · ranges · definitions      wherever they are
//! groups, once more         rows ─ of an object that is lost, of a chunk that is lost,
//!                                  with a string that is lost ─────────────────────────▶ left out, and counted
//! all rows                  two with one key ─ the older one ──────────────────────────▶ left out, and counted
//! ```
//!
//! Strings that are left get new codes, one behind the other. So a row whose string is lost cannot come back: nothing
//! stands in the place of that string.
//!
//! Whole rows come first, whole statements second: of a statement of which some rows are lost, the others are kept.
//!
//! Commits up to the snapshot's timestamp are in the snapshot, as ever. So are definitions, as long as those of the
//! snapshot are whole: what a group before that says of them may be old.

mod gathered;
mod keys;
mod uniques;

use super::check::{check_remains, seen};
use super::columns::Codes;
use super::objects::RecoveredObject;
use super::replay::{LostPiece, Machine, Queued};
use super::{DatabaseCheck, Recovery, Restored, in_order};
use crate::durability::open_error;
use crate::durability::records::{
    self, Record, StoredChunk, StoredCommit, StoredObject, StoredRanges,
};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use eris_disk::Disk;
use eris_home::Definition;
use eris_log::{Counted, Group, Look, Origin, Remains};
use eris_numa::{Memory, Topology};
use eris_types::{ObjectId, Timestamp};
use gathered::{Gathered, Strings};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// By a definition, the columns of its table that each of its other objects has: those of its UNIQUE constraints and
/// indexes, in the order of the objects. `None`: it is of no table, or cannot be read.
pub(crate) type UniqueColumns<'a> = &'a dyn Fn(&Definition) -> Option<Vec<Vec<usize>>>;

/// What was salvaged of a database, and what was not.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSalvage {
    /// What a check has found.
    pub check: DatabaseCheck,
    /// Whether it is only guessed which snapshot and log the database consists of: its manifest is damaged or missing.
    pub is_guessed: bool,
    /// Rows that are lost.
    pub lost_rows: Vec<LostRows>,
    /// Whether there may have been definitions that nobody knows.
    pub may_have_lost_definitions: bool,
    /// If groups are lost: chunks that no other group names, and their bytes. Nobody knows which of their rows were
    /// deleted.
    pub lost_chunks: Counted,
}

/// Rows of a table that are lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRows {
    /// The table; as it was called when it was made, if nothing else is known. `None`: nobody knows it.
    pub table: Option<String>,
    /// Its data object.
    pub object: ObjectId,
    /// How many. Rows that were deleted later are not counted.
    pub rows: u64,
    /// The first commit and the last one that wrote them. `None`: the snapshot has them.
    pub commits: Option<(Timestamp, Timestamp)>,
    /// Why.
    pub why: String,
}

impl LostRows {
    /// Another commit has written some of them.
    fn extend_to(&mut self, commit: Option<Timestamp>) {
        if let (Some(at), Some((first, last))) = (commit, &mut self.commits) {
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    }
}

impl DatabaseSalvage {
    /// Whether nothing is damaged or lost.
    pub fn is_whole(&self) -> bool {
        self.check.findings.is_empty() && self.lost_rows.is_empty()
    }
}

/// A salvage that is under way.
pub(crate) struct Salvage {
    recovery: Recovery,
    /// Dropped objects, of which nothing is lost.
    dropped: BTreeSet<ObjectId>,
    /// Rows of objects that nobody knows.
    unknown: BTreeMap<(ObjectId, bool), LostRows>,
    /// What ends the salvage.
    failed: Option<EngineError>,
    salvaged: DatabaseSalvage,
}

impl Salvage {
    /// Reads what is left of the database on a disk, with so many threads. `progress` is told how many bytes of how
    /// many were looked at.
    ///
    /// # Errors
    /// There is no database, a later version has written it, another process writes it, or what is left is larger than
    /// the memory.
    pub fn read(
        disk: Arc<dyn Disk>,
        topology: &Arc<Topology>,
        memory: &Memory,
        threads: usize,
        uniques: UniqueColumns<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let told = |error| open_error(&error);
        let remains = Remains::open(Arc::clone(&disk)).map_err(told)?;
        let check = check_remains(&remains, disk.root(), progress)?;
        let mut gathered = Gathered::default();
        remains.groups(&mut gathered).map_err(told)?;
        let files = remains.chunk_files().map_err(told)?;
        let machine = Machine::new(topology, memory, files, threads).leaving_out();
        let mut salvage = Salvage {
            recovery: Recovery {
                machine,
                objects: HashMap::new(),
                definitions: gathered.definitions,
                queued: Queued::new(memory),
                last_object: gathered.last_object,
                last_segment: gathered.last_segment,
                snapshot: gathered.snapshot,
                through: gathered.through,
                chunks: BTreeSet::new(),
                said: BTreeMap::new(),
            },
            dropped: gathered.dropped,
            unknown: BTreeMap::new(),
            failed: None,
            salvaged: DatabaseSalvage {
                lost_chunks: match gathered.has_lost_groups {
                    true => check.unused,
                    false => Counted::default(),
                },
                check,
                is_guessed: remains.is_guessed(),
                may_have_lost_definitions: gathered.may_have_lost_definitions,
                ..DatabaseSalvage::default()
            },
        };
        salvage.make_objects(gathered.objects, gathered.ranges, gathered.strings);
        remains.groups(&mut salvage).map_err(told)?;
        salvage.do_queued();
        if let Some(error) = salvage.failed.take() {
            return Err(error);
        }
        salvage.leave_out_duplicates()?;
        salvage.remake_uniques(uniques)?;
        salvage.count_lost();
        Ok(salvage)
    }

    fn make_objects(
        &mut self,
        objects: BTreeMap<ObjectId, StoredObject>,
        mut ranges: HashMap<ObjectId, StoredRanges>,
        mut strings: HashMap<(ObjectId, usize), Strings>,
    ) {
        let aeus = self.recovery.machine.topology.aeus().len();
        for (id, stored) in objects {
            let StoredObject {
                name,
                schema,
                partitioning,
                key,
                ..
            } = stored;
            // One that cannot be made is lost as if nobody knew it.
            let Ok(object) = DataObject::new(id, &name, schema, partitioning, &key, aeus) else {
                continue;
            };
            let mut object = RecoveredObject::new(object);
            object.ranges = ranges.remove(&id);
            object.codes = Some(Codes::default());
            for column in 0..object.dictionaries.len() {
                if let Some(strings) = strings.remove(&(id, column)) {
                    object.set_strings(column, strings);
                }
            }
            self.recovery.objects.insert(id, object);
        }
    }

    /// The newest commit.
    pub fn last(&self) -> Timestamp {
        self.recovery.through
    }

    /// What was salvaged, for an engine that writes nothing; and what was not.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn restore(self) -> Result<(Restored, DatabaseSalvage), EngineError> {
        Ok((self.recovery.restore(&[])?, self.salvaged))
    }

    fn do_queued(&mut self) {
        if self.failed.is_none() {
            self.failed = self.recovery.do_queued().err();
        }
    }

    /// Rows of an object that is not there.
    fn lose_unknown(&mut self, object: ObjectId, rows: u64, commit: Option<Timestamp>) {
        if rows == 0 || self.dropped.contains(&object) {
            return;
        }
        let key = (object, commit.is_some());
        let none = || LostRows {
            table: None,
            object,
            rows: 0,
            commits: commit.map(|at| (at, at)),
            why: "what its columns are is lost".to_owned(),
        };
        let lost = self.unknown.entry(key).or_insert_with(none);
        lost.rows += rows;
        lost.extend_to(commit);
    }

    fn commit(&mut self, group: (Origin, u64), at: Timestamp, commit: &StoredCommit<'_>) {
        if at <= self.recovery.snapshot {
            return;
        }
        match self.recovery.objects.get_mut(&commit.object) {
            // Rows that are to be deleted and are not there need not be.
            Some(object) => {
                let _ = object.queue_commit(group, at, commit, &mut self.recovery.queued);
            }
            None => {
                let rows = commit.added.iter().map(|(_, rows, _)| *rows as u64).sum();
                self.lose_unknown(commit.object, rows, Some(at));
            }
        }
    }

    fn chunk(&mut self, group: (Origin, u64), at: Timestamp, chunk: &StoredChunk<'_>) {
        let object = self.recovery.objects.get_mut(&chunk.object);
        let queued =
            object.map(|object| object.queue_chunk(group, at, chunk, &mut self.recovery.queued));
        if !matches!(queued, Some(Ok(()))) {
            let seen = seen(&chunk.ids, &chunk.unseen);
            let rows = seen.map(|(_, rows)| rows as u64).sum();
            self.lose_unknown(chunk.object, rows, None);
        }
    }

    /// Whether rows may be there that should not be, or the other way round.
    fn is_partial(&self) -> bool {
        !self.salvaged.is_whole()
            || (self.recovery.objects.values())
                .flat_map(|object| object.segments.values())
                .any(|segment| !segment.lost.is_empty())
    }

    /// Says which rows were left out. What is lost of constraints is not told, for it was made again from their tables'
    /// rows.
    fn count_lost(&mut self) {
        let definitions = self.recovery.definitions.values();
        let (mut tables, mut hidden) = (HashMap::new(), BTreeSet::new());
        for definition in definitions {
            let mut objects = definition.objects.iter().copied();
            let name = definition.name.split_once(' ').map(|(_, name)| name);
            tables.extend(objects.next().zip(name));
            hidden.extend(objects);
        }
        let objects = self.recovery.objects.iter();
        let mut objects: Vec<_> = objects.filter(|(id, _)| !hidden.contains(*id)).collect();
        objects.sort_by_key(|(id, _)| **id);
        let mut lost: Vec<LostRows> = Vec::new();
        lost.extend(objects.into_iter().flat_map(|(_, object)| object.lost()));
        // Of a dropped object there may be rows in a log that is whole: of statements that ended behind its end.
        let is_damaged = !self.salvaged.check.findings.is_empty();
        let unknown = std::mem::take(&mut self.unknown).into_iter();
        let unknown = unknown.filter(|((object, _), _)| is_damaged && !hidden.contains(object));
        lost.extend(unknown.map(|((object, _), lost)| LostRows {
            table: tables.get(&object).map(|name| (*name).to_owned()),
            ..lost
        }));
        self.salvaged.lost_rows = lost;
    }
}

impl RecoveredObject {
    /// The rows that were left out, by the reason, and whether the snapshot had them.
    fn lost(&self) -> impl Iterator<Item = LostRows> {
        let pieces = self.segments.values().flat_map(|segment| &segment.lost);
        let mut lost: BTreeMap<(&str, bool), LostRows> = BTreeMap::new();
        for LostPiece { commit, rows, why } in pieces {
            let none = || LostRows {
                table: Some(self.object.name.clone()),
                object: self.object.id,
                rows: 0,
                commits: commit.map(|at| (at, at)),
                why: why.clone(),
            };
            let one = lost.entry((why, commit.is_some())).or_insert_with(none);
            one.rows += rows.rows();
            one.extend_to(*commit);
        }
        lost.into_values().filter(|one| one.rows > 0)
    }
}

impl Look for Salvage {
    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        if self.failed.is_none() {
            self.failed = self.recovery.hold(group).err();
        }
        if self.failed.is_some() {
            return Ok(());
        }
        let place = (origin, group.number);
        for (at, record) in readable(origin, group) {
            match record {
                Record::Rows(commit) => self.commit(place, at, &commit),
                Record::Chunk(chunk) => self.chunk(place, at, &chunk),
                _ => {}
            }
        }
        self.failed = self.recovery.do_if_enough().err();
        Ok(())
    }
}

/// The records of a group that can be read, each with its commit, in the order in which they are heeded.
fn readable(origin: Origin, group: &Group) -> Vec<(Timestamp, Record<'_>)> {
    let whole = group.records().map_while(Result::ok);
    let all = whole.filter_map(|record| Some((record.at, records::read(record.body).ok()?)));
    in_order(origin, all.collect())
}
