//! BACKUP DATABASE TO 'directory': a copy of the database, which can be opened like it; there as a whole or not at all.

use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::maintenance::checkpoints;
use crate::running::outcome::Begun;
use eris_files::{DirectoryUnderWay, is_within};
use std::path::PathBuf;

/// Runs the statement.
pub(super) async fn run(context: &StatementContext, directory: String) -> Result<Begun, SqlError> {
    let Some(durability) = context.home.durability() else {
        let what = "BACKUP DATABASE of a database that ends with its process";
        return Err(SqlError::not_supported(what).with_hint(Some(
            "EXPORT DATABASE 'directory' writes its tables to files".to_owned(),
        )));
    };
    let target = PathBuf::from(directory.trim_end_matches('/'));
    if is_within(&target, &durability.status().directory) {
        let message = format!("'{directory}' lies in the directory of the database itself");
        let error = SqlError::invalid(Mistake::InvalidParameterValue, message);
        return Err(error.with_hint(Some(
            "write the backup to another directory, best on another disk",
        )));
    }
    let under_way = DirectoryUnderWay::create(target).await?;
    checkpoints::back_up(&context.home, under_way.path().to_owned()).await?;
    under_way.finish(Vec::new()).await?;
    Ok(Begun::Done {
        tag: "BACKUP DATABASE",
    })
}
