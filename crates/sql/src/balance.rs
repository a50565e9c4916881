//! Balancing as SQL sees it: what is set, for all tables and for one.

use crate::error::SqlError;
use eris_engine::{Algorithm, Balanced, Balancer, Balancing, Engine};
use eris_types::ObjectId;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Ways to balance, as they are written.
pub(crate) const WAYS: [&str; 3] = ["moving_average", "off", "one_shot"];

/// A shorter period tells too little.
const LEAST_PERIOD: Duration = Duration::from_millis(10);

/// The loop that balances, and what it was told.
pub(crate) struct Balance {
    balancer: Balancer,
    chosen: Mutex<Chosen>,
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
    pub fn start(engine: &Engine) -> Result<Self, SqlError> {
        let chosen = Chosen::default();
        Ok(Balance {
            balancer: Balancer::start(engine, chosen.balancing())?,
            chosen: Mutex::new(chosen),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Chosen> {
        self.chosen.lock().expect("nothing panics under this lock")
    }

    /// What is set.
    pub fn chosen(&self) -> Chosen {
        self.lock().clone()
    }

    /// Sets something else.
    ///
    /// # Errors
    /// The period is too short.
    pub fn choose(&self, change: impl FnOnce(&mut Chosen)) -> Result<(), SqlError> {
        let mut chosen = self.lock();
        let mut other = chosen.clone();
        change(&mut other);
        if other.period < LEAST_PERIOD {
            return Err(SqlError::invalid(
                "loads say too little after less than 10 ms",
            ));
        }
        *chosen = other;
        self.balancer.set(chosen.balancing());
        Ok(())
    }

    /// Balances one table in a way of its own, or like all others.
    pub fn choose_for(&self, table: ObjectId, way: Option<&str>) {
        let own = way.map(|way| Chosen {
            way: way.to_owned(),
            ..self.chosen()
        });
        self.balancer.set_for(table, own.map(|own| own.balancing()));
    }

    /// Makes the loads of a table's owners equal now, whether or not that pays.
    ///
    /// # Errors
    /// As [`Balancer::balance`].
    pub async fn balance(&self, engine: &Engine, table: ObjectId) -> Result<(), SqlError> {
        Ok(self.balancer.balance(engine, table).await?)
    }

    /// What was moved, the oldest first.
    pub fn history(&self) -> Vec<Balanced> {
        self.balancer.history()
    }
}
