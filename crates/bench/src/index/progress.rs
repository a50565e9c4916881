//! What is being measured, for those who wait.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A line that says what is being measured, and goes when it is dropped.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        bar.set_style(style.expect("a template"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Spinner(bar)
    }

    pub fn begin(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
