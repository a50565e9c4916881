//! `read_csv('x.csv', header => true)` and its sisters in FROM.
//!
//! DataFusion's table functions take neither names nor a query's own snapshot, so calls are taken out of the tree
//! before it is planned: each becomes the name of a table that only this statement has.

use super::options::{GivenOption, GivenOptions, OptionValue};
use super::read_options::read_options;
use crate::error::{Mistake, SqlError};
use crate::progress;
use crate::text::identifier::normalize;
use crate::text::parse::STRUCT;
use crate::text::parse::place_of_expr;
use crate::text::shorthand::named;
use crate::text::statement::Statement;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::execution::context::SessionState;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query,
    TableAlias, TableFactor, UnaryOperator, VisitorMut,
};
use eris_files::{Format, ReadOptions, files_named, open, parquet_metadata, parquet_schema};
use eris_syntax::walk_mut;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The tables that only one statement has, by name.
pub(crate) type StatementTables = HashMap<String, Arc<dyn TableProvider>>;

/// The functions that read files, in order of their names.
pub(crate) const FUNCTIONS: [(&str, Format); 4] = [
    ("read_arrow", Format::Arrow),
    ("read_csv", Format::Csv),
    ("read_json", Format::Json),
    ("read_parquet", Format::Parquet),
];
/// Their other names.
const ALIASES: [(&str, Format); 6] = [
    ("parquet_scan", Format::Parquet),
    ("read_csv_auto", Format::Csv),
    ("read_ipc", Format::Arrow),
    ("read_json_auto", Format::Json),
    ("read_ndjson", Format::Json),
    ("read_ndjson_auto", Format::Json),
];

/// The functions that tell about files, in order of their names.
pub(crate) const ABOUT_FILES: [&str; 3] = ["glob", "parquet_metadata", "parquet_schema"];

/// The format that the function of this name reads.
fn format_of(function: &str) -> Option<Format> {
    let mut known = FUNCTIONS.iter().chain(&ALIASES);
    let known = known.find(|(name, _)| *name == function);
    known.map(|(_, format)| *format)
}

/// Replaces the calls in a query by names, and opens their files.
///
/// # Errors
/// Arguments that the function does not know, or files that cannot be read.
pub(crate) async fn open_functions(
    query: &mut Query,
    state: &SessionState,
    statement: &Statement,
) -> Result<StatementTables, SqlError> {
    let mut calls = FileCalls {
        statement,
        found: Vec::new(),
    };
    if let ControlFlow::Break(error) = walk_mut(query, &mut calls) {
        return Err(*error);
    }
    let mut files = StatementTables::new();
    let progress = progress::current();
    for call in calls.found {
        let table = match call.asks {
            Asks::Rows(options) => {
                open(call.paths, *options, None, state, progress.files()).await?
            }
            Asks::About(function) => about(&function, call.paths).await?,
        };
        files.insert(call.name, table);
    }
    Ok(files)
}

/// What a function tells about files, as a table.
async fn about(function: &str, paths: Vec<String>) -> Result<Arc<dyn TableProvider>, SqlError> {
    let rows = match function {
        "glob" => files_named(paths).await?,
        "parquet_metadata" => parquet_metadata(paths).await?,
        _ => parquet_schema(paths).await?,
    };
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]]);
    Ok(Arc::new(table.map_err(SqlError::from_datafusion)?))
}

struct FileCall {
    /// The name that stands in its place.
    name: String,
    paths: Vec<String>,
    asks: Asks,
}

/// What a call asks of files.
enum Asks {
    Rows(Box<ReadOptions>),
    /// What the function of this name tells.
    About(String),
}

struct FileCalls<'a> {
    statement: &'a Statement,
    found: Vec<FileCall>,
}

