//! A small database of numbers: what the tests let AEUs do.

use eris_aeu::{AeuContext, Group, Handler, Header, Panicked, Rank, Slice, Sliced, TaskId};
use eris_route::{Endpoint, Port};
use eris_types::{AeuId, ObjectId};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers `DONE` with its callback; remembers it.
pub const NOTE: u16 = 1;
/// Words: slices. A task that answers `DONE` after so many.
pub const COUNT: u16 = 2;
/// Words: AEU. Sends a `NOTE` there on behalf of the sender.
pub const FORWARD: u16 = 3;
/// Like `COUNT`, but the task is suspended first, and `RESUME` is asked for.
pub const WAIT: u16 = 4;
/// Callback: the task.
pub const RESUME: u16 = 5;
/// Callback: the task, which answers nothing any more.
pub const CANCEL: u16 = 6;
/// Panics.
pub const PANIC: u16 = 7;
/// A task that panics.
pub const PANIC_LATER: u16 = 8;
/// Words: AEU, how many. Sends so many replies to an AEU, which ignores them; answers if there is a third word.
pub const FLOOD: u16 = 9;
/// What an AEU ignores.
pub const IGNORED: u16 = 10;
/// Words: slices, microseconds. Like `COUNT`, but the task rests so long after each slice.
pub const REST: u16 = 20;

/// Answers.
pub const DONE: u16 = 100;
pub const FAILED: u16 = 101;
pub const WAITING: u16 = 102;

#[derive(Debug)]
pub struct Task {
    pub asked: Header,
    pub slices: u64,
    pub panics: bool,
    pub rest: Option<Duration>,
}

impl Sliced for Task {}

#[derive(Default)]
pub struct Numbers {
    /// By group: object, kind and the callbacks.
    pub groups: Vec<(u32, u16, Vec<u64>)>,
    pub messages: Vec<String>,
    pub idle: usize,
    /// What the idle hook queues, once.
    pub idle_spawns: Option<Task>,
    /// A session, and whether it had an answer when each slice of a task began.
    pub witness: Option<(Arc<Mutex<TestPort>>, Vec<bool>)>,
}

pub type Context<'a> = AeuContext<'a, Task, Arc<()>>;
/// An end of the routing layer; parcels are counted.
pub type TestPort = Port<Arc<()>>;

pub fn answer(cx: &mut Context<'_>, asked: &Header, kind: u16, words: &[u64]) {
    let header = Header {
        kind,
        rank: Rank::Reply,
        sender: cx.endpoint(),
        ..*asked
    };
    cx.send(asked.sender, header, words, None);
}

impl Handler for Numbers {
    type Task = Task;
    type Parcel = Arc<()>;

