//! Settings: what they are called, which values they take, when they can be changed.
//!
//! ```text
//! SET name = value ── list: the setting of this name ── value: text → value of its kind ──┬── session: its variables
//!                                                                                         ├── database: the engine
//!                                                                                         └── start: refused
//! ```
//!
//! A setting is one entry of the [list](list::SETTINGS); `SET`, `SHOW`, `RESET`, `eris.settings` and `current_setting` all
//! follow from it. DataFusion's options are set from our variables and have no names of their own here.

mod list;
mod statement;
mod value;
mod variables;

pub(crate) use list::{SETTINGS, find};
pub(crate) use statement::{number, reset, set, show, use_schema};
pub(crate) use value::Milliseconds;
pub(crate) use variables::Variables;

use crate::core::Core;
use crate::error::SqlError;
use value::{Kind, Value};

/// A setting.
pub(crate) struct Setting {
    pub name: &'static str,
    kind: Kind,
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
        get: fn(&Core) -> Value,
        set: fn(&Core, Value) -> Result<(), SqlError>,
        default: fn(&Core) -> Value,
    },
    /// Fixed when the engine starts.
    Start {
        get: fn(&Core) -> Value,
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
    pub fn value(&self, core: &Core) -> String {
        let value = match self.access {
            Access::Session { get, .. } => get(core.variables()),
            Access::Database { get, .. } | Access::Start { get, .. } => get(core),
        };
        self.kind.show(&value)
    }

    /// The value to which RESET goes back.
    pub fn default(&self, core: &Core) -> String {
        let value = match self.access {
            Access::Session { get, .. } => get(&core.default_variables()),
            Access::Database { default, .. } => default(core),
            Access::Start { get, .. } => get(core),
        };
        self.kind.show(&value)
    }

    /// The value that a text means.
    fn parse(&self, text: &str) -> Result<Value, SqlError> {
        self.kind.parse(text).ok_or_else(|| {
            let message = format!("'{text}' is no value for setting \"{}\"", self.name);
            SqlError::invalid(message).with_hint(Some(format!("it takes {}", self.kind)))
        })
    }

    fn assign(&self, core: &Core, text: &str) -> Result<(), SqlError> {
        let value = || self.parse(text);
        match self.access {
            Access::Session { set, .. } => {
                let value = value()?;
                core.session.change(|variables| set(variables, value));
                Ok(())
            }
            Access::Database { set, .. } => set(core, value()?),
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    fn reset(&self, core: &Core) -> Result<(), SqlError> {
        match self.access {
            Access::Session { get, set } => {
                let value = get(&core.default_variables());
                core.session.change(|variables| set(variables, value));
                Ok(())
            }
            Access::Database { set, default, .. } => set(core, default(core)),
            Access::Start { how, .. } => Err(self.fixed(how)),
        }
    }

    fn fixed(&self, how: &str) -> SqlError {
        let message = format!("setting \"{}\" is fixed when the engine starts", self.name);
        SqlError::invalid(message).with_hint(Some(how))
    }
}
