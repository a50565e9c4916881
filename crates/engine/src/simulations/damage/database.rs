//! A database that has everything a database can have: types, encodings, records, and all in several forms.
//!
//! ```text
//! first life     rows of every type · keys · a large chunk ─▶ CHECKPOINT ─▶ deleted · dropped ─▶ CHECKPOINT
//! second life    deleted ─▶ CHECKPOINT ─▶ rows · keys · a large chunk · ranges · deleted · dropped · gone ─▶ closed
//! ```
//!
//! What it has, and what its files are, is known after each step.

use super::files::{Files, disk_of, files_of};
use super::rows::{LARGE_ROWS, ROWS, everything, keyed, large, texts};
use crate::clients::engine::Engine;
use crate::durability::records::{self, Columns, Record};
use crate::simulations::simulated::Simulated;
use crate::{EngineError, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Schema, SchemaRef};
use eris_aeu::{Faults, Random};
use eris_disk::{Lock, SimulatedDisk};
use eris_fragment::*;
use eris_home::{Definition, DefinitionChange, Definitions, ObjectDefinition};
use eris_log::{DatabaseId, Directory, Group, LogError, Origin};
use eris_numa::Topology;
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table. The first column of each has numbers that no two of its rows share.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub object: ObjectId,
    pub schema: SchemaRef,
}

/// The rows of the tables that have some, in the order of their numbers, and the definitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    pub rows: BTreeMap<&'static str, RecordBatch>,
    pub definitions: Vec<Definition>,
}

/// A database, closed; and what it was after each step.
pub struct Database {
    pub files: Files,
    pub contents: Contents,
    pub tables: Vec<Table>,
    pub before: Vec<(Files, Contents)>,
}

const EVERYTHING: usize = 0;
const KEYED: usize = 1;
const LARGE: usize = 2;
const TEXTS: usize = 3;

impl Database {
    /// Makes one. The same seed makes the same rows.
    pub fn make(seed: u64) -> Database {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(seed);
        let mut making = Making {
            disk: disk.clone(),
            tables: Vec::new(),
            before: Vec::new(),
        };
        let mut simulated = open(&disk, Topology::fake(1, 2)).unwrap();
        making.first_life(&mut simulated, &mut random);
        simulated.close();
        making
            .before
            .push((files_of(&disk), making.before.last().unwrap().1.clone()));
        let mut simulated = open(&disk, Topology::fake(2, 2)).unwrap();
        making.second_life(&mut simulated, &mut random);
        check_encodings(&mut simulated, &making.tables);
        simulated.close();
        let Making {
            tables, mut before, ..
        } = making;
        for (_, contents) in &mut before {
            (contents.rows).retain(|name, _| tables.iter().any(|table| table.name == *name));
        }
        let files = files_of(&disk);
        let contents = before.last().expect("there were steps").1.clone();
        check_records(&files);
        Database {
            files,
            contents,
            tables,
            before,
        }
    }
}

struct Making {
    disk: SimulatedDisk,
    tables: Vec<Table>,
    before: Vec<(Files, Contents)>,
}

impl Making {
    /// Notes what there is.
    fn step(&mut self, simulated: &mut Simulated) {
        let engine = simulated.engine.clone();
        let contents = simulated.result_of(read(engine, self.tables.clone()));
        self.before.push((files_of(&self.disk), contents));
    }

    fn create(
        &mut self,
        simulated: &mut Simulated,
        name: &'static str,
        like: &RecordBatch,
        key: Vec<ColumnId>,
    ) {
        let engine = simulated.engine.clone();
        let definition = ObjectDefinition {
            name: name.to_owned(),
            schema: like.schema(),
            partitioning: Partitioning::Size,
            key,
            is_temporary: false,
        };
        let object =
            simulated.result_of(async move { engine.create_defined(definition).await.unwrap() });
        self.tables.push(Table {
            name,
            object,
            schema: like.schema(),
        });
        let name = format!("table {name}");
        self.define(simulated, is(&name, vec![object]));
    }

