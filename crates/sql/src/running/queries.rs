//! Which statements run, and which did: what `eris.queries` shows, and where KILL finds them.
//!
//! ```text
//! begins   a number ─▶ shown in a place among those that run, mostly the session's own
//! ends     shown among the recent ones, instead of the oldest ─▶ says how it ended ─▶ leaves its place
//! ```
//!
//! Neither takes a lock, for each short statement does both. An entry stays in its place until another statement takes
//! it. So whoever looks asks it whether it has ended. Whoever sees that it has finds it among the recent ones, unless
//! [`RECENT`] others have ended since.

use crate::cancel::CancelToken;
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::progress::Progress;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use eris_atomics::{Lock, Shown};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// So many statements that have ended are remembered.
const RECENT: usize = 200;
/// So many run at a time without a lock, and so many places are tried.
const PLACES: usize = 256;
const TRIED: usize = 8;
/// So many characters of a statement are kept.
const CHARACTERS: usize = 500;

/// All statements of a database that run, and the last ones that ended.
#[derive(Debug)]
pub(crate) struct Queries {
    /// The number of the newest statement. All count; relaxed, for the numbers only have to be different.
    newest: AtomicU64,
    running: Shown<Query>,
    /// Those that have found no place.
    beyond: Lock<BTreeMap<u64, Arc<Query>>>,
    /// So many have ended. All count; relaxed, for one after the other takes the next place among the recent ones.
    ended: AtomicU64,
    recent: Shown<Query>,
}

impl Default for Queries {
    fn default() -> Self {
        Queries {
            newest: AtomicU64::new(0),
            running: Shown::new(PLACES),
            beyond: Lock::default(),
            ended: AtomicU64::new(0),
            recent: Shown::new(RECENT),
        }
    }
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
    /// Whether somebody ends it. Who sets it goes on to do so; nobody else reads anything by it, so it is relaxed.
    is_ending: AtomicBool,
    /// As which one it ends. Written by who ends it before it is shown among the recent ones, which orders it.
    ended: AtomicU64,
    /// Set behind everything else by who ends it, and read by who looks.
    end: OnceLock<End>,
}

/// How a statement ended.
#[derive(Debug)]
struct End {
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
        let query = Arc::new(Query {
            id: self.newest.fetch_add(1, Ordering::Relaxed) + 1,
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
            is_ending: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            end: OnceLock::new(),
        });
        // A session that finds its place again finds its cache line again.
        let first = session as usize % PLACES;
        let place = self.running.take(first..first + TRIED, &query);
        if place.is_none() {
            self.beyond.lock().insert(query.id, Arc::clone(&query));
        }
        Running {
            queries: Arc::clone(self),
            query,
            place,
        }
    }

    /// All of them, the oldest first.
    pub fn rows(&self) -> Vec<QueryRow> {
        // Those that run first: who has ended by then is among the recent ones already.
        let mut queries = self.running();
        queries.extend(self.recent.all());
        let by_id: BTreeMap<u64, Arc<Query>> =
            queries.into_iter().map(|query| (query.id, query)).collect();
        by_id.values().map(|query| query.row()).collect()
    }

    /// Those that run.
    fn running(&self) -> Vec<Arc<Query>> {
        let mut running = self.running.all();
        running.extend(self.beyond.lock().values().cloned());
        running.retain(|query| query.end.get().is_none());
        running
    }

    /// Stops a statement on behalf of a session.
    ///
    /// # Errors
    /// It does not run, or will take effect at this moment.
    pub fn kill(&self, id: u64, by: u64) -> Result<(), SqlError> {
        let query = self.running().into_iter().find(|query| query.id == id);
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

    fn row(&self) -> QueryRow {
        let (state, elapsed, error) = match self.end.get() {
            Some(end) => (end.state, end.elapsed, end.error.clone()),
            None => ("running", self.began.elapsed(), None),
        };
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
    /// Where it is shown. `None`: beyond the places.
    place: Option<usize>,
}

impl Running {
    /// The statement has ended. Later calls change nothing.
    pub fn end(&self, error: Option<SqlError>) {
        let (state, error) = match error {
            None => ("finished", None),
            Some(error) if error.is_cancelled() => ("cancelled", None),
            Some(error) => ("failed", Some(error.kind().to_string())),
        };
        self.query.progress.end();
        let end = End {
            elapsed: self.query.began.elapsed(),
            state,
            error,
        };
        if self.query.is_ending.swap(true, Ordering::Relaxed) {
            return;
        }
        let queries = &self.queries;
        let number = queries.ended.fetch_add(1, Ordering::Relaxed);
        self.query.ended.store(number, Ordering::Relaxed);
        let mut shown = Arc::clone(&self.query);
        let mut newest = number;
        // If this was held up meanwhile, a newer one may be there already: it goes back.
        while let Some(before) = queries.recent.show(number as usize, shown) {
            let other = before.ended.load(Ordering::Relaxed);
            if other <= newest {
                break;
            }
            (shown, newest) = (before, other);
        }
        let set = self.query.end.set(end);
        set.expect("one ends it");
        match self.place {
            Some(place) => queries.running.leave(place),
            None => drop(queries.beyond.lock().remove(&self.query.id)),
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
    fn those_beyond_the_places_are_shown_and_killed_too() {
        let queries = Arc::new(Queries::default());
        let all = (0..PLACES + 2).map(|_| begin(&queries, "SELECT 1"));
        let mut all: Vec<_> = all.collect();
        let last = all.last().unwrap().query.id;
        assert_eq!(queries.rows().len(), PLACES + 2);
        queries.kill(last, 9).unwrap();
        all.truncate(1);
        let states = queries.rows().into_iter().map(|row| row.state);
        let running = states.filter(|state| *state == "running");
        assert_eq!(running.count(), 1);
        assert!(queries.beyond.lock().is_empty());
    }

    #[test]
    fn who_looks_misses_none_while_they_begin_and_end() {
        let queries = Arc::new(Queries::default());
        let stays = begin(&queries, "SELECT 'stays'");
        // The newest that has begun, of each of two threads that are in each other's way.
        let newest = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for newest in &newest {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let running = begin(&queries, "SELECT 1");
                        newest.store(running.query.id, Ordering::Release);
                        running.end(None);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..500 {
                    let known = newest
                        .each_ref()
                        .map(|newest| newest.load(Ordering::Acquire));
                    let rows = queries.rows();
                    let states = |id| {
                        rows.iter()
                            .filter(move |row| row.id == id)
                            .map(|row| row.state)
                    };
                    assert!(states(stays.query.id).eq(["running"]));
                    // Others may have taken the place of an older one among the recent ones.
                    let begun = queries.newest.load(Ordering::Relaxed);
                    let oldest = begun.saturating_sub(RECENT as u64 / 2);
                    for id in known.into_iter().filter(|id| *id > oldest.max(1)) {
                        assert_eq!(states(id).count(), 1, "{id} of {known:?}");
                    }
                }
            });
        });
        assert_eq!(queries.rows().len(), RECENT + 1);
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
