//! Looking at what a database says, without having it in memory.
//!
//! ```text
//! groups ──▶ objects · dictionaries · definitions · which rows are in which segment      these stay in memory
//!        └─▶ columns in records ──▶ read, and forgotten
//! chunks ──▶ columns in files ────▶ read, and forgotten, one chunk after the other
//! ```
//!
//! Everything is compared that recovery relies on, but for keys: that no two rows have the same one is found out when
//! the database is opened.
//!
//! Behind damage nobody knows what is missing. So objects, strings and rows that are not there are no findings of their
//! own.

pub(super) mod living;

use super::columns::{Codes, ColumnsOf};
use super::objects::RecoveredObject;
use super::{Wrong, records_of};
use crate::durability::open_error;
use crate::durability::records::{Columns, Record, StoredChunk, StoredCommit};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use eris_column::{FormReader, ObjectMemory};
use eris_disk::{Disk, RealDisk};
use eris_home::{Definition, DefinitionChange};
use eris_log::{Checked, ChunkInfo, Counted, Finding, Group, Look, Origin, Part, Remains};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId, SegmentId, Timestamp};
use living::Living;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was found in the directory of a database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseCheck {
    /// The snapshot: its file, and groups that are whole.
    pub snapshot: Counted,
    /// The log: its files, and groups that are whole.
    pub log: Counted,
    /// Chunk files, and chunks that are referred to and whole.
    pub chunks: Counted,
    /// Chunks that nothing refers to, and the bytes of these. They are removed by the next start or checkpoint.
    pub unused: Counted,
    /// Tables. The keys of their UNIQUE constraints are objects, too, and do not count.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
    /// All damage.
    pub findings: Vec<DatabaseFinding>,
    /// What is no damage, but of no use: the next start removes it, or cuts it off.
    pub remarks: Vec<DatabaseFinding>,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFinding {
    /// The file, or the directory of a file whose name nobody knows.
    pub path: PathBuf,
    /// Where, in bytes from the file's beginning.
    pub offset: u64,
    /// What.
    pub what: String,
    /// The table that is hit, if it is one that is known.
    pub table: Option<String>,
    /// The commits that are hit: the first one, and the last one if that is known.
    pub commits: Option<(Timestamp, Option<Timestamp>)>,
}

/// Looks at all of a database, and changes nothing. It goes on behind damage. `progress` is told how many bytes of how
/// many were looked at.
///
/// Beside a chunk, dictionaries are in memory, and which rows there are.
///
/// # Errors
/// There is no database in the directory, or another process has it open.
pub fn check_database(
    directory: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatabaseCheck, EngineError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory));
    check(&disk, progress)
}

