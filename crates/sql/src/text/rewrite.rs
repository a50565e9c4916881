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
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, Visitor,
};
use eris_syntax::walk;
use std::ops::ControlFlow;

/// Rewrites a query; returns what its columns are called as it was written.
///
/// # Errors
/// What DataFusion would ignore, and what cannot be written out.
pub(crate) fn rewrite(query: &mut Query) -> Result<Headers, SqlError> {
    let headers = Headers::of(query);
    let mut shape = Shape::of(query);
    if shape.others_in_from {
        sample::write_out(query)?;
        duckdb_catalog::write_out(query);
        series::write_out(query);
        // There are queries now that were written here.
        shape = Shape::of(query);
    }
    reject::ignored(query)?;
    if shape.with {
        nested_with::rename(query);
    }
    if shape.replace {
        shorthand::name_replaced(query);
    }
    if shape.joins {
        asof::mark(query)?;
        using::write_out(query)?;
    }
    make_unique(query);
    if shape.groups {
        cast_keys::tell_apart(query);
    }
    shorthand::write_out(query);
    tuples::write_out(query);
    if shape.sets {
        set_all::number(query)?;
    }
    Ok(headers)
}

/// What a query has anywhere. Each rewriting walks over the whole tree, and most queries need few of them.
#[derive(Default)]
struct Shape {
    joins: bool,
    /// Functions and samples in FROM, and names of DuckDB's views.
    others_in_from: bool,
    with: bool,
    groups: bool,
    sets: bool,
    /// `* EXCLUDE (…)`, `* REPLACE (…)`.
    replace: bool,
}

impl Shape {
    fn of(query: &Query) -> Self {
        let mut shape = Shape::default();
        // The visitor never breaks off.
        let _ = walk(query, &mut shape);
        shape
    }
}

impl Visitor for Shape {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.with |= query.with.is_some();
        self.sets |= matches!(*query.body, SetExpr::SetOperation { .. });
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.joins |= select.from.iter().any(|from| !from.joins.is_empty());
        self.groups |= match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        };
        self.replace |= select.projection.iter().any(|item| match item {
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                options.opt_exclude.is_some() || options.opt_replace.is_some()
            }
            _ => false,
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.others_in_from |= match table {
            TableFactor::Table {
                name,
                args: None,
                sample: None,
                with_ordinality: false,
                ..
            } => duckdb_catalog::is_view(name),
            TableFactor::Derived { sample: None, .. } => false,
            TableFactor::NestedJoin { .. } => {
                self.joins = true;
                false
            }
            _ => true,
        };
        ControlFlow::Continue(())
    }
}
