//! SET, RESET, SHOW and USE.

use super::{SETTINGS, Setting, find};
use crate::core::{Begun, Core, normalize};
use crate::error::SqlError;
use crate::statements::show::{rows_of, text};
use datafusion::sql::sqlparser::ast::{
    self, ContextModifier, Expr, Ident, ObjectName, Reset, Set, UnaryOperator, Use, Value,
};

/// SET [SESSION] name { = | TO } value, and its other forms.
pub(crate) fn set(core: &Core, set: &Set) -> Result<Begun, SqlError> {
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
            assign(core, &plain(variable), values)?;
        }
        Set::SetTimeZone {
            local: false,
            value,
        } => assign(core, "timezone", std::slice::from_ref(value))?,
        other => return Err(SqlError::not_supported(other.to_string())),
    }
    Ok(Begun::Done { tag: "SET" })
}

fn assign(core: &Core, name: &str, values: &[Expr]) -> Result<(), SqlError> {
    let setting = find(name)?;
    let [value] = values else {
        let message = format!("setting \"{}\" takes one value", setting.name);
        let hint = (setting.name == "search_path")
            .then_some("tables of other schemas are written schema.table");
        return Err(SqlError::invalid(message).with_hint(hint));
    };
    let text = match value {
        Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
        {
            return setting.reset(core);
        }
        value => constant(value).ok_or_else(|| no_constant(setting, value))?,
    };
    if setting.name == "search_path" {
        core.check_schema(&text)?;
    }
    setting.assign(core, &text)
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
    SqlError::invalid(message).with_hint(Some(format!("it takes {}", setting.type_name())))
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
pub(crate) fn use_schema(core: &Core, which: &Use) -> Result<Begun, SqlError> {
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
        _ => return Err(SqlError::invalid(format!("\"{name}\" is no schema"))),
    };
    core.check_schema(schema)?;
    find("search_path")?.assign(core, schema)?;
    Ok(Begun::Done { tag: "USE" })
}

/// RESET name, RESET ALL.
pub(crate) fn reset(core: &Core, which: &Reset) -> Result<Begun, SqlError> {
    match which {
        Reset::ALL => core
            .session
            .change(|variables| *variables = core.default_variables()),
        Reset::ConfigurationParameter(name) => find(&plain(name))?.reset(core)?,
    }
    Ok(Begun::Done { tag: "RESET" })
}

/// SHOW name, SHOW ALL.
pub(crate) fn show(core: &Core, name: &[Ident]) -> Result<Begun, SqlError> {
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
                text(SETTINGS.iter().map(|setting| Some(setting.value(core)))),
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
        ["time", "zone"] => one(core, "timezone"),
        words => one(core, &words.join(".")),
    }
}

fn one(core: &Core, name: &str) -> Result<Begun, SqlError> {
    let setting = find(name)?;
    rows_of([(
        setting.name,
        text(std::iter::once(Some(setting.value(core)))),
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
