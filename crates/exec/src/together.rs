//! Several programs over one chunk, which comes from memory once for all of them.
//!
//! ```text
//!            begin        tests on shared columns     rest of the filter, output
//! member 0   zones ─▶ ┐                            ┌─▶ residual ─▶ rows or groups
//! member 1   zones ─▶ ├─▶ a vector for all tests ─▶┼─▶ residual ─▶ rows or groups
//! member 2   zones ─▶ ┘                            └─▶ residual ─▶ rows or groups
//! ```
//!
//! Each member has a program, a view (its snapshot's deleted rows), a selection, a result, and counts of its own. What
//! happens to one of them does not touch the others. The result is that of [`Program::run`] for each.

use crate::filter::{Passed, run_tests};
use crate::program::{Partial, Program};
use crate::work::Work;
use arrow_array::RecordBatch;
use eris_column::ColumnChunk;
use eris_fragment::FragmentError;
use eris_store::ChunkView;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One of several programs that run over the same chunk.
pub struct Member<'a> {
    /// What runs.
    pub program: &'a Program,
    /// The chunk, as the program's snapshot sees it.
    pub view: &'a ChunkView,
    /// The share that takes in the chunk's rows.
    pub partial: &'a mut Partial,
    /// What it costs. The members' [`Work::bytes`] count what they have in common for each of them.
    pub work: &'a mut Work,
    /// What [`run_together`] has come to: what [`Program::run`] returns, or what it panicked with.
    pub outcome: Outcome,
}

/// The result of a member.
pub type Outcome = std::thread::Result<Result<Vec<RecordBatch>, FragmentError>>;

impl<'a> Member<'a> {
    /// A member without a result yet.
    pub fn new(
        program: &'a Program,
        view: &'a ChunkView,
        partial: &'a mut Partial,
        work: &'a mut Work,
    ) -> Self {
        Member {
            program,
            view,
            partial,
            work,
            outcome: Ok(Ok(Vec::new())),
        }
    }
}

/// What passed the filter of a member.
struct Filtered {
    /// Which member.
    number: usize,
    only_count: bool,
    passed: Passed,
}

/// Runs over one chunk for each member, as [`Program::run`] does for one: with the same result, bit by bit. A member's
/// share may be [midway](Partial::is_midway) in the chunk then; others need not wait for it.
///
/// What views have in common is found by their column chunks. So they may also be of two versions of a chunk.
///
/// # Panics
/// Never: what panics is a member's [outcome](Member::outcome), and its share is lost then, as after an error.
pub fn run_together(members: &mut [Member<'_>]) {
    for filtered in filter_together(members) {
        let Filtered {
            number,
            only_count,
            passed,
        } = filtered;
        let Member {
            program,
            view,
            partial,
            work,
            outcome,
        } = &mut members[number];
        let take_in = || program.take_in(view, only_count, passed, partial, work);
        if let Some(taken) = contain(outcome, take_in) {
            *outcome = Ok(taken);
        }
    }
    count_shared(members);
}

/// What passes the filters of the members that need the chunk, and did not fail.
fn filter_together(members: &mut [Member<'_>]) -> Vec<Filtered> {
    let mut runs = Vec::with_capacity(members.len());
    let mut of = Vec::with_capacity(members.len());
    for (number, member) in members.iter_mut().enumerate() {
        let (program, view) = (member.program, member.view);
        let (partial, work) = (&mut *member.partial, &mut *member.work);
        let begun = contain(&mut member.outcome, || {
            let only_count = program.begin(view, partial, work)?;
            let counts = program.lets_filter_count(only_count);
            let (state, selection) = (&mut partial.filter, &mut partial.selection);
            let input = program.input(view);
            let run = runs.push_mut((program.filter).begin(input, state, selection, work));
            run.come_to_tests(counts);
            Some(only_count)
        });
        match begun {
            Some(Some(only_count)) => of.push((number, only_count, &mut member.outcome)),
            // It is not needed any more, or it panicked.
            Some(None) => {}
            None => runs.truncate(of.len()),
        }
    }
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run_tests(&mut runs))) {
        // It is the mistake of one of them, but nobody knows of which.
        let mut payloads = std::iter::once(payload).chain(std::iter::repeat_with(|| {
            Box::new("a test of several programs panicked") as Box<dyn Any + Send>
        }));
        for (_, _, outcome) in of {
            *outcome = Err(payloads.next().expect("there are always more"));
        }
        return Vec::new();
    }
    let mut all = Vec::with_capacity(runs.len());
    for (run, (number, only_count, outcome)) in runs.iter_mut().zip(of) {
        match contain(outcome, || run.finish()) {
            Some(Ok(passed)) => all.push(Filtered {
                number,
                only_count,
                passed,
            }),
            Some(Err(error)) => *outcome = Ok(Err(error)),
            None => {}
        }
    }
    all
}

/// What `f` returns; `None` if it panics, which becomes the outcome.
fn contain<T>(outcome: &mut Outcome, f: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(f));
    done.map_err(|payload| *outcome = Err(payload)).ok()
}

/// Tells the members which columns others had read before them.
fn count_shared(members: &mut [Member<'_>]) {
    let mut read: Vec<*const ColumnChunk> = Vec::with_capacity(2 * members.len());
    for member in members {
        let known = read.len();
        for &column in member.partial.filter.tally.columns_read() {
            let chunk = member.view.chunk.column(member.program.columns.ids[column]);
            if read[..known].contains(&std::ptr::from_ref(chunk)) {
                member.work.bytes_shared += member.view.touched(chunk.bytes());
            } else {
                read.push(chunk);
            }
        }
    }
}
