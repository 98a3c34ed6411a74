//! One attempt, from fresh pods to its entry in the ledger; and all that makes it void or fail.

mod common;

use common::{
    T0,
    summary::of_plan,
    truth::LoadOn,
    two, two_with,
    world::{ROWS, World, pod_in},
};
use frugality_measure::{
    reading::Provenance,
    report::{ClockOffset, Failure, InjectionReport},
};
use frugality_operator::{
    api::{FrugalityTrialStatus, Outcome, Role, reason},
    plan::{
        Plan,
        facts::{ChildKind, Observed, Termination},
        plan,
        resources::ChildObject,
    },
};
use kube::ResourceExt;
use serde_json::json;

/// A world right before the pass that follows the one which said this for the first time.
fn after(doing: &str) -> World {
    let mut world = World::new([two()]);
    run_to(&mut world, doing);
    world
}

fn run_to(world: &mut World, doing: &str) {
    world.run_until(doing, |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        status
            .and_then(|status| status.columns.as_ref()?.message.as_ref())
            .is_some_and(|message| message.ends_with(doing))
    });
    world.wait();
}

/// What is planned for what the world shows after a change.
fn changed(world: &World, change: impl Fn(&mut Observed)) -> Plan {
    let mut observed = world.observed(0);
    change(&mut observed);
    plan(
        &world.slots[0].benchmark,
        &observed,
        &world.config,
        world.now,
    )
}

/// A world in which the injector has ended and the second idle baseline is over.
fn load_over() -> World {
    let mut world = after("load is on");
    let over = world.loads[0].end + 3.0 + 5.0 + 2.0;
    world.advance_to(over);
    world
}

fn record(plan: &Plan) -> &FrugalityTrialStatus {
    &plan.record.as_ref().unwrap().1
}

#[track_caller]
fn assert_void(plan: &Plan, reason: &str) {
    let record = record(plan);
    assert_eq!(
        (record.outcome, record.reason.as_deref()),
        (Some(Outcome::Void), Some(reason)),
        "{:?}",
        record.message
    );
    // No figure of a void attempt exists that could be shown.
    assert_eq!(
        (&record.energy, &record.requests, &record.columns),
        (&None, &None, &None)
    );
    assert_eq!(plan.status.verdict, None);
    assert!(
        plan.events
            .iter()
            .any(|event| event.warning && event.reason == reason)
    );
}

