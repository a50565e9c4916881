//! What identifiers mean.

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::tokenizer::Span;
use eris_syntax::{Tree, expressions_mut};
use std::ops::ControlFlow;

/// The name that an identifier means: lower case, unless quoted.
pub(crate) fn normalize(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Takes the places from the columns that a made-up text names: they are none in the statement's text.
pub(crate) fn without_places(tree: &mut impl Tree) {
    // The visitor never breaks off.
    let _ = expressions_mut(tree, |expr| {
        match expr {
            Expr::Identifier(name) => name.span = Span::empty(),
            Expr::CompoundIdentifier(path) => {
                path.iter_mut().for_each(|name| name.span = Span::empty());
            }
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        name.span = Span::empty();
                    }
                }
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
}

/// The last part of a name, behind the schema.
pub(crate) fn last_name(name: &ObjectName) -> Option<String> {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(normalize)
}