    fn define(&mut self, simulated: &mut Simulated, change: DefinitionChange) {
        let engine = simulated.engine.clone();
        simulated.result_of(async move { engine.store(vec![change]).await.unwrap() });
        self.step(simulated);
    }

    fn append(&mut self, simulated: &mut Simulated, table: usize, rows: RecordBatch) {
        let (engine, object) = (simulated.engine.clone(), self.tables[table].object);
        simulated.result_of(async move {
            let mut writer = engine.writer(object).unwrap();
            writer.append(rows).await.unwrap();
            writer.commit().await.unwrap();
        });
        self.step(simulated);
    }

    fn delete(
        &mut self,
        simulated: &mut Simulated,
        table: usize,
        is_gone: impl Fn(i64) -> bool + 'static,
    ) {
        let (engine, object) = (simulated.engine.clone(), self.tables[table].object);
        simulated.result_of(async move {
            let mut writer = engine.changer(object).await.unwrap();
            let columns = vec![ColumnId(0), ColumnId::ROW_ID];
            let all = rows_of(&engine, object, columns).await.unwrap();
            let ids: Vec<RowId> = all
                .iter()
                .flat_map(|batch| {
                    let numbers = batch.column(0).as_primitive::<Int64Type>().values();
                    let ids = batch.column(1).as_primitive::<Int64Type>().values();
                    let both = numbers.iter().zip(ids);
                    both.filter(|(number, _)| is_gone(**number))
                        .map(|(_, id)| RowId(*id as u64))
                        .collect::<Vec<_>>()
                })
                .collect();
            assert!(!ids.is_empty());
            writer.delete(ids.into_iter()).unwrap();
            writer.commit().await.unwrap();
        });
        self.step(simulated);
    }

    fn drop(&mut self, simulated: &mut Simulated, table: usize) {
        let Table { name, object, .. } = self.tables.remove(table);
        self.define(simulated, DefinitionChange::IsGone(format!("table {name}")));
        simulated.drop_object(object);
        self.step(simulated);
    }

    fn checkpoint(&mut self, simulated: &mut Simulated) {
        let engine = simulated.engine.clone();
        simulated.result_of(async move { engine.checkpoint().await.unwrap() });
        self.step(simulated);
    }

    fn first_life(&mut self, simulated: &mut Simulated, random: &mut Random) {
        let rows = everything(0, ROWS, random);
        self.create(simulated, "everything", &rows, vec![]);
        let keys = keyed(0..3_000, random);
        self.create(simulated, "keyed", &keys, vec![ColumnId(0)]);
        let many = large(0, LARGE_ROWS, random);
        self.create(simulated, "large", &many, vec![]);
        let like = texts(0, 5_000, true, random);
        self.create(simulated, "texts", &like, vec![]);
        self.create(simulated, "dropped early", &keys, vec![]);
        self.define(simulated, is("view v", vec![]));
        self.append(simulated, EVERYTHING, rows);
        self.append(simulated, KEYED, keys.clone());
        self.append(simulated, LARGE, many);
        self.append(simulated, TEXTS + 1, keys);
        self.checkpoint(simulated);
        // Most are gone: what is left gets a chunk of its own when the database is opened.
        self.delete(simulated, LARGE, |number| number % 5 != 1);
        self.delete(simulated, KEYED, |number| number % 3 == 0);
        self.delete(simulated, EVERYTHING, |number| number < 10);
        self.append(simulated, LARGE, large(100_000, LARGE_ROWS, random));
        // A chunk that is dead later.
        self.append(simulated, TEXTS + 1, keyed(10_000..43_000, random));
        self.drop(simulated, TEXTS + 1);
        self.checkpoint(simulated);
        self.append(simulated, KEYED, keyed(5_000..5_020, random));
    }

