//! INSERT, and the writing part of CREATE TABLE AS.

use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::progress;
use crate::running::outcome::Begun;
use crate::statements::dml::{self, Kept};
use crate::text::parameter::placeholder;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use crate::write::locks;
use crate::write::locks::Writable;
use crate::write::references::Effect;
use crate::write::row_rules::RowRules;
use crate::write::table_writer::TableWriter;
use crate::write::targets::{columns, default_expr, is_word_default, targets};
use datafusion::arrow::array::{ArrayRef, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    self, Ident, SetExpr, TableObject, UnaryOperator, Value, Values,
};
use eris_exact::types::ast_type;
use futures::StreamExt;
use std::sync::Arc;

/// INSERT INTO table [(columns)] VALUES … or SELECT … or DEFAULT VALUES.
pub(crate) async fn insert(
    context: &StatementContext,
    mut insert: ast::Insert,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    reject_the_rest(&insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported("INSERT INTO a function or query"));
    };
    let effect = Effect::of_insert(&insert);
    let table = locks::writable(context, name, &effect, statement).await?;
    let columns = columns(&table, &insert.columns)?;
    let (source, columns) = match insert.source.take() {
        Some(mut source) => {
            spell_out_defaults(&mut source, &table, &columns);
            exact_numbers(&mut source, &table, &columns);
            if insert.on.is_some() {
                insert.source = None;
                return dml::upsert(context, table, insert, *source, &columns, statement).await;
            }
            let plan = planning::plan(context, *source, statement).await?;
            let given = plan.physical.schema().fields().len();
            if given != columns.len() {
                return Err(wrong_width(&table, columns.len(), given));
            }
            (plan.run_into_table()?, columns)
        }
        None => (one_row_without_columns()?, Vec::new()),
    };
    let targets = targets(context, &table, &columns)?;
    let alias = alias(&table, &insert);
    let Some(items) = insert.returning else {
        let rows = write(context, &table, source, targets).await?;
        return Ok(Begun::Count {
            rows,
            tag: "INSERT",
        });
    };
    let mut kept = Kept::new(context);
    let appended = Box::pin(append(context, &table, source, targets, Some(&mut kept)));
    let (writer, _) = appended.await?;
    let names = NameScope::now(context);
    let returned = kept.returned(context, &names, &table, &alias, items);
    let returned = returned.await?;
    (writer.finish(context, |error| table.write_error(error))).await?;
    Ok(Begun::Rows(returned))
}

/// The rows to be inserted have another number of values than there are columns for them.
pub(super) fn wrong_width(table: &Table, columns: usize, values: usize) -> SqlError {
    let message = format!(
        "INSERT INTO \"{}\": {columns} columns, but {values} values",
        table.name
    );
    SqlError::invalid(Mistake::Syntax, message)
}

/// What an INSERT calls its table.
pub(crate) fn alias(table: &Table, insert: &ast::Insert) -> Ident {
    match &insert.table_alias {
        Some(alias) => alias.alias.clone(),
        None => Ident::with_quote('"', table.name.name.as_str()),
    }
}

/// Writes all rows of a stream: all of them become visible, or none.
pub(crate) async fn write(
    context: &StatementContext,
    table: &Writable,
    source: SendableRecordBatchStream,
    targets: Vec<Target>,
) -> Result<u64, SqlError> {
    let appended = Box::pin(append(context, table, source, targets, None));
    let (writer, rows) = appended.await?;
    (writer.finish(context, |error| table.write_error(error))).await?;
    Ok(rows)
}

/// Hands over all rows of a stream to a writer, which has yet to commit; keeps them for RETURNING, too.
async fn append(
    context: &StatementContext,
    table: &Writable,
    mut source: SendableRecordBatchStream,
    targets: Vec<Target>,
    mut kept: Option<&mut Kept>,
) -> Result<(TableWriter, u64), SqlError> {
    let rules = RowRules::new(context, table)?;
    let mut writer = TableWriter::adding(context, table)?;
    let progress = progress::current();
    let mut written = 0;
    while let Some(batch) = source.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        let rows = rules.apply(table, &batch, &targets, written + 1)?;
        written += batch.num_rows() as u64;
        if let Some(kept) = &mut kept {
            kept.keep(rows.clone(), "INSERT")?;
        }
        writer.append(rows).await?;
        progress.wrote(batch.num_rows() as u64);
    }
    Ok((writer, written))
}

/// The source of INSERT … DEFAULT VALUES.
fn one_row_without_columns() -> Result<SendableRecordBatchStream, SqlError> {
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)
        .map_err(|error| SqlError::from_datafusion(error.into()))?;
    let rows = futures::stream::iter([Ok(batch)]);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// Puts a column's default, or NULL, in the place of the word DEFAULT in VALUES. All values of such a column are cast
