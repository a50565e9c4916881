//! Statements that change rows in place: UPDATE, DELETE, MERGE; and RETURNING.
//!
//! ```text
//! UPDATE t SET a = a + 1 WHERE b > 7
//!   │  wait for t's write lock ─▶ snapshot: all that was changed before is in it
//!   ▼
//! SELECT <row id>, a + 1, b FROM t WHERE b > 7        planned and run like any query
//!   │
//!   ├─▶ row ids  ──────────────────────────────▶ deleted ┐
//!   └─▶ new rows ─▶ coerce, NOT NULL, CHECK ─▶ inserted ─┴─▶ one commit, then the write lock is free
//! ```
//!
//! So whatever a query can express can be changed. A statement never sees its own rows. Two statements that change the
//! same row both take effect, one after the other, and nobody has to try again. Rows that are only added need no write
//! lock.

mod conflict;
mod delete;
mod merge;
mod per_row;
mod returning;
mod target;
mod update;

pub(crate) use returning::{Kept, query as returning};

use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{SqlError, Violation};
use crate::plan::files;
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::plan::resolve::NameScope;
use crate::progress;
use crate::running::outcome::Begun;
use crate::running::reserved::Reserved;
use crate::statements::insert;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use crate::write::locks;
use crate::write::locks::Writable;
use crate::write::references::Effect;
use crate::write::row_rules::RowRules;
use crate::write::table_writer::TableWriter;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{self, ObjectName, SelectItem, SetExpr};
use eris_home::HomeError;
use futures::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;

use crate::plan::resolve::ROW;
pub(crate) use conflict::conflicting;
pub(crate) use target::TARGET;

/// A statement that changes rows, as a query that says which and how.
pub(crate) struct Change {
    table: Arc<Table>,
    /// What the statement calls the table.
    alias: ast::Ident,
    /// Its first column are the row ids of the table, called [`TARGET`] in it.
    query: ast::Query,
    action: Action,
    /// Of these columns two rows with the same values can only both be new: rows that were there are updated, and keep
    /// them.
    inserted_once: Option<Vec<String>>,
    /// Where its columns with the values of [`TableWriter::old_columns`] begin.
    old: usize,
    returning: Option<Vec<SelectItem>>,
    tag: &'static str,
}

/// What becomes of the rows of the query.
enum Action {
    /// Each row ends, with `repeated` however often it comes. Behind its id come the table's columns for RETURNING.
    Delete { repeated: bool },
    /// Each row ends and gets a successor, with these values of its columns.
    Update(Vec<Target>),
    /// The second column says which of these is done.
    Merge(Vec<merge::MergeBranch>),
}

/// The name of the table that a statement changes, if it is one that does.
pub(crate) fn changed_table(tree: &ast::Statement) -> Option<Result<&ObjectName, SqlError>> {
    let factor = match tree {
        ast::Statement::Update(update) => update::table(update),
        ast::Statement::Delete(delete) => delete::table(delete),
        ast::Statement::Merge(merge) => Ok(&merge.table),
        _ => return None,
    };
    Some(factor.and_then(target::name))
}

/// What UPDATE or DELETE calls its table.
pub(crate) fn alias(tree: &ast::Statement) -> Option<ast::Ident> {
    let factor = match tree {
        ast::Statement::Update(update) => update::table(update),
        ast::Statement::Delete(delete) => delete::table(delete),
        _ => return None,
    };
    target::alias(factor.ok()?).ok()
}

/// DO UPDATE of ON CONFLICT as an UPDATE of [`TARGET`].
pub(crate) fn update_of(alias: &ast::Ident, update: ast::DoUpdate) -> ast::Statement {
    ast::Statement::Update(ast::Update {
        update_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        table: ast::TableWithJoins {
            relation: target::called(alias.clone()),
            joins: Vec::new(),
        },
        assignments: update.assignments,
        from: None,
        selection: update.selection,
        returning: None,
        output: None,
        or: None,
        order_by: Vec::new(),
        limit: None,
    })
}

