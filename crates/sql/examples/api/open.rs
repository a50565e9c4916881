//! Opening a database. It lives in memory, in this process, and ends with its last clone and session.

use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::Database;
use std::error::Error;

/// A database on all cores of this machine, with a part of its memory. Its tables are at home in an engine.
pub fn open() -> Result<Database, Box<dyn Error>> {
    let settings = Settings {
        topology: Topology::detect()?,
        huge_pages: HugePages::Auto,
        // Without a limit it may take 80 % of the memory.
        memory_limit: Some(1 << 30),
        database: None,
    };
    Ok(Database::open(Engine::home(settings)?)?)
}
