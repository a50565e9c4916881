//! What an AEU does with commands: each goes to whoever executes it, and so does each slice of a task, and each panic.

use super::adopt::AdoptTask;
use super::build::BuildTask;
use super::check::CheckTask;
use super::collect::CollectTask;
use super::insert::InsertTask;
use super::keys::compact::CompactTask;
use super::keys::move_out::MoveOutTask;
use super::owner::Owner;
use super::recode::RecodeTask;
use super::reorganize::ReorganizeTask;
use super::scan::ScanTask;
use crate::error::EngineError;
use crate::protocol::answers::Panicked as PanickedAnswer;
use crate::protocol::asked::Asked;
use crate::protocol::callback::Callback;
use crate::protocol::keys::{ExecuteKeys, HandOver, MoveOut, TransferAcknowledged};
use crate::protocol::lists::Parcel;
use crate::protocol::lists::ToOwner;
use crate::protocol::message::{List, Message, send};
use crate::protocol::runs::{Repartition, RepartitionAborted, RepartitionEnd};
use crate::protocol::statements::{Intern, Interned};
use eris_aeu::{AeuContext, Group, Handler, Panicked, Slice};
use eris_fragment::FragmentError;
use eris_route::Header;
use eris_types::ObjectId;

/// Work that takes more than one slice.
pub(crate) enum Task {
    /// A fragment over this AEU's chunks, and others' when these are done.
    Scan(Box<ScanTask>),
    /// Rows to be encoded and inserted.
    Insert(Box<InsertTask>),
    /// A chunk of another owner to be inserted.
    Adopt(Box<AdoptTask>),
    /// Garbage to be collected.
    Collect(CollectTask),
    /// Keys to be checked.
    Check(CheckTask),
    /// A secondary index to be built.
    Build(BuildTask),
    /// A column to be stored by an order of keys.
    Recode(RecodeTask),
    /// An index to be reorganised.
    Reorganize(ReorganizeTask),
    /// Keys to be moved to another owner.
    MoveOut(Box<MoveOutTask>),
    /// Segments of an index to be put together.
    Compact(CompactTask),
}

macro_rules! tasks_from {
    ($($task:ident($type:ty)),* $(,)?) => {
        $(impl From<$type> for Task {
            fn from(task: $type) -> Self {
                Task::$task(task)
            }
        })*
    };
}

// What is begun where the task is.
tasks_from!(
    Scan(Box<ScanTask>),
    Build(BuildTask),
    MoveOut(Box<MoveOutTask>),
    Compact(CompactTask),
);

type Context<'a> = AeuContext<'a, Task, Parcel>;

