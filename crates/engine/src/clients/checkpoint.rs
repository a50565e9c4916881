//! Checkpoints: a snapshot of all that is durable takes the place of the log before it.
//!
//! ```text
//! log    ─────────────────┤ the log goes on in a new file ───────────────────────────▶
//! reader                  └ holds t9 ─▶ owners show what t9 sees ─▶ snapshot file      chunk files: what none has yet
//!                                                                         └─▶ manifest: t9, and the log from there on
//! ```
//!
//! Nobody waits for it. Owners answer with their chunks, which never change, and go on; the snapshot is written by
//! whoever asked for it. Columns that are in a chunk file are not written again.
//!
//! The new file of the log has all commits behind t9, and perhaps some before, which whoever reads it leaves out. What
//! belongs to no commit may be in both: strings, objects, ranges, definitions. To do these again changes nothing.

use super::engine::Engine;
use crate::durability::records::{self, Columns, StoredChunk};
use crate::durability::{Chunks, Durability, Log, OpenLog, checkpoint_error};
use crate::error::{EngineError, store_error};
use crate::held::segment_view::FrozenSegment;
use crate::object::data_object::DataObject;
use crate::protocol::objects::Freeze;
use eris_column::{ObjectMemory, StoredColumns};
use eris_home::{Checkpoint, DefinitionChange};
use eris_log::{LogError, SnapshotStart, SnapshotWriter};
use eris_store::{SnapshotChunk, SnapshotChunks, StoreError};
use eris_types::{AeuId, SegmentId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// So many strings of a dictionary are in a record.
const STRINGS: usize = 1 << 14;

/// A snapshot that is being written.
struct Writing<'a> {
    log: &'a Log,
    writer: SnapshotWriter,
    at: Timestamp,
    /// The chunks that it refers to.
    referred_to: BTreeSet<u64>,
    rows: u64,
    /// Bytes of columns that were in no chunk file.
    chunk_bytes: u64,
}

impl Engine {
    /// Makes a checkpoint. It blocks while files are written.
    ///
    /// # Errors
    /// The disk has no room, or has failed: the log stays as long as it was. An owner has panicked.
    pub(crate) async fn checkpoint(&self) -> Result<Checkpoint, EngineError> {
        let durability = self.shared().durability.as_ref();
        let durability = durability.expect("only a durable engine has a log");
        let open = durability.to_write(|| "a checkpoint".to_owned())?;
        let _one_at_a_time = open.checkpointing.lock().await;
        let begun = Instant::now();
        let made = self.try_checkpoint(durability, open, begun).await;
        made.inspect_err(|error| open.checkpoints.failed(error, begun.elapsed()))
    }

    async fn try_checkpoint(
        &self,
        durability: &Durability,
        open: &OpenLog,
        begun: Instant,
    ) -> Result<Checkpoint, EngineError> {
        let directory = open.directory()?;
        let failed = |error: LogError| checkpoint_error(&error);
        let before = open.requests.written();
        let start = open.requests.new_file().await?;
        // It is in the log up to there, so all that is left out of the new file is seen.
        let held = self.hold();
        let snapshot = SnapshotStart {
            number: directory.next_snapshot(),
            at: held.at(),
        };
        let database = directory.manifest().database;
        let disk = Arc::clone(directory.disk());
        let writer = SnapshotWriter::create(disk, database, snapshot).map_err(failed)?;
        let mut writing = Writing {
            log: &open.log,
            writer,
            at: held.at(),
            referred_to: BTreeSet::new(),
            rows: 0,
            chunk_bytes: 0,
        };
        for definition in durability.definitions() {
            let body = records::definition(&DefinitionChange::Is(definition));
            writing.push(&body)?;
        }
        for object in self.objects() {
            if object.is_durable && !object.is_dropped() {
                self.write_object(&object, &mut writing).await?;
            }
        }
        drop(held);
        let Writing {
            writer,
            referred_to,
            rows,
            chunk_bytes,
            ..
        } = writing;
        let chunks = open.log.chunks();
        let bytes = writer.finish().map_err(failed)?;
        chunks.writer.flush().map_err(failed)?;
        // What is newer than the snapshot, such as strings and definitions, may be in it before it is in the log.
        open.requests.flush().await?;
        let next_chunk = chunks.next_number();
        directory
            .begin_from(snapshot, start, next_chunk)
            .map_err(failed)?;
        open.requests.forget(before);
        let written = Checkpoint {
            at: snapshot.at,
            rows,
            bytes,
            chunk_bytes,
        };
        (open.checkpoints).made(snapshot.number, written, begun.elapsed());
        chunks.retain(&referred_to, snapshot.at).map_err(failed)?;
        Ok(written)
    }

