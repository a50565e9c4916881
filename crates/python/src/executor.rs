//! How a connection executes statements, one after the other.
//!
//! ```text
//! text          ── split ── each statement ──▶ Running ── wait ──▶ Result
//! text, values  ── prepared statements, by their text ──┘
//! ```

use crate::error::{kept, programming_error, sql_error, sql_error_with_hint};
use crate::frame::{Frame, Registered, Visible};
use crate::held::Held;
use crate::job::{Job, Turn};
use crate::lifetime::Closed;
use crate::opened::OpenDatabase;
use crate::parameters;
use crate::result::Result as Answer;
use crate::rows::Calls;
use crate::stream::Batches;
use crate::wait::{Bar, Signals, Statement, too_late, wait};
use eris_sql::{
    Canceller, Frames, LexemeKind, Outcome, Parameter, PreparedStatement, Progress, Running,
    Session, SqlError, lexemes, quoted,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prepared statements that a connection keeps.
const MOST_PREPARED: usize = 256;

/// A session, and what is kept between its statements.
pub struct Executor {
    database: Arc<OpenDatabase>,
    session: Held<Session>,
    closed: Closed,
    /// Something was written since the last commit().
    pub has_written: Arc<AtomicBool>,
    /// Calls by key that are under way.
    pub calls: Arc<Calls>,
    /// Held while a statement is executed: statements of one connection wait for each other.
    work: Held<Work>,
    /// The last statement, for those who do not wait.
    last: Mutex<Last>,
    registered: Mutex<HashMap<String, Registered>>,
    /// Whether a name that the catalogue lacks is looked for among the caller's variables.
    pub looks_at_variables: AtomicBool,
    /// Whether long statements show a bar.
    pub shows_progress: AtomicBool,
}

#[derive(Default)]
struct Work {
    prepared: HashMap<String, PreparedStatement>,
}

#[derive(Default)]
struct Last {
    answer: Option<Py<Answer>>,
    running: Option<(Canceller, Progress)>,
}

/// What a statement may find, which is forgotten with it.
struct Lookup(Arc<Visible>);

impl Drop for Lookup {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// What is executed.
enum Request<'a> {
    Text(eris_sql::Statement),
    Prepared(&'a PreparedStatement, &'a [Parameter]),
    Rows(&'a PreparedStatement, Vec<Vec<Parameter>>),
}

impl Executor {
    /// A new session, which is closed with what is above it.
    pub fn new(py: Python<'_>, database: &Arc<OpenDatabase>, above: &Closed) -> PyResult<Self> {
        let closed = Closed::below(above);
        Ok(Executor {
            session: Held::new(database.get(py)?.session(), &closed),
            database: Arc::clone(database),
            has_written: Arc::default(),
            calls: Arc::default(),
            work: Held::new(Work::default(), &closed),
            closed,
            last: Mutex::default(),
            registered: Mutex::default(),
            looks_at_variables: AtomicBool::new(true),
            shows_progress: AtomicBool::new(true),
        })
    }

    /// The same database with a session of its own, below what is above: what is registered and set here holds there.
    pub fn cursor(&self, py: Python<'_>, above: &Closed) -> PyResult<Self> {
        self.check(py)?;
        let flag = |flag: &AtomicBool| AtomicBool::new(flag.load(Ordering::Relaxed));
        let registered = self.registered().clone();
        Ok(Executor {
            registered: Mutex::new(registered),
            looks_at_variables: flag(&self.looks_at_variables),
            shows_progress: flag(&self.shows_progress),
            ..Executor::new(py, &self.database, above)?
        })
    }

    /// The database.
    pub fn database(&self) -> &Arc<OpenDatabase> {
        &self.database
    }

    /// Whether it was closed.
    pub fn closed(&self) -> &Closed {
        &self.closed
    }

    /// Names of objects in FROM.
    pub fn registered(&self) -> MutexGuard<'_, HashMap<String, Registered>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it; whether it was open. A result that somebody has still is told so.
    pub fn close(&self, py: Python<'_>) -> PyResult<bool> {
        self.database.check_process(py)?;
        if !py.detach(|| self.closed.close()) {
            return Ok(false);
        }
        self.last().answer = None;
        Ok(true)
    }

    /// The last result, if the last statement has one.
    pub fn last_answer(&self, py: Python<'_>) -> Option<Py<Answer>> {
        self.last()
            .answer
            .as_ref()
            .map(|answer| answer.clone_ref(py))
    }

    /// The last statement: how to stop it, and how far it is.
    pub fn last_running(&self) -> Option<(Canceller, Progress)> {
        self.last().running.clone()
    }

    /// The session.
    ///
    /// # Errors
    /// It is closed, or another process's.
    pub fn session(&self, py: Python<'_>) -> PyResult<Session> {
        self.session.cloned(py)
    }

    /// Whether it is open.
    ///
    /// # Errors
    /// As [`session`](Self::session).
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.session.check(py)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, whose statements find what is visible to this caller.
    fn session_of(&self, py: Python<'_>, caller: Option<Py<PyAny>>) -> PyResult<(Session, Lookup)> {
        let visible = Arc::new(Visible::new(self.registered().clone(), caller));
        let session = self
            .session(py)?
            .with_frames(Arc::clone(&visible) as Arc<dyn Frames>);
        Ok((session, Lookup(visible)))
    }

    /// The caller's frame of execution, if its variables are looked at.
    pub fn caller(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if !self.looks_at_variables.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let get = kept(py, &GET_FRAME, || py.import("sys")?.getattr("_getframe"))?;
        // A function of this module has no frame of its own. Without any Python around it there is none.
        Ok(get.call0().ok().map(Bound::unbind))
    }

    /// Executes statements; the answer is that of the last one.
    pub fn run(
        &self,
        py: Python<'_>,
        text: &str,
        values: Option<&Bound<'_, PyAny>>,
        caller: Option<Py<PyAny>>,
        job: Option<&Job>,
    ) -> PyResult<Py<Answer>> {
        let mut work = self.work.lock_watched(py, &mut Turn(job))?;
        match values.filter(|values| !values.is_none()) {
            Some(values) => {
                let known = work.prepared.contains_key(text);
                let execute = |work: &mut Work, caller: Option<Py<PyAny>>| {
                    let (prepared, _lookup) = self.prepared(py, work, text, caller)?;
                    let bound = parameters::values(values, &prepared)?;
                    let request = Request::Prepared(&prepared, &bound);
                    self.answer(py, &self.session(py)?, text, request, job)
                };
                let again = caller.as_ref().map(|caller| caller.clone_ref(py));
                match execute(&mut work, caller) {
                    // A table may have become another one since it was prepared. What has failed has done nothing.
                    Err(error) if known && is_mistake(py, &error) => {
                        work.prepared.remove(text);
                        execute(&mut work, again)
                    }
                    answer => answer,
                }
            }
            None => {
                let (session, _lookup) = self.session_of(py, caller)?;
                let mut statements = statements_of(py, text)?.into_iter().peekable();
                let mut answer = None;
                while let Some(statement) = statements.next() {
                    let text = statement.text().to_owned();
                    let done = self.answer(py, &session, &text, Request::Text(statement), job)?;
                    if statements.peek().is_some() {
                        done.get().close(py)?;
                    }
                    answer = Some(done);
                }
                answer.ok_or_else(|| programming_error(py, "there is no statement"))
            }
        }
    }

    /// Changes a setting, which is not the last statement.
    pub fn set(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let _work = self.work.lock(py)?;
        let session = self.session(py)?;
        let set = wait(py, session.execute(text), &mut Signals)?;
        set.map(drop).map_err(|error| sql_error(py, &error))
    }

    /// The statement, ready to get values, and for one that is not kept what it finds.
    fn prepared(
        &self,
        py: Python<'_>,
        work: &mut Work,
        text: &str,
        caller: Option<Py<PyAny>>,
    ) -> PyResult<(PreparedStatement, Option<Lookup>)> {
        if let Some(known) = work.prepared.get(text) {
            return Ok((known.clone(), None));
        }
        let (session, lookup) = self.session_of(py, caller)?;
        let mut statements = statements_of(py, text)?;
        let statement = match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => statement,
            _ => {
                return Err(programming_error(
                    py,
                    "values are given to one statement at a time",
                ));
            }
        };
        let prepared = wait(py, session.prepare(statement), &mut Signals)?;
        let prepared = prepared.map_err(|error| sql_error(py, &error))?;
        // One that reads frames is for once: the next time others may have these names.
        if lookup.0.was_asked() {
            return Ok((prepared, Some(lookup)));
        }
        if work.prepared.len() >= MOST_PREPARED {
            work.prepared.clear();
        }
        work.prepared.insert(text.to_owned(), prepared.clone());
        Ok((prepared, None))
    }

    /// Executes one statement; `text` is its text.
    fn answer(
        &self,
        py: Python<'_>,
        session: &Session,
        text: &str,
        request: Request<'_>,
        job: Option<&Job>,
    ) -> PyResult<Py<Answer>> {
        let running: Running<'_> = match request {
            Request::Text(statement) => session.execute(statement),
            Request::Prepared(statement, values) => statement.execute(values),
            Request::Rows(statement, rows) => statement.execute_many(rows),
        };
        let (canceller, progress) = (running.canceller().clone(), running.progress().clone());
        if let Some(job) = job {
            job.begin(py, &canceller)?;
        }
        {
            let mut last = self.last();
            last.answer = None;
            last.running = Some((canceller.clone(), progress.clone()));
        }
        let shows = self.shows_progress.load(Ordering::Relaxed);
        let mut bar = Bar::new(shows.then(|| self.database.budget()));
        let mut watch = Statement::new(canceller.clone(), progress, &self.closed, &mut bar);
        let outcome = wait(py, running, &mut watch);
        let pending = watch.pending();
        bar.hide(py);
        let outcome = outcome?.map_err(|error| match &pending {
            Some(raised) => raised.clone_ref(py),
            None => failed(py, &error),
        })?;
        // What has ended cannot be interrupted any more.
        let ended = canceller.clone();
        let (answer, writes) = match outcome {
            Outcome::Rows(stream) => {
                let batches = Batches::new(stream, canceller, &self.closed, bar);
                (Answer::rows(batches), is_write(text))
            }
            Outcome::Count { rows, tag } => {
                ended.cancel();
                (Answer::done(tag, Some(rows)), true)
            }
            Outcome::Done { tag } => {
                ended.cancel();
                (Answer::done(tag, None), tag != "SET")
            }
        };
        if writes {
            self.has_written.store(true, Ordering::Relaxed);
        }
        // A signal that comes before a short statement has ended is seen here.
        let pending = match (pending, writes) {
            (None, true) => py.check_signals().err(),
            (pending, _) => pending,
        };
        if let Some(raised) = pending {
            return Err(too_late(py, raised)?);
        }
        let answer = Py::new(py, answer)?;
        self.last().answer = Some(answer.clone_ref(py));
        Ok(answer)
    }

    /// The rows of the last statement.
    pub fn answered(&self, py: Python<'_>) -> PyResult<Py<Answer>> {
        self.check(py)?;
        let last = self.last();
        let answer = last.answer.as_ref().map(|answer| answer.clone_ref(py));
        answer.ok_or_else(|| programming_error(py, "no statement was executed"))
    }

    /// Executes a statement once for each of many values.
    pub fn run_many(
        &self,
        py: Python<'_>,
        statement: &str,
        parameters: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Answer>> {
        let mut work = self.work.lock(py)?;
        let caller = self.caller(py)?;
        // Its types are those of the table as it is now.
        work.prepared.remove(statement);
        let (prepared, _lookup) = self.prepared(py, &mut work, statement, caller)?;
        let rows = parameters
            .try_iter()?
            .map(|values| parameters::values(&values?, &prepared));
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        if prepared.is_insert_of_values() {
            let request = Request::Rows(&prepared, rows);
            return self.answer(py, &self.session(py)?, statement, request, None);
        }
        let (mut written, mut tag) = (0, "");
        for values in &rows {
            let request = Request::Prepared(&prepared, values);
            let answer = self.answer(py, &self.session(py)?, statement, request, None)?;
            let answer = answer.get();
            if answer.has_rows() {
                answer.close(py)?;
                return Err(programming_error(
                    py,
                    "executemany is for statements without rows",
                ));
            }
            written += answer.written().unwrap_or_default();
            tag = answer.tag();
        }
        let answer = Py::new(py, Answer::done(tag, Some(written)))?;
        self.last().answer = Some(answer.clone_ref(py));
        Ok(answer)
    }

    /// Appends all rows of an object to a table.
    pub fn append(
        &self,
        py: Python<'_>,
        table: &str,
        object: &Bound<'_, PyAny>,
        by_name: bool,
    ) -> PyResult<Py<Answer>> {
        let _work = self.work.lock(py)?;
        // No name of a user has a parenthesis that is not closed.
        let name = "append(";
        let frame = Registered::clone(&relation(object)?);
        let visible = Arc::new(Visible::new(
            HashMap::from([(name.to_owned(), frame)]),
            None,
        ));
        let frames = Arc::clone(&visible) as Arc<dyn Frames>;
        let session = self.session(py)?.with_frames(frames);
        let _lookup = Lookup(visible);
        let table = stored_name(&session, table);
        let table: Vec<String> = table.split('.').map(quoted).collect();
        let by_name = if by_name { " BY NAME" } else { "" };
        let text = format!(
            "INSERT INTO {}{by_name} SELECT * FROM {}",
            table.join("."),
            quoted(name)
        );
        self.answer(
            py,
            &session,
            &text,
            Request::Text(text.as_str().into()),
            None,
        )
    }
}

/// The name of a table as SQL would find it without quotes, unless there is one of exactly this name.
pub fn stored_name<'a>(session: &Session, table: &'a str) -> Cow<'a, str> {
    if !table.contains(char::is_uppercase) {
        return table.into();
    }
    let is_there = session.relations().into_iter().any(|relation| {
        let full = format!("{}.{}", relation.schema, relation.name);
        table == relation.name || table == full
    });
    match is_there {
        true => table.into(),
        false => table.to_lowercase().into(),
    }
}

