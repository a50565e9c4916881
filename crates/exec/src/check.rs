//! What a fragment must not ask.

use crate::columns::FragmentColumns;
use eris_fragment::{Fragment, FragmentError, Output};

/// What is joined is known of rows that passed.
pub(crate) fn reject_conditions_on_lookups(fragment: &Fragment) -> Result<(), FragmentError> {
    let mut joined = false;
    let mut note = |position| joined |= position >= fragment.columns.len();
    let filter = fragment.filter.iter();
    filter.for_each(|expr| expr.for_each_column(&mut note));
    match joined {
        false => Ok(()),
        true => Err(FragmentError::Malformed {
            reason: "a condition on a column that the fragment does not read",
        }),
    }
}

/// Row ids are there to be handed out with rows, and to come back with what is to be done to them.
pub(crate) fn reject_computing_with_row_ids(
    fragment: &Fragment,
    columns: &FragmentColumns,
) -> Result<(), FragmentError> {
    let mut computed = fragment
        .probes
        .iter()
        .any(|probe| columns.is_row_id(probe.column));
    let mut note = |position| computed |= columns.is_row_id(position);
    let filter = fragment.filter.iter();
    filter.for_each(|expr| expr.for_each_column(&mut note));
    match &fragment.output {
        Output::Rows { .. } => {}
        Output::Groups { keys, aggregates } => {
            let inputs = aggregates.iter().flat_map(|aggregate| {
                let input = aggregate.input.iter();
                input.chain(&aggregate.filter)
            });
            let exprs = keys.iter().chain(inputs);
            exprs.for_each(|expr| expr.for_each_column(&mut note));
        }
    }
    match computed {
        false => Ok(()),
        true => Err(FragmentError::Malformed {
            reason: "row ids in a condition or an aggregate",
        }),
    }
}
