//! How a table is balanced, where that is not as it is set for all.

use std::fmt;

/// What one table has of its own. All else is as it is set for all tables, now and later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableBalancing {
    /// One of those that `SET balancing` knows.
    pub way: Option<String>,
    pub neighbours: Option<usize>,
    /// In percent.
    pub threshold: Option<u64>,
}

/// As `CALL eris.balance` takes it.
impl fmt::Display for TableBalancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = self.way.as_ref().map(|way| format!("'{way}'"));
        let neighbours = self
            .neighbours
            .map(|count| format!("neighbours => {count}"));
        let threshold = self.threshold.map(|least| format!("threshold => {least}"));
        let parts: Vec<String> = [way, neighbours, threshold].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}
