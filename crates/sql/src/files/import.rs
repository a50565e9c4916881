//! IMPORT DATABASE 'directory': runs the statements that EXPORT DATABASE has written, Eris' or DuckDB's.
//!
//! All tables are new, so whatever fails, they are dropped again.

use super::copy_from;
use super::export::{LOAD_FILE, SCHEMA_FILE};
use super::read::ReadOptions;
use super::statement::{self, FileStatement};
use super::{blocking, failed};
use crate::catalog::exists;
use crate::core::{Begun, Core, table_name};
use crate::ddl::Nameless;
use crate::error::SqlError;
use crate::parse::parse;
use crate::statement::{Statement, split};
use datafusion::sql::sqlparser::ast;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Runs the statement.
pub(super) async fn run(core: &Core, directory: &str) -> Result<Begun, SqlError> {
    let directory = PathBuf::from(directory.trim_end_matches('/'));
    let (schema, load) = (
        read(&directory, SCHEMA_FILE).await?,
        read(&directory, LOAD_FILE).await?,
    );
    let schema_file = directory.join(SCHEMA_FILE).to_string_lossy().into_owned();
    let mut creates = Vec::new();
    for text in &schema {
        let tree = parse(text).map_err(|error| in_file(&schema_file, &error))?;
        let ast::Statement::CreateTable(create) = tree else {
            let words: Vec<_> = text.text().split_whitespace().take(2).collect();
            let what = format!("{} in '{schema_file}'", words.join(" "));
            return Err(SqlError::not_supported(what).with_hint(Some(
                "remove the statement from the file, then import again",
            )));
        };
        let name = table_name(&create.name).map_err(|error| in_file(&schema_file, &error))?;
        if core.catalog.get(&name).is_some() {
            return Err(exists(&name).with_hint(Some(format!(
                "DROP TABLE \"{name}\" first; nothing has been imported"
            ))));
        }
        creates.push((name, text));
    }
    let mut created = Created {
        core,
        names: Vec::new(),
    };
    for (name, text) in creates {
        Box::pin(core.begin(text))
            .await
            .map_err(|error| in_file(&schema_file, &error))?;
        created.names.push(name);
    }
    for text in &load {
        fill(core, &directory, text, &created.names).await?;
    }
    created.names.clear();
    Ok(Begun::Done {
        tag: "IMPORT DATABASE",
    })
}

async fn read(directory: &Path, name: &str) -> Result<Vec<Statement>, SqlError> {
    let path = directory.join(name);
    let text = blocking(move || {
        std::fs::read_to_string(&path).map_err(|error| {
            failed(&path.to_string_lossy(), error).with_hint(Some(
                "the directory has to be one that EXPORT DATABASE has written",
            ))
        })
    });
    split(&text.await?)
}

/// Runs a COPY, of a file in the directory, wherever that was when it was written.
async fn fill(
    core: &Core,
    directory: &Path,
    text: &Statement,
    created: &[String],
) -> Result<(), SqlError> {
    let load_file = directory.join(LOAD_FILE).to_string_lossy().into_owned();
    let wrong = |error: SqlError| in_file(&load_file, &error);
    let Some(FileStatement::CopyFrom(mut copy)) = statement::parse(text).map_err(wrong)? else {
        return Err(failed(
            &load_file,
            "only COPY table FROM 'file' may be in it",
        ));
    };
    let name = table_name(&copy.table).map_err(wrong)?;
    if !created.contains(&name) {
        return Err(failed(
            &load_file,
            format!("it fills \"{name}\", which '{SCHEMA_FILE}' does not create"),
        ));
    }
    let table = core.table(&copy.table, text)?;
    for file in &mut copy.files {
        let beside = Path::new(&*file)
            .file_name()
            .map(|name| directory.join(name));
        if let Some(beside) = beside.filter(|beside| beside.exists()) {
            *file = beside.to_string_lossy().into_owned();
        }
    }
    let options = ReadOptions::new(copy.options, None, "COPY FROM").map_err(wrong)?;
    let columns: Vec<usize> = (0..table.types.len()).collect();
    copy_from::load(core, &table, &columns, copy.files, options).await?;
    Ok(())
}

fn in_file(file: &str, error: &SqlError) -> SqlError {
    failed(file, error).with_hint(Some("nothing has been imported"))
}

/// The tables that the statement has made so far; dropped with it unless it succeeds.
struct Created<'a> {
    core: &'a Core,
    names: Vec<String>,
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        let names: HashSet<String> = self.names.drain(..).collect();
        let names: Vec<String> = names.into_iter().collect();
        for table in self.core.catalog.remove(&names, true).unwrap_or_default() {
            drop(Nameless::new(self.core, table.object));
        }
    }
}
