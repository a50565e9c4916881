//! `eris.recodings`: the columns that tables are joined by, and how far they are stored by an order of the other
//! table's keys.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::maintenance::recoding::RecodingOutcome;
use crate::system::described::{self, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use eris_home::HomeError;
use futures::FutureExt;

use CellType::{Number, Text};

pub(super) static RELATIONS: [SystemTable; 1] = [SystemTable {
    name: "recodings",
    columns: &[
        ("schema", Text),
        ("table", Text),
        ("column", Text),
        ("other_schema", Text),
        ("other_table", Text),
        ("other_column", Text),
        // `seen`, `under way`, `stored`, or `as it is`, where no other order is better.
        ("state", Text),
        // By which the keys are ordered, the coarsest first.
        ("attributes", Text),
        ("keys", Number),
        // Of these, those that have come since the order was made, and are at its end.
        ("keys_late", Number),
        ("chunks", Number),
        ("chunks_recoded", Number),
        ("rows", Number),
        // Came later, or have keys that the order does not have.
        ("rows_late", Number),
    ],
    rows: |context| rows(context).boxed(),
}];

/// One row for each column that has been joined, or was asked for.
async fn rows(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let tables = described::tables(context);
    let described = |wanted| {
        let mut tables = tables.iter();
        tables.find(
            |table| matches!(table.kind, RelationKind::Table { object, .. } if object == wanted),
        )
    };
    let mut rows = Vec::new();
    let mut recodings = context.recodings.all();
    recodings.sort_by_key(|recoding| (recoding.fact, recoding.column));
    for recoding in recodings {
        let (Some(fact), Some(other)) = (
            described(recoding.fact),
            described(recoding.dimension.object),
        ) else {
            continue;
        };
        let inspection = match context.home.inspect(recoding.fact).await {
            Ok(inspection) => inspection,
            Err(HomeError::NoSuchObject(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let chunks = inspection
            .segments
            .iter()
            .flat_map(|segment| &segment.chunks);
        let mut all = (0u64, 0u64);
        let mut recoded = (0u64, 0u64);
        for chunk in chunks {
            all = (all.0 + 1, all.1 + chunk.rows);
            if chunk.columns[recoding.column].is_by_key_order {
                recoded = (recoded.0 + 1, recoded.1 + chunk.rows);
            }
        }
        let (state, attributes) = match &recoding.outcome {
            _ if recoding.under_way => ("under way", None),
            None => ("seen", None),
            Some(RecodingOutcome::AsItIs) => ("as it is", None),
            Some(RecodingOutcome::Stored(stored)) => ("stored", Some(stored.attributes.join(", "))),
        };
        let stored = match &recoding.outcome {
            Some(RecodingOutcome::Stored(stored)) => Some(stored),
            _ => None,
        };
        let late = stored.map(|_| all.1 - recoded.1);
        let order = stored.and_then(|stored| stored.order.upgrade());
        rows.push(row![
            &fact.schema,
            &fact.name,
            &fact.columns[recoding.column].name,
            &other.schema,
            &other.name,
            &other.columns[recoding.key].name,
            state,
            attributes,
            order.as_ref().map(|order| order.size().keys),
            order.as_ref().map(|order| order.size().late),
            all.0,
            recoded.0,
            all.1,
            late,
        ]);
    }
    Ok(rows)
}
