//! Puts macros in where they are called.
//!
//! ```text
//! taxed(p + q)      arguments      slot 0 = p + q
//!                   body           slot 0 * (1 + 0.19)        its own calls are expanded next, in its own schema
//!                   at the end     (p + q) * (1 + 0.19)
//! ```
//!
//! A call in a body is looked up where the macro was created, one in an argument where the statement is. So arguments
//! are set aside, in slots, and come in when all bodies are there.

use super::capture::{Around, Mentioned, check, relation_names};
use super::definition::{Argument, Body, Definition, Form, enclosed};
use crate::error::{Mistake, SqlError};
use crate::text::depth::{LEVELS, PARTS};
use crate::text::identifier::{last_name, normalize, without_places};
use crate::text::names::shown;
use crate::text::parse::place_of;
use crate::text::series::{call, differs_by_row};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, ObjectName, Query, Select, SelectItem, TableAlias, TableFactor, Value,
    VisitorMut,
};
use eris_syntax::{Tree, expressions, expressions_mut, own_expressions, walk_mut};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What names mean. `schema` is where names without a schema are looked up; `None` is that of the statement.
pub(crate) trait Macros {
    /// The macro that is called in expressions, or in FROM.
    fn find(
        &self,
        name: &ObjectName,
        is_table: bool,
        schema: Option<&str>,
    ) -> Option<Arc<Definition>>;

    /// The columns of a table or view; `None` if they cannot be told.
    fn columns(&self, relation: &ObjectName, schema: Option<&str>) -> Option<HashSet<String>>;
}

/// A statement may call macros, and macros each other, this often.
const MOST_CALLS: usize = 10_000;

/// Macros may call each other this deep.
const MOST_NESTED: usize = 100;

/// Puts in all macros that a tree calls; whether it calls any.
///
/// # Errors
/// A macro does not take the arguments, calls itself, or would take an argument for something else.
pub(crate) fn expand(
    tree: &mut impl Tree,
    macros: &dyn Macros,
    statement: &Statement,
) -> Result<bool, SqlError> {
    let mut expansion = Expansion {
        macros,
        statement,
        slots: Vec::new(),
        calls: 0,
        running: Vec::new(),
        levels: 0,
    };
    expansion.walk(tree, None)?;
    expansion.fill(tree)?;
    Ok(expansion.calls > 0)
}

struct Expansion<'a> {
    macros: &'a dyn Macros,
    statement: &'a Statement,
    slots: Vec<Slot>,
    /// How many macros have been put in.
    calls: usize,
    /// The macros whose bodies are looked at, innermost last.
    running: Vec<Running>,
    /// How deep the calls of these stand in what is around them.
    levels: usize,
}

/// A macro whose body is looked at: its schema, its name, and whether it is a table. All three tell it from others.
type Running = (String, String, bool);

/// An argument.
struct Slot {
    expr: Expr,
    mentioned: Mentioned,
    /// How many expressions it will have, those of the slots in it included.
    size: usize,
}

/// The name of a slot: no statement can have a parameter of this name.
const SLOT: &str = "\u{1}";

fn slot(at: usize) -> Expr {
    Expr::value(Value::Placeholder(format!("{SLOT}{at}")))
}

fn slot_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else {
        return None;
    };
    match &value.value {
        Value::Placeholder(name) => name.strip_prefix(SLOT)?.parse().ok(),
        _ => None,
    }
}