/// The same on any disk.
pub(crate) fn check(
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatabaseCheck, EngineError> {
    let mut looking = Looking::new(progress)?;
    let checked = eris_log::check(disk, &mut looking).map_err(|error| open_error(&error))?;
    Ok(looking.checked(disk.root(), checked))
}

/// The same of what is left of a database.
pub(super) fn check_remains(
    remains: &Remains,
    root: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatabaseCheck, EngineError> {
    let mut looking = Looking::new(progress)?;
    let checked = remains
        .check(&mut looking)
        .map_err(|error| open_error(&error))?;
    Ok(looking.checked(root, checked))
}

/// What is known so far.
struct Looking<'a> {
    memory: Memory,
    objects: BTreeMap<ObjectId, Known>,
    definitions: BTreeMap<String, Definition>,
    /// Who refers to chunks, by their numbers.
    chunks: BTreeMap<u64, Vec<Reference>>,
    /// The snapshot has all up to here.
    snapshot: Timestamp,
    /// Whether something is missing.
    is_partial: bool,
    any_codes: Codes,
    progress: &'a mut dyn FnMut(u64, u64),
}

/// An object, and which rows it has in segments.
struct Known {
    object: RecoveredObject,
    segments: HashMap<SegmentId, Living>,
}

/// Who refers to a chunk.
struct Reference {
    object: ObjectId,
    rows: usize,
    /// `None`: the snapshot.
    commit: Option<Timestamp>,
}

impl Look for Looking<'_> {
    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        if origin == Origin::Snapshot {
            self.snapshot = group.through;
        }
        let all = records_of(origin, group).map_err(|wrong| {
            self.is_partial = true;
            said(&wrong)
        })?;
        let mut wrong = Vec::new();
        for (at, record) in all {
            if let Err(one) = self.record(at, record) {
                wrong.push(said(&one));
            }
        }
        match wrong.len() {
            0 => Ok(()),
            1 => Err(wrong.swap_remove(0)),
            more => Err(format!("{}, and {} more", wrong[0], more - 1)),
        }
    }

    fn lost(&mut self, _: Origin) {
        self.is_partial = true;
    }

    fn referred_to(&mut self) -> BTreeSet<u64> {
        self.chunks.keys().copied().collect()
    }

    fn form(&mut self, number: u64, info: ChunkInfo, form: &[u8]) -> Result<(), String> {
        for reference in &self.chunks[&number] {
            let Reference { object, rows, .. } = reference;
            if info.rows != *rows as u64 {
                return Err(format!("it has {} rows, not {rows}", info.rows));
            }
            // A chunk of an object that was dropped is read by nobody.
            if let Some(known) = self.objects.get(object) {
                self.read(known, *rows, form).map_err(|one| said(&one))?;
            }
        }
        Ok(())
    }

    fn passed(&mut self, done: u64, total: u64) {
        (self.progress)(done, total);
    }
}

/// What is wrong.
fn said(wrong: &Wrong) -> String {
    match wrong {
        Wrong::Damaged(reason) => reason.clone(),
        Wrong::Chunk(error) => error.to_string(),
        Wrong::Failed(error) => error.to_string(),
    }
}

