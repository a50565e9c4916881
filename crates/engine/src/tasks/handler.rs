//! What an AEU does with commands: each goes to whoever executes it, and so does each slice of a task.

use super::adopt::AdoptTask;
use super::build::BuildTask;
use super::check::CheckTask;
use super::collect::CollectTask;
use super::insert::{InsertTask, RowSource};
use super::keys::compact::CompactTask;
use super::keys::move_out::MoveOutTask;
use super::offer_keys::OfferKeysTask;
use super::owner::Owner;
use super::recode::RecodeTask;
use super::reorganize::ReorganizeTask;
use super::scan::{MaybeScan, ScanTask};
use super::unshare::UnshareTask;
use crate::protocol::asked::Asked;
use crate::protocol::callback::RunId;
use crate::protocol::keys::{ExecuteKeys, ExecuteRows, HandOver};
use crate::protocol::lists::Parcel;
use crate::protocol::lists::{OwnerKind, ToOwner};
use crate::protocol::message::{List, Message};
use eris_aeu::{AeuContext, Group, Handler, Panicked, Slice, Sliced};
use eris_route::Header;
use eris_telemetry::WORK_KINDS;
use eris_types::ObjectId;

/// Work that takes more than one slice.
pub(crate) enum Task {
    /// A fragment over this AEU's chunks, and others' when these are done.
    Scan(Box<ScanTask>),
    /// Rows to be encoded and inserted.
    Insert(Box<InsertTask>),
    /// A chunk of another owner to be inserted.
    Adopt(Box<AdoptTask>),
    /// Rows with some keys that another owner gets.
    OfferKeys(Box<OfferKeysTask>),
    /// Entries of an index to be brought to where they belong.
    Unshare(UnshareTask),
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

impl Task {
    /// What the counters call them, in this order.
    pub const NAMES: [&str; 12] = [
        "Scan",
        "Insert",
        "Adopt",
        "OfferKeys",
        "Unshare",
        "Collect",
        "Check",
        "Build",
        "Recode",
        "Reorganize",
        "MoveOut",
        "Compact",
    ];

