//! IMPORT DATABASE 'directory': runs the statements that EXPORT DATABASE has written, Eris' or DuckDB's.
//!
//! All tables are new, so whatever fails, they are dropped again.

use super::copy_from;
use super::export::{LOAD_FILE, SCHEMA_FILE};
use super::failed;
use super::parse::{self, FileStatement};
use crate::cancel::{CancelToken, STATEMENT, begin_commit};
use crate::catalog::{RelationName, SCHEMA};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::files::read_options::read_options;
use crate::running::outcome::Begun;
use crate::statements::ddl;
use crate::statements::ddl::{exists, release};
use crate::text::identifier::normalize;
use crate::text::parse::parse;
use crate::text::statement::{Statement, split};
use crate::write::locks;
use crate::write::references::Effect;
use datafusion::sql::sqlparser::ast::{self, SchemaName};
use eris_files::read_text;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// Runs the statement.
pub(super) async fn run(context: &StatementContext, directory: &str) -> Result<Begun, SqlError> {
    // Names without a schema are of the one that was left out when they were written.
    let context = &context.clone().in_schema(SCHEMA);
    let directory = PathBuf::from(directory.trim_end_matches('/'));
    let (schema, load) = (
        read(&directory, SCHEMA_FILE).await?,
        read(&directory, LOAD_FILE).await?,
    );
    let schema_file = directory.join(SCHEMA_FILE).to_string_lossy().into_owned();
    let mut creates = Vec::new();
    for text in &schema {
        let wrong = |error: SqlError| in_file(&schema_file, &error);
        let made = Made::by(context, &parse(text).map_err(wrong)?, text).map_err(wrong)?;
        made.reject_existing(context)?;
        creates.push((made, text));
    }
    for (made, _) in &creates {
        if let Made::Index(table) = made
            && !creates
                .iter()
                .any(|(other, _)| *other == Made::Table(table.clone()))
        {
            let reason = format!("it makes an index of \"{table}\", which it does not create");
            return Err(failed(&schema_file, reason).with_hint(Some("nothing has been imported")));
        }
    }
    let is_late = |made: &Made| matches!(made, Made::View(_) | Made::Index(_));
    let (late, others): (Vec<_>, Vec<_>) = creates.into_iter().partition(|(made, _)| is_late(made));
    let mut created = Created {
        context: context.clone(),
        made: Vec::new(),
    };
    let imported = async {
        for (made, text) in others {
            if create(context, text, &schema_file).await? {
                created.made.push(made);
            }
        }
        for text in &load {
            fill(context, &directory, text, &created.made).await?;
        }
        // Views may read any table, and an index of all rows at once takes less than one that grows.
        for (made, text) in late {
            create(context, text, &schema_file).await?;
            created.made.push(made);
        }
        begin_commit()
    };
    match imported.await {
        Ok(()) => {
            created.made.clear();
            Ok(Begun::Done {
                tag: "IMPORT DATABASE",
            })
        }
        Err(error) => {
            created.undo().await;
            Err(error)
        }
    }
}

/// What a statement of the schema file makes.
#[derive(PartialEq)]
enum Made {
    Schema(String),
    Table(RelationName),
    View(RelationName),
    /// Of this table, with which it goes.
    Index(RelationName),
}

impl Made {
    fn by(
        context: &StatementContext,
        tree: &ast::Statement,
        text: &Statement,
    ) -> Result<Self, SqlError> {
        match tree {
            ast::Statement::CreateTable(create) => {
                Ok(Made::Table(context.resolve(&create.name, text)?))
            }
            ast::Statement::CreateView(create) => {
                Ok(Made::View(context.resolve(&create.name, text)?))
            }
            ast::Statement::CreateIndex(create) => {
                Ok(Made::Index(context.resolve(&create.table_name, text)?))
            }
            ast::Statement::CreateSchema {
                schema_name: SchemaName::Simple(name),
                ..
            } => {
                let last = name.0.last().and_then(|part| part.as_ident());
                Ok(Made::Schema(last.map(normalize).unwrap_or_default()))
            }
            _ => {
                let words: Vec<_> = text.text().split_whitespace().take(2).collect();
                Err(SqlError::not_supported(format!(
                    "IMPORT of {}",
                    words.join(" ")
                )))
            }
        }
    }

    fn reject_existing(&self, context: &StatementContext) -> Result<(), SqlError> {
        let contents = context.catalog.contents();
        let (kind, name) = match self {
            // It is shared with what is there.
            Made::Schema(_) | Made::Index(_) => return Ok(()),
            Made::Table(name) => ("TABLE", name),
            Made::View(name) => ("VIEW", name),
        };
        match contents.get(name) {
            None => Ok(()),
            Some(found) => {
                let hint = format!(
                    "DROP {kind} {} first; nothing has been imported",
                    name.sql()
                );
                Err(exists(found.kind(), name, Some(&hint)))
            }
        }
    }
}