impl Expansion<'_> {
    fn walk(&mut self, tree: &mut impl Tree, schema: Option<&str>) -> Result<(), SqlError> {
        let mut calls = Calls {
            expansion: self,
            schema,
            around: Around::default(),
            levels: 0,
        };
        match walk_mut(tree, &mut calls) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    /// What a call stands for, with slots for its arguments.
    fn body(
        &mut self,
        called: &Definition,
        args: &[FunctionArg],
        around: &Around,
        schema: Option<&str>,
    ) -> Result<Body, SqlError> {
        let name = &called.name;
        self.calls += 1;
        if self.calls > MOST_CALLS {
            let message = format!("more than {MOST_CALLS} calls of macros");
            return Err(SqlError::invalid(Mistake::TooComplex, message));
        }
        let (form, args) = called.form(args)?;
        let is_table = matches!(form.body, Body::Table(_));
        let running = (called.schema.clone(), name.clone(), is_table);
        if self.running.contains(&running) {
            let message = format!("macro \"{name}\" calls itself");
            return Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message));
        }
        if self.levels > LEVELS {
            let message = format!("an expression of more than {LEVELS} levels, macros put in");
            return Err(SqlError::invalid(Mistake::TooComplex, message));
        }
        let mut body = form.body.clone();
        let captures = body.can_capture();
        self.running.push(running);
        if self.running.len() > MOST_NESTED {
            let message = format!("macros that call each other more than {MOST_NESTED} deep");
            return Err(SqlError::invalid(Mistake::TooComplex, message));
        }
        let count = args.len();
        let mut slots = Vec::with_capacity(count);
        for Argument {
            value: mut arg,
            is_default,
        } in args
        {
            if is_default {
                without_places(&mut arg);
                self.walk(&mut arg, Some(&called.schema))?;
            } else if captures {
                around.qualify(&mut arg, |relation| self.macros.columns(relation, schema));
            }
            slots.push(self.slot(arg, schema));
        }
        let first = self.slots.len();
        self.slots.extend(slots);
        let put_in = match &mut body {
            Body::Scalar(expr) => self.put_in(&mut **expr, form, first, &called.schema),
            Body::Table(query) => self.put_in(&mut **query, form, first, &called.schema),
        };
        self.running.pop();
        put_in?;
        let slots = self.slots[first..first + count].iter();
        check(
            called,
            &body,
            slots.map(|slot| &slot.mentioned),
            self.macros,
        )?;
        Ok(body)
    }

    /// Puts slots in the place of parameters, and what a body calls in the place of calls.
    fn put_in(
        &mut self,
        body: &mut impl Tree,
        form: &Form,
        first: usize,
        schema: &str,
    ) -> Result<(), SqlError> {
        without_places(body);
        let relations = relation_names(body);
        // The visitor never breaks off.
        let _ = expressions_mut(body, |expr| {
            put_parameter(expr, form, first, &relations);
            ControlFlow::<()>::Continue(())
        });
        self.walk(body, Some(schema))
    }

    /// An argument that is set aside.
    fn slot(&self, expr: Expr, schema: Option<&str>) -> Slot {
        let mut size = 0_usize;
        let mut mentioned = Mentioned::by(&expr, self.macros, schema);
        // The visitor never breaks off.
        let _ = expressions(&expr, |part| {
            let within = slot_of(part).map(|at| &self.slots[at]);
            if let Some(slot) = within {
                mentioned.add(&slot.mentioned);
            }
            size = size.saturating_add(within.map_or(1, |slot| slot.size));
            ControlFlow::<()>::Continue(())
        });
        Slot {
            expr: enclosed(expr),
            mentioned,
            size,
        }
    }

    /// Puts the arguments in the place of their slots.
    fn fill(&mut self, tree: &mut impl Tree) -> Result<(), SqlError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let slots = self.slots.iter().map(|slot| slot.size);
        let mut size = slots.fold(0, usize::saturating_add);
        // The visitor never breaks off.
        let _ = expressions(tree, |part| {
            let within = slot_of(part).map_or(1, |at| self.slots[at].size);
            size = size.saturating_add(within);
            ControlFlow::<()>::Continue(())
        });
        if size > PARTS {
            let message = format!("a statement of more than {PARTS} expressions, macros put in");
            return Err(SqlError::invalid(Mistake::TooComplex, message));
        }
        // A slot has only earlier ones in it.
        for at in 0..self.slots.len() {
            let (filled, rest) = self.slots.split_at_mut(at);
            fill_one(&mut rest[0].expr, filled);
        }
        fill_one(tree, &self.slots);
        Ok(())
    }
}

/// Finds calls, the innermost first.
struct Calls<'a, 'b> {
    expansion: &'a mut Expansion<'b>,
    /// Where names are looked up, see [`Macros`].
    schema: Option<&'a str>,
    around: Around,
    levels: usize,
}

