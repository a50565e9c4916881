//! The tables, their rows, and how statements write and read them.

use super::common::collect;
use super::history::{Change, Histories};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, IndexKind, Partitioning};
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId, RowId, Timestamp};
use futures::executor::block_on;
use std::ops::Range;
use std::sync::Arc;

/// A table's ids are below these numbers. One without a key moves by the chunk.
pub const KEYS: i64 = 60_000;
pub const IDS: i64 = 400_000;
pub const PERSONS: i64 = 2;
/// Values are greater than ids: the version, and behind it the id.
const VERSION: i64 = 1 << 20;
pub const COLUMNS: [ColumnId; 3] = [ColumnId(0), ColumnId(1), ColumnId(2)];

pub type Ids = Range<i64>;

/// A row that was found.
#[derive(Debug)]
pub struct Row {
    pub id: i64,
    pub value: i64,
    pub text: Option<String>,
    pub row_id: RowId,
}

pub fn value_of(id: i64, version: i64) -> i64 {
    version * VERSION + id
}

/// NULL, one of few, or one that nobody else has.
pub fn text_of(value: i64) -> Option<String> {
    match value % 3 {
        0 => None,
        1 => Some(format!("one of few {}", value % 100)),
        _ => Some(format!("text of {value}")),
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]))
}

pub fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// The rows that changes leave.
pub fn batch(changes: &[Change]) -> RecordBatch {
    let values = || changes.iter().filter_map(|(_, value)| *value);
    let texts: StringViewArray = values().map(text_of).collect();
    let columns = vec![
        column(values().map(|value| value % VERSION)),
        column(values()),
        Arc::new(texts) as ArrayRef,
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let number = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
    let texts = batch.column(2).as_string_view();
    let row = |at: usize| Row {
        id: number(0)[at],
        value: number(1)[at],
        text: texts.is_valid(at).then(|| texts.value(at).to_owned()),
        row_id: RowId(match batch.num_columns() {
            4 => number(3)[at] as u64,
            _ => 0,
        }),
    };
    (0..batch.num_rows()).map(row).collect()
}

pub struct Table {
    pub engine: Engine,
    pub object: ObjectId,
    pub ids: i64,
    pub is_keyed: bool,
    pub histories: Histories,
}

impl Table {
    /// A table whose rows may have a key, and an index of their values.
    pub fn new(engine: &Engine, is_keyed: bool, index: Option<IndexKind>) -> Self {
        let ids = if is_keyed { KEYS } else { IDS };
        let object = match is_keyed {
            true => engine.create_with_key("k", schema(), Partitioning::Size, &COLUMNS[..1]),
            false => engine.create("t", schema(), Partitioning::Range(COLUMNS[0])),
        };
        let table = Table {
            engine: engine.clone(),
            object: object.unwrap(),
            ids,
            is_keyed,
            histories: Histories::new(PERSONS, ids),
        };
        // Ranges are cut by the first statement: of the table without a key, what comes later is all the last AEU's.
        for ids in [0..1_000, 1_000..ids] {
            table.add(
                &ids.map(|id| (id, Some(value_of(id, 0))))
                    .collect::<Vec<_>>(),
            );
        }
        if let Some(kind) = index {
            let made = engine.create_index(table.object, &COLUMNS[1..2], kind, Arc::default());
            block_on(made).unwrap();
        }
        table
    }

    pub fn add(&self, changes: &[Change]) {
        let mut writer = self.engine.writer(self.object).unwrap();
        for changes in changes.chunks(10_000) {
            block_on(writer.append(batch(changes))).unwrap();
        }
        block_on(writer.commit()).unwrap();
    }

    /// Rows of which one column is in a range.
    pub fn read(&self, snapshot: Timestamp, of: usize, range: Range<i64>) -> Vec<Row> {
        let bound = |op, value: i64| Expr::Binary {
            op,
            left: Box::new(Expr::Column(of)),
            right: Box::new(Expr::Literal(Scalar {
                data_type: Type::Int64,
                value: Value::Integer(value.into()),
            })),
        };
        let mut columns = COLUMNS.to_vec();
        columns.push(ColumnId::ROW_ID);
        let fragment = Fragment {
            object: self.object,
            snapshot,
            order: None,
            columns,
            filter: vec![
                bound(BinaryOp::GtEq, range.start),
                bound(BinaryOp::Lt, range.end),
            ],
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: (0..4).map(Expr::Column).collect(),
                limit: None,
            },
            options: ScanOptions::default(),
        };
        let batches = collect(&self.engine, fragment, 2).unwrap();
        batches.iter().flat_map(rows_of).collect()
    }
}
