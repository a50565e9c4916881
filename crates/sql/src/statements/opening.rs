//! The catalogue is made again from the definitions that a home has kept.
//!
//! ```text
//! stored ─▶ schemas ─▶ sequences, numbers ─▶ tables with indexes ─▶ foreign keys ─▶ views ─▶ macros ─▶ opened
//! ```
//!
//! Their texts run as statements do, with what they had before in the place of what is new: data objects, and the
//! sequences of columns. Rows are not looked at, for they have kept the rules. Only secondary indexes are built from
//! them. Nothing is stored meanwhile.
//!
//! The order is one in which every text finds what it needs. Foreign keys may form a circle, so all of them come behind
//! the tables. Macros come last: what tables and views have called is a part of their texts, and what looks like a call
//! of a macro there is none.

mod remains;

pub(crate) use remains::{Reopened, open_remains, unique_columns};

use crate::catalog::{DefinitionLog, RelationName, Sequence, StoredObjects};
use crate::context::{Opening, StatementContext};
use crate::error::SqlError;
use crate::statements::ddl::restored::{self, LateKeys, ViewColumns};
use crate::statements::{ddl, set, show};
use crate::text::identifier::normalize;
use crate::text::macros;
use crate::text::parse::parse;
use crate::text::statement::split;
use datafusion::sql::sqlparser::ast::{self, Use};
use eris_home::{Definition, HomeError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the catalogue again, if the home has kept definitions. From then on it keeps the changes.
///
/// # Errors
/// A definition cannot be made again. Then nothing of what was stored is lost.
pub(crate) async fn open(context: &StatementContext) -> Result<(), SqlError> {
    let Some(definitions) = context.home.definitions() else {
        return Ok(());
    };
    let mut opener = Opener::new(context);
    for definition in &in_order(definitions.stored()) {
        if rank(definition) > TABLES {
            opener.add_foreign_keys().await?;
        }
        let opened = Box::pin(opener.open(definition)).await;
        opened.map_err(|error| cannot_be_opened(&definition.name, &error))?;
    }
    opener.add_foreign_keys().await?;
    definitions.opened().await?;
    opener.opened.store(true, Ordering::Release);
    let log = DefinitionLog::of(&context.home);
    context.catalog.store_in(log.expect("it keeps definitions"));
    Ok(())
}

fn cannot_be_opened(name: &str, error: &SqlError) -> SqlError {
    let message = format!("the database cannot be opened: {name}: {}", error.message());
    SqlError::from(HomeError::Open(message)).with_hint(Some(
        "a newer version of Eris may have written it; nothing of it has been changed",
    ))
}

/// Kinds of definitions, in the order in which they are made again.
const KINDS: [&str; 7] = [
    "schema", "sequence", "numbers", "table", "view", "macro", "setting",
];
const TABLES: usize = 3;

/// When a definition's turn is.
fn rank(definition: &Definition) -> usize {
    let kind = definition.name.split(' ').next();
    let rank = KINDS.iter().position(|known| Some(*known) == kind);
    rank.unwrap_or(KINDS.len())
}

/// Definitions in the order in which they are made again.
fn in_order(mut stored: Vec<Definition>) -> Vec<Definition> {
    stored.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
    stored
}

struct Opener {
    context: StatementContext,
    /// Whether the whole database has been opened.
    opened: Arc<AtomicBool>,
    /// The sequences of columns, by table and column.
    sequences: Arc<BTreeMap<(RelationName, String), Arc<Sequence>>>,
    /// Foreign keys that are to be added, and the definitions that they are of.
    late: Vec<(String, LateKeys)>,
}

impl Opener {
    fn new(context: &StatementContext) -> Self {
        Opener {
            context: context.for_change(),
            opened: Arc::default(),
            sequences: Arc::default(),
            late: Vec::new(),
        }
    }

    async fn open(&mut self, definition: &Definition) -> Result<(), SqlError> {
        if rank(definition) == KINDS.len() {
            return Err(SqlError::not_supported("a definition of this kind"));
        }
        if let Some(of) = definition.name.strip_prefix("numbers ") {
            return self.numbers(of, &definition.text);
        }
        let objects = Arc::new(StoredObjects::new(&definition.objects, &self.opened));
        let mut context = self.context.for_opening(Opening {
            objects: Arc::clone(&objects),
            sequences: Arc::clone(&self.sequences),
        });
        let mut columns: Option<ViewColumns> = None;
        let mut owned = None;
        for statement in &split(&definition.text)? {
            if let Some(known) = restored::columns_of_view(statement)? {
                columns = Some(known);
                continue;
            }
            if let Some(parsed) = macros::parse(statement)? {
                ddl::macros::run(&context, parsed, statement).await?;
                continue;
            }
            match (parse(statement)?, columns.take()) {
                (ast::Statement::Use(Use::Object(name)), _) => {
                    let schema = name.0.last().and_then(|part| part.as_ident());
                    context = context.in_schema(&schema.map(normalize).unwrap_or_default());
                }
                (ast::Statement::CreateView(create), Some(columns)) => {
                    restored::view(&context, &create, columns, statement).await?;
                }
                (ast::Statement::CreateTable(create), _) => {
                    let late = restored::table(&context, create, statement).await?;
                    let name = definition.name.clone();
                    self.late.extend(late.map(|late| (name, late)));
                }
                (tree @ ast::Statement::CreateSequence { .. }, _) => {
                    owned = restored::sequence(&context, tree, statement).await?;
                }
                (ast::Statement::Call(call), _) => {
                    show::call(&context, &call, statement).await?;
                }
                (ast::Statement::Set(written), _) => {
                    set::set(&context, &written).await?;
                }
                (tree, _) => {
                    let begun = ddl::run(&context, tree, statement).await?;
                    begun.ok_or_else(|| SqlError::not_supported("this statement"))?;
                }
            }
        }
        drop(context);
        if let Some((column, sequence)) = owned {
            // Nobody else has them now.
            Arc::make_mut(&mut self.sequences).insert(column, sequence);
        }
        match objects.is_used_up() {
            true => Ok(()),
            false => Err(HomeError::Open("it has too many data objects".into()).into()),
        }
    }

    /// A sequence goes on where it has been.
    fn numbers(&self, of: &str, noted: &str) -> Result<(), SqlError> {
        let contents = self.context.catalog.contents();
        let mut sequences = contents.sequences();
        // Numbers may have been noted while their sequence was dropped.
        let Some(sequence) = sequences.find(|sequence| sequence.name.full() == of) else {
            return Ok(());
        };
        match sequence.go_on(noted) {
            true => Ok(()),
            false => {
                let message = format!("\"{noted}\" is no position of the sequence");
                Err(HomeError::Open(message).into())
            }
        }
    }

    async fn add_foreign_keys(&mut self) -> Result<(), SqlError> {
        for (name, keys) in self.late.drain(..) {
            let added = keys.add(&self.context).await;
            added.map_err(|error| cannot_be_opened(&name, &error))?;
        }
        Ok(())
    }
}
