//! What people see while a database is opened that takes long: all of it is read into memory.
//!
//! ```text
//! open ── half a second ── a line with the time ── opened: the line is gone
//! ```

use eris_engine::DatabaseSettings;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Who waits for less sees nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(100);

/// Opens a database with what `open` does. If it is in a directory and takes long, a terminal shows that.
pub fn shown<T>(database: Option<&DatabaseSettings>, open: impl FnOnce() -> T) -> T {
    let Some(database) = database else {
        return open();
    };
    let (opening, opened) = channel::<()>();
    let name = database.directory.display().to_string();
    thread::scope(|scope| {
        scope.spawn(move || {
            if opened.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let style = ProgressStyle::with_template("{spinner} opening {msg}, {elapsed}");
                let style = style.expect("the template is constant");
                let bar = ProgressBar::new_spinner().with_style(style);
                let bar = bar.with_message(name).with_elapsed(PATIENCE);
                bar.enable_steady_tick(TICK);
                // It ends when whoever opens drops the other end.
                let _ = opened.recv();
                bar.finish_and_clear();
            }
        });
        let result = open();
        drop(opening);
        result
    })
}