/// to its type there, for the default need not be of the type that the others have.
fn spell_out_defaults(source: &mut ast::Query, table: &Table, columns: &[usize]) {
    let SetExpr::Values(values) = source.body.as_mut() else {
        return;
    };
    for (position, column) in columns.iter().enumerate() {
        let mut cells: Vec<_> = (values.rows.iter_mut())
            .filter_map(|row| row.content.get_mut(position))
            .collect();
        if !cells.iter().any(|cell| is_word_default(cell)) {
            continue;
        }
        let data_type = ast_type(table.schema.field(*column).data_type());
        for cell in &mut cells {
            let value = match is_word_default(cell) {
                true => default_expr(table, *column),
                false => cell.clone(),
            };
            **cell = cast(value, data_type.clone());
        }
    }
}

/// The value of an expression without columns, as an array of one row, and the name of its type.
pub(crate) async fn collect_one(
    context: &StatementContext,
    expr: &ast::Expr,
    statement: &Statement,
) -> Result<(ArrayRef, DataType), SqlError> {
    let rows = vec![ast::Parens::with_empty_span(vec![expr.clone()])];
    let values = Values {
        explicit_row: false,
        value_keyword: false,
        rows,
    };
    let plan = planning::plan(context, query(SetExpr::Values(values)), statement).await?;
    let mut stream = plan.run()?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        if batch.num_rows() == 1 {
            let array = Arc::clone(batch.column(0));
            let data_type = array.data_type().clone();
            return Ok((array, data_type));
        }
    }
    Err(SqlError::invalid(Mistake::Syntax, "a value is missing"))
}

fn query(body: SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Rejects clauses that are not supported.
pub(crate) fn reject_the_rest(insert: &ast::Insert) -> Result<(), SqlError> {
    let rejected = [
        (
            insert.on.is_some() && insert.source.is_none(),
            "INSERT … DEFAULT VALUES ON CONFLICT",
        ),
        (insert.output.is_some(), "INSERT … OUTPUT"),
        (
            insert.or.is_some() || insert.ignore || insert.replace_into,
            "INSERT OR …",
        ),
        (insert.overwrite, "INSERT OVERWRITE"),
        (
            insert.partitioned.is_some() || !insert.after_columns.is_empty(),
            "INSERT … PARTITION",
        ),
        (!insert.assignments.is_empty(), "INSERT … SET"),
        (
            insert.insert_alias.is_some(),
            "INSERT with an alias of the new row",
        ),
        (
            insert.multi_table_insert_type.is_some(),
            "INSERT into several tables",
        ),
        (
            insert.settings.is_some() || insert.format_clause.is_some(),
            "INSERT with a format",
        ),
    ];
    match rejected.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::not_supported(*what)),
        None => Ok(()),
    }
}

/// The numbers of one column of VALUES have to get one type, which may cost digits. Where all of them are written out,
/// and go into a DECIMAL or DOUBLE, their digits are handed on as text instead.
fn exact_numbers(source: &mut ast::Query, table: &Table, columns: &[usize]) {
    let SetExpr::Values(values) = source.body.as_mut() else {
        return;
    };
    for (position, column) in columns.iter().enumerate() {
        let fractional = is_fractional(table.schema.field(*column).data_type());
        let cells = || {
            values
                .rows
                .iter()
                .filter_map(|row| row.content.get(position))
        };
        let numbers = cells().all(|cell| digits(cell).is_some() || is_null(cell));
        let pointed =
            cells().any(|cell| digits(cell).is_some_and(|digits| digits.contains(['.', 'e', 'E'])));
        if !(fractional && numbers && pointed) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(position)
                && let Some(digits) = digits(cell)
            {
                *cell = ast::Expr::value(Value::SingleQuotedString(digits));
            }
        }
    }
}

fn is_fractional(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal128(..) | DataType::Float64 | DataType::Float32
    )
}

/// A value on its way into a column of this type: as text if it is a number that is written out and might lose digits,
/// of the column's type if it is a parameter.
pub(crate) fn for_column(value: ast::Expr, data_type: &DataType) -> ast::Expr {
    if placeholder(&value).is_some() {
        return cast(value, ast_type(data_type));
    }
    match digits(&value).filter(|_| is_fractional(data_type)) {
        Some(digits) => ast::Expr::value(Value::SingleQuotedString(digits)),
        None => value,
    }
}

/// A value as one of a column of this type.
pub(crate) fn cast_to(expr: ast::Expr, data_type: &DataType) -> ast::Expr {
    cast(expr, ast_type(data_type))
}

fn cast(expr: ast::Expr, data_type: ast::DataType) -> ast::Expr {
    ast::Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// The digits of a number that is written out, with its sign.
fn digits(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        // What the parser's result has for a number with an exponent.
        ast::Expr::Cast {
            expr,
            data_type: ast::DataType::Float8,
            ..
        } => match &**expr {
            ast::Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(digits) => Some(digits.clone()),
                _ => None,
            },
            _ => None,
        },
        ast::Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let digits = digits(expr)?;
            (!digits.starts_with('-')).then(|| format!("-{digits}"))
        }
        _ => None,
    }
}

fn is_null(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(value) if value.value == Value::Null)
}
