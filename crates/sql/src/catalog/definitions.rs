//! The catalogue's contents as definitions that outlive the process, by name. Each says what *is*, not what was done.
//!
//! ```text
//! schema sales              CREATE SCHEMA sales
//! sequence sales.s          CREATE SEQUENCE sales.s … [OWNED BY sales.item.id]
//! numbers sales.s           behind 33                             how far it is: written by the sequence itself
//! table sales.item          CREATE TABLE sales.item …; CREATE INDEX …; COMMENT ON …; CALL eris.balance …
//!                           object 12, then one for each UNIQUE: constraints first, then indexes
//! view public.v             VIEW (n 'Int64') READS sales.item (id, price); CREATE VIEW v …
//! macro [table] public.f    [USE sales;] CREATE MACRO f …
//! setting balancing         SET balancing = 'off'                 written by SET itself
//! ```
//!
//! The texts are those of SHOW CREATE, with what these leave out. A view has its columns, and those that its tables had
//! when it was made: it means what it meant, whatever has become of tables and files since. A macro has the schema in
//! which it was made, if that is not `public`. A column that numbers rows has a sequence, whose definition says so.
//!
//! What is temporary has no definition.

use super::create_statement::{
    comment_statement, create_macro_statement, create_statement, create_view_statement,
};
use super::sequence::numbers_of;
use super::{
    Contents, Macro, RelationName, SCHEMA, SchemaContents, Sequence, Table, TableBalancing,
    TableOrView, View, is_temporary, quoted,
};
use datafusion::arrow::datatypes::DataType;
use eris_home::{Definition, DefinitionChange};
use eris_types::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What has to be stored for contents to take the place of others.
pub(super) struct Difference {
    pub changes: Vec<DefinitionChange>,
    /// The sequences that are new, and those that are gone.
    pub entering: Vec<Arc<Sequence>>,
    pub leaving: Vec<Arc<Sequence>>,
}

impl Difference {
    pub fn between(old: &Contents, new: &Contents) -> Self {
        let mut difference = Difference {
            changes: Vec::new(),
            entering: Vec::new(),
            leaving: Vec::new(),
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let schemas: BTreeSet<&String> = old.schemas.keys().chain(new.schemas.keys()).collect();
        let nothing = SchemaContents::default();
        for name in schemas.into_iter().filter(|name| !is_temporary(name)) {
            let schemas = (old.schemas.get(name), new.schemas.get(name));
            before.extend(schemas.0.and_then(|schema| of_schema(name, schema)));
            after.extend(schemas.1.and_then(|schema| of_schema(name, schema)));
            let (old_schema, new_schema) =
                (schemas.0.unwrap_or(&nothing), schemas.1.unwrap_or(&nothing));
            let relations = changed(&old_schema.relations, &new_schema.relations, is_same);
            for (old_relation, new_relation) in relations {
                before.extend(old_relation.into_iter().flat_map(of_relation));
                after.extend(new_relation.into_iter().flat_map(of_relation));
            }
            let macros = changed(&old_schema.macros, &new_schema.macros, Arc::ptr_eq);
            for (old_macro, new_macro) in macros {
                before.extend(old_macro.map(|named| of_macro(named)));
                after.extend(new_macro.map(|named| of_macro(named)));
            }
            let sequences = changed(&old_schema.sequences, &new_schema.sequences, Arc::ptr_eq);
            for (old_sequence, new_sequence) in sequences {
                // Those of columns go and come with their tables.
                let alone = old_sequence.filter(|sequence| !is_owned(old, sequence));
                before.extend(alone.map(|sequence| of_sequence(sequence, None)));
                let alone = new_sequence.filter(|sequence| !is_owned(new, sequence));
                after.extend(alone.map(|sequence| of_sequence(sequence, None)));
                difference.exchange(old_sequence, new_sequence);
            }
        }
        difference.compare(before, after);
        difference
    }

    /// A sequence takes the place of another one, or there is one no more.
    fn exchange(&mut self, old: Option<&Arc<Sequence>>, new: Option<&Arc<Sequence>>) {
        self.leaving.extend(old.cloned());
        self.entering.extend(new.cloned());
        let numbers = new.and_then(|new| new.entering());
        let gone = old.map(|old| DefinitionChange::IsGone(numbers_of(&old.name)));
        self.changes
            .extend(numbers.map(DefinitionChange::Is).or(gone));
    }

    fn compare(&mut self, before: Vec<Definition>, after: Vec<Definition>) {
        let named = before.into_iter().map(|old| (old.name.clone(), old));
        let mut before: BTreeMap<String, Definition> = named.collect();
        for definition in after {
            let old = before.remove(&definition.name);
            if old.is_none_or(|old| old != definition) {
                self.changes.push(DefinitionChange::Is(definition));
            }
        }
        let gone = before.into_keys();
        self.changes.extend(gone.map(DefinitionChange::IsGone));
    }
}

/// What two maps do not have in common, by name.
fn changed<'a, K: Ord, V>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool,
) -> Vec<(Option<&'a V>, Option<&'a V>)> {
    let pairs = old.iter().map(|(name, old)| (Some(old), new.get(name)));
    let came = new.iter().filter(|(name, _)| !old.contains_key(name));
    let pairs = pairs.chain(came.map(|(_, new)| (None, Some(new))));
    let differ = pairs.filter(|pair| match pair {
        (Some(old), Some(new)) => !is_same(old, new),
        _ => true,
    });
    differ.collect()
}

