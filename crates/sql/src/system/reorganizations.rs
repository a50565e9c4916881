//! `eris.reorganizations`: how the indexes of keys are used, and what reorganisation does to them.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use eris_home::{HomeError, ReorganizationCause};
use futures::FutureExt;

use CellType::{Number, Real, Text};

pub(super) static RELATIONS: [SystemTable; 1] = [SystemTable {
    name: "reorganizations",
    columns: &[
        ("schema", Text),
        ("table", Text),
        ("aeu", Number),
        ("node", Number),
        ("keys", Number),
        ("bytes", Number),
        ("state", Text),
        ("samples", Number),
        ("analyses", Number),
        // Of the one under way, or else the newest.
        ("cause", Text),
        ("sampled_keys", Number),
        ("keys_done", Number),
        ("nodes_moved", Number),
        ("bytes_moved", Number),
        ("hot_bytes", Number),
        ("hot_pages_before", Number),
        ("hot_pages_after", Number),
        ("modelled_tlb_misses_before", Real),
        ("modelled_tlb_misses_after", Real),
        ("error", Text),
    ],
    rows: |context| rows(context).boxed(),
}];

/// One row for the index of each partition of tables with a key.
async fn rows(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let mut rows = Vec::new();
    let Some(indexes) = context.home.key_indexes() else {
        return Ok(rows);
    };
    for table in described::tables(context) {
        let RelationKind::Table {
            object,
            key: Some(_),
            ..
        } = table.kind
        else {
            continue;
        };
        let all = match indexes.reorganization(object).await {
            Ok(all) => all,
            Err(HomeError::NoSuchObject(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        for index in all {
            let effect = index.effect.as_ref();
            rows.push(row![
                &table.schema,
                &table.name,
                index.aeu.0,
                index.node.0,
                index.keys,
                index.bytes,
                index.state.to_string(),
                index.samples,
                index.ended,
                effect.map(|effect| match effect.cause {
                    ReorganizationCause::Policy => "policy",
                    ReorganizationCause::Call => "call",
                }),
                effect.map(|effect| effect.keys_all),
                effect.map(|effect| effect.keys_done),
                effect.map(|effect| effect.nodes_moved),
                effect.map(|effect| effect.bytes_moved),
                effect.map(|effect| effect.hot_bytes),
                effect.and_then(|effect| effect.pages_before),
                effect.and_then(|effect| effect.pages_after),
                effect.and_then(|effect| effect.modelled_walks_before),
                effect.and_then(|effect| effect.modelled_walks_after),
                effect.and_then(|effect| effect.failure.as_ref()),
            ]);
        }
    }
    Ok(rows)
}
