//! A query as DataFusion is to plan it: what it does not know, or takes for something else than SQL does, is written
//! out or rejected.

use crate::error::SqlError;
use crate::text::asof;
use crate::text::cast_keys;
use crate::text::duckdb_catalog;
use crate::text::names::{Headers, make_unique};
use crate::text::nested_with;
use crate::text::reject;
use crate::text::sample;
use crate::text::series;
use crate::text::set_all;
use crate::text::shorthand;
use crate::text::tuples;
use crate::text::using;
use datafusion::sql::sqlparser::ast::Query;

/// Rewrites a query; returns what its columns are called as it was written.
///
/// # Errors
/// What DataFusion would ignore, and what cannot be written out.
pub(crate) fn rewrite(query: &mut Query) -> Result<Headers, SqlError> {
    let headers = Headers::of(query);
    sample::write_out(query)?;
    duckdb_catalog::write_out(query);
    series::write_out(query);
    reject::ignored(query)?;
    nested_with::rename(query);
    shorthand::name_replaced(query);
    asof::mark(query)?;
    using::write_out(query)?;
    make_unique(query);
    cast_keys::tell_apart(query);
    shorthand::write_out(query);
    tuples::write_out(query);
    set_all::number(query)?;
    Ok(headers)
}
