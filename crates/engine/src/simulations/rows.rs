//! Operations on rows by their keys, in one thread under a seeded schedule, against what must hold of any history of
//! them.
//!
//! Accounts have balances, and lie in several partitions. A transfer moves something from one account to another. An
//! increment adds one to an account, by reading and writing or at the account's owner. A statement with the write lock
//! for itself adds one to all. So at every snapshot the sum of all balances is what they had at first, and at least the
//! increments that had committed before it was read, and at most those that had begun. Of other keys rows are put in if
//! nobody has them, and removed: such a row is there as often as it was put in more often than removed.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::rows`.

use crate::clients::engine::Engine;
use crate::simulations::simulated::{Simulated, for_seeds, move_keys};
use crate::{Becomes, Compute, Computed, EngineError, Partitioning, RowClient};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::{Faults, Random};
use eris_home::Newest;
use eris_numa::Topology;
use eris_types::{ColumnId, ObjectId};
use std::cell::RefCell;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

const ACCOUNTS: i64 = 12;
const BALANCE: i64 = 1_000;
/// Keys beyond the accounts', of rows that come and go.
const OTHERS: i64 = 4;
const KEY: ColumnId = ColumnId(0);
const VALUE: ColumnId = ColumnId(1);

#[derive(Debug, Default)]
struct History {
    /// Increments of single accounts that have committed, and those that have begun.
    committed: i64,
    begun: i64,
    /// Per other key, how often it was put in, less how often it was removed.
    others: [i64; OTHERS as usize],
}

struct Client {
    engine: Engine,
    object: ObjectId,
    rows: RowClient,
    history: Rc<RefCell<History>>,
    random: Random,
}

/// The row that an account gets, but for its value, which is one more than it was.
#[derive(Debug)]
struct Increment(RecordBatch);

impl Compute for Increment {
    fn reads(&self) -> &[ColumnId] {
        &[VALUE]
    }

    fn may_add(&self) -> bool {
        false
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        let value = row.expect("accounts are there")[0].as_primitive::<Int64Type>();
        let mut columns = self.0.columns().to_vec();
        columns[VALUE.index()] = column([value.value(0) + 1]);
        Becomes::Row(RecordBatch::try_new(self.0.schema(), columns).unwrap())
    }
}

/// A row, where none is.
#[derive(Debug)]
struct Come(RecordBatch);

impl Compute for Come {
    fn reads(&self) -> &[ColumnId] {
        &[]
    }

