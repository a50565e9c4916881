//! CREATE SEQUENCE, DROP SEQUENCE, and sequences in definitions of columns.

use super::{check_schema, excerpt};
use crate::catalog::{Course, DefaultValue, RelationName, Sequence, Table, TableOrView, quoted};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::system::functions::sequence::is_of_sequence;
use crate::text::statement::Statement;
use crate::write::locks;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, SequenceOptions,
    UnaryOperator, Value,
};
use eris_exact::types::{column_type, sql_name};
use eris_syntax::expressions_mut;
use std::ops::ControlFlow;
use std::sync::Arc;

const TAG: &str = "CREATE SEQUENCE";

/// What CREATE SEQUENCE says.
pub(super) struct WrittenSequence {
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: ObjectName,
    pub data_type: Option<ast::DataType>,
    pub options: Vec<SequenceOptions>,
    pub owned_by: Option<ObjectName>,
}

/// `CREATE [TEMP] SEQUENCE [IF NOT EXISTS] name [AS type] [options]`.
pub(super) async fn create(
    context: &StatementContext,
    written: WrittenSequence,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = &written.name;
    let owner = written.owned_by.as_ref();
    if let Some(owner) = owner.filter(|owner| !owner.to_string().eq_ignore_ascii_case("none")) {
        return Err(SqlError::not_supported("CREATE SEQUENCE … OWNED BY")
            .at(excerpt(owner, statement))
            .with_hint(Some("GENERATED … AS IDENTITY makes a sequence of a column")));
    }
    let data_type = match &written.data_type {
        None => DataType::Int64,
        Some(named) => {
            let known = column_type(named).ok().map(|known| known.data_type);
            known.filter(is_integer).ok_or_else(|| {
                let message = format!("a sequence AS {named}");
                SqlError::not_supported(message).with_hint(Some(INTEGERS))
            })?
        }
    };
    let course =
        course(&written.options, &data_type).map_err(|error| error.at(excerpt(name, statement)))?;
    let full = context.new_name(name, written.temporary, statement)?;
    if written.temporary {
        context.make_temporary_schema().await;
    }
    let mut change = context.catalog.change().await;
    check_schema(&change, &full, name, statement)?;
    if change.sequence(&full).is_some() {
        if written.if_not_exists {
            return Ok(Begun::Done { tag: TAG });
        }
        let message = format!("sequence \"{full}\" exists already");
        return Err(SqlError::invalid(Mistake::DuplicateTable, message)
            .at(excerpt(name, statement))
            .with_hint(Some("CREATE SEQUENCE IF NOT EXISTS")));
    }
    change.put_sequence(Sequence::new(full, course));
    change.commit().await?;
    Ok(Begun::Done { tag: TAG })
}

const INTEGERS: &str = "SMALLINT, INTEGER and BIGINT have sequences";

/// Whether numbers of a sequence can be of this type.
pub(super) fn is_integer(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int16 | DataType::Int32 | DataType::Int64
    )
}

