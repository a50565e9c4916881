//! Memory lies on its owner's node: the system is asked for the node of every page of column chunks and indexes, after
//! loads, links, copies and reorganisations, and while statements run. With one node everything has to be there anyway;
//! `make test-numa` runs this on an emulated machine with several, and says by `ERIS_NUMA_NODES` how many have to be
//! found.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::Schema;
use common::*;
use eris_engine::{
    Engine, IndexKind, KeyIndex, Located, Moved, Partitioning, ReorganizationState, Settings,
    Shift, StoredPart,
};
use eris_fragment::{Executor, Expr, Fragment, Lookup, NumaStrategy, Output};
use eris_numa::{Buffer, HugePages, Node, Placement, Topology};
use eris_types::{AeuId, ColumnId, NodeId, ObjectId};
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 100_000;
const CHUNK: usize = 65_536;
const KEYS: u64 = 100_000;

/// How many nodes there have to be, if this is known.
fn nodes_wanted() -> Option<usize> {
    let wanted = std::env::var("ERIS_NUMA_NODES").ok()?;
    Some(wanted.parse().expect("ERIS_NUMA_NODES is a number"))
}

/// An engine on the machine as it is; `None` if the environment makes up another.
fn engine() -> Option<Engine> {
    let topology = Topology::detect().unwrap();
    if let Some(wanted) = nodes_wanted() {
        assert!(!topology.is_fake());
        assert_eq!(topology.nodes().len(), wanted, "nodes");
    }
    if topology.is_fake() {
        return None;
    }
    let settings = Settings {
        topology,
        huge_pages: HugePages::Auto,
        memory_limit: Some(512 << 20),
        database: None,
    };
    Some(Engine::start(settings).unwrap())
}

/// Shows where all of it lies, and how many pages there are by kind and node; fails if one of them is not on its
/// owner's node.
fn check(step: &str, parts: &[Located]) -> BTreeMap<(StoredPart, NodeId), usize> {
    let mut pages = BTreeMap::new();
    println!("{step}");
    for located in parts {
        let Some(placement) = located.placement() else {
            // Sandboxes may forbid the question.
            assert_eq!(nodes_wanted(), None, "the system does not tell");
            continue;
        };
        let Located {
            aeu, node, part, ..
        } = located;
        let on = placement.pages.iter();
        let on: Vec<String> = on.map(|(os, pages)| format!("{pages} on {os}")).collect();
        println!("  {aeu} on {node}, {part:?}: pages {}", on.join(", "));
        let home = located.os_node.expect("the topology is real");
        assert_eq!(placement.bytes_elsewhere(home), 0, "{step}: {placement:?}");
        let every_page = placement.page_bytes <= 4096;
        assert!(every_page, "only some were looked at");
        let here = placement.pages.iter().map(|(_, pages)| pages);
        *pages.entry((*part, *node)).or_default() += here.sum::<usize>();
    }
    pages
}

/// Whether every node with AEUs has something of these kinds.
fn check_spread(
    engine: &Engine,
    pages: &BTreeMap<(StoredPart, NodeId), usize>,
    parts: &[StoredPart],
) {
    for place in engine.topology().aeus() {
        for part in parts {
            let here = pages.get(&(*part, place.node)).copied().unwrap_or(0);
            assert!(
                here > 0 || pages.is_empty(),
                "{part:?} is not on {}: {pages:?}",
                place.node
            );
        }
    }
}

