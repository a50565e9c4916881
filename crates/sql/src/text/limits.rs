//! Queries that would take longer to plan than anybody waits.
//!
//! The planner compares each column of a list with all others. It puts a query of WITH wherever its name stands, so
//! that ten queries, each of which names the one before twice, become a thousand.

use crate::error::{Mistake, SqlError};
use crate::text::identifier::{last_name, normalize};
use datafusion::sql::sqlparser::ast::{Query, Select};
use eris_syntax::{Tree, relations};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Columns of a list.
const COLUMNS: usize = 5_000;
/// How often the queries of one WITH are used in all.
const USES: u64 = 1_000;

/// The error of a list that is too long.
pub(super) fn list(select: &Select) -> Option<SqlError> {
    (select.projection.len() > COLUMNS).then(|| {
        let message = format!("a SELECT list of more than {COLUMNS} columns");
        SqlError::invalid(Mistake::TooComplex, message)
    })
}

/// The error of a WITH whose queries are used too often.
pub(super) fn with(query: &Query) -> Option<SqlError> {
    let with = query.with.as_ref()?;
    let names = with.cte_tables.iter().map(|cte| normalize(&cte.alias.name));
    let names: Vec<String> = names.collect();
    // The uses by the query itself, which its own WITH is not a part of.
    let mut within = count(query, &names);
    let bodies: Vec<_> = with
        .cte_tables
        .iter()
        .map(|cte| count(&*cte.query, &names))
        .collect();
    for body in &bodies {
        for (uses, of_body) in within.iter_mut().zip(body) {
            *uses -= of_body;
        }
    }
    // From the last query to the first: each is used as often as those behind it, times how often they name it.
    for place in (0..names.len()).rev() {
        for before in 0..place {
            let by_this = within[place].saturating_mul(bodies[place][before]);
            within[before] = within[before].saturating_add(by_this);
        }
    }
    let uses = within
        .iter()
        .fold(0_u64, |sum, uses| sum.saturating_add(*uses));
    (uses > USES).then(|| {
        let message = format!("the queries of WITH are used {uses} times, and {USES} is the most");
        let error = SqlError::invalid(Mistake::TooComplex, message);
        error.with_hint(Some("CREATE TABLE … AS keeps the rows of one"))
    })
}

/// How often each name stands in FROM, in order of the names.
fn count(tree: &impl Tree, names: &[String]) -> Vec<u64> {
    let places: HashMap<&str, usize> = (names.iter().enumerate())
        .map(|(place, name)| (name.as_str(), place))
        .collect();
    let mut counts = vec![0; names.len()];
    let _ = relations(tree, |relation| {
        let name = last_name(relation);
        if let Some(place) = name.and_then(|name| places.get(name.as_str())) {
            counts[*place] += 1;
        }
        ControlFlow::<()>::Continue(())
    });
    counts
}
