//! Whoever waits for a task or a command hears of it if that panics.

use super::handler::{Context, Task};
use super::owner::Owner;
use crate::error::EngineError;
use crate::protocol::asked::Asked;
use crate::protocol::callback::RunId;
use crate::protocol::keys::{ExecuteKeys, ExecuteRows, HandOver, Measure, MoveOut};
use crate::protocol::lists::{OwnerKind, ToClient};
use crate::protocol::message::{Listed, send};
use crate::protocol::objects::{
    Analyze, Build, CollectGarbage, DropIndex, DropObject, Freeze, Inspect, Locate, Recode,
    Reorganize,
};
use crate::protocol::request::{NoReply, Request};
use crate::protocol::runs::{
    Cancel, Credit, Help, Repartition, RepartitionAborted, RepartitionEnd, Scan,
};
use crate::protocol::statements::{
    Abort, Adopt, AdoptKeys, Check, Commit, Delete, Insert, Intern, Interned, OfferChunks,
    OfferKeys,
};
use eris_fragment::FragmentError;
use eris_route::Header;

impl Owner {
    /// A slice has panicked: whoever waits for the task hears of it.
    pub(super) fn task_panicked(&mut self, task: Task, message: &str, cx: &mut Context<'_>) {
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
            Task::OfferKeys(mut offer) => offer.panicked(message, self, cx),
            Task::Unshare(unshare) => unshare.panicked(self, cx),
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
    pub(super) fn command_panicked(
        &mut self,
        kind: u16,
        header: &Header,
        message: &str,
        cx: &mut Context<'_>,
    ) {
        match OwnerKind::of(kind) {
            OwnerKind::HandOver => {
                let asked = Asked::<HandOver>::of(header);
                match header.sender.as_aeu() {
                    // As an answer, behind those that have been sent for what was done before.
                    Some(_) => self.distrust(asked, message, cx),
                    None => asked.of_batch().panicked(message, cx),
                }
            }
            OwnerKind::TransferAcknowledged => self.doubt(Asked::of(header), cx),
            OwnerKind::MoveOut => {
                let asked = Asked::<MoveOut>::of(header);
                // What was taken in will be answered.
                if !self.has_taken_in(asked) {
                    asked.panicked(message, cx);
                }
            }
            OwnerKind::Repartition => {
                self.lost_groups(Asked::<Repartition>::of(header), message, cx);
            }
            OwnerKind::RepartitionEnd => {
                self.lost_groups(Asked::<RepartitionEnd>::of(header), message, cx);
            }
            OwnerKind::Intern => {
                let error = EngineError::Panicked {
                    worker: "the owner of a dictionary".to_owned(),
                    table: header.object.to_string(),
                    message: message.to_owned(),
                };
                Asked::<Intern>::of(header).answer(Interned::Failed(error), cx);
            }
            OwnerKind::Insert => say_panicked::<Insert>(header, message, cx),
            OwnerKind::Adopt => say_panicked::<Adopt>(header, message, cx),
            OwnerKind::OfferKeys => say_panicked::<OfferKeys>(header, message, cx),
            OwnerKind::AdoptKeys => say_panicked::<AdoptKeys>(header, message, cx),
            OwnerKind::Delete => say_panicked::<Delete>(header, message, cx),
            OwnerKind::Check => say_panicked::<Check>(header, message, cx),
            OwnerKind::OfferChunks => say_panicked::<OfferChunks>(header, message, cx),
            OwnerKind::Scan => say_panicked::<Scan>(header, message, cx),
            OwnerKind::ExecuteRows => say_panicked::<ExecuteRows>(header, message, cx),
            OwnerKind::ExecuteKeys => say_panicked::<ExecuteKeys>(header, message, cx),
            OwnerKind::Measure => say_panicked::<Measure>(header, message, cx),
            OwnerKind::DropObject => say_panicked::<DropObject>(header, message, cx),
            OwnerKind::Build => say_panicked::<Build>(header, message, cx),
            OwnerKind::Recode => say_panicked::<Recode>(header, message, cx),
            OwnerKind::Reorganize => say_panicked::<Reorganize>(header, message, cx),
            OwnerKind::Inspect => say_panicked::<Inspect>(header, message, cx),
            OwnerKind::Freeze => say_panicked::<Freeze>(header, message, cx),
            OwnerKind::Locate => say_panicked::<Locate>(header, message, cx),
            OwnerKind::Analyze => say_panicked::<Analyze>(header, message, cx),
            OwnerKind::Commit => nobody_waits::<Commit>(),
            OwnerKind::Abort => nobody_waits::<Abort>(),
            OwnerKind::Interned => nobody_waits::<Interned>(),
            OwnerKind::Help => nobody_waits::<Help>(),
            OwnerKind::Credit => nobody_waits::<Credit>(),
            OwnerKind::Cancel => nobody_waits::<Cancel>(),
            OwnerKind::RepartitionAborted => nobody_waits::<RepartitionAborted>(),
            OwnerKind::CollectGarbage => nobody_waits::<CollectGarbage>(),
            OwnerKind::DropIndex => nobody_waits::<DropIndex>(),
        }
    }

    /// Groups will never be complete here. Who sent them fails the run for all, unless it has left already, having got
    /// everything from here; then the run is still there.
    fn lost_groups<R: Request<Callback = RunId>>(
        &mut self,
        sent: Asked<R>,
        message: &str,
        cx: &mut Context<'_>,
    ) {
        self.fail_run(sent.callback, self.aeu.to_string(), message.to_owned(), cx);
        send(
            cx,
            sent.sender,
            sent.object,
            sent.callback,
            RepartitionAborted,
        );
    }

    /// A run cannot be completed here.
    pub(super) fn fail_run(
        &mut self,
        run: RunId,
        worker: String,
        message: String,
        cx: &mut Context<'_>,
    ) {
        if let Some(active) = self.runs.get(&run) {
            active.run.fail(FragmentError::Panicked {
                worker,
                object: active.run.object.id,
                message,
            });
            cx.resume(active.task);
        }
    }
}

/// Tells the client that waits.
fn say_panicked<R: Request>(header: &Header, message: &str, cx: &mut Context<'_>)
where
    R::Reply: Listed<ToClient>,
{
    Asked::<R>::of(header).panicked(message, cx);
}

/// Compiles only where that is so.
fn nobody_waits<R: Request<Reply = NoReply>>() {}
