//! Writing rows: written with their owners while they come, visible all at once or not at all.
//!
//! ```text
//! append ─▶ collect a chunk's worth per target ─▶ Insert to an AEU with few rows and few batches under way
//! commit ─▶ wait for every Done ─▶ Check of keys, if any ─▶ draw a timestamp ─▶ Commit to all owners ─▶ wait: visible
//! drop   ─▶ Abort to all owners
//! ```
//!
//! A statement that only adds rows with a key has the write lock from Check to Commit. One that also deletes has it
//! from before it reads which rows these are: until it has committed, nobody else deletes. It names them by their ids;
//! which of them are whose, the owners know.

mod append;
mod commit;
mod moving;

use super::client::Client;
use super::engine::Engine;
use super::moves::key_shift::KeyShift;
use super::shared::EngineState;
use crate::error::EngineError;
use crate::object::collected::{Collected, MOST_COLLECTED};
use crate::object::data_object::DataObject;
use crate::object::scatter::Scatter;
use crate::object::statement::Statement;
use crate::protocol::answers::{Deleted, OfferedKeys};
use crate::protocol::lists::ToClient;
use crate::protocol::statements::{Abort, Check, Delete, Insert};
use arrow_array::RecordBatch;
use eris_atomics::ExclusiveWrite;
use eris_numa::Reservation;
use eris_types::{AeuId, ObjectId, RowId, StatementId};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::OwnedRwLockReadGuard;

/// What share of the memory may wait, if it is more than one target's.
const WAITING_SHARE: u64 = 16;
/// Batches that may be under way to one AEU: one it works on, one that waits.
const UNDER_WAY: usize = 2;

impl Engine {
    /// Begins a statement that adds rows. If the data object has a key, it waits for the write lock when it commits:
    /// until then others change rows while its own are being written.
    pub fn writer(&self, id: ObjectId) -> Result<Writer, EngineError> {
        let object = self.shared().object(id)?;
        object.check_writable()?;
        let write_lock = match object.key.is_empty() {
            true => WriterLock::None,
            false => WriterLock::AtCommit,
        };
        let client = self.shared().client()?;
        Ok(Writer::new(
            self.shared().clone(),
            client,
            object,
            write_lock,
        ))
    }

    /// Begins a statement that deletes rows of a data object, and may add some: once all such statements before it are
    /// done, in the order in which they asked. What it reads from then on it finds as it will be when it commits, but
    /// for rows that others add.
    pub async fn changer(&self, id: ObjectId) -> Result<Writer, EngineError> {
        self.shared().object(id)?.check_writable()?;
        self.mover(id).await
    }

    /// The same for rows that only get another owner: they stay the same rows.
    pub(crate) async fn mover(&self, id: ObjectId) -> Result<Writer, EngineError> {
        let object = self.shared().object(id)?;
        let write_lock = WriterLock::Held(self.shared().write_lock(&object).await);
        let client = self.shared().client()?;
        Ok(Writer::new(
            self.shared().clone(),
            client,
            object,
            write_lock,
        ))
    }
}

/// The rows of one statement. Dropped without [`Writer::commit`] it leaves no trace.
pub struct Writer {
    shared: Arc<EngineState>,
    client: Client,
    object: Arc<DataObject>,
    statement: Arc<Statement>,
    /// Rows that wait to fill a chunk, per target; by size partitioning all wait together.
    collected: Vec<Collected>,
    /// For `collected`.
    waiting: Reservation,
    scatter: Scatter,
    /// Per AEU.
    load: Vec<Load>,
    rows: u64,
    write_lock: WriterLock,
    /// While it writes rows with a key without the write lock: nobody shifts keys.
    early_writes: Option<OwnedRwLockReadGuard<()>>,
    /// Keys that another owner has from the commit on.
    shift: Option<KeyShift>,
    /// What an owner has said of rows that it gives away.
    offered: Option<OfferedKeys>,
    deletes: Vec<RowId>,
    /// For `deletes`.
    reserved: Option<Reservation>,
    /// Rows that owners have found among the deletes.
    found: u64,
    failure: Option<EngineError>,
    /// Nothing to abort: committed, or never written.
    leaves_nothing: bool,
    /// See [`Writer::make_ready`].
    is_ready: bool,
}