#[test]
fn chunks_and_indexes_of_tables_lie_on_their_owners_nodes() {
    let Some(engine) = engine() else {
        return;
    };
    let aeus = engine.topology().aeus().len();
    let object = create(&engine, Partitioning::Size);
    for number in 0..aeus {
        let first = number * ROWS / aeus;
        insert(&engine, object, rows(first as i64, ROWS / aeus)).unwrap();
    }
    let pages = check(
        "a table without key",
        &block_on(engine.locate(object)).unwrap(),
    );
    assert!(pages.keys().all(|(part, _)| *part == StoredPart::Rows));

    let keyed = engine.create_with_key("k", schema(), Partitioning::Size, &[ColumnId(0)]);
    let keyed = keyed.unwrap();
    insert(&engine, keyed, rows(0, ROWS)).unwrap();
    let mut indexes = Vec::new();
    for (column, kind) in [(0, IndexKind::Hashed), (1, IndexKind::Ordered)] {
        let columns = [ColumnId(column)];
        let made = engine.create_index(keyed, &columns, kind, Default::default());
        indexes.push(block_on(made).unwrap());
    }
    let located = || block_on(engine.locate(keyed)).unwrap();
    let pages = check("a table with key and two indexes", &located());
    let mut parts = vec![StoredPart::Rows, StoredPart::Key];
    parts.extend(indexes.iter().map(|index| StoredPart::Index(*index)));
    check_spread(&engine, &pages, &parts);
    // The tree of all owners lies with one of them.
    let made = engine.create_index(keyed, &[ColumnId(1)], IndexKind::Shared, Default::default());
    let shared = StoredPart::Index(block_on(made).unwrap());
    let pages = check("the same with a tree of all owners", &located());
    let nodes = pages.keys().filter(|(part, _)| *part == shared).count();
    assert!(nodes == 1 || pages.is_empty(), "{pages:?}");
    // Rows that come later, also between those that are there.
    insert(&engine, keyed, rows(ROWS as i64, ROWS / 10)).unwrap();
    insert(&engine, keyed, rows(-(ROWS as i64) / 10, ROWS / 10)).unwrap();
    check("the same with more rows", &located());
    assert_eq!(count_sum(&engine, keyed).unwrap().0, ROWS as i64 / 10 * 12);
}

/// Rows without a key change owners by the chunk, all of them from the last owner, which has several: to its neighbour,
/// whose columns are the old ones then, to every other node, and on from there.
#[test]
fn rows_that_change_owners_lie_on_the_new_owners_node() {
    let Some(engine) = engine() else {
        return;
    };
    let places = engine.topology().aeus();
    let object = create(&engine, Partitioning::Range(ColumnId(0)));
    // Ranges are cut by the first statement; what comes later all goes to the last AEU.
    insert(&engine, object, rows(0, 1_000)).unwrap();
    let chunks = 1 + engine.topology().nodes().len();
    let count = chunks * CHUNK + 1_000;
    insert(&engine, object, rows(1_000, count - 1_000)).unwrap();
    let made = engine.create_index(
        object,
        &[ColumnId(0)],
        IndexKind::Ordered,
        Default::default(),
    );
    let index = block_on(made).unwrap();
    let expected = count_sum(&engine, object).unwrap();
    let look = |step: &str| check(step, &block_on(engine.locate(object)).unwrap());
    look("a table without key, most of it one owner's");

    let last = places.last().expect("there are AEUs");
    let give = |from: AeuId, to: AeuId| {
        block_on(engine.move_rows(object, from, to, CHUNK as u64)).unwrap()
    };
    let neighbour = (places.iter()).find(|one| one.node == last.node && one.aeu != last.aeu);
    if let Some(neighbour) = neighbour {
        let moved = give(last.aeu, neighbour.aeu);
        assert!(moved.linked > 0 && moved.copied == 0, "{moved:?}");
        look("a chunk linked to the last owner's neighbour");
    }
    let others = engine.topology().nodes().iter().map(|node| node.id);
    for node in others.filter(|node| *node != last.node) {
        let mut here = places.iter().filter(|place| place.node == node);
        let Some(place) = here.next() else {
            continue;
        };
        let moved = give(last.aeu, place.aeu);
        assert!(moved.linked == 0 && moved.copied > 0, "{moved:?}");
        look(&format!("a chunk copied to {} of {node}", place.aeu));
        if let Some(next) = here.next() {
            let moved = give(place.aeu, next.aeu);
            assert!(moved.linked > 0 && moved.copied == 0, "{moved:?}");
            look(&format!("and linked to {}", next.aeu));
        }
    }
    if let Some(neighbour) = neighbour
        && let Some(far) = places.iter().find(|place| place.node != last.node)
    {
        // Its columns have been the last owner's once.
        let moved = give(neighbour.aeu, far.aeu);
        assert!(moved.linked == 0 && moved.copied > 0, "{moved:?}");
        let pages = look("what was linked copied to another node");
        check_spread(
            &engine,
            &pages,
            &[StoredPart::Rows, StoredPart::Index(index)],
        );
    }
    assert_eq!(count_sum(&engine, object).unwrap(), expected);
}

