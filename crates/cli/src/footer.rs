//! The line below a result: what was done, and how long it took.

use crate::format::Shown;
use crate::numbers::{counted, duration};
use std::time::Duration;

/// How many rows there were, and which of them can be seen.
pub fn described(rows: u64, shown: Shown) -> String {
    let all = counted(rows, "row");
    match shown {
        Shown::All => all,
        Shown::Part { rows, columns } => {
            let rows = rows.map(|rows| format!(" ({rows} shown)"));
            let columns = columns.map(|(shown, all)| {
                format!(
                    ", {} ({shown} shown, \\x shows all)",
                    counted(all as u64, "column")
                )
            });
            all + &rows.unwrap_or_default() + &columns.unwrap_or_default()
        }
    }
}

/// What follows the result of a statement: what was done, and how long it took for who wants to know.
pub fn footer(done: String, time: Option<Duration>) -> String {
    match time {
        Some(time) => format!("{done} in {}\n", duration(time)),
        None => format!("{done}\n"),
    }
}