/// The right to change rows: to delete some, and to add keys.
#[derive(Debug)]
pub(crate) enum WriterLock {
    /// Not needed.
    None,
    /// Waited for when the statement commits.
    AtCommit,
    Held(#[expect(dead_code, reason = "held until it is dropped")] ExclusiveWrite),
}

#[derive(Clone, Copy, Default)]
struct Load {
    rows: u64,
    under_way: usize,
    written: bool,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<EngineState>,
        client: Client,
        object: Arc<DataObject>,
        write_lock: WriterLock,
    ) -> Self {
        let aeus = shared.topology.aeus().len();
        let load = (0..aeus).map(|aeu| Load {
            rows: object.partition_rows(AeuId(aeu as u16)),
            ..Load::default()
        });
        let statement = Statement {
            id: shared.next_statement(),
            aborted: AtomicBool::new(false),
        };
        let targets = if object.is_ranged() { aeus } else { 1 };
        let nothing_reserved = shared.memory.budget().try_reserve(0);
        Writer {
            client,
            statement: Arc::new(statement),
            collected: (0..targets).map(|_| Collected::default()).collect(),
            waiting: nothing_reserved.expect("nothing is asked"),
            scatter: Scatter::new(&object, aeus),
            load: load.collect(),
            rows: 0,
            write_lock,
            early_writes: None,
            shift: None,
            offered: None,
            deletes: Vec::new(),
            reserved: None,
            found: 0,
            failure: None,
            leaves_nothing: true,
            is_ready: false,
            object,
            shared,
        }
    }

    /// Adds rows: the table's columns with exactly its types. Waits while enough is under way.
    ///
    /// # Errors
    /// After an error the statement is lost; later calls return it again.
    pub async fn append(&mut self, batch: RecordBatch) -> Result<(), EngineError> {
        self.check_failure()?;
        self.object
            .check(&batch, self.rows + 1)
            .inspect_err(|error| self.failure = Some(error.clone()))?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if matches!(self.write_lock, WriterLock::AtCommit) && self.early_writes.is_none() {
            self.early_writes = Some(self.object.early_writes.clone().read_owned().await);
        }
        self.rows += batch.num_rows() as u64;
        for (target, part) in self.scatter.split(batch) {
            self.collect(target, part).await?;
        }
        Ok(())
    }

    /// Deletes rows, each at most once in the statement.
    ///
    /// # Errors
    /// There is no memory to remember them.
    ///
    /// # Panics
    /// If the writer has no write lock: it does not come from [`Engine::changer`](crate::Engine::changer).
    pub fn delete(
        &mut self,
        rows: impl ExactSizeIterator<Item = RowId>,
    ) -> Result<(), EngineError> {
        assert!(
            matches!(self.write_lock, WriterLock::Held(_)),
            "rows are deleted under the write lock"
        );
        self.check_failure()?;
        // As they are, and once more for the owners.
        let bytes = 2 * (rows.len() * size_of::<RowId>()) as u64;
        let reserved = match &mut self.reserved {
            Some(reserved) => reserved.try_grow(bytes),
            None => (self.shared.memory.budget().try_reserve(bytes))
                .map(|reserved| self.reserved = Some(reserved)),
        };
        reserved.map_err(|denied| EngineError::OutOfMemory {
            table: self.object.name.clone(),
            reason: denied.to_string(),
        })?;
        self.deletes.extend(rows);
        Ok(())
    }

    pub(crate) fn object(&self) -> &Arc<DataObject> {
        &self.object
    }

    /// Rows are on their way to an owner, who will have written some when it answers.
    fn note_under_way(&mut self, aeu: AeuId, rows: u64) {
        let load = &mut self.load[aeu.index()];
        load.rows += rows;
        load.under_way += 1;
        load.written = true;
        self.leaves_nothing = false;
    }

    /// Makes the rows visible, and those that were deleted invisible; returns how many were added. Once this was polled
    /// the commit may take effect even if the future is dropped.
    ///
    /// # Errors
    /// Nothing took effect.
    pub async fn commit(self) -> Result<u64, EngineError> {
        let rows = self.rows;
        Writer::commit_all(vec![self]).await?;
        Ok(rows)
    }

