//! Measures everything, within a time.

use crate::copies::copies;
use crate::draws::{draws, pinned};
use crate::kept::Identity;
use crate::messages::message;
use crate::scans::{copy, scans};
use eris_numa::measure::{MeasureError, Measurements, Options};
use eris_numa::{Memory, Profile, Speeds, Topology, thread_cpu_time};
use eris_types::ObjectId;
use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

/// A measurement takes at most about so long.
pub const LONGEST: Duration = Duration::from_secs(3);

/// What the buffers are accounted to: a number that no catalogue gives out.
pub(crate) const MEASURING: ObjectId = ObjectId(u32::MAX);

/// Cores are free if who spins on them has them for so much of the time.
const FREE: f64 = 0.9;
/// It spins for so long.
const LOOK: Duration = Duration::from_millis(5);

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Measuring {
    /// How long it may take.
    pub time: Duration,
    /// Bytes that are read, a power of two. What is larger than the caches is memory.
    pub buffer_bytes: usize,
}

impl Default for Measuring {
    fn default() -> Self {
        Measuring {
            time: LONGEST,
            buffer_bytes: 128 << 20,
        }
    }
}

/// Measures the machine, as far as `topology` has of it. Takes all cores, so that it is best done when nobody else
/// needs them.
///
/// # Errors
/// There is no memory for the buffers, or a thread cannot be bound to its core.
pub fn measure(
    topology: &Topology,
    memory: &Memory,
    how: Measuring,
) -> Result<Profile, MeasureError> {
    let Measuring { time, buffer_bytes } = how;
    let links = Options {
        time: time * 2 / 5,
        runs: 3,
        buffer_bytes: Some(buffer_bytes),
    };
    let links = eris_numa::measure::measure(topology, memory, &links)?;
    profile(topology, memory, how, &links)
}

/// What was measured of links, as a profile with all the rest, which is measured now in about half of the time.
///
/// # Errors
/// As [`measure`].
pub fn profile(
    topology: &Topology,
    memory: &Memory,
    how: Measuring,
    links: &Measurements,
) -> Result<Profile, MeasureError> {
    let identity = Identity::here(topology);
    let profile = Profile::measured(&identity.name, topology, links);
    let of_copies = Measuring {
        time: how.time / 10,
        ..how
    };
    // Where memory is short they stay unknown: what was measured before is worth more.
    let copies = copies(&profile, topology, memory, of_copies).unwrap_or_default();
    let speeds = speeds(topology, memory, how)?;
    let profile = profile.with_copies(copies).with_speeds(speeds);
    Ok(profile.with_source(identity.source()))
}

/// What cores do, measured in about half of the time.
fn speeds(topology: &Topology, memory: &Memory, how: Measuring) -> Result<Speeds, MeasureError> {
    let Measuring { time, buffer_bytes } = how;
    let first = topology.aeus()[0];
    let mut buffer = memory.node(first.node).allocate(MEASURING, buffer_bytes)?;
    // Two kernels, and a copy.
    let windows = 2 * crate::scans::WIDTHS.len() + 1;
    let window = time / 4 / windows as u32;
    let read = || {
        pinned(first.cpu);
        fill(buffer.as_mut_slice());
        let words = buffer.as_slice();
        (scans(words, window), copy(words, window))
    };
    // A thread of its own, for binding it must not bind the caller.
    let (scans, copied) = thread::scope(|scope| {
        let read = scope.spawn(read).join();
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let last = topology.aeus()[topology.aeus().len() - 1];
    let message = message(time / 20, |number| pinned([first, last][number].cpu));
    let mut speeds = Speeds {
        copy: copied / 1e9,
        message,
        scans,
        draws: draws(topology, time / 10),
    };
    let scans = speeds
        .scans
        .iter_mut()
        .map(|scan| &mut scan.gigabytes_per_second);
    let draws = speeds.draws.iter_mut().map(|draw| &mut draw.nanoseconds);
    let all = [&mut speeds.copy, &mut speeds.message].into_iter();
    all.chain(scans)
        .chain(draws)
        .for_each(|number| *number = two_digits(*number));
    Ok(speeds)
}

/// More digits would say more than was measured.
pub(crate) fn two_digits(number: f64) -> f64 {
    ((number * 100.0).round() / 100.0).max(0.01)
}

/// Scattered words.
pub(crate) fn fill(words: &mut [u64]) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for word in words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *word = state;
    }
}

/// Whether nobody else uses the cores of the AEUs.
pub fn are_free(topology: &Topology) -> bool {
    // Made-up AEUs may be more than cores, and would be in each other's way.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (topology.aeus().iter().take(cores))
            .map(|place| {
                scope.spawn(|| {
                    pinned(place.cpu);
                    share_of_core()
                })
            })
            .collect();
        // None is left out: all are waited for.
        let shares: Vec<f64> = (threads.into_iter())
            .map(|thread| thread.join().unwrap_or(0.0))
            .collect();
        shares.into_iter().all(|share| share >= FREE)
    })
}

/// How much of its core a thread has that spins.
fn share_of_core() -> f64 {
    let (before, began) = (thread_cpu_time(), Instant::now());
    while began.elapsed() < LOOK {
        spin_loop();
    }
    let (had, wanted) = (thread_cpu_time() - before, began.elapsed());
    had.as_secs_f64() / wanted.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, ScanKernel};
    use eris_types::NodeId;

    #[test]
    fn a_machine_is_measured_with_all_that_a_profile_has() {
        let topology = Topology::fake(2, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(64 << 20)).unwrap();
        let how = Measuring {
            time: Duration::from_millis(200),
            buffer_bytes: 1 << 20,
        };
        let profile = measure(&topology, &memory, how).unwrap();
        assert_eq!((profile.nodes(), profile.aeus_per_node), (2, 1));
        assert!(profile.link(NodeId(0), NodeId(1)).gigabytes_per_second > 0.0);
        let copies = |home| profile.link(NodeId(0), NodeId(home)).copies.len();
        assert!(copies(0) == 0 && copies(1) > 0);
        let speeds = profile.speeds().unwrap();
        assert!(speeds.scan(ScanKernel::Compare, 10.0) > 0.0);
        assert!(speeds.copy > 0.0 && speeds.message > 0.0 && !speeds.draws.is_empty());
        let small = Memory::new(&topology, HugePages::Never, Some(1 << 19)).unwrap();
        assert!(matches!(
            measure(&topology, &small, how),
            Err(MeasureError::Memory(_))
        ));
    }
}
