//! `eris bench route`: how many commands the routing layer carries, by size of the outgoing buffers (the ERIS paper's
//! Figure 5), and how long one command takes.
//!
//! All AEUs send to all, themselves included, as fast as they can. A command is 40 bytes: a header and two words.
//!
//! ```text
//! raw       AEUs skip the processing phase: a batch is received and its commands are not looked at
//! read      every command of a batch is read: what a handler sees
//! step      AEUs as the engine runs them: commands are grouped and given to a handler
//! lookup    the same, and every command looks up a key in the index of the AEU that gets it
//! index     the lookups alone, as many at a time as a step brings: what routed lookups cannot exceed
//! channel   the same command through one crossbeam channel per AEU, one send each
//! ```
//!
//! Ratios are those of one round, in which all cases run one after the other: the machine may be faster in the next.
//!
//! The limit (`copy`) writes each command twice: into the sender's buffer, which is cached, and into an inbox, which is
//! not.

mod lookup;

use crate::figure::FigureShape;
use crate::report::BenchReport;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use eris_aeu::{Aeu, AeuContext, Group, Handler, Panicked, Runtime, Slice, StartError, Step};
use eris_index::Art;
use eris_numa::{AeuPlace, PinError, Topology, pin_current_thread};
use eris_route::{BufferSizes, Endpoint, FlushState, Header, Port, Rank, RouteError, Router};
use eris_telemetry::Telemetry;
use eris_types::{AeuId, ObjectId};
use lookup::Lookups;
use serde_json::json;
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct RouteOptions {
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// How long each run lasts.
    pub time: Duration,
}

impl Default for RouteOptions {
    fn default() -> Self {
        RouteOptions {
            runs: 7,
            time: Duration::from_millis(100),
        }
    }
}

/// Why the routing layer could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RouteBenchError {
    /// A thread could not be bound to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The AEUs did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No session could be opened.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The indexes could not be made.
    #[error("cannot make the indexes to look keys up in: {0}")]
    Index(String),
    /// An AEU that does nothing else did not answer.
    #[error("an AEU did not answer within {0:?}")]
    NoAnswer(Duration),
}

/// Throughput by the size of a buffer.
pub(crate) const FIGURES: [FigureShape; 1] = [FigureShape {
    cases: &["raw", "read", "step", "lookup", "channel", "copy", "index"],
    name: "route",
    title: "Routed commands by buffer (ERIS, Section 3.2)",
    x: "buffer",
    x_name: "commands of a buffer",
    is_log: true,
    line: &["case"],
    ..FigureShape::EMPTY
}];

