//! What identifiers mean.

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::Span;
use eris_syntax::{Tree, walk_mut};
use std::ops::ControlFlow;

/// The name that an identifier means: lower case, unless quoted.
pub(crate) fn normalize(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Takes the places from the names in a made-up text: they are none in the statement's text.
pub(crate) fn without_places(tree: &mut impl Tree) {
    // The visitor never breaks off.
    let _ = walk_mut(tree, &mut Places);
}

struct Places;

impl VisitorMut for Places {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        forget(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => name.span = Span::empty(),
            Expr::CompoundIdentifier(path) => {
                path.iter_mut().for_each(|name| name.span = Span::empty());
            }
            Expr::Function(function) => forget(&mut function.name),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn forget(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(name) = part {
            name.span = Span::empty();
        }
    }
}

/// The last part of a name, behind the schema.
pub(crate) fn last_name(name: &ObjectName) -> Option<String> {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(normalize)
}
