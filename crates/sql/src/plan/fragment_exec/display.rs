//! A fragment in `EXPLAIN`: one line that says all it does.

use super::{FragmentExec, SideJoin};
use crate::plan::time::Time;
use crate::plan::translate::Named;
use datafusion::arrow::datatypes::Schema;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use eris_fragment::{Aggregate, AggregateFunction, Copied, Expr, NumaStrategy, Output};
use eris_home::IndexKind;
use eris_numa::Bytes;
use std::fmt;
use std::time::Duration;

impl DisplayAs for FragmentExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.scan.table;
        let separator = if matches!(style, DisplayFormatType::TreeRender) {
            "\n"
        } else {
            ", "
        };
        if !matches!(style, DisplayFormatType::TreeRender) {
            f.write_str("FragmentExec: ")?;
        }
        write!(f, "table={}", table.name)?;
        match &self.output {
            Output::Rows { columns, limit } => {
                write!(f, "{separator}columns=[{}]", list(columns, self.columns()))?;
                self.fmt_filters(separator, f)?;
                if let Some(limit) = limit {
                    write!(f, "{separator}limit={limit}")?;
                }
            }
            Output::Groups { keys, aggregates } => {
                self.fmt_filters(separator, f)?;
                write!(f, "{separator}groups=[{}]", list(keys, self.columns()))?;
                let aggregates: Vec<_> = aggregates
                    .iter()
                    .map(|aggregate| describe(aggregate, self.columns()))
                    .collect();
                write!(f, "{separator}aggregates=[{}]", aggregates.join(", "))?;
            }
        }
        self.fmt_index(separator, f)?;
        self.fmt_strategy(separator, f)
    }
}

impl FragmentExec {
    /// The columns that its expressions name.
    fn columns(&self) -> &Schema {
        match &self.star {
            Some(star) => star.schema(),
            None => &self.scan.schema,
        }
    }

    /// Where the rows are worked on, and what that is expected to take if some are taken from other nodes.
    fn fmt_strategy(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds);
            Time(time.unwrap_or(Duration::MAX))
        };
        match (self.scan.options.strategy, self.estimate()) {
            (NumaStrategy::Auto | NumaStrategy::Pull, Some(estimate)) if estimate.moved > 0 => {
                write!(
                    f,
                    "{separator}pull {} from other nodes, ≈{} (push ≈{})",
                    Bytes(estimate.moved),
                    time(estimate.expected),
                    time(estimate.pushed)
                )?;
                match estimate.copied {
                    Some(Copied { engine, block }) => {
                        write!(f, ", {engine} copies of {}", Bytes(block))
                    }
                    None => write!(f, ", read in place"),
                }
            }
            (strategy, estimate) => {
                let named = match (strategy, estimate) {
                    (NumaStrategy::Pull, _) => "pull",
                    // An idle AEU of another node asks for each block whether it helps.
                    (NumaStrategy::Auto, Some(_)) => "push or pull by block",
                    (NumaStrategy::Push, _) | (NumaStrategy::Auto, None) => "push",
                };
                write!(f, "{separator}{named}")?;
                match estimate.filter(|estimate| estimate.expected > 0.0) {
                    Some(estimate) => write!(f, " ≈{}", time(estimate.expected)),
                    None => Ok(()),
                }
            }
        }
    }

    /// The columns that sides are joined by, and what is needed of each.
    fn fmt_lookups(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(star) = &self.star else {
            return Ok(());
        };
        let schema = star.schema();
        let mut offset = self.scan.types.len();
        let build_sides =
            star.build_sides()
                .iter()
                .zip(self.chosen())
                .map(|(build_side, chosen)| {
                    let key = schema.field(build_side.column).name();
                    let columns = chosen
                        .iter()
                        .map(|column| schema.field(offset + column).name().as_str());
                    let columns = columns.collect::<Vec<_>>().join(", ");
                    offset += build_side.types.len();
                    let outer = match build_side.join {
                        SideJoin::Outer => "outer ",
                        SideJoin::Computed => "each ",
                        SideJoin::Passing => "passing ",
                        SideJoin::Inner | SideJoin::Semi => "",
                    };
                    match columns.is_empty() {
                        true => format!("{outer}{key}"),
                        false => format!("{outer}{key} → ({columns})"),
                    }
                });
        let build_sides = build_sides.collect::<Vec<_>>().join(", ");
        write!(f, "{separator}lookups=[{build_sides}]")
    }

    fn fmt_filters(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.columns();
        if !self.filter.is_empty() {
            let conjuncts: Vec<_> = self
                .filter
                .iter()
                .map(|expr| Named { expr, schema }.to_string())
                .collect();
            write!(f, "{separator}filter=[{}]", conjuncts.join(" AND "))?;
        }
        if !self.dynamic.is_empty() {
            let mut columns = Vec::new();
            for filter in &self.dynamic {
                for operand in filter.children() {
                    let mut found: Vec<_> = collect_columns(operand).into_iter().collect();
                    found.sort_unstable_by_key(Column::index);
                    for column in found {
                        if !columns.iter().any(|name| name == column.name()) {
                            columns.push(column.name().to_owned());
                        }
                    }
                }
            }
            write!(f, "{separator}probes=dynamic({})", columns.join(", "))?;
        }
        self.fmt_lookups(separator, f)
    }
}