    fn number(&self) -> usize {
        match self {
            Task::Scan(_) => 0,
            Task::Insert(_) => 1,
            Task::Adopt(_) => 2,
            Task::OfferKeys(_) => 3,
            Task::Unshare(_) => 4,
            Task::Collect(_) => 5,
            Task::Check(_) => 6,
            Task::Build(_) => 7,
            Task::Recode(_) => 8,
            Task::Reorganize(_) => 9,
            Task::MoveOut(_) => 10,
            Task::Compact(_) => 11,
        }
    }
}

// Each has counters of its own.
const _: () = assert!(OwnerKind::NAMES.len() + Task::NAMES.len() <= WORK_KINDS);

impl Sliced for Task {
    fn work(&self) -> usize {
        OwnerKind::NAMES.len() + self.number()
    }
}

impl MaybeScan for Task {
    fn as_scan(&mut self) -> Option<&mut ScanTask> {
        match self {
            Task::Scan(scan) => Some(scan),
            _ => None,
        }
    }
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
    Insert(Box<InsertTask>),
    Build(BuildTask),
    MoveOut(Box<MoveOutTask>),
    Compact(CompactTask),
    Unshare(UnshareTask),
);

pub(super) type Context<'a> = AeuContext<'a, Task, Parcel>;

impl Owner {
    fn execute_one(&mut self, header: &Header, message: ToOwner, cx: &mut Context<'_>) {
        let object = header.object;
        match message {
            ToOwner::Insert(insert) => {
                let source = RowSource::Client(Asked::by(&insert, header));
                let (task, number) = self.begin_insert(insert, source);
                let task = cx.spawn(Task::Insert(Box::new(task)));
                self.wait_for_codes(number, task);
            }
            ToOwner::Adopt(adopt) => {
                let asked = Asked::by(&adopt, header);
                let task = AdoptTask::new(adopt, asked, self);
                cx.spawn(Task::Adopt(Box::new(task)));
            }
            ToOwner::OfferKeys(offer) => {
                let asked = Asked::by(&offer, header);
                cx.spawn(Task::OfferKeys(Box::new(OfferKeysTask::new(offer, asked))));
            }
            ToOwner::AdoptKeys(adopt) => {
                let asked = Asked::by(&adopt, header);
                self.adopt_keys(adopt, asked, cx);
            }
            ToOwner::Delete(delete) => self.delete(&delete, Asked::by(&delete, header), cx),
            ToOwner::Check(check) => {
                let asked = Asked::by(&check, header);
                cx.spawn(Task::Check(CheckTask::new(check, asked)));
            }
            ToOwner::Commit(commit) => {
                let statement = Asked::by(&commit, header).callback;
                self.commit(&commit.0, object, statement);
                self.begin_to_unshare(object, cx);
            }
            ToOwner::Abort(abort) => {
                self.abort(object, Asked::by(&abort, header).callback);
                self.begin_to_unshare(object, cx);
            }
            ToOwner::OfferChunks(wanted) => self.offer(wanted, Asked::by(&wanted, header), cx),
            ToOwner::Intern(strings) => {
                self.intern(&strings, Asked::by(&strings, header), cx);
            }
            ToOwner::Interned(codes) => {
                let number = Asked::by(&codes, header).callback;
                self.interned(object, number, codes, cx);
            }
            ToOwner::Scan(scan) => self.scan(scan.0, cx),
            ToOwner::Repartition(groups) => {
                let run = groups.run.clone();
                self.receive(run, |received| received.add(groups), cx);
            }
            ToOwner::RepartitionEnd(end) => {
                self.receive(end.run, |received| received.end(end.sent), cx);
            }
            ToOwner::RepartitionAborted(aborted) => {
                let run = Asked::by(&aborted, header).callback;
                let message = "groups were lost".to_owned();
                self.fail_run(run, format!("{:?}", header.sender), message, cx);
            }
            ToOwner::Credit(credit) => {
                let run = Asked::by(&credit, header).callback;
                if let Some(run) = self.runs.get_mut(&run) {
                    run.credits[credit.stream as usize] += credit.batches;
                    cx.resume(run.task);
                }
            }
            ToOwner::Help(help) => self.resume_run(Asked::by(&help, header).callback, cx),
            ToOwner::Cancel(cancel) => self.resume_run(Asked::by(&cancel, header).callback, cx),
            ToOwner::MoveOut(transfer) => {
                let asked = Asked::by(&transfer, header);
                self.move_out(transfer.0, asked, cx);
            }
            ToOwner::TransferAcknowledged(answer) => {
                let asked = Asked::by(&answer, header);
                self.acknowledged(asked, answer.0, cx);
            }
            ToOwner::Measure(measure) => self.measure(Asked::by(&measure, header), cx),
            ToOwner::DropObject(drop) => self.drop_object(Asked::by(&drop, header), cx),
            ToOwner::CollectGarbage(_) => {
                if self.partitions.contains_key(&object) && self.collecting.insert(object) {
                    cx.spawn(Task::Collect(CollectTask::new(object)));
                }
            }
            ToOwner::Build(build) => {
                let asked = Asked::by(&build, header);
                cx.spawn(Task::Build(BuildTask::new(build, asked)));
            }
            ToOwner::DropIndex(drop) => {
                self.drop_index(object, Asked::by(&drop, header).callback);
            }
            ToOwner::Recode(recode) => {
                let asked = Asked::by(&recode, header);
                cx.spawn(Task::Recode(RecodeTask::new(recode.0, asked)));
            }
            ToOwner::Reorganize(what) => {
                if self.reorganize(what, Asked::by(&what, header), cx) {
                    cx.spawn(Task::Reorganize(ReorganizeTask::new(object)));
                }
            }
            ToOwner::Inspect(inspect) => self.inspect(Asked::by(&inspect, header), cx),
            ToOwner::Analyze(analyze) => self.analyze(Asked::by(&analyze, header), cx),
            ToOwner::Freeze(freeze) => self.freeze(freeze.0, Asked::by(&freeze, header), cx),
            ToOwner::Locate(locate) => self.locate(Asked::by(&locate, header), cx),
            ToOwner::ExecuteKeys(_) | ToOwner::HandOver(_) | ToOwner::ExecuteRows(_) => {
                unreachable!("these are executed group by group")
            }
        }
    }

    /// There may be something to do again for a run, if it is not over here.
    fn resume_run(&mut self, run: RunId, cx: &mut Context<'_>) {
        if let Some(run) = self.runs.get(&run) {
            cx.resume(run.task);
        }
    }
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
        if kind == ExecuteRows::KIND {
            return self.execute_row_batches(commands, cx);
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
            Task::OfferKeys(offer) => offer.slice(self, cx),
            Task::Unshare(unshare) => unshare.slice(self),
            Task::Collect(collect) => collect.slice(self, cx),
            Task::Check(check) => check.slice(self, cx),
            Task::Build(build) => build.slice(self, cx),
            Task::Recode(recode) => recode.slice(self, cx),
            Task::Reorganize(task) => task.slice(self),
            Task::MoveOut(task) => task.slice(self, cx),
            Task::Compact(task) => task.slice(self),
        }
    }

    fn work_of_commands(kind: u16) -> usize {
        usize::from(kind)
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
