//! What is to be done in segments: each for itself, so that threads work side by side.
//!
//! ```text
//! segment 3   t5: rows 0 … 9   t7: chunk 12   t9: row 4 is deleted   ──▶ thread 0
//! segment 8   t6: chunk 11     t9: rows 0 … 3                        ──▶ thread 1
//! ```
//!
//! Large chunks are read into the memory of their owner's node, where they stay. All bytes are checked: what was stored
//! may be damaged, and what is read by somebody later must not be.

mod leaving_out;

use super::Wrong;
use super::check::living::Living;
use super::columns::ColumnsOf;
use super::objects::RecoveredObject;
use crate::error::EngineError;
use eris_column::{ColumnChunk, FormReader, ObjectMemory};
use eris_log::{ChunkFiles, Origin};
use eris_numa::{Memory, OutOfMemory, Reservation, Topology};
use eris_store::{ReadColumns, Recoder, RestoredRows, Segment, StoreError};
use eris_types::{AeuId, NodeId, RowId, Timestamp};
use leaving_out::Piece;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

/// So much is done at a time: a thread has work, and what waits takes little memory.
const ENOUGH_BYTES: u64 = 32 << 20;
const ENOUGH_CHUNKS: usize = 512;
/// And of the memory that there may be no more than this part.
const ENOUGH_PART: u64 = 16;

/// How much waits.
pub(super) struct Queued {
    pub bytes: u64,
    pub chunks: usize,
    /// Memory for the groups that said so.
    groups: Reservation,
}

impl Queued {
    /// Nothing yet.
    pub fn new(memory: &Memory) -> Self {
        let none = memory.budget().try_reserve(0);
        Queued {
            bytes: 0,
            chunks: 0,
            groups: none.expect("who asks for nothing gets it"),
        }
    }

    /// Counts a group of so many bytes.
    ///
    /// # Errors
    /// There is no memory for it beside the others.
    pub fn hold(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        self.groups.try_grow(bytes)
    }

    /// Whether it should be done before more is read.
    pub fn is_enough(&self, memory: &Memory) -> bool {
        let bytes = ENOUGH_BYTES.min(memory.budget().limit() / ENOUGH_PART);
        self.bytes >= bytes || self.chunks >= ENOUGH_CHUNKS
    }
}

/// A segment, the AEU whose it is to be, and what is to be done in it.
pub(super) struct RecoveredSegment {
    pub owner: AeuId,
    pub segment: Segment,
    pub steps: Vec<Step>,
    /// What was left out.
    pub lost: Vec<LostPiece>,
}

/// Rows that were left out.
pub(super) struct LostPiece {
    /// The commit that has written them. `None`: the snapshot has them.
    pub commit: Option<Timestamp>,
    /// Their numbers. Those that were deleted later are not among them any more.
    pub rows: Living,
    pub why: String,
}

/// What a group says of a segment.
pub(super) struct Step {
    pub group: (Origin, u64),
    pub at: Timestamp,
    pub what: What,
}

pub(super) enum What {
    /// Rows are added, each piece with its first id and how many it has, and others deleted.
    Commit {
        added: Vec<(RowId, usize, Source)>,
        deleted: Vec<RowId>,
    },
    /// A chunk that a snapshot has.
    Chunk {
        rows: usize,
        source: Source,
        ids: Vec<(RowId, usize)>,
        unseen: Vec<(usize, usize)>,
    },
}

/// Where columns are read from.
pub(super) enum Source {
    Here(Box<[u8]>),
    ChunkFile(u64),
}

/// The columns of a chunk, as long as a segment has them.
type WeakColumns = Vec<Weak<ColumnChunk>>;

/// Who works, and where.
pub(super) struct Machine {
    pub topology: Arc<Topology>,
    pub memory: Memory,
    files: ChunkFiles,
    threads: usize,
    /// Whether rows that cannot be read are left out; otherwise they are an error.
    leaves_out: bool,
    /// Chunks that were read, by number and node: some are in several segments.
    read: Mutex<HashMap<(u64, NodeId), WeakColumns>>,
}

/// What is known while a segment is worked on.
struct Work<'a> {
    columns: ColumnsOf<'a>,
    segment: &'a mut RecoveredSegment,
}

impl Machine {
    pub fn new(
        topology: &Arc<Topology>,
        memory: &Memory,
        files: ChunkFiles,
        threads: usize,
    ) -> Self {
        Machine {
            topology: Arc::clone(topology),
            memory: memory.clone(),
            files,
            threads,
            leaves_out: false,
            read: Mutex::default(),
        }
    }

    /// The same, which leaves out rows that cannot be read, and notes that in their segments.
    pub fn leaving_out(self) -> Self {
        Machine {
            leaves_out: true,
            ..self
        }
    }

