//! Names of a query's columns.
//!
//! SQL allows several columns of one name, and columns without one; DataFusion wants every name to be unique and makes
//! up its own for the rest, such as `Int64(1)`. So a list is planned with unique names, and what the user sees is put
//! back on the way out:
//!
//! ```text
//! SELECT a.x, b.x, count(*), v AS x      planned as  a.x, b.x AS "x_1", count(*) AS "count(*)", v AS "x_2"
//!                                        shown as    x  | x  | count(*) | x
//! ```
//!
//! A table that is made of a query, and a derived table, get the unique names.

use crate::text::identifier::normalize;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Visitor, VisitorMut,
};
use eris_syntax::{Tree, are_equal, walk, walk_mut};
use futures::StreamExt;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What the columns of a query are called, as far as its text tells: those before the first wildcard, and those behind
/// the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    first: Vec<String>,
    last: Vec<String>,
    has_wildcard: bool,
}

impl Headers {
    /// Those of a query as the user wrote it.
    pub fn of(query: &Query) -> Self {
        let Some(select) = first_select(&query.body) else {
            // VALUES and TABLE: as they come.
            return Headers {
                has_wildcard: true,
                ..Headers::default()
            };
        };
        let names: Vec<_> = select.projection.iter().map(shown).collect();
        let has_wildcard = names.iter().any(Option::is_none);
        let first: Vec<_> = names.iter().map_while(Clone::clone).collect();
        let last = match has_wildcard {
            true => names.iter().rev().map_while(Clone::clone).collect(),
            false => Vec::new(),
        };
        Headers {
            first,
            last: last.into_iter().rev().collect(),
            has_wildcard,
        }
    }

    /// The schema with these names.
    pub fn name(&self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields();
        let behind = fields.len().saturating_sub(self.last.len());
        let named = fields.iter().enumerate().map(|(position, field)| {
            let header = match position.checked_sub(behind) {
                Some(position) if self.has_wildcard => self.last.get(position),
                _ => self.first.get(position),
            };
            match header {
                Some(header) => field.as_ref().clone().with_name(header),
                None => field.as_ref().clone(),
            }
        });
        let fields: Vec<Field> = named.collect();
        Schema::new(fields).into()
    }

    /// The stream with these names.
    pub fn head(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = self.name(&stream.schema());
        let named = Arc::clone(&schema);
        let batches = stream.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let (schema, columns) = (Arc::clone(&named), batch.columns().to_vec());
            Ok(RecordBatch::try_new_with_options(
                schema, columns, &options,
            )?)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }

    /// The schema with these names, repeated ones told apart as in [`make_unique`].
    pub fn name_uniquely(&self, schema: &Schema) -> SchemaRef {
        let named = self.name(schema);
        let taken = named.fields().iter().map(|field| field.name().clone());
        let mut names = Unique::beside(taken.collect());
        let fields = named.fields().iter().map(|field| {
            let name = names.next(field.name());
            field.as_ref().clone().with_name(name)
        });
        let fields: Vec<Field> = fields.collect();
        Schema::new(fields).into()
    }
}

fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// The name of an item's column; none for a wildcard.
pub(crate) fn shown(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(text(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(normalize(alias)),
        _ => None,
    }
}

fn text(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => normalize(name),
        Expr::CompoundIdentifier(names) => names.last().map(normalize).unwrap_or_default(),
        Expr::Nested(expr) => text(expr),
        other => other.to_string(),
    }
}

/// Names each of which is taken once.
struct Unique {
    taken: HashSet<String>,
    /// Names that mean something already, so that none is made up that is the same.
    known: HashSet<String>,
}

impl Unique {
    fn beside(known: HashSet<String>) -> Self {
        Unique {
            taken: HashSet::new(),
            known,
        }
    }

    /// The name, with a number behind it if it is taken.
    fn next(&mut self, name: &str) -> String {
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        let mut numbered = numbered.filter(|name| !self.known.contains(name));
        let mut free = name.to_owned();
        while !self.taken.insert(free.clone()) {
            free = numbered.next().expect("there are more numbers than names");
        }
        free
    }
}

/// Gives the columns of all lists of a query names, each a different one.
pub(crate) fn make_unique(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Lists);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let written = match (&*query.body, &query.order_by) {
            (SetExpr::Select(select), Some(_)) => select.projection.clone(),
            _ => Vec::new(),
        };
        let sorted_by = query.order_by.as_ref().map(mentioned).unwrap_or_default();
        body(&mut query.body, &sorted_by);
        if let (SetExpr::Select(select), Some(order_by)) = (&*query.body, &mut query.order_by) {
            refer(&written, &select.projection, order_by);
        }
        ControlFlow::Continue(())
    }
}

/// The names that stand alone in a clause: these lead to columns, also to such as the list has not.
fn mentioned(clause: &impl Tree) -> HashSet<String> {
    struct Mentioned(HashSet<String>);
    impl Visitor for Mentioned {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Identifier(name) = expr {
                self.0.insert(normalize(name));
            }
            ControlFlow::Continue(())
        }
    }
    let mut mentioned = Mentioned(HashSet::new());
    // The visitor never breaks off.
    let _ = walk(clause, &mut mentioned);
    mentioned.0
}

