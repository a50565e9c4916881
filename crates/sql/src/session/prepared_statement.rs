//! Prepared statements, for programs.

use super::pipeline::Request;
use super::prepared::Prepared;
use super::prepared_rows;
use super::{Running, Session};
use crate::context::NamedStatement;
use crate::error::SqlError;
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use futures::future::BoxFuture;
use std::sync::Arc;

/// A statement with parameters, ready to be executed with values. Made by [`Session::prepare`]; executed in its
/// session, with the settings that hold then.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    session: Session,
    prepared: Arc<Prepared>,
}

impl PreparedStatement {
    pub(crate) fn new(session: Session, prepared: Arc<Prepared>) -> Self {
        PreparedStatement { session, prepared }
    }

    /// Executes it with these values, one per parameter. Otherwise as [`Session::execute`].
    ///
    /// # Errors
    /// As [`Session::execute`]; also the wrong number of values, or one that does not fit its parameter.
    pub fn execute(&self, values: &[Parameter]) -> Running<'_> {
        self.session.run(Request::Prepared {
            prepared: Arc::clone(&self.prepared),
            values: values.to_vec(),
        })
    }

    /// Executes an INSERT of VALUES with many rows, given by a list of values for each: one statement, all rows or
    /// none.
    ///
    /// # Errors
    /// As [`PreparedStatement::execute`]; also a statement that is [no such INSERT](Self::is_insert_of_values).
    pub fn execute_many(&self, rows: Vec<Vec<Parameter>>) -> Running<'_> {
        self.session.run(Request::PreparedRows {
            prepared: Arc::clone(&self.prepared),
            rows,
        })
    }

    /// Whether it is an INSERT of VALUES with one row.
    pub fn is_insert_of_values(&self) -> bool {
        prepared_rows::values_of(self.prepared.tree()).is_some()
    }

    /// The names of its parameters as they are written: `$1` to the greatest number, or names as they come.
    pub fn parameter_names(&self) -> &[String] {
        self.prepared.parameter_names()
    }

    /// SQL's names of the types of its parameters; `None` where any will do.
    pub fn parameter_types(&self) -> Vec<Option<String>> {
        self.prepared.type_names()
    }
}

impl Session {
    /// Prepares a statement: it is parsed, its names are looked up and the types of its parameters are found, so that
    /// it can be executed with different values. Parameters are written `$1`, `$2`, … or `?`.
    ///
    /// # Errors
    /// Whatever is wrong with the statement.
    pub fn prepare(
        &self,
        statement: impl Into<Statement>,
    ) -> BoxFuture<'_, Result<PreparedStatement, SqlError>> {
        self.prepare_statement(statement.into())
    }

    /// Not generic, so that the code of all this is made once, in this crate.
    fn prepare_statement(
        &self,
        statement: Statement,
    ) -> BoxFuture<'_, Result<PreparedStatement, SqlError>> {
        let context = self.context();
        let prepared = async move { Prepared::new(&context, &statement).await };
        let prepared = self.database().runtime().spawn(prepared);
        Box::pin(async move {
            let prepared = prepared.await.map_err(crate::running::query::panicked)??;
            Ok(PreparedStatement::new(self.clone(), Arc::new(prepared)))
        })
    }
}
