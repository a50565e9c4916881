//! The loop of one AEU, stepped by hand.
#![cfg(not(loom))]

mod common;

use common::*;
use eris_aeu::{Aeu, Step};
use eris_numa::Topology;
use eris_route::{BufferSizes, FlushState, Rank, Router};
use eris_telemetry::Telemetry;
use std::sync::{Arc, Mutex};

const SIZES: BufferSizes = BufferSizes {
    outgoing: 64,
    aeu_inbox: 256,
    session_inbox: 4096,
};

fn aeus(count: u16) -> (Vec<Aeu<Numbers>>, TestPort) {
    let topology = Arc::new(Topology::fake(1, count));
    let telemetry = Telemetry::new(count as usize);
    let router = Router::new(count as usize, SIZES);
    let make = |&place: &eris_numa::AeuPlace| {
        let port = router.aeu_port(place.aeu);
        Aeu::new(
            place,
            topology.clone(),
            telemetry.clone(),
            port,
            Numbers::default(),
        )
    };
    let aeus = topology.aeus().iter().map(make).collect();
    (aeus, router.session().unwrap())
}

#[test]
fn commands_are_grouped_by_object_and_kind_in_arrival_order() {
    let (mut aeus, mut session) = aeus(1);
    for callback in 0..9 {
        let (object, kind) = if callback % 3 == 0 {
            (1, NOTE)
        } else {
            (2, [NOTE, IGNORED + 1][callback as usize % 2])
        };
        ask(&mut session, 0, object, kind, callback, &[]);
    }
    session.flush();
    assert_eq!(aeus[0].step(), Step::Worked);
    let expected = [
        (1, NOTE, vec![0, 3, 6]),
        (2, IGNORED + 1, vec![1, 5, 7]),
        (2, NOTE, vec![2, 4, 8]),
    ];
    assert_eq!(aeus[0].handler().groups, expected);
    let done: Vec<_> = answers(&mut session)
        .into_iter()
        .map(|(_, callback, _)| callback)
        .collect();
    assert_eq!(done, [0, 3, 6, 2, 4, 8]);
    assert_eq!(aeus[0].step(), Step::Idle);
    assert_eq!(aeus[0].handler().idle, 1);
    let counted = aeus[0].telemetry().of(aeus[0].place().aeu);
    assert_eq!(
        (
            counted.groups.get(),
            counted.received[0].get(),
            counted.sent[2].get()
        ),
        (3, 9, 6)
    );
}

#[test]
fn a_panic_fails_its_group_alone() {
    let (mut aeus, mut session) = aeus(1);
    let parcel = Arc::new(());
    for callback in 0..3 {
        send(
            &mut session,
            0,
            1,
            PANIC,
            callback,
            &[],
            Some(Box::new(parcel.clone())),
        );
        ask(&mut session, 0, 2, NOTE, 10 + callback, &[]);
    }
    ask(&mut session, 0, 1, PANIC_LATER, 20, &[]);
    session.flush();
    while aeus[0].step() == Step::Worked {}
    let mut seen = answers(&mut session);
    seen.sort();
    let callbacks = |kind| {
        seen.iter()
            .filter(|seen| seen.0 == kind)
            .map(|seen| seen.1)
            .collect::<Vec<_>>()
    };
    assert_eq!(callbacks(FAILED), [0, 1, 2, 20]);
    assert_eq!(callbacks(DONE), [10, 11, 12]);
    assert_eq!(aeus[0].handler().messages, ["as asked", "task 20"]);
    assert_eq!(
        Arc::strong_count(&parcel),
        1,
        "parcels of a failed group are dropped"
    );
    assert_eq!(aeus[0].tasks(), 0);
    ask(&mut session, 0, 1, NOTE, 30, &[]);
    session.flush();
    aeus[0].step();
    assert_eq!(answers(&mut session), [(DONE, 30, vec![])]);
}

