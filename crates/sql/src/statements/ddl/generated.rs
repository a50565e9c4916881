//! Generated columns: what a definition says of them, and in which order they are computed.

use super::columns::{columns_of, unqualify};
use super::excerpt_of;
use crate::catalog::{ColumnRules, GeneratedColumn, RelationName};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::system::functions::session_state;
use crate::text::parse::{place_of_expr, planning_error};
use crate::text::statement::Statement;
use crate::write::coerce::storable;
use crate::write::row_rules::logical;
use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, ExprSchemable, Volatility};
use datafusion::sql::sqlparser::ast::Ident;
use eris_exact::types::sql_name;
use std::sync::Arc;

/// Checks the expressions of generated columns, from which those without a type get theirs. Finds the order in which
/// they are computed: each behind those that it names.
///
/// # Errors
/// An expression that names columns in a circle or unknown ones, or that is not the same for the same row at all times.
pub(super) fn resolve(
    context: &StatementContext,
    table: &RelationName,
    fields: &mut [Arc<Field>],
    rules: &mut [ColumnRules],
    statement: &Statement,
) -> Result<(), SqlError> {
    let is_generated = |rules: &ColumnRules| rules.generated.is_some();
    let mut left: Vec<usize> = (0..rules.len())
        .filter(|&at| is_generated(&rules[at]))
        .collect();
    if left.len() == rules.len() && !left.is_empty() && !context.is_opening() {
        let message = format!("table \"{table}\" needs a column that is not generated");
        return Err(SqlError::invalid(Mistake::InvalidTableDefinition, message));
    }
    let mut order = 0;
    while !left.is_empty() {
        let waits = |at: usize| {
            let generated = rules[at].generated.as_ref().expect("it is generated");
            let names = columns_of(&generated.expr);
            left.iter()
                .any(|&other| names.contains(fields[other].name()))
        };
        let Some(place) = left.iter().position(|&at| !waits(at)) else {
            let name = fields[left[0]].name();
            let message = format!("generated column \"{name}\" depends on itself");
            return Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message)
                .at(excerpt_of(&Ident::new(name.as_str()), statement)));
        };
        let at = left.remove(place);
        let known = fields.iter().enumerate();
        let known = known.filter(|(other, _)| !left.contains(other) && *other != at);
        let known: Vec<Arc<Field>> = known.map(|(_, field)| Arc::clone(field)).collect();
        let data_type = type_of(
            context,
            table,
            &known,
            &rules[at],
            fields[at].name(),
            statement,
        )?;
        let field = &mut fields[at];
        match field.data_type() {
            // It has none of its own.
            DataType::Null => {
                let named = Schema::new(vec![Field::new(field.name(), data_type, true)]);
                let stored = storable(&named, &table.to_string())?;
                let data_type = stored.field(0).data_type().clone();
                *field = Arc::new(field.as_ref().clone().with_data_type(data_type));
            }
            own if can_cast_types(&data_type, own) => {}
            own => {
                let message = format!(
                    "generated column \"{}\" is {}, but its expression {}",
                    field.name(),
                    sql_name(own, None),
                    sql_name(&data_type, None)
                );
                return Err(SqlError::invalid(Mistake::DatatypeMismatch, message));
            }
        }
        if let Some(generated) = &mut rules[at].generated {
            unqualify(&mut generated.expr);
            generated.order = order;
        }
        order += 1;
    }
    Ok(())
}

/// The type of a generated column's expression.
fn type_of(
    context: &StatementContext,
    table: &RelationName,
    known: &[Arc<Field>],
    rules: &ColumnRules,
    name: &str,
    statement: &Statement,
) -> Result<DataType, SqlError> {
    let GeneratedColumn { expr, .. } = rules.generated.as_ref().expect("it is generated");
    let state = session_state(context);
    let schema = Schema::new(known.to_vec());
    let names = DFSchema::try_from_qualified_schema(table.name.as_str(), &schema)
        .map_err(SqlError::from_datafusion)?;
    let place = || place_of_expr(expr).map(|place| statement.excerpt(place));
    let failed = |error| planning_error(error, statement, &state).at(place());
    let planned = logical(&state, expr, &names).map_err(failed)?;
    let mut changing = None;
    let looked = planned.apply(|part| {
        if let Expr::ScalarFunction(function) = part
            && function.func.signature().volatility != Volatility::Immutable
        {
            changing = Some(function.func.name().to_owned());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    looked.map_err(failed)?;
    if let Some(function) = changing {
        let message = format!(
            "generated column \"{name}\": {function}() does not give the same value at all times"
        );
        return Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message)
            .at(place())
            .with_hint(Some("DEFAULT takes such functions")));
    }
    planned.get_type(&names).map_err(failed)
}

/// Rejects a constraint of generated columns that is kept by keys.
///
/// # Errors
/// One of the columns is generated.
pub(super) fn reject(
    what: &str,
    columns: &[String],
    schema: &Schema,
    rules: &[ColumnRules],
) -> Result<(), SqlError> {
    let is_generated = |name: &&String| {
        let at = schema.index_of(name);
        at.is_ok_and(|at| rules[at].generated.is_some())
    };
    match columns.iter().find(is_generated) {
        None => Ok(()),
        Some(name) => Err(SqlError::not_supported(format!(
            "{what} of the generated column \"{name}\""
        ))),
    }
}