fn is_same(a: &TableOrView, b: &TableOrView) -> bool {
    match (a, b) {
        (TableOrView::Table(a), TableOrView::Table(b)) => Arc::ptr_eq(a, b),
        (TableOrView::View(a), TableOrView::View(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Whether a sequence is that of a column.
fn is_owned(contents: &Contents, sequence: &Arc<Sequence>) -> bool {
    let mut rules = contents.tables().flat_map(|table| &table.rules);
    rules.any(|rules| {
        let identity = rules.identity.as_ref();
        identity.is_some_and(|identity| Arc::ptr_eq(&identity.sequence, sequence))
    })
}

fn definition(name: String, statements: Vec<String>, objects: Vec<ObjectId>) -> Definition {
    Definition {
        name,
        text: statements.join(";\n"),
        objects,
    }
}

/// None of a schema that is always there and has no comment.
fn of_schema(name: &str, schema: &SchemaContents) -> Option<Definition> {
    let quoted = quoted(name);
    let create = (name != SCHEMA).then(|| format!("CREATE SCHEMA {quoted}"));
    let comment = schema.comment.as_ref();
    let comment = comment.map(|comment| comment_statement("SCHEMA", &quoted, comment));
    let statements: Vec<String> = create.into_iter().chain(comment).collect();
    let name = format!("schema {quoted}");
    (!statements.is_empty()).then(|| definition(name, statements, Vec::new()))
}

fn of_relation(relation: &TableOrView) -> Vec<Definition> {
    let table = match relation {
        TableOrView::Table(table) => table,
        TableOrView::View(view) => return vec![of_view(view)],
    };
    let columns = table.column_names().zip(&table.rules);
    let identities = columns.filter_map(|(column, rules)| {
        let identity = rules.identity.as_ref()?;
        Some(of_sequence(&identity.sequence, Some((table, column))))
    });
    std::iter::once(of_table(table)).chain(identities).collect()
}

/// That of a table.
pub(crate) fn of_table(table: &Table) -> Definition {
    let constraints = table.uniques.iter().filter(|unique| unique.is_constraint());
    let indexes = table.indexes.iter().filter_map(|index| {
        let mut uniques = table.uniques.iter();
        uniques.find(|unique| unique.of_index && unique.name == index.name)
    });
    let keys = constraints.chain(indexes).map(|unique| unique.object());
    let objects = std::iter::once(table.object).chain(keys);
    let mut statements = vec![create_statement(table)];
    if table.balancing != TableBalancing::default() {
        let name = table.name.full().replace('\'', "''");
        statements.push(format!("CALL eris.balance('{name}', {})", table.balancing));
    }
    let name = format!("table {}", table.name.full());
    definition(name, statements, objects.collect())
}

fn of_sequence(sequence: &Sequence, owner: Option<(&Table, &str)>) -> Definition {
    let name = sequence.name.full();
    let course = sequence.course.sql(sequence.course.start);
    let mut text = format!("CREATE SEQUENCE {name} {course}");
    if let Some((table, column)) = owner {
        text += &format!(" OWNED BY {}.{}", table.name.full(), quoted(column));
    }
    definition(format!("sequence {name}"), vec![text], Vec::new())
}

fn of_view(view: &View) -> Definition {
    let columns = columns_of(view).map(|columns| {
        let reads = view.reads.iter().map(|read| {
            let columns = read.columns.iter().map(|column| quoted(column));
            let columns = columns.collect::<Vec<_>>().join(", ");
            format!("{} ({columns})", read.name.full())
        });
        let reads = reads.collect::<Vec<_>>().join(", ");
        let word = if reads.is_empty() { "" } else { " READS " };
        format!("VIEW ({columns}){word}{reads}")
    });
    let statements = columns.into_iter().chain([create_view_statement(view)]);
    let name = format!("view {}", view.name.full());
    definition(name, statements.collect(), Vec::new())
}

/// The columns of a view with their types; none if there is one whose type is not read back as it was.
fn columns_of(view: &View) -> Option<String> {
    let columns = view.schema.fields().iter().map(|field| {
        let data_type = field.data_type().to_string();
        let is_read_back = data_type
            .parse()
            .is_ok_and(|read: DataType| read == *field.data_type());
        let nullable = if field.is_nullable() { "" } else { " NOT NULL" };
        let data_type = data_type.replace('\'', "''");
        is_read_back.then(|| format!("{} '{data_type}'{nullable}", quoted(field.name())))
    });
    let columns: Option<Vec<String>> = columns.collect();
    columns.map(|columns| columns.join(", "))
}

fn of_macro(named: &Macro) -> Definition {
    let schema = &named.definition.schema;
    let made_in = (schema != SCHEMA).then(|| format!("USE {}", quoted(schema)));
    let kind = if named.is_table {
        "MACRO TABLE"
    } else {
        "MACRO"
    };
    let name: &RelationName = &named.name;
    let comment = named.comment.as_ref();
    let comment = comment.map(|comment| comment_statement(kind, &name.full(), comment));
    let create = match &made_in {
        None => create_macro_statement(named),
        Some(_) => {
            let forms = named.definition.forms.iter().map(|form| form.sql(false));
            let forms: Vec<_> = forms.collect();
            format!("CREATE MACRO {}{}", name.full(), forms.join(", "))
        }
    };
    let statements = made_in.into_iter().chain([create]).chain(comment);
    definition(
        format!("{} {}", kind.to_lowercase(), name.full()),
        statements.collect(),
        Vec::new(),
    )
}