#[test]
fn rows_with_a_key_that_change_owners_lie_on_the_new_owners_node() {
    let Some(engine) = engine() else {
        return;
    };
    let places = engine.topology().aeus();
    let object = engine.create_with_key("k", schema(), Partitioning::Size, &[ColumnId(0)]);
    let object = object.unwrap();
    insert(&engine, object, rows(0, ROWS)).unwrap();
    let made = engine.create_index(
        object,
        &[ColumnId(1)],
        IndexKind::Ordered,
        Default::default(),
    );
    let parts = [
        StoredPart::Rows,
        StoredPart::Key,
        StoredPart::Index(block_on(made).unwrap()),
    ];
    let look = |step: &str| check(step, &block_on(engine.locate(object)).unwrap());
    let expected = count_sum(&engine, object).unwrap();
    // Everybody's keys go to the AEU behind the next one: mostly to another node, in the end to all of them.
    let (count, width) = (places.len(), ROWS / places.len());
    for (number, place) in places.iter().enumerate() {
        let low = (number * width) as i64;
        let to = &places[(number + 2) % count];
        let moved = block_on(engine.move_keys(object, low, low + width as i64 - 1, to.aeu));
        let moved = moved.unwrap();
        let is_other = to.aeu != place.aeu;
        assert!(!is_other || moved.keys > 0 && moved.linked + moved.copied > 0);
        look(&format!(
            "keys of {} moved to {} of {}",
            place.aeu, to.aeu, to.node
        ));
    }
    check_spread(&engine, &look("everybody's keys moved"), &parts);
    assert_eq!(count_sum(&engine, object).unwrap(), expected);
}

/// What is accounted to buffers, by node.
fn buffers(engine: &Engine) -> BTreeMap<NodeId, u64> {
    let usage = engine.memory().usage().into_iter();
    let usage = usage.filter(|usage| usage.object == ObjectId(0));
    usage.map(|usage| (usage.node, usage.bytes)).collect()
}

/// Waits until every node with AEUs has so much for buffers, and looks whether all of its memory is there.
fn check_buffers(step: &str, engine: &Engine, least: u64) {
    let nodes = engine.topology().nodes().iter();
    let has_aeus = |node: &&Node| {
        let mut places = engine.topology().aeus().iter();
        places.any(|place| place.node == node.id)
    };
    let began = Instant::now();
    for node in nodes.filter(has_aeus) {
        let here = || buffers(engine).get(&node.id).copied().unwrap_or(0);
        while here() < least {
            let waited = began.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "{step}: {:?}",
                buffers(engine)
            );
            std::thread::yield_now();
        }
        let Some(placement) = engine.memory().node(node.id).placement() else {
            assert_eq!(nodes_wanted(), None, "the system does not tell");
            continue;
        };
        println!("{step}: {} bytes on {}, {placement:?}", here(), node.id);
        let home = node.os_node.expect("the topology is real");
        assert_eq!(placement.bytes_elsewhere(home), 0, "{step}");
    }
}

/// How many rows [`spread`] makes.
fn spread_rows(engine: &Engine) -> usize {
    CHUNK * (2 * engine.topology().aeus().len()).max(8)
}

/// A table of which every owner has some chunks.
fn spread(engine: &Engine) -> ObjectId {
    let object = create(engine, Partitioning::Size);
    for first in (0..spread_rows(engine)).step_by(CHUNK) {
        insert(engine, object, rows(first as i64, CHUNK)).unwrap();
    }
    object
}

#[test]
fn rows_of_a_query_lie_on_the_node_where_they_were_found() {
    let Some(engine) = engine() else {
        return;
    };
    let from = spread(&engine);
    let fields = schema();
    let fields = fields.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let fields = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let to = engine.create("t", fields, Partitioning::Size).unwrap();
    let mut all = fragment(&engine, from, all_rows());
    all.options.strategy = NumaStrategy::Push;
    let mut writer = engine.writer(to).unwrap();
    let rows = {
        let appending = writer.append_from(&all).unwrap();
        block_on(appending.expect("they are many").done).unwrap()
    };
    assert_eq!(block_on(writer.commit()).unwrap(), rows);
    let by_node = |object| {
        let mut rows = BTreeMap::new();
        for partition in engine.partitions(object).unwrap() {
            *rows.entry(partition.node).or_insert(0) += partition.rows;
        }
        rows
    };
    assert_eq!(by_node(to), by_node(from));
    let pages = check(
        "a table of a query's rows",
        &block_on(engine.locate(to)).unwrap(),
    );
    check_spread(&engine, &pages, &[StoredPart::Rows]);
}