impl<'a> Looking<'a> {
    fn new(progress: &'a mut dyn FnMut(u64, u64)) -> Result<Self, EngineError> {
        let start = |error: eris_numa::MemoryError| EngineError::Start(error.to_string());
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, None).map_err(start)?;
        Ok(Looking {
            memory,
            objects: BTreeMap::new(),
            definitions: BTreeMap::new(),
            chunks: BTreeMap::new(),
            snapshot: Timestamp::ZERO,
            is_partial: false,
            any_codes: Codes::default(),
            progress,
        })
    }

    fn record(&mut self, at: Timestamp, record: Record<'_>) -> Result<(), Wrong> {
        match record {
            Record::Object(stored) => {
                if self.objects.contains_key(&stored.id) {
                    return Ok(());
                }
                let object = DataObject::new(
                    stored.id,
                    &stored.name,
                    stored.schema,
                    stored.partitioning,
                    &stored.key,
                    1,
                );
                let object = object.map_err(|error| Wrong::Damaged(error.to_string()))?;
                let known = Known {
                    object: RecoveredObject::new(object),
                    segments: HashMap::new(),
                };
                self.objects.insert(stored.id, known);
            }
            Record::Dropped(object) => drop(self.objects.remove(&object)),
            Record::Strings(strings) => {
                if let Some(known) = self.objects.get_mut(&strings.object) {
                    let added = known.object.add_strings(&strings);
                    return if self.is_partial { Ok(()) } else { added };
                }
            }
            Record::Ranges(..) => {}
            Record::Rows(commit) if at > self.snapshot => return self.commit(at, &commit),
            Record::Rows(_) => {}
            Record::Chunk(chunk) => return self.chunk(&chunk),
            Record::Definition(DefinitionChange::Is(definition)) => {
                self.definitions.insert(definition.name.clone(), definition);
            }
            Record::Definition(DefinitionChange::IsGone(name)) => {
                self.definitions.remove(&name);
            }
        }
        Ok(())
    }

    fn commit(&mut self, at: Timestamp, commit: &StoredCommit<'_>) -> Result<(), Wrong> {
        for (_, rows, columns) in &commit.added {
            self.columns(commit.object, *rows, *columns, Some(at))?;
        }
        let Some(known) = self.objects.get_mut(&commit.object) else {
            return Ok(());
        };
        let columns = known.object.columns();
        for (first, rows, _) in &commit.added {
            let living = known.segments.entry(first.segment()).or_default();
            let added = living.add(first.0 as u32, *rows);
            let what = || format!("rows of segment {} come twice", first.segment());
            added.ok_or_else(|| columns.wrong(&what()))?;
        }
        for (first, rows) in &commit.deleted {
            let living = known.segments.entry(first.segment()).or_default();
            let removed = living.remove(first.0 as u32, *rows);
            if removed.is_none() && !self.is_partial {
                let segment = first.segment();
                let what = format!("rows are deleted that segment {segment} does not have");
                return Err(columns.wrong(&what));
            }
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: &StoredChunk<'_>) -> Result<(), Wrong> {
        let rows = chunk.ids.iter().map(|(_, rows)| *rows as usize).sum();
        self.columns(chunk.object, rows, chunk.columns, None)?;
        let Some(known) = self.objects.get_mut(&chunk.object) else {
            let what = format!("a chunk of {}, which is not there", chunk.object);
            return match self.is_partial {
                true => Ok(()),
                false => Err(Wrong::Damaged(what)),
            };
        };
        let columns = known.object.columns();
        let living = known.segments.entry(chunk.segment).or_default();
        for (first, rows) in seen(&chunk.ids, &chunk.unseen) {
            let added = living.add(first, rows);
            let what = || format!("rows of segment {} come twice", chunk.segment);
            added.ok_or_else(|| columns.wrong(&what()))?;
        }
        let last = chunk.unseen.last();
        let end = last.map_or(0, |(first, count)| *first as usize + *count as usize);
        match end <= rows {
            true => Ok(()),
            false => Err(columns.wrong("a row is deleted that is in no chunk")),
        }
    }

    /// Somebody refers to columns. What is in a chunk file is looked at later.
    fn columns(
        &mut self,
        object: ObjectId,
        rows: usize,
        columns: Columns<'_>,
        commit: Option<Timestamp>,
    ) -> Result<(), Wrong> {
        match columns {
            Columns::ChunkFile(number) => {
                let references = self.chunks.entry(number).or_default();
                references.push(Reference {
                    object,
                    rows,
                    commit,
                });
                Ok(())
            }
            Columns::Here(form) => match self.objects.get(&object) {
                Some(known) => self.read(known, rows, form),
                None => Ok(()),
            },
        }
    }

    fn read(&self, known: &Known, rows: usize, form: &[u8]) -> Result<(), Wrong> {
        let columns = ColumnsOf {
            // Strings may be missing.
            codes: self.is_partial.then_some(&self.any_codes),
            ..known.object.columns()
        };
        let home = ObjectMemory {
            memory: &self.memory.node(NodeId(0)),
            object: columns.object.id,
        };
        let read = columns.read(rows, FormReader::copying(form), home);
        read.map(drop)
    }

    /// What was found, with the tables that are hit.
    fn checked(self, directory: &Path, checked: Checked) -> DatabaseCheck {
        let told = |findings: Vec<Finding>| -> Vec<DatabaseFinding> {
            findings.into_iter().map(|one| self.told(one)).collect()
        };
        let mut findings = told(checked.findings);
        let remarks = told(checked.remarks);
        if !self.is_partial {
            findings.extend(self.definitions.values().flat_map(|definition| {
                let objects = definition.objects.iter();
                let missing = objects.filter(|object| !self.objects.contains_key(object));
                missing.map(|object| DatabaseFinding {
                    path: directory.to_owned(),
                    offset: 0,
                    what: format!("{} needs {object}, which is not there", definition.name),
                    table: None,
                    commits: None,
                })
            }));
        }
        // A definition leads to its table first, and then to keys of that.
        let definitions = self.definitions.values();
        let keys = definitions.flat_map(|definition| definition.objects.iter().skip(1));
        let keys: BTreeSet<&ObjectId> = keys.collect();
        let objects = self.objects.iter();
        let tables = objects.filter(|(object, _)| !keys.contains(object));
        let tables: Vec<&Known> = tables.map(|(_, known)| known).collect();
        let segments = tables.iter().flat_map(|known| known.segments.values());
        DatabaseCheck {
            snapshot: checked.snapshot,
            log: checked.log,
            chunks: checked.chunks,
            unused: checked.unused,
            tables: tables.len() as u64,
            rows: segments.map(Living::rows).sum(),
            findings,
            remarks,
        }
    }

    fn told(&self, finding: Finding) -> DatabaseFinding {
        let (mut table, mut commits) = (None, None);
        match finding.part {
            Part::Unknown | Part::Snapshot => {}
            Part::Commits { behind, up_to } => commits = Some((Timestamp(behind.0 + 1), up_to)),
            Part::Chunk(number) => {
                let references = self.chunks.get(&number).into_iter().flatten();
                for reference in references {
                    let known = self.objects.get(&reference.object);
                    table = table.or(known.map(|known| known.object.object.name.to_string()));
                    commits = commits.or(reference.commit.map(|commit| (commit, Some(commit))));
                }
            }
        }
        DatabaseFinding {
            path: finding.path,
            offset: finding.offset,
            what: finding.what,
            table,
            commits,
        }
    }
}

