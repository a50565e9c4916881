//! `eris.placement`: on which of the machine's nodes the memory of tables really lies, and what lies elsewhere because its node was full.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, Kind, Relation, row};
use eris_engine::{EngineError, Located};
use eris_home::StoredPart;
use eris_numa::Placement;
use eris_types::ObjectId;
use futures::FutureExt;

use Kind::{Number, Text};

pub(super) static RELATIONS: [Relation; 1] = [Relation {
    name: "placement",
    columns: &[
        ("schema", Text),
        ("table", Text),
        // 'rows', 'key', 'index' or 'unique', and the name of an index or a UNIQUE constraint.
        ("part", Text),
        ("name", Text),
        ("aeu", Number),
        ("node", Number),
        ("bytes", Number),
        // Of the pages that there are, so that small parts which share one count it each; NULL where the system does not tell.
        ("resident_bytes", Number),
        // NULL if the nodes are made up.
        ("elsewhere_bytes", Number),
    ],
    rows: |context| rows(context).boxed(),
}];

/// Bytes of pages that there are, and of those of them that are not on this node of the operating system.
pub(super) fn resident(placement: Option<&Placement>, os_node: Option<u32>) -> (Cell, Cell) {
    // A number of no node: all are elsewhere.
    let resident = placement.map(|placement| placement.bytes_elsewhere(u32::MAX));
    let elsewhere = placement.zip(os_node);
    let elsewhere = elsewhere.map(|(placement, node)| placement.bytes_elsewhere(node));
    (resident.into(), elsewhere.into())
}

/// One row for what each owner has of the rows, the key and each index of each table.
async fn rows(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let contents = context.catalog.contents();
    let index_name = |table: ObjectId, number: u32| {
        let mut tables = contents.tables();
        let table = tables.find(|other| other.object == table)?;
        let index = table.indexes.iter().find(|index| index.id == number)?;
        Some(index.name.clone())
    };
    let mut rows = Vec::new();
    for table in described::tables(context) {
        let RelationKind::Table {
            object, uniques, ..
        } = &table.kind
        else {
            continue;
        };
        let own = [(None, *object)].into_iter();
        let uniques = uniques.iter().map(|(name, keys)| (Some(name), *keys));
        for (unique, object) in own.chain(uniques) {
            let all = match context.engine.locate(object).await {
                Ok(all) => all,
                Err(EngineError::NoSuchObject(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            rows.extend(all.iter().map(|located| {
                let (part, name) = match (unique, located.part) {
                    (Some(name), _) => ("unique", Some(name.clone())),
                    (None, StoredPart::Rows) => ("rows", None),
                    (None, StoredPart::Key) => ("key", None),
                    (None, StoredPart::Index(number)) => ("index", index_name(object, number)),
                };
                let Located {
                    aeu, node, os_node, ..
                } = located;
                let (resident, elsewhere) = resident(located.placement().as_ref(), *os_node);
                row![
                    &table.schema,
                    &table.name,
                    part,
                    name,
                    aeu.0,
                    node.0,
                    located.bytes(),
                    resident,
                    elsewhere,
                ]
            }));
        }
    }
    Ok(rows)
}
