//! What is defined and has no rows of its own: `eris.views`, `eris.schemas`, `eris.sequences`.

use crate::catalog::ColumnRules;
use crate::context::StatementContext;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use futures::FutureExt;
use std::sync::Arc;

use CellType::{Number, Text, Truth};

pub(super) static RELATIONS: [SystemTable; 3] = [
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

fn schemas(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let schemas = described::schemas(context).into_iter();
    let rows = schemas.map(|schema| {
        let comment = contents.schema_comment(&schema);
        row![&schema, comment]
    });
    rows.collect()
}
