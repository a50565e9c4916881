//! The statements that make a database anew, in an order in which they can run: for EXPORT, and for the shell.

use super::create_statement::{
    comment_statement, create_macro_statement, create_sequence_statement, create_statement_with,
    create_view_statement, foreign_key,
};
use super::{Contents, ForeignKey, SCHEMA, Sequence, Table, View, quoted};

/// What comes before tables: schemas and sequences.
pub(crate) fn before_tables(contents: &Contents) -> Vec<String> {
    let mut statements = Vec::new();
    for name in contents.schema_names().filter(|name| *name != SCHEMA) {
        statements.push(format!("CREATE SCHEMA {}", quoted(name)));
    }
    for name in contents.schema_names() {
        if let Some(comment) = contents.schema_comment(name) {
            statements.push(comment_statement("SCHEMA", &quoted(name), comment));
        }
    }
    let own = |sequence: &Sequence| {
        let mut rules = contents.tables().flat_map(|table| &table.rules);
        rules.any(|rules| {
            let identity = rules.identity.as_ref();
            identity.is_some_and(|identity| identity.sequence.name == sequence.name)
        })
    };
    let sequences = contents.sequences();
    let sequences = sequences.filter(|sequence| !sequence.name.is_temporary() && !own(sequence));
    statements.extend(sequences.map(|sequence| create_sequence_statement(sequence)));
    statements
}

/// All tables but temporary ones, each behind those to which its foreign keys refer, unless these form a circle. With
/// each how it is made, with the foreign keys for which that is so.
///
/// `own` says whether a table has its foreign keys to itself from the beginning: its rows come in one statement.
pub(crate) fn tables(contents: &Contents, own: bool) -> Vec<(&Table, String)> {
    let tables = contents.tables().map(|table| &**table);
    let mut left: Vec<&Table> = tables.filter(|table| !table.name.is_temporary()).collect();
    let mut ordered: Vec<(&Table, String)> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |table: &Table, key: &ForeignKey| {
            key.table != table.name && left.iter().any(|other| other.name == key.table)
        };
        let mut free = left.iter();
        let free = free.position(|table| !table.foreign_keys.iter().any(|key| waits(table, key)));
        let table = left.remove(free.unwrap_or(0));
        let is_there = |key: &ForeignKey| is_before(key, table, &ordered, own);
        let statement = create_statement_with(table, is_there, true);
        ordered.push((table, statement));
    }
    ordered
}

fn is_before(key: &ForeignKey, table: &Table, before: &[(&Table, String)], own: bool) -> bool {
    own && key.table == table.name || before.iter().any(|(other, _)| other.name == key.table)
}

/// The foreign keys that [`tables`] leaves out, to be added when the rows are there.
pub(crate) fn late_keys(tables: &[(&Table, String)], own: bool) -> Vec<String> {
    let mut statements = Vec::new();
    for (place, (table, _)) in tables.iter().enumerate() {
        let keys = table.foreign_keys.iter();
        for key in keys.filter(|key| !is_before(key, table, &tables[..place], own)) {
            let (table, constraint) = (table.name.sql(), foreign_key(key));
            statements.push(format!("ALTER TABLE {table} ADD CONSTRAINT {constraint}"));
        }
    }
    statements
}

/// All views but temporary ones, each behind those that it reads; and how each is made.
pub(crate) fn views(contents: &Contents) -> Vec<(&View, String)> {
    let views = contents.views().map(|view| &**view);
    let mut left: Vec<&View> = views.filter(|view| !view.name.is_temporary()).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = |view: &&View| !left.iter().any(|other| view.reads(&other.name));
        let free = left.iter().position(free).expect("views form no circle");
        let view = left.remove(free);
        ordered.push((view, create_view_statement(view)));
    }
    ordered
}

/// What comes last: all macros but temporary ones. They may read any table or view, and none of these calls a macro.
pub(crate) fn macros(contents: &Contents) -> impl Iterator<Item = String> {
    let macros = contents.macros();
    let macros = macros.filter(|named| !named.name.is_temporary());
    macros.flat_map(|named| {
        let comment = named.comment.as_deref().map(|comment| {
            let kind = if named.is_table {
                "MACRO TABLE"
            } else {
                "MACRO"
            };
            comment_statement(kind, &named.name.sql(), comment)
        });
        std::iter::once(create_macro_statement(named)).chain(comment)
    })
}
