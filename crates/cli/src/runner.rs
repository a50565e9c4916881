//! Runs statements and commands one after the other and prints what they yield.

use crate::arriving::Arriving;
use crate::footer::{described, footer};
use crate::format::{Expanded, FormatError, Layout, ResultWriter};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::numbers::counted;
use crate::output::Output;
use crate::pager::{Pager, Screen};
use crate::script_error::ScriptError;
use crate::settings::Settings;
use crate::units::{self, Unit};
use crate::variables::Variables;
use arrow::array::RecordBatch;
use eris_sql::{Outcome, QueryStream, Session, Statement};
use futures::StreamExt;
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// So many rows are printed between two looks for Ctrl-C.
const PRINTED_ROWS: usize = 1024;

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// There may be.
    Continue,
    /// The user wants to leave.
    Quit,
}

/// A session with the place where its results go.
pub struct Runner {
    pub(crate) session: Session,
    pub(crate) settings: Settings,
    pub(crate) output: Output,
    /// Whether people are reading along.
    footer: bool,
    /// What `\watch` repeats.
    pub(crate) last: Option<Statement>,
    /// Whether the result of the running statement becomes one line per value, whatever the settings say.
    expanded: bool,
    /// The variables of `\set`.
    pub(crate) variables: Variables,
    /// Whether only the next result goes to the file.
    pub(crate) once: bool,
    /// Files that are being included.
    pub(crate) depth: usize,
    interrupt: Interrupt,
}

impl Runner {
    /// The session in which it runs statements.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Prints results to standard output. With `footer`, people are reading along.
    pub fn new(session: Session, settings: Settings, footer: bool) -> Self {
        Runner {
            session,
            settings,
            output: Output::standard(),
            footer,
            last: None,
            expanded: false,
            variables: Variables::default(),
            once: false,
            depth: 0,
            interrupt: Interrupt::default(),
        }
    }

    /// How Ctrl-C gets to the statement that is running.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Runs a script up to its first failure. Each result is flushed before the next unit begins.
    ///
    /// Dropping the future cancels the statement that is running.
    pub async fn run(&mut self, script: &str) -> Result<Flow, ScriptError> {
        self.units(units::cut(script)?).await
    }

    /// Runs a script that arrives in pieces, each unit as soon as it is complete.
    pub async fn run_arriving(
        &mut self,
        mut pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    ) -> Result<Flow, ScriptError> {
        let mut arriving = Arriving::default();
        while let Some(piece) = pieces.recv().await {
            let units = arriving.push(&piece.map_err(ScriptError::Read)?)?;
            if self.units(units).await? == Flow::Quit {
                return Ok(Flow::Quit);
            }
        }
        self.units(arriving.finish()?).await
    }

    /// The future of a run was dropped before its end.
    pub fn cancelled(&mut self) {
        self.depth = 0;
        self.expanded = false;
        if std::mem::take(&mut self.once) {
            // What was written stays; a full disk is told by the next statement.
            let _ = self.output.redirect(None);
        }
    }

    async fn units(&mut self, units: Vec<Unit>) -> Result<Flow, ScriptError> {
        let mut units = units.into_iter().peekable();
        while !self.interrupt.is_heard()
            && let Some(unit) = units.next()
        {
            let flow = match unit {
                Unit::Statement(statement) => {
                    let mut statements = self.with_values(statement)?;
                    // Only the last one is what a command ends.
                    let last = statements.pop();
                    for statement in statements {
                        self.one(statement, false).await?;
                    }
                    match last {
                        Some(last) if units.peek().is_some_and(watches) => self.last = Some(last),
                        Some(last) => self.one(last, units.peek().is_some_and(expands)).await?,
                        None => {}
                    }
                    Flow::Continue
                }
                Unit::Command(command) => self.command(&command).await?,
            };
            self.output.flush()?;
            if flow == Flow::Quit {
                return Ok(Flow::Quit);
            }
        }
        Ok(Flow::Continue)
    }

    /// A statement with the values of variables, which may be several.
    fn with_values(&self, statement: Statement) -> Result<Vec<Statement>, ScriptError> {
        match self.variables.written_out(statement.text()) {
            Cow::Borrowed(_) => Ok(vec![statement]),
            Cow::Owned(text) => Ok(Session::split(&text)?),
        }
    }

    /// Runs one statement of a script.
    async fn one(&mut self, statement: Statement, expanded: bool) -> Result<(), ScriptError> {
        if self.settings.echo {
            writeln!(self.output, "{};", statement.text())?;
        }
        self.last = Some(statement.clone());
        self.expanded = expanded;
        let done = self.statement(&statement, self.settings.pager).await;
        self.expanded = false;
        if std::mem::take(&mut self.once) {
            self.output.redirect(None).map_err(FormatError::Output)?;
        }
        done
    }