/// UPDATE or DELETE as a query over [`TARGET`], and where it has the values of the table's columns. `None`: it has an
/// error.
pub(crate) fn row_change(
    context: &StatementContext,
    table: &Arc<Table>,
    tree: ast::Statement,
) -> Option<(ast::Query, Vec<Target>)> {
    let change = Change::new(context, table, tree, None, &[]).ok()?;
    match change.action {
        Action::Update(targets) => Some((change.query, targets)),
        Action::Delete { .. } => Some((change.query, Vec::new())),
        Action::Merge(_) => None,
    }
}

/// UPDATE, DELETE or MERGE; INSERT, if it has a WITH before it.
pub(crate) async fn run(
    context: &StatementContext,
    tree: ast::Statement,
    with: Option<ast::With>,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if let ast::Statement::Insert(insert) = tree {
        return insert::insert(context, insert_with(insert, with)?, statement).await;
    }
    let context = &context.for_change();
    let name = changed_table(&tree).expect("the statement changes rows")?;
    let table = locks::writable(context, name, &Effect::of(&tree), statement).await?;
    let old = TableWriter::old_columns(&table, table.affected());
    let change = Change::new(context, &table, tree, with, &old)?;
    change.run(context, &table, statement).await
}

/// A statement and the WITH before it, if it is one that writes: the parser takes it for the body of a query.
pub(crate) fn taken_apart(
    tree: ast::Statement,
) -> Result<(ast::Statement, Option<ast::With>), SqlError> {
    let ast::Statement::Query(mut query) = tree else {
        return Ok((tree, None));
    };
    let (SetExpr::Update(tree)
    | SetExpr::Delete(tree)
    | SetExpr::Insert(tree)
    | SetExpr::Merge(tree)) = query.body.as_ref()
    else {
        return Ok((ast::Statement::Query(query), None));
    };
    let tree = tree.clone();
    if query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(SqlError::not_supported(
            "ORDER BY or LIMIT behind a statement that writes",
        ));
    }
    Ok((tree, query.with.take()))
}

/// INSERT with WITH before it is INSERT of a query with it.
fn insert_with(mut insert: ast::Insert, with: Option<ast::With>) -> Result<ast::Insert, SqlError> {
    if let (Some(outer), Some(source)) = (with, &mut insert.source) {
        match &mut source.with {
            None => source.with = Some(outer),
            Some(inner) => {
                let inner_tables = std::mem::replace(&mut inner.cte_tables, outer.cte_tables);
                inner.cte_tables.extend(inner_tables);
                inner.recursive |= outer.recursive;
            }
        }
    }
    Ok(insert)
}

/// INSERT … ON CONFLICT of the rows of a query, with values of these columns.
pub(crate) async fn upsert(
    context: &StatementContext,
    table: Writable,
    insert: ast::Insert,
    source: ast::Query,
    columns: &[usize],
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let old = TableWriter::old_columns(&table, table.affected());
    let change = conflict::change(context, &table, insert, source, columns, &old)?;
    change.run(context, &table, statement).await
}

/// Runs a query, or what the parser takes for one.
pub(crate) async fn run_query(
    context: &StatementContext,
    query: Box<ast::Query>,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    match taken_apart(ast::Statement::Query(query))? {
        (ast::Statement::Query(query), _) => Ok(Begun::Rows(
            planning::plan(context, *query, statement).await?.answer()?,
        )),
        (tree, with) => run(context, tree, with, statement).await,
    }
}

/// The plan by which the rows are found, for EXPLAIN.
pub(crate) async fn plan(
    context: &StatementContext,
    tree: ast::Statement,
    with: Option<ast::With>,
    statement: &Statement,
) -> Result<Plan, SqlError> {
    let mut change = Change::unlocked(context, tree, statement)?;
    change.query.with = with;
    let (plan, _) = change.plan(context, statement).await?;
    Ok(plan)
}

