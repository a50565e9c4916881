//! What exists, by name: schemas, and in them tables and views. One catalogue, `eris`.
//!
//! ```text
//! current ──▶ Contents 7 ──▶ public ──▶ t ──▶ Table ──▶ Data (object 12)
//!             Contents 6 ◀── a statement that is being planned
//! ```
//!
//! The contents never change: a change makes new contents and puts them in their place. So a statement sees one state
//! of the whole catalogue, and what it has found there stays as it was, rows included, until it ends.
//!
//! Where definitions outlive the process, the [difference](definitions) is stored before anybody sees it.

mod balancing;
pub(crate) mod create_statement;
mod data;
mod definition_log;
mod definitions;
mod draft;
mod foreign_key;
mod index;
mod macros;
mod name;
pub(crate) mod script;
mod sequence;
mod table;
mod view;
mod written_rows;

pub(crate) use balancing::TableBalancing;
pub(crate) use data::{DataSource, StoredObjects};
pub(crate) use definition_log::DefinitionLog;
pub(crate) use definitions::of_table as definition_of;
pub(crate) use draft::Draft;
pub(crate) use foreign_key::{ForeignKey, positions};
pub(crate) use index::TableIndex;
pub(crate) use macros::Macro;
pub use name::quoted;
pub(crate) use name::{
    CATALOG, RelationName, SCHEMA, TEMPORARY, is_reserved, is_temporary, temporary_schema,
};
pub(crate) use sequence::{Course, Sequence};
pub(crate) use table::{
    Check, ColumnRules, DefaultValue, Definition, GeneratedColumn, Identity, PrimaryKey, Table,
    Unique, retire,
};
pub(crate) use view::{View, ViewDependency};

use crate::error::SqlError;
use arc_swap::{ArcSwap, Guard};
use definitions::Difference;
use eris_types::most_similar;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::{Mutex, MutexGuard};

/// The current contents, and the lock of those who change them.
#[derive(Debug)]
pub(crate) struct Catalog {
    current: ArcSwap<Contents>,
    /// Held while a change is checked against the contents, made and stored: planning views and one flush at most,
    /// never waiting for rows.
    write_lock: Mutex<()>,
    /// Where changes are stored, once the database is open; nowhere in memory.
    log: OnceLock<Arc<DefinitionLog>>,
    /// A [draft] is seen by one statement only, and not stored.
    is_draft: bool,
}

/// All schemas with their tables and views at one time.
#[derive(Debug)]
pub(crate) struct Contents {
    schemas: BTreeMap<String, SchemaContents>,
    /// What others keep for as long as these are the contents: plans. One that outlived its table would keep the rows.
    attached: OnceLock<Box<dyn Attached>>,
}

/// What is in a schema.
#[derive(Clone, Debug, Default)]
struct SchemaContents {
    /// COMMENT ON SCHEMA.
    comment: Option<String>,
    relations: BTreeMap<String, TableOrView>,
    sequences: BTreeMap<String, Arc<Sequence>>,
    /// By name, and whether they are called in FROM.
    macros: BTreeMap<(String, bool), Arc<Macro>>,
}

impl Clone for Contents {
    /// The same names, to be changed; none of the plans.
    fn clone(&self) -> Self {
        Contents {
            schemas: self.schemas.clone(),
            attached: OnceLock::new(),
        }
    }
}

/// What can be kept with contents of the catalogue, which do not know what it is.
pub(crate) trait Attached: Any + fmt::Debug + Send + Sync {}

/// What a name in a FROM clause leads to.
#[derive(Clone, Debug)]
pub(crate) enum TableOrView {
    Table(Arc<Table>),
    View(Arc<View>),
}

impl TableOrView {
    /// `table` or `view`, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            TableOrView::Table(_) => "table",
            TableOrView::View(_) => "view",
        }
    }

    pub fn name(&self) -> &RelationName {
        match self {
            TableOrView::Table(table) => &table.name,
            TableOrView::View(view) => &view.name,
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        let schemas = BTreeMap::from([(SCHEMA.to_owned(), SchemaContents::default())]);
        Catalog {
            current: ArcSwap::from_pointee(Contents {
                schemas,
                attached: OnceLock::new(),
            }),
            write_lock: Mutex::default(),
            log: OnceLock::new(),
            is_draft: false,
        }
    }
}

