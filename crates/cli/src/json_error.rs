//! A failure as one line of JSON, for programs that asked for JSON.
//!
//! ```json
//! {"error":{"sqlstate":"42P01","message":"table \"t\" does not exist","line":1,"column":15,"hint":"…","script":"-c"}}
//! ```

use crate::script_error::ScriptError;
use serde::Serialize;

#[derive(Serialize)]
struct ErrorLine<'a> {
    error: Shown<'a>,
}

/// What is not known is left out. Only a statement has an SQLSTATE.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sqlstate: Option<&'static str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    script: &'a str,
}

/// The line. `script` is where the statement came from: `-c`, a file, or standard input.
pub fn json_error(script: &str, error: &ScriptError) -> String {
    let shown = match error.statement() {
        Some(error) => Shown {
            sqlstate: Some(error.sqlstate().code()),
            message: error.message(),
            line: error.position().map(|place| place.line),
            column: error.position().map(|place| place.column),
            hint: error.hint(),
            script,
        },
        None => Shown {
            sqlstate: None,
            message: error.to_string(),
            line: None,
            column: None,
            hint: None,
            script,
        },
    };
    serde_json::to_string(&ErrorLine { error: shown }).expect("strings and numbers are JSON")
}
