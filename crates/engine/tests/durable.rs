//! What was committed is there again when the process has ended, on whatever topology, and in a backup: random
//! statements and checkpoints against maps.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use common::{all_rows, collect, fragment};
use eris_aeu::Random;
use eris_engine::{DatabaseSettings, Engine, EngineError, Partitioning, Settings, Synchronous};
use eris_home::{Definition, DefinitionChange, Home, HomeError, ObjectDefinition};
use eris_numa::{HugePages, Topology};
use eris_types::{AeuId, ColumnId, ObjectId};
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn open(directory: &Path, topology: (u16, u16)) -> Result<Engine, EngineError> {
    open_for(directory, topology, false)
}

fn open_for(
    directory: &Path,
    (nodes, cores): (u16, u16),
    read_only: bool,
) -> Result<Engine, EngineError> {
    Engine::start(Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: Some(DatabaseSettings {
            directory: directory.to_owned(),
            synchronous: Some(Synchronous::On),
            read_only,
        }),
    })
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("name", DataType::Utf8View, true),
    ]))
}

fn definition(name: &str, key: Vec<ColumnId>) -> ObjectDefinition {
    ObjectDefinition {
        name: name.to_owned(),
        schema: schema(),
        partitioning: Partitioning::Size,
        key,
        is_temporary: false,
    }
}

type Rows = Vec<(i64, Option<String>)>;

fn batch(rows: &Rows) -> RecordBatch {
    let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let names = StringViewArray::from_iter(rows.iter().map(|row| row.1.as_deref()));
    RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(names)]).unwrap()
}

fn rows_of(batches: &[RecordBatch]) -> Rows {
    let rows = batches.iter().flat_map(|batch| {
        let keys = batch.column(0).as_primitive::<Int64Type>().clone();
        let names = batch.column(1).as_string_view().clone();
        let row = move |row: usize| {
            let name = names.iter().nth(row).flatten().map(str::to_owned);
            (keys.value(row), name)
        };
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    });
    let mut rows: Rows = rows.collect();
    rows.sort();
    rows
}

/// What there should be: a table with a key, and one without.
#[derive(Default)]
struct Expected {
    keyed: BTreeMap<i64, Option<String>>,
    heap: Rows,
}

struct Both {
    engine: Engine,
    keyed: ObjectId,
    heap: ObjectId,
}

impl Both {
    fn check(&self, expected: &Expected, random: &mut Random) {
        let read = |object| collect(&self.engine, fragment(&self.engine, object, all_rows()), 2);
        let keyed: Rows = expected.keyed.clone().into_iter().collect();
        assert_eq!(rows_of(&read(self.keyed).unwrap()), keyed);
        let mut heap = expected.heap.clone();
        heap.sort();
        assert_eq!(rows_of(&read(self.heap).unwrap()), heap);
        let mut client = self.engine.rows(self.keyed).unwrap();
        let keys: Vec<i64> = (0..200).map(|_| random.below(40_000) as i64).collect();
        let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from(keys.clone()))];
        let both = [ColumnId(0), ColumnId(1)];
        let found = block_on(client.get(&columns, &both)).unwrap();
        let mut of_keys: Rows = keys
            .iter()
            .filter_map(|key| Some((*key, expected.keyed.get(key)?.clone())))
            .collect();
        of_keys.sort();
        assert_eq!(rows_of(&[found.rows]), of_keys);
    }

    fn change(&self, expected: &mut Expected, random: &mut Random) {
        let engine = &self.engine;
        match random.below(11) {
            // Many at once, some of which are large chunks.
            0 => {
                let count = [10, 3_000, 40_000][random.below(3)];
                let rows: Rows = (0..count).map(|key| (key, name(random))).collect();
                let mut writer = engine.writer(self.heap).unwrap();
                block_on(writer.append(batch(&rows))).unwrap();
                block_on(writer.commit()).unwrap();
                expected.heap.extend(rows);
            }
            1 => {
                let first = random.below(40_000) as i64;
                let rows: Rows = (first..first + 1 + random.below(5_000) as i64)
                    .map(|key| (key, name(random)))
                    .collect();
                let mut writer = engine.writer(self.keyed).unwrap();
                let appended = block_on(async {
                    writer.append(batch(&rows)).await?;
                    writer.commit().await
                });
                let is_there = |row: &(i64, Option<String>)| expected.keyed.contains_key(&row.0);
                match rows.iter().any(is_there) {
                    true => assert!(matches!(appended, Err(EngineError::DuplicateKey { .. }))),
                    false => {
                        appended.unwrap();
                        expected.keyed.extend(rows);
                    }
                }
            }
            2..6 => {
                let mut client = engine.rows(self.keyed).unwrap();
                let count = 1 + random.below(3);
                let rows: BTreeMap<i64, Option<String>> = (0..count)
                    .map(|_| (random.below(40_000) as i64, name(random)))
                    .collect();
                let rows: Rows = rows.into_iter().collect();
                block_on(client.put(batch(&rows))).unwrap();
                expected.keyed.extend(rows);
            }
            6 => {
                let mut client = engine.rows(self.keyed).unwrap();
                let first = random.below(40_000) as i64;
                let keys: Vec<i64> = (first..first + 1 + random.below(2_000) as i64).collect();
                let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from(keys.clone()))];
                block_on(client.remove(&columns)).unwrap();
                keys.iter().for_each(|key| drop(expected.keyed.remove(key)));
            }
            7 => {
                let to = AeuId(random.below(engine.topology().aeus().len()) as u16);
                let low = random.below(40_000) as i64;
                let high = low + random.below(20_000) as i64;
                block_on(engine.move_keys(self.keyed, low, high, to)).unwrap();
            }
            8 => {
                let mut aeu = || AeuId(random.below(engine.topology().aeus().len()) as u16);
                let (from, to) = (aeu(), aeu());
                block_on(engine.move_rows(self.heap, from, to, 50_000)).unwrap();
            }
            9 => {
                let durability = engine.durability().unwrap();
                let made = block_on(durability.checkpoint()).unwrap();
                assert_eq!(
                    made.rows,
                    (expected.keyed.len() + expected.heap.len()) as u64
                );
            }
            // A statement that is given up.
            _ => {
                let mut writer = engine.writer(self.heap).unwrap();
                block_on(writer.append(batch(&vec![(-1, name(random))]))).unwrap();
            }
        }
    }
}

