//! IMPORT DATABASE 'directory': runs the statements that EXPORT DATABASE has written, Eris' or DuckDB's.
//!
//! They change a draft of the catalogue. It takes effect at the end, all at once. So others see the whole import or
//! nothing, after a crash either; and if it fails, nothing is left of it.

use super::copy_from;
use super::export::{LOAD_FILE, SCHEMA_FILE};
use super::failed;
use super::parse::{self, FileStatement};
use crate::cancel::{CancelToken, STATEMENT};
use crate::catalog::{Draft, RelationName, SCHEMA};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::ddl;
use crate::statements::ddl::exists;
use crate::text::identifier::normalize;
use crate::text::macros::{self, MacroStatement};
use crate::text::parse::parse;
use crate::text::statement::{Statement, split};
use crate::write::locks;
use crate::write::references::Effect;
use crate::write::targets::columns;
use datafusion::sql::sqlparser::ast::{self, CommentObject, SchemaName};
use eris_files::read_text;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Runs the statement.
pub(super) async fn run(context: &StatementContext, directory: &str) -> Result<Begun, SqlError> {
    // Names without a schema are of the one that was left out when they were written.
    let context = &context.without_temporary().in_schema(SCHEMA);
    let directory = PathBuf::from(directory.trim_end_matches('/'));
    let (schema, load) = (
        read(&directory, SCHEMA_FILE).await?,
        read(&directory, LOAD_FILE).await?,
    );
    let schema_file = directory.join(SCHEMA_FILE).to_string_lossy().into_owned();
    let mut creates = Vec::new();
    for text in &schema {
        let wrong = |error: SqlError| in_file(&schema_file, &error);
        reject_unknown(text).map_err(wrong)?;
        let made = match macros::parse(text).map_err(wrong)? {
            Some(parsed) => Made::by_macro(context, &parsed, text).map_err(wrong)?,
            None => Made::by(context, &parse(text).map_err(wrong)?, text).map_err(wrong)?,
        };
        made.reject_existing(context)?;
        creates.push((made, text));
    }
    for (made, _) in &creates {
        let (what, of) = match made {
            Made::Index(table) => ("an index", table),
            Made::Comment(of) | Made::MacroComment(of, _) => ("a comment", of),
            _ => continue,
        };
        let is_made = |(other, _): &(Made, _)| match other {
            Made::Table(name) => name == of && !matches!(made, Made::MacroComment(..)),
            Made::View(name) => name == of && matches!(made, Made::Comment(_)),
            Made::Macro(name, is_table) => *made == Made::MacroComment(name.clone(), *is_table),
            _ => false,
        };
        if !creates.iter().any(is_made) {
            let reason = format!("it makes {what} of \"{of}\", which it does not create");
            return Err(failed(&schema_file, reason).with_hint(Some("nothing has been imported")));
        }
    }
    let is_late = |made: &Made| {
        use Made::{Macro, Schema, Sequence, Table};
        !matches!(made, Schema | Sequence(_) | Table(_) | Macro(..))
    };
    let (mut late, others): (Vec<_>, Vec<_>) =
        creates.into_iter().partition(|(made, _)| is_late(made));
    let draft = Draft::of(&context.catalog);
    let within = &context.clone().in_catalog(&draft.catalog);
    let mut created = Vec::new();
    for (made, text) in others {
        match run_alone(within, text).await {
            Ok(()) => created.push(made),
            // Tables may call macros, and macros may read tables.
            Err(error) if matches!(made, Made::Macro(..)) && error.is(Mistake::UndefinedTable) => {
                late.push((made, text));
            }
            Err(error) => return Err(in_file(&schema_file, &error)),
        }
    }
    for text in &load {
        fill(within, &directory, text, &created).await?;
    }
    // Views may read any table, and an index of all rows at once takes less than one that grows.
    let mut waiting = VecDeque::from(late);
    let mut deferred = 0;
    while let Some((made, text)) = waiting.pop_front() {
        match run_alone(within, text).await {
            Ok(()) => deferred = 0,
            // DuckDB writes views by their names: what one reads may come behind it.
            Err(error) if deferred < waiting.len() && error.is(Mistake::UndefinedTable) => {
                waiting.push_back((made, text));
                deferred += 1;
            }
            Err(error) => return Err(in_file(&schema_file, &error)),
        }
    }
    ddl::publish_draft(context, &draft).await?;
    Ok(Begun::Done {
        tag: "IMPORT DATABASE",
    })
}

