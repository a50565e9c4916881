//! Sequences: numbers, each of which is given once.

use super::RelationName;
use crate::error::{Mistake, SqlError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A sequence. All sessions take its numbers; a number that was taken is not given back if the statement fails.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub name: RelationName,
    pub course: Course,
    state: Mutex<State>,
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

#[derive(Clone, Copy, Debug)]
struct State {
    /// The last number that was given, if any was.
    last: Option<i64>,
    /// The number to be given next; none behind the last one.
    next: Option<i64>,
}

impl Sequence {
    pub fn new(name: RelationName, course: Course) -> Arc<Self> {
        let state = State {
            last: None,
            next: Some(course.start),
        };
        Arc::new(Sequence {
            name,
            course,
            state: Mutex::new(state),
        })
    }

    /// The next numbers, as many.
    ///
    /// # Errors
    /// There are not so many left.
    pub fn take(&self, count: usize) -> Result<Vec<i64>, SqlError> {
        let mut state = self.state();
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            let next = state.next.ok_or_else(|| self.exhausted())?;
            *state = State {
                last: Some(next),
                next: self.course.after(next),
            };
            taken.push(next);
        }
        Ok(taken)
    }

    /// Goes on behind a number, or with it.
    ///
    /// # Errors
    /// It is none of the sequence's.
    pub fn set(&self, number: i64, is_given: bool) -> Result<(), SqlError> {
        let Course { least, most, .. } = self.course;
        if !(least..=most).contains(&number) {
            let message = format!(
                "setval: {number} is not between {least} and {most}, the bounds of sequence \"{}\"",
                self.name
            );
            return Err(SqlError::invalid(Mistake::NumericOutOfRange, message));
        }
        *self.state() = match is_given {
            true => State {
                last: Some(number),
                next: self.course.after(number),
            },
            false => State {
                last: None,
                next: Some(number),
            },
        };
        Ok(())
    }

    /// The last number that was given, by whomever.
    pub fn last(&self) -> Option<i64> {
        self.state().last
    }

    /// The number with which a copy goes on; that behind the last one is the first again.
    pub fn goes_on_with(&self) -> i64 {
        self.state().next.unwrap_or(self.course.first())
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

    /// The state, also behind a panic: every change is one assignment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
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

    #[test]
    fn numbers_end_or_begin_anew() {
        let ends = sequence(3, 2, 1, 6, false);
        assert_eq!(ends.take(2).unwrap(), [3, 5]);
        assert!(ends.take(1).is_err());
        assert_eq!(ends.last(), Some(5));
        ends.set(1, false).unwrap();
        assert_eq!(ends.take(2).unwrap(), [1, 3]);
        assert!(ends.set(7, true).is_err());
        let cycles = sequence(0, -1, -1, 1, true);
        assert_eq!(cycles.take(5).unwrap(), [0, -1, 1, 0, -1]);
        let wide = sequence(i64::MAX, 1, 1, i64::MAX, false);
        assert_eq!(wide.take(1).unwrap(), [i64::MAX]);
        assert!(wide.take(1).is_err());
    }

    #[test]
    fn no_number_is_given_twice() {
        let sequence = sequence(1, 1, 1, i64::MAX, false);
        let mut all: Vec<i64> = std::thread::scope(|scope| {
            let take = || {
                (0..500)
                    .flat_map(|_| sequence.take(3).unwrap())
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
