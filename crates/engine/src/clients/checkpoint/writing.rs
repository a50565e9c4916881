//! A snapshot file that is being written, object by object.
//!
//! ```text
//! definitions │ object ▪ strings of its columns ▪ ranges ▪ chunk, chunk, … │ next object … │ objects, definitions
//!                                                           └ many rows: in a chunk file, few: here
//! ```
//!
//! Without what is said of it, no row can be read. So definitions and objects are written once more, in groups of their
//! own: if one group is damaged, they are still there. Whoever reads them twice knows them already.

use crate::durability::records::{self, Columns, StoredChunk};
use crate::durability::{Chunks, checkpoint_error};
use crate::error::{EngineError, store_error};
use crate::held::segment_view::FrozenSegment;
use crate::object::data_object::DataObject;
use crate::sequencer::Sequencer;
use eris_column::{ObjectMemory, StoredColumns};
use eris_home::{Definition, DefinitionChange};
use eris_log::SnapshotWriter;
use eris_numa::{Memory, Topology};
use eris_store::{Chunk, SnapshotChunk, SnapshotChunks, StoreError};
use eris_types::{AeuId, SegmentId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::yield_now;

/// So many strings of a dictionary are in a record.
const STRINGS: usize = 1 << 14;

/// What a snapshot sees of an object.
pub(super) struct FrozenObject {
    pub object: Arc<DataObject>,
    pub segments: Vec<FrozenSegment>,
}

/// Which chunk files a snapshot refers to.
pub(super) enum Files<'a> {
    /// The database's own, as long as its log goes on: chunks that are there are not written again.
    Own(&'a Arc<Chunks>, &'a Sequencer),
    /// Those of another directory, which have none yet.
    Other(&'a Arc<Chunks>),
}

/// A snapshot that is being written.
pub(super) struct Writing<'a> {
    pub writer: SnapshotWriter,
    pub at: Timestamp,
    pub files: Files<'a>,
    pub memory: &'a Memory,
    pub topology: &'a Topology,
    pub written: Written,
}

/// What was written so far.
#[derive(Default)]
pub(super) struct Written {
    /// The chunks that it refers to.
    pub referred_to: BTreeSet<u64>,
    pub rows: u64,
    /// Bytes of the snapshot file.
    pub bytes: u64,
    /// Bytes of columns that were in no chunk file.
    pub chunk_bytes: u64,
}