type Step = ControlFlow<Box<SqlError>>;

impl Calls<'_, '_> {
    fn find(&self, name: &ObjectName, is_table: bool) -> Option<Arc<Definition>> {
        self.expansion.macros.find(name, is_table, self.schema)
    }

    fn body(
        &mut self,
        called: &Definition,
        name: &ObjectName,
        args: &[FunctionArg],
    ) -> Result<Body, Box<SqlError>> {
        self.expansion.levels += self.levels;
        let body = self.expansion.body(called, args, &self.around, self.schema);
        self.expansion.levels -= self.levels;
        body.map_err(|error| {
            let place = place_of(name).map(|place| self.expansion.statement.excerpt(place));
            Box::new(error.at(place))
        })
    }

    /// Whether an expression calls a macro.
    fn has_call(&self, expr: &Expr) -> bool {
        let found = own_expressions(expr, |expr| match expr {
            Expr::Function(function) if self.find(&function.name, false).is_some() => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    }
}

impl VisitorMut for Calls<'_, '_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> Step {
        self.levels += 1;
        self.around.enter_query(query);
        Step::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Step {
        self.levels -= 1;
        self.around.leave();
        Step::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> Step {
        self.around.enter_statement(statement);
        Step::Continue(())
    }

    /// Columns are called as they were written.
    fn pre_visit_select(&mut self, select: &mut Select) -> Step {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && self.has_call(expr)
            {
                let expr = expr.clone();
                let alias = shown(item).unwrap_or_default();
                let alias = Ident::with_quote('"', alias);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        self.around.enter_select(select);
        Step::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> Step {
        self.around.leave();
        Step::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> Step {
        self.levels += 1;
        Step::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Step {
        self.levels -= 1;
        let Expr::Function(function) = expr else {
            return Step::Continue(());
        };
        let Some(called) = self.find(&function.name, false) else {
            return Step::Continue(());
        };
        match self.scalar(&called, function) {
            Ok(body) => {
                *expr = body;
                Step::Continue(())
            }
            Err(error) => Step::Break(error),
        }
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> Step {
        let (name, args, alias, lateral) = match table {
            TableFactor::Table {
                name,
                args: Some(args),
                alias,
                with_ordinality: false,
                ..
            } => (name, &args.args, alias, false),
            TableFactor::Function {
                name,
                args,
                alias,
                lateral,
                with_ordinality: false,
                ..
            } => (name, &*args, alias, *lateral),
            _ => return Step::Continue(()),
        };
        let Some(called) = self.find(name, true) else {
            return Step::Continue(());
        };
        let (name, args) = (name.clone(), args.clone());
        let subquery = match self.body(&called, &name, &args) {
            Ok(Body::Table(query)) => query,
            Ok(Body::Scalar(_)) => unreachable!("it is a macro for FROM"),
            Err(error) => return Step::Break(error),
        };
        let alias = alias.take().or_else(|| {
            Some(TableAlias {
                explicit: true,
                name: Ident::with_quote('"', last_name(&name)?),
                columns: Vec::new(),
                at: None,
            })
        });
        *table = TableFactor::Derived {
            lateral: lateral || args.iter().any(differs_by_row),
            subquery,
            alias,
            sample: None,
        };
        Step::Continue(())
    }
}

impl Calls<'_, '_> {
    /// What a call in an expression stands for.
    fn scalar(&mut self, called: &Definition, function: &Function) -> Result<Expr, Box<SqlError>> {
        let rejected = |what: &str| {
            let message = format!("{what} of macro \"{}\"", called.name);
            let hint = "write it at the aggregate in the macro";
            let place = place_of(&function.name);
            let place = place.map(|place| self.expansion.statement.excerpt(place));
            Err(Box::new(
                SqlError::not_supported(message)
                    .at(place)
                    .with_hint(Some(hint)),
            ))
        };
        let args = match &function.args {
            FunctionArguments::List(list) if list.duplicate_treatment.is_some() => {
                return rejected("DISTINCT");
            }
            FunctionArguments::List(list) if !list.clauses.is_empty() => {
                return rejected("ORDER BY");
            }
            FunctionArguments::List(list) => &list.args[..],
            FunctionArguments::None => &[],
            FunctionArguments::Subquery(_) => return rejected("a query as the only argument"),
        };
        if function.filter.is_some() {
            return rejected("FILTER");
        }
        if !function.within_group.is_empty() || function.null_treatment.is_some() {
            return rejected("WITHIN GROUP or IGNORE NULLS");
        }
        let body = match self.body(called, &function.name, args)? {
            Body::Scalar(body) => body,
            Body::Table(_) => unreachable!("it is a macro for expressions"),
        };
        match (*body, &function.over) {
            // A number that stands alone would be the position of a column.
            (body @ Expr::Value(_), None) => Ok(Expr::Nested(Box::new(body))),
            (body, None) => Ok(enclosed(body)),
            (Expr::Function(mut windowed), Some(_)) if windowed.over.is_none() => {
                windowed.over.clone_from(&function.over);
                Ok(Expr::Function(windowed))
            }
            (_, Some(_)) => {
                let message = format!(
                    "OVER of macro \"{}\", which is more than a call of a function",
                    called.name
                );
                let place = place_of(&function.name);
                let place = place.map(|place| self.expansion.statement.excerpt(place));
                Err(Box::new(SqlError::not_supported(message).at(place)))
            }
        }
    }
}

/// A parameter becomes its slot, `parameter.field` a field of it. A table of the same name hides it there.
fn put_parameter(expr: &mut Expr, form: &Form, first: usize, relations: &HashSet<String>) {
    match expr {
        Expr::Identifier(name) => {
            if let Some(at) = form.position(name) {
                *expr = slot(first + at);
            }
        }
        Expr::CompoundIdentifier(path) if !relations.contains(&normalize(&path[0])) => {
            let Some(at) = form.position(&path[0]) else {
                return;
            };
            let fields = path[1..].iter();
            *expr = fields.fold(slot(first + at), |value, field| {
                let field = Expr::value(Value::SingleQuotedString(normalize(field)));
                let arg = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
                let name = ObjectName::from(vec![Ident::new(GET_FIELD)]);
                call(name, vec![arg(value), arg(field)])
            });
        }
        _ => {}
    }
}

const GET_FIELD: &str = "get_field";

/// The slot and the field of `get_field(slot, 'field')`.
fn field_of_slot(expr: &Expr) -> Option<(usize, Ident)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(field))),
    ] = &list.args[..]
    else {
        return None;
    };
    match (&field.value, last_name(&function.name).as_deref()) {
        (Value::SingleQuotedString(field), Some(GET_FIELD)) => {
            Some((slot_of(value)?, Ident::with_quote('"', field)))
        }
        _ => None,
    }
}

fn no_position(key: &mut Expr) {
    let mut within = &*key;
    while let Expr::Nested(inner) = within {
        within = inner;
    }
    let is_number =
        matches!(within, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    if is_number && !std::ptr::eq(within, key) {
        *key = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(within.clone()),
            data_type: DataType::BigInt(None),
            array: false,
            format: None,
        };
    }
}

/// Fills all slots of a tree.
fn fill_one(tree: &mut impl Tree, slots: &[Slot]) {
    // The visitor never breaks off.
    let _ = walk_mut(tree, &mut Fill(slots));
}

struct Fill<'a>(&'a [Slot]);

impl VisitorMut for Fill<'_> {
    type Break = ();

    /// What a macro yields is no position of a column, not even a number.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(no_position);
        }
        ControlFlow::Continue(())
    }

    /// Before its parts: a column stands in the place of a slot and the field of it.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some((at, field)) = field_of_slot(expr) {
            let path = match &self.0[at].expr {
                Expr::Identifier(name) => Some(vec![name.clone()]),
                Expr::CompoundIdentifier(path) => Some(path.clone()),
                _ => None,
            };
            if let Some(mut path) = path {
                path.push(field);
                *expr = Expr::CompoundIdentifier(path);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(at) = slot_of(expr) {
            *expr = self.0[at].expr.clone();
        }
        ControlFlow::Continue(())
    }
}
