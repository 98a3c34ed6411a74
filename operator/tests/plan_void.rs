//! What makes an attempt void: causes outside the candidate, each with its reason.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

mod common;

use std::sync::Arc;

use common::{
    attempt::{after, assert_void, changed, load_over, record, reported, said, second_trial},
    manner::{ROWS, pod_in},
    summary::of_plan,
    two, two_with,
    world::World,
};
use frugality_measure::{
    reading::Provenance,
    report::{ClockOffset, Failure},
};
use frugality_operator::{
    api::{Outcome, Role, reason},
    plan::{
        facts::{ChildKind, Termination},
        plan,
    },
};
use kube::ResourceExt;
use serde_json::json;

#[test]
fn an_operator_that_was_restarted_makes_the_attempt_void() {
    for doing in [
        "measuring the idle baseline",
        "starting the load",
        "load is on",
    ] {
        let mut world = after(doing);
        world.kill_operator();
        world.wait();
        let plan = world.plan(0);
        if doing == "measuring the idle baseline" {
            // No window of it is recorded yet: the baseline begins anew.
            assert_eq!(plan.record, None);
        } else {
            assert_void(&plan, reason::READINGS_INTERRUPTED);
        }
    }
    let mut world = load_over();
    world.slots[0].sessions.clear();
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_meter_that_was_lost_under_load_makes_the_attempt_void() {
    let mut world = after("load is on");
    let back = world.now + 7.0;
    world.manner.meter = None;
    world.advance_to(back);
    world.manner.meter = Some(Provenance::Metered);
    world.advance_to(world.loads[0].end + 11.0);
    assert_void(&world.plan(0), reason::READINGS_INTERRUPTED);
}

#[test]
fn a_meter_that_is_lost_for_good_is_not_waited_for() {
    let mut world = after("load is on");
    let load_end = world.loads[0].end;
    world.advance_to(load_end);
    world.manner.meter = None;
    world.advance_to(load_end + 14.0);
    assert_eq!(world.plan(0).record, None);
    world.advance_to(load_end + 16.0);
    assert_void(&world.plan(0), reason::READINGS_INTERRUPTED);
}

#[test]
fn no_load_begins_before_the_meter_has_shown_the_whole_idle_baseline() {
    let mut world = after("measuring the idle baseline");
    let lost = world.now;
    world.manner.meter = None;
    world.advance_to(lost + 14.0);
    let waiting = world.plan(0);
    assert_eq!((waiting.record, waiting.create.len()), (None, 0));
    world.advance_to(lost + 16.0);
    assert_void(&world.plan(0), reason::READINGS_INTERRUPTED);
    // A meter that answers, but with the same reading again and again, is as dead.
    let mut world = after("measuring the idle baseline");
    world.advance_to(world.now + 20.0);
    let stuck = changed(&world, |observed| {
        for session in observed.sessions.values_mut() {
            let at = session.readings[1].meter_unix_seconds;
            for reading in &mut Arc::make_mut(&mut session.readings)[1..] {
                reading.meter_unix_seconds = at;
            }
        }
    });
    assert_void(&stuck, reason::READINGS_INTERRUPTED);
}

#[test]
fn a_measured_pod_that_was_replaced_makes_the_attempt_void() {
    for role in [Role::Candidate, Role::Database] {
        let mut world = after("load is on");
        world.replace_pod(0, role);
        let plan = world.plan(0);
        assert_void(&plan, reason::POD_REPLACED);
        assert!(
            record(&plan)
                .message
                .as_ref()
                .unwrap()
                .contains(role.as_str())
        );
        // So does one that is gone without a successor yet.
        let world = load_over();
        let gone = changed(&world, |observed| {
            pod_in(observed, role).deleting = true;
        });
        assert_void(&gone, reason::POD_REPLACED);
    }
}

#[test]
fn a_deployment_that_is_deleted_before_the_load_makes_the_attempt_void() {
    let mut world = after("measuring the idle baseline");
    let name = world.slots[0].trials[0].name_any();
    world.delete(0, ChildKind::Deployment, &name);
    assert_void(&world.plan(0), reason::POD_REPLACED);
}

#[test]
fn an_injector_that_was_deleted_makes_the_attempt_void() {
    let mut world = after("load is on");
    let name = world.slots[0].trials[0].name_any();
    world.delete(0, ChildKind::Job, &name);
    assert_void(&world.plan(0), reason::INJECTOR_DELETED);
    world.advance_to(world.now + 3.0);
    assert_void(&world.plan(0), reason::INJECTOR_DELETED);

    let world = after("load is on");
    let evicted = changed(&world, |observed| {
        pod_in(observed, Role::Injector).ended = true;
    });
    assert_void(&evicted, reason::INJECTOR_DELETED);
}

#[test]
fn a_job_that_was_never_seen_is_created_again() {
    // The API server was not reached between the record and the Job.
    let mut world = World::new([two()]);
    while world.loads.is_empty() {
        let slot = world.wait();
        let plan = world.plan(slot);
        if plan
            .create
            .iter()
            .any(|child| child.kind() == ChildKind::Job && child.name().contains("-b01-"))
        {
            world.apply(slot, &plan, 2);
            break;
        }
        world.apply(slot, &plan, usize::MAX);
    }
    world.wait();
    let plan = world.plan(0);
    assert_eq!(plan.record, None);
    assert_eq!(plan.create.len(), 1);
}

#[test]
fn fortio_that_was_interrupted_makes_the_attempt_void() {
    let plan = reported(|report| {
        report.interrupted = Some("the measured run was ended by SIGTERM".into());
    });
    assert_void(&plan, reason::FORTIO_INTERRUPTED);
}

#[test]
fn clocks_that_cannot_be_compared_make_the_attempt_void() {
    assert_void(
        &reported(|report| report.clock = None),
        reason::CLOCK_OFFSET_UNKNOWN,
    );
    let known_to = |uncertainty_seconds: f64| {
        reported(|report| {
            report.clock = report.clock.map(|clock| ClockOffset {
                uncertainty_seconds,
                ..clock
            });
        })
    };
    assert_void(&known_to(0.11), reason::CLOCK_OFFSET_UNKNOWN);
    assert_eq!(record(&known_to(0.1)).outcome, Some(Outcome::Measured));
}

#[test]
fn an_injector_without_a_result_makes_the_attempt_void() {
    let failure = Failure {
        error: "fortio could not be started".into(),
        fortio_exit: None,
        stderr_tail: String::new(),
    };
    let texts = [failure.encode(), String::new(), "Segmentation fault".into()].map(|message| {
        let plan = said(&message);
        assert_void(&plan, reason::INJECTOR_FAILED);
        record(&plan).message.clone().unwrap()
    });
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_database_that_cannot_be_prepared_makes_the_attempt_void() {
    let plan = changed(&after("load is on"), |observed| {
        let end = Termination {
            exit_code: 2,
            reason: "Error".into(),
            message: "psql: connection refused".into(),
        };
        pod_in(observed, Role::Injector)
            .terminated
            .insert("prepare".into(), end);
    });
    assert_void(&plan, reason::INJECTOR_FAILED);
    assert!(
        record(&plan)
            .message
            .as_ref()
            .unwrap()
            .contains("connection refused")
    );
}

#[test]
fn data_that_changed_make_the_attempt_void() {
    let mut world = World::new([two()]);
    assert_eq!(
        record(&second_trial(&mut world, ROWS)).outcome,
        Some(Outcome::Measured)
    );
    assert_void(&second_trial(&mut world, "9999 -77"), reason::DATA_CHANGED);
    assert_void(&second_trial(&mut world, "10000 5"), reason::DATA_CHANGED);
    // Requests that write change the data; that is what they are for.
    let mut world = World::new([two_with(&[
        ("/request/method", json!("POST")),
        ("/request/body", json!("{}")),
    ])]);
    assert_eq!(
        record(&second_trial(&mut world, "10007 5")).outcome,
        Some(Outcome::Measured)
    );
}

#[test]
fn data_are_compared_with_trials_that_count() {
    // Listed by name, the void entry of python comes before the measured one of rust.
    let mut world = World::new([two_with(&[("/trials/seed", json!(3))])]);
    let plan = second_trial(&mut world, "9999 5");
    assert!(
        world.loads[0].trial.contains("rust"),
        "another seed is needed here"
    );
    assert_void(&plan, reason::DATA_CHANGED);
    world.apply(0, &plan, usize::MAX);
    world.run_until("the third load", |world| world.loads.len() == 3);
    world.advance_to(world.loads[2].end + 11.0);
    assert_eq!(record(&world.plan(0)).outcome, Some(Outcome::Measured));
}

#[test]
fn an_injector_that_never_ends_makes_the_attempt_void() {
    let world = after("load is on");
    let at = |seconds: f64| {
        let mut observed = world.observed(0);
        let job = observed
            .children
            .iter()
            .find(|child| child.kind == ChildKind::Job && child.trial.is_some());
        let now = job.unwrap().created_unix_seconds + seconds;
        pod_in(&mut observed, Role::Injector).terminated.clear();
        plan(&world.slots[0].benchmark, &observed, &world.config, now)
    };
    // 120 s of patience, 2 s warm-up, 20 s, 3 s tail, three timeouts of 3 s.
    assert_eq!(at(153.0).record, None);
    assert_void(&at(155.0), reason::INJECTOR_FAILED);
}