impl Owner {
    fn execute_one(&mut self, header: &Header, message: ToOwner, cx: &mut Context<'_>) {
        let object = header.object;
        match message {
            ToOwner::Insert(insert) => {
                let (task, number) = self.begin_insert(insert, Asked::of(header));
                let task = cx.spawn(Task::Insert(Box::new(task)));
                self.wait_for_codes(number, task);
            }
            ToOwner::Adopt(adopt) => {
                let task = AdoptTask::new(adopt, Asked::of(header));
                cx.spawn(Task::Adopt(Box::new(task)));
            }
            ToOwner::Delete(delete) => self.delete(&delete, Asked::of(header), cx),
            ToOwner::Check(check) => {
                cx.spawn(Task::Check(CheckTask::new(check, Asked::of(header))));
            }
            ToOwner::Commit(commit) => {
                self.commit(&commit.0, object, Callback::from_bits(header.callback));
            }
            ToOwner::Abort(_) => self.abort(object, Callback::from_bits(header.callback)),
            ToOwner::OfferChunks(wanted) => self.offer(wanted, Asked::of(header), cx),
            ToOwner::Intern(strings) => self.intern(&strings, Asked::of(header), cx),
            ToOwner::Interned(codes) => {
                self.interned(object, Callback::from_bits(header.callback), codes, cx);
            }
            ToOwner::Scan(scan) => self.scan(scan.0, cx),
            ToOwner::Repartition(groups) => {
                let run = groups.run.clone();
                self.receive(run, |received| received.add(groups), cx);
            }
            ToOwner::RepartitionEnd(end) => {
                self.receive(end.run, |received| received.end(end.sent), cx);
            }
            ToOwner::RepartitionAborted(_) => {
                let message = "groups were lost".to_owned();
                self.fail_run(header, format!("{:?}", header.sender), message, cx);
            }
            ToOwner::Credit(credit) => {
                if let Some(run) = self.runs.get_mut(&Callback::from_bits(header.callback)) {
                    run.credits[credit.stream as usize] += credit.batches;
                    cx.resume(run.task);
                }
            }
            ToOwner::Help(_) | ToOwner::Cancel(_) => {
                if let Some(run) = self.runs.get(&Callback::from_bits(header.callback)) {
                    cx.resume(run.task);
                }
            }
            ToOwner::ExecuteRows(rows) => self.execute_rows(rows.0, Asked::of(header), cx),
            ToOwner::MoveOut(transfer) => self.move_out(transfer.0, Asked::of(header), cx),
            ToOwner::TransferAcknowledged(answer) => self.acknowledged(header, answer.0, cx),
            ToOwner::Measure(_) => self.measure(Asked::of(header), cx),
            ToOwner::DropObject(_) => self.drop_object(Asked::of(header), cx),
            ToOwner::CollectGarbage(_) => {
                if self.partitions.contains_key(&object) && self.collecting.insert(object) {
                    cx.spawn(Task::Collect(CollectTask::new(object)));
                }
            }
            ToOwner::Build(build) => {
                let task = BuildTask::new(build.object, build.index, Some(Asked::of(header)));
                cx.spawn(Task::Build(task));
            }
            ToOwner::DropIndex(_) => {
                self.drop_index(object, Callback::from_bits(header.callback));
            }
            ToOwner::Recode(recode) => {
                cx.spawn(Task::Recode(RecodeTask::new(recode.0, Asked::of(header))));
            }
            ToOwner::Reorganize(what) => {
                if self.reorganize(what, Asked::of(header), cx) {
                    cx.spawn(Task::Reorganize(ReorganizeTask::new(object)));
                }
            }
            ToOwner::Inspect(_) => self.inspect(Asked::of(header), cx),
            ToOwner::Locate(_) => self.locate(Asked::of(header), cx),
            ToOwner::ExecuteKeys(_) | ToOwner::HandOver(_) => {
                unreachable!("these are executed group by group")
            }
        }
    }

    /// A slice has panicked: whoever waits for the task hears of it.
    fn task_panicked(&mut self, task: Task, message: &str, cx: &mut Context<'_>) {
        match task {
            Task::Scan(mut scan) => {
                let error = FragmentError::Panicked {
                    worker: self.aeu.to_string(),
                    object: scan.object(),
                    message: message.to_owned(),
                };
                scan.fail(error, self, cx);
            }
            Task::Insert(mut insert) => insert.panicked(message, self, cx),
            Task::Adopt(mut adopt) => adopt.panicked(message, self, cx),
            // Nobody waits for it; the chunks stay as they are.
            Task::Collect(collect) => collect.end(self),
            Task::Check(mut check) => check.panicked(message, self, cx),
            Task::Build(mut build) => build.panicked(message, self, cx),
            Task::Recode(recode) => recode.panicked(message, self, cx),
            Task::Reorganize(mut task) => task.panicked(message, self),
            Task::MoveOut(task) => task.panicked(message, self, cx),
            // Nobody waits for it; the segments stay as they are.
            Task::Compact(task) => task.end(self),
        }
    }

