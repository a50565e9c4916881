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
use eris_home::{Definition, DefinitionChange};
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
        /// Whether it outlives the process, where definitions do. What depends on the machine does not.
        is_kept: bool,
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

    /// Gives it the value that a text means.
    ///
    /// # Errors
    /// It means none, or the setting cannot be changed.
    pub async fn assign(&self, context: &StatementContext, text: &str) -> Result<(), SqlError> {
        let value = || self.parse(text);
        match self.access {
            Access::Session { set, .. } => {
                let value = value()?;
                context
                    .session
                    .change(|variables| set(variables, value.clone()));
                Ok(())
            }
            Access::Database { .. } => self.set(context, value()?).await,
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    /// Gives it the value that it begins with.
    ///
    /// # Errors
    /// It cannot be changed.
    pub async fn reset(&self, context: &StatementContext) -> Result<(), SqlError> {
        match self.access {
            Access::Session { get, set } => {
                let value = get(&context.default_variables());
                context
                    .session
                    .change(|variables| set(variables, value.clone()));
                Ok(())
            }
            Access::Database { default, .. } => self.set(context, default(context)).await,
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    /// Sets what all sessions have, and stores that.
    async fn set(&self, context: &StatementContext, value: Value) -> Result<(), SqlError> {
        let Access::Database {
            get,
            set,
            default,
            is_kept,
        } = self.access
        else {
            unreachable!("called for settings of the database only");
        };
        // Where nothing can be kept it is set for this process.
        let log = (context.catalog.log()).filter(|log| is_kept && !log.is_read_only());
        let Some(log) = log else {
            return set(context, value);
        };
        // Changes are stored in the order in which they are made.
        let _alone = context.catalog.change().await;
        let before = get(context);
        set(context, value)?;
        let name = format!("setting {}", self.name);
        let now = get(context);
        let change = match now == default(context) {
            true => DefinitionChange::IsGone(name),
            false => DefinitionChange::Is(Definition {
                text: format!(
                    "SET {} = '{}'",
                    self.name,
                    self.kind.show(&now).replace('\'', "''")
                ),
                name,
                objects: Vec::new(),
            }),
        };
        let stored = log.store(vec![change]).await;
        if stored.is_err() {
            set(context, before)?;
        }
        stored
    }

    fn fixed(&self, how: &str) -> SqlError {
        let message = format!("setting \"{}\" is fixed when the engine starts", self.name);
        SqlError::invalid(Mistake::CannotChangeSetting, message).with_hint(Some(how))
    }
}