#[test]
fn what_rows_are_looked_up_in_lies_on_each_node() {
    let Some(engine) = engine() else {
        return;
    };
    let object = spread(&engine);
    let count = spread_rows(&engine) as i64;
    let keys = || (0..count).step_by(5);
    let values = Int64Array::from_iter_values(keys().map(|key| count - key));
    let side = RecordBatch::try_from_iter([
        (
            "key",
            Arc::new(Int64Array::from_iter_values(keys())) as ArrayRef,
        ),
        ("value", Arc::new(values)),
    ]);
    let joined = Fragment {
        lookups: vec![Lookup::new(0, side.unwrap())],
        output: Output::Rows {
            columns: vec![Expr::Column(0), Expr::Column(2)],
            limit: None,
        },
        ..fragment(&engine, object, all_rows())
    };
    // Nobody reads its rows: so it waits when all have begun.
    let execution = engine.execute(Arc::new(joined), 1).unwrap();
    // A number of 32 bits for each place between the keys, beside whatever else there is.
    let table = 4 * (count as u64 - 5);
    let began = Instant::now();
    for place in engine.topology().aeus() {
        let is_there = || {
            let placement = engine.memory().node(place.node).placement();
            let bytes = |placement: Placement| {
                let pages = placement.pages.iter().map(|(_, pages)| pages);
                (pages.sum::<usize>() * placement.page_bytes) as u64
            };
            placement.is_none_or(|placement| bytes(placement) >= table)
        };
        while !is_there() {
            let waited = began.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "no table on {}",
                place.node
            );
            std::thread::yield_now();
        }
    }
    check_buffers("a build side", &engine, table);
    let batches = execution.streams.into_iter();
    let batches = batches.flat_map(|stream| block_on(stream.collect::<Vec<_>>()));
    let mut found = 0;
    for batch in batches {
        let batch = batch.unwrap();
        let column = |at: usize| {
            batch
                .column(at)
                .as_primitive::<Int64Type>()
                .values()
                .clone()
        };
        let sums = column(0)
            .iter()
            .zip(&*column(1))
            .map(|(key, value)| key + value)
            .collect::<Vec<_>>();
        assert!(sums.iter().all(|sum| *sum == count), "{sums:?}");
        found += sums.len();
    }
    assert_eq!(found, keys().count());
}

#[test]
fn groups_are_accounted_to_the_nodes_that_make_them() {
    let Some(engine) = engine() else {
        return;
    };
    let object = spread(&engine);
    let by_id = Output::Groups {
        keys: vec![Expr::Column(0)],
        aggregates: Vec::new(),
    };
    let before = buffers(&engine);
    let execution = engine
        .execute(Arc::new(fragment(&engine, object, by_id)), 1)
        .unwrap();
    check_buffers("groups", &engine, 1 << 20);
    drop(execution);
    let began = Instant::now();
    while buffers(&engine) != before {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{:?}",
            buffers(&engine)
        );
        std::thread::yield_now();
    }
}

/// Puts every key in, with its double as value.
fn fill(index: &KeyIndex) {
    let mut client = index.client().unwrap();
    let entries: Vec<(u64, u64)> = (0..KEYS).map(|key| (key, 2 * key)).collect();
    for entries in entries.chunks(5_000) {
        client.put(entries, &mut vec![None; entries.len()]).unwrap();
    }
}

fn check_values(index: &KeyIndex) {
    let mut client = index.client().unwrap();
    let keys: Vec<u64> = (0..KEYS).collect();
    for keys in keys.chunks(5_000) {
        let mut values = vec![None; keys.len()];
        client.get(keys, &mut values).unwrap();
        assert!(
            values
                .iter()
                .zip(keys)
                .all(|(value, key)| *value == Some(2 * key))
        );
    }
}

fn shift(index: &KeyIndex, low: u64, high: u64, to: AeuId) -> Moved {
    let shifted = block_on(index.shift(&[Shift { low, high, to }])).unwrap();
    let moved = shifted.iter().map(|one| one.result.clone().unwrap());
    moved.fold(Moved::default(), |all, one| Moved {
        keys: all.keys + one.keys,
        linked: all.linked + one.linked,
        copied: all.copied + one.copied,
    })
}

