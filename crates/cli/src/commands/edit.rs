//! `\e`: statements in the user's editor.

use super::CommandError;
use crate::runner::{Flow, Runner};
use crate::script_error::ScriptError;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Runner {
    /// Opens a file, or the last statement, in the editor, and runs what it has become.
    pub(super) async fn edit(
        &mut self,
        file: Option<PathBuf>,
        failed: &dyn Fn(CommandError) -> ScriptError,
    ) -> Result<Flow, ScriptError> {
        match file {
            Some(file) => {
                edited(&file).map_err(failed)?;
                self.include(&file).await
            }
            None => {
                let last = self.last.as_ref();
                let text = last.map(|last| format!("{};\n", last.text()));
                let file = tempfile::Builder::new().suffix(".sql").tempfile();
                let file = file.map_err(ScriptError::Read)?;
                std::fs::write(file.path(), text.unwrap_or_default()).map_err(ScriptError::Read)?;
                edited(file.path()).map_err(failed)?;
                let text = std::fs::read_to_string(file.path()).map_err(ScriptError::Read)?;
                Box::pin(self.run(&text)).await
            }
        }
    }
}

/// Waits for the editor.
fn edited(file: &Path) -> Result<(), CommandError> {
    let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
    let editor = editor.unwrap_or_else(|_| "vi".to_owned());
    // The variable may hold arguments, too.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file);
    let reason = match shell.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(_) => format!("the editor {editor} has failed, so nothing was run"),
        Err(error) => error.to_string(),
    };
    Err(CommandError::Failed(format!("\\e: {reason}")))
}
