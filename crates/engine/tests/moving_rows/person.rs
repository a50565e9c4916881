//! Who writes: a person's rows are its own, so that it knows what each statement must find.

use super::Random;
use super::history::Change;
use super::table::*;
use eris_engine::RowClient;
use eris_types::RowId;
use futures::executor::block_on;
use std::ops::Bound;

/// Somebody who changes some rows, and what they are then.
pub struct Person<'a> {
    pub number: i64,
    pub table: &'a Table,
    pub client: Option<RowClient>,
    pub random: Random,
    pub version: i64,
}

impl Person<'_> {
    /// Some of its own ids, ascending: one, a few, or many, side by side or scattered; mostly of a quarter of all, so
    /// that most chunks stay whole.
    fn ids(&mut self) -> Vec<i64> {
        let limit = [self.table.ids / 4, self.table.ids / 4, self.table.ids];
        let own = limit[self.random.below(3) as usize] / PERSONS;
        let count = [1, 1, 1, 2, 30, 500][self.random.below(6) as usize];
        let (first, step) = (
            self.random.id(own),
            [1, 7_919][self.random.below(2) as usize],
        );
        let ids = (0..count).map(|at| (first + at * step) % own * PERSONS + self.number);
        let mut ids: Vec<i64> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// New values for them.
    fn changes(&mut self, ids: &[i64]) -> Vec<Change> {
        self.version += 1;
        let value = |id: &i64| (*id, Some(value_of(*id, self.version)));
        ids.iter().map(value).collect()
    }

    fn has(&self, id: i64) -> bool {
        self.table.histories.get(id).is_some()
    }

    /// What is done changes rows like this.
    fn change<T>(&mut self, changes: &[Change], act: impl FnOnce(&mut Self) -> T) -> T {
        self.table.histories.begin(self.number, changes);
        let done = act(self);
        self.table.histories.end(self.number);
        done
    }

    pub fn operate(&mut self) {
        let ids = self.ids();
        match self.random.below(8) {
            0 => self.update(),
            1 => self.add(ids, true),
            2 => self.add(ids, false),
            3 => self.range(),
            _ => match self.client.take() {
                Some(mut client) => {
                    self.by_key(&mut client, &ids);
                    self.client = Some(client);
                }
                None => self.range(),
            },
        }
    }

    fn by_key(&mut self, client: &mut RowClient, ids: &[i64]) {
        let keys = [column(ids.iter().copied())];
        let there = ids.iter().filter(|id| self.has(**id)).count() as u64;
        match self.random.below(6) {
            0 => {
                let changes = self.changes(ids);
                let put = |_: &mut Self| block_on(client.put(batch(&changes))).unwrap();
                assert_eq!(self.change(&changes, put), there);
            }
            1 => {
                let changes = self.changes(ids);
                // What is not to be done does nothing.
                let shown = if there == 0 { &changes[..] } else { &[] };
                let insert = |_: &mut Self| block_on(client.insert(batch(&changes))).unwrap();
                assert_eq!(self.change(shown, insert), there == 0);
            }
            2 => {
                let changes: Vec<Change> = ids.iter().map(|id| (*id, None)).collect();
                let remove = |_: &mut Self| block_on(client.remove(&keys)).unwrap();
                assert_eq!(self.change(&changes, remove), there);
            }
            3 => {
                let first = ids[0];
                let last = first + self.random.id(2_000);
                let limit = [5, 100_000][self.random.below(2) as usize];
                let (low, high) = ([column([first])], [column([last])]);
                let bounds = (Bound::Included(&low[..]), Bound::Included(&high[..]));
                let found = block_on(client.range(bounds, limit, &COLUMNS)).unwrap();
                let rows = rows_of(&found);
                assert!(rows.is_sorted_by(|a, b| a.id < b.id) && rows.len() <= limit);
                let end = match rows.len() == limit {
                    true => rows.last().map_or(last, |row| row.id),
                    false => last,
                };
                self.check(first..end.min(self.table.ids - 1) + 1, &rows);
            }
            _ => {
                let found = block_on(client.get(&keys, &COLUMNS)).unwrap();
                let rows = rows_of(&found.rows);
                let expected = ids.iter().map(|id| self.table.histories.get(*id));
                assert!(
                    expected.flatten().eq(rows.iter().map(|row| row.value)),
                    "{ids:?}: {rows:?}"
                );
            }
        }
    }

    /// A statement that adds rows; or does not, for it is given up.
    fn add(&mut self, mut ids: Vec<i64>, commits: bool) {
        ids.retain(|id| !self.has(*id));
        let changes = self.changes(&ids);
        if commits {
            return self.change(&changes, |this| this.table.add(&changes));
        }
        let mut writer = self.table.engine.writer(self.table.object).unwrap();
        block_on(writer.append(batch(&changes))).unwrap();
    }

    /// A statement that changes or removes what it finds.
    fn update(&mut self) {
        let table = self.table;
        let mut changer = block_on(table.engine.changer(table.object)).unwrap();
        let first = self.random.id(table.ids / 4);
        let ids = first..first + 1 + self.random.id(1_000);
        let held = table.engine.hold();
        let mut rows = table.read(held.at(), 0, ids.clone());
        rows.retain(|row| row.id % PERSONS == self.number);
        let own: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let mut changes = self.changes(&own);
        if self.random.below(3) == 0 {
            changes.iter_mut().for_each(|(_, value)| *value = None);
        }
        let found: Vec<RowId> = rows.iter().map(|row| row.row_id).collect();
        self.check(ids, &rows);
        changer.delete(found.into_iter()).unwrap();
        self.change(&changes, |_| {
            block_on(changer.append(batch(&changes))).unwrap();
            block_on(changer.commit()).unwrap();
        });
    }

    fn range(&mut self) {
        let first = self.random.id(self.table.ids);
        let ids = first..(first + 1 + self.random.id(3_000)).min(self.table.ids);
        let held = self.table.engine.hold();
        let rows = self.table.read(held.at(), 0, ids.clone());
        self.check(ids, &rows);
    }

    /// Of its own rows it knows what they are.
    fn check(&self, ids: Ids, rows: &[Row]) {
        self.table.histories.check_own(self.number, ids, rows);
    }
}