/// Runs a statement of the schema file as one of its own: what it makes takes effect at once, while the import goes on.
/// Whether it has made anything: a schema may be there already.
async fn create(
    context: &StatementContext,
    text: &Statement,
    file: &str,
) -> Result<bool, SqlError> {
    let parsed = parse(text).map_err(|error| in_file(file, &error))?;
    if let ast::Statement::CreateSchema {
        schema_name: SchemaName::Simple(name),
        ..
    } = &parsed
    {
        let last = name.0.last().and_then(|part| part.as_ident());
        if last.is_some_and(|name| context.catalog.contents().has_schema(&normalize(name))) {
            return Ok(false);
        }
    }
    let begun = STATEMENT.scope(CancelToken::new(None), ddl::run(context, parsed, text));
    let begun = Box::pin(begun).await;
    begun.map_err(|error| in_file(file, &error)).map(|_| true)
}

async fn read(directory: &Path, name: &str) -> Result<Vec<Statement>, SqlError> {
    let path = directory.join(name);
    let text = read_text(path).await.map_err(|error| {
        SqlError::from(error).with_hint(Some(
            "the directory has to be one that EXPORT DATABASE has written",
        ))
    });
    split(&text?)
}

/// Runs a COPY, of a file in the directory, wherever that was when it was written; or adds a foreign key.
async fn fill(
    context: &StatementContext,
    directory: &Path,
    text: &Statement,
    created: &[Made],
) -> Result<(), SqlError> {
    let load_file = directory.join(LOAD_FILE).to_string_lossy().into_owned();
    let wrong = |error: SqlError| in_file(&load_file, &error);
    let Some(FileStatement::CopyFrom(mut copy)) = parse::parse(text).map_err(wrong)? else {
        if let ast::Statement::AlterTable(alter) = parse(text).map_err(wrong)?
            && is_foreign_key(&alter)
            && let Ok(name) = context.resolve(&alter.name, text)
            && created.contains(&Made::Table(name))
        {
            return create(context, text, &load_file).await.map(|_| ());
        }
        return Err(failed(
            &load_file,
            "only COPY table FROM 'file' and ALTER TABLE … ADD FOREIGN KEY may be in it",
        ));
    };
    let name = context.resolve(&copy.table, text).map_err(wrong)?;
    if !created.contains(&Made::Table(name.clone())) {
        return Err(failed(
            &load_file,
            format!("it fills \"{name}\", which '{SCHEMA_FILE}' does not create"),
        ));
    }
    let table = locks::writable(context, &copy.table, &Effect::adding(), text).await?;
    for file in &mut copy.files {
        let beside = Path::new(&*file)
            .file_name()
            .map(|name| directory.join(name));
        if let Some(beside) = beside.filter(|beside| beside.exists()) {
            *file = beside.to_string_lossy().into_owned();
        }
    }
    let options = read_options(copy.options, None, "COPY FROM").map_err(wrong)?;
    let columns: Vec<usize> = (0..table.types.len()).collect();
    let load = copy_from::load(context, &table, &columns, copy.files, options);
    Box::pin(STATEMENT.scope(CancelToken::new(None), load)).await?;
    Ok(())
}

/// Whether the statement adds foreign keys, and does nothing else.
fn is_foreign_key(alter: &ast::AlterTable) -> bool {
    let is_added = |operation: &ast::AlterTableOperation| {
        matches!(
            operation,
            ast::AlterTableOperation::AddConstraint {
                constraint: ast::TableConstraint::ForeignKey(_),
                ..
            }
        )
    };
    alter.operations.iter().all(is_added)
}

fn in_file(file: &str, error: &SqlError) -> SqlError {
    failed(file, error).with_hint(Some("nothing has been imported"))
}

/// What the statement has made so far; dropped again with it, unless it succeeds.
struct Created {
    context: StatementContext,
    made: Vec<Made>,
}

impl Created {
    /// Everything is gone when this returns.
    async fn undo(&mut self) {
        let mut change = self.context.catalog.change().await;
        // From here on nothing waits.
        let made = std::mem::take(&mut self.made);
        let tables = made.iter().filter_map(|made| match made {
            Made::Table(name) => Some(name.clone()),
            Made::Schema(_) | Made::View(_) | Made::Index(_) => None,
        });
        // Somebody else's table may refer to one of them by now; it has new data objects only for new constraints.
        let released = release(&mut change, &tables.collect::<Vec<_>>());
        debug_assert!(released.is_ok(), "{released:?}");
        for made in made.iter().rev() {
            match made {
                Made::Schema(name) => {
                    if change.relations_in(name).next().is_none() {
                        change.remove_schema(name);
                    }
                }
                Made::Table(name) | Made::View(name) => {
                    change.remove(name);
                }
                Made::Index(_) => {}
            }
        }
        change.publish();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if self.made.is_empty() {
            return;
        }
        let mut undone = Created {
            context: self.context.clone(),
            made: std::mem::take(&mut self.made),
        };
        // The catalogue is changed in turn, which may take waiting.
        runtime.spawn(async move { undone.undo().await });
    }
}
