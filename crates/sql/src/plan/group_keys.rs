//! GROUP BY a table's primary key: its other columns have one value in each group, and may be named like the key.
//!
//! ```text
//!  SELECT p.id, p.name, count(*) FROM p JOIN m ON … GROUP BY p.id
//!  SELECT p.id, p.name, count(*) FROM p JOIN m ON … GROUP BY p.id, p.name          planned as
//! ```
//!
//! The column becomes a key as well, which makes no other groups. So it does no harm if a name means something else.

use crate::catalog::{Table, TableOrView};
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, VisitorMut,
};
use eris_syntax::{Tree, expressions, walk_mut};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a name means.
type Meaning<'a> = &'a dyn Fn(&ObjectName) -> Option<TableOrView>;

/// Completes the keys of all groups in a query.
pub(crate) fn complete(query: &mut Query, meaning: Meaning<'_>) {
    let mut queries = Queries {
        meaning,
        around: Vec::new(),
    };
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut queries);
}

struct Queries<'a> {
    meaning: Meaning<'a>,
    /// The names of WITH, which hide tables, of the outermost query first.
    around: Vec<HashSet<String>>,
}

impl VisitorMut for Queries<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = with.map(|cte| normalize(&cte.alias.name)).collect();
        self.around.push(names);
        self.body(&mut query.body, query.order_by.as_ref());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

/// A table of FROM whose key is grouped by.
struct KeyedTable {
    table: Arc<Table>,
    name: Ident,
}

impl Queries<'_> {
    fn body(&self, body: &mut SetExpr, order_by: Option<&OrderBy>) {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None);
                self.body(right, None);
            }
            _ => {}
        }
    }

    fn select(&self, select: &mut Select, order_by: Option<&OrderBy>) {
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            return;
        };
        if keys.is_empty() || !modifiers.is_empty() {
            return;
        }
        let named: Vec<Vec<String>> = keys.iter().filter_map(column).collect();
        let mut added = Vec::new();
        for from in &select.from {
            let joined = from.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&from.relation).chain(joined) {
                if let Some(keyed) = self.keyed(factor, &named, select) {
                    keyed.mentioned(select, order_by, &named, &mut added);
                }
            }
        }
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.extend(added);
        }
    }

    /// The table, if all columns of its key are among these.
    fn keyed(
        &self,
        factor: &TableFactor,
        named: &[Vec<String>],
        select: &Select,
    ) -> Option<KeyedTable> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return None;
        };
        let last = name.0.last()?.as_ident()?;
        let is_hidden = |names: &HashSet<String>| names.contains(&normalize(last));
        if name.0.len() == 1 && self.around.iter().any(is_hidden) {
            return None;
        }
        let (alias, has_columns) = match alias {
            None => (last, false),
            Some(alias) => (&alias.name, !alias.columns.is_empty()),
        };
        let TableOrView::Table(table) = (self.meaning)(name)? else {
            return None;
        };
        let key = &table.key.as_ref()?.columns;
        let qualifier = normalize(alias);
        let is_named = |column: &String| {
            named.iter().any(|name| match name.as_slice() {
                [name] => name == column && !is_other(name, select),
                [.., table, name] => name == column && *table == qualifier,
                [] => false,
            })
        };
        (!has_columns && key.iter().all(is_named)).then(|| KeyedTable {
            table,
            name: alias.clone(),
        })
    }
}

impl KeyedTable {
    /// Adds the table's columns that are mentioned beside its key.
    fn mentioned(
        &self,
        select: &Select,
        order_by: Option<&OrderBy>,
        named: &[Vec<String>],
        added: &mut Vec<Expr>,
    ) {
        let qualifier = normalize(&self.name);
        let mut columns = HashSet::new();
        let mut visit = |expr: &Expr| {
            match column(expr).as_deref() {
                Some([name]) => columns.insert(name.clone()),
                Some([.., table, name]) if *table == qualifier => columns.insert(name.clone()),
                _ => false,
            };
            ControlFlow::<()>::Continue(())
        };
        let mut all = false;
        for item in &select.projection {
            all |= matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            );
            see(item, &mut visit);
        }
        for condition in select.having.iter().chain(&select.qualify) {
            see(condition, &mut visit);
        }
        if let Some(order_by) = order_by
            && let OrderByKind::Expressions(keys) = &order_by.kind
        {
            keys.iter().for_each(|key| see(key, &mut visit));
        }
        for field in self.table.schema.fields() {
            let is_mentioned = all || columns.contains(field.name());
            let is_key = |name: &Vec<String>| name.last() == Some(field.name());
            if is_mentioned && !named.iter().any(is_key) {
                let column = Ident::with_quote('"', field.name());
                added.push(Expr::CompoundIdentifier(vec![self.name.clone(), column]));
            }
        }
    }
}

fn see(tree: &impl Tree, visit: &mut impl FnMut(&Expr) -> ControlFlow<()>) {
    let _ = expressions(tree, visit);
}

/// The parts of a column's name.
fn column(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Identifier(name) => Some(vec![normalize(name)]),
        Expr::CompoundIdentifier(names) => Some(names.iter().map(normalize).collect()),
        _ => None,
    }
}

/// Whether the list of columns calls something else so.
fn is_other(name: &str, select: &Select) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            normalize(alias) == name
                && column(expr).is_none_or(|column| column.last().is_none_or(|last| last != name))
        }
        _ => false,
    })
}
