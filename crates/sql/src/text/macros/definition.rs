//! What a macro is: one or several forms, which their parameters tell apart.

use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, Query,
};
use std::fmt;

/// The meaning of a macro's name.
#[derive(Debug)]
pub(crate) struct Definition {
    /// As messages call it.
    pub name: String,
    /// The schema in which its own names are looked up.
    pub schema: String,
    pub forms: Vec<Form>,
}

/// What a macro is for so many arguments.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub parameters: Vec<Parameter>,
    /// With the names of tables, views and macros qualified that there were when it was made.
    pub body: Body,
    /// The body as it was written.
    pub text: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: Ident,
    /// What the argument is cast to.
    pub data_type: Option<DataType>,
    /// The argument if none is given; those behind it have one, too.
    pub default: Option<Expr>,
}

/// What a parameter stands for in a call.
pub(super) struct Argument {
    pub value: Expr,
    /// Whether it comes from the definition, not from the call.
    pub is_default: bool,
}

/// What is put in.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Scalar(Box<Expr>),
    Table(Box<Query>),
}

impl Definition {
    /// The form that takes these arguments, and one for each of its parameters.
    ///
    /// # Errors
    /// None does.
    pub(super) fn form(&self, args: &[FunctionArg]) -> Result<(&Form, Vec<Argument>), SqlError> {
        let mut forms = self.forms.iter();
        let found = forms.find_map(|form| Some((form, form.bind(args)?)));
        found.ok_or_else(|| {
            let message = format!("macro \"{}\" does not take these arguments", self.name);
            let forms: Vec<_> = self.forms.iter().map(Form::parameters_text).collect();
            let hint = format!("it takes {}", forms.join(" or "));
            SqlError::invalid(Mistake::UndefinedFunction, message).with_hint(Some(hint))
        })
    }
}

impl Form {
    /// The argument of each parameter: first those by position, then those by name, else the default.
    fn bind(&self, args: &[FunctionArg]) -> Option<Vec<Argument>> {
        let mut given: Vec<Option<Expr>> = vec![None; self.parameters.len()];
        let mut named = false;
        for (at, arg) in args.iter().enumerate() {
            let (place, value) = match arg {
                FunctionArg::Unnamed(value) if !named => (at, value),
                FunctionArg::Unnamed(_) => return None,
                FunctionArg::Named { name, arg, .. } => (self.position(name)?, arg),
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg,
                    ..
                } => (self.position(name)?, arg),
                FunctionArg::ExprNamed { .. } => return None,
            };
            named |= !matches!(arg, FunctionArg::Unnamed(_));
            let FunctionArgExpr::Expr(value) = value else {
                return None;
            };
            let slot = given.get_mut(place)?;
            if slot.replace(value.clone()).is_some() {
                return None;
            }
        }
        let bound = self.parameters.iter().zip(given).map(|(parameter, given)| {
            let is_default = given.is_none();
            let value = given.or_else(|| parameter.default.clone())?;
            let value = match &parameter.data_type {
                Some(data_type) => cast(value, data_type),
                None => value,
            };
            Some(Argument { value, is_default })
        });
        bound.collect()
    }

    /// The position of the parameter that an identifier means.
    pub fn position(&self, name: &Ident) -> Option<usize> {
        let name = normalize(name);
        let mut parameters = self.parameters.iter();
        parameters.position(|parameter| normalize(&parameter.name) == name)
    }

    /// `(a, n := 3)`.
    pub fn parameters_text(&self) -> String {
        let shown = self.parameters.iter().map(|parameter| {
            let mut text = parameter.name.to_string();
            if let Some(data_type) = &parameter.data_type {
                text += &format!(" {data_type}");
            }
            if let Some(default) = &parameter.default {
                text += &format!(" := {default}");
            }
            text
        });
        format!("({})", shown.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Scalar(expr) => write!(f, "{expr}"),
            Body::Table(query) => write!(f, "{query}"),
        }
    }
}

impl Form {
    /// What follows the name in CREATE MACRO, as it was written, or with names qualified.
    pub fn sql(&self, is_qualified: bool) -> String {
        let table = match self.body {
            Body::Scalar(_) => "",
            Body::Table(_) => "TABLE ",
        };
        let parameters = self.parameters_text();
        match is_qualified {
            true => format!("{parameters} AS {table}{}", self.body),
            false => format!("{parameters} AS {table}{}", self.text),
        }
    }
}

fn cast(value: Expr, data_type: &DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(value),
        data_type: data_type.clone(),
        array: false,
        format: None,
    }
}

/// The expression as a part of another one, whatever stands beside it.
pub(super) fn enclosed(expr: Expr) -> Expr {
    match &expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Function(_)
        | Expr::Nested(_)
        | Expr::Subquery(_)
        | Expr::Array(_)
        | Expr::Cast { .. }
        | Expr::Value(_) => expr,
        _ => Expr::Nested(Box::new(expr)),
    }
}