/// The numbers that options speak of, of this type.
///
/// # Errors
/// They contradict each other.
pub(super) fn course(
    options: &[SequenceOptions],
    data_type: &DataType,
) -> Result<Course, SqlError> {
    let wrong = |message: String| Err(SqlError::invalid(Mistake::InvalidParameterValue, message));
    let (bottom, top) = match data_type {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::Int64 => (i64::MIN, i64::MAX),
        other => {
            let name = sql_name(other, None);
            let error = SqlError::invalid(
                Mistake::InvalidTableDefinition,
                format!("numbers of a sequence are no {name}"),
            );
            return Err(error.with_hint(Some(INTEGERS)));
        }
    };
    let (mut increment, mut start, mut least, mut most, mut cycle) = (1, None, None, None, false);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(value, _) => increment = number("INCREMENT", value)?,
            SequenceOptions::StartWith(value, _) => start = Some(number("START", value)?),
            SequenceOptions::MinValue(value) => {
                let value = value.as_ref();
                least = value.map(|value| number("MINVALUE", value)).transpose()?;
            }
            SequenceOptions::MaxValue(value) => {
                let value = value.as_ref();
                most = value.map(|value| number("MAXVALUE", value)).transpose()?;
            }
            // Numbers are taken in memory: there is nothing to be gained by taking many at once.
            SequenceOptions::Cache(value) => {
                if number("CACHE", value)? < 1 {
                    return wrong(format!("CACHE {value}: it is at least 1"));
                }
            }
            SequenceOptions::Cycle(no) => cycle = !no,
        }
    }
    if increment == 0 {
        return wrong("INCREMENT is 0: a sequence gives different numbers".into());
    }
    let (first, last) = if increment > 0 {
        (1, top)
    } else {
        (bottom, -1)
    };
    let (least, most) = (least.unwrap_or(first), most.unwrap_or(last));
    if least < bottom || most > top {
        let name = sql_name(data_type, None);
        return wrong(format!("MINVALUE {least} or MAXVALUE {most} is no {name}"));
    }
    if least >= most {
        return wrong(format!("MINVALUE {least} is not less than MAXVALUE {most}"));
    }
    let start = start.unwrap_or(if increment > 0 { least } else { most });
    if !(least..=most).contains(&start) {
        return wrong(format!("START {start} is not between {least} and {most}"));
    }
    Ok(Course {
        start,
        increment,
        least,
        most,
        cycle,
    })
}

fn number(option: &str, value: &Expr) -> Result<i64, SqlError> {
    let digits = match value {
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => format!("-{expr}"),
        Expr::UnaryOp { expr, .. } => expr.to_string(),
        other => other.to_string(),
    };
    digits.parse().map_err(|_| {
        let message = format!("{option} {value}: it is no BIGINT");
        SqlError::invalid(Mistake::InvalidParameterValue, message)
    })
}

/// `DROP SEQUENCE [IF EXISTS] name, … [CASCADE]`: all of them, or none. With CASCADE, columns whose DEFAULT takes
/// numbers of one have none any more, as in PostgreSQL.
pub(super) async fn drop(
    context: &StatementContext,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let find = || -> Result<Vec<Arc<Sequence>>, SqlError> {
        let found = names
            .iter()
            .map(|name| match context.sequence(name, statement) {
                Ok(sequence) => Ok(Some(sequence)),
                Err(error) if if_exists && error.is(Mistake::UndefinedTable) => Ok(None),
                Err(error) => Err(error),
            });
        let found: Vec<_> = found.collect::<Result<_, _>>()?;
        Ok(found.into_iter().flatten().collect())
    };
    let users = || -> Result<Vec<Arc<Table>>, SqlError> {
        let dropped: Vec<_> = find()?.iter().map(|found| found.name.clone()).collect();
        let contents = context.catalog.contents();
        let users = contents
            .tables()
            .filter(|table| uses(table, &dropped).is_some());
        Ok(users.cloned().collect())
    };
    let locked = locks::exclusive(context, users).await?;
    let mut change = context.catalog.change().await;
    let dropped: Vec<RelationName> = find()?.iter().map(|found| found.name.clone()).collect();
    for user in &locked {
        let table = &user.table;
        let Some(column) = uses(table, &dropped) else {
            continue;
        };
        let field = table.schema.field(column).name();
        if table.rules[column].identity.is_some() {
            let message = format!(
                "the sequence is that of column \"{field}\" of table \"{}\", with which it goes",
                table.name
            );
            return Err(SqlError::invalid(Mistake::DependentObjects, message));
        }
        if !cascade {
            return Err(in_use(table, column));
        }
        let mut definition = table.definition();
        for rules in &mut definition.rules {
            let default = rules.default.as_ref();
            if default.is_some_and(|default| takes(default, &dropped)) {
                rules.default = None;
            }
        }
        change.put(TableOrView::Table(Arc::new(table.redefined(definition)?)));
    }
    for name in &dropped {
        change.remove_sequence(name);
    }
    change.commit().await?;
    Ok(Begun::Done {
        tag: "DROP SEQUENCE",
    })
}

