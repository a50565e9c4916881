//! How far a long statement is, on the terminal: rows or bytes of how many, rate, remaining time, memory.
//!
//! ```text
//! ━━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━ 54% · 3.2 of 6.0 M rows · 1.2 M/s · 2 s left · 0.9 of 12.8 GB memory
//! ```

use crate::numbers::{bytes, duration, short};
use eris_numa::Budget;
use eris_sql::{Amount, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Statements that are done before this are not worth a bar.
const DELAY: Duration = Duration::from_secs(2);
/// Between two looks.
const TICK: Duration = Duration::from_millis(100);
/// Steps of the bar.
const STEPS: u64 = 1000;

/// The bar of one statement; it is gone when this is dropped.
pub struct Meter {
    progress: Progress,
    budget: Budget,
    began: Instant,
    bar: Option<ProgressBar>,
    /// The share that was shown last: it never goes back, also where more work becomes known.
    shown: f64,
    /// Nobody sees it, or something else is on the screen.
    off: bool,
}

impl Meter {
    /// A bar for the statement of this progress, if standard error is a terminal.
    pub fn new(progress: Progress, budget: &Budget) -> Self {
        Meter {
            progress,
            budget: budget.clone(),
            began: Instant::now(),
            bar: None,
            shown: 0.0,
            off: !io::stderr().is_terminal(),
        }
    }

    /// Waits for a part of the statement, with the bar on the screen.
    pub async fn watch<T>(&mut self, part: impl Future<Output = T>) -> T {
        if self.off {
            return part.await;
        }
        tokio::pin!(part);
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                done = &mut part => return done,
                _ = ticks.tick() => self.draw(),
            }
        }
    }

    /// Makes room on the screen for good.
    pub fn end(&mut self) {
        self.off = true;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&mut self) {
        let elapsed = self.began.elapsed();
        if elapsed < DELAY {
            return;
        }
        let (fraction, message) = describe(&self.progress, elapsed, &self.budget);
        let fraction = fraction.map(|fraction| {
            self.shown = self.shown.max(fraction);
            self.shown
        });
        let bar = self.bar.get_or_insert_with(|| {
            ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
        });
        let template = match fraction {
            Some(_) => "{bar:30} {wide_msg}",
            None => "{spinner} {wide_msg}",
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        bar.set_style(style.progress_chars("━╸─"));
        // Each of these draws: the text last, so that it never stands beside the bar of before.
        bar.set_position((fraction.unwrap_or(0.0) * STEPS as f64) as u64);
        bar.set_message(match fraction {
            // Rounded down: what works is not done.
            Some(fraction) => format!("{:.0}% · {message}", (fraction * 100.0).floor()),
            None => message,
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.end();
    }
}

/// The share that is done, as far as it is known, and the rest in words.
fn describe(progress: &Progress, elapsed: Duration, budget: &Budget) -> (Option<f64>, String) {
    let (rows, read) = (progress.rows(), progress.bytes());
    let mut parts = Vec::new();
    let mut slowest: Option<Amount> = None;
    for (amount, unit) in [(read, "bytes"), (rows, "rows")] {
        let Some(fraction) = amount.fraction() else {
            continue;
        };
        let rate = amount.done as f64 / elapsed.as_secs_f64();
        parts.push(match unit {
            "bytes" => format!(
                "{} of {} · {}/s",
                bytes(amount.done),
                bytes(amount.total),
                bytes(rate as u64)
            ),
            _ => format!(
                "{} of {} rows · {} rows/s",
                short(amount.done),
                short(amount.total),
                short(rate as u64)
            ),
        });
        if slowest
            .and_then(Amount::fraction)
            .is_none_or(|least| fraction < least)
        {
            slowest = Some(amount);
        }
    }
    let written = progress.written();
    if written > 0 {
        parts.push(format!("{} rows written", short(written)));
    }
    // What comes behind reading is not measured.
    let fraction = slowest.and_then(Amount::fraction);
    match fraction {
        Some(1.0) => parts.push(format!("all read, {}", duration(elapsed))),
        Some(done) if done > 0.0 => {
            let left = elapsed.mul_f64((1.0 - done) / done);
            parts.push(format!("{} left", duration(left)));
        }
        _ => parts.push(format!("running {}", duration(elapsed))),
    }
    parts.push(format!(
        "{} of {} memory",
        bytes(budget.used()),
        bytes(budget.limit())
    ));
    let measured = fraction.filter(|done| *done < 1.0);
    (measured, parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_known_work_time_and_memory_are_told() {
        let (fraction, text) = describe(
            &Progress::default(),
            Duration::from_secs(3),
            &Budget::new(2_000_000_000),
        );
        assert_eq!(fraction, None);
        assert_eq!(text, "running 3.00 s · 0 B of 2.0 GB memory");
    }
}
