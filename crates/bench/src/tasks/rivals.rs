//! The same work by a channel, Tokio and Rayon: a number is added to a sum.

use super::{Measured, TasksBenchError};
use eris_numa::Topology;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

const TASKS: u64 = 1_000_000;
const BURST: u64 = 256;

/// A name, the words of each task, and a measurement.
pub type Case<'a> = (&'static str, Option<u64>, Box<dyn Fn() -> Measured + 'a>);

/// All rivals, on as many threads as there are AEUs of the tasks beside them.
pub fn all(topology: &Topology) -> Vec<Case<'_>> {
    let threads = topology.aeus().len().min(2);
    vec![
        ("channel, same thread", None, Box::new(channel_on_one)),
        ("channel, other thread", None, Box::new(channel_to_another)),
        ("Tokio, same thread", None, Box::new(|| tokio(1))),
        (
            "Tokio, other threads",
            None,
            Box::new(move || tokio(threads)),
        ),
        ("Rayon, same thread", None, Box::new(|| rayon(1))),
        (
            "Rayon, other threads",
            None,
            Box::new(move || rayon(threads)),
        ),
    ]
}

fn each(begun: Instant) -> f64 {
    begun.elapsed().as_nanos() as f64 / TASKS as f64
}

/// Nanoseconds of a function that is called.
pub fn called() -> f64 {
    let add: fn(&AtomicU64, u64) = black_box(|sum, number| {
        sum.store(sum.load(Relaxed).wrapping_add(number), Relaxed);
    });
    let (sum, begun) = (AtomicU64::new(0), Instant::now());
    (0..TASKS).for_each(|number| add(&sum, number));
    black_box(sum.into_inner());
    each(begun)
}

fn channel_on_one() -> Measured {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let (mut sum, begun) = (0_u64, Instant::now());
    for _ in 0..TASKS / BURST {
        for number in 0..BURST {
            sender
                .send([number; 4])
                .map_err(|error| TasksBenchError::Rival(error.to_string()))?;
        }
        receiver
            .try_iter()
            .for_each(|[number, ..]| sum = sum.wrapping_add(number));
    }
    black_box(sum);
    Ok(each(begun))
}

fn channel_to_another() -> Measured {
    let (sender, receiver) = crossbeam_channel::bounded::<[u64; 4]>(1 << 14);
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            receiver
                .iter()
                .fold(0_u64, |sum, [number, ..]| sum.wrapping_add(number))
        });
        let begun = Instant::now();
        for number in 0..TASKS {
            sender
                .send([number; 4])
                .map_err(|error| TasksBenchError::Rival(error.to_string()))?;
        }
        drop(sender);
        black_box(other.join().unwrap_or_default());
        Ok(each(begun))
    })
}

thread_local! {
    /// A sum of each thread, as AEUs have one.
    static SUM: Cell<u64> = const { Cell::new(0) };
}

fn add(number: u64) {
    SUM.set(SUM.get().wrapping_add(number));
}

/// Tasks that are spawned by a task, in bursts. Each counts down what is left, which the spawner waits for in the end.
fn tokio(threads: usize) -> Measured {
    let mut builder = match threads {
        1 => ::tokio::runtime::Builder::new_current_thread(),
        _ => ::tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    let runtime = builder
        .build()
        .map_err(|error| TasksBenchError::Rival(error.to_string()))?;
    let spawner = async {
        let left = Arc::new(AtomicU64::new(TASKS / BURST * BURST));
        for _ in 0..TASKS / BURST {
            for number in 0..BURST {
                let left = left.clone();
                ::tokio::spawn(async move {
                    add(number);
                    left.fetch_sub(1, Relaxed);
                });
            }
            ::tokio::task::yield_now().await;
        }
        while left.load(Relaxed) > 0 {
            ::tokio::task::yield_now().await;
        }
    };
    let begun = Instant::now();
    (runtime.block_on(async { ::tokio::spawn(spawner).await }))
        .map_err(|error| TasksBenchError::Rival(error.to_string()))?;
    Ok(each(begun))
}

/// Bursts of tasks in a scope.
fn rayon(threads: usize) -> Measured {
    let pool = ::rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build();
    let pool = pool.map_err(|error| TasksBenchError::Rival(error.to_string()))?;
    let begun = pool.install(|| {
        let begun = Instant::now();
        for _ in 0..TASKS / BURST {
            ::rayon::scope(|scope| {
                for number in 0..BURST {
                    scope.spawn(move |_| add(number));
                }
            });
        }
        begun
    });
    Ok(each(begun))
}