/// Most are of few, so that there is a dictionary.
fn name(random: &mut Random) -> Option<String> {
    match random.below(20) {
        0 => None,
        1 => Some(format!("a name of its own, {}", random.bits())),
        _ => Some(format!("name {}", random.below(500))),
    }
}

const TOPOLOGIES: [(u16, u16); 5] = [(1, 1), (1, 2), (2, 2), (4, 2), (1, 3)];

#[test]
fn what_was_committed_is_there_again() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let directory = tempfile::tempdir().unwrap();
        let mut path = directory.path().join("db");
        let engine = open(&path, TOPOLOGIES[seed as usize % 5]).unwrap();
        let keyed = block_on(Home::create(
            &engine,
            definition("keyed", vec![ColumnId(0)]),
        ));
        let heap = block_on(Home::create(&engine, definition("heap", vec![])));
        let mut both = Both {
            engine,
            keyed: keyed.unwrap(),
            heap: heap.unwrap(),
        };
        let mut expected = Expected::default();
        for round in 0..8 {
            for _ in 0..random.below(40) {
                both.change(&mut expected, &mut random);
            }
            both.check(&expected, &mut random);
            if random.one_in(3) {
                // The copy is what goes on.
                let copy = directory.path().join(format!("copy {round}"));
                std::fs::create_dir(&copy).unwrap();
                let durability = both.engine.durability().unwrap();
                block_on(durability.backup(copy.clone())).unwrap();
                path = copy;
            }
            drop(both.engine);
            let engine = open(&path, TOPOLOGIES[random.below(5)]).unwrap();
            both = Both { engine, ..both };
            both.check(&expected, &mut random);
        }
    }
}

#[test]
fn definitions_and_what_they_lead_to_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let is = |name: &str, objects: Vec<ObjectId>| Definition {
        name: name.to_owned(),
        text: format!("text of {name}"),
        objects,
    };
    let defined = definition("t", vec![ColumnId(0)]);
    let temporary = ObjectDefinition {
        is_temporary: true,
        ..definition("temporary", vec![])
    };
    let (kept, nameless, of_process) = {
        let engine = open(path, (1, 2)).unwrap();
        let definitions = engine.definitions().unwrap();
        assert!(definitions.stored().is_empty());
        let create = |definition| block_on(Home::create(&engine, definition)).unwrap();
        let (kept, nameless) = (create(defined.clone()), create(definition("n", vec![])));
        let of_process = create(temporary);
        let changes = vec![
            DefinitionChange::Is(is("table t", vec![kept])),
            DefinitionChange::Is(is("view v", vec![])),
        ];
        block_on(definitions.store(changes)).unwrap();
        let gone = vec![DefinitionChange::IsGone("view v".to_owned())];
        block_on(definitions.store(gone)).unwrap();
        definitions
            .note(vec![DefinitionChange::Is(is("numbers s", vec![]))])
            .unwrap();
        let mut writer = engine.writer(of_process).unwrap();
        block_on(writer.append(batch(&vec![(1, None)]))).unwrap();
        block_on(writer.commit()).unwrap();
        (kept, nameless, of_process)
    };
    let engine = open(path, (1, 2)).unwrap();
    let definitions = engine.definitions().unwrap();
    let stored = definitions.stored();
    assert_eq!(stored, [is("numbers s", vec![]), is("table t", vec![kept])]);
    let wrong = definitions.reopen(kept, &definition("t", vec![]));
    assert!(matches!(wrong, Err(HomeError::Open(_))), "{wrong:?}");
    definitions.reopen(kept, &defined).unwrap();
    block_on(definitions.opened()).unwrap();
    assert_eq!(engine.row_count(kept).unwrap(), 0);
    assert!(engine.row_count(nameless).is_err());
    assert!(engine.row_count(of_process).is_err());
    let new = block_on(Home::create(&engine, defined)).unwrap();
    assert!(new > nameless, "no number is used twice");
}

