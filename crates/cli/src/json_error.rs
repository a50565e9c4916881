//! A failure as one line of JSON, for programs that asked for JSON.
//!
//! ```json
//! {"error":{"sqlstate":"42P01","message":"table \"t\" does not exist","line":1,"column":15,"hint":"…"}}
//! ```

use crate::script_error::ScriptError;
use serde_json::{Map, Value, json};

/// The line. `script` is where the statement came from: `-c`, a file, or standard input.
pub fn json_error(script: &str, error: &ScriptError) -> String {
    let mut shown = Map::new();
    match error.statement() {
        Some(error) => {
            shown.insert("sqlstate".into(), json!(error.sqlstate().code()));
            shown.insert("message".into(), json!(error.message()));
            if let Some(place) = error.position() {
                shown.insert("line".into(), json!(place.line));
                shown.insert("column".into(), json!(place.column));
            }
            if let Some(hint) = error.hint() {
                shown.insert("hint".into(), json!(hint));
            }
        }
        None => {
            shown.insert("message".into(), json!(error.to_string()));
        }
    }
    shown.insert("script".into(), json!(script));
    json!({ "error": Value::Object(shown) }).to_string()
}
