//! What the last whole group says of a key holds, whatever groups before it are lost.
//!
//! ```text
//! t1: key 3, version 1    ▒ t2: key 3, version 2 ▒    t3: key 3, version 3 ──▶ version 3, and no other
//!                         ▒ t2: key 3 is gone    ▒                         ──▶ version 1: nobody knows better
//! ```

use super::files::{disk_of, files_of};
use super::{MANIFEST, parts};
use crate::Partitioning;
use crate::clients::engine::Engine;
use crate::simulations::damage::database::{open, rows_of};
use crate::simulations::simulated::{Simulated, for_seeds};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Random;
use eris_disk::{Disk, SimulatedDisk};
use eris_home::ObjectDefinition;
use eris_numa::Topology;
use eris_types::{ColumnId, ObjectId, RowId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const KEYS: usize = 12;
const COMMITS: i64 = 60;

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("key"), field("version")]))
}

/// The rows: key, version, row id.
async fn rows(engine: &Engine, object: ObjectId) -> Vec<(i64, i64, RowId)> {
    let columns = vec![ColumnId(0), ColumnId(1), ColumnId::ROW_ID];
    let batches = rows_of(engine, object, columns).await.unwrap();
    let rows = batches.iter().flat_map(|batch| {
        let column = |at: usize| {
            batch
                .column(at)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        };
        let (keys, versions, ids) = (column(0), column(1), column(2));
        let rows = keys.into_iter().zip(versions).zip(ids);
        rows.map(|((key, version), id)| (key, version, RowId(id as u64)))
    });
    rows.collect()
}

/// Gives a key a version in the place of the one that it has; or none.
async fn put(engine: &Engine, object: ObjectId, key: i64, version: Option<i64>) {
    let mut writer = engine.changer(object).await.unwrap();
    let old = rows(engine, object)
        .await
        .into_iter()
        .filter(|row| row.0 == key);
    let old: Vec<RowId> = old.map(|(.., id)| id).collect();
    writer.delete(old.into_iter()).unwrap();
    if let Some(version) = version {
        let columns = [key, version].map(|number| Arc::new(Int64Array::from(vec![number])) as _);
        let batch = RecordBatch::try_new(schema(), columns.to_vec());
        writer.append(batch.unwrap()).await.unwrap();
    }
    writer.commit().await.unwrap();
}

#[test]
fn of_rows_with_one_key_the_newest_is_kept() {
    for_seeds(3, |seed| {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(seed);
        let mut simulated = open(&disk, Topology::fake(1, 2)).unwrap();
        let engine = simulated.engine.clone();
        let definition = ObjectDefinition {
            name: "t".to_owned(),
            schema: schema(),
            partitioning: Partitioning::Size,
            key: vec![ColumnId(0)],
            is_temporary: false,
        };
        let object =
            simulated.result_of(async move { engine.create_defined(definition).await.unwrap() });
        // What each commit did.
        let mut history: Vec<(i64, Option<i64>)> = Vec::new();
        for version in 0..COMMITS {
            let key = random.below(KEYS) as i64;
            let version = (!random.one_in(4)).then_some(version);
            let last = history.iter().rfind(|(of, _)| *of == key);
            if version.is_none() && last.is_none_or(|(_, last)| last.is_none()) {
                continue;
            }
            let engine = simulated.engine.clone();
            simulated.result_of(async move { put(&engine, object, key, version).await });
            history.push((key, version));
        }
        simulated.close();
        let files = files_of(&disk);
        let (mut groups, mut kept) = (0, 0);
        for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("log")) {
            for part in parts(bytes)
                .into_iter()
                .filter(|at| bytes[*at..].starts_with(b"EGRP"))
            {
                let (mut damaged, mut changed) = (files.clone(), bytes.to_vec());
                changed[part + 16] ^= 1;
                damaged.insert(path.clone(), changed.into());
                if random.one_in(4) {
                    damaged.remove(Path::new(MANIFEST));
                }
                let from: Arc<dyn Disk> = Arc::new(disk_of(&damaged));
                let topology = Topology::fake(2, 1);
                let (mut salvaged, told) =
                    Simulated::open_remains(7, topology, from, &|_| None).unwrap();
                groups += 1;
                let engine = salvaged.engine.clone();
                let found = match engine.object(object) {
                    Ok(_) => salvaged.result_of(async move { rows(&engine, object).await }),
                    Err(_) => Vec::new(),
                };
                salvaged.end();
                let by_key: BTreeMap<i64, i64> = found.iter().map(|row| (row.0, row.1)).collect();
                assert_eq!(by_key.len(), found.len(), "a key twice: {found:?}");
                let written = |row: &(&i64, &i64)| history.contains(&(*row.0, Some(*row.1)));
                assert!(by_key.iter().all(|row| written(&row)), "{by_key:?}");
                assert!(!told.is_whole());
                // At most one commit is lost. So every key is as its last commit left it, or as the one before.
                for key in 0..KEYS as i64 {
                    let mut states = history.iter().rev().filter(|(of, _)| *of == key);
                    let last = states.next().and_then(|(_, version)| *version);
                    let before = states.next().and_then(|(_, version)| *version);
                    // What is deleted is a row. So an older one comes back if what ended it is lost.
                    let came_back = |now| last.is_none() && history.contains(&(key, now));
                    let now = by_key.get(&key).copied();
                    let is_object_lost = found.is_empty();
                    let is_known = now == last || now == before || came_back(now);
                    assert!(
                        is_known || is_object_lost,
                        "key {key}: {now:?}, not {last:?}"
                    );
                    kept += usize::from(now == last);
                }
            }
        }
        println!("{groups} groups, {kept} keys as they were");
        assert!(groups > COMMITS as usize / 2 && kept > groups * KEYS / 2);
    });
}
