//! How far a running statement is.
//!
//! ```text
//! client   Session::execute ── Running::progress ─┐            QueryStream::progress ─┐
//!                                                 ▼ rows(), bytes(), written()        ▼
//! shared                     Progress: scans that report themselves · counters of bytes and of rows written
//!                                                 ▲
//! statement's task           current(): expect_scan · files · wrote             
//! ```
//!
//! A scan happens where the rows are, and its executor knows how far it is: it is asked when somebody looks. So is the
//! reader of Parquet files. Other files are read here, and whoever reads one counts. Nobody has to look, and looking
//! disturbs nobody.

use eris_files::ReadProgress;
use eris_fragment::FragmentReport;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How far a statement is. Clones show the same statement; they may be kept beyond its end.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<ProgressState>);

/// What is done of what is known to be needed. The total may grow while the statement runs: part of its work becomes
/// known only on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Done so far, at most the total.
    pub done: u64,
    /// Known so far; 0 if there is no such work.
    pub total: u64,
}

/// The counter is a statistic: tasks of the statement add to it and its client reads it, and it says nothing about
/// other memory. So all accesses are relaxed.
#[derive(Debug, Default)]
struct ProgressState {
    /// Held for no longer than it takes to add a scan or to copy the list.
    scans: Mutex<Vec<Arc<Scanning>>>,
    /// Whether there are any: most statements are lookups.
    has_scans: AtomicBool,
    files: ReadProgress,
    rows_written: AtomicU64,
}

/// One scan of a table, from when it is planned.
#[derive(Default)]
pub(crate) struct Scanning {
    rows: u64,
    done: Mutex<ScanState>,
}

/// How far a scan is, and who knows.
#[derive(Default)]
enum ScanState {
    #[default]
    Planned,
    Running(Done),
    /// With so many rows done. What it was told by is not kept: that knows the whole plan.
    Ended(u64),
}

type ReadReport = Arc<dyn Fn() -> FragmentReport + Send + Sync>;
type Done = Arc<dyn Fn() -> u64 + Send + Sync>;

tokio::task_local! {
    /// The progress of the statement that the current task serves.
    pub(crate) static PROGRESS: Progress;
}

/// The progress of the statement that the current task serves; without a statement, one at which nobody looks.
/// Operators may run in tasks of their own, which serve no statement: whoever makes an operator asks, and hands it on.
pub(crate) fn current() -> Progress {
    PROGRESS.try_with(Progress::clone).unwrap_or_default()
}

impl Progress {
    /// Rows of tables and Parquet files that are read, or excluded unread.
    pub fn rows(&self) -> Amount {
        // A report locks and adds up: not under our lock.
        let scans = self.0.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let scans: Vec<_> = scans.clone();
        let amounts = scans.iter().map(|scan| scan.amount());
        amounts.fold(Amount::default(), |sum, scan| Amount {
            done: sum.done.saturating_add(scan.done),
            total: sum.total.saturating_add(scan.total),
        })
    }

    /// Bytes of files that are read.
    pub fn bytes(&self) -> Amount {
        let files = &self.0.files;
        Amount {
            done: files.read(),
            total: files.expected(),
        }
    }

    /// Rows that were written, into a table or a file, and are not committed before the statement ends.
    pub fn written(&self) -> u64 {
        self.0.rows_written.load(Ordering::Relaxed)
    }

    /// A scan of a table of so many rows will come.
    pub(crate) fn expect_scan(&self, rows: u64) -> Arc<Scanning> {
        let scan = Arc::new(Scanning {
            rows,
            done: Mutex::default(),
        });
        self.0.has_scans.store(true, Ordering::Relaxed);
        let mut scans = self.0.scans.lock().unwrap_or_else(PoisonError::into_inner);
        scans.push(Arc::clone(&scan));
        scan
    }

    /// The statement has ended: scans tell from now on how far they came.
    pub(crate) fn end(&self) {
        if !self.0.has_scans.load(Ordering::Relaxed) {
            return;
        }
        let scans = self.0.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let scans: Vec<_> = scans.clone();
        scans.iter().for_each(|scan| scan.end());
    }

    /// What readers of files tell.
    pub(crate) fn files(&self) -> &ReadProgress {
        &self.0.files
    }

    /// So many more rows were written.
    pub(crate) fn wrote(&self, rows: u64) {
        self.0.rows_written.fetch_add(rows, Ordering::Relaxed);
    }
}

impl Amount {
    /// The share that is done, from 0 to 1; `None` if there is no such work.
    pub fn fraction(self) -> Option<f64> {
        (self.total > 0).then(|| self.done as f64 / self.total as f64)
    }
}

impl Scanning {
    /// It has begun in the engine, and tells how far it is.
    pub fn began(&self, report: ReadReport) {
        self.counts(Arc::new(move || {
            let rows = |worker: &eris_fragment::WorkerReport| {
                worker.rows_scanned.saturating_add(worker.rows_skipped)
            };
            report().workers.iter().map(rows).sum()
        }));
    }

    /// It has begun, and this many of its rows are done whenever somebody asks. It begins once.
    pub fn counts(&self, done: Done) {
        let mut state = self.state();
        debug_assert!(matches!(*state, ScanState::Planned), "a scan begins once");
        *state = ScanState::Running(done);
    }

    fn end(&self) {
        let done = self.amount().done;
        // What it was told by is dropped without the lock.
        let before = std::mem::replace(&mut *self.state(), ScanState::Ended(done));
        drop(before);
    }

    fn amount(&self) -> Amount {
        let told = match &*self.state() {
            ScanState::Planned => Err(0),
            ScanState::Ended(done) => Err(*done),
            ScanState::Running(done) => Ok(Arc::clone(done)),
        };
        let done = told.map_or_else(|done| done, |done| done());
        Amount {
            // A table may have grown since its rows were counted.
            done: self.rows.min(done),
            total: self.rows,
        }
    }

    fn state(&self) -> MutexGuard<'_, ScanState> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scanning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount { done, total } = self.amount();
        write!(f, "Scanning({done} of {total} rows)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_fragment::WorkerReport;

    fn report(scanned: u64, skipped: u64) -> ReadReport {
        Arc::new(move || FragmentReport {
            workers: vec![
                WorkerReport {
                    rows_scanned: scanned,
                    ..WorkerReport::default()
                },
                WorkerReport {
                    rows_skipped: skipped,
                    ..WorkerReport::default()
                },
            ],
            ..FragmentReport::default()
        })
    }

    #[test]
    fn scans_add_up_and_count_what_was_excluded() {
        let progress = Progress::default();
        assert_eq!(progress.rows().fraction(), None);
        let fact = progress.expect_scan(1000);
        let dimension = progress.expect_scan(10);
        let rows = |done| Amount { done, total: 1010 };
        assert_eq!(progress.rows(), rows(0));
        dimension.began(report(11, 0));
        assert_eq!(progress.clone().rows(), rows(10), "never beyond the total");
        fact.began(report(300, 200));
        assert_eq!(progress.rows(), rows(510));
    }

    #[test]
    fn rows_written_are_counted() {
        let progress = Progress::default();
        progress.wrote(5);
        assert_eq!(
            (progress.bytes(), progress.written()),
            (Amount::default(), 5)
        );
        let read = Amount { done: 4, total: 10 };
        assert_eq!(read.fraction(), Some(0.4));
    }

    #[test]
    fn the_current_progress_is_that_of_the_statement() {
        let progress = Progress::default();
        current().wrote(1);
        PROGRESS.sync_scope(progress.clone(), || current().wrote(2));
        assert_eq!(progress.written(), 2);
    }
}