impl Change {
    /// A statement that is only looked at.
    pub fn unlocked(
        context: &StatementContext,
        tree: ast::Statement,
        statement: &Statement,
    ) -> Result<Self, SqlError> {
        let name = changed_table(&tree).expect("the statement changes rows")?;
        let table = context.table(name, statement)?;
        Change::new(context, &table, tree, None, &table.unique_columns())
    }

    /// The query that says which rows are changed, and how.
    pub fn query(&self) -> &ast::Query {
        &self.query
    }

    /// The query also yields the old values of the columns `old`.
    fn new(
        context: &StatementContext,
        table: &Arc<Table>,
        tree: ast::Statement,
        with: Option<ast::With>,
        old: &[usize],
    ) -> Result<Self, SqlError> {
        let mut change = match tree {
            ast::Statement::Update(update) => update::change(context, table, update, old)?,
            ast::Statement::Delete(delete) => delete::change(table, delete, old)?,
            ast::Statement::Merge(merge) => {
                merge::check_given(table, &merge)?;
                merge::change(context, table, merge, old)?
            }
            _ => unreachable!("the statement changes rows"),
        };
        change.query.with = with;
        Ok(change)
    }

    /// The names at the newest snapshot, that of the table with its rows' ids included, and the query's files.
    async fn names(
        &self,
        context: &StatementContext,
        query: &mut ast::Query,
        statement: &Statement,
    ) -> Result<NameScope, SqlError> {
        let mut files = files::open_functions(query, context.state(), statement).await?;
        let names = NameScope::now(context);
        let rows = names.table_with_row_ids(&self.table, ROW)?;
        files.insert(TARGET.to_owned(), rows);
        Ok(names.with_files(files))
    }

    /// Plans the query at the newest snapshot; also the names that it was planned with.
    async fn plan(
        &self,
        context: &StatementContext,
        statement: &Statement,
    ) -> Result<(Plan, NameScope), SqlError> {
        let mut query = self.query.clone();
        let names = self.names(context, &mut query, statement).await?;
        Ok((
            planning::plan_at(context, query, &names, statement).await?,
            names,
        ))
    }

    /// Finds the types of a query that is this one but for values.
    pub async fn logical(
        &self,
        context: &StatementContext,
        mut query: ast::Query,
        statement: &Statement,
    ) -> Result<LogicalPlan, SqlError> {
        let names = self.names(context, &mut query, statement).await?;
        Ok(planning::logical_at(context, query, &names, statement)
            .await?
            .1)
    }

    /// `table` is the change's.
    async fn run(
        self,
        context: &StatementContext,
        table: &Writable,
        statement: &Statement,
    ) -> Result<Begun, SqlError> {
        // From here on nobody else changes rows of the table, until the writer is dropped.
        let mut writer = TableWriter::changing(context, table).await?;
        let (plan, names) = self.plan(context, statement).await?;
        let mut kept = self.returning.as_ref().map(|_| match self.tag {
            "MERGE" => Kept::of_merge(context, table),
            _ => Kept::new(context),
        });
        let rows = self
            .apply(context, &plan, &mut writer, kept.as_mut())
            .await?;
        let returned = match (kept, &self.returning) {
            (Some(kept), Some(items)) => {
                let returned =
                    kept.returned(context, &names, &self.table, &self.alias, items.clone());
                Some(returned.await?)
            }
            _ => None,
        };
        (writer.finish(context, |error| self.commit_error(error))).await?;
        if rows == 0 {
            context.show_found().await?;
        }
        Ok(match returned {
            Some(returned) => Begun::Rows(returned),
            None => Begun::Count {
                rows,
                tag: self.tag,
            },
        })
    }

