//! Sequences: numbers, each of which is given once.
//!
//! Where definitions outlive the process, a sequence goes on behind the last number that it has noted. It notes one
//! ahead of those that it gives:
//!
//! ```text
//! nextval 1 ─ note [behind 33] ─ 1 is given, 2 … 33 without a note ─ nextval 34 ─ note [behind 66] …
//!                                     the process ends ─ open ─ 34 is the next: those in between are given to nobody
//! ```
//!
//! A database that is closed notes the last number that was given.

use super::RelationName;
use super::definition_log::DefinitionLog;
use crate::error::{Mistake, SqlError};
use eris_atomics::{Lock, LockGuard};
use eris_home::{Definition, DefinitionChange, HomeError};
use std::sync::Arc;

/// A sequence. All sessions take its numbers; a number that was taken is not given back if the statement fails.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub name: RelationName,
    pub course: Course,
    state: Lock<State>,
}

/// Which numbers a sequence gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    pub start: i64,
    /// Not zero.
    pub increment: i64,
    pub least: i64,
    pub most: i64,
    /// Whether it begins anew behind its last number.
    pub cycle: bool,
}

/// So many numbers are noted ahead, or as many as a statement takes at once.
const AHEAD: usize = 32;

#[derive(Clone, Copy, Debug)]
struct State {
    at: Position,
    /// How many numbers may be given before the next note.
    ahead: usize,
    kept: Kept,
}

/// Whether a sequence is among the definitions that outlive the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// It is not: there are none, or it has no name yet.
    No,
    Yes,
    /// The change that drops it is being stored. What it would note could come behind that.
    Leaving,
}

/// How far a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// The last number that was given, if any was.
    last: Option<i64>,
    /// The number to be given next; none behind the last one.
    next: Option<i64>,
}

impl Position {
    /// Where a sequence begins.
    fn start(course: &Course) -> Self {
        Position {
            last: None,
            next: Some(course.start),
        }
    }

    /// As it is noted.
    fn text(self) -> String {
        match self {
            Position {
                last: Some(last), ..
            } => format!("{BEHIND} {last}"),
            Position { next, .. } => format!("{WITH} {}", next.expect("no number was given")),
        }
    }
}

const BEHIND: &str = "behind";
const WITH: &str = "with";

impl Sequence {
    pub fn new(name: RelationName, course: Course) -> Arc<Self> {
        let state = State {
            at: Position::start(&course),
            ahead: 0,
            kept: Kept::No,
        };
        Arc::new(Sequence {
            name,
            course,
            state: Lock::new(state),
        })
    }

