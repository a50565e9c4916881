//! Settings: what they are called, which values they take, when they can be changed.
//!
//! ```text
//! SET name = value ── list: the setting of this name ── value: text → value of its kind ──┬── session: its variables
//!                                                                                         ├── database: the engine
//!                                                                                         └── start: rejected
//! ```
//!
//! A setting is one entry of the [list](list::SETTINGS); `SET`, `SHOW`, `RESET`, `eris.settings` and `current_setting`
//! all follow from it. DataFusion's options are set from our variables and have no names of their own here.

mod list;
mod value;

pub(crate) use list::{SETTINGS, find};

use crate::context::{StatementContext, Variables};
use crate::error::{Mistake, SqlError};
pub(crate) use value::Value;
use value::ValueKind;

/// A setting.
pub(crate) struct Setting {
    pub name: &'static str,
    kind: ValueKind,
    access: Access,
    pub description: &'static str,
}

/// Whose a setting is, and how it is read and written.
enum Access {
    /// Each session has its own value.
    Session {
        get: fn(&Variables) -> Value,
        set: fn(&mut Variables, Value),
    },
    /// One value for all sessions, from the next statement on.
    Database {
        get: fn(&StatementContext) -> Value,
        set: fn(&StatementContext, Value) -> Result<(), SqlError>,
        default: fn(&StatementContext) -> Value,
    },
    /// Fixed when the engine starts.
    Start {
        get: fn(&StatementContext) -> Value,
        /// What to do instead of SET.
        how: &'static str,
    },
}

impl Setting {
    /// `session`, `database` or `start`.
    pub fn scope(&self) -> &'static str {
        match self.access {
            Access::Session { .. } => "session",
            Access::Database { .. } => "database",
            Access::Start { .. } => "start",
        }
    }

    /// The kind of its values, with unit and limits.
    pub fn type_name(&self) -> String {
        self.kind.to_string()
    }

    /// Its value for the current session, as text that SET understands.
    pub fn value(&self, context: &StatementContext) -> String {
        let value = match self.access {
            Access::Session { get, .. } => get(context.variables()),
            Access::Database { get, .. } | Access::Start { get, .. } => get(context),
        };
        self.kind.show(&value)
    }

    /// The value to which RESET goes back.
    pub fn default(&self, context: &StatementContext) -> String {
        let value = match self.access {
            Access::Session { get, .. } => get(&context.default_variables()),
            Access::Database { default, .. } => default(context),
            Access::Start { get, .. } => get(context),
        };
        self.kind.show(&value)
    }

    /// The value that a text means.
    pub fn parse(&self, text: &str) -> Result<Value, SqlError> {
        self.kind.parse(text).ok_or_else(|| {
            let message = format!("'{text}' is no value for setting \"{}\"", self.name);
            SqlError::invalid(Mistake::InvalidParameterValue, message)
                .with_hint(Some(format!("it takes {}", self.kind)))
        })
    }

    pub fn assign(&self, context: &StatementContext, text: &str) -> Result<(), SqlError> {
        let value = || self.parse(text);
        match self.access {
            Access::Session { set, .. } => {
                let value = value()?;
                context.session.change(|variables| set(variables, value));
                Ok(())
            }
            Access::Database { set, .. } => set(context, value()?),
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    pub fn reset(&self, context: &StatementContext) -> Result<(), SqlError> {
        match self.access {
            Access::Session { get, set } => {
                let value = get(&context.default_variables());
                context.session.change(|variables| set(variables, value));
                Ok(())
            }
            Access::Database { set, default, .. } => set(context, default(context)),
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    fn fixed(&self, how: &str) -> SqlError {
        let message = format!("setting \"{}\" is fixed when the engine starts", self.name);
        SqlError::invalid(Mistake::CannotChangeSetting, message).with_hint(Some(how))
    }
}
