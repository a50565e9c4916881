//! Which operations fail, and how many there were.

use crate::error::Operation;
use rustix::io::Errno;
use std::path::Path;

/// An operation that shall fail, or at which the machine shall stop.
///
/// ```
/// use eris_disk::{Fault, Operation};
/// // The third flush of a file in `log` fails with an error of input or output.
/// let fault = Fault::at(3).of(Operation::Flush).on("log/");
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    left: u64,
    operation: Option<Operation>,
    path: Option<String>,
    lasts: bool,
    effect: Effect,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It fails, perhaps half done.
    Error(Errno),
    /// The machine stops at it.
    Stop,
}

impl Fault {
    /// The `nth` operation from now on, counted from 1, fails with an error of input or output.
    pub fn at(nth: u64) -> Self {
        assert!(nth > 0, "operations are counted from 1");
        Fault {
            left: nth,
            operation: None,
            path: None,
            lasts: false,
            effect: Effect::Error(Errno::IO),
        }
    }

    /// Only operations of this kind count.
    pub fn of(self, operation: Operation) -> Self {
        let operation = Some(operation);
        Fault { operation, ..self }
    }

    /// Only operations on paths count that have `part` in them. Those of a rename are looked at by their old name.
    pub fn on(self, part: &str) -> Self {
        let path = Some(part.to_string());
        Fault { path, ..self }
    }

    /// All later operations of this kind fail, too.
    pub fn and_later(self) -> Self {
        Fault {
            lasts: true,
            ..self
        }
    }

    /// The error is the operating system's of this number.
    pub fn error(self, errno: i32) -> Self {
        let effect = Effect::Error(Errno::from_raw_os_error(errno));
        Fault { effect, ..self }
    }

    /// The error is that the disk is full.
    pub fn full(self) -> Self {
        self.error(Errno::NOSPC.raw_os_error())
    }

    /// The machine stops: the operation is done or not, and all from then on fail. `crash` and `kill` give what is
    /// found afterwards.
    pub fn stop(self) -> Self {
        let effect = Effect::Stop;
        Fault { effect, ..self }
    }
}

/// The faults that are still to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan(Vec<Fault>);

impl Plan {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// What happens to this operation. Each fault counts it.
    pub(super) fn next(&mut self, operation: Operation, path: &Path) -> Option<Effect> {
        let path = path.to_string_lossy();
        let mut effect = None;
        self.0.retain_mut(|fault| {
            let kind = fault.operation.is_none_or(|wanted| wanted == operation);
            if !kind || !fault.path.as_ref().is_none_or(|part| path.contains(part)) {
                return true;
            }
            fault.left = fault.left.saturating_sub(1);
            if fault.left == 0 {
                effect.get_or_insert(fault.effect);
            }
            fault.left > 0 || fault.lasts
        });
        effect
    }
}

/// How many operations of each kind there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Operation::ALL.len()]);

impl Counts {
    /// Those of one kind.
    pub fn of(&self, operation: Operation) -> u64 {
        self.0[operation as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, operation: Operation) {
        self.0[operation as usize] += 1;
    }
}
