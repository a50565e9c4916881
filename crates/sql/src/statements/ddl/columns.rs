//! Definitions of columns and of what holds for rows: types, NOT NULL, DEFAULT, CHECK.

use crate::catalog::{
    Check, ColumnRules, Course, DefaultValue, Definition, GeneratedColumn, SCHEMA, Unique,
};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::statements::ddl::references::WrittenKey;
use crate::statements::ddl::{excerpt_of, generated, sequence};
use crate::statements::insert::collect_one;
use crate::system::functions::sequence::untouched;
use crate::system::functions::session_state;
use crate::text::generated::OF_EXPRESSION;
use crate::text::identifier::{last_name, normalize};
use crate::text::mistakes::unknown_type;
use crate::text::parse::{place_of_expr, planning_error};
use crate::text::statement::Statement;
use crate::write::coerce;
use crate::write::row_rules::{ComputedDefault, check_condition};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::sql::sqlparser::ast::{
    self, ColumnOption, GeneratedAs, GeneratedExpressionMode, Ident, PrimaryKeyConstraint,
    TableConstraint, UniqueConstraint,
};
use eris_exact::types::{ColumnType, column_type, sql_name};
use eris_syntax::{expressions, expressions_mut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A column as CREATE TABLE or ADD COLUMN defines it.
pub(super) struct ColumnDefinition {
    pub field: Field,
    pub rules: ColumnRules,
    /// Its CHECKs, not looked at yet: they may name columns that come later.
    pub checks: Vec<UncheckedCheck>,
    /// If it is the table's PRIMARY KEY, perhaps with a name.
    pub primary: Option<Option<Ident>>,
    /// The same if it is UNIQUE.
    pub unique: Option<Option<Ident>>,
    /// To what it refers.
    pub references: Vec<WrittenKey>,
    /// Which numbers it gets, if it numbers rows, and whether always.
    pub identity: Option<(Course, bool)>,
}

/// Columns of a constraint, and its name if it has one.
pub(crate) type NamedColumns = (Option<Ident>, Vec<Ident>);

/// A CHECK as it is written.
pub(crate) struct UncheckedCheck {
    name: Option<Ident>,
    /// The column with whose definition it is written.
    column: Option<String>,
    expr: ast::Expr,
}

/// The column that is defined.
///
/// # Errors
/// A type that is not stored, an option that would not hold, a default that is no value of the column.
pub(super) async fn column(
    context: &StatementContext,
    definition: &ast::ColumnDef,
    statement: &Statement,
) -> Result<ColumnDefinition, SqlError> {
    let place = || excerpt_of(&definition.name, statement);
    let name = normalize(&definition.name);
    let serial = serial(&definition.data_type);
    let data_type = serial.as_ref().unwrap_or(&definition.data_type);
    let untyped = is_of_expression(data_type);
    let known = match untyped {
        true => ColumnType {
            data_type: DataType::Null,
            max_characters: None,
        },
        false => column_type(data_type).map_err(|reason| {
            let what = format!("{reason} of column \"{name}\"");
            unknown_type(&definition.data_type, what).at(place())
        })?,
    };
    let mut nullable = None;
    let mut rules = ColumnRules {
        max_characters: known.max_characters,
        ..ColumnRules::default()
    };
    let mut default = None;
    let mut checks = Vec::new();
    let (mut primary, mut unique) = (None, None);
    let mut references = Vec::new();
    let mut identity = None;
    if serial.is_some() {
        identity = Some((sequence::course(&[], &known.data_type)?, false));
    }
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null if nullable != Some(false) => nullable = Some(true),
            ColumnOption::NotNull if nullable != Some(true) => nullable = Some(false),
            ColumnOption::Null | ColumnOption::NotNull => {
                let message = format!("column \"{name}\" is both NULL and NOT NULL");
                return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
            }
            ColumnOption::Default(_) if default.is_some() => {
                let message = format!("column \"{name}\" has two defaults");
                return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
            }
            ColumnOption::Default(value) => default = Some(value),
            ColumnOption::Check(check) => checks.push(UncheckedCheck {
                name: option.name.clone().or_else(|| check.name.clone()),
                column: Some(name.clone()),
                expr: check.expr.as_ref().clone(),
            }),
            ColumnOption::PrimaryKey(key) if is_plain(key) && primary.is_none() => {
                primary = Some(option.name.clone().or_else(|| key.name.clone()));
            }
            ColumnOption::Unique(key) if is_plain_unique(key) && unique.is_none() => {
                unique = Some(option.name.clone().or_else(|| key.name.clone()));
            }
            ColumnOption::ForeignKey(key) => {
                let named = option.name.as_ref();
                let column = &definition.name;
                references.push(WrittenKey::of_column(column, named, key, statement)?);
            }
            ColumnOption::Generated {
                generated_as: generated_as @ (GeneratedAs::Always | GeneratedAs::ByDefault),
                sequence_options: Some(options),
                generation_expr: None,
                ..
            } if identity.is_none() => {
                // The column may have got another type since its sequence was made.
                let of = match context.is_opening() {
                    true => &DataType::Int64,
                    false => &known.data_type,
                };
                let course = sequence::course(options, of);
                let always = *generated_as == GeneratedAs::Always;
                identity = Some((course.map_err(|error| error.at(place()))?, always));
            }
            ColumnOption::Generated {
                generation_expr: Some(expr),
                generation_expr_mode,
                ..
            } if rules.generated.is_none() => {
                rules.generated = Some(GeneratedColumn {
                    expr: expr.clone(),
                    says_stored: *generation_expr_mode == Some(GeneratedExpressionMode::Stored),
                    order: 0,
                });
            }
            other => {
                let words = format!("{} of column \"{name}\"", first_words(&other.to_string()));
                return Err(SqlError::not_supported(not_enforced(&words)).at(place()));
            }
        }
    }
    if untyped && rules.generated.is_none() {
        let message = format!("column \"{name}\" has no type");
        return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
    }
    if rules.generated.is_some() {
        let what = [
            (primary.is_some(), "PRIMARY KEY"),
            (unique.is_some(), "UNIQUE"),
            (!references.is_empty(), "FOREIGN KEY"),
        ];
        if let Some((_, what)) = what.iter().find(|(is_there, _)| *is_there) {
            let what = format!("{what} of the generated column \"{name}\"");
            return Err(SqlError::not_supported(what).at(place()));
        }
        if default.is_some() || identity.is_some() {
            let message = format!("column \"{name}\" is generated: it has no DEFAULT");
            return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
        }
    }
    if primary.is_some() && nullable == Some(true) {
        let message = format!("column \"{name}\" is both NULL and PRIMARY KEY");
        return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
    }
    if identity.is_some() && (default.is_some() || nullable == Some(true)) {
        let message =
            format!("column \"{name}\" numbers rows: it has no other DEFAULT, and is no NULL");
        return Err(SqlError::invalid(Mistake::Syntax, message).at(place()));
    }
    let nullable = nullable.unwrap_or(primary.is_none() && identity.is_none());
    let field = Field::new(&name, known.data_type, nullable);
    if let Some(value) = default {
        let value = default_value(context, value, &field, &rules, statement).await;
        rules.default = Some(value.map_err(|error| error.at(place()))?);
    }
    Ok(ColumnDefinition {
        field,
        rules,
        checks,
        primary,
        unique,
        references,
        identity,
    })
}

