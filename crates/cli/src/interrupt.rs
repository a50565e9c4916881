//! What Ctrl-C means for the statement that is running: nothing of it takes effect, or it is too late for that.

use eris_sql::Canceller;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The statement that is running, for whoever hears Ctrl-C. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Mutex<PromptState>>);

#[derive(Debug, Default)]
struct PromptState {
    statement: Option<Canceller>,
    /// It has been answered with rows, which are being shown.
    is_shown: bool,
    /// Nothing else is to be begun.
    is_heard: bool,
}

/// What has become of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing of the statement takes effect: whatever runs may be dropped.
    InTime,
    /// The statement has taken effect, but not all of its rows have been shown: whatever runs may be dropped.
    WhileShown,
    /// The statement takes effect: its outcome is to be waited for.
    TooLate,
}

impl Interrupt {
    /// New input is about to be run.
    pub fn forget(&self) {
        *self.state() = PromptState::default();
    }

    /// A statement begins.
    pub fn begin(&self, statement: &Canceller) {
        let mut state = self.state();
        state.statement = Some(statement.clone());
        state.is_shown = false;
    }

    /// It has been answered with rows.
    pub fn shows(&self) {
        self.state().is_shown = true;
    }

    /// It has ended.
    pub fn end(&self) {
        self.state().statement = None;
    }

    /// Ctrl-C was pressed.
    pub fn hear(&self) -> Heard {
        let mut state = self.state();
        state.is_heard = true;
        match &state.statement {
            Some(statement) if !statement.cancel() => match state.is_shown {
                true => Heard::WhileShown,
                false => Heard::TooLate,
            },
            _ => Heard::InTime,
        }
    }

    /// Whether it was, since the input began.
    pub fn is_heard(&self) -> bool {
        self.state().is_heard
    }

    /// The state, also behind a panic: each change of it is one assignment.
    fn state(&self) -> MutexGuard<'_, PromptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