    /// Does all that is to be done in segments.
    pub fn work<'a>(
        &self,
        objects: impl Iterator<Item = &'a mut RecoveredObject>,
    ) -> Result<(), EngineError> {
        let works = objects.flat_map(|recovered| {
            let columns = ColumnsOf {
                object: &recovered.object,
                dictionaries: &recovered.dictionaries,
                plain: &recovered.plain,
                codes: recovered.codes.as_ref(),
            };
            let segments = recovered.segments.values_mut();
            let segments = segments.filter(|segment| !segment.steps.is_empty());
            segments.map(move |segment| Work { columns, segment })
        });
        let works: Vec<Work<'_>> = works.collect();
        let threads = self.threads.min(works.len());
        let works = Mutex::new(works.into_iter());
        let next = || works.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || -> Result<(), EngineError> {
            while let Some(mut work) = next() {
                self.steps(&mut work)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| match other.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            others.fold(own, |all, one| all.and(one))
        })
    }

    fn steps(&self, work: &mut Work<'_>) -> Result<(), EngineError> {
        for step in std::mem::take(&mut work.segment.steps) {
            let (origin, group) = step.group;
            let done = self.step(work, step.at, step.what);
            done.map_err(|wrong| wrong.of(origin, group))?;
        }
        Ok(())
    }

    fn step(&self, work: &mut Work<'_>, at: Timestamp, what: What) -> Result<(), Wrong> {
        let owner = AeuId(work.segment.owner.0 % self.topology.aeus().len() as u16);
        let memory = self.memory.node(self.topology.node_of(owner));
        let home = ObjectMemory {
            memory: &memory,
            object: work.columns.object.id,
        };
        let budget = memory.budget();
        match what {
            What::Chunk {
                rows,
                source,
                ids,
                unseen,
            } if self.leaves_out => {
                let piece = Piece {
                    rows,
                    source,
                    ids,
                    unseen,
                };
                self.restore_what_is_whole(work, None, at, piece, home)?;
            }
            What::Chunk {
                rows,
                source,
                ids,
                unseen,
            } => {
                let read = self.read_columns(work.columns, rows, &source, home)?;
                let restored = RestoredRows {
                    read,
                    ids,
                    deleted: unseen,
                };
                work.segment.segment.restore(restored, at, budget);
            }
            What::Commit { added, deleted } if self.leaves_out => {
                self.do_what_is_whole(work, at, added, deleted, home)?;
            }
            What::Commit { added, deleted } => {
                let segment = &work.segment.segment;
                if added
                    .first()
                    .is_some_and(|(first, ..)| *first < segment.next_id())
                {
                    let id = segment.id();
                    let what = format!("rows of segment {id} come twice");
                    return Err(work.columns.wrong(&what));
                }
                let added = added.iter().map(|(first, rows, source)| {
                    let read = self.read_columns(work.columns, *rows, source, home)?;
                    Ok((*first, read))
                });
                let added = added.collect::<Result<Vec<_>, Wrong>>()?;
                work.segment.segment.replay(added, deleted, at, budget);
            }
        }
        let segment = &mut work.segment.segment;
        if segment.needs_merge() {
            let merged = segment.merge(Recoder {
                horizon: at,
                schema: &work.columns.object.schema,
                known: work.columns.dictionaries,
                coding: &work.columns.coding(),
                home,
            });
            match merged {
                // It stays as it is, as when the rows came first.
                Ok(()) | Err(StoreError::OutOfMemory(_)) => {}
                Err(other) => return Err(work.columns.wrong(&other.to_string())),
            }
        }
        Ok(())
    }

    /// Reads the columns of some rows.
    fn read_columns(
        &self,
        of: ColumnsOf<'_>,
        rows: usize,
        source: &Source,
        home: ObjectMemory<'_>,
    ) -> Result<ReadColumns, Wrong> {
        let number = match source {
            Source::Here(form) => {
                let columns = of.read(rows, FormReader::copying(form), home)?;
                let number = None;
                return Ok(ReadColumns { columns, number });
            }
            Source::ChunkFile(number) => *number,
        };
        let place = (number, home.memory.node());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.get(&place).map(|columns| {
            let columns = columns.iter().map(Weak::upgrade);
            columns.collect::<Option<Vec<_>>>()
        });
        drop(read);
        let columns = match known.flatten() {
            Some(columns) => columns,
            None => {
                let columns = self.read_chunk(of, rows, number, home)?;
                let weak = columns.iter().map(Arc::downgrade).collect();
                read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                read.insert(place, weak);
                columns
            }
        };
        if columns.first().is_none_or(|column| column.rows() != rows) {
            return Err(of.wrong(&format!("chunk {number} has not {rows} rows")));
        }
        let number = Some(number);
        Ok(ReadColumns { columns, number })
    }

    fn read_chunk(
        &self,
        of: ColumnsOf<'_>,
        rows: usize,
        number: u64,
        home: ObjectMemory<'_>,
    ) -> Result<Vec<Arc<ColumnChunk>>, Wrong> {
        let info = self.files.info(number).map_err(Wrong::Chunk)?;
        if info.rows != rows as u64 {
            let what = format!("chunk {number} has {} rows, not {rows}", info.rows);
            return Err(of.wrong(&what));
        }
        let buffer = home.memory.allocate(home.object, info.bytes as usize);
        let mut buffer = buffer.map_err(|denied| of.out_of_memory(denied))?;
        let read = self.files.read(number, buffer.as_mut_slice());
        read.map_err(Wrong::Chunk)?;
        of.read(rows, FormReader::sharing(buffer), home)
    }
}
