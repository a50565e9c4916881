//! Random tables: every type, every encoding, NULLs, several chunks, commits and deletions around a snapshot.

use super::Rng;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use eris_column::{ColumnChunk, Dictionary, Domain, KeyOrder, ObjectMemory, Selection};
use eris_fragment::{Type, Value};
use eris_kernels::Isa;
use eris_numa::{Budget, HugePages, Memory, Topology};
use eris_store::{Chunk, ChunkView, DeleteVector, InsertedRun, RowIds};
use eris_types::{NodeId, ObjectId, RowId, Timestamp};
use std::sync::Arc;

/// When the tests read.
pub const SNAPSHOT: Timestamp = Timestamp(10);

pub struct Table {
    pub schema: SchemaRef,
    pub types: Vec<Type>,
    pub dictionaries: Vec<Option<Dictionary>>,
    pub chunks: Vec<TableChunk>,
}

pub struct TableChunk {
    pub view: ChunkView,
    /// The same, row by row.
    pub rows: Vec<Vec<Value>>,
    pub visible: Vec<bool>,
}

/// Names and types of the columns; text comes with a dictionary, without one, and mixed.
pub fn columns() -> Vec<(&'static str, DataType)> {
    use DataType::*;
    vec![
        ("flag", Boolean),
        ("tiny", Int8),
        ("small", Int16),
        ("number", Int32),
        ("big", Int64),
        ("byte", UInt8),
        ("word", UInt16),
        ("long", UInt32),
        ("huge", UInt64),
        ("real", Float32),
        ("double", Float64),
        ("price", Decimal128(10, 2)),
        ("amount", Decimal128(30, 4)),
        ("city", Utf8View),
        ("note", Utf8View),
        ("mixed", Utf8View),
        ("day", Date32),
        ("at", Timestamp(TimeUnit::Microsecond, None)),
    ]
}

pub const TEXTS: [&str; 12] = [
    "",
    "a",
    "ab",
    "abc",
    "Abc",
    "b%",
    "b_x",
    "12",
    "-7",
    "Zürich",
    "a rather long text that no view holds inline",
    "a rather long text that no view holds in line",
];

/// A value that a column of the type can have.
pub fn value_of(data_type: &DataType, rng: &mut Rng) -> Value {
    use DataType::*;
    let mut integer = |low: i128, high: i128| {
        Value::Integer(match rng.below(20) {
            0 => low,
            1 => high,
            2 => low + 1,
            3..8 => (rng.range(-100_000, 100_000) as i128).clamp(low, high),
            _ => (rng.range(-5, 12) as i128).clamp(low, high),
        })
    };
    match data_type {
        Boolean => Value::Boolean(rng.one_in(2)),
        Int8 => integer(i8::MIN as i128, i8::MAX as i128),
        Int16 => integer(i16::MIN as i128, i16::MAX as i128),
        Int32 => integer(i32::MIN as i128, i32::MAX as i128),
        Int64 | Timestamp(..) => integer(i64::MIN as i128, i64::MAX as i128),
        UInt8 => integer(0, u8::MAX as i128),
        UInt16 => integer(0, u16::MAX as i128),
        UInt32 => integer(0, u32::MAX as i128),
        UInt64 => integer(0, u64::MAX as i128),
        Date32 => integer(-1_000_000, 1_000_000),
        Decimal128(precision, _) => {
            let end = 10i128.pow(*precision as u32) - 1;
            integer(-end, end)
        }
        Float32 | Float64 => Value::Float(match rng.below(24) {
            0 => f64::NAN,
            1 => -f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 | 5 => -0.0,
            6 | 7 => 0.0,
            _ => rng.range(-40, 40) as f64 / 4.0,
        }),
        Utf8View => Value::String(rng.pick(&TEXTS).to_string()),
        other => panic!("{other} is no type of the tests"),
    }
}

