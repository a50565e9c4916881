//! Runs statements one after the other and prints what they yield.

use crate::arriving::{Arriving, ArrivingError};
use crate::format::{Format, FormatError};
use eris_sql::{Outcome, Session, SqlError, Statement};
use futures::StreamExt;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// So many rows are printed between two looks for Ctrl-C.
const PRINTED_ROWS: usize = 1024;

/// Why a script ended early.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A statement failed; the message says where.
    #[error(transparent)]
    Statement(#[from] SqlError),
    /// The result could not be printed.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The script itself could not be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The script cannot be cut into statements.
    #[error(transparent)]
    Script(#[from] ArrivingError),
}

/// Errors of the output; those of the input say so.
impl From<io::Error> for ScriptError {
    fn from(error: io::Error) -> Self {
        ScriptError::Format(error.into())
    }
}

/// A session with the place where its results go.
pub struct Runner<W> {
    session: Session,
    format: Format,
    /// Whether each result is followed by its row count and time.
    footer: bool,
    out: W,
}

impl<W: Write> Runner<W> {
    /// Prints results to `out` in `format`. With `footer`, people are reading along.
    pub fn new(session: Session, format: Format, footer: bool, out: W) -> Self {
        Runner {
            session,
            format,
            footer,
            out,
        }
    }

    /// Runs a script up to its first failing statement. Each result is flushed before the next statement begins.
    ///
    /// Dropping the future cancels the statement that is running.
    pub async fn run(&mut self, script: &str) -> Result<(), ScriptError> {
        self.statements(Session::split(script)?).await
    }

    /// Runs a script that arrives in pieces, each statement as soon as it is complete.
    pub async fn run_arriving(
        &mut self,
        mut pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    ) -> Result<(), ScriptError> {
        let mut arriving = Arriving::default();
        while let Some(piece) = pieces.recv().await {
            let statements = arriving.push(&piece.map_err(ScriptError::Read)?)?;
            self.statements(statements).await?;
        }
        self.statements(arriving.finish()?).await
    }

    async fn statements(&mut self, statements: Vec<Statement>) -> Result<(), ScriptError> {
        for statement in &statements {
            self.statement(statement).await?;
            self.out.flush()?;
        }
        Ok(())
    }

    async fn statement(&mut self, statement: &Statement) -> Result<(), ScriptError> {
        let begun = Instant::now();
        match self.session.execute(statement).await? {
            Outcome::Rows(mut stream) => {
                let mut rows = 0;
                let mut writer = self.format.writer(&mut self.out);
                writer.begin(stream.schema())?;
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    rows += batch.num_rows() as u64;
                    for first in (0..batch.num_rows()).step_by(PRINTED_ROWS) {
                        let count = (batch.num_rows() - first).min(PRINTED_ROWS);
                        writer.batch(&batch.slice(first, count))?;
                        // Batches may always be ready; Ctrl-C must be seen between them.
                        tokio::task::yield_now().await;
                    }
                }
                writer.end()?;
                drop(writer);
                self.foot(&counted(rows), begun.elapsed())
            }
            Outcome::Count { rows, tag } => {
                self.foot(&format!("{tag}: {}", counted(rows)), begun.elapsed())
            }
            Outcome::Done { tag } => self.foot(tag, begun.elapsed()),
        }
    }

    fn foot(&mut self, what: &str, time: Duration) -> Result<(), ScriptError> {
        if self.footer {
            writeln!(self.out, "({what}, {})", duration(time))?;
        }
        Ok(())
    }
}

/// `1 row`, `2,556 rows`.
fn counted(rows: u64) -> String {
    let digits = rows.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + if rows == 1 { " row" } else { " rows" }
}

/// A time with three digits or so.
fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.001 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 1, 999, 1_000, 59_986_052].map(counted);
        assert_eq!(
            texts,
            [
                "0 rows",
                "1 row",
                "999 rows",
                "1,000 rows",
                "59,986,052 rows"
            ]
        );
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let texts = [250, 12_340, 2_500_000].map(|us| duration(Duration::from_micros(us)));
        assert_eq!(texts, ["250 µs", "12.3 ms", "2.50 s"]);
    }
}