impl Writing<'_> {
    /// Writes definitions, and what the snapshot sees of objects. All of it is on the medium when this returns, with
    /// the chunks that it refers to. It can be given up behind each chunk: then no snapshot file is left.
    ///
    /// # Errors
    /// The disk has no room, or has failed. No snapshot file is left.
    pub async fn write(
        mut self,
        definitions: Vec<Definition>,
        objects: Vec<FrozenObject>,
    ) -> Result<Written, EngineError> {
        let failed = |error| checkpoint_error(&error);
        let definitions = definitions.into_iter().map(DefinitionChange::Is);
        let definitions: Vec<_> = definitions.map(|is| records::definition(&is)).collect();
        definitions.iter().try_for_each(|body| self.push(body))?;
        let mut again = Vec::with_capacity(objects.len() + definitions.len());
        for frozen in objects {
            again.push(records::object(&frozen.object.stored()));
            self.write_object(frozen).await?;
        }
        self.writer.end_group().map_err(failed)?;
        again.extend(definitions);
        again.iter().try_for_each(|body| self.push(body))?;
        self.written.bytes = self.writer.finish().map_err(failed)?;
        let (Files::Own(chunks, _) | Files::Other(chunks)) = self.files;
        chunks.writer.flush().map_err(failed)?;
        Ok(self.written)
    }

    /// Writes what the snapshot sees of an object.
    async fn write_object(&mut self, frozen: FrozenObject) -> Result<(), EngineError> {
        let FrozenObject { object, segments } = frozen;
        self.push(&records::object(&object.stored()))?;
        // Read behind the answers of owners: all codes of their rows are known here.
        for (column, dictionary) in object.dictionaries().into_iter().enumerate() {
            let Some(dictionary) = dictionary else {
                continue;
            };
            let strings: Vec<&str> = dictionary.values().iter().flatten().collect();
            for (part, some) in strings.chunks(STRINGS).enumerate() {
                self.check_log()?;
                let some = some.iter().copied();
                self.push(&records::strings(object.id, column, part * STRINGS, some))?;
            }
        }
        if let Some(ranges) = object.ranges.stored() {
            self.push(&records::ranges(object.id, &ranges))?;
        }
        let segments = by_segment(segments, self.at).into_iter();
        let chunks = segments.flat_map(|(segment, (owner, chunks))| {
            let chunks = chunks.into_chunks();
            chunks.map(move |chunk| (owner, segment, chunk))
        });
        for (owner, segment, chunk) in chunks.collect::<Vec<_>>() {
            self.check_log()?;
            self.write_chunk(&object, (owner, segment), &chunk)?;
            yield_now().await;
        }
        Ok(())
    }

    /// Nobody begins from a snapshot when the log has ended. And whoever closes the database waits for this.
    fn check_log(&self) -> Result<(), EngineError> {
        match self.files {
            Files::Own(_, sequencer) => sequencer.failure().map_or(Ok(()), |reason| {
                Err(EngineError::LogFailed {
                    reason: reason.to_string(),
                })
            }),
            Files::Other(_) => Ok(()),
        }
    }

    fn write_chunk(
        &mut self,
        object: &DataObject,
        (owner, segment): (AeuId, SegmentId),
        seen: &SnapshotChunk,
    ) -> Result<(), EngineError> {
        let form;
        let columns = match self.chunk_file(object, owner, &seen.chunk)? {
            Some(number) => {
                self.written.referred_to.insert(number);
                Columns::ChunkFile(number)
            }
            None => {
                let stored = self.stored(object, owner, &seen.chunk)?;
                form = stored.with_pieces(|pieces| pieces.concat());
                Columns::Here(&form)
            }
        };
        let ids = seen.ids().into_iter();
        let ids: Vec<(u32, u32)> = ids
            .map(|(first, rows)| (first.0 as u32, rows as u32))
            .collect();
        let unseen = seen.deleted().into_iter();
        let unseen: Vec<(u32, u32)> = unseen
            .map(|(first, rows)| (first as u32, rows as u32))
            .collect();
        let hidden: u32 = unseen.iter().map(|(_, rows)| rows).sum();
        self.written.rows += seen.chunk.rows() as u64 - u64::from(hidden);
        self.push(&records::chunk(&StoredChunk {
            object: object.id,
            owner,
            segment,
            ids,
            unseen,
            columns,
        }))
    }

    /// The number of a chunk in the chunk files; it is written if it is not there. `None`: it has few rows.
    fn chunk_file(
        &mut self,
        object: &DataObject,
        owner: AeuId,
        chunk: &Chunk,
    ) -> Result<Option<u64>, EngineError> {
        let number = chunk.number();
        let (files, is_own) = match self.files {
            Files::Own(files, _) => (files, true),
            Files::Other(files) => (files, false),
        };
        if !number.is_open() {
            return Ok(None);
        }
        if let (true, Some(number)) = (is_own, number.get()) {
            return Ok(Some(number));
        }
        let columns = self.stored(object, owner, chunk)?;
        self.written.chunk_bytes += columns.bytes() as u64;
        let written = files.write(object.id, &object.name, chunk.rows(), columns)?;
        let number_there = written.number;
        if is_own {
            number.set(number_there, Some(Arc::new(written)));
        }
        Ok(Some(number_there))
    }

    fn stored(
        &self,
        object: &DataObject,
        owner: AeuId,
        chunk: &Chunk,
    ) -> Result<StoredColumns, EngineError> {
        let memory = self.memory.node(self.topology.node_of(owner));
        let home = ObjectMemory {
            memory: &memory,
            object: object.id,
        };
        let columns = chunk.columns().iter().enumerate();
        let columns = columns.map(|(at, column)| {
            let column = column.unordered(home);
            column.map_err(|source| StoreError::Encode {
                column: object.schema.field(at).name().clone(),
                source,
            })
        });
        let columns: Result<Vec<_>, StoreError> = columns.collect();
        let columns = columns.map_err(|error| store_error(&object.name, &error))?;
        Ok(StoredColumns::new(columns))
    }

    fn push(&mut self, body: &[u8]) -> Result<(), EngineError> {
        let pushed = self.writer.push(body);
        pushed.map_err(|error| checkpoint_error(&error))
    }
}

/// The chunks of each segment, whichever owners have their rows, and one of these owners.
fn by_segment(
    frozen: Vec<FrozenSegment>,
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
