//! What tables consist of and where they lie: `eris.tables`, `eris.columns`, `eris.indexes`, `eris.segments`,
//! `eris.chunks`, `eris.memory`.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::described::{self, Described, DescribedColumn, RelationKind};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use crate::system::sampled::Sampled;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::DataType;
use eris_exact::scalar;
use eris_exact::text::{has_own_text, strings};
use eris_fragment::Scalar;
use eris_home::{BUFFERS, ColumnChunkInspection, HomeError, Inspection};
use futures::FutureExt;
use std::collections::BTreeMap;

use CellType::{Number, Real, Text, Truth};

pub(super) static RELATIONS: [SystemTable; 6] = [
    SystemTable {
        name: "tables",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("rows", Number),
            ("bytes", Number),
            ("columns", Number),
            ("segments", Number),
            ("chunks", Number),
            ("partitioned_by", Text),
            // What it has of its own, as `CALL eris.balance` takes it.
            ("balancing", Text),
            ("comment", Text),
        ],
        rows: |context| tables(context).boxed(),
    },
    SystemTable {
        name: "columns",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("column", Text),
            ("position", Number),
            ("type", Text),
            ("nullable", Truth),
            ("rows", Number),
            ("nulls", Number),
            ("min", Text),
            ("max", Text),
            ("distinct", Number),
            // By a sample.
            ("frequent", Text),
            ("histogram", Text),
            ("average_length", Real),
            ("correlation", Real),
            ("bytes", Number),
            ("encodings", Text),
            ("dictionary_entries", Number),
            ("dictionary_bytes", Number),
            ("comment", Text),
        ],
        rows: |context| columns(context).boxed(),
    },
    SystemTable {
        name: "indexes",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("name", Text),
            ("columns", Text),
            ("kind", Text),
            ("unique", Truth),
            ("entries", Number),
            ("keys", Number),
            ("bytes", Number),
            ("lookups", Number),
            ("height", Number),
            ("nodes", Number),
            ("fill", Real),
            ("splits", Number),
            ("right_moves", Number),
        ],
        rows: |context| super::indexes::rows(context).boxed(),
    },
    SystemTable {
        name: "segments",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("segment", Number),
            ("aeu", Number),
            ("node", Number),
            ("rows", Number),
            ("deleted_rows", Number),
            ("sealed_rows", Number),
            ("append_buffer_rows", Number),
            ("chunks", Number),
            ("append_buffer_chunks", Number),
            ("bytes", Number),
        ],
        rows: |context| segments(context).boxed(),
    },
    SystemTable {
        name: "chunks",
        columns: &[
            ("schema", Text),
            ("table", Text),
            ("column", Text),
            ("segment", Number),
            ("aeu", Number),
            ("node", Number),
            ("chunk", Number),
            ("sealed", Truth),
            ("rows", Number),
            ("deleted_rows", Number),
            ("nulls", Number),
            ("encoding", Text),
            ("width", Number),
            ("bytes", Number),
            ("min", Text),
            ("max", Text),
        ],
        rows: |context| chunks(context).boxed(),
    },
    SystemTable {
        name: "memory",
        columns: &[
            ("kind", Text),
            ("schema", Text),
            ("table", Text),
            ("node", Number),
            ("bytes", Number),
        ],
        rows: |context| memory(context).boxed(),
    },
];

type CellRows = Result<Vec<Vec<Cell>>, SqlError>;

