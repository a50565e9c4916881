//! A statement with parameters: its tree, and the types of its parameters, from what they are compared with or inserted
//! into.

use crate::context::{NamedStatement, StatementContext};
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::plan_cache::{Asked, NotShort, PreparedPlan};
use crate::running::queries::shortened;
use crate::statements::dml;
use crate::statements::insert::by_name;
use crate::text::mistakes::unknown_type;
use crate::text::parameter::{Parameter, ParameterClass, class, placeholder};
use crate::text::parse::parse;
use crate::text::statement::Statement;
use crate::write::targets;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{self, Expr, SetExpr, TableObject, Value};
use eris_exact::types::{column_type, sql_name};
use eris_syntax::{expressions, expressions_mut};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A parsed statement and its parameters.
pub(crate) struct Prepared {
    /// With the whole text, for messages and views.
    statement: Statement,
    /// The text among the running statements.
    shown: Arc<str>,
    tree: ast::Statement,
    parameters: Vec<ParameterSlot>,
    /// The names of the parameters.
    names: Vec<String>,
    /// Whether one has a declared type.
    is_declared: bool,
    plan: PreparedPlan,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({})", self.shown)
    }
}

/// A parameter.
#[derive(Debug)]
struct ParameterSlot {
    /// As it is written, such as `$1`.
    name: String,
    data_type: Option<DataType>,
    /// Whether the type was declared; otherwise it follows from where the parameter stands.
    declared: bool,
}

impl Prepared {
    /// Prepares a text.
    pub async fn new(context: &StatementContext, statement: &Statement) -> Result<Self, SqlError> {
        let mut tree = parse(statement)?;
        match context.put_macros_in(&mut tree, statement)? {
            true => Self::of_tree(context, tree, &[], &statement.calling_macros()).await,
            false => Self::of_tree(context, tree, &[], statement).await,
        }
    }

    /// Prepares what `tree` is; `declared` are the types of its first parameters.
    pub async fn of_tree(
        context: &StatementContext,
        tree: ast::Statement,
        declared: &[ast::DataType],
        statement: &Statement,
    ) -> Result<Self, SqlError> {
        let names = parameter_names(&tree)?;
        let mut parameters: Vec<ParameterSlot> = (names.into_iter())
            .map(|name| ParameterSlot {
                name,
                data_type: None,
                declared: false,
            })
            .collect();
        infer(context, &tree, &mut parameters, statement).await?;
        for (position, written) in declared.iter().enumerate() {
            let known = column_type(written).map_err(|what| unknown_type(written, what))?;
            let slot = ParameterSlot {
                name: format!("${}", position + 1),
                data_type: Some(known.data_type),
                declared: true,
            };
            match parameters.get_mut(position) {
                Some(parameter) => {
                    *parameter = ParameterSlot {
                        name: parameter.name.clone(),
                        ..slot
                    }
                }
                None => parameters.push(slot),
            }
        }
        Ok(Prepared {
            statement: statement.clone(),
            shown: shortened(statement.text()),
            names: parameters.iter().map(|slot| slot.name.clone()).collect(),
            is_declared: parameters.iter().any(|slot| slot.declared),
            tree,
            parameters,
            plan: PreparedPlan::default(),
        })
    }

    /// The text among the running statements.
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// The statement, for messages.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Its tree, with parameters.
    pub fn tree(&self) -> &ast::Statement {
        &self.tree
    }

    /// The names of its parameters, as they are written.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }

    /// The type of the parameter at a position, if it is known.
    pub fn parameter_type(&self, position: usize) -> Option<&DataType> {
        self.parameters[position].data_type.as_ref()
    }

    /// A value for the parameter at a position, as it stands in the statement.
    ///
    /// # Errors
    /// It does not fit.
    pub fn fitted(&self, position: usize, value: &Parameter) -> Result<Parameter, SqlError> {
        self.parameters[position].fitted(value)
    }

    /// How many parameters it has.
    pub fn parameter_count(&self) -> usize {
        self.parameters.len()
    }

