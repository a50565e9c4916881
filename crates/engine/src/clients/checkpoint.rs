//! Checkpoints: a snapshot of all that is durable takes the place of the log before it.
//!
//! ```text
//! log    ─────────────────┤ the log goes on in a new file ───────────────────────────▶
//! reader                  └ holds t9 ─▶ owners show what t9 sees ─▶ snapshot file      chunk files: what none has yet
//!                                                                         └─▶ manifest: t9, and the log from there on
//! ```
//!
//! Nobody waits for it (docs/decisions/0037). Owners answer with their chunks, which never change, and go on; whoever
//! asked for it writes the snapshot. Columns that are in a chunk file are not written again.
//!
//! The new file of the log has all commits behind t9, and perhaps some before, which whoever reads it leaves out. What
//! belongs to no commit may be in both: strings, objects, ranges, definitions. To do these again changes nothing.

mod writing;

use super::engine::Engine;
use crate::durability::{
    Chunks, Durability, OpenLog, StorageSettings, any_database, checkpoint_error,
};
use crate::error::EngineError;
use crate::protocol::objects::Freeze;
use eris_disk::{Disk, Lock};
use eris_home::Checkpoint;
use eris_log::{Directory, LogError, OpenDatabase, SnapshotStart, SnapshotWriter};
use eris_types::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use writing::{Files, FrozenObject, Writing, Written};

/// So often a backup begins anew because something is being defined.
const TRIES: usize = 100;

fn failed(error: LogError) -> EngineError {
    checkpoint_error(&error)
}

impl Engine {
    /// Makes a checkpoint. It blocks while files are written.
    ///
    /// # Errors
    /// The disk has no room, or has failed: the log stays as long as it was. An owner has panicked.
    pub(crate) async fn checkpoint(&self) -> Result<Checkpoint, EngineError> {
        let durability = self.kept();
        let open = durability.to_write(|| "a checkpoint".to_owned())?;
        let _one_at_a_time = open.checkpointing.lock().await;
        let begun = Instant::now();
        let made = self.checkpoint_on_any_disk(durability, open, begun).await;
        made.inspect_err(|error| open.checkpoints.failed(error, begun.elapsed()))
    }

    /// Makes a checkpoint, and another try with the room that is kept for it if the disk has no other.
    async fn checkpoint_on_any_disk(
        &self,
        durability: &Durability,
        open: &OpenLog,
        begun: Instant,
    ) -> Result<Checkpoint, EngineError> {
        let directory = open.directory()?;
        let made = self.try_checkpoint(durability, open, begun).await;
        if matches!(made, Err(EngineError::DiskFull { .. }))
            && let Some(_in_use) = directory.use_ballast()
        {
            return self.try_checkpoint(durability, open, begun).await;
        }
        // The next snapshot may be longer.
        directory.keep_ballast();
        made
    }

    async fn try_checkpoint(
        &self,
        durability: &Durability,
        open: &OpenLog,
        begun: Instant,
    ) -> Result<Checkpoint, EngineError> {
        let directory = open.directory()?;
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
        let chunks = open.log.chunks();
        let writer = SnapshotWriter::create(disk, database, snapshot).map_err(failed)?;
        let definitions = durability.definitions();
        let frozen = self.freeze_objects(snapshot.at).await?;
        // From here on owners need not tell for it what was deleted when.
        drop(held);
        let own = Files::Own(chunks, &self.shared().sequencer);
        let writing = self.writing(writer, snapshot.at, own);
        let written = writing.write(definitions, frozen).await?;
        // What is newer than the snapshot, such as strings and definitions, may be in it before it is in the log.
        open.requests.flush().await?;
        let next_chunk = chunks.next_number();
        directory
            .begin_from(snapshot, start, next_chunk)
            .map_err(failed)?;
        open.requests.forget(before);
        let made = written.checkpoint(snapshot.at);
        (open.checkpoints).made(snapshot.number, made, begun.elapsed());
        // The snapshot is in place. What comes now only gives room back.
        let retained = chunks.retain(&written.referred_to, snapshot.at);
        let goes_on = || self.shared().sequencer.failure().is_none();
        let rewritten = retained.and_then(|()| chunks.rewrite(goes_on));
        let left = rewritten.map_err(|error| {
            self.shared().sequencer.fail(&error.to_string());
            failed(error)
        })?;
        if let Some(error) = left {
            open.checkpoints.not_rewritten(&error);
        }
        Ok(made)
    }