/// A failed statement. Values are given in another way than a shell gives them.
fn failed(py: Python<'_>, error: &SqlError) -> PyErr {
    match error.sqlstate().code() {
        UNDEFINED_PARAMETER => {
            let hint = "give the values: execute(statement, [value, …])";
            sql_error_with_hint(py, error, Some(hint))
        }
        _ => sql_error(py, error),
    }
}

const UNDEFINED_PARAMETER: &str = "42P02";

/// Whether the statement contradicts the catalogue or its types.
fn is_mistake(py: Python<'_>, error: &PyErr) -> bool {
    let sqlstate = error.value(py).getattr(intern!(py, "sqlstate"));
    let sqlstate = sqlstate.and_then(|sqlstate| sqlstate.extract::<String>());
    sqlstate.is_ok_and(|sqlstate| sqlstate.starts_with("42"))
}

/// Whether a statement that gives rows also writes, or may.
fn is_write(text: &str) -> bool {
    let begins = |word: &str| {
        let start = text.trim_start().get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    // Nearly all of them, and nothing is looked through.
    if begins("SELECT") {
        return false;
    }
    let mut plain = String::with_capacity(text.len());
    for lexeme in lexemes(text) {
        match lexeme.kind {
            LexemeKind::Other => plain.push_str(&text[lexeme.span]),
            _ => plain.push(' '),
        }
    }
    let mut words = plain
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    let is_one = |word: &str| {
        let writes = ["INSERT", "UPDATE", "DELETE", "MERGE", "EXECUTE"];
        writes.iter().any(|write| word.eq_ignore_ascii_case(write))
    };
    match words.next() {
        // The verb is behind the queries that it names.
        Some(first) if first.eq_ignore_ascii_case("WITH") => words.any(is_one),
        first => first.is_some_and(is_one),
    }
}

/// The statements of a text. Nearly always it is one, and is not looked through.
fn statements_of(py: Python<'_>, text: &str) -> PyResult<Vec<eris_sql::Statement>> {
    let one = text.trim_end().trim_end_matches(';');
    match one.contains(';') || one.trim().is_empty() {
        false => Ok(vec![one.into()]),
        true => Session::split(text).map_err(|error| sql_error(py, &error)),
    }
}

/// An object as a relation.
pub fn relation(object: &Bound<'_, PyAny>) -> PyResult<Registered> {
    let py = object.py();
    let frames = py.import(intern!(py, "eris_db._frames"))?;
    let frame = frames.call_method1(intern!(py, "relation"), (object,))?;
    Ok(frame.cast_into::<Frame>()?.get().state())
}
