//! The way of a statement, in one function: [`begin`].
//!
//! ```text
//! text ── mask ── lookup ──┬── a plan that is kept ─────────────────────────── run ──▶ Outcome
//!                          └── NotShort ── parse ── admit ──┬── Short ──────── run ──▶ Outcome
//!                                                           └── NotShort: the general path,
//!                                                               resolve ── plan ── run ──▶ Outcome
//! ```
//!
//! Masking and lookup are [`Request::text`] and [`Request::lookup`]. A plan that is found and light runs in the thread
//! of its client, see [`serving`](super::serving). [`begin`] is all the rest, in a task. A prepared statement has been
//! parsed already, and has values in the place of a mask. `EXECUTE` begins anew as such a statement.
//!
//! On the general path each kind of statement resolves and plans what it needs ([`dispatch`]): a query all of it,
//! CREATE TABLE only its defaults and CHECK conditions.

use super::dispatch;
use super::prepared::Prepared;
use super::prepared_rows;
use crate::cancel;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan_cache::{self, Asked, Mask, NotShort, Short};
use crate::running::outcome::Begun;
use crate::running::queries::shortened;
use crate::statements::{ddl, files, show};
use crate::text::macros::{self, MacroStatement};
use crate::text::parameter::Parameter;
use crate::text::parse::{parse, parse_summarized};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast;
use std::borrow::Cow;
use std::sync::Arc;

/// What a session can be asked to run.
pub(crate) enum Request {
    Text {
        statement: Statement,
        mask: Result<Mask, NotShort>,
    },
    Prepared {
        prepared: Arc<Prepared>,
        values: Vec<Parameter>,
    },
    PreparedRows {
        prepared: Arc<Prepared>,
        rows: Vec<Vec<Parameter>>,
    },
}

/// What a text is.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and not for long"
)]
enum Parsed<'a> {
    Summarize(ast::Query),
    Files(files::FileStatement),
    Macro(MacroStatement),
    Tree(Cow<'a, ast::Statement>),
}

/// Begins a statement, of which `found` has been looked up.
pub(crate) async fn begin(
    context: &StatementContext,
    request: &Request,
    found: Result<Short, NotShort>,
) -> Result<Begun, SqlError> {
    let statement = request.statement();
    if let Request::PreparedRows { prepared, rows } = request {
        return match prepared_rows::tree(context, prepared, rows)? {
            Some((context, tree)) => dispatch::begin_tree(&context, tree, statement).await,
            None => Ok(Begun::Count {
                rows: 0,
                tag: "INSERT",
            }),
        };
    }
    let attempt = match found {
        Ok(short) => short.run(context, &cancel::current()).await?,
        Err(reason) => Err(reason),
    };
    let reason = match attempt {
        Ok(begun) => return Ok(begun),
        Err(reason) => reason,
    };
    let mut parsed = request.parse()?;
    let calls_macros = match &mut parsed {
        Parsed::Summarize(query) => context.put_macros_in(query, statement)?,
        Parsed::Files(parsed) => match parsed.query_mut() {
            Some(query) => context.put_macros_in(query, statement)?,
            None => false,
        },
        Parsed::Tree(Cow::Owned(tree)) => context.put_macros_in(tree, statement)?,
        // Those of a prepared statement are there already.
        Parsed::Tree(Cow::Borrowed(_)) | Parsed::Macro(_) => false,
    };
    let expanded = calls_macros.then(|| statement.calling_macros());
    let statement = expanded.as_ref().unwrap_or(statement);
    let tree = match parsed {
        Parsed::Summarize(query) => return show::summarize(context, query, statement).await,
        Parsed::Files(parsed) => return files::run(context, parsed, statement).await,
        Parsed::Macro(parsed) => return ddl::macros::run(context, parsed, statement).await,
        Parsed::Tree(tree) => tree,
    };
    // The constants of a macro are none of the text.
    if !calls_macros
        && reason.may_be_planned()
        && let Ok(asked) = request.asked()
        && let Ok(short) = plan_cache::admit(context, &tree, asked, statement).await
        && let Ok(begun) = short.run(context, &cancel::current()).await?
    {
        return Ok(begun);
    }
    dispatch::begin_tree(context, request.with_values(tree)?, statement).await
}

impl Request {
    /// A text, which is masked here and nowhere else.
    pub fn text(statement: Statement) -> Self {
        Request::Text {
            mask: Mask::new(statement.text()),
            statement,
        }
    }

    /// The plan that is kept for it.
    ///
    /// # Errors
    /// There is none.
    pub fn lookup(&self, context: &StatementContext) -> Result<Short, NotShort> {
        plan_cache::lookup(context, self.asked()?)
    }

    /// The text among the running statements.
    pub fn shown(&self) -> Arc<str> {
        match self {
            Request::Text { statement, .. } => shortened(statement.text()),
            Request::Prepared { prepared, .. } | Request::PreparedRows { prepared, .. } => {
                Arc::clone(prepared.shown())
            }
        }
    }

    fn statement(&self) -> &Statement {
        match self {
            Request::Text { statement, .. } => statement,
            Request::Prepared { prepared, .. } | Request::PreparedRows { prepared, .. } => {
                prepared.statement()
            }
        }
    }

    fn asked(&self) -> Result<Asked<'_>, NotShort> {
        match self {
            Request::Text { statement, mask } => match mask {
                Ok(mask) => Ok(Asked::Text(mask.of(statement.text()))),
                Err(reason) => Err(*reason),
            },
            Request::Prepared { prepared, values } => prepared.asked(values),
            Request::PreparedRows { .. } => Err(NotShort::ValueCount),
        }
    }

    fn parse(&self) -> Result<Parsed<'_>, SqlError> {
        let statement = match self {
            Request::Text { statement, .. } => statement,
            Request::Prepared { prepared, .. } | Request::PreparedRows { prepared, .. } => {
                return Ok(Parsed::Tree(Cow::Borrowed(prepared.tree())));
            }
        };
        if let Some(query) = parse_summarized(statement)? {
            return Ok(Parsed::Summarize(query));
        }
        if let Some(parsed) = files::parse(statement)? {
            return Ok(Parsed::Files(parsed));
        }
        if let Some(parsed) = macros::parse(statement)? {
            return Ok(Parsed::Macro(parsed));
        }
        Ok(Parsed::Tree(Cow::Owned(parse(statement)?)))
    }

    /// The tree with constants only.
    fn with_values(&self, tree: Cow<'_, ast::Statement>) -> Result<ast::Statement, SqlError> {
        match self {
            Request::Text { .. } | Request::PreparedRows { .. } => Ok(tree.into_owned()),
            Request::Prepared { prepared, values } => prepared.bind(values),
        }
    }
}

/// Begins a text.
#[cfg(test)]
pub(crate) async fn begin_text(
    context: &StatementContext,
    text: impl Into<Statement>,
) -> Result<Begun, SqlError> {
    let request = Request::text(text.into());
    let found = request.lookup(context);
    begin(context, &request, found).await
}