    /// The position of the parameter with this name, which is written without its `$`.
    pub fn position(&self, name: &str) -> Option<usize> {
        (self.names.iter()).position(|known| known[1..] == *name)
    }

    /// What is asked of the plan cache for these values.
    ///
    /// # Errors
    /// They are too many or too few, or one has a declared type that it is cast to.
    pub fn asked<'a>(&'a self, values: &'a [Parameter]) -> Result<Asked<'a>, NotShort> {
        if self.is_declared {
            return Err(NotShort::DeclaredTypes);
        }
        if values.len() != self.names.len() {
            return Err(NotShort::ValueCount);
        }
        Ok(Asked::Prepared {
            plan: &self.plan,
            names: &self.names,
            values,
        })
    }

    /// The statement with values in the places of its parameters.
    pub fn bind(&self, values: &[Parameter]) -> Result<ast::Statement, SqlError> {
        if values.len() != self.parameters.len() {
            let names: Vec<&str> = self
                .parameters
                .iter()
                .map(|slot| slot.name.as_str())
                .collect();
            let hint =
                (!names.is_empty()).then(|| format!("its parameters are {}", names.join(", ")));
            return Err(SqlError::invalid(
                Mistake::Syntax,
                format!(
                    "the prepared statement has {} parameters, but {} values were given",
                    self.parameters.len(),
                    values.len()
                ),
            )
            .with_hint(hint));
        }
        let literals = self.parameters.iter().zip(values);
        let literals = literals.map(|(slot, value)| Ok((slot.name.as_str(), slot.literal(value)?)));
        let literals = literals.collect::<Result<Vec<_>, SqlError>>()?;
        let mut tree = self.tree.clone();
        let _ = expressions_mut(&mut tree, |expr| {
            if let Some(name) = placeholder(expr)
                && let Some((_, literal)) = literals.iter().find(|(known, _)| *known == name)
            {
                *expr = literal.clone();
            }
            ControlFlow::<()>::Continue(())
        });
        Ok(tree)
    }
}

impl NamedStatement for Prepared {
    fn text(&self) -> &str {
        self.statement.text()
    }

    fn type_names(&self) -> Vec<Option<String>> {
        let types = self.parameters.iter();
        types
            .map(|slot| slot.data_type.as_ref().map(|known| sql_name(known, None)))
            .collect()
    }
}

impl ParameterSlot {
    fn literal(&self, value: &Parameter) -> Result<Expr, SqlError> {
        self.fitted(value)?.literal()
    }

    fn fitted(&self, value: &Parameter) -> Result<Parameter, SqlError> {
        let Some(data_type) = &self.data_type else {
            return Ok(value.clone());
        };
        if self.declared || value.is_null() {
            return value.cast(data_type, &self.name);
        }
        // What was found out is no restriction: a value is what it would be if it were written there.
        match (class(data_type), class(&value.data_type())) {
            (ParameterClass::Text, _) => Ok(value.clone()),
            (_, ParameterClass::Text) => value.cast(data_type, &self.name),
            (wanted, given) if wanted == given => Ok(value.clone()),
            _ => Err(SqlError::invalid(
                Mistake::DatatypeMismatch,
                format!(
                    "parameter {} is {}, but a value of type {} was given",
                    self.name,
                    sql_name(data_type, None),
                    sql_name(&value.data_type(), None)
                ),
            )),
        }
    }
}