/// What a statement of the schema file makes.
#[derive(PartialEq)]
enum Made {
    Schema,
    Sequence(RelationName),
    Table(RelationName),
    View(RelationName),
    /// And whether it is called in FROM.
    Macro(RelationName, bool),
    /// Of this table, with which it goes.
    Index(RelationName),
    /// Of this table or view, with which it goes.
    Comment(RelationName),
    /// Of this macro, with which it goes.
    MacroComment(RelationName, bool),
    /// Of a schema, which may be there already.
    SchemaComment,
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
            ast::Statement::CreateSequence { name, .. } => {
                Ok(Made::Sequence(context.new_name(name, false, text)?))
            }
            ast::Statement::CreateView(create) => {
                Ok(Made::View(context.resolve(&create.name, text)?))
            }
            ast::Statement::CreateIndex(create) => {
                Ok(Made::Index(context.resolve(&create.table_name, text)?))
            }
            ast::Statement::CreateSchema {
                schema_name: SchemaName::Simple(_),
                ..
            } => Ok(Made::Schema),
            ast::Statement::Comment {
                object_type,
                object_name,
                ..
            } => {
                let mut name = object_name.clone();
                if *object_type == CommentObject::Schema {
                    return Ok(Made::SchemaComment);
                }
                if *object_type == CommentObject::Column {
                    name.0.pop();
                }
                Ok(Made::Comment(context.resolve(&name, text)?))
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

    fn by_macro(
        context: &StatementContext,
        parsed: &MacroStatement,
        text: &Statement,
    ) -> Result<Self, SqlError> {
        match parsed {
            MacroStatement::Create(create) => {
                let name = context.new_name(&create.name, false, text)?;
                Ok(Made::Macro(name, create.is_table()))
            }
            MacroStatement::Comment { name, is_table, .. } => Ok(Made::MacroComment(
                context.new_name(name, false, text)?,
                *is_table,
            )),
            MacroStatement::Drop { .. } => Err(SqlError::not_supported("IMPORT of DROP MACRO")),
        }
    }

    fn reject_existing(&self, context: &StatementContext) -> Result<(), SqlError> {
        let contents = context.catalog.contents();
        let (kind, name) = match self {
            // It is shared with what is there.
            Made::Schema
            | Made::Index(_)
            | Made::Comment(_)
            | Made::MacroComment(..)
            | Made::SchemaComment => {
                return Ok(());
            }
            Made::Macro(name, is_table) => {
                return match contents.macro_named(name, *is_table) {
                    None => Ok(()),
                    Some(_) => {
                        let table = if *is_table { "TABLE " } else { "" };
                        let name_text = name.sql();
                        let hint = format!(
                            "DROP MACRO {table}{name_text} first; nothing has been imported"
                        );
                        Err(exists("macro", name, Some(&hint)))
                    }
                };
            }
            Made::Sequence(name) => {
                return match contents.sequence(name) {
                    None => Ok(()),
                    Some(_) => {
                        let hint = format!(
                            "DROP SEQUENCE {} first; nothing has been imported",
                            name.sql()
                        );
                        Err(exists("sequence", name, Some(&hint)))
                    }
                };
            }
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

/// Runs a statement as one of its own, which changes the draft at once while the import goes on.
async fn run_alone(context: &StatementContext, text: &Statement) -> Result<(), SqlError> {
    if let Some(parsed) = macros::parse(text)? {
        let begun = STATEMENT.scope(
            CancelToken::new(None),
            ddl::macros::run(context, parsed, text),
        );
        return Box::pin(begun).await.map(drop);
    }
    let mut parsed = parse(text)?;
    let expanded = context
        .put_macros_in(&mut parsed, text)?
        .then(|| text.calling_macros());
    let text = expanded.as_ref().unwrap_or(text);
    if let ast::Statement::CreateSchema {
        schema_name: SchemaName::Simple(name),
        ..
    } = &parsed
    {
        let last = name.0.last().and_then(|part| part.as_ident());
        if last.is_some_and(|name| context.catalog.contents().has_schema(&normalize(name))) {
            return Ok(());
        }
    }
    let begun = STATEMENT.scope(CancelToken::new(None), ddl::run(context, parsed, text));
    Box::pin(begun).await.map(drop)
}

/// Rejects what DuckDB exports and Eris does not have, by its name.
fn reject_unknown(text: &Statement) -> Result<(), SqlError> {
    let words = text.text().split_whitespace().take(2);
    let words: Vec<String> = words.map(str::to_uppercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["CREATE", "TYPE"] => Err(SqlError::not_supported(format!(
            "IMPORT of {}",
            words.join(" ")
        ))),
        _ => Ok(()),
    }
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
            return run_alone(context, text).await.map_err(wrong);
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
    let options = copy_from::options_for(&table, copy.options).map_err(wrong)?;
    let columns = columns(&table, &[])?;
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
