//! Owners that panic over the commands of transfers: answers get lost, or come twice. All the same every key has one
//! owner, who has its value, and whoever waits for what became of a shift hears of it.

use super::*;
use crate::protocol::keys::{HandOver, Measure, MoveOut, TransferAcknowledged};
use crate::protocol::message::Message;
use eris_aeu::Faults;
use eris_numa::Topology;

/// What panics, before or after it is executed.
const ALL: &[u16] = &[
    MoveOut::KIND,
    TransferAcknowledged::KIND,
    Measure::KIND,
    HandOver::KIND,
];
/// Before it is executed where there are links: what is handed over would be lost with them.
const NO_LINKS: &[u16] = &[MoveOut::KIND, TransferAcknowledged::KIND, Measure::KIND];
const ROUNDS: usize = 12;

/// Faults, and a topology that can bear them.
fn faults(random: &mut Random) -> (Topology, Faults) {
    let is_early = random.one_in(2);
    let one_in = [3, 10][random.below(2)];
    // With an AEU per node everything is copied.
    let (nodes, cores) = [(2, 1), (4, 1), (1, 2), (2, 2), (4, 2)][random.below(5)];
    let faults = Faults {
        group_panics: if is_early { one_in } else { 0 },
        late_group_panics: if is_early { 0 } else { one_in },
        panicking_kinds: Some(if is_early && cores > 1 { NO_LINKS } else { ALL }),
        slice_panics: [0, 50][random.below(2)],
        partial_flushes: 3,
        few_slices: 3,
    };
    (Topology::fake(nodes, cores), faults)
}

/// Shifts keys, and looks at all of them whenever nothing is on its way.
async fn shift_and_check(index: KeyIndex, mut random: Random) -> u64 {
    let aeus = index.engine().topology().aeus().len();
    let mut person = Person {
        number: 0,
        client: index.client().unwrap(),
        entries: BTreeMap::new(),
        random: Random::new(random.below(1 << 30) as u64),
        next: 0,
    };
    for _ in 0..8 {
        person.put().await;
    }
    let own: Vec<u64> = (0..KEYS).step_by(CLIENTS as usize).collect();
    let mut moved = 0;
    for _ in 0..ROUNDS {
        let shifts = random_shifts(&mut random, aeus);
        for one in index.shift(&shifts).await.unwrap() {
            match one.result {
                Ok(all) => moved += all.keys,
                Err(reason) => {
                    // The last, where the answer that says why was lost.
                    let all = ["an injected fault", "an owner panicked", "was given up"];
                    let is_known = all.iter().any(|text| reason.contains(text));
                    assert!(is_known, "{reason}")
                }
            }
        }
        person.check(&own).await;
    }
    moved
}

/// Somebody else who asks the same owners.
async fn measure(index: KeyIndex) {
    for _ in 0..30 {
        match index.measure().await {
            Ok(segments) => assert!(segments.is_sorted_by_key(|segment| segment.low)),
            Err(EngineError::Panicked { message, .. }) => assert_eq!(message, "an injected fault"),
            Err(other) => panic!("{other}"),
        }
    }
}

fn simulate(seed: u64) -> u64 {
    let random = &mut Random::new(seed);
    let (topology, faults) = faults(random);
    let mut simulated = Simulated::new(seed, topology, faults);
    let index = simulated.engine.create_key_index("numbers", 0..=KEYS - 1);
    let moved = Rc::new(Cell::new(0));
    let random = Random::new(random.below(1 << 30) as u64);
    let shifting = shift_and_check(index.clone(), random);
    let all = moved.clone();
    simulated.client(async move { all.set(shifting.await) });
    simulated.client(measure(index.clone()));
    simulated.client(measure(index.clone()));
    simulated.run();
    let dropped = index.clone();
    simulated.client(async move { dropped.drop().await.unwrap() });
    simulated.run();
    drop(index);
    simulated.end();
    moved.get()
}

#[test]
fn answers_that_are_lost_or_come_twice_lose_no_key() {
    let moved = Cell::new(0);
    for_seeds(200, |seed| moved.set(moved.get() + simulate(seed)));
    println!("{} keys changed their owner", moved.get());
    assert!(moved.get() > 0, "nothing was moved");
}
