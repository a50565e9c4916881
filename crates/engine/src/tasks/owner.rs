//! What an AEU does with the engine's commands: the handler. It alone reaches the partitions of its AEU.

use crate::clients::create_index::Build;
use crate::clients::moves::{Adopt, AdoptTask};
use crate::clients::rows::RowBatch;
use crate::error::EngineError;
use crate::held::dictionaries::Numbering;
use crate::held::partition::Partition;
use crate::key_index::{GiveTask, Giving, KeyBatch, OwnedKeys, TidyTask};
use crate::object::data_object::DataObject;
use crate::protocol::commands::*;
use crate::protocol::routed::Mail;
use crate::protocol::run::Run;
use crate::sequencer::Sequencer;
use crate::tasks::build::BuildTask;
use crate::tasks::check::CheckTask;
use crate::tasks::collect::CollectTask;
use crate::tasks::recode::{Recode, RecodeTask};
use crate::tasks::reorganize::{Reorganizable, ReorganizeTask};
use crate::tasks::scan::ScanTask;
use crate::tasks::stage::StageTask;
use eris_aeu::{AeuContext, Group, Handler, Panicked, Slice, TaskId};
use eris_column::Home;
use eris_fragment::FragmentError;
use eris_numa::{Budget, NodeMemory, Topology};
use eris_route::{Command, Endpoint, Header, Parcel, Rank};
use eris_types::{AeuId, ObjectId, StatementId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The partitions of one AEU and the work on them.
pub(crate) struct Owner {
    pub aeu: AeuId,
    pub memory: NodeMemory,
    pub budget: Budget,
    pub topology: Arc<Topology>,
    pub sequencer: Arc<Sequencer>,
    pub partitions: HashMap<ObjectId, Partition>,
    /// Fragments under way here, by run.
    pub runs: HashMap<u64, Riding>,
    /// Rows that wait for codes, by the number that went out as callback.
    pub stages: HashMap<u64, Waiting>,
    next_stage: u64,
    numberings: HashMap<(ObjectId, usize), Numbering>,
    pub key_indexes: HashMap<ObjectId, OwnedKeys>,
    /// Indexes of which keys are being given away.
    pub giving: HashMap<ObjectId, Giving>,
    /// Indexes whose segments are being put together.
    pub tidying: HashSet<ObjectId>,
    /// Copies, by index and transfer, of which a piece was refused: what follows is, too, until the former owner has heard.
    pub refused: HashSet<(ObjectId, u64)>,
    /// The objects whose garbage is being collected.
    pub collecting: HashSet<ObjectId>,
    /// The objects whose index has a task.
    pub reorganizing: HashSet<ObjectId>,
}

/// What commands about a run find here.
pub(crate) struct Riding {
    pub task: TaskId,
    /// Per lane of the run.
    pub credits: Box<[u32]>,
    pub mail: Mail,
    run: Arc<Run>,
}

/// Rows that wait for codes.
pub(crate) struct Waiting {
    pub task: TaskId,
    pub answers_due: usize,
    pub failure: Option<EngineError>,
}

/// Work that takes more than one slice.
pub(crate) enum Task {
    /// A fragment over this AEU's chunks, and others' when these are done.
    Scan(Box<ScanTask>),
    /// Rows to be encoded and staged.
    Stage(Box<StageTask>),
    /// A chunk of another owner to be staged.
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
    /// Keys to be given to another owner.
    Give(Box<GiveTask>),
    /// Segments of an index to be put together.
    Tidy(TidyTask),
}

pub(crate) type Context<'a> = AeuContext<'a, Task>;

impl Owner {
    pub fn new(
        aeu: AeuId,
        memory: NodeMemory,
        budget: Budget,
        topology: Arc<Topology>,
        sequencer: Arc<Sequencer>,
    ) -> Self {
        Owner {
            sequencer,
            collecting: HashSet::new(),
            reorganizing: HashSet::new(),
            aeu,
            memory,
            budget,
            topology,
            partitions: HashMap::new(),
            runs: HashMap::new(),
            stages: HashMap::new(),
            next_stage: 0,
            numberings: HashMap::new(),
            key_indexes: HashMap::new(),
            giving: HashMap::new(),
            tidying: HashSet::new(),
            refused: HashSet::new(),
        }
    }

    /// The partition of `object`, and where its memory comes from.
    pub fn partition(&mut self, object: &Arc<DataObject>) -> (&mut Partition, Home<'_>) {
        let home = Home {
            memory: &self.memory,
            object: object.id,
        };
        let partition = (self.partitions.entry(object.id))
            .or_insert_with(|| Partition::new(object.clone(), self.aeu, home));
        (partition, home)
    }

    /// The partition of an object, if there is one: work that was under way when the object was dropped makes no new one.
    pub fn existing(&mut self, object: ObjectId) -> Option<&mut Partition> {
        self.partitions.get_mut(&object)
    }

    /// The key index of an object, or the bare index.
    pub fn index(&mut self, object: ObjectId) -> Option<&mut dyn Reorganizable> {
        match self.key_indexes.get_mut(&object) {
            Some(keys) => Some(keys),
            None => self.partitions.get_mut(&object)?.index(),
        }
    }

    fn stage(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let number = self.next_stage;
        self.next_stage += 1;
        let sender = command.header.sender;
        let stage: Stage = *owned(command);
        let task = cx.spawn(Task::Stage(Box::new(StageTask::new(stage, number, sender))));
        let waiting = Waiting {
            task,
            answers_due: 0,
            failure: None,
        };
        self.stages.insert(number, waiting);
    }

    /// Notes the rows that a statement will delete.
    fn delete(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let header = command.header;
        let delete: Arc<Delete> = shared(command);
        let (statement, object) = (delete.statement.id, header.object);
        if delete.statement.aborted.load(Ordering::Acquire) {
            return;
        }
        let home = Home {
            memory: &self.memory,
            object,
        };
        let found = match self.partitions.get_mut(&object) {
            Some(partition) => (partition.stage_deletes(statement, &delete.ids, home))
                .map_err(|error| crate::tasks::stage::store_error(&partition.object.name, &error)),
            None => Ok(0),
        };
        let callback = header.callback;
        match found {
            Ok(found) => {
                let reply = self::header(DELETED, object, cx.endpoint(), callback);
                cx.send(header.sender, reply, &[found], None);
            }
            Err(error) => {
                let reply = self::header(REFUSED, object, cx.endpoint(), callback);
                cx.send(header.sender, reply, &[], Some(Parcel::owned(error)));
            }
        }
    }

    fn check(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let sender = command.header.sender;
        let check: Arc<Check> = shared(command);
        cx.spawn(Task::Check(CheckTask::new(check, sender)));
    }

    fn build(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let asked = (command.header.sender, command.header.callback);
        let build: Arc<Build> = shared(command);
        let task = BuildTask::new(build.object.clone(), build.index.clone(), Some(asked));
        cx.spawn(Task::Build(task));
    }

    fn recode(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let asked = (command.header.sender, command.header.callback);
        let recode: Arc<Recode> = shared(command);
        cx.spawn(Task::Recode(RecodeTask::new(recode, asked)));
    }

    fn adopt(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let sender = command.header.sender;
        let adopt: Adopt = *owned(command);
        cx.spawn(Task::Adopt(Box::new(AdoptTask::new(adopt, sender))));
    }

    fn collect(&mut self, object: ObjectId, cx: &mut Context<'_>) {
        if self.partitions.contains_key(&object) && self.collecting.insert(object) {
            cx.spawn(Task::Collect(CollectTask::new(object)));
        }
    }

    /// Begins with a run, if it has not begun: groups that are dealt may come before the SCAN.
    fn scan(&mut self, run: Arc<Run>, cx: &mut Context<'_>) {
        if !run.begin(run.share_of(self.aeu)) {
            return;
        }
        let scan = ScanTask::new(run.clone(), self.aeu, &self.topology);
        let task = cx.spawn_at(Rank::Scan, Task::Scan(Box::new(scan)));
        let riding = Riding {
            task,
            credits: vec![crate::protocol::run::CREDITS; run.lanes.len()].into(),
            mail: Mail::default(),
            run,
        };
        self.runs.insert(riding.run.id, riding);
    }

    /// What somebody says of the groups of a run; nothing if the run is over here.
    fn dealt(&mut self, run: Arc<Run>, change: impl FnOnce(&mut Mail), cx: &mut Context<'_>) {
        let id = run.id;
        self.scan(run, cx);
        if let Some(riding) = self.runs.get_mut(&id) {
            change(&mut riding.mail);
            cx.resume(riding.task);
        }
    }

    fn commit(&mut self, commit: &Commit, object: ObjectId, statement: StatementId) {
        let _share = commit.share();
        if let Some(partition) = self.partitions.get_mut(&object) {
            let home = Home {
                memory: &self.memory,
                object,
            };
            let horizon = self.sequencer.horizon();
            partition.commit(statement, commit.at, home, horizon);
        }
    }

    fn abort(&mut self, object: ObjectId, statement: StatementId) {
        if let Some(partition) = self.partitions.get_mut(&object) {
            partition.abort(statement);
        }
    }

    fn drop_object(&mut self, header: &Header, cx: &mut Context<'_>) {
        self.partitions.remove(&header.object);
        self.key_indexes.remove(&header.object);
        self.refused.retain(|(object, _)| *object != header.object);
        self.numberings
            .retain(|(object, _), _| *object != header.object);
        let reply = self::header(DROPPED, header.object, cx.endpoint(), header.callback);
        cx.send(header.sender, reply, &[], None);
    }

    /// Shows the segments of an object; there may be none here.
    fn inspect(&mut self, header: &Header, cx: &mut Context<'_>) {
        let partition = self.partitions.get(&header.object);
        let segments = partition.map_or_else(Vec::new, Partition::segment_views);
        let reply = self::header(INSPECTED, header.object, cx.endpoint(), header.callback);
        cx.send(header.sender, reply, &[], Some(Parcel::owned(segments)));
    }

    /// Executes batches of keys, all of one index.
    fn keys(&mut self, object: ObjectId, commands: Group<'_>, cx: &mut Context<'_>) {
        let batches = commands.map(|command| (command.header, owned::<KeyBatch>(command)));
        self.execute_keys(object, batches.collect(), cx);
    }

    /// Reads or changes rows by their keys.
    fn rows(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let request = command.header;
        let mut batch: Box<RowBatch> = owned(command);
        batch.execute(self);
        let reply = header(ROWED, request.object, cx.endpoint(), request.callback);
        cx.send(request.sender, reply, &[], Some(Parcel::from_box(batch)));
    }

    fn intern(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let Header {
            object,
            sender,
            callback,
            ..
        } = command.header;
        let request: Intern = *owned(command);
        let column = request.column;
        // A request that comes after DROP must not bring the numbering back; who asks will find the object dropped.
        let dictionary = if request.object.is_dropped() {
            Ok(None)
        } else {
            let numbering = self.numberings.entry((object, column)).or_default();
            numbering.intern(&request, &self.budget)
        };
        let reply = header(INTERNED, object, cx.endpoint(), callback);
        let answer = Parcel::owned(Interned { column, dictionary });
        cx.send(sender, reply, &[], Some(answer));
    }

    fn interned(&mut self, command: Command<'_>, cx: &mut Context<'_>) {
        let Header {
            object, callback, ..
        } = command.header;
        let answer: Interned = *owned(command);
        match answer.dictionary {
            Ok(dictionary) => {
                if let Some(partition) = self.partitions.get_mut(&object) {
                    partition.set_dictionary(answer.column, dictionary);
                }
            }
            Err(error) => self.fail_stage(callback, error),
        }
        self.answer_stage(callback, cx);
    }

    /// The rows that wait for codes will get none.
    fn fail_stage(&mut self, number: u64, error: EngineError) {
        if let Some(waiting) = self.stages.get_mut(&number) {
            waiting.failure = Some(error);
        }
    }

    /// One of the answers that rows wait for has come.
    fn answer_stage(&mut self, number: u64, cx: &mut Context<'_>) {
        if let Some(waiting) = self.stages.get_mut(&number) {
            waiting.answers_due -= 1;
            if waiting.answers_due == 0 {
                cx.resume(waiting.task);
            }
        }
    }

    /// Wakes the participants that wait for a ticket, or all others.
    pub fn call_for_help(&self, run: &Run, willing: Vec<AeuId>, cx: &mut Context<'_>) {
        for aeu in willing {
            let help = header(HELP, run.object.id, cx.endpoint(), run.id);
            cx.send(Endpoint::aeu(aeu), help, &[], None);
        }
    }
}

impl Handler for Owner {
    type Task = Task;

    fn execute(&mut self, object: ObjectId, kind: u16, commands: Group<'_>, cx: &mut Context<'_>) {
        match kind {
            KEYS => return self.keys(object, commands, cx),
            HAND_OVER => return self.hand_over(object, commands, cx),
            _ => {}
        }
        if let Some(index) = self.index(object) {
            // What was asked for before this pays for it.
            index.tend(0);
        }
        for command in commands {
            let run = command.header.callback;
            match kind {
                STAGE => self.stage(command, cx),
                DELETE => self.delete(command, cx),
                OFFER => self.offer(command, cx),
                ADOPT => self.adopt(command, cx),
                COLLECT => self.collect(object, cx),
                CHECK => self.check(command, cx),
                BUILD => self.build(command, cx),
                RECODE => self.recode(command, cx),
                UNINDEX => {
                    if let Some(partition) = self.partitions.get_mut(&object) {
                        partition.drop_index(run as u32);
                    }
                }
                ROWS => self.rows(command, cx),
                GIVE => self.give(command, cx),
                MEASURE => self.measure(command, cx),
                LOCATE => self.locate(&command.header, cx),
                TOOK => {
                    let header = command.header;
                    self.took(&header, *owned(command), cx);
                }
                SCAN => self.scan(shared(command), cx),
                DEAL => {
                    let deal: Deal = *owned(command);
                    self.dealt(deal.run.clone(), |mail| mail.deal(deal), cx);
                }
                DEALT => {
                    let deals = command.words[0];
                    self.dealt(shared(command), |mail| mail.dealt(deals), cx);
                }
                SPOILT => {
                    if let Some(riding) = self.runs.get(&run) {
                        riding.run.fail(FragmentError::Panicked {
                            worker: format!("{:?}", command.header.sender),
                            object,
                            message: "groups were lost".to_owned(),
                        });
                        cx.resume(riding.task);
                    }
                }
                COMMIT => {
                    let statement = StatementId(command.header.callback);
                    self.commit(&shared::<Commit>(command), object, statement);
                }
                ABORT => self.abort(object, StatementId(command.header.callback)),
                DROP => self.drop_object(&command.header, cx),
                INSPECT => self.inspect(&command.header, cx),
                REORGANIZE => {
                    let status = self.reorganize(object, command.words[0], cx);
                    let Header {
                        sender, callback, ..
                    } = command.header;
                    let reply = header(REORGANIZED, object, cx.endpoint(), callback);
                    cx.send(sender, reply, &[], Some(Parcel::owned(status)));
                }
                INTERN => self.intern(command, cx),
                INTERNED => self.interned(command, cx),
                CREDIT => {
                    if let Some(riding) = self.runs.get_mut(&run) {
                        riding.credits[command.words[1] as usize] += command.words[0] as u32;
                        cx.resume(riding.task);
                    }
                }
                HELP | CANCEL => {
                    if let Some(riding) = self.runs.get(&run) {
                        cx.resume(riding.task);
                    }
                }
                PANICKED => {
                    // Only a dictionary's owner sends this to an AEU.
                    let message: String = *owned(command);
                    let worker = "the owner of a dictionary".to_owned();
                    let table = object.to_string();
                    let error = EngineError::Panicked {
                        worker,
                        table,
                        message,
                    };
                    self.fail_stage(run, error);
                    self.answer_stage(run, cx);
                }
                other => unreachable!("no session and no AEU sends kind {other} to an AEU"),
            }
        }
    }

    fn run(&mut self, task: &mut Task, cx: &mut Context<'_>) -> Slice {
        match task {
            Task::Scan(scan) => scan.slice(self, cx),
            Task::Stage(stage) => stage.slice(self, cx),
            Task::Adopt(adopt) => adopt.slice(self, cx),
            Task::Collect(collect) => collect.slice(self, cx),
            Task::Check(check) => check.slice(self, cx),
            Task::Build(build) => build.slice(self, cx),
            Task::Recode(task) => task.slice(self, cx),
            Task::Reorganize(task) => task.slice(self),
            Task::Give(give) => give.slice(self, cx),
            Task::Tidy(tidy) => tidy.slice(self),
        }
    }

    fn idle(&mut self, _cx: &mut Context<'_>) -> bool {
        false
    }

    fn panicked(&mut self, what: Panicked<'_, Task>, message: &str, cx: &mut Context<'_>) {
        match what {
            Panicked::Task { task, .. } => match task {
                Task::Scan(mut scan) => {
                    let error = FragmentError::Panicked {
                        worker: self.aeu.to_string(),
                        object: scan.object(),
                        message: message.to_owned(),
                    };
                    scan.fail(error, self, cx);
                }
                Task::Stage(mut stage) => stage.panicked(message, self, cx),
                Task::Adopt(mut adopt) => adopt.panicked(message, self, cx),
                // Nobody waits for it; the chunks stay as they are.
                Task::Collect(collect) => collect.end(self),
                Task::Check(mut check) => check.panicked(message, self, cx),
                Task::Build(mut build) => build.panicked(message, self, cx),
                Task::Recode(task) => task.panicked(message, self, cx),
                Task::Reorganize(mut task) => task.panicked(message, self),
                Task::Give(give) => give.panicked(message, self, cx),
                // Nobody waits for it; the segments stay as they are.
                Task::Tidy(tidy) => tidy.end(self),
            },
            Panicked::Group { kind, headers, .. } => {
                let awaited = matches!(
                    kind,
                    STAGE
                        | DELETE
                        | OFFER
                        | ADOPT
                        | CHECK
                        | SCAN
                        | DROP
                        | INTERN
                        | INSPECT
                        | KEYS
                        | ROWS
                        | GIVE
                        | HAND_OVER
                        | MEASURE
                        | LOCATE
                        | BUILD
                        | REORGANIZE
                        | RECODE
                );
                for header in headers {
                    if kind == HAND_OVER && header.sender.as_aeu().is_some() {
                        // As an answer, behind those that have been sent for what was done before.
                        self.distrust(header, message, cx);
                        continue;
                    }
                    if kind == TOOK {
                        self.doubt(header, cx);
                        continue;
                    }
                    if kind == GIVE && self.has_taken_in(header) {
                        continue;
                    }
                    let callback = header.callback;
                    if matches!(kind, DEAL | DEALT) {
                        // They will never be complete here. Who sent them fails the run for all, unless it has left already, having got
                        // everything from here; then the run is still there.
                        if let Some(riding) = self.runs.get(&callback) {
                            riding.run.fail(FragmentError::Panicked {
                                worker: self.aeu.to_string(),
                                object: header.object,
                                message: message.to_owned(),
                            });
                            cx.resume(riding.task);
                        }
                        let spoilt = self::header(SPOILT, header.object, cx.endpoint(), callback);
                        cx.send(header.sender, spoilt, &[], None);
                        continue;
                    }
                    if !awaited {
                        continue;
                    }
                    let reply = self::header(PANICKED, header.object, cx.endpoint(), callback);
                    let message = Parcel::owned(message.to_owned());
                    cx.send(header.sender, reply, &[], Some(message));
                }
            }
            Panicked::Idle => {}
        }
    }
}

fn owned<T: 'static>(command: Command<'_>) -> Box<T> {
    let parcel = command.parcel.and_then(|parcel| parcel.into_owned().ok());
    parcel.expect("the kind says what is in the parcel")
}

fn shared<T: Send + Sync + 'static>(command: Command<'_>) -> Arc<T> {
    let parcel = command.parcel.and_then(|parcel| parcel.into_shared().ok());
    parcel.expect("the kind says what is in the parcel")
}