    /// The next numbers, as many.
    ///
    /// # Errors
    /// There are not so many left. Or they cannot be noted: then none is taken.
    pub fn take(&self, count: usize, log: Option<&DefinitionLog>) -> Result<Vec<i64>, SqlError> {
        let mut state = self.state();
        let mut at = state.at;
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(next) = at.next else {
                state.at = at;
                return Err(self.exhausted());
            };
            at = self.behind(next);
            numbers.push(next);
        }
        if let Some(log) = log
            && count > state.ahead
        {
            let (ahead, steps) = self.ahead(at, count.max(AHEAD));
            self.note(&state, ahead, log)?;
            state.ahead = count + steps;
        }
        state.ahead = state.ahead.saturating_sub(count);
        state.at = at;
        Ok(numbers)
    }

    /// Goes on behind a number, or with it.
    ///
    /// # Errors
    /// It is none of the sequence's, or cannot be noted.
    pub fn set(
        &self,
        number: i64,
        is_given: bool,
        log: Option<&DefinitionLog>,
    ) -> Result<(), SqlError> {
        let Course { least, most, .. } = self.course;
        if !(least..=most).contains(&number) {
            let message = format!(
                "setval: {number} is not between {least} and {most}, the bounds of sequence \"{}\"",
                self.name
            );
            return Err(SqlError::invalid(Mistake::NumericOutOfRange, message));
        }
        let at = match is_given {
            true => self.behind(number),
            false => Position {
                last: None,
                next: Some(number),
            },
        };
        let mut state = self.state();
        if let Some(log) = log {
            self.note(&state, at, log)?;
        }
        (state.at, state.ahead) = (at, 0);
        Ok(())
    }

    /// Where it is behind a number.
    fn behind(&self, number: i64) -> Position {
        Position {
            last: Some(number),
            next: self.course.after(number),
        }
    }

    /// The position that is so many steps ahead, or fewer if there are not so many; and how many.
    fn ahead(&self, from: Position, steps: usize) -> (Position, usize) {
        let mut at = from;
        for done in 0..steps {
            match at.next {
                Some(next) => at = self.behind(next),
                None => return (at, done),
            }
        }
        (at, steps)
    }

    /// Notes that it goes on from there after a crash.
    fn note(&self, state: &State, at: Position, log: &DefinitionLog) -> Result<(), SqlError> {
        match state.kept {
            Kept::No => Ok(()),
            Kept::Yes if log.is_read_only() => Err(SqlError::from(HomeError::ReadOnly {
                what: format!("sequence {}", self.name),
            })),
            Kept::Yes => log.note(DefinitionChange::Is(self.numbers(at))),
            Kept::Leaving => {
                let message = format!("sequence \"{}\" does not exist", self.name);
                Err(SqlError::invalid(Mistake::UndefinedTable, message))
            }
        }
    }

    fn numbers(&self, at: Position) -> Definition {
        Definition {
            name: numbers_of(&self.name),
            text: at.text(),
            objects: Vec::new(),
        }
    }

    /// It is about to be stored as a new one: what has to be noted with it, if it has given numbers.
    pub fn entering(&self) -> Option<Definition> {
        let mut state = self.state();
        if state.at == Position::start(&self.course) {
            return None;
        }
        let (at, steps) = self.ahead(state.at, AHEAD);
        state.ahead = steps;
        Some(self.numbers(at))
    }

    /// It is stored: from now on it notes what it gives.
    pub fn entered(&self) {
        self.state().kept = Kept::Yes;
    }

    /// A change that drops it is about to be stored.
    pub fn leaving(&self) {
        let mut state = self.state();
        if state.kept == Kept::Yes {
            state.kept = Kept::Leaving;
        }
    }

    /// It could not be stored.
    pub fn stays(&self) {
        let mut state = self.state();
        if state.kept == Kept::Leaving {
            state.kept = Kept::Yes;
        }
    }

    /// Goes on where a text says that was noted. `false`: it says nothing of this sequence.
    pub fn go_on(&self, noted: &str) -> bool {
        let mut words = noted.split(' ');
        let (Some(word), Some(number), None) = (words.next(), words.next(), words.next()) else {
            return false;
        };
        let is_given = match word {
            BEHIND => true,
            WITH => false,
            _ => return false,
        };
        let number = number.parse().ok();
        number.is_some_and(|number| self.set(number, is_given, None).is_ok())
    }

    /// Goes on behind a number that was found, unless it is there already. Returns what has to be noted. Of one that
    /// begins anew by itself, nobody knows how far it is.
    pub fn go_on_behind(&self, found: i64) -> Option<Definition> {
        let Course {
            increment,
            least,
            most,
            cycle,
            ..
        } = self.course;
        let mut state = self.state();
        let next = state.at.next?;
        let is_behind = match increment > 0 {
            true => found >= next,
            false => found <= next,
        };
        if cycle || !is_behind || !(least..=most).contains(&found) {
            return None;
        }
        state.at = self.behind(found);
        Some(self.numbers(state.at))
    }

    /// The database is closed: notes how far it is, so that no number is lost. Whoever still takes one notes that anew.
    ///
    /// # Errors
    /// It cannot be noted: then numbers are left out.
    pub fn close(&self, log: &DefinitionLog) -> Result<(), SqlError> {
        let mut state = self.state();
        if state.kept == Kept::Yes && state.ahead > 0 {
            self.note(&state, state.at, log)?;
            state.ahead = 0;
        }
        Ok(())
    }

    /// The last number that was given, by whomever.
    pub fn last(&self) -> Option<i64> {
        self.state().at.last
    }

    /// The number with which a copy goes on; that behind the last one is the first again.
    pub fn goes_on_with(&self) -> i64 {
        self.state().at.next.unwrap_or(self.course.first())
    }

    fn exhausted(&self) -> SqlError {
        let Course {
            increment,
            least,
            most,
            ..
        } = self.course;
        let (end, number) = match increment > 0 {
            true => ("maximum", most),
            false => ("minimum", least),
        };
        let message = format!(
            "nextval: sequence \"{}\" has given its last number: its {end} is {number}",
            self.name
        );
        SqlError::invalid(Mistake::SequenceLimit, message)
            .with_hint(Some("setval goes back; CYCLE begins anew by itself"))
    }

    fn state(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }
}

