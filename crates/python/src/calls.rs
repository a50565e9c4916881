//! Threads of the database that call Python, which is only for frames.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

thread_local! {
    /// Whether this thread calls Python for a frame of a statement.
    static IN_FRAME: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that calls Python for a frame.
pub fn in_frame<T>(work: impl FnOnce() -> T) -> T {
    FRAMES.fetch_add(1, Ordering::SeqCst);
    let _mark = Mark {
        before: IN_FRAME.replace(true),
    };
    work()
}

/// Ends with the work, also if that panics: the end of Python would wait for it.
struct Mark {
    before: bool,
}

impl Drop for Mark {
    fn drop(&mut self) {
        IN_FRAME.set(self.before);
        FRAMES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How many threads call Python for a frame.
static FRAMES: AtomicUsize = AtomicUsize::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// How long the end of Python waits for code of frames. What takes longer may end the process with an error.
const PATIENCE: Duration = Duration::from_secs(5);

/// Python is about to end: no frame calls it any more, and those that do are waited for.
pub fn end_frames() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + PATIENCE;
    while FRAMES.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether Python is about to end.
pub fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst)
}

/// Whether this thread calls Python for a frame.
pub fn is_in_frame() -> bool {
    IN_FRAME.get()
}