/// The rows of a chunk that are seen, as runs of numbers: those in `ids`, but for the places in `unseen`.
pub(super) fn seen<'a>(
    ids: &'a [(u32, u32)],
    unseen: &'a [(u32, u32)],
) -> impl Iterator<Item = (u32, usize)> + 'a {
    let (mut place, mut next) = (0u64, 0);
    ids.iter().flat_map(move |(first, rows)| {
        let (from, to) = (place, place + u64::from(*rows));
        place = to;
        let mut runs = Vec::new();
        let mut at = from;
        while at < to {
            let Some((hidden, count)) = unseen.get(next) else {
                runs.push((at, to));
                break;
            };
            let (hidden, end) = (u64::from(*hidden), u64::from(*hidden) + u64::from(*count));
            if hidden > at {
                runs.push((at, hidden.min(to)));
            }
            at = end.max(at).min(to);
            if end <= to {
                next += 1;
            }
            if hidden >= to {
                break;
            }
        }
        let number = move |at: u64| first + (at - from) as u32;
        runs.into_iter()
            .map(move |(at, end)| (number(at), (end - at) as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs with gaps of at least one, each from what is behind the one before.
    fn runs(parts: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let mut next = 0;
        let run = |(gap, count): &(u32, u32)| {
            let first = next + gap;
            next = first + count;
            (first, *count)
        };
        parts.iter().map(run).collect()
    }

    proptest! {
        #[test]
        fn rows_that_are_seen_are_those_that_are_not_unseen(
            ids in prop::collection::vec((1u32..9, 1u32..9), 0..9), unseen in prop::collection::vec((1u32..9, 1u32..9), 0..9),
        ) {
            let (ids, unseen) = (runs(&ids), runs(&unseen));
            let numbers = ids.iter().flat_map(|(first, rows)| *first..first + rows);
            let is_unseen = |place: u32| unseen.iter().any(|(first, count)| (*first..first + count).contains(&place));
            let expected = numbers.zip(0..).filter(|(_, place)| !is_unseen(*place));
            let expected: Vec<u32> = expected.map(|(number, _)| number).collect();
            let found = seen(&ids, &unseen).flat_map(|(first, rows)| first..first + rows as u32);
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