/// Every user's table with what it consists of; those that are dropped meanwhile are left out.
async fn inspected(context: &StatementContext) -> Result<Vec<(Described, Inspection)>, SqlError> {
    let mut all = Vec::new();
    for table in described::tables(context) {
        let RelationKind::Table { object, .. } = table.kind else {
            continue;
        };
        match context.home.inspect(object).await {
            Ok(inspection) => all.push((table, inspection)),
            Err(HomeError::NoSuchObject(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

async fn tables(context: &StatementContext) -> CellRows {
    let all = inspected(context).await?;
    let rows = all.iter().map(|(table, inspection)| {
        let segments = &inspection.segments;
        let chunks = || segments.iter().flat_map(|segment| &segment.chunks);
        let (partitioned_by, balancing) = match &table.kind {
            RelationKind::Table {
                partitioned_by,
                object,
                ..
            } => (
                partitioned_by.clone(),
                context.services.balance.own(*object),
            ),
            RelationKind::View { .. } | RelationKind::System => (None, None),
        };
        row![
            &table.schema,
            &table.name,
            chunks()
                .map(|chunk| chunk.rows - chunk.deleted)
                .sum::<u64>(),
            segments.iter().map(|segment| segment.bytes).sum::<u64>(),
            table.columns.len(),
            segments.len(),
            chunks().count(),
            partitioned_by,
            balancing.map(|own| own.to_string()),
            table.comment.as_deref(),
        ]
    });
    Ok(rows.collect())
}

async fn segments(context: &StatementContext) -> CellRows {
    let all = inspected(context).await?;
    let rows = all.iter().flat_map(|(table, inspection)| {
        inspection.segments.iter().map(|segment| {
            let rows = |sealed| {
                let chunks = segment.chunks.iter();
                let chunks = chunks.filter(move |chunk| chunk.sealed == sealed);
                (
                    chunks.clone().map(|chunk| chunk.rows).sum::<u64>(),
                    chunks.count(),
                )
            };
            let ((sealed_rows, sealed), (append_buffer_rows, unsealed)) = (rows(true), rows(false));
            let deleted: u64 = segment.chunks.iter().map(|chunk| chunk.deleted).sum();
            row![
                &table.schema,
                &table.name,
                segment.segment.0,
                segment.aeu.0,
                segment.node.0,
                sealed_rows + append_buffer_rows - deleted,
                deleted,
                sealed_rows,
                append_buffer_rows,
                sealed,
                unsealed,
                segment.bytes,
            ]
        })
    });
    Ok(rows.collect())
}

async fn chunks(context: &StatementContext) -> CellRows {
    let mut rows = Vec::new();
    for (table, inspection) in inspected(context).await? {
        for segment in &inspection.segments {
            for (number, chunk) in segment.chunks.iter().enumerate() {
                for (column, part) in table.columns.iter().zip(&chunk.columns) {
                    let (min, max) = ends(part.range.as_ref());
                    rows.push(row![
                        &table.schema,
                        &table.name,
                        &column.name,
                        segment.segment.0,
                        segment.aeu.0,
                        segment.node.0,
                        number,
                        chunk.sealed,
                        chunk.rows,
                        chunk.deleted,
                        part.nulls,
                        &part.encoding,
                        part.width,
                        part.bytes,
                        min,
                        max,
                    ]);
                }
            }
        }
    }
    Ok(rows)
}

async fn columns(context: &StatementContext) -> CellRows {
    let mut rows = Vec::new();
    for (table, inspection) in inspected(context).await? {
        let RelationKind::Table { object, .. } = table.kind else {
            continue;
        };
        let statistics = match context.home.statistics(object) {
            Ok(statistics) => statistics,
            Err(HomeError::NoSuchObject(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let samples = context.home.samples();
        let samples = samples.map_or(Ok(Vec::new()), |samples| samples.values(object));
        let samples = samples.unwrap_or_default();
        for (position, column) in table.columns.iter().enumerate() {
            let known = statistics.columns.get(position);
            let range = known.and_then(|known| Some((known.min.clone()?, known.max.clone()?)));
            let (min, max) = ends(range.as_ref());
            let dictionary = inspection.dictionaries.get(position).copied().flatten();
            let dictionary = dictionary.filter(|dictionary| dictionary.entries > 0);
            let total = Total::of(&inspection, position);
            let sampled = match samples.get(position) {
                Some(Some(values)) => Sampled::of(values),
                _ => Sampled::default(),
            };
            let DescribedColumn { name, nullable, .. } = column;
            rows.push(row![
                &table.schema,
                &table.name,
                name,
                position + 1,
                column.type_name(),
                *nullable,
                total.rows,
                total.nulls,
                min,
                max,
                known.and_then(|known| known.distinct),
                sampled.frequent,
                sampled.histogram,
                sampled.length,
                sampled.correlation,
                total.bytes,
                total.encodings(),
                dictionary.map(|dictionary| dictionary.entries),
                dictionary.map(|dictionary| dictionary.bytes),
                column.comment.as_deref(),
            ]);
        }
    }
    Ok(rows)
}

/// All column chunks of one column together.
#[derive(Default)]
struct Total {
    rows: u64,
    nulls: u64,
    bytes: u64,
    /// Chunks by encoding and width.
    encodings: BTreeMap<String, u64>,
}

impl Total {
    fn of(inspection: &Inspection, column: usize) -> Self {
        let mut total = Total::default();
        for chunk in inspection
            .segments
            .iter()
            .flat_map(|segment| &segment.chunks)
        {
            let Some(part) = chunk.columns.get(column) else {
                continue;
            };
            total.rows += chunk.rows;
            total.nulls += part.nulls;
            total.bytes += part.bytes;
            *total.encodings.entry(shown(part)).or_default() += 1;
        }
        total
    }

    /// The encodings with their numbers of chunks, the most frequent first, such as `packed(4): 12, constant: 1`.
    fn encodings(&self) -> Option<String> {
        let mut all: Vec<_> = self.encodings.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let words: Vec<String> = all
            .into_iter()
            .map(|(encoding, count)| format!("{encoding}: {count}"))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

fn shown(part: &ColumnChunkInspection) -> String {
    match part.width {
        Some(width) => format!("{}({width})", part.encoding),
        None => part.encoding.clone(),
    }
}

/// The ends of a range as text.
fn ends(range: Option<&(Scalar, Scalar)>) -> (Option<String>, Option<String>) {
    let text = |scalar: &Scalar| {
        let value = scalar::to_datafusion(scalar)?;
        if !has_own_text(&value.data_type()) {
            let text = value.cast_to(&DataType::Utf8);
            return text.ok().map(|text| text.to_string());
        }
        let texts = strings(&value.to_array().ok()?).ok()?;
        Some(texts.as_string_view().value(0).to_owned())
    };
    match range {
        Some((min, max)) => (text(min), text(max)),
        None => (None, None),
    }
}

/// Bytes in the engine's budget, by what holds them. They add up to what is used, so `other` is what operators, groups
/// and writers hold at this moment.
async fn memory(context: &StatementContext) -> CellRows {
    let tables = described::tables(context);
    let mut rows = Vec::new();
    let mut known = 0;
    for usage in context.home.usage() {
        let table = tables.iter().find(|table| match table.kind {
            RelationKind::Table { object, .. } => object == usage.object,
            RelationKind::View { .. } | RelationKind::System => false,
        });
        known += usage.bytes;
        // A table without a name: dropped, and still read by a statement, or not yet visible.
        rows.push(row![
            match usage.object {
                BUFFERS => "buffers",
                _ => "table",
            },
            table.map(|table| &table.schema),
            table.map(|table| &table.name),
            usage.node.0,
            usage.bytes,
        ]);
    }
    let used = context.home.budget().used();
    rows.push(row![
        "other",
        Cell::Null,
        Cell::Null,
        Cell::Null,
        used.saturating_sub(known),
    ]);
    Ok(rows)
}