    /// A group of commands has panicked: whoever waits for this one hears of it.
    fn command_panicked(
        &mut self,
        kind: u16,
        header: &Header,
        message: &str,
        cx: &mut Context<'_>,
    ) {
        let is_from_owner = header.sender.as_aeu().is_some();
        if kind == HandOver::KIND && is_from_owner {
            // As an answer, behind those that have been sent for what was done before.
            self.distrust(header, message, cx);
        } else if kind == TransferAcknowledged::KIND {
            self.doubt(header, cx);
        } else if kind == MoveOut::KIND && self.has_taken_in(header) {
            // It will be answered.
        } else if kind == Repartition::KIND || kind == RepartitionEnd::KIND {
            // They will never be complete here. Who sent them fails the run for all, unless it has left already, having
            // got everything from here; then the run is still there.
            self.fail_run(header, self.aeu.to_string(), message.to_owned(), cx);
            forward_abort(header, cx);
        } else if kind == Intern::KIND {
            let error = EngineError::Panicked {
                worker: "the owner of a dictionary".to_owned(),
                table: header.object.to_string(),
                message: message.to_owned(),
            };
            Asked::<Intern>::of(header).answer(Interned(Err(error)), cx);
        } else if ToOwner::is_awaited(kind) {
            let callback = crate::protocol::callback::QuestionId(header.callback);
            let answer = PanickedAnswer(message.to_owned());
            send(cx, header.sender, header.object, callback, answer);
        }
    }

    /// A run cannot be completed here.
    fn fail_run(&mut self, header: &Header, worker: String, message: String, cx: &mut Context<'_>) {
        if let Some(active) = self.runs.get(&Callback::from_bits(header.callback)) {
            active.run.fail(FragmentError::Panicked {
                worker,
                object: header.object,
                message,
            });
            cx.resume(active.task);
        }
    }
}

/// Tells a participant that groups of its own got lost.
fn forward_abort(header: &Header, cx: &mut Context<'_>) {
    let run = crate::protocol::callback::RunId::from_bits(header.callback);
    send(cx, header.sender, header.object, run, RepartitionAborted);
}

impl Handler for Owner {
    type Task = Task;
    type Parcel = Parcel;

    fn execute(
        &mut self,
        object: ObjectId,
        kind: u16,
        commands: Group<'_, Parcel>,
        cx: &mut Context<'_>,
    ) {
        if kind == ExecuteKeys::KIND {
            return self.execute_batches(object, commands, cx);
        }
        if kind == HandOver::KIND {
            return self.hand_over(object, commands, cx);
        }
        if let Some(index) = self.index(object) {
            // What was asked for before this pays for it.
            index.work_for_lookups(0);
        }
        for command in commands {
            let message = ToOwner::unpack(kind, command.words, command.parcel);
            self.execute_one(&command.header, message, cx);
        }
    }

    fn run(&mut self, task: &mut Task, cx: &mut Context<'_>) -> Slice {
        match task {
            Task::Scan(scan) => scan.slice(self, cx),
            Task::Insert(insert) => insert.slice(self, cx),
            Task::Adopt(adopt) => adopt.slice(self, cx),
            Task::Collect(collect) => collect.slice(self, cx),
            Task::Check(check) => check.slice(self, cx),
            Task::Build(build) => build.slice(self, cx),
            Task::Recode(recode) => recode.slice(self, cx),
            Task::Reorganize(task) => task.slice(self),
            Task::MoveOut(task) => task.slice(self, cx),
            Task::Compact(task) => task.slice(self),
        }
    }

    fn idle(&mut self, _cx: &mut Context<'_>) -> bool {
        false
    }

    fn panicked(&mut self, what: Panicked<'_, Task, Parcel>, message: &str, cx: &mut Context<'_>) {
        match what {
            Panicked::Task { task, .. } => self.task_panicked(task, message, cx),
            Panicked::Group { kind, headers, .. } => {
                headers.for_each(|header| self.command_panicked(kind, header, message, cx));
            }
            Panicked::Idle => {}
        }
    }
}