#[test]
fn one_process_has_it_open() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), (1, 1)).unwrap();
    let error = open(directory.path(), (1, 1)).unwrap_err();
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    drop(engine);
    drop(open(directory.path(), (1, 1)).unwrap());
}

#[test]
fn a_directory_is_free_once_it_is_closed_whatever_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), (1, 2)).unwrap();
    let heap = block_on(Home::create(&engine, definition("heap", vec![]))).unwrap();
    let mut random = Random::new(1);
    let mut given_up = 0;
    for round in 0..20 {
        let engine = match round {
            0 => engine.clone(),
            _ => open(directory.path(), (1, 2)).unwrap(),
        };
        // Fewer than go to chunk files, so that each checkpoint writes all of them.
        let rows: Rows = (0..20_000).map(|key| (key, name(&mut random))).collect();
        let mut writer = engine.writer(heap).unwrap();
        block_on(writer.append(batch(&rows))).unwrap();
        block_on(writer.commit()).unwrap();
        let other = engine.clone();
        let (begins, begun) = std::sync::mpsc::channel();
        let checkpoint = std::thread::spawn(move || {
            let durability = other.durability().unwrap();
            begins.send(()).unwrap();
            block_on(durability.checkpoint()).map(drop)
        });
        begun.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(200 * round));
        engine.durability().unwrap().close().unwrap();
        // Nobody holds it any more, though the checkpoint's thread may still have the engine.
        let again = open(directory.path(), (2, 2)).unwrap();
        let read = collect(&again, fragment(&again, heap, all_rows()), 2).unwrap();
        assert_eq!(rows_of(&read).len(), 20_000 * (round as usize + 1));
        drop(again);
        if let Err(error) = checkpoint.join().unwrap() {
            assert!(error.to_string().contains("closed"), "{error}");
            given_up += 1;
        }
    }
    assert!(given_up > 0, "none was under way");
}

#[test]
fn more_than_the_memory_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), (1, 1)).unwrap();
    let heap = block_on(Home::create(&engine, definition("heap", vec![]))).unwrap();
    let mut random = Random::new(1);
    let rows: Rows = (0..400_000).map(|_| (random.bits() as i64, None)).collect();
    let mut writer = engine.writer(heap).unwrap();
    block_on(writer.append(batch(&rows))).unwrap();
    block_on(writer.commit()).unwrap();
    drop(engine);
    let error = Engine::start(Settings {
        topology: Topology::fake(1, 1),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 20),
        database: Some(DatabaseSettings {
            directory: directory.path().to_owned(),
            synchronous: Some(Synchronous::On),
            read_only: false,
        }),
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
    let engine = open(directory.path(), (1, 1)).unwrap();
    assert_eq!(engine.row_count(heap).unwrap(), 400_000);
}

/// What commits did is read in pieces, so it may be more than the memory.
#[test]
fn a_small_database_with_a_large_log_needs_little_memory() {
    const LIMIT: u64 = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), (1, 2)).unwrap();
    let keyed = block_on(Home::create(
        &engine,
        definition("keyed", vec![ColumnId(0)]),
    ));
    let keyed = keyed.unwrap();
    let mut random = Random::new(1);
    let mut name = || (0..12).map(|_| format!("{:016x}", random.bits())).collect();
    let mut client = engine.rows(keyed).unwrap();
    let mut rows = Rows::new();
    for _ in 0..400 {
        rows = (0..1_000).map(|key| (key, Some(name()))).collect();
        block_on(client.put(batch(&rows))).unwrap();
    }
    drop(client);
    let log = engine.durability().unwrap().status().log.unwrap();
    assert!(log.bytes > 2 * LIMIT, "{} bytes", log.bytes);
    drop(engine);
    let settings = |memory_limit| Settings {
        topology: Topology::fake(1, 2),
        huge_pages: HugePages::Never,
        memory_limit: Some(memory_limit),
        database: Some(DatabaseSettings {
            directory: directory.path().to_owned(),
            synchronous: Some(Synchronous::On),
            read_only: false,
        }),
    };
    let engine = Engine::start(settings(LIMIT)).unwrap();
    let found = collect(&engine, fragment(&engine, keyed, all_rows()), 2).unwrap();
    assert_eq!(rows_of(&found), rows);
    drop(engine);
    // Not even a group has room.
    let error = Engine::start(settings(1 << 16)).unwrap_err().to_string();
    assert!(error.contains("allow it more"), "{error}");
}

