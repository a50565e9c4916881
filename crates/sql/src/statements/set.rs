//! SET, RESET, SHOW and USE.

use crate::catalog::TEMPORARY;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::settings::{SETTINGS, Setting, find};
use crate::statements::show::{rows_of, text};
use crate::system::described;
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    self, ContextModifier, Expr, Ident, ObjectName, Reset, Set, UnaryOperator, Use, Value,
};

/// `SET [SESSION] name { = | TO } value`, and its other forms.
pub(crate) async fn set(context: &StatementContext, set: &Set) -> Result<Begun, SqlError> {
    match set {
        Set::SingleAssignment {
            scope,
            hivevar: false,
            variable,
            values,
        } => {
            if let Some(ContextModifier::Local) = scope {
                return Err(SqlError::not_supported("SET LOCAL")
                    .with_hint(Some("SET without LOCAL lasts until the session ends")));
            }
            assign(context, &plain(variable), values).await?;
        }
        Set::SetTimeZone {
            local: false,
            value,
        } => assign(context, "timezone", std::slice::from_ref(value)).await?,
        other => return Err(SqlError::not_supported(other.to_string())),
    }
    Ok(Begun::Done { tag: "SET" })
}

async fn assign(context: &StatementContext, name: &str, values: &[Expr]) -> Result<(), SqlError> {
    let setting = find(name)?;
    let [value] = values else {
        let message = format!("setting \"{}\" takes one value", setting.name);
        let hint = (setting.name == "search_path")
            .then_some("tables of other schemas are written schema.table");
        return Err(SqlError::invalid(Mistake::InvalidParameterValue, message).with_hint(hint));
    };
    let text = match value {
        Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
        {
            return setting.reset(context).await;
        }
        value => constant(value).ok_or_else(|| no_constant(setting, value))?,
    };
    if setting.name == "search_path" {
        check_current(context, &text)?;
    }
    setting.assign(context, &text).await
}

/// Rejects a schema that cannot be the current one.
fn check_current(context: &StatementContext, schema: &str) -> Result<(), SqlError> {
    if schema == TEMPORARY {
        let message = format!("schema \"{schema}\" cannot be the current one");
        return Err(
            SqlError::invalid(Mistake::InvalidParameterValue, message).with_hint(Some(
                "a name without a schema means a temporary table first",
            )),
        );
    }
    described::check_schema(context, schema)
}

/// A number that the setting of this name could have.
///
/// # Errors
/// It is no constant, or not among the setting's values.
pub(crate) fn number(name: &str, value: &Expr) -> Result<u64, SqlError> {
    let setting = find(name)?;
    let text = constant(value).ok_or_else(|| no_constant(setting, value))?;
    Ok(setting.parse(&text)?.number())
}

fn no_constant(setting: &Setting, value: &Expr) -> SqlError {
    let message = format!("setting \"{}\": {value} is no constant", setting.name);
    SqlError::invalid(Mistake::InvalidParameterValue, message)
        .with_hint(Some(format!("it takes {}", setting.type_name())))
}

/// A constant, as text.
fn constant(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            Value::Boolean(value) => Some(value.to_string()),
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Identifier(word) => Some(normalize(word)),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => constant(expr).map(|digits| format!("-{digits}")),
        _ => None,
    }
}

/// USE schema.
pub(crate) async fn use_schema(context: &StatementContext, which: &Use) -> Result<Begun, SqlError> {
    let name = match which {
        Use::Object(name) | Use::Schema(name) => name,
        other => return Err(SqlError::not_supported(other.to_string())),
    };
    let parts: Vec<String> = (name.0.iter())
        .filter_map(|part| part.as_ident().map(normalize))
        .collect();
    let schema = match parts.as_slice() {
        [schema] => schema,
        [catalog, schema] if catalog == crate::catalog::CATALOG => schema,
        _ => {
            return Err(SqlError::invalid(
                Mistake::UndefinedSchema,
                format!("\"{name}\" is no schema"),
            ));
        }
    };
    check_current(context, schema)?;
    find("search_path")?.assign(context, schema).await?;
    Ok(Begun::Done { tag: "USE" })
}

/// RESET name, RESET ALL.
pub(crate) async fn reset(context: &StatementContext, which: &Reset) -> Result<Begun, SqlError> {
    match which {
        Reset::ALL => context.session.change(|variables| {
            let temporary = variables.temporary.take();
            *variables = context.default_variables();
            variables.temporary = temporary;
        }),
        Reset::ConfigurationParameter(name) => find(&plain(name))?.reset(context).await?,
    }
    Ok(Begun::Done { tag: "RESET" })
}

/// SHOW name, SHOW ALL.
pub(crate) fn show(context: &StatementContext, name: &[Ident]) -> Result<Begun, SqlError> {
    let words: Vec<String> = name.iter().map(|word| word.value.to_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["all"] => rows_of([
            (
                "name",
                text(SETTINGS.iter().map(|setting| Some(setting.name.to_owned()))),
            ),
            (
                "value",
                text(SETTINGS.iter().map(|setting| Some(setting.value(context)))),
            ),
            (
                "description",
                text(
                    SETTINGS
                        .iter()
                        .map(|setting| Some(setting.description.to_owned())),
                ),
            ),
        ]),
        ["time", "zone"] => one(context, "timezone"),
        words => one(context, &words.join(".")),
    }
}

fn one(context: &StatementContext, name: &str) -> Result<Begun, SqlError> {
    let setting = find(name)?;
    rows_of([(
        setting.name,
        text(std::iter::once(Some(setting.value(context)))),
    )])
}

/// A setting's name as it was written.
fn plain(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part {
        ast::ObjectNamePart::Identifier(word) => word.value.clone(),
        other => other.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}