/// The name of the definition that says how far a sequence is.
pub(super) fn numbers_of(sequence: &RelationName) -> String {
    format!("numbers {}", sequence.full())
}

impl Course {
    /// The aggregate that finds the last of some of its numbers.
    pub fn last_of(&self) -> &'static str {
        match self.increment > 0 {
            true => "max",
            false => "min",
        }
    }

    /// The number from which a cycle begins.
    fn first(&self) -> i64 {
        match self.increment > 0 {
            true => self.least,
            false => self.most,
        }
    }

    /// The number behind another one.
    fn after(&self, number: i64) -> Option<i64> {
        let next = number.checked_add(self.increment);
        let next = next.filter(|next| (self.least..=self.most).contains(next));
        next.or(self.cycle.then(|| self.first()))
    }

    /// What follows the name in CREATE SEQUENCE, or stands in the parentheses of IDENTITY.
    pub fn sql(&self, start: i64) -> String {
        let Course {
            increment,
            least,
            most,
            cycle,
            ..
        } = self;
        let cycle = if *cycle { "CYCLE" } else { "NO CYCLE" };
        format!("INCREMENT BY {increment} MINVALUE {least} MAXVALUE {most} START {start} {cycle}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::SCHEMA;

    fn sequence(start: i64, increment: i64, least: i64, most: i64, cycle: bool) -> Arc<Sequence> {
        let course = Course {
            start,
            increment,
            least,
            most,
            cycle,
        };
        Sequence::new(RelationName::new(SCHEMA, "s"), course)
    }

    fn take(sequence: &Sequence, count: usize) -> Result<Vec<i64>, SqlError> {
        sequence.take(count, None)
    }

    #[test]
    fn numbers_end_or_begin_anew() {
        let ends = sequence(3, 2, 1, 6, false);
        assert_eq!(take(&ends, 2).unwrap(), [3, 5]);
        assert!(take(&ends, 1).is_err());
        assert_eq!(ends.last(), Some(5));
        ends.set(1, false, None).unwrap();
        assert_eq!(take(&ends, 2).unwrap(), [1, 3]);
        assert!(ends.set(7, true, None).is_err());
        let cycles = sequence(0, -1, -1, 1, true);
        assert_eq!(take(&cycles, 5).unwrap(), [0, -1, 1, 0, -1]);
        let wide = sequence(i64::MAX, 1, 1, i64::MAX, false);
        assert_eq!(take(&wide, 1).unwrap(), [i64::MAX]);
        assert!(take(&wide, 1).is_err());
    }

    #[test]
    fn it_goes_on_behind_what_was_found_and_never_back() {
        let ascends = sequence(1, 5, 1, 100, false);
        assert!(ascends.go_on_behind(40).is_some());
        assert!(ascends.go_on_behind(40).is_none());
        assert!(ascends.go_on_behind(7).is_none());
        assert!(ascends.go_on_behind(101).is_none());
        assert_eq!(take(&ascends, 2).unwrap(), [45, 50]);
        let descends = sequence(-1, -1, -100, -1, false);
        assert!(descends.go_on_behind(-40).is_some());
        assert!(descends.go_on_behind(-30).is_none());
        assert_eq!(take(&descends, 1).unwrap(), [-41]);
        let cycles = sequence(1, 1, 1, 3, true);
        assert!(cycles.go_on_behind(2).is_none());
    }

    #[test]
    fn no_number_is_given_twice() {
        let sequence = sequence(1, 1, 1, i64::MAX, false);
        let mut all: Vec<i64> = std::thread::scope(|scope| {
            let take = || {
                (0..500)
                    .flat_map(|_| take(&sequence, 3).unwrap())
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            taken.flatten().collect()
        });
        all.sort_unstable();
        assert_eq!(all, (1..=6000).collect::<Vec<_>>());
    }
}