/// Values in one of several styles, so that every encoding is chosen now and then.
fn values_of(data_type: &DataType, rows: usize, rng: &mut Rng) -> Vec<Value> {
    let few: Vec<Value> = (0..3).map(|_| value_of(data_type, rng)).collect();
    let style = rng.below(4);
    let nulls = *rng.pick(&[0, 0, 0, 4, 30, 1]);
    let mut run = rng.pick(&few).clone();
    (0..rows)
        .map(|_| {
            let value = match style {
                0 => few[0].clone(),
                1 => rng.pick(&few).clone(),
                2 => {
                    if rng.one_in(60) {
                        run = rng.pick(&few).clone();
                    }
                    run.clone()
                }
                _ => value_of(data_type, rng),
            };
            match nulls > 0 && rng.one_in(nulls) {
                true => Value::Null,
                false => value,
            }
        })
        .collect()
}

/// Values as an array of the type.
pub fn array_of(data_type: &DataType, values: &[Value]) -> ArrayRef {
    use DataType::*;
    fn integers(values: &[Value]) -> impl Iterator<Item = Option<i128>> {
        values.iter().map(|value| match value {
            Value::Integer(value) => Some(*value),
            _ => None,
        })
    }
    fn floats(values: &[Value]) -> impl Iterator<Item = Option<f64>> {
        values.iter().map(|value| match value {
            Value::Float(value) => Some(*value),
            _ => None,
        })
    }
    macro_rules! of {
        ($array:ty, $native:ty) => {
            Arc::new(
                integers(values)
                    .map(|v| v.map(|v| v as $native))
                    .collect::<$array>(),
            )
        };
    }
    match data_type {
        Boolean => Arc::new(
            values
                .iter()
                .map(|value| match value {
                    Value::Boolean(value) => Some(*value),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        Int8 => of!(Int8Array, i8),
        Int16 => of!(Int16Array, i16),
        Int32 => of!(Int32Array, i32),
        Int64 => of!(Int64Array, i64),
        UInt8 => of!(UInt8Array, u8),
        UInt16 => of!(UInt16Array, u16),
        UInt32 => of!(UInt32Array, u32),
        UInt64 => of!(UInt64Array, u64),
        Date32 => of!(Date32Array, i32),
        Timestamp(..) => of!(TimestampMicrosecondArray, i64),
        Decimal128(..) => {
            let array: Decimal128Array = integers(values).collect();
            Arc::new(array.with_data_type(data_type.clone()))
        }
        Float32 => Arc::new(
            floats(values)
                .map(|v| v.map(|v| v as f32))
                .collect::<Float32Array>(),
        ),
        Float64 => Arc::new(floats(values).collect::<Float64Array>()),
        Utf8View => Arc::new(
            values
                .iter()
                .map(|value| match value {
                    Value::String(value) => Some(value.as_str()),
                    _ => None,
                })
                .collect::<StringViewArray>(),
        ),
        other => panic!("{other} is no type of the tests"),
    }
}

pub fn memory() -> Memory {
    Memory::new(&Topology::fake(1, 1), HugePages::Never, None).expect("memory for a test")
}

/// A chunk of these columns, all of whose rows are visible.
pub fn chunk(arrays: &[ArrayRef], dictionaries: &[Option<Dictionary>]) -> ChunkView {
    let inserted = [InsertedRun {
        at: Timestamp(1),
        end: arrays[0].len(),
    }];
    chunk_inserted(arrays, dictionaries, inserted.to_vec(), None)
}

fn chunk_inserted(
    arrays: &[ArrayRef],
    dictionaries: &[Option<Dictionary>],
    inserted: Vec<InsertedRun>,
    mut reordered: Option<&mut Rng>,
) -> ChunkView {
    let memory = memory().node(NodeId(0));
    let home = ObjectMemory {
        memory: &memory,
        object: ObjectId(1),
    };
    let encode = |(array, dictionary): (&ArrayRef, &Option<Dictionary>)| {
        let chunk = ColumnChunk::encode(array, dictionary.as_ref(), home);
        let chunk = chunk.expect("it can be encoded");
        let stored = reordered
            .as_mut()
            .and_then(|rng| stored_by_some_order(&chunk, home, rng));
        stored.unwrap_or(chunk)
    };
    let encoded = arrays.iter().zip(dictionaries).map(encode).collect();
    ChunkView {
        chunk: Arc::new(Chunk::new(
            encoded,
            RowIds::from(RowId(0), arrays[0].len()),
            inserted,
        )),
        deleted: None,
        rows: None,
    }
}

/// Now and then, integers by an order that has some more.
fn stored_by_some_order(
    chunk: &ColumnChunk,
    home: ObjectMemory<'_>,
    rng: &mut Rng,
) -> Option<ColumnChunk> {
    if chunk.domain() != Domain::Integer || !rng.one_in(3) {
        return None;
    }
    let mut keys = Vec::new();
    chunk.gather_integers(Isa::best(), &Selection::all(chunk.rows()), &mut keys);
    keys.extend((0..rng.below(70)).map(|_| rng.range(-300, 300)));
    keys.sort_unstable();
    keys.dedup();
    for place in (1..keys.len()).rev() {
        if rng.one_in(2) {
            keys.swap(place, rng.below(place + 1));
        }
    }
    let order = Arc::new(KeyOrder::new(keys).expect("each key once"));
    let stored = chunk.stored_by(&order, home);
    stored.expect("memory for a test")
}

impl Table {
    pub fn random(rng: &mut Rng) -> Self {
        let columns = columns();
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, data_type)| Field::new(*name, data_type.clone(), true))
            .collect();
        let full = Dictionary::new().extend(TEXTS.into_iter());
        let dictionary = |name: &str| (name == "city" || name == "mixed").then(|| full.clone());
        let chunks = (0..1 + rng.below(4))
            .map(|_| random_chunk(&columns, &full, rng))
            .collect();
        Table {
            schema: Arc::new(Schema::new(fields)),
            types: columns
                .iter()
                .map(|(_, data_type)| data_type.try_into().unwrap())
                .collect(),
            dictionaries: columns.iter().map(|(name, _)| dictionary(name)).collect(),
            chunks,
        }
    }
}

fn random_chunk(columns: &[(&str, DataType)], full: &Dictionary, rng: &mut Rng) -> TableChunk {
    let rows = *rng.pick(&[1, 2, 63, 64, 700, 1_024, 1_025, 2_500]);
    let values: Vec<Vec<Value>> = columns
        .iter()
        .map(|(_, data_type)| values_of(data_type, rows, rng))
        .collect();
    let arrays: Vec<ArrayRef> = columns
        .iter()
        .zip(&values)
        .map(|((_, data_type), values)| array_of(data_type, values))
        .collect();
    let coded = rng.one_in(2);
    let dictionaries: Vec<Option<Dictionary>> = columns
        .iter()
        .map(|(name, _)| (*name == "city" || *name == "mixed" && coded).then(|| full.clone()))
        .collect();
    let cut = rng.below(rows + 1);
    let (first, second) = *rng.pick(&[(1, 2), (1, 2), (3, 11), (12, 4)]);
    let inserted = vec![
        InsertedRun {
            at: Timestamp(first),
            end: cut,
        },
        InsertedRun {
            at: Timestamp(second),
            end: rows,
        },
    ];
    let mut visible: Vec<bool> = (0..rows)
        .map(|row| if row < cut { first <= 10 } else { second <= 10 })
        .collect();
    let mut view = chunk_inserted(&arrays, &dictionaries, inserted, Some(rng));
    let mut deletes = DeleteVector::default();
    let budget = Budget::new(1 << 20);
    for at in [5, 10, 15] {
        if rng.one_in(3) {
            let deleted: Vec<usize> = (0..rows).filter(|_| rng.one_in(7)).collect();
            deletes.delete(
                rows,
                deleted.clone(),
                Timestamp(at),
                Timestamp::ZERO,
                &budget,
            );
            if at <= 10 {
                deleted.iter().for_each(|&row| visible[row] = false);
            }
        }
    }
    view.deleted = deletes.at(Timestamp(10)).cloned();
    // As an index leads to them: a few, or many.
    if rng.one_in(3) {
        let share = *rng.pick(&[2, 50, 300]);
        let wanted: Vec<u32> = (0..rows as u32).filter(|_| rng.one_in(share)).collect();
        (0..rows).for_each(|row| visible[row] &= wanted.binary_search(&(row as u32)).is_ok());
        view.rows = Some(wanted.into());
    }
    TableChunk {
        view,
        rows: (0..rows)
            .map(|row| values.iter().map(|column| column[row].clone()).collect())
            .collect(),
        visible,
    }
}