/// Rejects to drop sequences of which other tables than these take numbers.
pub(super) fn check_unused(
    contents: &crate::catalog::Contents,
    dropped: &[RelationName],
    but: impl Fn(&Table) -> bool,
) -> Result<(), SqlError> {
    let mut tables = contents.tables().filter(|table| !but(table));
    match tables.find_map(|table| Some((table, uses(table, dropped)?))) {
        Some((table, column)) => Err(in_use(table, column)),
        None => Ok(()),
    }
}

/// The sequences of a table's own columns.
pub(super) fn own(table: &Table) -> impl Iterator<Item = &Arc<Sequence>> {
    let identities = table
        .rules
        .iter()
        .filter_map(|rules| rules.identity.as_ref());
    identities.map(|identity| &identity.sequence)
}

fn takes(default: &DefaultValue, of: &[RelationName]) -> bool {
    default.sequences.iter().any(|name| of.contains(name))
}

/// The first column whose DEFAULT takes numbers of these sequences.
fn uses(table: &Table, of: &[RelationName]) -> Option<usize> {
    let mut defaults = table.rules.iter().map(|rules| rules.default.as_ref());
    defaults.position(|default| default.is_some_and(|default| takes(default, of)))
}

fn in_use(table: &Table, column: usize) -> SqlError {
    let field = table.schema.field(column).name();
    let message = format!(
        "the DEFAULT of column \"{field}\" of table \"{}\" takes numbers of the sequence",
        table.name
    );
    SqlError::invalid(Mistake::DependentObjects, message).with_hint(Some(format!(
        "ALTER TABLE {} ALTER COLUMN {} DROP DEFAULT first; DROP SEQUENCE … CASCADE does so",
        table.name.sql(),
        quoted(field)
    )))
}

/// The sequences that an expression takes numbers of. Their names become full, so that the expression means the same in
/// every session.
///
/// # Errors
/// There is no such sequence, or its name is not written as a string.
pub(super) fn bind(
    context: &StatementContext,
    expr: &mut Expr,
) -> Result<Vec<RelationName>, SqlError> {
    let mut found = Vec::new();
    let bound = expressions_mut(expr, |expr| match bind_call(context, expr) {
        Ok(sequence) => {
            found.extend(sequence.filter(|sequence| !found.contains(sequence)));
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(Box::new(error)),
    });
    match bound {
        ControlFlow::Continue(()) => Ok(found),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn bind_call(
    context: &StatementContext,
    expr: &mut Expr,
) -> Result<Option<RelationName>, SqlError> {
    let Expr::Function(function) = expr else {
        return Ok(None);
    };
    if !is_of_sequence(&function.name.to_string().to_lowercase()) {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return Ok(None);
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(name))) = list.args.first_mut() else {
        return Ok(None);
    };
    // As PostgreSQL dumps it: nextval('s'::regclass).
    if let Expr::Cast {
        expr,
        data_type: ast::DataType::Regclass,
        ..
    } = name
    {
        *name = Expr::clone(expr);
    }
    let Expr::Value(value) = name else {
        return Err(SqlError::not_supported(
            "the name of a sequence in DEFAULT that is no string",
        ));
    };
    let Value::SingleQuotedString(text) = &mut value.value else {
        return Ok(None);
    };
    let sequence = context.sequence_of(text)?;
    let RelationName { name, .. } = &sequence.name;
    *text = format!("{}.{}", quoted(sequence.name.shown_schema()), quoted(name));
    Ok(Some(sequence.name.clone()))
}

/// The DEFAULT of a column whose numbers come from a sequence of its own.
pub(super) fn default_of(sequence: &Sequence) -> DefaultValue {
    let RelationName { name, .. } = &sequence.name;
    let full = format!("{}.{}", quoted(sequence.name.shown_schema()), quoted(name));
    let call = |name: String| {
        let text = format!("nextval('{}')", name.replace('\'', "''"));
        let parser = datafusion::sql::sqlparser::parser::Parser::new(&eris_syntax::ErisDialect);
        let parsed = parser
            .try_with_sql(&text)
            .and_then(|mut parser| parser.parse_expr());
        parsed.expect("it is a call")
    };
    DefaultValue {
        expr: call(sequence.name.sql()),
        constant: None,
        sequences: vec![sequence.name.clone()],
        bound: Some(Box::new(call(full))),
    }
}