    /// Writes all that is visible into an empty directory, as a database of its own. It blocks while files are written.
    ///
    /// # Errors
    /// The disk has no room, or has failed; an owner has panicked; or others define tables all the time.
    pub(crate) async fn backup(&self, disk: Arc<dyn Disk>) -> Result<Checkpoint, EngineError> {
        let (definitions, at, frozen) = self.freeze_all().await?;
        let place: Arc<str> = disk.root().display().to_string().into();
        let directory = Directory::open(Arc::clone(&disk), Lock::Exclusive, any_database());
        // Until all is there, it is no database.
        let directory = directory.map_err(failed)?.unfinished();
        let files = directory.chunk_files().map_err(failed)?;
        let StorageSettings { log, chunks, .. } = StorageSettings::of_machine(None);
        // Nobody has something to say.
        let opened = directory.write(None, &files, &BTreeSet::new(), 1, 1, (log, chunks));
        let OpenDatabase {
            directory,
            mut log,
            chunks: writer,
            chunk_buffer,
            ..
        } = opened.map_err(failed)?;
        let all = (files, writer, chunk_buffer);
        let chunks = Arc::new(Chunks::new(all, chunks, BTreeMap::new(), place));
        let snapshot = SnapshotStart {
            number: directory.next_snapshot(),
            at,
        };
        let database = directory.manifest().database;
        let writer = SnapshotWriter::create(disk, database, snapshot).map_err(failed)?;
        let writing = self.writing(writer, at, Files::Other(&chunks));
        let written = writing.write(definitions, frozen).await?;
        let start = log.begin_file(None).map_err(failed)?;
        let next_chunk = chunks.next_number();
        directory
            .begin_from(snapshot, start, next_chunk)
            .map_err(failed)?;
        log.close(at).map_err(failed)?;
        chunks.writer.close().map_err(failed)?;
        Ok(written.checkpoint(at))
    }

    /// Definitions, and what a snapshot sees of all objects that they lead to. There is no log behind it that would say
    /// what has changed. So it is tried again if something is defined meanwhile.
    async fn freeze_all(
        &self,
    ) -> Result<(Vec<eris_home::Definition>, Timestamp, Vec<FrozenObject>), EngineError> {
        let durability = self.kept();
        for _ in 0..TRIES {
            let (version, definitions) = durability.definitions_and_version();
            // All rows that they lead to are visible.
            self.barrier().await?;
            let held = self.hold();
            let frozen = self.freeze_objects(held.at()).await?;
            if durability.definitions_and_version().0 == version {
                return Ok((definitions, held.at(), frozen));
            }
        }
        Err(EngineError::Checkpoint {
            reason: "tables are made and dropped all the time; try again later".to_owned(),
        })
    }

    fn writing<'a>(
        &'a self,
        writer: SnapshotWriter,
        at: Timestamp,
        files: Files<'a>,
    ) -> Writing<'a> {
        Writing {
            writer,
            at,
            files,
            memory: self.memory(),
            topology: self.topology(),
            written: Written::default(),
        }
    }

    /// Asks owners what a snapshot that is held sees of all objects that outlive the process.
    async fn freeze_objects(&self, at: Timestamp) -> Result<Vec<FrozenObject>, EngineError> {
        let mut all = Vec::new();
        let objects = self.objects().into_iter();
        for object in objects.filter(|object| object.is_durable && !object.is_dropped()) {
            let owners = self.owners();
            let frozen = self
                .ask(owners, object.id, &object.name, Freeze(at))
                .await?;
            let segments = frozen.into_iter().flat_map(|frozen| frozen.0).collect();
            all.push(FrozenObject { object, segments });
        }
        Ok(all)
    }
}

impl Written {
    fn checkpoint(&self, at: Timestamp) -> Checkpoint {
        Checkpoint {
            at,
            rows: self.rows,
            bytes: self.bytes,
            chunk_bytes: self.chunk_bytes,
        }
    }
}