#[test]
fn keys_that_change_owners_lie_on_the_new_owners_node() {
    let Some(engine) = engine() else {
        return;
    };
    let index = engine.create_key_index("numbers", 0..=KEYS - 1);
    fill(&index);
    let look = |step: &str| check(step, &block_on(index.locate()).unwrap());
    check_spread(&engine, &look("a bare index"), &[StoredPart::Key]);

    let places = engine.topology().aeus();
    let share = KEYS / places.len() as u64;
    let of = |node: NodeId| places.iter().filter(move |place| place.node == node);
    let first = &places[0];
    if let Some(second) = of(first.node).nth(1) {
        let moved = shift(&index, 0, share / 2, second.aeu);
        assert!(moved.linked > 0, "{moved:?}");
        look("half of the first owner's keys linked to its neighbour");
        let moved = shift(&index, share / 2 + 1, share - 1, second.aeu);
        assert!(moved.linked > 0 && moved.copied == 0, "{moved:?}");
        look("the other half, too");
    }
    let others = engine.topology().nodes().iter().map(|node| node.id);
    for node in others.filter(|node| *node != first.node) {
        let Some(place) = of(node).next() else {
            continue;
        };
        // Most keys go to each node, one after the other: whole segments, and parts of them.
        let (low, high) = (share / 3, KEYS - share / 3);
        let moved = shift(&index, low, high, place.aeu);
        assert!(moved.copied > 0, "{moved:?}");
        look(&format!("most keys copied to {} of {node}", place.aeu));
    }
    // Back, so that everybody has some.
    for (number, place) in (0..).zip(places) {
        shift(&index, number * share, (number + 1) * share - 1, place.aeu);
    }
    check_spread(&engine, &look("everybody's keys back"), &[StoredPart::Key]);

    check_values(&index);
    let mut all = block_on(index.reorganize()).unwrap();
    let is_at_work = |state| {
        !matches!(
            state,
            ReorganizationState::Idle | ReorganizationState::Sampling
        )
    };
    while all.iter().any(|one| is_at_work(one.state)) {
        look("while it is reorganised");
        all = block_on(index.reorganization()).unwrap();
    }
    let moved = all
        .iter()
        .filter_map(|one| one.effect.as_ref())
        .map(|effect| effect.nodes_moved);
    assert!(moved.sum::<u64>() > 0, "{all:?}");
    check_spread(&engine, &look("reorganised"), &[StoredPart::Key]);
    check_values(&index);
}

/// The system takes pages elsewhere when a node is full. That is good, as long as somebody tells.
#[test]
fn what_a_full_node_has_elsewhere_is_told() {
    let Some(engine) = engine() else {
        return;
    };
    let topology = engine.topology();
    let with_aeus = |node: &&Node| topology.aeus().iter().any(|place| place.node == node.id);
    let nodes = topology.nodes().iter().filter(with_aeus);
    let smallest = nodes
        .min_by_key(|node| node.memory_bytes)
        .expect("there are AEUs");
    // Only where filling a node is cheap and others have room: a virtual machine made for it.
    if topology.nodes().len() < 2 || smallest.memory_bytes > 300 << 20 {
        assert_eq!(nodes_wanted(), None, "nodes are too large for this test");
        return;
    }
    let home = smallest.os_node.expect("the topology is real");
    let memory = engine.memory().node(smallest.id);
    let index = engine.create_key_index("numbers", 0..=KEYS - 1);
    fill(&index);
    assert_eq!(memory.placement().unwrap().bytes_elsewhere(home), 0);

    // Others take the node's memory, all of it but what the kernel keeps: also between the buffers that are there.
    let mut taken = Vec::new();
    let elsewhere = |buffer: &Buffer| buffer.placement().unwrap().bytes_elsewhere(home);
    while taken.last().is_none_or(|last| elsewhere(last) == 0) {
        let mut buffer = memory.allocate(index.id(), 512 << 10).unwrap();
        buffer.as_mut_slice::<u64>().fill(1);
        taken.push(buffer);
    }
    let place = topology
        .aeus()
        .iter()
        .find(|place| place.node == smallest.id)
        .expect("it has AEUs");
    shift(&index, 0, KEYS, place.aeu);
    check_values(&index);
    let told = |located: Vec<Located>| {
        let here = located.into_iter().filter(|one| one.aeu == place.aeu);
        here.map(|one| one.placement().unwrap().bytes_elsewhere(home))
            .sum::<u64>()
    };
    let of_index = told(block_on(index.locate()).unwrap());
    let of_node = memory.placement().unwrap().bytes_elsewhere(home);
    println!(
        "elsewhere than on the full {}: {of_index} bytes of the index, {of_node} of all",
        smallest.id
    );
    assert!(
        of_index > 0 && of_node >= of_index,
        "{of_index} of {of_node}"
    );
}