/// Whether a column's type is that of its expression.
fn is_of_expression(data_type: &ast::DataType) -> bool {
    match data_type {
        ast::DataType::Custom(name, _) => last_name(name).is_some_and(|name| name == OF_EXPRESSION),
        _ => false,
    }
}

/// The type of a column that PostgreSQL calls SERIAL.
fn serial(data_type: &ast::DataType) -> Option<ast::DataType> {
    let ast::DataType::Custom(name, modifiers) = data_type else {
        return None;
    };
    match name.to_string().to_lowercase().as_str() {
        "smallserial" | "serial2" if modifiers.is_empty() => Some(ast::DataType::SmallInt(None)),
        "serial" | "serial4" if modifiers.is_empty() => Some(ast::DataType::Integer(None)),
        "bigserial" | "serial8" if modifiers.is_empty() => Some(ast::DataType::BigInt(None)),
        _ => None,
    }
}

/// Whether a PRIMARY KEY says nothing but its columns.
fn is_plain(key: &PrimaryKeyConstraint) -> bool {
    key.index_name.is_none()
        && key.index_type.is_none()
        && key.index_options.is_empty()
        && key.characteristics.is_none()
}

/// The columns of a PRIMARY KEY that is a constraint of the table, and its name.
///
/// # Errors
/// More than columns: what it says would not hold.
pub(crate) fn table_key(key: &PrimaryKeyConstraint) -> Result<NamedColumns, SqlError> {
    match plain_columns(&key.columns) {
        Some(columns) if is_plain(key) => Ok((key.name.clone(), columns)),
        _ => Err(SqlError::not_supported(
            "PRIMARY KEY with more than columns",
        )),
    }
}

/// The columns of a UNIQUE that is a constraint of the table, and its name.
///
/// # Errors
/// More than columns: what it says would not hold.
pub(crate) fn table_unique(unique: &UniqueConstraint) -> Result<NamedColumns, SqlError> {
    match plain_columns(&unique.columns) {
        Some(columns) if is_plain_unique(unique) => Ok((unique.name.clone(), columns)),
        _ => Err(SqlError::not_supported("UNIQUE with more than columns")),
    }
}

