//! BACKUP DATABASE TO 'directory': a copy of the database, which can be opened like it; there as a whole or not at all.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::maintenance::checkpoints;
use crate::running::outcome::Begun;
use eris_files::DirectoryUnderWay;
use std::path::PathBuf;

/// Runs the statement.
pub(super) async fn run(context: &StatementContext, directory: String) -> Result<Begun, SqlError> {
    if context.home.durability().is_none() {
        let what = "BACKUP DATABASE of a database that ends with its process";
        return Err(SqlError::not_supported(what).with_hint(Some(
            "EXPORT DATABASE 'directory' writes its tables to files".to_owned(),
        )));
    }
    let target = PathBuf::from(directory.trim_end_matches('/'));
    let under_way = DirectoryUnderWay::create(target).await?;
    checkpoints::back_up(&context.home, under_way.path().to_owned()).await?;
    under_way.finish(Vec::new()).await?;
    Ok(Begun::Done {
        tag: "BACKUP DATABASE",
    })
}