/// ORDER BY an expression of the list as it was written, by the name that it has got: beside DISTINCT it is not found
/// otherwise.
fn refer(written: &[SelectItem], named: &[SelectItem], order_by: &mut OrderBy) {
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return;
    };
    for key in keys {
        let is_item = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => are_equal(expr, &key.expr) && !is_name(expr),
            _ => false,
        };
        let is_number = matches!(key.expr, Expr::Value(_));
        if !is_number
            && let Some(place) = written.iter().position(is_item)
            && let Some(SelectItem::ExprWithAlias { alias, .. }) = named.get(place)
        {
            key.expr = Expr::Identifier(alias.clone());
        }
    }
}

fn body(expr: &mut SetExpr, sorted_by: &HashSet<String>) {
    match expr {
        SetExpr::Select(select) => {
            let mut known = mentioned(&select.group_by);
            known.extend(select.having.iter().flat_map(mentioned));
            known.extend(sorted_by.iter().cloned());
            list(&mut select.projection, known);
        }
        SetExpr::SetOperation { left, right, .. } => {
            body(left, sorted_by);
            body(right, sorted_by);
        }
        // A query in parentheses is visited itself.
        _ => {}
    }
}

/// What is no name gets one in any case: DataFusion's own may be the same for different expressions.
fn list(items: &mut [SelectItem], mut known: HashSet<String>) {
    known.extend(items.iter().filter_map(shown));
    let mut names = Unique::beside(known);
    for item in items {
        let Some(wanted) = shown(item) else {
            continue;
        };
        let name = names.next(&wanted);
        let repeated = name != wanted;
        match item {
            SelectItem::ExprWithAlias { alias, .. } if repeated => {
                *alias = Ident::with_quote('"', name);
            }
            SelectItem::UnnamedExpr(expr) if repeated || !is_name(expr) => {
                *item = SelectItem::ExprWithAlias {
                    expr: expr.clone(),
                    alias: Ident::with_quote('"', name),
                };
            }
            _ => {}
        }
    }
}

fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::DataType;
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    fn query(sql: &str) -> Query {
        let tree = Parser::parse_sql(&ErisDialect, sql).unwrap().remove(0);
        let Statement::Query(query) = tree else {
            panic!("{sql} is a query")
        };
        *query
    }

    #[test]
    fn all_but_plain_columns_are_named() {
        for (sql, expected) in [
            (
                "SELECT a, a, b, a FROM t",
                "SELECT a, a AS \"a_1\", b, a AS \"a_2\" FROM t",
            ),
            (
                "SELECT a, t.a, 1 AS b, 2 AS B, 3 AS \"B\" FROM t",
                "SELECT a, t.a AS \"a_1\", 1 AS b, 2 AS \"b_1\", 3 AS \"B\" FROM t",
            ),
            (
                "SELECT a, 1 AS a_1, 2 AS a FROM t",
                "SELECT a, 1 AS a_1, 2 AS \"a_2\" FROM t",
            ),
            (
                "SELECT a, b AS a, a_1 FROM t",
                "SELECT a, b AS \"a_2\", a_1 FROM t",
            ),
            (
                "SELECT a, b AS a FROM t GROUP BY a, b, a_1 HAVING a_2 > 0 ORDER BY a_3 + a_4",
                "SELECT a, b AS \"a_5\" FROM t GROUP BY a, b, a_1 HAVING a_2 > 0 ORDER BY a_3 + a_4",
            ),
            (
                "SELECT a AS \"-k\", -k FROM t ORDER BY -k",
                "SELECT a AS \"-k\", -k AS \"-k_1\" FROM t ORDER BY \"-k_1\"",
            ),
            (
                "SELECT * FROM (SELECT 1, 1) UNION SELECT 2, 2",
                "SELECT * FROM (SELECT 1 AS \"1\", 1 AS \"1_1\") UNION SELECT 2 AS \"2\", 2 AS \"2_1\"",
            ),
            (
                "WITH w AS (SELECT count(*), x FROM t) SELECT x FROM w",
                "WITH w AS (SELECT count(*) AS \"count(*)\", x FROM t) SELECT x FROM w",
            ),
            (
                "SELECT DISTINCT -a, b, b FROM t ORDER BY -a",
                "SELECT DISTINCT -a AS \"-a\", b, b AS \"b_1\" FROM t ORDER BY \"-a\"",
            ),
        ] {
            let mut tree = query(sql);
            make_unique(&mut tree);
            assert_eq!(tree.to_string(), expected);
        }
    }

    #[test]
    fn headers_are_the_text_around_wildcards() {
        let plain = |names: &[&str]| {
            let fields = names
                .iter()
                .map(|name| Field::new(*name, DataType::Int64, true));
            Schema::new(fields.collect::<Vec<_>>())
        };
        for (sql, planned, expected) in [
            (
                "SELECT a.X, b.x, count( * ), 1",
                &["x", "x_1", "?", "Int64(1)"][..],
                "x x count(*) 1",
            ),
            (
                "SELECT v + 1, *, t.*, \"V\" AS v FROM t",
                &["?", "a", "b", "c", "V"],
                "v + 1 a b c v",
            ),
            ("SELECT 1 AS a UNION SELECT 2", &["?"], "a"),
            ("VALUES (1, 2)", &["column1", "column2"], "column1 column2"),
        ] {
            let schema = Headers::of(&query(sql)).name(&plain(planned));
            let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            assert_eq!(names.join(" "), expected, "{sql}");
        }
        let twice = Headers::of(&query("SELECT 1 AS a, 2 AS a"));
        let unique = twice.name_uniquely(&plain(&["?", "??"]));
        assert_eq!(unique.field(1).name(), "a_1");
    }
}