/// Whether a UNIQUE says nothing but its columns.
fn is_plain_unique(unique: &UniqueConstraint) -> bool {
    unique.index_name.is_none()
        && unique.index_type.is_none()
        && unique.index_options.is_empty()
        && unique.characteristics.is_none()
        && !matches!(unique.nulls_distinct, ast::NullsDistinctOption::NotDistinct)
}

/// The names of columns that are nothing but columns.
fn plain_columns(columns: &[ast::IndexColumn]) -> Option<Vec<Ident>> {
    let columns = columns.iter().map(|column| match &column.column.expr {
        ast::Expr::Identifier(name) if column.operator_class.is_none() => Some(name.clone()),
        _ => None,
    });
    columns.collect()
}

/// Adds a UNIQUE to a table's definition.
///
/// # Errors
/// There is no such column, it occurs twice, or the name is taken.
pub(crate) fn add_unique(
    definition: &mut Definition,
    (named, columns): NamedColumns,
    statement: &Statement,
) -> Result<(), SqlError> {
    let mut plain = Vec::with_capacity(columns.len());
    for column in &columns {
        let wrong = |mistake, message: String| {
            Err(SqlError::invalid(mistake, message).at(excerpt_of(column, statement)))
        };
        let name = normalize(column);
        if definition.schema.index_of(&name).is_err() {
            return wrong(
                Mistake::UndefinedColumn,
                format!("UNIQUE: there is no column \"{name}\""),
            );
        }
        if plain.contains(&name) {
            return wrong(
                Mistake::DuplicateColumn,
                format!("UNIQUE: column \"{name}\" occurs twice"),
            );
        }
        plain.push(name);
    }
    generated::reject("UNIQUE", &plain, &definition.schema, &definition.rules)?;
    let name = constraint_name(definition, named.as_ref(), &plain, "key", statement)?;
    definition.uniques.push(Unique {
        name,
        columns: plain,
        of_index: false,
        keys: None,
    });
    Ok(())
}

/// The name of a new constraint of these columns: the one that it is given, if no other has it, or else one with this
/// ending that is free.
pub(super) fn constraint_name(
    definition: &Definition,
    named: Option<&Ident>,
    columns: &[String],
    ending: &str,
    statement: &Statement,
) -> Result<String, SqlError> {
    if let Some(named) = named {
        let name = normalize(named);
        if definition.has_constraint(&name) {
            let table = &definition.name;
            let message = format!("table \"{table}\" has a constraint \"{name}\" already");
            return Err(SqlError::invalid(Mistake::DuplicateObject, message)
                .at(excerpt_of(named, statement)));
        }
        return Ok(name);
    }
    let name = format!("{}_{}_{ending}", definition.name.name, columns.join("_"));
    let numbered = (1..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !definition.has_constraint(name));
    Ok(free.expect("numbers do not end"))
}

/// A constraint of the table, if it is a CHECK.
///
/// # Errors
/// Another one, for it would not be enforced.
pub(crate) fn table_check(constraint: &TableConstraint) -> Result<UncheckedCheck, SqlError> {
    match constraint {
        TableConstraint::Check(check) if check.enforced != Some(false) => Ok(UncheckedCheck {
            name: check.name.clone(),
            column: None,
            expr: check.expr.as_ref().clone(),
        }),
        other => Err(SqlError::not_supported(not_enforced(first_words(
            &other.to_string(),
        )))),
    }
}

/// The words with which a constraint begins.
fn first_words(constraint: &str) -> &str {
    constraint.split('(').next().unwrap_or_default().trim()
}

fn not_enforced(constraint: &str) -> String {
    format!("{constraint}, for it would not be enforced")
}

