//! The tables that exist, by name. One schema, `public`, in one catalogue, `eris`.

use crate::error::SqlError;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, ScalarValue};
use eris_engine::Partitioning;
use eris_fragment::Type;
use eris_types::ObjectId;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// The only catalogue's name.
pub(crate) const CATALOG: &str = "eris";
/// The only schema's name.
pub(crate) const SCHEMA: &str = "public";

/// A table: a name for a data object, and what only SQL knows of its columns.
#[derive(Debug)]
pub(crate) struct Table {
    pub name: String,
    pub object: ObjectId,
    pub schema: SchemaRef,
    /// The same schema as DataFusion's planner wants it, without qualifiers.
    pub names: DFSchema,
    pub types: Vec<Type>,
    pub rules: Vec<ColumnRules>,
    pub partitioning: Partitioning,
}

/// What an insert has to know of a column beyond its type and nullability.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnRules {
    /// Most characters of a text.
    pub max_characters: Option<u64>,
    /// DEFAULT, a constant.
    pub default: Option<ScalarValue>,
}

/// All tables. Statements hold on to the [`Table`]s they have found, so a table that is dropped meanwhile stays
/// described until they end.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    tables: RwLock<BTreeMap<String, Arc<Table>>>,
}

impl Catalog {
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.tables
            .read()
            .expect("nothing panics under this lock")
            .get(name)
            .cloned()
    }

    /// All tables by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.tables
            .read()
            .expect("nothing panics under this lock")
            .values()
            .cloned()
            .collect()
    }

    /// Adds a table.
    ///
    /// # Errors
    /// A table of that name exists; `replace` gives the old one back instead.
    pub fn insert(&self, table: Arc<Table>, replace: bool) -> Result<Option<Arc<Table>>, SqlError> {
        let mut tables = self.tables.write().expect("nothing panics under this lock");
        if !replace && tables.contains_key(&table.name) {
            return Err(exists(&table.name));
        }
        Ok(tables.insert(table.name.clone(), table))
    }

    /// Removes the tables of these names, all of them or, if one does not exist, none. What is given back is what the
    /// names led to at that moment; no other statement gets hold of it.
    ///
    /// # Errors
    /// The position of the first name without a table, unless `if_exists`.
    pub fn remove(&self, names: &[String], if_exists: bool) -> Result<Vec<Arc<Table>>, usize> {
        let mut tables = self.tables.write().expect("nothing panics under this lock");
        let missing = names.iter().position(|name| !tables.contains_key(name));
        match missing.filter(|_| !if_exists) {
            Some(missing) => Err(missing),
            None => Ok(names
                .iter()
                .filter_map(|name| tables.remove(name))
                .collect()),
        }
    }

    /// The name of a table that looks like this one.
    pub fn similar(&self, name: &str) -> Option<String> {
        let tables = self.tables.read().expect("nothing panics under this lock");
        most_similar(name, tables.keys().map(String::as_str))
    }
}

/// The error of a name that is taken.
pub(crate) fn exists(name: &str) -> SqlError {
    SqlError::invalid(format!("table \"{name}\" exists already")).with_hint(Some(
        "CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE … AS",
    ))
}

/// The candidate that was probably meant: at most a third of the letters differ.
pub(crate) fn most_similar<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    candidates
        .map(|candidate| {
            (
                distance(
                    &wanted,
                    &candidate.to_lowercase().chars().collect::<Vec<_>>(),
                ),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= wanted.len().div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Schema;

    fn table(name: &str, object: u32) -> Arc<Table> {
        Arc::new(Table {
            name: name.into(),
            object: ObjectId(object),
            schema: Arc::new(Schema::empty()),
            names: DFSchema::empty(),
            types: Vec::new(),
            rules: Vec::new(),
            partitioning: Partitioning::Size,
        })
    }

    #[test]
    fn removing_gives_back_what_the_name_led_to_at_that_moment() {
        let catalog = Catalog::default();
        catalog.insert(table("a", 1), false).unwrap();
        let old = catalog.insert(table("a", 2), true).unwrap().unwrap();
        assert_eq!(old.object, ObjectId(1));
        let removed = catalog.remove(&["a".into(), "a".into()], false).unwrap();
        let objects: Vec<_> = removed.iter().map(|table| table.object).collect();
        assert_eq!(objects, [ObjectId(2)]);
    }

    #[test]
    fn removing_removes_all_or_nothing() {
        let catalog = Catalog::default();
        catalog.insert(table("a", 1), false).unwrap();
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(catalog.remove(&names, false).unwrap_err(), 1);
        assert!(catalog.get("a").is_some());
        assert_eq!(catalog.remove(&names, true).unwrap().len(), 1);
        assert!(catalog.get("a").is_none());
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let names = ["lineorder", "part", "supplier"];
        assert_eq!(
            most_similar("lineordr", names.into_iter()).as_deref(),
            Some("lineorder")
        );
        assert_eq!(
            most_similar("Suplier", names.into_iter()).as_deref(),
            Some("supplier")
        );
        assert_eq!(most_similar("weather", names.into_iter()), None);
    }

    #[test]
    fn distances() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, expected) in [
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(&chars(a), &chars(b)), expected);
        }
    }
}
