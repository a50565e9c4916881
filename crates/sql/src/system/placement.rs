//! `eris.placement`: on which of the machine's nodes the memory of tables really lies, and what lies elsewhere because
//! its node was full. `eris.traffic`: what nodes get from others.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use eris_home::{HomeError, StoredPart};
use eris_types::ObjectId;
use futures::FutureExt;
use futures::future::ready;

use CellType::{Number, Text};

pub(super) static RELATIONS: [SystemTable; 2] = [PLACEMENT, TRAFFIC];

const PLACEMENT: SystemTable = SystemTable {
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
        // Of the pages that there are, so that small parts which share one count it each; NULL where the system does
        // not tell.
        ("resident_bytes", Number),
        // NULL if the nodes are made up.
        ("elsewhere_bytes", Number),
    ],
    rows: |context| rows(context).boxed(),
};

const TRAFFIC: SystemTable = SystemTable {
    name: "traffic",
    columns: &[
        // The node that got it, and the one from whose memory it came.
        ("source_node", Number),
        ("home_node", Number),
        ("kind", Text),
        ("requests", Number),
        ("bytes", Number),
        // The machine whose links are imitated for this kind; NULL: it crosses as fast as it does here.
        ("paced_as", Text),
    ],
    rows: |context| ready(Ok(traffic(context))).boxed(),
};

/// One row per pair of nodes and kind of traffic, if there was any since the start.
fn traffic(context: &StatementContext) -> Vec<Vec<Cell>> {
    let paced = context.home.paced_as();
    let traffic = context.home.traffic().into_iter();
    let rows = traffic.map(|traffic| {
        row![
            traffic.source.0,
            traffic.home.0,
            traffic.kind.name(),
            traffic.requests,
            traffic.bytes,
            paced.clone().filter(|_| traffic.kind.is_paced()),
        ]
    });
    rows.collect()
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
    let Some(ownership) = context.home.ownership() else {
        return Ok(rows);
    };
    for table in described::tables(context) {
        let RelationKind::Table {
            object, uniques, ..
        } = &table.kind
        else {
            continue;
        };
        let own = [(None, *object)].into_iter();
        let uniques = uniques
            .iter()
            .map(|unique| (Some(&unique.name), unique.keys));
        for (unique, object) in own.chain(uniques) {
            let all = match ownership.locate(object).await {
                Ok(all) => all,
                Err(HomeError::NoSuchObject(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            rows.extend(all.iter().map(|located| {
                let (part, name) = match (unique, located.part) {
                    (Some(name), _) => ("unique", Some(name.clone())),
                    (None, StoredPart::Rows) => ("rows", None),
                    (None, StoredPart::Key) => ("key", None),
                    (None, StoredPart::Index(number)) => ("index", index_name(object, number)),
                };
                row![
                    &table.schema,
                    &table.name,
                    part,
                    name,
                    located.aeu.0,
                    located.node.0,
                    located.bytes,
                    located.resident,
                    located.elsewhere,
                ]
            }));
        }
    }
    Ok(rows)
}
