//! What rows a table must have, and a checker for what is read of it.
//!
//! ```text
//! person   ├─ begin: what is to change ──┤ statement ├── end: it has changed ─┤
//! reader          ├─ all histories locked: copied, snapshot held ─┤ reads … reads
//! ```
//!
//! Every person changes rows of one remainder of the ids, one statement after the other. A snapshot that is taken while
//! all histories are locked shows what had ended before it, and nothing that had not begun. Of a statement that was
//! under way it shows all or nothing, and the same each time.

use super::table::{Ids, Row, text_of, value_of};
use eris_engine::{Engine, HeldSnapshot};
use std::sync::{Mutex, MutexGuard};

/// An id, and the value that its row is to have; none without.
pub type Change = (i64, Option<i64>);

/// What each person's rows are.
pub struct Histories(Vec<Mutex<History>>);

pub struct History {
    /// The values of this person's rows, by id over the number of persons.
    values: Vec<Option<i64>>,
    /// What the statement changes that is under way.
    pending: Vec<Change>,
}

/// What reads at one snapshot must show.
pub struct Expected {
    pub held: HeldSnapshot,
    values: Vec<Option<i64>>,
    /// Of statements that were under way.
    undecided: Vec<Vec<Change>>,
}

impl Histories {
    /// Of so many persons; all of the ids have rows of the first version.
    pub fn new(persons: i64, ids: i64) -> Self {
        let of = |person: i64| {
            let own = (person..ids).step_by(persons as usize);
            Mutex::new(History {
                values: own.map(|id| Some(value_of(id, 0))).collect(),
                pending: Vec::new(),
            })
        };
        Histories((0..persons).map(of).collect())
    }

    pub fn persons(&self) -> i64 {
        self.0.len() as i64
    }

    fn lock(&self, person: i64) -> MutexGuard<'_, History> {
        let history = self.0[person as usize].lock();
        history.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The value of somebody's row.
    pub fn get(&self, id: i64) -> Option<i64> {
        let persons = self.persons();
        self.lock(id % persons).values[(id / persons) as usize]
    }

    /// A person's statement begins.
    pub fn begin(&self, person: i64, changes: &[Change]) {
        self.lock(person).pending = changes.to_vec();
    }

    /// It has committed.
    pub fn end(&self, person: i64) {
        let persons = self.persons();
        let mut history = self.lock(person);
        for (id, value) in std::mem::take(&mut history.pending) {
            history.values[(id / persons) as usize] = value;
        }
    }

    /// What a person reads of its own rows between two statements.
    pub fn check_own(&self, person: i64, ids: Ids, rows: &[Row]) {
        let persons = self.persons();
        let mut found: Vec<(i64, i64)> = Vec::new();
        for row in rows.iter().filter(|row| row.id % persons == person) {
            assert_eq!(row.text, text_of(row.value), "columns of different rows");
            found.push((row.id, row.value));
        }
        found.sort_unstable();
        let history = self.lock(person);
        let own = ids.clone().filter(|id| id % persons == person);
        let own = own.filter_map(|id| Some((id, history.values[(id / persons) as usize]?)));
        let wanted: Vec<(i64, i64)> = own.collect();
        if found != wanted {
            // Not under the lock, which others need.
            drop(history);
            assert_eq!(found, wanted, "found, expected, {ids:?}");
        }
    }

    /// A snapshot, and what it shows.
    pub fn expect(&self, engine: &Engine) -> Expected {
        let all: Vec<_> = (0..self.persons()).map(|one| self.lock(one)).collect();
        let held = engine.hold();
        let ids = all.iter().map(|one| one.values.len()).sum::<usize>();
        let value = |id: usize| all[id % all.len()].values[id / all.len()];
        Expected {
            held,
            values: (0..ids).map(value).collect(),
            undecided: all.iter().map(|one| one.pending.clone()).collect(),
        }
    }
}

impl Expected {
    /// The value of a row, if that is known.
    pub fn get(&self, id: i64) -> Option<i64> {
        let is_open = self.undecided.iter().flatten().any(|(one, _)| *one == id);
        self.values[id as usize].filter(|_| !is_open)
    }

    /// The number of rows and the sum of their ids, if it is known which statements are visible.
    pub fn count_and_sum(&self) -> Option<(i64, i64)> {
        if self.undecided.iter().any(|changes| !changes.is_empty()) {
            return None;
        }
        let ids = (0i64..).zip(&self.values);
        let ids = ids.filter(|(_, value)| value.is_some());
        Some(ids.fold((0, 0), |(count, sum), (id, _)| (count + 1, sum + id)))
    }

    /// Rows that were found with some ids, in any order, must be all there are.
    pub fn check(&mut self, ids: Ids, mut rows: Vec<Row>) {
        rows.sort_unstable_by_key(|row| row.id);
        for row in &rows {
            assert_eq!(row.text, text_of(row.value), "columns of different rows");
        }
        for changes in &mut self.undecided {
            // One that makes a difference says which it is.
            let told = changes
                .iter()
                .find(|(id, value)| ids.contains(id) && self.values[*id as usize] != *value);
            let Some(&(id, value)) = told else {
                continue;
            };
            let found = rows.binary_search_by_key(&id, |row| row.id);
            let is_visible = found.ok().map(|at| rows[at].value) == value;
            for (id, value) in std::mem::take(changes) {
                if is_visible {
                    self.values[id as usize] = value;
                }
            }
        }
        let wanted = ids.clone().map(|id| (id, self.values[id as usize]));
        let mut wanted = wanted.filter_map(|(id, value)| Some((id, value?)));
        let at = self.held.at();
        for row in &rows {
            let found = (row.id, row.value);
            assert_eq!(
                Some(found),
                wanted.next(),
                "found, expected, {ids:?} at {at}"
            );
        }
        assert_eq!(wanted.next(), None, "it is lost, {ids:?} at {at}");
    }
}
