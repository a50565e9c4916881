//! What there is, as results: `\d` and its kin.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use eris_sql::{Database, FunctionKind, Relation, RelationKind, Session};
use glob::Pattern;
use std::sync::Arc;

/// Which kinds of relations are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Tables and views.
    All,
    /// Tables.
    Tables,
    /// Views.
    Views,
}

/// Columns of text as a batch.
fn batch<const N: usize>(names: [&str; N], rows: Vec<[Option<String>; N]>) -> RecordBatch {
    let mut columns: [Vec<Option<String>>; N] = std::array::from_fn(|_| Vec::new());
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    let arrays = columns.map(|column| Arc::new(StringArray::from(column)) as ArrayRef);
    named(names.into_iter().zip(arrays))
}

fn named<'a>(columns: impl Iterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of equal length")
}

/// Whether a name stands for all that look so: `*` and `%` are any text, `?` is any character.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '%', '?'])
}

/// Which names are meant: those that contain a text, or match a pattern as a whole. Both may be behind a schema.
pub(super) struct Wanted {
    schema: Option<Pattern>,
    name: Pattern,
}

impl Wanted {
    pub(super) fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        let whole = |text: &str| {
            let pattern = text
                .replace('%', "*")
                .replace('[', "[[]")
                .replace("**", "*");
            Pattern::new(&pattern).expect("no ranges, no doubled asterisks")
        };
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(whole(schema)), name),
            None => (None, text.as_str()),
        };
        Wanted {
            schema,
            name: match is_pattern(name) {
                true => whole(name),
                false => whole(&format!("*{name}*")),
            },
        }
    }

    pub(super) fn has(&self, schema: &str, name: &str) -> bool {
        let schemas = self.schema.as_ref();
        schemas.is_none_or(|wanted| wanted.matches(&schema.to_lowercase()))
            && self.name.matches(&name.to_lowercase())
    }
}

fn kind(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::Table => "table",
        RelationKind::View => "view",
        RelationKind::System => "system table",
    }
}

/// Tables and views whose name contains `part`, or matches it; with `more`, also their comments.
pub fn list(session: &Session, part: &str, kinds: Kinds, more: bool) -> RecordBatch {
    let wanted = |relation: &Relation| match kinds {
        Kinds::All => relation.kind != RelationKind::System,
        Kinds::Tables => relation.kind == RelationKind::Table,
        Kinds::Views => relation.kind == RelationKind::View,
    };
    let relations = session.relations().into_iter();
    let names = Wanted::new(part);
    let relations: Vec<Relation> = relations
        .filter(|relation| wanted(relation) && names.has(&relation.schema, &relation.name))
        .collect();
    let text = |of: fn(&Relation) -> &str| {
        let texts = relations.iter().map(of);
        Arc::new(StringArray::from_iter_values(texts)) as ArrayRef
    };
    let columns = relations
        .iter()
        .map(|relation| relation.columns.len() as i64);
    let columns: ArrayRef = Arc::new(Int64Array::from_iter_values(columns));
    let comments = relations.iter().map(|relation| relation.comment.as_deref());
    let comments: ArrayRef = Arc::new(comments.collect::<StringArray>());
    named(
        [
            ("schema", text(|relation| &relation.schema)),
            ("name", text(|relation| &relation.name)),
            ("kind", text(kind)),
            ("columns", columns),
        ]
        .into_iter()
        .chain(more.then_some(("comment", comments))),
    )
}

/// All schemas.
pub fn schemas(session: &Session) -> RecordBatch {
    let rows = session.schemas().into_iter().map(|name| [Some(name)]);
    batch(["schema"], rows.collect())
}

/// Functions whose name contains `part`, or matches it.
pub fn functions(database: &Database, part: &str) -> RecordBatch {
    let functions = database.functions().into_iter();
    let names = Wanted::new(part);
    let functions = functions.filter(|function| names.name.matches(&function.name));
    let rows = functions.map(|function| {
        let kind = match function.kind {
            FunctionKind::Scalar => "scalar",
            FunctionKind::Aggregate => "aggregate",
            FunctionKind::Window => "window",
            FunctionKind::Table => "table",
        };
        [
            Some(function.name),
            Some(kind.to_owned()),
            function.syntax,
            function.description,
        ]
    });
    batch(
        ["function", "kind", "syntax", "description"],
        rows.collect(),
    )
}