impl Catalog {
    /// The contents as they are now.
    pub fn contents(&self) -> Arc<Contents> {
        self.current.load_full()
    }

    /// The same, for a moment. Nobody counts who looks at them.
    pub fn look(&self) -> Guard<Arc<Contents>> {
        self.current.load()
    }

    /// Whether these are the contents still.
    pub fn is_at(&self, contents: &Weak<Contents>) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.look()), contents.as_ptr())
    }

    /// Where changes are stored, if they are.
    pub fn log(&self) -> Option<&Arc<DefinitionLog>> {
        self.log.get()
    }

    /// From now on changes are stored there. What there is now is stored already.
    pub fn store_in(&self, log: DefinitionLog) {
        for sequence in self.contents().sequences() {
            sequence.entered();
        }
        let set = self.log.set(Arc::new(log));
        set.expect("a database is opened once");
    }

    /// Waits for the right to change the contents.
    pub async fn change(&self) -> CatalogChange<'_> {
        let write_lock = self.write_lock.lock().await;
        CatalogChange {
            contents: Contents::clone(&self.contents()),
            catalog: self,
            _write_lock: write_lock,
        }
    }
}

/// Contents that take effect with [`CatalogChange::commit`], all at once, or not at all.
pub(crate) struct CatalogChange<'a> {
    catalog: &'a Catalog,
    contents: Contents,
    _write_lock: MutexGuard<'a, ()>,
}

impl CatalogChange<'_> {
    /// Statements that begin from now on see the new contents. They are durable before, where definitions are.
    ///
    /// # Errors
    /// The statement was stopped before. Or the change could not be stored: then nothing has changed.
    pub async fn commit(self) -> Result<(), SqlError> {
        crate::cancel::begin_commit()?;
        if let Some(log) = self.catalog.log().filter(|_| !self.catalog.is_draft) {
            let difference = Difference::between(&self.catalog.contents(), &self.contents);
            let Difference {
                changes,
                entering,
                leaving,
            } = difference;
            leaving.iter().for_each(|sequence| sequence.leaving());
            if let Err(error) = log.store(changes).await {
                leaving.iter().for_each(|sequence| sequence.stays());
                return Err(error);
            }
            entering.iter().for_each(|sequence| sequence.entered());
        }
        self.publish();
        Ok(())
    }

    /// The same of a change to temporary schemas only, whether or not the statement was stopped. Nothing of it is
    /// stored.
    pub fn publish(self) {
        self.catalog.current.store(Arc::new(self.contents));
    }
}

impl Deref for CatalogChange<'_> {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

impl DerefMut for CatalogChange<'_> {
    fn deref_mut(&mut self) -> &mut Contents {
        &mut self.contents
    }
}

impl Contents {
    /// What is kept with these contents; nothing at first. It is always of the same type.
    pub fn attached<T: Attached + Default>(&self) -> &T {
        let attached = self.attached.get_or_init(|| Box::<T>::default());
        let attached: &dyn Any = attached.as_ref();
        attached.downcast_ref().expect("nothing else is attached")
    }

    pub fn get(&self, name: &RelationName) -> Option<&TableOrView> {
        let schema = self.schemas.get(&name.schema)?;
        schema.relations.get(&name.name)
    }

    pub fn table(&self, name: &RelationName) -> Option<&Arc<Table>> {
        match self.get(name)? {
            TableOrView::Table(table) => Some(table),
            TableOrView::View(_) => None,
        }
    }

    pub fn has_schema(&self, schema: &str) -> bool {
        self.schemas.contains_key(schema)
    }

    /// The names of all schemas of users, without those of temporary tables.
    pub fn schema_names(&self) -> impl Iterator<Item = &str> {
        let names = self.schemas.keys().map(String::as_str);
        names.filter(|name| !is_temporary(name))
    }

    /// Tables and views of a schema, by name.
    pub fn relations_in(&self, schema: &str) -> impl Iterator<Item = &TableOrView> {
        self.schemas
            .get(schema)
            .into_iter()
            .flat_map(|schema| schema.relations.values())
    }

