//! What is defined and has no rows of its own: `eris.views`, `eris.schemas`, `eris.sequences`,
//! `eris.macros`.

use crate::catalog::ColumnRules;
use crate::context::StatementContext;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use futures::FutureExt;
use std::sync::Arc;

use CellType::{Number, Text, Truth};

pub(super) static RELATIONS: [SystemTable; 4] = [
    SystemTable {
        name: "views",
        columns: &[
            ("schema", Text),
            ("view", Text),
            ("definition", Text),
            ("comment", Text),
        ],
        rows: |context| std::future::ready(Ok(views(context))).boxed(),
    },
    SystemTable {
        name: "schemas",
        columns: &[("schema", Text), ("comment", Text)],
        rows: |context| std::future::ready(Ok(schemas(context))).boxed(),
    },
    SystemTable {
        name: "sequences",
        columns: &[
            ("schema", Text),
            ("sequence", Text),
            ("start", Number),
            ("increment", Number),
            ("min", Number),
            ("max", Number),
            ("cycle", Truth),
            ("last_value", Number),
            // Of the column that it numbers, if it is one's own.
            ("table", Text),
            ("column", Text),
        ],
        rows: |context| std::future::ready(Ok(sequences(context))).boxed(),
    },
    SystemTable {
        name: "macros",
        columns: &[
            ("schema", Text),
            ("macro", Text),
            // `scalar` or `table`.
            ("kind", Text),
            ("parameters", Text),
            ("definition", Text),
            ("comment", Text),
        ],
        rows: |context| std::future::ready(Ok(macros(context))).boxed(),
    },
];

fn views(context: &StatementContext) -> Vec<Vec<Cell>> {
    let all = described::all(context).into_iter();
    let views = all.filter_map(|relation| match relation.kind {
        RelationKind::View { definition } => Some(row![
            relation.schema,
            relation.name,
            definition,
            relation.comment
        ]),
        RelationKind::Table { .. } | RelationKind::System => None,
    });
    views.collect()
}

fn sequences(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let sequences = contents.sequences();
    let sequences = sequences.filter(|sequence| context.sees(&sequence.name));
    let rows = sequences.map(|sequence| {
        let is_own = |rules: &ColumnRules| {
            let identity = rules.identity.as_ref();
            identity.is_some_and(|identity| Arc::ptr_eq(&identity.sequence, sequence))
        };
        let owner = contents.tables().find_map(|table| {
            let column = table.rules.iter().position(is_own)?;
            Some((table.name.name.as_str(), table.schema.field(column).name()))
        });
        let course = &sequence.course;
        row![
            sequence.name.shown_schema(),
            &sequence.name.name,
            course.start,
            course.increment,
            course.least,
            course.most,
            course.cycle,
            sequence.last(),
            owner.map(|(table, _)| table),
            owner.map(|(_, column)| column),
        ]
    });
    rows.collect()
}

/// A row for each form of a macro.
fn macros(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let macros = contents.macros().filter(|named| context.sees(&named.name));
    let rows = macros.flat_map(|named| {
        let kind = if named.is_table { "table" } else { "scalar" };
        named.definition.forms.iter().map(move |form| {
            row![
                named.name.shown_schema(),
                &named.name.name,
                kind,
                form.parameters_text(),
                &form.text,
                named.comment.as_deref(),
            ]
        })
    });
    rows.collect()
}

fn schemas(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let schemas = described::schemas(context).into_iter();
    let rows = schemas.map(|schema| {
        let comment = contents.schema_comment(&schema);
        row![&schema, comment]
    });
    rows.collect()
}
