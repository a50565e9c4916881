//! A catalogue of one statement's own. What it makes there in several steps takes effect all at once.
//!
//! ```text
//! IMPORT ─ draft ─ CREATE … COPY … CREATE …      others see none of it
//!                                    └─ take_in ─ commit: all of it, or none
//! ```

use super::{Catalog, CatalogChange, Contents, Macro, Sequence, Table, TableOrView, View};
use crate::error::{Mistake, SqlError};
use arc_swap::ArcSwap;
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// A draft, and the contents with which it began. Statements on it only add.
pub(crate) struct Draft {
    pub catalog: Arc<Catalog>,
    base: Arc<Contents>,
}

/// What a draft has added.
#[derive(Default)]
pub(crate) struct Added {
    pub tables: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    sequences: Vec<Arc<Sequence>>,
    macros: Vec<Arc<Macro>>,
}

impl Draft {
    /// A draft that begins with what there is.
    pub fn of(catalog: &Catalog) -> Self {
        let base = catalog.contents();
        let log = OnceLock::new();
        // Sequences that are there already note what is taken of them.
        if let Some(known) = catalog.log() {
            let set = log.set(Arc::clone(known));
            set.expect("nobody else has it yet");
        }
        Draft {
            catalog: Arc::new(Catalog {
                current: ArcSwap::new(Arc::clone(&base)),
                write_lock: Mutex::default(),
                log,
                is_draft: true,
            }),
            base,
        }
    }

    /// What it has added so far.
    pub fn added(&self) -> Added {
        let contents = self.catalog.contents();
        let mut added = Added::default();
        for relation in contents.relations() {
            if self.base.get(relation.name()).is_some() {
                continue;
            }
            match relation {
                TableOrView::Table(table) => added.tables.push(Arc::clone(table)),
                TableOrView::View(view) => added.views.push(Arc::clone(view)),
            }
        }
        let sequences = contents.sequences();
        let sequences = sequences.filter(|added| self.base.sequence(&added.name).is_none());
        added.sequences.extend(sequences.cloned());
        let macros = contents.macros();
        let macros = macros.filter(|added| {
            let before = self.base.macro_named(&added.name, added.is_table);
            before.is_none()
        });
        added.macros.extend(macros.cloned());
        added
    }
}

impl CatalogChange<'_> {
    /// Takes in what a draft has added.
    ///
    /// # Errors
    /// Somebody has used one of its names meanwhile, or dropped a schema or a sequence that it needs.
    pub fn take_in(&mut self, draft: &Draft, added: &Added) -> Result<(), SqlError> {
        let contents = draft.catalog.contents();
        for (name, schema) in &contents.schemas {
            let before = draft.base.schemas.get(name);
            if before.is_none() {
                self.add_schema(name);
            }
            let comment = before.and_then(|before| before.comment.as_ref());
            if schema.comment.as_ref() != comment && self.has_schema(name) {
                self.comment_on_schema(name, schema.comment.clone());
            }
        }
        let relations = added.tables.iter().cloned().map(TableOrView::Table);
        let views = added.views.iter().cloned().map(TableOrView::View);
        for relation in relations.chain(views) {
            let name = relation.name();
            let is_taken = self.get(name).is_some();
            check(self, &name.schema, relation.kind(), name, is_taken)?;
            self.put(relation);
        }
        for sequence in &added.sequences {
            let name = &sequence.name;
            let is_taken = self.sequence(name).is_some();
            check(self, &name.schema, "sequence", name, is_taken)?;
            self.put_sequence(Arc::clone(sequence));
        }
        for named in &added.macros {
            let name = &named.name;
            let is_taken = self.macro_named(name, named.is_table).is_some();
            check(self, &name.schema, "macro", name, is_taken)?;
            self.put_macro(Macro::clone(named));
        }
        let rules = added.tables.iter().flat_map(|table| &table.rules);
        let defaults = rules.filter_map(|rules| rules.default.as_ref());
        for name in defaults.flat_map(|default| &default.sequences) {
            if self.sequence(name).is_none() {
                let message = format!("sequence \"{name}\" was dropped meanwhile");
                return Err(SqlError::invalid(Mistake::NotReady, message));
            }
        }
        Ok(())
    }
}

fn check(
    contents: &Contents,
    schema: &str,
    kind: &str,
    name: &impl std::fmt::Display,
    is_taken: bool,
) -> Result<(), SqlError> {
    let message = match contents.has_schema(schema) {
        true if !is_taken => return Ok(()),
        true => format!("{kind} \"{name}\" was made by another session meanwhile"),
        false => format!("schema \"{schema}\" was dropped meanwhile"),
    };
    Err(SqlError::invalid(Mistake::NotReady, message))
}
