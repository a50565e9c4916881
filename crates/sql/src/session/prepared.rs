//! Prepared statements, for programs.

use super::{Running, Session, Work};
use crate::context::NamedStatement;
use crate::statements::prepare::Prepared;
use crate::text::parameter::Parameter;
use std::sync::Arc;

/// A statement with parameters, ready to be executed with values. Made by [`Session::prepare`]; executed in its session, with
/// the settings that hold then.
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
        let work = Work::Prepared(Arc::clone(&self.prepared), values.to_vec());
        self.session.run(work)
    }

    /// SQL's names of the types of its parameters; `None` where any will do.
    pub fn parameter_types(&self) -> Vec<Option<String>> {
        self.prepared.type_names()
    }
}