    /// Commits writers of several data objects at one timestamp: all of them take effect, or none. Those that have no
    /// write lock yet wait for theirs in the order of the objects' numbers; whoever takes write locks before, takes
    /// them in this order, too, and these first: so nobody waits in a circle.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub async fn commit_all(mut writers: Vec<Writer>) -> Result<(), EngineError> {
        Writer::make_ready(&mut writers).await?;
        let owners: Vec<Vec<AeuId>> = writers
            .iter()
            .map(|writer| writer.owners().collect())
            .collect();
        match owners.iter().any(|owners| !owners.is_empty()) {
            true => commit::commit_at(&mut writers, &owners).await,
            false => Ok(()),
        }
    }

    /// All of a commit that takes time: writing what is left, waiting for the write lock, and checking keys. Until the
    /// commit itself the statement can be given up; nothing may be added any more.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub async fn make_ready(writers: &mut [Writer]) -> Result<(), EngineError> {
        if writers.iter().all(|writer| writer.is_ready) {
            return Ok(());
        }
        for writer in &mut *writers {
            writer.finish_writing().await?;
        }
        writers.sort_by_key(|writer| writer.object.id);
        for writer in &mut *writers {
            if matches!(writer.write_lock, WriterLock::AtCommit) {
                let lock = writer.shared.write_lock(&writer.object).await;
                writer.write_lock = WriterLock::Held(lock);
            }
        }
        for writer in &mut *writers {
            // Where it is logged, owners take room for it.
            if !writer.object.key.is_empty() || writer.object.is_durable {
                let owners: Vec<AeuId> = writer.owners().collect();
                writer.begin_check(&owners);
            }
        }
        for writer in &mut *writers {
            writer.wait_for_answers().await?;
            writer.is_ready = true;
        }
        Ok(())
    }

    /// Writes what is left, and waits until everything is.
    async fn finish_writing(&mut self) -> Result<(), EngineError> {
        for (target, part) in self.scatter.flush() {
            self.collect(target, part).await?;
        }
        for target in 0..self.collected.len() {
            let rest = std::mem::take(&mut self.collected[target]);
            self.write(target, rest).await?;
        }
        self.write_deletes()?;
        self.wait_for_answers().await?;
        if self.object.is_dropped() {
            return Err(EngineError::NoSuchObject(self.object.id));
        }
        if self.found < self.deletes.len() as u64 {
            return Err(EngineError::NoSuchRows {
                table: self.object.name.clone(),
            });
        }
        Ok(())
    }

    async fn wait_for_answers(&mut self) -> Result<(), EngineError> {
        self.wait_until(|writer| writer.load.iter().all(|load| load.under_way == 0))
            .await
    }

    /// Tells the owners which rows are to be deleted.
    fn write_deletes(&mut self) -> Result<(), EngineError> {
        if self.deletes.is_empty() {
            return Ok(());
        }
        self.deletes.sort_unstable();
        if self.deletes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(EngineError::DeletedTwice {
                table: self.object.name.clone(),
            });
        }
        let delete = Delete {
            statement: self.statement.clone(),
            ids: self.deletes.as_slice().into(),
        };
        let with_rows: Vec<AeuId> = self.object.holders().map(|(aeu, _)| aeu).collect();
        for &aeu in &with_rows {
            let load = &mut self.load[aeu.index()];
            load.under_way += 1;
            load.written = true;
        }
        self.leaves_nothing = false;
        let (object, statement) = (self.object.id, self.statement.id);
        (self.client).multicast(&with_rows, object, statement, &delete);
        self.client.flush();
        Ok(())
    }

    /// Has the owners see to it that no two rows have one key.
    fn begin_check(&mut self, owners: &[AeuId]) {
        let check = Check {
            object: self.object.clone(),
            statement: self.statement.clone(),
        };
        for aeu in owners {
            self.load[aeu.index()].under_way += 1;
        }
        let (object, statement) = (self.object.id, self.statement.id);
        (self.client).multicast(owners, object, statement, &check);
        self.client.flush();
    }

    /// Keeps rows for a target until they fill a chunk, or are many bytes.
    async fn collect(&mut self, target: usize, batch: RecordBatch) -> Result<(), EngineError> {
        let mut rest = batch;
        while rest.num_rows() > 0 {
            let collected = &mut self.collected[target];
            let (taken, bytes) = collected.next(&rest);
            let count = taken.num_rows();
            rest = rest.slice(count, rest.num_rows() - count);
            collected.push(taken, bytes);
            self.waiting.grow(bytes);
            if collected.is_full() {
                let full = std::mem::take(collected);
                self.write(target, full).await?;
            }
        }
        self.write_widest().await
    }

    /// Writes the rows of one target if all that wait take much of the memory, as wide ones of many targets may.
    async fn write_widest(&mut self) -> Result<(), EngineError> {
        let most = (self.shared.memory.budget().limit() / WAITING_SHARE).max(MOST_COLLECTED);
        while self.waiting.bytes() > most {
            let targets = 0..self.collected.len();
            let widest = targets.max_by_key(|&target| self.collected[target].bytes);
            let widest = widest.expect("there is a target");
            let rows = std::mem::take(&mut self.collected[widest]);
            self.write(widest, rows).await?;
        }
        Ok(())
    }

    async fn write(&mut self, target: usize, collected: Collected) -> Result<(), EngineError> {
        if collected.rows == 0 {
            return Ok(());
        }
        self.waiting.shrink(collected.bytes);
        let reserved = self.reserve(&collected).await?;
        let aeu = match self.object.is_ranged() {
            true => {
                self.wait_until(|writer| writer.load[target].under_way < UNDER_WAY)
                    .await?;
                target
            }
            false => {
                self.wait_until(|writer| writer.emptiest().is_some())
                    .await?;
                self.emptiest().expect("waited for it")
            }
        };
        self.note_under_way(AeuId(aeu as u16), collected.rows as u64);
        let insert = Insert {
            object: self.object.clone(),
            statement: self.statement.clone(),
            batches: collected.batches,
            reserved,
        };
        let (object, statement) = (self.object.id, self.statement.id);
        (self.client).send(AeuId(aeu as u16), object, statement, insert);
        self.client.flush();
        Ok(())
    }

    /// Memory for rows until they are encoded: as they are, and as much for codes and for a column in one piece. If
    /// there is none it waits for what is under way.
    async fn reserve(&mut self, collected: &Collected) -> Result<Reservation, EngineError> {
        loop {
            let bytes = 2 * collected.bytes;
            let denied = match self.shared.memory.budget().try_reserve(bytes) {
                Ok(reservation) => return Ok(reservation),
                Err(denied) => denied,
            };
            let under_way = |writer: &Self| -> usize {
                let loads = writer.load.iter();
                loads.map(|load| load.under_way).sum()
            };
            let before = under_way(self);
            if before == 0 {
                let error = EngineError::OutOfMemory {
                    table: self.object.name.clone(),
                    reason: denied.to_string(),
                };
                self.failure = Some(error.clone());
                return Err(error);
            }
            self.wait_until(|writer| under_way(writer) < before).await?;
        }
    }

    /// The AEU with the fewest rows among those that have not enough under way.
    fn emptiest(&self) -> Option<usize> {
        let free = (0..self.load.len()).filter(|&aeu| self.load[aeu].under_way < UNDER_WAY);
        free.min_by_key(|&aeu| self.load[aeu].rows)
    }

    fn owners(&self) -> impl Iterator<Item = AeuId> + '_ {
        let loads = self.load.iter().enumerate();
        loads
            .filter(|(_, load)| load.written)
            .map(|(aeu, _)| AeuId(aeu as u16))
    }

    async fn wait_until(&mut self, ready: impl Fn(&Self) -> bool) -> Result<(), EngineError> {
        poll_fn(|cx| {
            loop {
                self.check_failure()?;
                if ready(self) {
                    return Poll::Ready(Ok(()));
                }
                if !self.poll_answers(cx) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Takes in the answers that have come; says whether there were any.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> bool {
        let Writer {
            client,
            load,
            failure,
            found,
            offered,
            statement,
            object,
            ..
        } = self;
        client.poll(cx, |received| {
            if received.callback::<StatementId>() != statement.id {
                return;
            }
            if let Some(aeu) = received.sender.as_aeu() {
                let load = &mut load[aeu.index()];
                load.under_way = load.under_way.saturating_sub(1);
            }
            if let ToClient::Deleted(Deleted(rows)) = received.answer {
                *found += rows;
            } else if let ToClient::OfferedKeys(answer) = received.answer {
                *offered = Some(answer);
            } else if let Some(error) = received.failure(&object.name) {
                failure.get_or_insert(error);
            }
        })
    }

    fn check_failure(&self) -> Result<(), EngineError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.leaves_nothing {
            self.statement.aborted.store(true, Ordering::Release);
            for aeu in self.owners().collect::<Vec<_>>() {
                let (object, statement) = (self.object.id, self.statement.id);
                self.client.send(aeu, object, statement, Abort);
            }
            self.client.flush_all();
        }
        // Answers that are still to come are rejected once the session is closed.
        if self.load.iter().all(|load| load.under_way == 0) {
            self.shared.give_back(&mut self.client);
        }
    }
}