    /// Writes what the snapshot sees of an object.
    async fn write_object(
        &self,
        object: &Arc<DataObject>,
        writing: &mut Writing<'_>,
    ) -> Result<(), EngineError> {
        let freeze = Freeze(writing.at);
        let frozen = self
            .ask(self.owners(), object.id, &object.name, freeze)
            .await?;
        writing.push(&records::object(&object.stored()))?;
        // Behind the answers of owners: all codes of their rows are known here.
        for (column, dictionary) in object.dictionaries().into_iter().enumerate() {
            let Some(dictionary) = dictionary else {
                continue;
            };
            let strings: Vec<&str> = dictionary.values().iter().flatten().collect();
            for (part, some) in strings.chunks(STRINGS).enumerate() {
                let some = some.iter().copied();
                writing.push(&records::strings(object.id, column, part * STRINGS, some))?;
            }
        }
        if let Some(ranges) = object.ranges.stored() {
            writing.push(&records::ranges(object.id, &ranges))?;
        }
        for (segment, (owner, chunks)) in
            by_segment(frozen.into_iter().flat_map(|all| all.0), writing.at)
        {
            for chunk in chunks.into_chunks() {
                let memory = self.memory().node(self.topology().node_of(owner));
                let home = ObjectMemory {
                    memory: &memory,
                    object: object.id,
                };
                writing.write_chunk(object, (owner, segment), &chunk, home)?;
            }
        }
        Ok(())
    }
}

/// The chunks of each segment, whichever owners have their rows, and one of these owners.
fn by_segment(
    frozen: impl Iterator<Item = FrozenSegment>,
    at: Timestamp,
) -> BTreeMap<SegmentId, (AeuId, SnapshotChunks)> {
    let mut all: BTreeMap<SegmentId, (AeuId, SnapshotChunks)> = BTreeMap::new();
    for segment in frozen {
        let none = || (segment.aeu, SnapshotChunks::default());
        let (_, chunks) = all.entry(segment.id).or_insert_with(none);
        let views = segment.chunks.into_iter();
        views.for_each(|view| chunks.add(view, at));
    }
    all
}

impl Writing<'_> {
    fn push(&mut self, body: &[u8]) -> Result<(), EngineError> {
        let pushed = self.writer.push(body);
        pushed.map_err(|error| checkpoint_error(&error))
    }

    fn write_chunk(
        &mut self,
        object: &DataObject,
        (owner, segment): (AeuId, SegmentId),
        seen: &SnapshotChunk,
        home: ObjectMemory<'_>,
    ) -> Result<(), EngineError> {
        let chunk = &seen.chunk;
        let number = chunk.number();
        let columns = || -> Result<StoredColumns, EngineError> {
            let columns = chunk.columns().iter().enumerate();
            let columns = columns.map(|(at, column)| {
                let column = column.unordered(home);
                let name = || object.schema.field(at).name().clone();
                column.map_err(|source| StoreError::Encode {
                    column: name(),
                    source,
                })
            });
            let columns: Result<Vec<_>, StoreError> = columns.collect();
            let columns = columns.map_err(|error| store_error(&object.name, &error))?;
            Ok(StoredColumns::new(columns))
        };
        let form;
        let columns = match number.get() {
            Some(number) => Columns::ChunkFile(number),
            None if number.is_open() => {
                let log = self.log;
                let (failed, columns) = (|| log.failed(), columns()?);
                self.chunk_bytes += columns.bytes() as u64;
                let written = Chunks::write(
                    log.chunks(),
                    object.id,
                    &object.name,
                    chunk.rows(),
                    columns,
                    failed,
                )?;
                number.set(written);
                Columns::ChunkFile(written)
            }
            None => {
                form = columns()?.with_pieces(|pieces| pieces.concat());
                Columns::Here(&form)
            }
        };
        if let Columns::ChunkFile(number) = columns {
            self.referred_to.insert(number);
        }
        let ids = seen.ids().into_iter();
        let ids: Vec<(u32, u32)> = ids
            .map(|(first, rows)| (first.0 as u32, rows as u32))
            .collect();
        let unseen = seen.deleted().into_iter();
        let unseen: Vec<(u32, u32)> = unseen
            .map(|(first, rows)| (first as u32, rows as u32))
            .collect();
        let hidden: u32 = unseen.iter().map(|(_, rows)| rows).sum();
        self.rows += chunk.rows() as u64 - u64::from(hidden);
        let body = records::chunk(&StoredChunk {
            object: object.id,
            owner,
            segment,
            ids,
            unseen,
            columns,
        });
        self.push(&body)
    }
}