    /// Hands over to the writer what the query yields; returns the number of rows that are changed.
    async fn apply(
        &self,
        context: &StatementContext,
        plan: &Plan,
        writer: &mut TableWriter,
        mut kept: Option<&mut Kept>,
    ) -> Result<u64, SqlError> {
        let rules = RowRules::new(context, &self.table)?;
        let progress = progress::current();
        let mut stream = plan.run()?;
        let mut seen = SeenRows::new(context);
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(SqlError::from_datafusion)?;
            let before = rows;
            match &self.action {
                Action::Delete { repeated } => {
                    let batch = match repeated {
                        true => seen.fresh(&batch)?,
                        false => batch,
                    };
                    rows += batch.num_rows() as u64;
                    writer.delete(&batch, self.old).await?;
                    if let Some(kept) = &mut kept {
                        let columns: Vec<usize> = (1..=self.table.types.len()).collect();
                        kept.keep(batch.project(&columns)?, "DELETE")?;
                    }
                }
                Action::Update(targets) => {
                    let new = rules.apply(&self.table, &batch, targets, rows + 1)?;
                    rows += batch.num_rows() as u64;
                    writer.delete(&batch, self.old).await?;
                    if let Some(kept) = &mut kept {
                        kept.keep(new.clone(), "UPDATE")?;
                    }
                    writer.append(new).await?;
                }
                Action::Merge(branches) => {
                    for (branch, batch) in merge::split(&batch, branches)? {
                        if branch.ends_row {
                            writer.delete(&batch, self.old).await?;
                        }
                        if let Some(targets) = &branch.targets {
                            let new = rules.apply(&self.table, &batch, targets, rows + 1)?;
                            if let Some(kept) = &mut kept {
                                kept.keep(new.clone(), branch.name())?;
                            }
                            writer.append(new).await?;
                        }
                        if let (Some(kept), Some(columns)) = (&mut kept, &branch.deleted) {
                            let columns: Vec<usize> = columns.clone().collect();
                            kept.keep(batch.project(&columns)?, branch.name())?;
                        }
                        rows += batch.num_rows() as u64;
                    }
                }
            }
            progress.wrote(rows - before);
        }
        Ok(rows)
    }

    fn commit_error(&self, error: HomeError) -> SqlError {
        let is_twice = match &error {
            HomeError::DeletedTwice { .. } => true,
            HomeError::DuplicateKey { object, .. } => {
                self.inserted_once.is_some()
                    && self.inserted_once.as_deref() == self.table.key_columns(*object)
            }
            _ => false,
        };
        if !is_twice {
            return self.table.write_error(error);
        }
        let (what, hint) = match self.action {
            Action::Merge(_) if self.tag == "INSERT" => (
                "INSERT … ON CONFLICT DO UPDATE",
                "several of the rows to be inserted have one key; choose one with DISTINCT ON or GROUP BY",
            ),
            Action::Merge(_) => (
                "MERGE",
                "several rows of the source match it; make the condition after ON, or the source, unique",
            ),
            _ => (
                "UPDATE … FROM",
                "several rows of FROM match it; make the condition unique, or choose one with a subquery",
            ),
        };
        SqlError::constraint(
            Violation::Twice,
            format!(
                "table \"{}\": a row would be changed more than once by {what}",
                self.table.name
            ),
        )
        .with_hint(Some(hint))
    }
}

/// The ids of rows that have come already.
struct SeenRows {
    ids: HashSet<i64>,
    reserved: Reserved,
}

impl SeenRows {
    fn new(context: &StatementContext) -> Self {
        SeenRows {
            ids: HashSet::new(),
            reserved: Reserved::new(context.home.budget()),
        }
    }

    /// The rows that come for the first time.
    fn fresh(&mut self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let before = self.ids.capacity();
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let fresh = ids.iter().map(|id| Some(self.ids.insert(*id))).collect();
        self.reserved
            .grow((self.ids.capacity() - before) * (size_of::<i64>() + 1))?;
        Ok(filter_record_batch(batch, &fresh)?)
    }
}
