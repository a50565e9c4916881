//! A fragment in `EXPLAIN`: one line that says all it does.

use super::FragmentExec;
use crate::translate::Named;
use datafusion::arrow::datatypes::Schema;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use eris_fragment::{Aggregate, AggregateFunction, Expr, Output};
use std::fmt;

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
                write!(
                    f,
                    "{separator}columns=[{}]",
                    list(columns, &self.scan.schema)
                )?;
                self.fmt_filters(separator, f)?;
                if let Some(limit) = limit {
                    write!(f, "{separator}limit={limit}")?;
                }
            }
            Output::Groups { keys, aggregates } => {
                self.fmt_filters(separator, f)?;
                write!(f, "{separator}groups=[{}]", list(keys, &self.scan.schema))?;
                let aggregates: Vec<_> = aggregates
                    .iter()
                    .map(|aggregate| describe(aggregate, &self.scan.schema))
                    .collect();
                write!(f, "{separator}aggregates=[{}]", aggregates.join(", "))?;
            }
        }
        write!(f, "{separator}push")
    }
}

impl FragmentExec {
    fn fmt_filters(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = &self.scan.schema;
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
                for column in filter.children() {
                    let name = column.to_string();
                    let name = name.split('@').next().unwrap_or_default().to_owned();
                    if !columns.contains(&name) {
                        columns.push(name);
                    }
                }
            }
            write!(f, "{separator}probes=dynamic({})", columns.join(", "))?;
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