    /// Runs one statement; `paged` if its rows may be.
    pub(crate) async fn statement(
        &mut self,
        statement: &Statement,
        paged: bool,
    ) -> Result<(), ScriptError> {
        let began = Instant::now();
        let session = self.session.clone();
        let running = session.execute(statement);
        self.interrupt.begin(running.canceller());
        let budget = session.database().home().budget();
        let mut meter = Meter::new(running.progress().clone(), budget);
        let outcome = meter.watch(running).await;
        let done = match outcome.inspect_err(|_| self.interrupt.end())? {
            Outcome::Rows(stream) => {
                self.interrupt.shows();
                let shown = self.rows(stream, meter, began.elapsed(), paged).await;
                self.interrupt.end();
                return shown;
            }
            Outcome::Count { rows, tag } => format!("{tag}: {}", counted(rows, "row")),
            Outcome::Done { tag } => tag.to_owned(),
        };
        self.interrupt.end();
        meter.end();
        let time = self.settings.timer.then_some(began.elapsed());
        if self.footer {
            self.output.write_all(footer(done, time).as_bytes())?;
        } else if time.is_some() {
            eprint!("{}", footer(done, time));
        }
        Ok(())
    }

    /// Prints the rows of a statement.
    async fn rows(
        &mut self,
        mut stream: QueryStream,
        mut meter: Meter,
        mut time: Duration,
        paged: bool,
    ) -> Result<(), ScriptError> {
        let (pager, layout) = self.page(paged);
        // What is printed as it comes must not meet the bar.
        let bar_ends = self.output.is_terminal() && layout.rows.is_none();
        let mut screen = Screen::new(&mut self.output, pager);
        let mut writer = self.settings.format.laid_out(&mut screen, &layout);
        let printed = async {
            writer.begin(stream.schema())?;
            let mut rows = 0;
            loop {
                // What the reader of a pager takes is not the statement's time.
                let began = Instant::now();
                let batch = meter.watch(stream.next()).await;
                time += began.elapsed();
                let Some(batch) = batch else { break };
                let batch = batch?;
                if bar_ends {
                    meter.end();
                }
                rows += batch.num_rows() as u64;
                print(&mut *writer, &batch).await?;
            }
            meter.end();
            writer.end()?;
            Ok::<_, ScriptError>((rows, writer.shown()))
        };
        let printed = printed.await;
        drop(writer);
        meter.end();
        if screen.has_quit() {
            return Ok(());
        }
        let (rows, shown) = printed?;
        let (done, timer) = (described(rows, shown), self.settings.timer);
        if self.footer && self.settings.format.is_for_people() {
            screen.write_all(footer(done, timer.then_some(time)).as_bytes())?;
            return Ok(screen.finish()?);
        }
        screen.finish()?;
        if timer {
            // Not among what may be data for a program.
            eprint!("{}", footer(done, Some(time)));
        }
        Ok(())
    }

    /// Prints rows that are there already, all of them.
    pub(crate) fn print_batch(&mut self, batch: &RecordBatch) -> Result<(), ScriptError> {
        let (pager, mut layout) = self.page(self.settings.pager);
        layout.rows = None;
        let mut screen = Screen::new(&mut self.output, pager);
        let mut writer = self.settings.format.laid_out(&mut screen, &layout);
        let printed = (writer.begin(&batch.schema()))
            .and_then(|()| writer.batch(batch))
            .and_then(|()| writer.end());
        drop(writer);
        if screen.has_quit() {
            return Ok(());
        }
        printed?;
        Ok(screen.finish()?)
    }

    /// Prints text, which may be long.
    pub(crate) fn print_text(&mut self, text: &str) -> Result<(), ScriptError> {
        let size = self.output.screen().filter(|_| self.settings.pager);
        let mut screen = Screen::new(&mut self.output, size.and_then(Pager::find));
        let printed = screen.write_all(text.as_bytes());
        if screen.has_quit() {
            return Ok(());
        }
        printed?;
        Ok(screen.finish()?)
    }

    /// How a result is laid out, and its pager if it has one.
    fn page(&self, paged: bool) -> (Option<Pager>, Layout) {
        let people = self.footer && self.settings.format.is_for_people();
        let size = self.output.screen().filter(|_| people);
        let pager = size.filter(|_| paged).and_then(Pager::find);
        let columns = size.map(|size| size.columns);
        let mut layout = self.settings.layout(columns, pager.is_some());
        if self.expanded {
            layout.expanded = Expanded::On;
        }
        (pager, layout)
    }
}

/// Prints a batch; Ctrl-C is seen in between, also if batches are always ready.
async fn print(writer: &mut dyn ResultWriter, batch: &RecordBatch) -> Result<(), FormatError> {
    for first in (0..batch.num_rows()).step_by(PRINTED_ROWS) {
        let count = (batch.num_rows() - first).min(PRINTED_ROWS);
        writer.batch(&batch.slice(first, count))?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Whether it runs the statement that it ends.
fn watches(unit: &Unit) -> bool {
    ends_with(unit, "\\watch")
}

/// Whether it wants one line per value of the statement that it ends.
fn expands(unit: &Unit) -> bool {
    ends_with(unit, "\\gx")
}

fn ends_with(unit: &Unit, name: &str) -> bool {
    matches!(unit, Unit::Command(command) if command.ends_statement && command.text.starts_with(name))
}
