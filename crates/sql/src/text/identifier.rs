//! What identifiers mean.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

/// The name that an identifier means: lower case, unless quoted.
pub(crate) fn normalize(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// The last part of a name, behind the schema.
pub(crate) fn last_name(name: &ObjectName) -> Option<String> {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(normalize)
}