    fn may_add(&self) -> bool {
        true
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        match row {
            Some(_) => Becomes::Same,
            None => Becomes::Row(self.0.clone()),
        }
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, false),
        Field::new("value", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

impl Client {
    async fn operations(mut self) {
        for _ in 0..10 {
            match self.random.below(12) {
                10.. => {
                    move_keys(
                        &self.engine,
                        self.object,
                        &mut self.random,
                        -2..ACCOUNTS + OTHERS + 2,
                    )
                    .await
                }
                0..4 => self.transfer().await,
                4..6 => self.increment().await,
                6 => self.increment_all().await,
                7 => self.come_or_go().await,
                _ => self.read().await,
            }
        }
    }

    /// Rows with texts: of few, which have codes soon, or new ones, for which another AEU has to be asked.
    fn batch(&mut self, keys: Vec<i64>, values: Vec<i64>) -> RecordBatch {
        let texts = keys.iter().map(|key| match self.random.below(3) {
            0 => None,
            1 => Some(format!("one of few {}", key % 3)),
            _ => Some(format!("new {}", self.random.bits())),
        });
        let texts: arrow_array::StringViewArray = texts.collect();
        let columns = vec![column(keys), column(values), Arc::new(texts) as ArrayRef];
        RecordBatch::try_new(schema(), columns).unwrap()
    }

    /// Changes the values of some accounts, however often somebody else comes in between.
    async fn change(&mut self, keys: Vec<i64>, change: impl Fn(usize, i64) -> i64) -> bool {
        loop {
            let wanted = [column(keys.iter().copied())];
            let found = self.rows.get(&wanted, &[VALUE]).await.unwrap();
            assert_eq!(found.of.len(), keys.len(), "an account is missing");
            let values = found.rows.column(0).as_primitive::<Int64Type>().values();
            let values = values.iter().enumerate();
            let values = values.map(|(place, &value)| change(place, value)).collect();
            let batch = self.batch(keys.clone(), values);
            match self.rows.put_if_unchanged(&found, batch).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(EngineError::Panicked { .. }) => return false,
                Err(other) => panic!("{other}"),
            }
        }
    }

    async fn transfer(&mut self) {
        let from = self.random.below(ACCOUNTS as usize) as i64;
        let to = (from + 1 + self.random.below(ACCOUNTS as usize - 1) as i64) % ACCOUNTS;
        let amount = self.random.below(100) as i64;
        self.change(vec![from, to], |place, value| match place {
            0 => value - amount,
            _ => value + amount,
        })
        .await;
    }

    async fn increment(&mut self) {
        self.history.borrow_mut().begun += 1;
        let account = self.random.below(ACCOUNTS as usize) as i64;
        let done = match self.random.one_in(2) {
            true => self.increment_at_home(account).await,
            false => self.change(vec![account], |_, value| value + 1).await,
        };
        if done {
            self.history.borrow_mut().committed += 1;
        }
    }

    /// Has the account's owner add one to it, or does it itself, if that cannot: the row may have a text without code.
    async fn increment_at_home(&mut self, account: i64) -> bool {
        let increment = Arc::new(Increment(self.batch(vec![account], vec![0])));
        match self.rows.compute(&[column([account])], increment).await {
            Ok(Computed::Put) => true,
            Ok(Computed::Rejected) => self.change(vec![account], |_, value| value + 1).await,
            Err(EngineError::Panicked { .. }) => false,
            other => panic!("{other:?}"),
        }
    }

    /// Reads all accounts and writes them anew, while nobody else changes anything.
    async fn increment_all(&mut self) {
        self.history.borrow_mut().begun += ACCOUNTS;
        let written = async {
            let mut writer = self.engine.changer(self.object).await?;
            let (keys, columns) = ([column(0..ACCOUNTS)], Arc::from([VALUE]));
            let found = self.rows.find(&keys, &columns, Newest::Applied).await?;
            let values = found.rows.column(0).as_primitive::<Int64Type>();
            let values = values.values().iter().map(|value| value + 1).collect();
            writer.delete(found.row_ids().collect::<Vec<_>>().into_iter())?;
            let batch = self.batch((0..ACCOUNTS).collect(), values);
            writer.append(batch).await?;
            writer.commit().await
        };
        match written.await {
            Ok(_) => self.history.borrow_mut().committed += ACCOUNTS,
            Err(EngineError::Panicked { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    async fn come_or_go(&mut self) {
        let other = self.random.below(OTHERS as usize);
        let key = ACCOUNTS + other as i64;
        let done = if self.random.one_in(3) {
            let come = Arc::new(Come(self.batch(vec![key], vec![0])));
            let computed = self.rows.compute(&[column([key])], come).await;
            computed.map(|computed| i64::from(computed == Computed::Put))
        } else if self.random.one_in(2) {
            let batch = self.batch(vec![key], vec![0]);
            self.rows.insert(batch).await.map(i64::from)
        } else {
            let removed = self.rows.remove(&[column([key])]).await;
            removed.map(|rows| -(rows as i64))
        };
        match done {
            Ok(more) => self.history.borrow_mut().others[other] += more,
            Err(EngineError::Panicked { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    async fn read(&mut self) {
        let least = self.history.borrow().committed;
        let values = if self.random.one_in(2) {
            let found = self.rows.get(&[column(0..ACCOUNTS)], &[VALUE]).await;
            found.unwrap().rows
        } else {
            let end = [column([ACCOUNTS])];
            let twice = [(Bound::Unbounded, Bound::Excluded(&end[..])); 2];
            let rows = self.rows.ranges(&twice, usize::MAX, &[VALUE, KEY]);
            let [rows, again] = <[RecordBatch; 2]>::try_from(rows.await.unwrap()).unwrap();
            assert_eq!(rows, again, "both are read at one snapshot");
            let keys = rows.column(1).as_primitive::<Int64Type>();
            assert!(keys.values().iter().copied().eq(0..ACCOUNTS), "{keys:?}");
            rows
        };
        assert_eq!(values.num_rows() as i64, ACCOUNTS, "an account is missing");
        let values = values.column(0).as_primitive::<Int64Type>().values();
        let sum = values.iter().sum::<i64>() - ACCOUNTS * BALANCE;
        let most = self.history.borrow().begun;
        assert!((least..=most).contains(&sum), "{sum} of {least} to {most}");
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let mut simulated = Simulated::by_chance(seed, &mut random, 60);
    let engine = simulated.engine.clone();
    let object = (engine.create_with_key("t", schema(), Partitioning::Size, &[KEY])).unwrap();
    let history = Rc::new(RefCell::new(History::default()));
    let client = |random: &mut Random| Client {
        engine: engine.clone(),
        object,
        rows: engine.rows(object).unwrap(),
        history: history.clone(),
        random: Random::new(random.bits()),
    };
    // The accounts are there before anybody comes.
    let mut first = client(&mut random);
    simulated.client(async move {
        let balances = vec![BALANCE; ACCOUNTS as usize];
        let batch = first.batch((0..ACCOUNTS).collect(), balances);
        while let Err(error) = first.rows.put(batch.clone()).await {
            assert!(matches!(error, EngineError::Panicked { .. }), "{error}");
        }
    });
    simulated.run();
    for _ in 0..2 + random.below(4) {
        simulated.client(client(&mut random).operations());
    }
    simulated.run();
    let mut last = client(&mut random);
    simulated.client(async move {
        let keys = [column(ACCOUNTS..ACCOUNTS + OTHERS)];
        let found = last.rows.get(&keys, &[]).await.unwrap().of;
        let expected = last.history.borrow().others;
        let there = (0..OTHERS as usize).map(|other| i64::from(found.contains(&(other as u32))));
        assert!(there.eq(expected), "{found:?}, not {expected:?}");
        last.read().await;
    });
    simulated.run();
    simulated.drop_object(object);
    drop(engine);
    simulated.end();
}

#[test]
fn accounts_add_up_whatever_the_schedule() {
    for_seeds(1_000, simulate);
}

/// Changes of other keys that meet at an owner share a commit. Each still gets its own answer.
#[test]
fn changes_that_meet_are_one_commit() {
    const ROWS: i64 = 24;
    let (changes, commits) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(0)));
    for_seeds(50, |seed| {
        let mut simulated = Simulated::new(seed, Topology::fake(1, 1), Faults::default());
        let engine = simulated.engine.clone();
        let key = [KEY];
        let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
        let object = object.unwrap();
        let row = |key: i64, value: i64| {
            let text = arrow_array::StringViewArray::new_null(1);
            let columns = vec![column([key]), column([value]), Arc::new(text) as ArrayRef];
            RecordBatch::try_new(schema(), columns).unwrap()
        };
        for round in 0..3 {
            let before = engine.newest(Newest::Applied).0;
            for key in 0..ROWS {
                let mut rows = engine.rows(object).unwrap();
                let changes = Rc::clone(&changes);
                simulated.client(async move {
                    let replaced = rows.put(row(key, round)).await.unwrap();
                    assert_eq!(replaced, u64::from(round > 0), "key {key}");
                    if round > 0 {
                        let other = row((key + 1) % ROWS, -1);
                        assert!(!rows.insert(other).await.unwrap(), "key {key} is taken");
                    }
                    *changes.borrow_mut() += 1;
                });
            }
            simulated.run();
            *commits.borrow_mut() += engine.newest(Newest::Applied).0 - before;
        }
        let mut rows = engine.rows(object).unwrap();
        simulated.client(async move {
            let found = rows.get(&[column(0..ROWS)], &[VALUE]).await.unwrap();
            let values = found.rows.column(0).as_primitive::<Int64Type>().values();
            assert_eq!(found.of.len() as i64, ROWS);
            assert!(values.iter().all(|value| *value == 2), "{values:?}");
        });
        simulated.run();
        simulated.drop_object(object);
        drop(engine);
        simulated.end();
    });
    let (changes, commits) = (*changes.borrow(), *commits.borrow());
    println!("{commits} commits for {changes} rows");
    assert!(commits * 4 < changes * 3, "few have met another one");
}