    fn execute(
        &mut self,
        object: ObjectId,
        kind: u16,
        commands: Group<'_, Arc<()>>,
        cx: &mut Context<'_>,
    ) {
        if kind != IGNORED {
            let callbacks = commands.headers().map(|header| header.callback).collect();
            self.groups.push((object.0, kind, callbacks));
        }
        for command in commands {
            let (asked, words) = (command.header, command.words);
            let task = |slices| Task {
                asked,
                slices,
                panics: false,
                rest: None,
            };
            match kind {
                NOTE => answer(cx, &asked, DONE, words),
                COUNT => {
                    cx.spawn(task(words[0]));
                }
                REST => {
                    let rest = Some(Duration::from_micros(words[1]));
                    cx.spawn(Task {
                        rest,
                        ..task(words[0])
                    });
                }
                FORWARD => {
                    let to = Endpoint::aeu(AeuId(words[0] as u16));
                    cx.send(
                        to,
                        Header {
                            kind: NOTE,
                            ..asked
                        },
                        &words[1..],
                        command.parcel,
                    );
                }
                WAIT => {
                    // The first slice suspends it.
                    let id = cx.spawn(task(u64::MAX));
                    answer(cx, &asked, WAITING, &[id.to_u64()]);
                }
                RESUME => {
                    let id = TaskId::from_u64(asked.callback);
                    match cx.task(id) {
                        Some(task) => task.slices = 1,
                        None => answer(cx, &asked, FAILED, &[]),
                    }
                    cx.resume(id);
                }
                CANCEL => {
                    let cancelled = cx.cancel(TaskId::from_u64(asked.callback));
                    answer(
                        cx,
                        &asked,
                        if cancelled.is_some() { DONE } else { FAILED },
                        &[],
                    );
                }
                PANIC => std::panic::resume_unwind(Box::new("as asked")),
                PANIC_LATER => {
                    cx.spawn(Task {
                        asked,
                        slices: 1,
                        panics: true,
                        rest: None,
                    });
                }
                FLOOD => {
                    let to = Endpoint::aeu(AeuId(words[0] as u16));
                    for _ in 0..words[1] {
                        cx.send(
                            to,
                            Header {
                                kind: IGNORED,
                                sender: cx.endpoint(),
                                rank: Rank::Reply,
                                ..asked
                            },
                            &[0; 8],
                            None,
                        );
                    }
                    if words.len() > 2 {
                        answer(cx, &asked, DONE, &[]);
                    }
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, task: &mut Task, cx: &mut Context<'_>) -> Slice {
        if let Some((session, seen)) = &mut self.witness {
            seen.push(session.lock().unwrap().ready());
        }
        if task.panics {
            std::panic::resume_unwind(Box::new(format!("task {}", task.asked.callback)));
        }
        if task.slices == u64::MAX {
            return Slice::Suspend;
        }
        task.slices = task.slices.saturating_sub(1);
        if task.slices > 0 {
            return task.rest.map_or(Slice::Again, Slice::Rest);
        }
        answer(cx, &task.asked, DONE, &[]);
        Slice::Done
    }

    fn idle(&mut self, cx: &mut Context<'_>) -> bool {
        self.idle += 1;
        if let Some(task) = self.idle_spawns.take() {
            cx.spawn(task);
        }
        false
    }

    fn panicked(&mut self, what: Panicked<'_, Task, Arc<()>>, message: &str, cx: &mut Context<'_>) {
        self.messages.push(message.to_string());
        match what {
            Panicked::Group { headers, .. } => {
                headers.for_each(|asked| answer(cx, asked, FAILED, &[]))
            }
            Panicked::Task { task, .. } => answer(cx, &task.asked, FAILED, &[]),
            Panicked::Idle => {}
        }
    }
}

/// Sends a command of rank `Client` to an AEU.
#[allow(dead_code, reason = "not every test that shares this file uses it")]
pub fn ask(port: &mut TestPort, to: u16, object: u32, kind: u16, callback: u64, words: &[u64]) {
    send(port, to, object, kind, callback, words, None);
}

#[expect(
    clippy::redundant_allocation,
    reason = "parcels are boxed, and this one tells by its count who still has it"
)]
pub fn send(
    port: &mut TestPort,
    to: u16,
    object: u32,
    kind: u16,
    callback: u64,
    words: &[u64],
    parcel: Option<Box<Arc<()>>>,
) {
    let header = Header {
        kind,
        rank: Rank::Client,
        object: ObjectId(object),
        sender: port.endpoint(),
        callback,
    };
    port.outgoing()
        .send(Endpoint::aeu(AeuId(to)), header, words, parcel);
}

/// Kind, callback and words of whatever has arrived.
#[allow(dead_code, reason = "not every test that shares this file uses it")]
pub fn answers(port: &mut TestPort) -> Vec<(u16, u64, Vec<u64>)> {
    let received = port.receive().into_iter().flatten();
    received
        .map(|command| {
            (
                command.header.kind,
                command.header.callback,
                command.words.to_vec(),
            )
        })
        .collect()
}
