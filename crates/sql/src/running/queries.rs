//! Which statements run, and which did: what `eris.queries` shows, and where KILL finds them.

use crate::cancel::CancelToken;
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::progress::Progress;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// So many statements that have ended are remembered.
const RECENT: usize = 200;
/// So many characters of a statement are kept.
const CHARACTERS: usize = 500;

/// All statements of a database that run, and the last ones that ended.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    state: Mutex<QueryList>,
}

#[derive(Debug, Default)]
struct QueryList {
    /// The number of the newest statement.
    newest: u64,
    running: BTreeMap<u64, Arc<Query>>,
    recent: VecDeque<Ended>,
}

/// A statement that runs.
#[derive(Debug)]
pub(crate) struct Query {
    pub id: u64,
    pub session: u64,
    text: Arc<str>,
    started: SystemTime,
    began: Instant,
    token: CancelToken,
    progress: Progress,
    /// Rows that were handed to the client. Relaxed, as all numbers here: they guard nothing else.
    rows: AtomicU64,
    memory: AtomicU64,
    most_memory: AtomicU64,
    /// Whether it has taken numbers of sequences that nobody knows of yet.
    numbers: AtomicBool,
}

#[derive(Debug)]
struct Ended {
    query: Arc<Query>,
    elapsed: Duration,
    /// How, and why if it has failed: as text, for an error may hold what belongs to the calling program.
    state: &'static str,
    error: Option<String>,
}

/// A statement for `eris.queries`.
pub(crate) struct QueryRow {
    pub id: u64,
    pub session: u64,
    /// `running`, `finished`, `failed`, or `cancelled` by its client.
    pub state: &'static str,
    pub started: SystemTime,
    pub elapsed: Duration,
    /// Rows handed to the client, or written.
    pub rows: u64,
    pub rows_scanned: u64,
    /// Bytes of operators above the scans, now and at most.
    pub memory: u64,
    pub most_memory: u64,
    pub text: String,
    pub error: Option<String>,
}

impl Queries {
    /// A statement begins, shown as this [text](shortened); it ends with the guard.
    pub fn begin(
        self: &Arc<Self>,
        session: u64,
        text: Arc<str>,
        token: CancelToken,
        progress: Progress,
    ) -> Running {
        let mut state = self.state();
        state.newest += 1;
        let query = Arc::new(Query {
            id: state.newest,
            session,
            text,
            started: SystemTime::now(),
            began: Instant::now(),
            token,
            progress,
            rows: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            most_memory: AtomicU64::new(0),
            numbers: AtomicBool::new(false),
        });
        state.running.insert(query.id, Arc::clone(&query));
        Running {
            queries: Arc::clone(self),
            query,
        }
    }

    /// All of them, the oldest first.
    pub fn rows(&self) -> Vec<QueryRow> {
        let state = self.state();
        let ended = state.recent.iter().map(|ended| {
            let error = ended.error.clone();
            ended.query.row(ended.state, ended.elapsed, error)
        });
        let running = state.running.values();
        let running = running.map(|query| query.row("running", query.began.elapsed(), None));
        let mut rows: Vec<QueryRow> = ended.chain(running).collect();
        rows.sort_by_key(|row| row.id);
        rows
    }

    /// Stops a statement on behalf of a session.
    ///
    /// # Errors
    /// It does not run, or will take effect at this moment.
    pub fn kill(&self, id: u64, by: u64) -> Result<(), SqlError> {
        let query = self.state().running.get(&id).cloned();
        let query = query.ok_or_else(|| {
            SqlError::invalid(
                Mistake::UndefinedObject,
                format!("no statement with number {id} is running"),
            )
            .with_hint(Some("SELECT * FROM eris.queries WHERE state = 'running'"))
        })?;
        match query.token.stop(SqlErrorKind::Killed(by)) {
            true => Ok(()),
            false => Err(SqlError::invalid(
                Mistake::NotReady,
                format!("statement {id} is ending already"),
            )),
        }
    }

    /// The state, also behind a panic: a row more or less harms nobody.
    fn state(&self) -> MutexGuard<'_, QueryList> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Query {
    /// It has taken numbers of a sequence.
    pub fn took_numbers(&self) {
        self.numbers.store(true, Ordering::Relaxed);
    }

    /// Whether it has, since it was asked last.
    pub fn has_taken_numbers(&self) -> bool {
        self.numbers.load(Ordering::Relaxed) && self.numbers.swap(false, Ordering::Relaxed)
    }