    /// All tables and views, by schema and name.
    pub fn relations(&self) -> impl Iterator<Item = &TableOrView> {
        let schemas = self.schemas.values();
        schemas.flat_map(|schema| schema.relations.values())
    }

    /// All tables, by schema and name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.relations().filter_map(|relation| match relation {
            TableOrView::Table(table) => Some(table),
            TableOrView::View(_) => None,
        })
    }

    /// All views, by schema and name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.relations().filter_map(|relation| match relation {
            TableOrView::View(view) => Some(view),
            TableOrView::Table(_) => None,
        })
    }

    /// The views that read this relation, also through other views, each after those that it reads.
    pub fn dependents(&self, name: &RelationName) -> Vec<Arc<View>> {
        let mut found: Vec<&Arc<View>> = self.views().filter(|view| view.reads(name)).collect();
        let mut next = 0;
        while let Some(view) = found.get(next) {
            let of = view.name.clone();
            for view in self.views().filter(|view| view.reads(&of)) {
                if !found.iter().any(|other| other.name == view.name) {
                    found.push(view);
                }
            }
            next += 1;
        }
        let mut sorted = Vec::with_capacity(found.len());
        while !found.is_empty() {
            let free = |view: &&Arc<View>| !found.iter().any(|other| view.reads(&other.name));
            let free = found.iter().position(free).expect("views form no circle");
            sorted.push(Arc::clone(found.remove(free)));
        }
        sorted
    }

    /// Gives a relation its name; what had it before, if anything did. The schema exists.
    pub fn put(&mut self, relation: TableOrView) -> Option<TableOrView> {
        let RelationName { schema, name } = relation.name().clone();
        let schema = self.schemas.get_mut(&schema);
        let relations = &mut schema.expect("the schema exists").relations;
        relations.insert(name, relation)
    }

    pub fn remove(&mut self, name: &RelationName) -> Option<TableOrView> {
        let schema = self.schemas.get_mut(&name.schema)?;
        schema.relations.remove(&name.name)
    }

    /// Removes a table or view; a table with the sequences of its columns.
    pub fn drop_relation(&mut self, name: &RelationName) {
        if let Some(TableOrView::Table(table)) = self.remove(name) {
            self.remove_own_sequences(&table);
        }
    }

    /// Removes the sequences of a table's columns.
    pub fn remove_own_sequences(&mut self, table: &Table) {
        let identities = table
            .rules
            .iter()
            .filter_map(|rules| rules.identity.as_ref());
        for identity in identities {
            self.remove_sequence(&identity.sequence.name);
        }
    }

    pub fn sequence(&self, name: &RelationName) -> Option<&Arc<Sequence>> {
        self.schemas.get(&name.schema)?.sequences.get(&name.name)
    }

    /// All sequences, by schema and name.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        let schemas = self.schemas.values();
        schemas.flat_map(|schema| schema.sequences.values())
    }

    /// Adds a sequence, whose schema exists.
    pub fn put_sequence(&mut self, sequence: Arc<Sequence>) {
        let schema = self.schemas.get_mut(&sequence.name.schema);
        let sequences = &mut schema.expect("the schema exists").sequences;
        sequences.insert(sequence.name.name.clone(), sequence);
    }

    pub fn remove_sequence(&mut self, name: &RelationName) {
        if let Some(schema) = self.schemas.get_mut(&name.schema) {
            schema.sequences.remove(&name.name);
        }
    }

    /// The macro of this name that is called in FROM, or in expressions.
    pub fn macro_named(&self, name: &RelationName, is_table: bool) -> Option<&Arc<Macro>> {
        let schema = self.schemas.get(&name.schema)?;
        schema.macros.get(&(name.name.clone(), is_table))
    }

    /// All macros, by schema and name.
    pub fn macros(&self) -> impl Iterator<Item = &Arc<Macro>> {
        let schemas = self.schemas.values();
        schemas.flat_map(|schema| schema.macros.values())
    }

    /// Gives a macro its name, whose schema exists, in the place of what had it before.
    pub fn put_macro(&mut self, named: Macro) {
        let schema = self.schemas.get_mut(&named.name.schema);
        let macros = &mut schema.expect("the schema exists").macros;
        let key = (named.name.name.clone(), named.is_table);
        macros.insert(key, Arc::new(named));
    }

    pub fn remove_macro(&mut self, name: &RelationName, is_table: bool) {
        if let Some(schema) = self.schemas.get_mut(&name.schema) {
            schema.macros.remove(&(name.name.clone(), is_table));
        }
    }

    /// Adds an empty schema, if there is none of this name.
    pub fn add_schema(&mut self, schema: &str) {
        self.schemas.entry(schema.to_owned()).or_default();
    }

    /// What COMMENT ON SCHEMA has said of it.
    pub fn schema_comment(&self, schema: &str) -> Option<&str> {
        self.schemas.get(schema)?.comment.as_deref()
    }

    /// COMMENT ON SCHEMA, which exists.
    pub fn comment_on_schema(&mut self, schema: &str, comment: Option<String>) {
        let schema = self.schemas.get_mut(schema);
        schema.expect("the schema exists").comment = comment;
    }

    /// Removes a schema with all that is in it.
    pub fn remove_schema(&mut self, schema: &str) {
        self.schemas.remove(schema);
    }

    /// The table or view that was probably meant by a name that leads to nothing, as the session would write it.
    pub fn similar(&self, name: &RelationName, current_schema: &str) -> Option<String> {
        let here = self.relations_in(&name.schema);
        let similar = most_similar(
            &name.name,
            here.map(|relation| relation.name().name.as_str()),
        );
        let shown = |name: &RelationName| match name.schema == current_schema {
            true => name.name.clone(),
            false => format!("{}.{}", name.shown_schema(), name.name),
        };
        similar
            .map(|found| shown(&RelationName::new(name.schema.as_str(), found)))
            .or_else(|| {
                let elsewhere = self.relations().map(TableOrView::name);
                let mut elsewhere = elsewhere.filter(|other| !other.is_temporary());
                elsewhere.find(|other| other.name == name.name).map(shown)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Schema;

    fn view(name: &str, reads: &[&str]) -> TableOrView {
        let reads = reads.iter().map(|name| ViewDependency {
            name: RelationName::new(SCHEMA, *name),
            columns: Vec::new(),
        });
        TableOrView::View(Arc::new(View {
            name: RelationName::new(SCHEMA, name),
            schema: Arc::new(Schema::empty()),
            named: false,
            text: String::new(),
            query: View::parse_for_test("SELECT 1"),
            current_schema: SCHEMA.into(),
            reads: reads.collect(),
            comment: None,
            column_comments: Vec::new(),
        }))
    }

    #[tokio::test]
    async fn contents_that_were_taken_do_not_change() {
        let catalog = Catalog::default();
        let before = catalog.contents();
        let mut change = catalog.change().await;
        change.put(view("v", &[]));
        let name = RelationName::new(SCHEMA, "v");
        assert!(catalog.contents().get(&name).is_none(), "not committed");
        change.commit().await.unwrap();
        assert!(before.get(&name).is_none());
        assert!(catalog.contents().get(&name).is_some());
        let mut dropped = catalog.change().await;
        dropped.remove(&name);
        drop(dropped);
        assert!(catalog.contents().get(&name).is_some(), "given up");
    }

    #[test]
    fn dependents_come_after_what_they_read() {
        let mut contents = Contents::clone(&Catalog::default().contents());
        for (name, reads) in [
            ("a", &["t", "z"][..]),
            ("b", &["a", "t"]),
            ("c", &["b", "y"]),
            ("y", &["t"]),
            ("z", &["t"]),
            ("other", &["u"]),
        ] {
            contents.put(view(name, reads));
        }
        let of = |name: &str| -> Vec<String> {
            let found = contents.dependents(&RelationName::new(SCHEMA, name));
            found.iter().map(|view| view.name.name.clone()).collect()
        };
        assert_eq!(of("other"), [""; 0]);
        assert_eq!(of("y"), ["c"]);
        let all = of("t");
        let place = |name: &str| all.iter().position(|other| other == name).unwrap();
        assert_eq!(all.len(), 5, "{all:?}");
        for (view, reads) in [("a", "z"), ("b", "a"), ("c", "b"), ("c", "y")] {
            assert!(place(view) > place(reads), "{all:?}");
        }
    }
}
