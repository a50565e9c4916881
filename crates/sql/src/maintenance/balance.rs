//! Balancing as SQL sees it: what is set, for all tables and for one.

use crate::catalog::TableBalancing;
use crate::error::{Mistake, SqlError};
use eris_atomics::{Lock, LockGuard};
use eris_home::{Algorithm, Balanced, Balancer, Balancing, Home};
use eris_types::ObjectId;
use std::collections::HashMap;
use std::time::Duration;

/// Ways to balance, as they are written.
pub(crate) const WAYS: [&str; 3] = ["moving_average", "off", "one_shot"];

/// A shorter period tells too little.
const LEAST_PERIOD: Duration = Duration::from_millis(10);

/// The loop that balances, and what it was told.
pub(crate) struct Balance {
    /// None where there is nothing to balance.
    balancer: Option<Box<dyn Balancer>>,
    state: Lock<BalanceSettings>,
}

#[derive(Default)]
struct BalanceSettings {
    chosen: Chosen,
    own: HashMap<ObjectId, TableBalancing>,
}

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// One of [`WAYS`].
    pub way: String,
    pub neighbours: usize,
    /// In percent.
    pub threshold: u64,
    pub period: Duration,
}

impl Default for Chosen {
    fn default() -> Self {
        let Balancing {
            algorithm,
            threshold,
            period,
        } = Balancing::default();
        let (way, neighbours) = match algorithm {
            Some(Algorithm::MovingAverage(neighbours)) => ("moving_average", neighbours),
            Some(Algorithm::OneShot) => ("one_shot", 1),
            None => ("off", 1),
        };
        Chosen {
            way: way.to_owned(),
            neighbours,
            threshold: (threshold * 100.0).round() as u64,
            period,
        }
    }
}

impl Chosen {
    /// For a table that has something of its own.
    fn with(&self, own: &TableBalancing) -> Chosen {
        Chosen {
            way: own.way.clone().unwrap_or_else(|| self.way.clone()),
            neighbours: own.neighbours.unwrap_or(self.neighbours),
            threshold: own.threshold.unwrap_or(self.threshold),
            period: self.period,
        }
    }

    fn balancing(&self) -> Balancing {
        Balancing {
            algorithm: match &self.way[..] {
                "moving_average" => Some(Algorithm::MovingAverage(self.neighbours)),
                "one_shot" => Some(Algorithm::OneShot),
                _ => None,
            },
            threshold: self.threshold as f64 / 100.0,
            period: self.period,
        }
    }
}