/// The title and the columns of one table or view, and what its rows are found by and refer to; with `more`, also what
/// comments say.
///
/// # Errors
/// There is none of that name.
pub fn relation(
    session: &Session,
    name: &str,
    more: bool,
) -> Result<(String, RecordBatch, String), String> {
    let relations = session.relations();
    let (schema, plain) = match name.split_once('.') {
        Some((schema, plain)) => (Some(schema), plain),
        None => (None, name),
    };
    let matches = |relation: &&Relation| {
        let same = relation.name == plain || relation.name == plain.to_lowercase();
        same && schema.is_none_or(|schema| relation.schema == schema)
    };
    let Some(found) = relations.iter().find(matches) else {
        let names = relations.iter().map(|relation| relation.name.as_str());
        let similar = names
            .map(|known| (strsim::damerau_levenshtein(known, plain), known))
            .filter(|(distance, _)| *distance <= plain.chars().count().div_ceil(3))
            .min();
        let hint = similar.map_or_else(
            || "\\d lists tables and views".to_owned(),
            |(_, known)| format!("did you mean \"{known}\"?"),
        );
        return Err(format!("table \"{name}\" does not exist\nhint: {hint}"));
    };
    let rows = found.columns.iter().map(|column| {
        let null = if column.nullable { "" } else { "not null" };
        let default = column.default.clone().unwrap_or_default();
        let known = [&column.name, &column.data_type].map(|text| Some(text.clone()));
        let [name, data_type] = known;
        [name, data_type, Some(null.to_owned()), Some(default)]
    });
    let rows: Vec<_> = rows.collect();
    let columns = match more {
        false => batch(["column", "type", "null", "default"], rows),
        true => {
            let comments = found.columns.iter().map(|column| column.comment.clone());
            let rows = rows.into_iter().zip(comments);
            let rows = rows.map(|([name, kind, null, default], comment)| {
                [name, kind, null, default, comment.or(Some(String::new()))]
            });
            let names = ["column", "type", "null", "default", "comment"];
            batch(names, rows.collect())
        }
    };
    let title = format!("{} {}.{}", kind(found), found.schema, found.name);
    let mut rest = String::new();
    for (heading, lines) in [
        ("indexes", &found.indexes),
        ("checks", &found.checks),
        ("foreign keys", &found.foreign_keys),
        ("referenced by", &found.referenced_by),
    ] {
        if !lines.is_empty() {
            rest.push_str(&format!("{heading}:\n"));
        }
        for line in lines {
            rest.push_str(&format!("    {line}\n"));
        }
    }
    if let (true, Some(comment)) = (more, &found.comment) {
        rest.push_str(&format!("comment:\n    {comment}\n"));
    }
    Ok((title, columns, rest))
}

/// The CREATE statements of tables and views whose name contains `part`, or matches it.
pub fn definitions(session: &Session, part: &str) -> String {
    let relations = session.relations().into_iter();
    let names = Wanted::new(part);
    let relations = relations.filter(|relation| {
        relation.kind != RelationKind::System && names.has(&relation.schema, &relation.name)
    });
    relations
        .map(|relation| relation.definition + ";\n")
        .collect()
}

/// The statement that brings a file's rows into a table, which is made if there is none.
pub fn import(session: &Session, file: &str, table: &str) -> String {
    let file = file.replace('\'', "''");
    let relations = session.relations();
    let mut names = relations.iter().map(|relation| relation.name.as_str());
    if names.any(|name| name == table || name == table.to_lowercase()) {
        format!("COPY {table} FROM '{file}'")
    } else {
        format!("CREATE TABLE {table} AS SELECT * FROM '{file}'")
    }
}
