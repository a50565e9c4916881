//! What a number of a shared sequence costs, by way and by how many draw.

use eris_atomics::{Cost, Way, calibrate, cheapest};
use eris_numa::{DrawCost, Speeds, Topology, pin_current_thread};
use eris_types::NodeId;
use std::time::Duration;

/// Measures 1, 2, 4 … threads, and as many as there are AEUs.
pub fn draws(topology: &Topology, time: Duration) -> Vec<DrawCost> {
    let places = topology.aeus();
    let doubled = std::iter::successors(Some(1), |threads| Some(2 * threads));
    let mut counts: Vec<usize> = doubled
        .take_while(|&threads| threads < places.len())
        .collect();
    counts.push(places.len());
    let each = time / counts.len() as u32;
    let mut draws = Vec::new();
    for threads in counts {
        // Spread over all nodes.
        let chosen: Vec<_> = (0..threads)
            .map(|number| places[number * places.len() / threads])
            .collect();
        let contenders: Vec<NodeId> = chosen.iter().map(|place| place.node).collect();
        let pin = |number: usize| pinned(chosen[number].cpu);
        let costs = calibrate(&contenders, pin, each);
        // One alone has no other way.
        let costs = costs
            .into_iter()
            .filter(|cost| threads > 1 || cost.way == Way::Cpu);
        draws.extend(costs.map(|cost| DrawCost {
            way: cost.way.name().to_owned(),
            threads,
            nanoseconds: cost.nanoseconds,
        }));
    }
    draws
}

/// Without the right to it threads stay where they are, and so do AEUs.
pub(crate) fn pinned(cpu: Option<u32>) {
    if let Some(cpu) = cpu {
        let _ = pin_current_thread(cpu);
    }
}

/// How numbers are drawn best if so many threads do, as far as that is known. Nobody serves at a home.
pub fn best_way(speeds: &Speeds, threads: usize) -> Option<Way> {
    let measured = speeds.draws.iter().map(|draw| draw.threads);
    let nearest = measured.min_by_key(|measured| measured.abs_diff(threads))?;
    let costs = speeds.draws.iter().filter(|draw| draw.threads == nearest);
    let costs: Vec<Cost> = costs
        .filter_map(|draw| {
            let way = Way::ALL.into_iter().find(|way| way.name() == draw.way)?;
            (way != Way::Delegated).then_some(Cost {
                way,
                nanoseconds: draw.nanoseconds,
            })
        })
        .collect();
    (!costs.is_empty()).then(|| cheapest(&costs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_measured_up_to_all_workers() {
        let draws = draws(&Topology::fake(1, 3), Duration::from_millis(30));
        let counts: Vec<_> = draws
            .iter()
            .map(|draw| (draw.threads, &*draw.way))
            .collect();
        assert_eq!(counts[0], (1, "cpu"));
        assert_eq!(
            counts.iter().filter(|(threads, _)| *threads == 2).count(),
            3
        );
        assert_eq!(counts.last().unwrap().0, 3);
        assert!(draws.iter().all(|draw| draw.nanoseconds > 0.0));
    }

    #[test]
    fn the_cheapest_way_is_chosen_by_how_many_draw() {
        let draw = |way: Way, threads, nanoseconds| DrawCost {
            way: way.name().to_owned(),
            threads,
            nanoseconds,
        };
        let speeds = Speeds {
            draws: vec![
                draw(Way::Cpu, 1, 5.0),
                draw(Way::Cpu, 64, 90.0),
                draw(Way::Delegated, 64, 1.0),
                draw(Way::Hierarchical, 64, 20.0),
            ],
            ..Speeds::usual()
        };
        assert_eq!(best_way(&speeds, 2), Some(Way::Cpu));
        assert_eq!(best_way(&speeds, 48), Some(Way::Hierarchical));
        assert_eq!(best_way(&Speeds::usual(), 2), None);
    }
}
