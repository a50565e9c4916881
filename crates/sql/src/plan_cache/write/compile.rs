//! From the syntax tree of a statement to its [`Write`], if it is one.

use super::super::constant::{self, is_comparable};
use super::super::literal::{LiteralSource, is_literal, literal_value};
use super::super::{Asked, NotShort};
use super::answer::Answer;
use super::operand::Operand;
use super::program::{Program, excluded, parameter};
use super::syntax::{column_name, split};
use super::{CellSource, Conflict, Write, WriteAction};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::statements::dml;
use crate::statements::insert;
use crate::system::functions::session_state;
use crate::text::identifier::normalize;
use crate::text::parameter::placeholder;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use crate::write::locks::SharedLocks;
use crate::write::references::{Effect, Parents};
use crate::write::row_rules::RowRules;
use crate::write::targets;
use crate::write::unique_keys::UniqueKeys;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, BinaryOperator, Expr, Ident, ObjectName, OnConflictAction,
    OnInsert, SelectItem, SetExpr, TableObject, Value,
};
use eris_exact::scalar;
use eris_syntax::expressions_mut;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The write that a statement is. The values of parameters are those of the first execution.
///
/// # Errors
/// It is more than the write of single rows, or has an error, which the general path tells.
pub(in super::super) async fn compile(
    context: &StatementContext,
    tree: &ast::Statement,
    asked: Asked<'_>,
    statement: &Statement,
) -> Result<Write, NotShort> {
    let name = match tree {
        ast::Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => name,
            _ => return Err(NotShort::NotOneTable),
        },
        tree => {
            let changed = dml::changed_table(tree).ok_or(NotShort::NotOneTable)?;
            fails(changed)?
        }
    };
    let contents = context.catalog.contents();
    let table = fails(context.table(name, statement))?;
    // Keys that others refer to may be taken away: that takes the table's lock alone, and a query.
    let affected = Effect::of(tree).affected(&table, &contents);
    let locks = fails(SharedLocks::of(context, &table, &affected))?;
    let locks = locks.ok_or(NotShort::KeysReferred)?;
    let parents = fails(Parents::new(&table, &affected.outgoing))?;
    let rules = fails(RowRules::new(context, &table))?;
    let mut compiler = Compiler {
        context,
        statement,
        table: Arc::clone(&table),
        asked,
        operands: Vec::new(),
    };
    let (action, tag) = match tree {
        ast::Statement::Insert(insert) => (compiler.insert(insert).await?, "INSERT"),
        ast::Statement::Update(update) => (compiler.update(update).await?, "UPDATE"),
        ast::Statement::Delete(delete) => (compiler.delete(delete).await?, "DELETE"),
        _ => return Err(NotShort::NotOneTable),
    };
    let answer = match returned(&table, tree)? {
        Some((alias, items)) => {
            Some(Answer::plan(context, &table, &alias, items, statement).await?)
        }
        None => None,
    };
    let rules = Some(rules).filter(RowRules::is_lasting);
    let uniques = UniqueKeys::of(&table);
    let asks_nobody = parents.is_empty() && uniques.is_empty() && answer.is_none();
    let has_quick_rules = || {
        let rules = rules.as_ref();
        rules.is_some_and(|rules| rules.are_quick(&table.unruled))
    };
    let is_at_home =
        asks_nobody && has_quick_rules() && action.program().is_some_and(Program::is_quick);
    if !Arc::ptr_eq(&contents, &context.catalog.contents()) {
        return Err(NotShort::Outdated);
    }
    Ok(Write {
        contents: Arc::downgrade(&contents),
        variables: context.variables().clone(),
        operands: compiler.operands,
        action,
        answer,
        rules,
        parents,
        uniques,
        is_at_home,
        table,
        locks,
        tag,
    })
}

