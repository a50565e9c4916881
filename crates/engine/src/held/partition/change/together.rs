//! Changes of several clients that have met at their owner, done as one.
//!
//! ```text
//! met        put 7 · put 3 · remove 5 · put 9 · put 7
//! runs      [put 7   put 3] [remove 5] [put 9   put 7]
//!               │
//!               ▼
//!    one look into the index ─▶ as expected? ─▶ one encoding ─▶ one timestamp, one record in the log
//!                                   │
//!                                   └▶ whose key has another row, or whose row stays as it is, is left out
//! ```
//!
//! All changes of a run put rows in, given or computed, or all remove some. No key occurs twice. So nobody can tell in
//! which order they were done. The order of runs is that of their arrival. If a run cannot be done as one, nothing of
//! it is done, and its halves are tried.

use super::{Changed, New, RowChange, Uncommitted};
use crate::error::EngineError;
use crate::held::partition::Partition;
use crate::object::keys::Keys;
use crate::sequencer::Sequencer;
use eris_column::ObjectMemory;
use eris_fragment::bytes_of;
use eris_types::RowId;
use hashbrown::HashSet;
use std::hash::BuildHasher;

/// Changes of more rows gain nothing from others.
const FEW: usize = 32;

/// A run has no more rows and bytes than that: the owner's other work waits meanwhile, and rows of many bytes would
/// become a chunk of their own.
const RUN_ROWS: usize = 1_024;
const RUN_BYTES: u64 = 256 << 10;

/// What a run has so far.
#[derive(Default)]
pub(crate) struct Run {
    rows: usize,
    bytes: u64,
    /// Whether it removes rows.
    removes: Option<bool>,
    /// What keys are told apart by. Two may look alike; then the later one waits for its turn.
    keys: HashSet<u64>,
}

impl Run {
    /// Whether a change may be done as one with those before it. If not, the run has ended.
    pub fn takes(&mut self, change: &RowChange) -> bool {
        let (mut rows, mut bytes) = (change.keys.len(), 0);
        if let New::Rows(new) = &change.new {
            rows = rows.max(new.num_rows());
            bytes = new.columns().iter().map(bytes_of).sum();
        }
        let removes = matches!(change.new, New::Nothing);
        self.rows += rows;
        self.bytes += bytes;
        rows <= FEW
            && self.rows <= RUN_ROWS
            && self.bytes <= RUN_BYTES
            && *self.removes.get_or_insert(removes) == removes
            && self.add_keys(&change.keys)
    }

    /// Adds keys, all of which must be new.
    fn add_keys(&mut self, keys: &Keys) -> bool {
        (0..keys.len()).all(|row| {
            let number = match keys {
                Keys::Words(words) => words[row],
                Keys::Bytes(..) => self.keys.hasher().hash_one(keys.bytes(row)),
            };
            self.keys.insert(number)
        })
    }
}

impl Partition {
    /// Executes a run as one change. `None`, or an error: nothing was done.
    pub fn change_run(
        &mut self,
        run: &[&RowChange],
        home: ObjectMemory<'_>,
        sequencer: &Sequencer,
    ) -> Result<Option<Vec<Changed>>, EngineError> {
        let statement = run[0].statement;
        if self.is_prepared_by_another(statement) {
            return Ok(None);
        }
        self.forget_others(statement);
        let keys: Vec<&Keys> = run.iter().map(|change| &*change.keys).collect();
        let keys = Keys::joined(&keys);
        let found = (self.index.as_ref()).map_or_else(Vec::new, |index| index.get_many(&keys));
        let mut rest = found.as_slice();
        let mut left_out = Vec::with_capacity(run.len());
        let (mut keys, mut current, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for change in run {
            let own: &[Option<RowId>];
            (own, rest) = rest.split_at(change.keys.len());
            match self.rows_of(change, own)? {
                Err(otherwise) => left_out.push(Some(otherwise)),
                Ok(new) => {
                    keys.push(&*change.keys);
                    current.extend_from_slice(own);
                    rows.extend(new);
                    left_out.push(None);
                }
            }
        }
        if keys.is_empty() {
            return Ok(Some(left_out.into_iter().flatten().collect()));
        }
        let added = match rows.is_empty() {
            true => None,
            false => match self.encode(rows, home)? {
                None => return Ok(None),
                encoded => encoded,
            },
        };
        let keys = Keys::joined(&keys);
        let mut uncommitted = Uncommitted {
            partition: self,
            statement,
            keys: &keys,
            current: &current,
            given: 0,
            is_committed: false,
        };
        let (first, deleted) = uncommitted.write(added, home)?;
        if !uncommitted.partition.has_room(statement, home)? {
            return Ok(None);
        }
        let Some(at) = sequencer.draw(home.memory.node()) else {
            return Ok(None);
        };
        uncommitted.commit(at, first, &deleted, home, sequencer);
        let mut rest = current.as_slice();
        let own = run.iter().zip(left_out).map(|(change, left_out)| {
            left_out.unwrap_or_else(|| {
                let own: &[Option<RowId>];
                (own, rest) = rest.split_at(change.keys.len());
                let deleted = own.iter().flatten().count() as u64;
                Changed::Committed { at, deleted }
            })
        });
        Ok(Some(own.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::partition::Expected;
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use eris_types::StatementId;
    use std::sync::Arc;

    fn change(keys: Keys, new: New) -> RowChange {
        RowChange {
            statement: StatementId(1),
            keys: Arc::new(keys),
            expected: Expected::Any,
            new,
            write_lock: None,
            kept: None,
        }
    }

    fn removal(keys: &[u64]) -> RowChange {
        change(Keys::Words(keys.to_vec()), New::Nothing)
    }

    fn put(key: &str, bytes: usize) -> RowChange {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(bytes)]));
        let rows = RecordBatch::try_from_iter([("text", text)]).unwrap();
        let key = key.as_bytes().to_vec();
        let end = key.len();
        change(Keys::Bytes(key, vec![end]), New::Rows(rows))
    }

    /// How many changes each run has.
    fn runs(changes: &[RowChange]) -> Vec<usize> {
        let (mut runs, mut run) = (Vec::new(), Run::default());
        for change in changes {
            if runs.is_empty() || !run.takes(change) {
                runs.push(0);
                run = Run::default();
                run.takes(change);
            }
            *runs.last_mut().unwrap() += 1;
        }
        runs
    }

    #[test]
    fn a_run_has_no_key_twice() {
        let changes = [
            removal(&[7]),
            removal(&[3, 4]),
            removal(&[4, 5]),
            removal(&[6]),
        ];
        assert_eq!(runs(&changes), [2, 2]);
        let changes = [put("a", 1), put("ab", 1), put("a", 1), put("b", 1)];
        assert_eq!(runs(&changes), [2, 2]);
        assert!(!Run::default().takes(&removal(&[2, 2])), "its own mistake");
    }

    #[test]
    fn a_run_puts_or_removes_and_is_short() {
        assert_eq!(runs(&[put("a", 1), put("b", 1), removal(&[1])]), [2, 1]);
        let many: Vec<u64> = (0..FEW as u64 + 1).collect();
        assert!(!Run::default().takes(&removal(&many)));
        let single: Vec<RowChange> = (0..3_000).map(|key| removal(&[key])).collect();
        assert_eq!(runs(&single), [1_024, 1_024, 952]);
        let long = RUN_BYTES as usize / 2 - 100;
        assert_eq!(
            runs(&[put("a", long), put("b", long), put("c", long)]),
            [2, 1]
        );
    }
}