    fn second_life(&mut self, simulated: &mut Simulated, random: &mut Random) {
        self.delete(simulated, LARGE, |number| {
            number >= 100_000 && number % 7 == 2
        });
        self.delete(simulated, EVERYTHING, |number| (20..30).contains(&number));
        self.checkpoint(simulated);
        self.append(simulated, EVERYTHING, everything(2_000, 40, random));
        self.append(simulated, LARGE, large(200_000, LARGE_ROWS, random));
        self.append(simulated, TEXTS, texts(0, 5_000, true, random));
        self.append(simulated, TEXTS, texts(9_000, 300, false, random));
        self.delete(simulated, LARGE, |number| number % 1_000 < 3);
        self.delete(simulated, EVERYTHING, |number| number % 20 == 3);
        let (engine, object) = (simulated.engine.clone(), self.tables[KEYED].object);
        simulated.result_of(async move {
            engine
                .move_keys(object, 1_000, 2_000, AeuId(3))
                .await
                .unwrap();
        });
        self.append(simulated, KEYED, keyed(6_000..6_100, random));
        let keys = keyed(0..10, random);
        self.create(simulated, "dropped late", &keys, vec![]);
        self.append(simulated, TEXTS + 1, keys);
        self.drop(simulated, TEXTS + 1);
        self.define(simulated, DefinitionChange::IsGone("view v".to_owned()));
        self.define(simulated, is("view w", vec![]));
        self.append(simulated, KEYED, keyed(7_000..7_003, random));
    }
}

fn is(name: &str, objects: Vec<ObjectId>) -> DefinitionChange {
    DefinitionChange::Is(Definition {
        name: name.to_owned(),
        text: format!("text of {name}"),
        objects,
    })
}

/// Opens the database that is on a disk.
pub fn open(disk: &SimulatedDisk, topology: Topology) -> Result<Simulated, EngineError> {
    Simulated::open(7, topology, Faults::default(), disk.clone())
}

/// What a database has.
pub async fn read(engine: Engine, tables: Vec<Table>) -> Contents {
    let mut rows = BTreeMap::new();
    for table in tables {
        // Damage may say of an object that it has other columns. Then it is another one, whose rows nobody knows.
        let object = engine.object(table.object);
        if !object.is_ok_and(|object| object.schema == table.schema) {
            continue;
        }
        let columns = (0..table.schema.fields().len()).map(|column| ColumnId(column as u32));
        let batches = rows_of(&engine, table.object, columns.collect())
            .await
            .unwrap();
        let fields = table.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = batches.iter().map(|batch| {
            RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).unwrap()
        });
        let all =
            arrow_select::concat::concat_batches(&schema, &arrays.collect::<Vec<_>>()).unwrap();
        let numbers = all.column(0).as_primitive::<Int64Type>().values();
        let mut order: Vec<u64> = (0..all.num_rows() as u64).collect();
        order.sort_unstable_by_key(|row| numbers[*row as usize]);
        let sorted =
            arrow_select::take::take_record_batch(&all, &UInt64Array::from(order)).unwrap();
        if sorted.num_rows() > 0 {
            rows.insert(table.name, of_its_own(&sorted));
        }
    }
    let definitions = engine.stored();
    Contents { rows, definitions }
}

/// The same rows without the engine's memory, in which strings are.
fn of_its_own(rows: &RecordBatch) -> RecordBatch {
    let columns = rows.columns().iter().map(|column| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()),
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
            _ => Arc::clone(column),
        }
    });
    RecordBatch::try_new(rows.schema(), columns.collect()).unwrap()
}