impl VisitorMut for FileCalls<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match self.take(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl FileCalls<'_> {
    fn take(&mut self, factor: &mut TableFactor) -> Result<(), SqlError> {
        let TableFactor::Table {
            name, alias, args, ..
        } = factor
        else {
            return Ok(());
        };
        let function = match (&name.0[..], &args) {
            ([part], Some(_)) => part.as_ident().map(normalize).unwrap_or_default(),
            _ => return Ok(()),
        };
        let format = format_of(&function);
        if format.is_none() && !ABOUT_FILES.contains(&function.as_str()) {
            return Ok(());
        }
        let shown = args.take().map(|args| args.args).unwrap_or_default();
        let (paths, options) = self.arguments(&function, shown)?;
        let number = self.found.len();
        let unique = match number {
            0 => function.clone(),
            _ => format!("{function}_{number}"),
        };
        if alias.is_none() {
            *alias = Some(TableAlias {
                explicit: true,
                name: Ident::with_quote('"', &unique),
                columns: Vec::new(),
                at: None,
            });
        }
        // No table has a name with a bracket that nothing closes.
        let key = format!("{unique}(");
        let span = name.0[0].as_ident().map(|ident| ident.span);
        let mut ident = Ident::with_quote('"', &key);
        ident.span = span.unwrap_or(ident.span);
        *name = ObjectName::from(vec![ident]);
        let asks = match format {
            Some(_) => Asks::Rows(Box::new(read_options(options, format, &function)?)),
            None if options.0.is_empty() => Asks::About(function),
            None => {
                let message = format!("{function} takes names of files, and no options");
                return Err(SqlError::invalid(Mistake::Syntax, message));
            }
        };
        self.found.push(FileCall {
            name: key,
            paths,
            asks,
        });
        Ok(())
    }

    /// The paths and the options of a call.
    fn arguments(
        &self,
        function: &str,
        args: Vec<FunctionArg>,
    ) -> Result<(Vec<String>, GivenOptions), SqlError> {
        let reject = |what: &str| {
            SqlError::invalid(
                Mistake::InvalidParameterValue,
                format!("{function}: {what}"),
            )
            .with_hint(Some(format!("{function}('dir/*.csv', option => value)")))
        };
        let mut paths = Vec::new();
        let mut options = GivenOptions::default();
        for (number, arg) in args.into_iter().enumerate() {
            let (name, expr) = match arg {
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } => (Some(normalize(&name)), expr),
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } => (Some(normalize(&name)), expr),
                // `header = true` comes as a comparison.
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                    left,
                    op: ast::BinaryOperator::Eq,
                    right,
                })) => match *left {
                    Expr::Identifier(name) => (Some(normalize(&name)), *right),
                    _ => return Err(reject("an option is written name => value")),
                },
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
                _ => return Err(reject("an argument has to be a constant")),
            };
            let place = place_of_expr(&expr).map(|place| self.statement.excerpt(place));
            let value = option_value(&expr)
                .ok_or_else(|| reject("an argument has to be a constant").at(place.clone()))?;
            let given = GivenOption {
                name: name.clone().unwrap_or_else(|| "path".to_owned()),
                value,
                place,
            };
            match name {
                None if number == 0 => paths = given.texts()?,
                None => {
                    return Err(reject(
                        "only the path has no name; a list of paths is written ['a', 'b']",
                    )
                    .at(given.place));
                }
                Some(_) => options.0.push(given),
            }
        }
        if paths.is_empty() {
            return Err(reject("a path is missing"));
        }
        Ok((paths, options))
    }
}

/// A constant of an option.
pub(crate) fn option_value(expr: &Expr) -> Option<OptionValue> {
    Some(match expr {
        Expr::Value(value) => match &value.value {
            ast::Value::Boolean(flag) => OptionValue::Bool(*flag),
            ast::Value::Number(digits, _) => OptionValue::Text(digits.clone()),
            ast::Value::SingleQuotedString(text)
            | ast::Value::EscapedStringLiteral(text)
            | ast::Value::DoubleQuotedString(text) => OptionValue::Text(text.clone()),
            ast::Value::DollarQuotedString(text) => OptionValue::Text(text.value.clone()),
            _ => return None,
        },
        Expr::Identifier(word) => OptionValue::Text(word.value.clone()),
        Expr::Nested(inner) => option_value(inner)?,
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match option_value(expr)? {
            OptionValue::Text(digits) => OptionValue::Text(format!("-{digits}")),
            _ => return None,
        },
        Expr::Array(array) => {
            OptionValue::List(array.elem.iter().map(option_value).collect::<Option<_>>()?)
        }
        Expr::Tuple(elements) => {
            OptionValue::List(elements.iter().map(option_value).collect::<Option<_>>()?)
        }
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case(STRUCT) => {
            entries(&function.args)?
        }
        _ => return None,
    })
}

fn entries(args: &FunctionArguments) -> Option<OptionValue> {
    let FunctionArguments::List(list) = args else {
        return None;
    };
    let constant = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => option_value(expr),
        _ => None,
    };
    let args = list.args.iter().cloned().flat_map(named);
    let values = args.map(|arg| constant(&arg)).collect::<Option<Vec<_>>>()?;
    let pairs = values.chunks(2).map(|pair| match pair {
        [OptionValue::Text(name), value] => Some((name.clone(), value.clone())),
        _ => None,
    });
    Some(OptionValue::Map(pairs.collect::<Option<_>>()?))
}