    /// Rows were handed to the client, or written.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn row(&self, state: &'static str, elapsed: Duration, error: Option<String>) -> QueryRow {
        QueryRow {
            id: self.id,
            session: self.session,
            state,
            started: self.started,
            elapsed,
            rows: self
                .rows
                .load(Ordering::Relaxed)
                .max(self.progress.written()),
            rows_scanned: self.progress.rows().done,
            memory: self.memory.load(Ordering::Relaxed),
            most_memory: self.most_memory.load(Ordering::Relaxed),
            text: self.text.to_string(),
            error,
        }
    }
}

/// A running statement's entry. Dropped without [`Running::end`], the statement was cancelled.
pub(crate) struct Running {
    queries: Arc<Queries>,
    pub query: Arc<Query>,
}

impl Running {
    /// The statement has ended. Later calls change nothing.
    pub fn end(&self, error: Option<SqlError>) {
        let (how, error) = match error {
            None => ("finished", None),
            Some(error) if error.is_cancelled() => ("cancelled", None),
            Some(error) => ("failed", Some(error.kind().to_string())),
        };
        self.query.progress.end();
        let mut state = self.queries.state();
        if state.running.remove(&self.query.id).is_some() {
            if state.recent.len() == RECENT {
                state.recent.pop_front();
            }
            state.recent.push_back(Ended {
                query: Arc::clone(&self.query),
                elapsed: self.query.began.elapsed(),
                state: how,
                error,
            });
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end(Some(eris_fragment::FragmentError::Cancelled.into()));
    }
}

/// A statement's text in one line, and not all of it if it is long.
pub(crate) fn shortened(text: &str) -> Arc<str> {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        // Characters have at most four bytes.
        if words.len() > 4 * CHARACTERS {
            break;
        }
    }
    match words.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &words[..end]).into(),
        None => words.into(),
    }
}

/// The pool of all statements, seen through one of them: what its operators hold is counted.
#[derive(Debug)]
pub(crate) struct MeteredPool {
    pub pool: Arc<dyn MemoryPool>,
    pub query: Arc<Query>,
}

impl MeteredPool {
    fn add(&self, bytes: usize) {
        let before = self.query.memory.fetch_add(bytes as u64, Ordering::Relaxed);
        let now = before + bytes as u64;
        self.query.most_memory.fetch_max(now, Ordering::Relaxed);
    }
}

impl MemoryPool for MeteredPool {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.add(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        self.pool.shrink(reservation, less);
        self.query.memory.fetch_sub(less as u64, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.pool.try_grow(reservation, additional)?;
        self.add(additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

impl fmt::Display for MeteredPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(queries: &Arc<Queries>, text: &str) -> Running {
        queries.begin(
            7,
            shortened(text),
            CancelToken::new(None),
            Progress::default(),
        )
    }

    #[test]
    fn statements_end_in_their_own_way() {
        let queries = Arc::new(Queries::default());
        let finished = begin(&queries, "SELECT 1");
        let failed = begin(&queries, "SELECT 2");
        let dropped = begin(&queries, "SELECT 3");
        let running = begin(&queries, "SELECT\n   4");
        finished.end(None);
        failed.end(Some(SqlError::invalid(Mistake::UndefinedObject, "wrong")));
        drop((finished, failed, dropped));
        let rows = queries.rows();
        let states: Vec<_> = rows.iter().map(|row| (row.id, row.state)).collect();
        assert_eq!(
            states,
            [
                (1, "finished"),
                (2, "failed"),
                (3, "cancelled"),
                (4, "running")
            ]
        );
        assert_eq!(rows[1].error.as_deref(), Some("wrong"));
        assert_eq!(rows[3].text, "SELECT 4");
        queries.kill(4, 9).unwrap();
        assert!(running.query.token.begin_commit().is_err());
        assert!(queries.kill(3, 9).is_err());
    }

    #[test]
    fn only_so_many_are_remembered() {
        let queries = Arc::new(Queries::default());
        for _ in 0..RECENT + 5 {
            begin(&queries, "SELECT 1").end(None);
        }
        let rows = queries.rows();
        assert_eq!((rows.len(), rows[0].id), (RECENT, 6));
    }

    #[test]
    fn what_commits_cannot_be_killed() {
        let queries = Arc::new(Queries::default());
        let running = begin(&queries, "INSERT");
        running.query.token.begin_commit().unwrap();
        assert!(queries.kill(1, 9).is_err());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = shortened(&"ö".repeat(3000));
        assert_eq!(text.chars().count(), CHARACTERS + 1);
    }
}
