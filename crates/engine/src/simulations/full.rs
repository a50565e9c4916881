//! Disks that are full: a checkpoint gives room back where there is none left, and is made though files that are mostly
//! dead cannot be written anew.

use super::simulated::Simulated;
use crate::{EngineError, Partitioning};
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_aeu::{Faults, Random};
use eris_disk::{Access, Disk, Fault, Operation, SimulatedDisk};
use eris_home::{Definition, DefinitionChange, Definitions, Durability, ObjectDefinition};
use eris_numa::Topology;
use eris_types::{ColumnId, ObjectId, RowId};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// So many rows are in a chunk file.
const MANY: usize = 40_000;

fn open(disk: &SimulatedDisk) -> Simulated {
    Simulated::open(7, Topology::fake(1, 2), Faults::default(), disk.clone()).unwrap()
}

fn batch(rows: usize, random: &mut Random) -> RecordBatch {
    let numbers = Int64Array::from_iter_values((0..rows).map(|_| random.bits() as i64));
    let field = Field::new("n", DataType::Int64, true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(numbers)]).unwrap()
}

fn create(simulated: &mut Simulated) -> ObjectId {
    let engine = simulated.engine.clone();
    simulated.result_of(async move {
        let definition = ObjectDefinition {
            name: "t".to_owned(),
            schema: batch(0, &mut Random::new(1)).schema(),
            partitioning: Partitioning::Size,
            key: vec![],
            is_temporary: false,
        };
        let object = engine.create_defined(definition).await.unwrap();
        let definition = Definition {
            name: "table t".to_owned(),
            text: "CREATE TABLE t".to_owned(),
            objects: vec![object],
        };
        let stored = engine.store(vec![DefinitionChange::Is(definition)]).await;
        stored.unwrap();
        object
    })
}

fn append(
    simulated: &mut Simulated,
    object: ObjectId,
    rows: RecordBatch,
) -> Result<(), EngineError> {
    let engine = simulated.engine.clone();
    simulated.result_of(async move {
        let mut writer = engine.writer(object)?;
        writer.append(rows).await?;
        writer.commit().await.map(drop)
    })
}

fn delete(simulated: &mut Simulated, object: ObjectId, ids: Vec<RowId>) {
    let engine = simulated.engine.clone();
    simulated.result_of(async move {
        let mut writer = engine.changer(object).await.unwrap();
        writer.delete(ids.into_iter()).unwrap();
        writer.commit().await.unwrap();
    });
}

fn ids(simulated: &mut Simulated, object: ObjectId) -> Vec<RowId> {
    let engine = simulated.engine.clone();
    let columns = vec![ColumnId::ROW_ID];
    let all = simulated.result_of(async move {
        let rows = super::damage::rows_of(&engine, object, columns).await;
        rows.unwrap()
    });
    let mut ids: Vec<RowId> = all
        .iter()
        .flat_map(|batch| {
            let ids = batch.column(0).as_any().downcast_ref::<Int64Array>();
            let ids = ids.expect("ids are numbers").values().to_vec();
            ids.into_iter().map(|id| RowId(id as u64))
        })
        .collect();
    ids.sort_unstable();
    ids
}

fn count(simulated: &mut Simulated, object: ObjectId) -> usize {
    ids(simulated, object).len()
}

fn checkpoint(simulated: &mut Simulated) -> Result<(), EngineError> {
    let engine = simulated.engine.clone();
    simulated.result_of(async move { engine.checkpoint().await.map(drop) })
}

/// Others take all that is free.
fn fill(disk: &SimulatedDisk) {
    let path = Path::new("of others");
    let file = disk.open(path, Access::ReadWrite);
    let file = file.or_else(|_| disk.create(path)).unwrap();
    let free = disk.free().unwrap();
    file.allocate(file.len().unwrap() + free).unwrap();
}

#[test]
fn rows_are_deleted_from_a_full_disk_and_a_checkpoint_makes_room_for_others() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(seed);
        disk.set_capacity(Some(12 << 20));
        let mut simulated = open(&disk);
        let object = create(&mut simulated);
        let mut rows = 0;
        // Large chunks find no room first.
        for some in [MANY, 3_000, 200] {
            loop {
                match append(&mut simulated, object, batch(some, &mut random)) {
                    Ok(()) => rows += some,
                    Err(EngineError::DiskFull { .. }) => break,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        fill(&disk);
        assert!(rows > 2 * MANY, "{rows} rows");
        assert_eq!(count(&mut simulated, object), rows);
        append(&mut simulated, object, batch(200, &mut random)).unwrap_err();
        let kept = [0, 1_000][seed as usize % 2];
        let all = ids(&mut simulated, object);
        delete(&mut simulated, object, all[kept..].to_vec());
        checkpoint(&mut simulated).unwrap();
        // Files of the log were removed, and chunk files.
        append(&mut simulated, object, batch(MANY, &mut random)).unwrap();
        assert_eq!(count(&mut simulated, object), kept + MANY);
        simulated.close();
        let mut simulated = open(&disk.kill());
        assert_eq!(count(&mut simulated, object), kept + MANY);
        checkpoint(&mut simulated).unwrap();
        simulated.close();
    }
}

#[test]
fn a_checkpoint_is_made_though_files_cannot_be_written_anew() {
    let disk = SimulatedDisk::new(1);
    let mut random = Random::new(1);
    let mut simulated = open(&disk);
    let object = create(&mut simulated);
    // Later files have several chunks, of which about every third one is left.
    let (mut before, mut dead) = (BTreeSet::new(), Vec::new());
    for nth in 0..15 {
        append(&mut simulated, object, batch(MANY, &mut random)).unwrap();
        let all: BTreeSet<RowId> = ids(&mut simulated, object).into_iter().collect();
        if nth % 3 > 0 {
            dead.extend(all.difference(&before).copied());
        }
        before = all;
    }
    delete(&mut simulated, object, dead);
    let no_room = Fault::at(1).of(Operation::Create).on(".chunks").full();
    disk.plan(no_room);
    let not_rewritten = |simulated: &mut Simulated| {
        checkpoint(simulated).unwrap();
        let status = Durability::status(&simulated.engine);
        assert!(status.failed_checkpoint.is_none());
        let made = status.snapshot.and_then(|snapshot| snapshot.made);
        made.expect("one was made").not_rewritten
    };
    let told = not_rewritten(&mut simulated).expect("the disk was full");
    assert!(told.contains("full"), "{told}");
    assert_eq!(count(&mut simulated, object), 5 * MANY);
    // The next one tries again.
    assert_eq!(not_rewritten(&mut simulated), None);
    assert_eq!(count(&mut simulated, object), 5 * MANY);
    simulated.close();
}