/// What RETURNING says, and what it calls the table; `None` without.
fn returned<'a>(
    table: &Table,
    tree: &'a ast::Statement,
) -> Result<Option<(Ident, &'a [SelectItem])>, NotShort> {
    let (items, alias) = match tree {
        ast::Statement::Insert(insert) => (&insert.returning, Some(insert::alias(table, insert))),
        ast::Statement::Update(update) => (&update.returning, dml::alias(tree)),
        ast::Statement::Delete(delete) => (&delete.returning, dml::alias(tree)),
        _ => return Err(NotShort::NotOneTable),
    };
    match items {
        Some(items) => Ok(Some((alias.ok_or(NotShort::Fails)?, items))),
        None => Ok(None),
    }
}

struct Compiler<'a> {
    context: &'a StatementContext,
    statement: &'a Statement,
    table: Arc<Table>,
    asked: Asked<'a>,
    operands: Vec<Operand>,
}

impl Compiler<'_> {
    async fn insert(&mut self, insert: &ast::Insert) -> Result<WriteAction, NotShort> {
        fails(insert::reject_the_rest(insert))?;
        let columns = fails(targets::columns(&self.table, &insert.columns))?;
        if let Some(source) = &insert.source {
            fails(targets::check_rows(&self.table, &columns, source))?;
        }
        let mut insert = Cow::Borrowed(insert);
        if insert.or.is_some() {
            let insert = insert.to_mut();
            fails(insert::replace::write_out(insert, &self.table, &columns))?;
        }
        let source = insert.source.as_ref().ok_or(NotShort::NotValues)?;
        let SetExpr::Values(values) = source.body.as_ref() else {
            return Err(NotShort::NotValues);
        };
        let is_plain = source.with.is_none()
            && source.order_by.is_none()
            && source.limit_clause.is_none()
            && source.fetch.is_none();
        if !is_plain {
            return Err(NotShort::NotValues);
        }
        let defaults = fails(targets::targets(self.context, &self.table, &columns))?;
        let mut rows = Vec::new();
        let mut computed = Vec::new();
        for (column, default) in defaults.iter().enumerate() {
            if let Target::Computed(default) = default {
                computed.push((column, default.is_lasting().then(|| default.clone())));
            }
        }
        for row in &values.rows {
            if row.content.len() != columns.len() {
                return Err(NotShort::Fails);
            }
            for (column, default) in defaults.iter().enumerate() {
                rows.push(match default {
                    Target::Source(position) => self.cell(&row.content[*position], column)?,
                    Target::Sources(_) => unreachable!("a row of VALUES is not taken apart here"),
                    Target::Constant(value) => CellSource::Constant(value.clone()),
                    // What is in its place is not looked at.
                    Target::Computed(_) => {
                        let data_type = self.table.schema.field(column).data_type();
                        CellSource::Constant(fails(ScalarValue::try_from(data_type))?)
                    }
                });
            }
        }
        let conflict = match &insert.on {
            None => Conflict::Reject,
            Some(_) if values.rows.len() > 1 => return Err(NotShort::SeveralRows),
            Some(OnInsert::OnConflict(conflict)) => {
                // Of a row that is in the way by a UNIQUE constraint the key is not known.
                let columns = fails(dml::conflicting(&self.table, conflict))?;
                let key = self.table.key.as_ref();
                if key.is_none_or(|key| key.columns != columns) {
                    return Err(NotShort::OtherConflict);
                }
                match &conflict.action {
                    OnConflictAction::DoNothing => Conflict::Nothing,
                    OnConflictAction::DoUpdate(update) => {
                        let alias = insert::alias(&self.table, &insert);
                        Conflict::Update(self.on_conflict(alias, update.clone()).await?)
                    }
                }
            }
            Some(_) => return Err(NotShort::Fails),
        };
        Ok(WriteAction::Insert {
            rows,
            computed,
            conflict,
        })
    }

    /// DO UPDATE as a program over the row that is there and the excluded one.
    async fn on_conflict(
        &mut self,
        alias: Ident,
        mut update: ast::DoUpdate,
    ) -> Result<Program, NotShort> {
        self.reject_keys(&update.assignments)?;
        let table = Arc::clone(&self.table);
        let rewritten = expressions_mut(&mut update, |expr| {
            match expr {
                Expr::CompoundIdentifier(parts) => {
                    let [qualifier, column] = parts.as_mut_slice() else {
                        return ControlFlow::Break(());
                    };
                    if normalize(qualifier) == "excluded" {
                        let name = normalize(column);
                        if table.schema.index_of(&name).is_err() {
                            return ControlFlow::Break(());
                        }
                        (*qualifier, *column) = (alias.clone(), excluded(&name));
                    }
                }
                // It could mean both.
                Expr::Identifier(word)
                    if !targets::is_word_default(&Expr::Identifier(word.clone())) =>
                {
                    return ControlFlow::Break(());
                }
                Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                    return ControlFlow::Break(());
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        if rewritten.is_break() {
            return Err(NotShort::Ambiguous);
        }
        let mut parameters = self.assigned(&alias, &mut update.assignments)?;
        if let Some(selection) = &mut update.selection {
            self.numbers(&alias, selection, &mut parameters)?;
        }
        let tree = dml::update_of(&alias, update);
        let (query, targets) =
            dml::row_change(self.context, &self.table, tree).ok_or(NotShort::Fails)?;
        self.program(query, true, parameters, targets).await
    }

    async fn update(&mut self, update: &ast::Update) -> Result<WriteAction, NotShort> {
        if update.from.is_some() {
            return Err(NotShort::Joined);
        }
        self.reject_keys(&update.assignments)?;
        let mut update = ast::Update {
            returning: None,
            ..update.clone()
        };
        let alias = dml::alias(&ast::Statement::Update(update.clone())).ok_or(NotShort::Fails)?;
        let (key, rest) = self.key(&alias, update.selection.take().ok_or(NotShort::NoKey)?)?;
        let mut parameters = self.assigned(&alias, &mut update.assignments)?;
        update.selection = rest;
        if let Some(selection) = &mut update.selection {
            self.numbers(&alias, selection, &mut parameters)?;
        }
        let (query, targets) =
            dml::row_change(self.context, &self.table, ast::Statement::Update(update))
                .ok_or(NotShort::Fails)?;
        let program = self.program(query, false, parameters, targets).await?;
        Ok(WriteAction::Update(key, program))
    }

    async fn delete(&mut self, delete: &ast::Delete) -> Result<WriteAction, NotShort> {
        if delete.using.is_some() {
            return Err(NotShort::Joined);
        }
        let mut delete = ast::Delete {
            returning: None,
            ..delete.clone()
        };
        let alias = dml::alias(&ast::Statement::Delete(delete.clone())).ok_or(NotShort::Fails)?;
        let (key, rest) = self.key(&alias, delete.selection.take().ok_or(NotShort::NoKey)?)?;
        let Some(mut rest) = rest else {
            // Rejects what it does not know.
            dml::row_change(self.context, &self.table, ast::Statement::Delete(delete))
                .ok_or(NotShort::Fails)?;
            return Ok(WriteAction::Delete(key, None));
        };
        let mut parameters = Vec::new();
        self.numbers(&alias, &mut rest, &mut parameters)?;
        delete.selection = Some(rest);
        let tree = ast::Statement::Delete(delete);
        let (query, targets) =
            dml::row_change(self.context, &self.table, tree).ok_or(NotShort::Fails)?;
        let program = self.program(query, false, parameters, targets).await?;
        Ok(WriteAction::Delete(key, Some(program)))
    }

    async fn program(
        &self,
        query: ast::Query,
        has_excluded: bool,
        parameters: Vec<(usize, DataType)>,
        targets: Vec<Target>,
    ) -> Result<Program, NotShort> {
        let is_lasting = |target: &Target| match target {
            Target::Computed(default) => default.is_lasting(),
            _ => true,
        };
        if !targets.iter().all(is_lasting) {
            return Err(NotShort::ChangingDefault);
        }
        let (context, table) = (self.context, &self.table);
        Program::plan(
            context,
            table,
            query,
            has_excluded,
            parameters,
            targets,
            self.statement,
        )
        .await
    }

    /// The key that a condition names, and the rest of the condition.
    fn key(
        &mut self,
        alias: &Ident,
        condition: Expr,
    ) -> Result<(Vec<usize>, Option<Expr>), NotShort> {
        let table = Arc::clone(&self.table);
        let mut conjuncts = Vec::new();
        split(condition, &mut conjuncts);
        let mut key = Vec::new();
        for name in &table.key.as_ref().ok_or(NotShort::NoKey)?.columns {
            let column = fails(table.schema.index_of(name))?;
            // Floats are compared with constants by more than their values.
            if !is_comparable(&table.types[column]) {
                return Err(NotShort::NoKey);
            }
            let is_key = |expr: &Expr| column_name(alias, expr).as_ref() == Some(name);
            let place = conjuncts.iter().position(|conjunct| match conjunct {
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Eq,
                    right,
                } => is_key(left) != is_key(right),
                _ => false,
            });
            let place = place.ok_or(NotShort::NoKey)?;
            let Expr::BinaryOp { left, right, .. } = conjuncts.remove(place) else {
                return Err(NotShort::NoKey);
            };
            let value = if is_key(&left) { right } else { left };
            key.push(self.operand(&value, column)?);
        }
        let and = |left: Expr, right: Expr| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        };
        Ok((key, conjuncts.into_iter().reduce(and)))
    }

    /// Makes values that are assigned as they are operands, and numbers that others are computed with.
    fn assigned(
        &mut self,
        alias: &Ident,
        assignments: &mut [Assignment],
    ) -> Result<Vec<(usize, DataType)>, NotShort> {
        let mut parameters = Vec::new();
        for Assignment { target, value } in assignments {
            let AssignmentTarget::ColumnName(name) = target else {
                return Err(NotShort::ChangesKey);
            };
            let column = self.column(name).ok_or(NotShort::Fails)?;
            let is_free = match self.asked {
                Asked::Text(_) => is_literal(value),
                Asked::Prepared { .. } => placeholder(value).is_some(),
            };
            if is_free {
                let operand = self.operand(value, column)?;
                let data_type = self.table.schema.field(column).data_type().clone();
                parameters.push((operand, data_type));
                *value = Expr::CompoundIdentifier(vec![alias.clone(), parameter(operand)]);
            } else {
                self.numbers(alias, value, &mut parameters)?;
            }
        }
        Ok(parameters)
    }

    /// Makes parameters that are computed with operands, if they are numbers: of these the type alone decides what
    /// happens.
    fn numbers(
        &mut self,
        alias: &Ident,
        expr: &mut Expr,
        parameters: &mut Vec<(usize, DataType)>,
    ) -> Result<(), NotShort> {
        let mut visited = Ok(());
        let _ = expressions_mut(expr, |expr| {
            if let Some(name) = placeholder(expr) {
                match self.number(name) {
                    Some((operand, data_type)) => {
                        parameters.push((operand, data_type));
                        *expr = Expr::CompoundIdentifier(vec![alias.clone(), parameter(operand)]);
                    }
                    None => visited = Err(NotShort::ParameterType),
                }
            }
            ControlFlow::<()>::Continue(())
        });
        visited
    }

    fn number(&mut self, name: &str) -> Option<(usize, DataType)> {
        let Asked::Prepared { names, values, .. } = &self.asked else {
            return None;
        };
        let number = names.iter().position(|known| known == name)?;
        let data_type = values[number].value().data_type();
        if !matches!(data_type, DataType::Int64 | DataType::Float64) {
            return None;
        }
        let operand = Operand::Number(number, data_type.clone());
        Some((self.push(operand), data_type))
    }

    /// Rejects changes of the key: the row would get another owner.
    fn reject_keys(&self, assignments: &[Assignment]) -> Result<(), NotShort> {
        let key = &self.table.key.as_ref().ok_or(NotShort::NoKey)?.columns;
        let is_other = |assignment: &Assignment| match &assignment.target {
            AssignmentTarget::ColumnName(name) => self
                .column(name)
                .is_some_and(|column| !key.contains(self.table.schema.field(column).name())),
            AssignmentTarget::Tuple(_) => false,
        };
        match assignments.iter().all(is_other) {
            true => Ok(()),
            false => Err(NotShort::ChangesKey),
        }
    }

    fn column(&self, name: &ObjectName) -> Option<usize> {
        let columns = targets::columns(&self.table, std::slice::from_ref(name)).ok()?;
        columns.first().copied()
    }

    /// The value of a new row's column.
    fn cell(&mut self, expr: &Expr, column: usize) -> Result<CellSource, NotShort> {
        let data_type = self.table.schema.field(column).data_type();
        let constant = match expr {
            expr if targets::is_word_default(expr) => {
                let state = session_state(self.context);
                match fails(targets::default_target(&state, &self.table, column))? {
                    Target::Constant(value) => Some(value),
                    _ => return Err(NotShort::ChangingDefault),
                }
            }
            Expr::Value(value) => match &value.value {
                Value::Null => Some(fails(ScalarValue::try_from(data_type))?),
                Value::Boolean(value) if *data_type == DataType::Boolean => {
                    Some(ScalarValue::Boolean(Some(*value)))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(value) = constant {
            return Ok(CellSource::Constant(value));
        }
        match self.asked {
            Asked::Prepared { .. } if placeholder(expr).is_none() => {
                let (text, source) = self.literal(expr, 0, column).ok_or(NotShort::Computed)?;
                let value = constant::read(&text, &source, &source.data_type);
                let value = value.and_then(|value| scalar::to_datafusion(&value));
                value.map(CellSource::Constant).ok_or(NotShort::Value)
            }
            _ => self.operand(expr, column).map(CellSource::Operand),
        }
    }

    /// A value of a column that changes.
    fn operand(&mut self, expr: &Expr, column: usize) -> Result<usize, NotShort> {
        let operand = self.operand_of(expr, column);
        Ok(self.push(operand.ok_or(NotShort::Computed)?))
    }

    fn operand_of(&self, expr: &Expr, column: usize) -> Option<Operand> {
        match &self.asked {
            Asked::Text(masked) => {
                let start = literal_value(expr)?.0.span.start;
                let literal = masked.literal_at(start.line, start.column)?;
                Some(Operand::Literal(self.literal(expr, literal, column)?.1))
            }
            Asked::Prepared { names, .. } => {
                let name = placeholder(expr)?;
                let number = names.iter().position(|known| known == name)?;
                let data_type = self.table.types[column].clone();
                Some(Operand::Parameter(number, data_type))
            }
        }
    }

    fn push(&mut self, operand: Operand) -> usize {
        self.operands.push(operand);
        self.operands.len() - 1
    }

    /// A constant as it is written, and what it is to be.
    fn literal(
        &self,
        expr: &Expr,
        literal: usize,
        column: usize,
    ) -> Option<(String, LiteralSource)> {
        let (value, written) = literal_value(expr)?;
        let text = match &value.value {
            Value::Number(digits, _) => digits.clone(),
            Value::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
            _ => return None,
        };
        let source = LiteralSource {
            literal,
            written,
            data_type: self.table.types[column].clone(),
        };
        Some((text, source))
    }
}

/// Whatever is wrong is told by the general path.
fn fails<T, E>(result: Result<T, E>) -> Result<T, NotShort> {
    result.map_err(|_| NotShort::Fails)
}