#[test]
fn commands_are_answered_between_the_slices_of_long_tasks() {
    let (mut aeus, mut session) = aeus(1);
    ask(&mut session, 0, 1, COUNT, 1, &[10_000]);
    session.flush();
    aeus[0].step();
    for callback in 2..10 {
        ask(&mut session, 0, 1, NOTE, callback, &[]);
        session.flush();
        assert_eq!(aeus[0].step(), Step::Worked);
        assert_eq!(answers(&mut session), [(DONE, callback, vec![])]);
    }
    let mut steps = 0;
    while aeus[0].step() == Step::Worked {
        steps += 1;
    }
    assert!(
        steps > 100,
        "{steps} steps: a step runs a bounded number of slices"
    );
    assert_eq!(answers(&mut session), [(DONE, 1, vec![])]);
}

/// Somebody who asks in between waits for the slice that runs, not for all that a step has room for.
#[test]
fn answers_do_not_wait_for_slices() {
    let (mut aeus, mut session) = aeus(1);
    ask(&mut session, 0, 1, COUNT, 1, &[10_000]);
    session.flush();
    aeus[0].step();
    ask(&mut session, 0, 1, NOTE, 2, &[]);
    session.flush();
    let session = Arc::new(Mutex::new(session));
    aeus[0].handler_mut().witness = Some((session.clone(), Vec::new()));
    aeus[0].step();
    let seen = aeus[0].handler_mut().witness.take().unwrap().1;
    assert_eq!(seen.first(), Some(&true));
    assert_eq!(answers(&mut session.lock().unwrap()), [(DONE, 2, vec![])]);
}

#[test]
fn tasks_are_suspended_resumed_and_cancelled_by_id() {
    let (mut aeus, mut session) = aeus(1);
    let mut waiting = Vec::new();
    for callback in 0..2 {
        ask(&mut session, 0, 1, WAIT, callback, &[]);
        session.flush();
        while aeus[0].step() == Step::Worked {}
        waiting.push(answers(&mut session)[0].2[0]);
    }
    assert_eq!(aeus[0].tasks(), 2);
    ask(&mut session, 0, 1, RESUME, waiting[0], &[]);
    ask(&mut session, 0, 1, CANCEL, waiting[1], &[]);
    session.flush();
    while aeus[0].step() == Step::Worked {}
    assert_eq!(
        answers(&mut session),
        [(DONE, waiting[1], vec![]), (DONE, 0, vec![])]
    );
    assert_eq!(aeus[0].tasks(), 0);
    ask(&mut session, 0, 1, RESUME, waiting[0], &[]);
    ask(&mut session, 0, 1, CANCEL, waiting[1], &[]);
    session.flush();
    while aeus[0].step() == Step::Worked {}
    let late = answers(&mut session);
    assert_eq!(
        late,
        [(FAILED, waiting[0], vec![]), (FAILED, waiting[1], vec![])]
    );
}

#[test]
fn low_ranks_are_put_off_while_replies_find_no_room() {
    let (mut aeus, mut session) = aeus(2);
    ask(&mut session, 0, 1, FLOOD, 0, &[1, 1000]);
    session.flush();
    aeus[0].step();
    for callback in 1..40 {
        ask(&mut session, 0, 1, NOTE, callback, &[]);
        session.flush();
        assert_ne!(aeus[0].step(), Step::Idle);
    }
    assert!(answers(&mut session).is_empty(), "put off");
    assert!(
        session.pending(eris_route::Endpoint::aeu(aeus[0].place().aeu)) > 0,
        "and kept by the session"
    );
    let control = eris_aeu::Header {
        kind: NOTE,
        rank: Rank::Control,
        object: eris_types::ObjectId(1),
        sender: session.endpoint(),
        callback: 99,
    };
    session.outgoing().send(
        eris_route::Endpoint::aeu(aeus[0].place().aeu),
        control,
        &[],
        None,
    );
    session.flush();
    // The rule of ranks forbids a reply on behalf of a control command; what matters here is that it is executed.
    if cfg!(not(debug_assertions)) {
        aeus[0].step();
        assert_eq!(
            answers(&mut session),
            [(DONE, 99, vec![])],
            "a control command gets through"
        );
    }
    let mut done = Vec::new();
    for _ in 0..1000 {
        session.flush();
        for aeu in &mut aeus {
            aeu.step();
        }
        done.extend(
            answers(&mut session)
                .into_iter()
                .map(|(_, callback, _)| callback),
        );
    }
    done.retain(|&callback| callback != 99);
    assert_eq!(done, (1..40).collect::<Vec<_>>(), "all of them, in order");
    assert_eq!(aeus[0].step(), Step::Idle);
}