impl Balance {
    /// Begins to balance by the defaults.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(home: &dyn Home) -> Result<Self, SqlError> {
        let state = BalanceSettings::default();
        Ok(Balance {
            balancer: home.balancer(state.chosen.balancing())?,
            state: Lock::new(state),
        })
    }

    fn lock(&self) -> LockGuard<'_, BalanceSettings> {
        self.state.lock()
    }

    /// What is set.
    pub fn chosen(&self) -> Chosen {
        self.lock().chosen.clone()
    }

    /// Sets something else.
    ///
    /// # Errors
    /// The period is too short.
    pub fn choose(&self, change: impl FnOnce(&mut Chosen)) -> Result<(), SqlError> {
        let mut state = self.lock();
        let mut other = state.chosen.clone();
        change(&mut other);
        if other.period < LEAST_PERIOD {
            return Err(SqlError::invalid(
                Mistake::NotReady,
                "loads say too little after less than 10 ms",
            ));
        }
        state.chosen = other;
        if let Some(balancer) = &self.balancer {
            balancer.set(state.chosen.balancing());
            for (table, own) in &state.own {
                let balancing = state.chosen.with(own).balancing();
                balancer.set_for(*table, Some(balancing));
            }
        }
        Ok(())
    }

    /// What a table has of its own from now on, if anything.
    pub fn choose_for(&self, home: &dyn Home, table: ObjectId, own: TableBalancing) {
        let mut state = self.lock();
        // Tables that are no more have nothing.
        state.own.retain(|id, _| home.row_count(*id).is_ok());
        let balancing = match own == TableBalancing::default() {
            true => None,
            false => Some(state.chosen.with(&own).balancing()),
        };
        match balancing {
            Some(_) => state.own.insert(table, own),
            None => state.own.remove(&table),
        };
        if let Some(balancer) = &self.balancer {
            balancer.set_for(table, balancing);
        }
    }

    /// A table goes on with another data object, and has of its own what it had.
    pub fn take_over(&self, home: &dyn Home, old: ObjectId, new: ObjectId) {
        if let Some(own) = self.own(old) {
            self.choose_for(home, new, own);
        }
    }

    /// What a table has of its own.
    pub fn own(&self, table: ObjectId) -> Option<TableBalancing> {
        self.lock().own.get(&table).cloned()
    }

    /// Makes the loads of a table's owners equal now, whether or not that pays; how many rows have moved.
    ///
    /// # Errors
    /// As [`Balancer::balance`].
    pub async fn balance(&self, table: ObjectId) -> Result<u64, SqlError> {
        match &self.balancer {
            Some(balancer) => Ok(balancer.balance(table).await?),
            None => Ok(0),
        }
    }

    /// What was moved, the oldest first.
    pub fn history(&self) -> Vec<Balanced> {
        let balancer = self.balancer.iter();
        balancer.flat_map(|balancer| balancer.history()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;
    use eris_engine::{Engine, Settings};
    use eris_numa::{HugePages, Topology};

    #[tokio::test]
    async fn what_a_table_has_of_its_own_stays_and_the_rest_follows_the_settings() {
        let database = Database::open(
            Engine::home(Settings {
                topology: Topology::fake(1, 2),
                huge_pages: HugePages::Never,
                memory_limit: Some(64 << 20),
                database: None,
            })
            .unwrap(),
        );
        let database = database.unwrap();
        let session = database.session();
        let run = async |sql: &str| drop(session.execute(sql).await.unwrap());
        run("CREATE TABLE t (k BIGINT PRIMARY KEY)").await;
        run("CREATE TABLE other (k BIGINT)").await;
        let context = database.context();
        let of = |name: &str| {
            let contents = context.catalog.contents();
            let table = contents.tables().find(|table| table.name.name == name);
            context
                .services
                .balance
                .balancer
                .as_ref()
                .expect("the engine balances")
                .get_for(table.unwrap().object)
        };
        let moving = |neighbours| Some(Algorithm::MovingAverage(neighbours));
        run("CALL eris.balance('t', 'one_shot')").await;
        run("SET balancing_threshold = 50").await;
        assert_eq!(of("t").algorithm, Some(Algorithm::OneShot));
        assert_eq!((of("t").threshold, of("other").threshold), (0.5, 0.5));
        run("CALL eris.balance('t', 'moving_average', neighbours => 3)").await;
        run("SET balancing_neighbours = 5").await;
        run("SET balancing_period = '2s'").await;
        assert_eq!(
            (of("t").algorithm, of("other").algorithm),
            (moving(3), moving(5))
        );
        assert_eq!(of("t").period, Duration::from_secs(2));
        run("CALL eris.balance('t', threshold => 7)").await;
        run("SET balancing = one_shot").await;
        run("SET balancing_threshold = 60").await;
        assert_eq!(of("t").algorithm, Some(Algorithm::OneShot));
        assert_eq!((of("t").threshold, of("other").threshold), (0.07, 0.6));
        // It goes on with another data object.
        run("INSERT INTO t VALUES (1), (2)").await;
        for change in [
            "ALTER TABLE t ADD COLUMN v BIGINT DEFAULT 5",
            "ALTER TABLE t ALTER COLUMN v TYPE VARCHAR",
            "DELETE FROM t",
            "TRUNCATE t",
        ] {
            run(change).await;
            assert_eq!((of("t").threshold, of("other").threshold), (0.07, 0.6));
        }
        run("SET balancing_threshold = 80").await;
        assert_eq!((of("t").threshold, of("other").threshold), (0.07, 0.8));
        run("CALL eris.balance('t', 'default')").await;
        assert_eq!(of("t"), of("other"));
        run("CALL eris.balance('t', 'off')").await;
        run("CREATE OR REPLACE TABLE t (k BIGINT)").await;
        assert_eq!(of("t"), of("other"));
    }
}