/// DEFAULT of a column. A constant is evaluated now, anything else for each row that needs it.
///
/// # Errors
/// It is no value of the column's type, or needs rows.
pub(crate) async fn default_value(
    context: &StatementContext,
    value: &ast::Expr,
    field: &Field,
    rules: &ColumnRules,
    statement: &Statement,
) -> Result<DefaultValue, SqlError> {
    let mut bound = value.clone();
    let sequences = sequence::bind(context, &mut bound)?;
    if let Some(temporary) = sequences.iter().find(|name| name.is_temporary()) {
        let message = format!("a DEFAULT that takes numbers of \"{temporary}\"");
        return Err(SqlError::not_supported(message).with_hint(Some(
            "it ends with the session: CREATE SEQUENCE without TEMP",
        )));
    }
    let mut default = DefaultValue {
        // As SHOW CREATE TABLE writes it, it means what it means where public is current.
        expr: match sequences.is_empty() || *context.current_schema == *SCHEMA {
            true => value.clone(),
            false => bound.clone(),
        },
        constant: None,
        bound: (!sequences.is_empty()).then(|| Box::new(bound)),
        sequences,
    };
    let no_value = |error: SqlError| {
        let message = format!(
            "DEFAULT {value} is not a value of column \"{}\", whose type is {}",
            field.name(),
            sql_name(field.data_type(), rules.max_characters)
        );
        match error.kind() {
            SqlErrorKind::Constraint(violation, _) => SqlError::constraint(*violation, message),
            _ => SqlError::invalid(Mistake::DatatypeMismatch, message),
        }
    };
    if is_constant(value) {
        let (array, _) = collect_one(context, value, statement).await?;
        let array = coerce::column(&array, field, rules, &"", 1).map_err(no_value)?;
        let constant = ScalarValue::try_from_array(&array, 0);
        default.constant = Some(constant.map_err(SqlError::from_datafusion)?);
    } else {
        let mut state = session_state(context);
        for function in untouched(context) {
            let registered = state.register_udf(Arc::new(function));
            registered.map_err(SqlError::from_datafusion)?;
        }
        let planning = |error| {
            let error = planning_error(error, statement, &state);
            match error.kind() {
                SqlErrorKind::Invalid(Mistake::UndefinedColumn, _) => {
                    let place = place_of_expr(value).map(|place| statement.excerpt(place));
                    SqlError::not_supported("a column in DEFAULT").at(place)
                }
                _ => error,
            }
        };
        let values = ComputedDefault::new(&state, &default)
            .and_then(|default| default.values(1))
            .map_err(planning)?;
        coerce::column(&values, field, rules, &"", 1).map_err(no_value)?;
    }
    Ok(default)
}

fn is_constant(value: &ast::Expr) -> bool {
    match value {
        ast::Expr::Value(_) | ast::Expr::TypedString(_) => true,
        ast::Expr::UnaryOp { expr, .. }
        | ast::Expr::Nested(expr)
        | ast::Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// Adds CHECKs to a table.
///
/// # Errors
/// Unknown columns, an expression that is no condition, a name that is taken.
pub(crate) fn add_checks(
    context: &StatementContext,
    definition: &mut Definition,
    added: Vec<UncheckedCheck>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let state = session_state(context);
    let table = definition.name.name.clone();
    let names = DFSchema::try_from_qualified_schema(table.as_str(), &definition.schema);
    let names = names.map_err(SqlError::from_datafusion)?;
    for mut check in added {
        check_condition(&state, &check.expr, &names).map_err(|error| {
            let place = place_of_expr(&check.expr).map(|place| statement.excerpt(place));
            planning_error(error, statement, &state).at(place)
        })?;
        unqualify(&mut check.expr);
        let taken = |name: &str| definition.has_constraint(name);
        let name = match &check.name {
            Some(name) => {
                let plain = normalize(name);
                if taken(&plain) {
                    let error = SqlError::invalid(
                        Mistake::DuplicateObject,
                        format!("table \"{table}\" has a constraint \"{plain}\" already"),
                    );
                    return Err(error.at(excerpt_of(name, statement)));
                }
                plain
            }
            None => {
                let columns = columns_of(&check.expr);
                let mut only = columns.iter().filter(|_| columns.len() == 1);
                let column = check.column.as_ref().or(only.next());
                let column = column.map_or(String::new(), |column| format!("{column}_"));
                let name = format!("{table}_{column}check");
                let mut numbered = (1..).map(|number| format!("{name}{number}"));
                match taken(&name) {
                    true => numbered
                        .find(|name| !taken(name))
                        .expect("numbers do not end"),
                    false => name,
                }
            }
        };
        definition.checks.push(Check {
            name,
            expr: check.expr,
        });
    }
    Ok(())
}

/// Takes the table's name away from the names of columns: it may change.
pub(super) fn unqualify(expr: &mut ast::Expr) {
    let _ = expressions_mut(expr, |expr| {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let Some(last) = parts.pop()
        {
            *expr = ast::Expr::Identifier(last);
        }
        ControlFlow::<()>::Continue(())
    });
}

/// The columns that an expression of a CHECK names.
pub(crate) fn columns_of(expr: &ast::Expr) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    let _ = expressions(expr, |expr| {
        if let ast::Expr::Identifier(name) = expr {
            columns.insert(normalize(name));
        }
        ControlFlow::<()>::Continue(())
    });
    columns
}

/// Calls a column by another name in an expression of a CHECK.
pub(crate) fn rename_in(expr: &mut ast::Expr, old: &str, new: &str) {
    let _ = expressions_mut(expr, |expr| {
        if let ast::Expr::Identifier(name) = expr
            && normalize(name) == old
        {
            name.value = new.to_owned();
            name.quote_style = crate::catalog::quoted(new).starts_with('"').then_some('"');
        }
        ControlFlow::<()>::Continue(())
    });
}
