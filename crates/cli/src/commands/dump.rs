//! `.dump`: a script that builds the database anew.

use super::CommandError;
use super::describe::Wanted;
use crate::format::{Cells, Kind};
use crate::runner::Runner;
use crate::script_error::ScriptError;
use arrow::array::RecordBatch;
use eris_sql::{Outcome, ScriptPart, Statement};
use futures::StreamExt;
use std::io::Write;

/// Rows of an INSERT.
const ROWS: usize = 100;

impl Runner {
    /// Prints the statements that make tables and views whose name contains `part`, or matches it, with their rows.
    pub(super) async fn dump(
        &mut self,
        part: &str,
        failed: &dyn Fn(CommandError) -> ScriptError,
    ) -> Result<(), ScriptError> {
        let names = Wanted::new(part);
        let wanted = |schema: &str, name: &str| names.has(schema, name);
        let script = match part {
            "" => self.session.script(None),
            _ => self.session.script(Some(&wanted)),
        };
        let script = script.map_err(|error| failed(CommandError::Failed(error.to_string())))?;
        for part in script {
            match part {
                ScriptPart::Statement(text) => writeln!(self.output, "{text};")?,
                ScriptPart::Rows {
                    table,
                    full,
                    columns,
                } => self.dump_rows(&table, &full, &columns).await?,
            }
        }
        Ok(())
    }

    async fn dump_rows(
        &mut self,
        table: &str,
        full: &str,
        columns: &[String],
    ) -> Result<(), ScriptError> {
        let columns = columns.join(", ");
        let query = Statement::from(format!("SELECT {columns} FROM {full}"));
        let session = self.session.clone();
        let Outcome::Rows(mut rows) = session.execute(&query).await? else {
            unreachable!("it is a query");
        };
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            for first in (0..batch.num_rows()).step_by(ROWS) {
                let count = (batch.num_rows() - first).min(ROWS);
                let text = insert(table, &columns, &batch.slice(first, count))?;
                self.output.write_all(text.as_bytes())?;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

/// The INSERT of these rows.
fn insert(table: &str, columns: &str, rows: &RecordBatch) -> Result<String, ScriptError> {
    let mut script = format!("INSERT INTO {table} ({columns}) VALUES\n");
    let cells = Cells::of(rows)?;
    let mut text = String::new();
    for row in 0..rows.num_rows() {
        script.push_str(if row == 0 { "(" } else { ",\n(" });
        for (place, cells) in cells.iter().enumerate() {
            if place > 0 {
                script.push_str(", ");
            }
            cells.read(row, &mut text)?;
            let is_float = cells.array().data_type().is_floating();
            match cells.kind() {
                _ if cells.is_null(row) => script.push_str("NULL"),
                Kind::Boolean => script.push_str(&text),
                // A float as a number would lose digits before it gets to its column.
                Kind::Number if !is_float => script.push_str(&text),
                _ => script.push_str(&format!("'{}'", text.replace('\'', "''"))),
            }
        }
        script.push(')');
    }
    script.push_str(";\n");
    Ok(script)
}