#[test]
fn the_first_attempt_is_opened_before_anything_is_made_for_it() {
    let mut world = World::new([two()]);
    world.run_until("an entry", |world| !world.slots[0].trials.is_empty());
    assert!(
        world.slots[0]
            .children
            .iter()
            .all(|child| child.facts.trial.is_none())
    );
    world.wait();
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_next_attempt_waits_until_the_last_ones_pods_are_gone() {
    let mut world = World::new([two()]);
    world.run_until("a measured trial", |world| {
        world.slots[0]
            .trials
            .iter()
            .any(|trial| trial.status.as_ref().is_some_and(|s| s.outcome.is_some()))
    });
    world.wait();
    let deleting = world.pass(0);
    world.wait();
    let waiting = world.plan(0);
    assert_eq!(waiting.open, None);
    world.advance_to(world.now + 5.0);
    let opening = world.plan(0);
    insta::assert_snapshot!([deleting, opening].each_ref().map(of_plan).join("----\n"));
    // An injector's pod that outlives its Job could still send load; so could a server's serve it.
    for role in [Role::Injector, Role::Candidate] {
        let left = changed(&world, |observed| {
            let mut pod = pod_in(observed, Role::Database).clone();
            pod.role = role.as_str().into();
            pod.ended = role == Role::Injector;
            observed.pods.push(pod);
        });
        assert_eq!(left.open, None);
    }
}

#[test]
fn a_server_that_starts_is_waited_for() {
    let world = after("starting fresh pods");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_idle_baseline_is_measured_with_the_candidate_up() {
    let world = after("measuring the idle baseline");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_load_starts_once_the_baseline_is_recorded() {
    let mut world = World::new([two()]);
    let mut starting = None;
    world.run_until("the load", |world| !world.loads.is_empty());
    let mut again = World::new([two()]);
    while again.loads.is_empty() {
        let slot = again.wait();
        starting = Some(again.pass(slot));
    }
    let starting = starting.unwrap();
    insta::assert_snapshot!(of_plan(&starting));
    let idle = record(&starting).idle_before.unwrap();
    assert!((idle.seconds() - 5.0).abs() < 1e-6);
}

#[test]
fn under_load_nothing_is_done() {
    let world = after("load is on");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_second_idle_baseline_follows_the_load() {
    let mut world = after("load is on");
    world.advance_to(world.loads[0].end + 1.0);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_measured_attempt_has_its_windows_and_figures() {
    let world = load_over();
    let plan = world.plan(0);
    insta::assert_snapshot!(of_plan(&plan));
    let record = record(&plan);
    assert_eq!(record.restarts, Some(0));
    assert_eq!(record.images.len(), 3);
    assert_eq!(
        record.database.as_ref().map(|facts| facts.rows),
        Some(10_000)
    );
    assert!(record.fortio.is_some() && record.clock.is_some());
}

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
            for reading in &mut session.readings[1..] {
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
        pod_in(observed, Role::Injector).ended = true
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

/// The attempt's end with another last word of the injector.
fn said(message: &str) -> Plan {
    changed(&load_over(), |observed| {
        let end = Termination {
            exit_code: 0,
            reason: "Completed".into(),
            message: message.into(),
        };
        pod_in(observed, Role::Injector)
            .terminated
            .insert("injector".into(), end);
    })
}

fn reported(change: impl Fn(&mut InjectionReport)) -> Plan {
    let world = load_over();
    let mut report = world.loads[0].report(1.0);
    change(&mut report);
    said(&report.encode().unwrap())
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

/// The end of the second trial, before which the database held these rows.
fn second_trial(world: &mut World, rows: &str) -> Plan {
    world.run_until("the second load", |world| world.loads.len() == 2);
    world.advance_to(world.loads[1].end + 11.0);
    changed(world, |observed| {
        let end = Termination {
            message: rows.into(),
            ..Termination::default()
        };
        pod_in(observed, Role::Injector)
            .terminated
            .insert("prepare".into(), end);
    })
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
fn what_a_candidate_does_itself_is_an_outcome_and_never_void() {
    // It crashed and came back.
    let crashed = changed(&load_over(), |observed| {
        let pod = pod_in(observed, Role::Candidate);
        pod.restarts = 2;
    });
    assert_eq!(record(&crashed).outcome, Some(Outcome::Measured));
    assert_eq!(record(&crashed).restarts, Some(2));
    // One of five requests failed, or all did.
    let answering = |share: f64| {
        let world = load_over();
        said(&world.loads[0].report(share).encode().unwrap())
    };
    insta::assert_snapshot!(
        [0.8, 0.0]
            .map(|share| of_plan(&answering(share)))
            .join("----\n")
    );
    let none = answering(0.0);
    assert_eq!(
        record(&none).requests.as_ref().unwrap().requests_per_second,
        None
    );
    assert_eq!(
        record(&none)
            .energy
            .as_ref()
            .unwrap()
            .gross_joules_per_request,
        None
    );
}

#[test]
fn a_server_image_that_cannot_be_had_ends_the_run() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    world.manner.server_waiting = Some(("ErrImagePull".into(), "not found".into()));
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 40.0);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_server_that_never_becomes_ready_ends_the_run() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 170.0);
    assert_eq!(world.plan(0).record, None);
    world.advance_to(world.now + 15.0);
    let silent = world.plan(0);
    let crashing = changed(&world, |observed| {
        let pod = pod_in(observed, Role::Candidate);
        pod.waiting = Some(("CrashLoopBackOff".into(), "back-off 40s".into()));
        let end = Termination {
            exit_code: 1,
            reason: "Error".into(),
            message: "DATABASE_URL is not set".into(),
        };
        pod.terminated.insert("server".into(), end);
    });
    let texts = [&silent, &crashing].map(|plan| record(plan).message.clone().unwrap());
    assert_eq!(
        record(&silent).reason.as_deref(),
        Some(reason::CANDIDATE_NOT_READY)
    );
    insta::assert_snapshot!(texts.join("\n"));
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

/// Arguments of the injector that the plan creates.
fn injector_args(world: &World) -> Vec<String> {
    let plan = world.plan(0);
    let job = plan.create.iter().find_map(|child| match child {
        ChildObject::Job(job) => Some(job),
        _ => None,
    });
    let pod = job
        .unwrap()
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap();
    pod.containers[0].args.clone().unwrap()
}

#[test]
fn the_clock_that_is_compared_is_the_one_that_stamps_the_readings() {
    let mut world = World::new([two()]);
    while !world
        .plan(0)
        .create
        .iter()
        .any(|child| child.name().contains("-b01-") && child.kind() == ChildKind::Job)
    {
        world.pass(0);
        world.wait();
    }
    let told = injector_args(&world);
    assert!(
        told.contains(&"--clock-url=http://10.0.0.1:28282/time".to_owned()),
        "{told:?}"
    );
    // Stock Kepler tells no time: its readings are stamped by the operator's clock.
    for session in world.slots[0].sessions.values_mut() {
        for reading in &mut session.readings {
            reading.meter_unix_seconds = None;
        }
    }
    let told = injector_args(&world);
    assert!(
        told.contains(&"--clock-url=http://10.0.0.9:8080/time".to_owned()),
        "{told:?}"
    );
}

#[test]
fn a_load_begins_after_its_baseline_and_the_next_baseline_after_it() {
    let world = load_over();
    let plan = world.plan(0);
    let LoadOn { start, end, .. } = world.loads[0];
    let record = record(&plan);
    assert!(record.idle_before.unwrap().end_unix_seconds < start);
    assert!(record.idle_after.unwrap().start_unix_seconds > end);
    assert!(record.idle_before.unwrap().start_unix_seconds > T0);
}