/// The names of all parameters: `$1` to the greatest number, or other names as they come.
fn parameter_names(tree: &ast::Statement) -> Result<Vec<String>, SqlError> {
    let mut names: Vec<String> = Vec::new();
    let _ = expressions(tree, |expr| {
        if let Some(name) = placeholder(expr)
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
        ControlFlow::<()>::Continue(())
    });
    let number = |name: &String| name[1..].parse::<usize>().ok();
    if names.iter().all(|name| number(name).is_none()) {
        return Ok(names);
    }
    let numbers: Option<Vec<usize>> = names.iter().map(number).collect();
    let numbers = numbers.ok_or_else(|| {
        SqlError::invalid(
            Mistake::Syntax,
            "parameters have either numbers or names, not both",
        )
    })?;
    match numbers.iter().max() {
        Some(&most) if numbers.contains(&0) || most > MOST => Err(SqlError::invalid(
            Mistake::UndefinedParameter,
            format!("parameters are numbered from $1 to ${MOST}"),
        )),
        most => Ok((1..=most.copied().unwrap_or(0))
            .map(|number| format!("${number}"))
            .collect()),
    }
}

/// The greatest number of a parameter.
const MOST: usize = 65_535;

/// Finds the types of parameters from where they stand, and what is wrong with the rest of the statement.
async fn infer(
    context: &StatementContext,
    tree: &ast::Statement,
    parameters: &mut [ParameterSlot],
    statement: &Statement,
) -> Result<(), SqlError> {
    match tree {
        ast::Statement::Query(query) => {
            infer_query(context, None, query, parameters, statement).await
        }
        ast::Statement::Insert(insert) => {
            let TableObject::TableName(name) = &insert.table else {
                return Err(SqlError::not_supported("INSERT INTO a function or query"));
            };
            let table = context.table(name, statement)?;
            let columns = match by_name::is_by_name(insert) {
                true => Vec::new(),
                false => targets::columns(&table, &insert.columns)?,
            };
            let Some(source) = &insert.source else {
                return Ok(());
            };
            let SetExpr::Values(values) = source.body.as_ref() else {
                return infer_query(context, None, source, parameters, statement).await;
            };
            for row in &values.rows {
                for (cell, column) in row.content.iter().zip(&columns) {
                    let slot = placeholder(cell)
                        .and_then(|name| parameters.iter_mut().find(|slot| slot.name == name));
                    if let Some(slot) = slot {
                        let data_type = table.schema.field(*column).data_type();
                        slot.data_type.get_or_insert_with(|| data_type.clone());
                    }
                }
            }
            Ok(())
        }
        tree if dml::changed_table(tree).is_some() => {
            let change = dml::Change::unlocked(context, tree.clone(), statement)?;
            infer_query(
                context,
                Some(&change),
                change.query(),
                parameters,
                statement,
            )
            .await
        }
        _ => Err(SqlError::not_supported(
            "PREPARE of anything but SELECT, INSERT, UPDATE, DELETE and MERGE",
        )),
    }
}

/// The plan of a query, or of that of a statement that changes rows.
async fn logical(
    context: &StatementContext,
    change: Option<&dml::Change>,
    query: ast::Query,
    statement: &Statement,
) -> Result<LogicalPlan, SqlError> {
    match change {
        Some(change) => change.logical(context, query, statement).await,
        None => Ok(planning::logical(context, query, statement).await?.1),
    }
}

async fn infer_query(
    context: &StatementContext,
    change: Option<&dml::Change>,
    query: &ast::Query,
    parameters: &mut [ParameterSlot],
    statement: &Statement,
) -> Result<(), SqlError> {
    match logical(context, change, query.clone(), statement).await {
        Ok(plan) => {
            let types = plan.get_parameter_types();
            let types = types.map_err(SqlError::from_datafusion)?;
            for slot in parameters {
                let known = types.get(&slot.name).cloned().flatten();
                // Where nothing says what it is, DataFusion takes it for NULL.
                slot.data_type = known.filter(|known| *known != DataType::Null);
            }
            Ok(())
        }
        Err(error) if parameters.is_empty() => Err(error),
        Err(_) => {
            // Some places need a type to be planned. With NULL in them only real errors are left.
            let mut query = query.clone();
            let _ = expressions_mut(&mut query, |expr| {
                if placeholder(expr).is_some() {
                    *expr = Expr::value(Value::Null);
                }
                ControlFlow::<()>::Continue(())
            });
            logical(context, change, query, statement).await.map(|_| ())
        }
    }
}