impl FragmentExec {
    /// The index that leads to the rows: its conditions, and how many rows are expected.
    fn fmt_index(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.scan.table;
        let schema = self.columns();
        let of_id = |id: u32| table.indexes.iter().find(|index| index.id == id);
        let name = |index: Option<u32>| match index {
            None => table.key.as_ref().map(|key| key.name.clone()),
            Some(id) => of_id(id).map(|index| index.name.clone()),
        };
        if let Some(access) = self.access() {
            let conditions = access
                .conditions
                .iter()
                .filter_map(|at| self.filter.get(*at));
            let mut parts: Vec<String> = conditions
                .map(|expr| Named { expr, schema }.to_string())
                .collect();
            if access.ordered {
                parts.push("in order".to_owned());
            }
            let name = name(access.index).unwrap_or_default();
            write!(f, "{separator}index={name}({})", parts.join(" AND "))?;
            let index = access.index.and_then(of_id);
            if index.is_some_and(|index| index.kind == IndexKind::Shared) {
                write!(f, ", using blink")?;
            }
            if let Some(rows) = access.rows {
                write!(f, ", rows≈{rows}")?;
            }
        }
        // Keys that a join will tell, as its hash table or as a side of a star, are looked up if they are few. Where
        // rows have an order, the filters are those of who keeps the first ones.
        let build_sides = self.star.iter().flat_map(|star| star.build_sides());
        let joined: Vec<usize> = build_sides.map(|build_side| build_side.column).collect();
        let inputs = self.inputs();
        let filters = self.dynamic.iter().filter(|_| self.order.is_none());
        let asked = |column: usize| {
            let mut children = filters.clone().flat_map(|filter| filter.children());
            joined.contains(&column)
                || children.any(|child| {
                    let child = child
                        .downcast_ref::<Column>()
                        .and_then(|child| inputs.get(child.index()));
                    match child {
                        Some(Some(Expr::Cast { operand, .. })) => **operand == Expr::Column(column),
                        Some(Some(expr)) => *expr == Expr::Column(column),
                        _ => false,
                    }
                })
        };
        let key = table.key.as_ref().and_then(|key| {
            let first = schema.index_of(key.columns.first()?).ok()?;
            Some((&key.name, asked(first)))
        });
        // A hash table says nothing unless all its columns are known.
        let indexes = table.indexes.iter().map(|index| {
            let needed = match index.kind {
                IndexKind::Hashed => &index.columns[..],
                IndexKind::Ordered | IndexKind::Shared => &index.columns[..1],
            };
            (&index.name, needed.iter().all(|column| asked(*column)))
        });
        let indexes = key.into_iter().chain(indexes);
        for (name, _) in indexes.filter(|(_, is_asked)| *is_asked) {
            write!(f, "{separator}index={name}(dynamic)")?;
        }
        Ok(())
    }
}

fn list(exprs: &[Expr], schema: &Schema) -> String {
    exprs
        .iter()
        .map(|expr| Named { expr, schema }.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn describe(aggregate: &Aggregate, schema: &Schema) -> String {
    let name = match aggregate.function {
        AggregateFunction::Sum => "sum",
        AggregateFunction::Count => "count",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    let argument = match &aggregate.input {
        Some(expr) => Named { expr, schema }.to_string(),
        None => "*".to_owned(),
    };
    match &aggregate.filter {
        Some(expr) => format!("{name}({argument}) FILTER ({})", Named { expr, schema }),
        None => format!("{name}({argument})"),
    }
}