/// An AEU sleeps after a step that says nothing was done, and the target whose room ended the pressure rings but once.
#[test]
fn a_step_that_ends_the_pressure_asks_for_another() {
    let (mut aeus, mut session) = aeus(2);
    let zero = eris_route::Endpoint::aeu(aeus[0].place().aeu);
    ask(&mut session, 0, 1, FLOOD, 0, &[1, 30]);
    ask(&mut session, 0, 1, COUNT, 1, &[100]);
    session.flush();
    assert_eq!(aeus[0].step(), Step::Worked);
    ask(&mut session, 0, 1, NOTE, 2, &[]);
    session.flush();
    assert_eq!(aeus[0].step(), Step::Held, "a task and a command put off");
    ask(&mut session, 0, 1, NOTE, 3, &[]);
    assert_eq!(session.flush(), FlushState::Held, "the door is closed");
    assert_eq!(aeus[1].step(), Step::Worked);
    assert_eq!(aeus[0].step(), Step::Worked, "room, and work for it");
    while aeus[0].step() == Step::Worked {}
    let done: Vec<_> = answers(&mut session)
        .into_iter()
        .map(|(_, callback, _)| callback)
        .collect();
    assert_eq!(done, [2, 1]);
    assert_eq!(session.flush(), FlushState::Empty, "the door is open");
    assert_eq!(session.pending(zero), 0);
    aeus[0].step();
    assert_eq!(answers(&mut session), [(DONE, 3, vec![])]);
}

#[test]
fn a_task_queued_by_the_idle_hook_is_run() {
    let (mut aeus, mut session) = aeus(1);
    let asked = eris_aeu::Header {
        kind: COUNT,
        rank: Rank::Client,
        object: eris_types::ObjectId(1),
        sender: session.endpoint(),
        callback: 7,
    };
    aeus[0].handler_mut().idle_spawns = Some(Task {
        asked,
        slices: 3,
        panics: false,
        rest: None,
    });
    while aeus[0].step() == Step::Worked {}
    assert_eq!(answers(&mut session), [(DONE, 7, vec![])]);
}

#[test]
#[cfg(debug_assertions)]
fn ranks_may_only_ascend() {
    let (mut aeus, session) = aeus(1);
    aeus[0].spawn(
        Rank::Control,
        Task {
            asked: eris_aeu::Header {
                kind: 0,
                rank: Rank::Control,
                object: eris_types::ObjectId(0),
                sender: session.endpoint(),
                callback: 0,
            },
            slices: 1,
            panics: false,
            rest: None,
        },
    );
    aeus[0].step();
    assert!(aeus[0].handler().messages[0].contains("ranks may only ascend"));
}

#[test]
fn a_command_in_place_is_answered_at_once() {
    let (mut aeus, mut session) = aeus(1);
    let header = eris_aeu::Header {
        kind: NOTE,
        rank: Rank::Client,
        object: eris_types::ObjectId(1),
        sender: session.endpoint(),
        callback: 5,
    };
    aeus[0].execute_in_place(header, &[6], None);
    assert_eq!(answers(&mut session), [(DONE, 5, vec![6])]);
}