pub async fn rows_of(
    engine: &Engine,
    object: ObjectId,
    columns: Vec<ColumnId>,
) -> Result<Vec<RecordBatch>, FragmentError> {
    let output = (0..columns.len()).map(Expr::Column);
    let fragment = Fragment {
        object,
        snapshot: engine.snapshot(),
        order: None,
        output: Output::Rows {
            columns: output.collect(),
            limit: None,
        },
        columns,
        filter: Vec::new(),
        probes: Vec::new(),
        lookups: Vec::new(),
        options: ScanOptions::default(),
    };
    let execution = engine.execute(Arc::new(fragment), 1).unwrap();
    let mut batches = futures::stream::select_all(execution.streams);
    let mut all = Vec::new();
    while let Some(batch) = batches.next().await {
        all.push(batch?);
    }
    Ok(all)
}

/// Every encoding is there.
fn check_encodings(simulated: &mut Simulated, tables: &[Table]) {
    let mut encodings = BTreeSet::new();
    for table in tables {
        let (engine, object) = (simulated.engine.clone(), table.object);
        let inspected = simulated.result_of(async move { engine.inspect(object).await.unwrap() });
        let chunks = inspected
            .segments
            .into_iter()
            .flat_map(|segment| segment.chunks);
        let columns = chunks.flat_map(|chunk| chunk.columns);
        encodings.extend(columns.map(|column| column.encoding));
    }
    println!("{encodings:?}");
    for expected in [
        "codes constant",
        "codes packed",
        "codes run-length",
        "codes short-runs",
        "constant",
        "delta",
        "dictionary",
        "framed",
        "fsst",
        "packed",
        "plain",
        "run-length",
        "short-runs",
    ] {
        assert!(encodings.contains(expected), "{expected} of {encodings:?}");
    }
}

/// Every kind of record is there, and every form of it, in the snapshot or in the log.
fn check_records(files: &Files) {
    let disk = Arc::new(disk_of(files));
    let directory = Directory::open(disk, Lock::Shared, DatabaseId([0; 16])).unwrap();
    let mut kinds = BTreeSet::new();
    let take = |origin, group: Group| {
        let from = match origin {
            Origin::Snapshot => "snapshot: ",
            Origin::Log => "log: ",
        };
        for record in group.records() {
            let mut note = |kind: &str| kinds.extend([format!("{from}{kind}")]);
            match records::read(record.unwrap().body).unwrap() {
                Record::Object(_) => note("object"),
                Record::Dropped(_) => note("dropped"),
                Record::Strings(_) => note("strings"),
                Record::Ranges(..) => note("ranges"),
                Record::Definition(DefinitionChange::Is(_)) => note("definition"),
                Record::Definition(DefinitionChange::IsGone(_)) => note("gone"),
                Record::Rows(commit) => {
                    for (_, _, columns) in &commit.added {
                        note(kind_of(columns));
                    }
                    if !commit.deleted.is_empty() {
                        note("deleted");
                    }
                }
                Record::Chunk(chunk) => {
                    note(kind_of(&chunk.columns));
                    note(if chunk.ids.len() > 100 {
                        "ids as bits"
                    } else {
                        "ids as runs"
                    });
                    note(match chunk.unseen.len() {
                        0 => "all seen",
                        1..100 => "unseen as runs",
                        _ => "unseen as bits",
                    });
                }
            }
        }
        Ok::<_, LogError>(())
    };
    directory.read(take).unwrap();
    println!("{kinds:?}");
    for expected in [
        "log: chunk file",
        "log: definition",
        "log: deleted",
        "log: dropped",
        "log: gone",
        "log: here",
        "log: object",
        "log: ranges",
        "log: strings",
        "snapshot: all seen",
        "snapshot: chunk file",
        "snapshot: definition",
        "snapshot: here",
        "snapshot: ids as bits",
        "snapshot: ids as runs",
        "snapshot: object",
        "snapshot: ranges",
        "snapshot: strings",
        "snapshot: unseen as bits",
        "snapshot: unseen as runs",
    ] {
        assert!(kinds.contains(expected), "{expected} of {kinds:?}");
    }
}

fn kind_of(columns: &Columns<'_>) -> &'static str {
    match columns {
        Columns::Here(_) => "here",
        Columns::ChunkFile(_) => "chunk file",
    }
}
