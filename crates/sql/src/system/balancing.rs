//! `eris.partitions` and `eris.balancing`: which AEU has what of a table and is asked for it, and what was moved for
//! that.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use eris_home::HomeError;
use futures::FutureExt;

use CellType::{Number, Real, Text, Time};

pub(super) static RELATIONS: [SystemTable; 2] = [
    SystemTable {
        name: "partitions",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("aeu", Number),
            ("node", Number),
            // Of keys, or of the column that rows are partitioned by; NULL where they are partitioned by size.
            ("range", Text),
            ("rows", Number),
            ("bytes", Number),
            // Lately: of the last second or some more.
            ("accesses_per_second", Real),
            ("scanned_bytes_per_second", Real),
            ("busy_share", Real),
        ],
        rows: |context| async { partitions(context) }.boxed(),
    },
    SystemTable {
        name: "balancing",
        columns: &[
            ("at", Time),
            ("schema", Text),
            ("table", Text),
            ("range", Text),
            ("from_aeu", Number),
            ("to_aeu", Number),
            // `link`, `copy`, or `link and copy`.
            ("how", Text),
            ("rows", Number),
            ("linked_bytes", Number),
            ("copied_bytes", Number),
            ("milliseconds", Real),
            // The busiest AEU's load as so many times the mean; after it as soon as that is known.
            ("imbalance_before", Real),
            ("imbalance_after", Real),
            ("error", Text),
        ],
        rows: |context| async { Ok(balancing(context)) }.boxed(),
    },
];

/// One row for each AEU of each table.
fn partitions(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let mut rows = Vec::new();
    let Some(ownership) = context.home.ownership() else {
        return Ok(rows);
    };
    for table in described::tables(context) {
        let RelationKind::Table { object, .. } = table.kind else {
            continue;
        };
        let partitions = match ownership.partitions(object) {
            Ok(partitions) => partitions,
            Err(HomeError::NoSuchObject(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        for one in partitions {
            rows.push(row![
                &table.schema,
                &table.name,
                one.aeu.0,
                one.node.0,
                one.ranges,
                one.rows,
                one.bytes,
                one.accesses,
                one.scanned,
                one.busy,
            ]);
        }
    }
    Ok(rows)
}

/// One row for each move, the oldest first. Of a table that is no more there is the name.
fn balancing(context: &StatementContext) -> Vec<Vec<Cell>> {
    let tables = described::tables(context);
    let moves = context.services.balance.history().into_iter();
    let rows = moves.map(|one| {
        let table = tables.iter().find(|table| {
            matches!(&table.kind, RelationKind::Table { object, .. } if *object == one.object)
        });
        let moved = one.result.as_ref().ok();
        let how = moved.and_then(|moved| match (moved.linked > 0, moved.copied > 0) {
            (true, true) => Some("link and copy"),
            (true, false) => Some("link"),
            (false, true) => Some("copy"),
            (false, false) => None,
        });
        row![
            one.at,
            table.map(|table| &table.schema),
            table.map_or(&one.name, |table| &table.name),
            one.range,
            one.from.0,
            one.to.0,
            how,
            moved.map_or(0, |moved| moved.keys),
            moved.map_or(0, |moved| moved.linked),
            moved.map_or(0, |moved| moved.copied),
            one.time.as_secs_f64() * 1e3,
            one.imbalance,
            one.after,
            one.result.as_ref().err(),
        ]
    });
    rows.collect()
}