const DATA: usize = 2;
/// Three words of header; see `eris_route`.
const COMMAND_WORDS: usize = 3 + DATA;
const COMMAND_BYTES: usize = COMMAND_WORDS * 8;
const INBOX_WORDS: usize = 1 << 16;
/// Commands that an AEU makes per target between two looks at its inbox, at least.
const BURST: usize = 256;
const BUFFERS: [usize; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const TRIPS: usize = 200;
const PATIENCE: Duration = Duration::from_secs(10);

/// Throughput by buffer size, beside a channel per command and the limit; then the time of one round trip.
///
/// # Errors
/// [`RouteBenchError`].
pub fn run(topology: &Topology, options: RouteOptions) -> Result<BenchReport, RouteBenchError> {
    let mut cases: Vec<(&str, Option<usize>)> =
        vec![("channel", None), ("copy", None), ("index", None)];
    for buffer in BUFFERS {
        cases.extend(["raw", "read", "step", "lookup"].map(|case| (case, Some(buffer))));
    }
    let mut runs = vec![Vec::new(); cases.len()];
    let trees = lookup::trees(topology).map_err(RouteBenchError::Index)?;
    for _ in 0..options.runs {
        for ((case, buffer), runs) in cases.iter().zip(&mut runs) {
            let sizes = sizes(buffer.unwrap_or(1));
            let per_second = match *case {
                "channel" => channels(topology, options.time)?,
                "copy" => copies(topology, options.time)?,
                "index" => lookup::alone(topology, options.time, &trees)?,
                "raw" => routed(topology, sizes, options.time, |port| {
                    port.receive()
                        .map_or(0, |batch| batch.words() / COMMAND_WORDS)
                })?,
                "read" => routed(topology, sizes, options.time, read)?,
                "lookup" => looked_up(topology, sizes, options.time, &trees)?,
                _ => stepped(topology, sizes, options.time)?,
            };
            runs.push(per_second / 1e6);
        }
    }
    let aeus = topology.aeus().len();
    let mut report = BenchReport::new("route", topology);
    let mut copied = runs[1].clone();
    copied.sort_by(f64::total_cmp);
    let limit = copied[copied.len() / 2];
    ratios(&cases, &runs, &mut report);
    for ((case, buffer), runs) in cases.iter().zip(runs) {
        let params = || {
            [
                ("aeus", json!(aeus)),
                ("buffer", json!(buffer)),
                ("bytes", json!(COMMAND_BYTES)),
            ]
        };
        let each = runs.iter().map(|total| total / aeus as f64).collect();
        report.row(case, params(), "million commands/s", runs, Some(limit));
        report.row(
            &format!("{case}, each AEU"),
            params(),
            "million commands/s",
            each,
            Some(limit / aeus as f64),
        );
    }
    latency(topology, options.runs, &mut report)?;
    Ok(report)
}

/// How many times the rate of one case another one has, by buffer size.
fn ratios(cases: &[(&str, Option<usize>)], runs: &[Vec<f64>], report: &mut BenchReport) {
    let of = |case: &str, buffer| {
        let found = (cases.iter()).position(|known| *known == (case, buffer));
        &runs[found.expect("it is one of the cases")]
    };
    for buffer in BUFFERS.map(Some) {
        for (case, other, of_other) in [
            ("step", "raw", buffer),
            ("step", "channel", None),
            ("lookup", "step", buffer),
            ("lookup", "index", None),
        ] {
            let pairs = of(case, buffer).iter().zip(of(other, of_other));
            let ratios = pairs.map(|(rate, other)| rate / other).collect();
            let name = format!("{case}, times {other}");
            report.row(&name, [("buffer", json!(buffer))], "times", ratios, None);
        }
    }
}

/// Outgoing buffers of so many commands. The inboxes stay the same, as long as a buffer fits well.
fn sizes(buffer: usize) -> BufferSizes {
    let outgoing = (buffer * COMMAND_WORDS).max(6);
    let inbox = INBOX_WORDS.max(4 * outgoing);
    BufferSizes {
        outgoing,
        aeu_inbox: inbox,
        session_inbox: inbox,
    }
}

fn header(sender: AeuId, callback: u64) -> Header {
    Header {
        kind: 1,
        rank: Rank::Scan,
        object: ObjectId(1),
        sender: Endpoint::aeu(sender),
        callback,
    }
}

/// Runs one thread per AEU on its core, all from the same moment. `prepare` runs on the thread; what it returns is
/// called again and again until the time is over, and says how many commands it has finished. Returns commands per
/// second.
fn race<W: FnMut() -> usize>(
    topology: &Topology,
    time: Duration,
    prepare: impl Fn(AeuPlace) -> W + Sync,
) -> Result<f64, PinError> {
    let places = topology.aeus();
    let start = Barrier::new(places.len());
    let run = |place: &AeuPlace| {
        let pinned = place.cpu.map_or(Ok(()), pin_current_thread);
        let mut work = prepare(*place);
        start.wait();
        let (began, mut done) = (Instant::now(), 0);
        // Each thread looks at the clock itself: one that tells the others to stop might not get a core.
        while began.elapsed() < time {
            match work() {
                // The operating system may have put somebody we wait for onto this core.
                0 => thread::yield_now(),
                commands => done += commands,
            }
        }
        pinned.map(|()| done as f64 / began.elapsed().as_secs_f64())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = places
            .iter()
            .map(|place| scope.spawn(|| run(place)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|rate| rate.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    })
}

/// Sends a burst to every AEU, unless earlier ones still wait for room.
fn send_burst(port: &mut Port, me: AeuId, aeus: usize, sizes: BufferSizes, callback: &mut u64) {
    if port.flush() == FlushState::Held {
        return;
    }
    let (outgoing, _) = port.split();
    for _ in 0..BURST.max(sizes.outgoing / COMMAND_WORDS) {
        for to in 0..aeus {
            *callback += 1;
            outgoing.send(
                Endpoint::aeu(AeuId(to as u16)),
                header(me, *callback),
                &[*callback; DATA],
                None,
            );
        }
    }
}

fn routed(
    topology: &Topology,
    sizes: BufferSizes,
    time: Duration,
    receive: impl Fn(&mut Port) -> usize + Sync,
) -> Result<f64, PinError> {
    let aeus = topology.aeus().len();
    let router = Router::new(aeus, sizes);
    race(topology, time, |place| {
        let mut port = router.aeu_port(place.aeu);
        let (receive, mut callback) = (&receive, 0);
        move || {
            send_burst(&mut port, place.aeu, aeus, sizes, &mut callback);
            receive(&mut port)
        }
    })
}

fn read(port: &mut Port) -> usize {
    let (mut commands, mut sum) = (0, 0u64);
    for command in port.receive().into_iter().flatten() {
        commands += 1;
        sum = sum.wrapping_add(command.header.callback ^ command.words[DATA - 1]);
    }
    black_box(sum);
    commands
}

/// An AEU that makes a burst in its idle hook and reads what it gets.
struct Burst {
    sizes: BufferSizes,
    callback: u64,
    seen: usize,
}

impl Handler for Burst {
    type Task = ();
    type Parcel = ();

    fn execute(&mut self, _: ObjectId, _: u16, commands: Group<'_>, _: &mut AeuContext<'_, ()>) {
        self.seen += commands.len();
        let sum = commands.fold(0u64, |sum, command| {
            sum.wrapping_add(command.header.callback ^ command.words[DATA - 1])
        });
        black_box(sum);
    }

    fn run(&mut self, _: &mut (), cx: &mut AeuContext<'_, ()>) -> Slice {
        let aeus = cx.topology().aeus().len() as u16;
        for _ in 0..BURST.max(self.sizes.outgoing / COMMAND_WORDS) {
            for to in 0..aeus {
                self.callback += 1;
                cx.send(
                    Endpoint::aeu(AeuId(to)),
                    header(cx.id(), self.callback),
                    &[self.callback; DATA],
                    None,
                );
            }
        }
        Slice::Done
    }

    fn idle(&mut self, _: &mut AeuContext<'_, ()>) -> bool {
        false
    }

    fn panicked(&mut self, _: Panicked<'_, ()>, message: &str, _: &mut AeuContext<'_, ()>) {
        unreachable!("nothing here panics: {message}");
    }
}

fn stepped(topology: &Topology, sizes: BufferSizes, time: Duration) -> Result<f64, PinError> {
    let handler = |_| Burst {
        sizes,
        callback: 0,
        seen: 0,
    };
    aeus(topology, sizes, time, handler, |burst| burst.seen)
}

fn looked_up(
    topology: &Topology,
    sizes: BufferSizes,
    time: Duration,
    trees: &[Arc<Art<u64>>],
) -> Result<f64, PinError> {
    let handler = |aeu: AeuId| Lookups::new(Arc::clone(&trees[aeu.index()]), sizes, aeu);
    aeus(topology, sizes, time, handler, |lookups| lookups.seen)
}

/// AEUs with such handlers, which always have a task.
fn aeus<H: Handler<Task = ()>>(
    topology: &Topology,
    sizes: BufferSizes,
    time: Duration,
    handler: impl Fn(AeuId) -> H + Sync,
    seen: impl Fn(&H) -> usize + Sync,
) -> Result<f64, PinError> {
    let shared = Arc::new(topology.clone());
    let telemetry = Telemetry::new(topology.aeus().len());
    let router = Router::new(topology.aeus().len(), sizes);
    race(topology, time, |place| {
        let port = router.aeu_port(place.aeu);
        let handler = handler(place.aeu);
        let mut aeu = Aeu::new(place, shared.clone(), telemetry.clone(), port, handler);
        let seen = &seen;
        move || {
            if aeu.tasks() == 0 {
                aeu.spawn(Rank::Client, ());
            }
            let before = seen(aeu.handler());
            let _: Step = aeu.step();
            seen(aeu.handler()) - before
        }
    })
}

/// The same command as a value.
struct Message {
    header: Header,
    words: [u64; DATA],
}

fn channels(topology: &Topology, time: Duration) -> Result<f64, PinError> {
    let aeus = topology.aeus().len();
    let pair = || bounded::<Message>(INBOX_WORDS / COMMAND_WORDS);
    let channels: Vec<(Sender<Message>, Receiver<Message>)> = (0..aeus).map(|_| pair()).collect();
    race(topology, time, |place| {
        let (channels, mut callback) = (&channels, 0);
        let inbox = &channels[place.aeu.index()].1;
        move || {
            'burst: for _ in 0..BURST {
                for (to, _) in channels {
                    callback += 1;
                    let message = Message {
                        header: header(place.aeu, callback),
                        words: [callback; DATA],
                    };
                    if let Err(TrySendError::Full(_)) = to.try_send(message) {
                        break 'burst;
                    }
                }
            }
            let (mut commands, mut sum) = (0, 0u64);
            for message in inbox.try_iter().take(BURST * aeus) {
                commands += 1;
                sum = sum.wrapping_add(message.header.callback ^ message.words[DATA - 1]);
            }
            black_box(sum);
            commands
        }
    })
}

/// Commands per second if a command were nothing but a copy of its bytes, from a buffer into memory.
fn copies(topology: &Topology, time: Duration) -> Result<f64, PinError> {
    const BLOCK: usize = 128 * COMMAND_WORDS;
    // 64 MiB: more than the caches, and enough blocks that a run does not come round to one that is still in them.
    const BLOCKS: usize = (64 << 20) / (8 * BLOCK);
    race(topology, time, |_| {
        let block = vec![1u64; BLOCK];
        let mut memory = vec![1u64; BLOCKS * BLOCK];
        let mut next = 0;
        move || {
            let room = &mut memory[next * BLOCK..][..BLOCK];
            room.copy_from_slice(black_box(&block));
            black_box(room);
            next = (next + 1) % BLOCKS;
            BLOCK / COMMAND_WORDS
        }
    })
}

/// Answers a command with its callback.
struct Echo;

impl Handler for Echo {
    type Task = ();
    type Parcel = ();

    fn execute(&mut self, _: ObjectId, _: u16, commands: Group<'_>, cx: &mut AeuContext<'_, ()>) {
        for command in commands {
            cx.send(
                command.header.sender,
                Header {
                    rank: Rank::Reply,
                    ..command.header
                },
                command.words,
                None,
            );
        }
    }

    fn run(&mut self, _: &mut (), _: &mut AeuContext<'_, ()>) -> Slice {
        Slice::Done
    }

    fn idle(&mut self, _: &mut AeuContext<'_, ()>) -> bool {
        false
    }

    fn panicked(&mut self, _: Panicked<'_, ()>, message: &str, _: &mut AeuContext<'_, ()>) {
        unreachable!("nothing here panics: {message}");
    }
}

/// Round trips of one command from a session: to an AEU that sleeps, and in place.
fn latency(
    topology: &Topology,
    runs: usize,
    report: &mut BenchReport,
) -> Result<(), RouteBenchError> {
    let runtime = Runtime::start(topology, BufferSizes::default(), |_| Echo)?;
    let mut session = runtime.session()?;
    let target = AeuId(0);
    let header = Header {
        kind: 1,
        rank: Rank::Client,
        object: ObjectId(1),
        sender: session.endpoint(),
        callback: 1,
    };
    let (mut parked, mut in_place) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut trips = Vec::new();
        while trips.len() < TRIPS {
            thread::sleep(Duration::from_micros(500));
            let began = Instant::now();
            session
                .port()
                .outgoing()
                .send(Endpoint::aeu(target), header, &[1, 2], None);
            session.flush();
            let answers = session
                .receive(PATIENCE)
                .ok_or(RouteBenchError::NoAnswer(PATIENCE))?;
            black_box(answers.count());
            trips.push(began.elapsed());
        }
        parked.push(microseconds(trips));

        let (mut trips, given_up) = (Vec::new(), Instant::now() + PATIENCE);
        while trips.len() < TRIPS {
            let began = Instant::now();
            if runtime
                .try_run_in_place(target, |aeu| aeu.execute_in_place(header, &[1, 2], None))
                .is_some()
            {
                let answers = session
                    .try_receive()
                    .ok_or(RouteBenchError::NoAnswer(Duration::ZERO))?;
                black_box(answers.count());
                trips.push(began.elapsed());
            } else if Instant::now() > given_up {
                return Err(RouteBenchError::NoAnswer(PATIENCE));
            }
        }
        in_place.push(microseconds(trips));
    }
    report.row(
        "round trip to a parked AEU",
        [("p", json!(50))],
        "µs",
        parked,
        None,
    );
    report.row(
        "round trip in place",
        [("p", json!(50))],
        "µs",
        in_place,
        None,
    );
    runtime.shutdown();
    Ok(())
}

fn microseconds(mut trips: Vec<Duration>) -> f64 {
    trips.sort_unstable();
    trips[trips.len() / 2].as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_carries_commands() {
        let options = RouteOptions {
            runs: 1,
            time: Duration::from_millis(2),
        };
        let report = run(&Topology::fake(2, 1), options).unwrap();
        // On a busy machine a case may have had no time at all; not all of them.
        assert!(
            (report.rows.iter()).all(|row| row.unit == "times" || row.value.is_finite()),
            "{report:?}"
        );
        assert!(report.rows.iter().any(|row| row.value > 0.0), "{report:?}");
        assert_eq!(
            report.rows.len(),
            2 * (3 + 4 * BUFFERS.len()) + 4 * BUFFERS.len() + 2
        );
    }
}