/// The bytes of all files of a database.
fn bytes_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(bytes_of(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn a_database_that_is_open_for_reading_only_denies_every_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let rows: Rows = (0..1000).map(|i| (i, Some(format!("row {i}")))).collect();
    let (keyed, heap) = {
        let engine = open(path, (1, 2)).unwrap();
        let create = |definition| block_on(Home::create(&engine, definition)).unwrap();
        let keyed = create(definition("keyed", vec![ColumnId(0)]));
        let heap = create(definition("heap", vec![]));
        for object in [keyed, heap] {
            let mut writer = engine.writer(object).unwrap();
            block_on(writer.append(batch(&rows))).unwrap();
            block_on(writer.commit()).unwrap();
        }
        (keyed, heap)
    };
    let before = bytes_of(path);
    let engines = [(1, 1), (2, 2)].map(|topology| open_for(path, topology, true).unwrap());
    for engine in &engines {
        for object in [keyed, heap] {
            assert_eq!(
                rows_of(&collect(engine, fragment(engine, object, all_rows()), 2).unwrap()),
                rows
            );
            let denied = |what: &str, error: EngineError| {
                assert!(
                    matches!(error, HomeError::ReadOnly { .. }),
                    "{what}: {error}"
                );
            };
            denied("add", Home::add(engine, &[object]).unwrap_err());
            denied(
                "change",
                block_on(Home::change(engine, &[object])).unwrap_err(),
            );
            denied("drop", block_on(engine.drop_object(object)).unwrap_err());
        }
        let denied = |done: Result<(), EngineError>| {
            let error = done.unwrap_err();
            assert!(matches!(error, HomeError::ReadOnly { .. }), "{error}");
        };
        let one = batch(&vec![(5, None)]);
        let key: ArrayRef = Arc::new(Int64Array::from(vec![5]));
        let mut client = engine.rows(keyed).unwrap();
        let found = block_on(client.get(&[Arc::clone(&key)], &[ColumnId(0)])).unwrap();
        assert_eq!(found.rows.num_rows(), 1);
        denied(block_on(client.put(one.clone())).map(drop));
        denied(block_on(client.insert(one.clone())).map(drop));
        denied(block_on(client.remove(&[Arc::clone(&key)])).map(drop));
        denied(block_on(client.put_if_unchanged(&found, one.clone())).map(drop));
        denied(block_on(client.remove_if_unchanged(&found)).map(drop));
        let mut changes = engine.row_changes().unwrap();
        denied(changes.insert(keyed, one.clone()));
        denied(changes.replace(keyed, &found, None));
        denied(changes.exchange(keyed, &[key], Some(one)));
        denied(block_on(Home::create(engine, definition("new", vec![]))).map(drop));
        let change = || vec![DefinitionChange::IsGone("table t".to_owned())];
        let definitions = Home::definitions(engine).unwrap();
        denied(block_on(definitions.store(change())));
        denied(definitions.note(change()));
        let durability = Home::durability(engine).unwrap();
        assert!(durability.is_read_only());
        denied(block_on(durability.checkpoint()).map(drop));
        // What ends with the process is written as ever.
        let temporary = ObjectDefinition {
            is_temporary: true,
            ..definition("temporary", vec![ColumnId(0)])
        };
        let temporary = block_on(Home::create(engine, temporary)).unwrap();
        let mut writer = engine.writer(temporary).unwrap();
        block_on(writer.append(batch(&rows))).unwrap();
        block_on(writer.commit()).unwrap();
        assert_eq!(engine.row_count(temporary).unwrap(), 1000);
        block_on(engine.drop_object(temporary)).unwrap();
        assert_eq!(
            rows_of(&collect(engine, fragment(engine, keyed, all_rows()), 2).unwrap()),
            rows
        );
    }
    let error = open(path, (1, 1)).unwrap_err().to_string();
    assert!(error.contains("open for reading"), "{error}");
    drop(engines);
    assert_eq!(bytes_of(path), before);
    let writer = open(path, (1, 1)).unwrap();
    let error = open_for(path, (1, 1), true).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(writer);
    let nothing = path.join("nothing");
    assert!(open_for(&nothing, (1, 1), true).is_err());
    assert!(!nothing.exists());
}
