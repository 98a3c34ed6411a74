//! Whole runs in a world with known true figures, from the first pass to the verdict, alone and next to
//! another benchmark.

use crate::common::{
    assert_near,
    expected::{assert_truth, measured, start, status},
    objects::label,
    run_of, summary,
    truth::WINDOW_SECONDS,
    two, two_with,
    world::World,
};
use frugality_operator::{
    api::{CandidateResult, FrugalityBenchmark, FrugalityTrial, LABEL_TRIAL, Reason, Role},
    plan::{action::ChildObject, facts::ChildKind, plan},
};
use kube::ResourceExt;
use serde_json::json;

#[test]
fn a_run_gives_the_true_figures_and_leaves_nothing() {
    let mut world = World::new([two()]);
    world.run_to_end();
    assert_truth(status(&world, 0));
    assert_eq!(
        status(&world, 0).progress.as_ref().unwrap().void_attempts,
        0
    );
    let reasons: Vec<_> = world.reasons.iter().map(|(_, reason)| reason).collect();
    assert_eq!(
        reasons,
        [
            Reason::Waiting.as_str(),
            Reason::Queued.as_str(),
            Reason::StartingDatabase.as_str(),
            Reason::Seeding.as_str(),
            Reason::Measuring.as_str(),
            Reason::NoBudgets.as_str()
        ]
    );
    insta::assert_snapshot!("end_of_a_run", summary::of_status(status(&world, 0)));
}

#[test]
fn windows_use_fortios_times_on_the_meters_clock() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let trials = measured(&world, 0);
    assert_eq!(trials.len(), 10);
    for trial in &trials {
        let window = trial.status.as_ref().unwrap().window.unwrap();
        let load = world
            .loads
            .iter()
            .find(|load| load.trial == trial.name_any())
            .unwrap();
        // The resolution of times near 1.8e9 s is a quarter of a microsecond.
        assert!((window.start_unix_seconds - load.measured.start_unix_seconds).abs() < 1e-6);
        assert!((window.seconds() - WINDOW_SECONDS).abs() < 1e-6);
    }
    for pair in trials.windows(2) {
        let earlier = pair[0].status.as_ref().unwrap();
        let later = pair[1].status.as_ref().unwrap();
        assert!(
            earlier.idle_after.unwrap().end_unix_seconds
                < later.idle_before.unwrap().start_unix_seconds
        );
    }
}

#[test]
fn the_seed_determines_the_order() {
    for seed in [7, 8, 9] {
        let mut world = World::new([two_with(&[("/trials/seed", json!(seed))])]);
        world.run_to_end();
        let names = ["rust", "python"];
        let planned: Vec<&str> = frugality_measure::order::blocks(2, 5, seed)
            .concat()
            .into_iter()
            .map(|index| names[index])
            .collect();
        let trials = measured(&world, 0);
        let done: Vec<&str> = trials
            .iter()
            .map(|trial| trial.spec.candidate.as_str())
            .collect();
        assert_eq!(done, planned, "seed {seed}");
        assert!(
            trials
                .iter()
                .all(|trial| i64::try_from(seed) == Ok(trial.spec.seed))
        );
    }
}

#[test]
fn a_condition_keeps_its_time_until_it_changes() {
    let mut world = World::new([two()]);
    let mut since = std::collections::BTreeMap::new();
    while !world.is_over() {
        let slot = world.wait();
        world.pass(slot);
        for condition in &status(&world, 0).conditions {
            let now = (
                condition.status.clone(),
                condition.last_transition_time.clone(),
            );
            let before = since.insert(condition.type_.clone(), now.clone());
            if let Some(before) = before.filter(|before| before.0 == now.0) {
                assert_eq!(before, now, "{}", condition.type_);
            }
        }
    }
}

#[test]
fn extra_passes_change_nothing() {
    let mut world = World::new([two()]);
    world.manner.hurry = Some(0.17);
    world.run_to_end();
    assert_truth(status(&world, 0));
    assert_eq!(
        status(&world, 0).progress.as_ref().unwrap().void_attempts,
        0
    );
}

#[test]
fn clocks_that_differ_do_not_change_the_figures() {
    // With its clock ahead, the operator would begin the load within the idle baseline, and net figures would
    // be wrong.
    for ahead in [-180.0, -9.0, 2.5, 4.0, 9.0, 180.0] {
        let mut world = World::new([two()]);
        world.manner.operator_ahead = ahead;
        world.run_to_end();
        assert_truth(status(&world, 0));
        for trial in measured(&world, 0) {
            let record = trial.status.as_ref().unwrap();
            let load = world
                .loads
                .iter()
                .find(|load| load.trial == trial.name_any())
                .unwrap();
            assert!(record.idle_before.unwrap().end_unix_seconds <= load.start);
            assert!(record.idle_after.unwrap().start_unix_seconds >= load.end);
        }
    }
}

#[test]
fn figures_of_a_meter_without_a_clock_do_not_depend_on_the_operators_clock() {
    let values = |meter_has_clock, ahead| -> Vec<f64> {
        let mut world = World::new([two()]);
        world.manner.operator_ahead = ahead;
        world.manner.meter_has_clock = meter_has_clock;
        world.run_to_end();
        let results = status(&world, 0).results.iter();
        let of_one = |it: &CandidateResult| {
            [
                &it.requests_per_second,
                &it.gross_joules_per_request,
                &it.net_joules_per_request,
                &it.attributed_joules_per_request,
                &it.cpu_milliseconds_per_request,
            ]
            .map(|figure| figure.as_ref().unwrap().value)
        };
        results.flat_map(of_one).collect()
    };
    let expected = values(true, 0.0);
    for ahead in [0.0, 9.0, -180.0] {
        let found = values(false, ahead);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.into_iter().zip(&expected) {
            assert_near(found, *expected);
        }
    }
}

fn second() -> FrugalityBenchmark {
    let mut benchmark = two();
    benchmark.metadata.name = Some("second".into());
    benchmark.metadata.uid = Some("second-uid".into());
    benchmark
}

#[test]
fn two_benchmarks_are_measured_one_after_the_other() {
    let mut world = World::new([two(), second()]);
    // The world asserts that at most one trial is open and at most one load is on.
    world.run_to_end();
    let mut runs = Vec::new();
    for slot in 0..2 {
        assert_truth(status(&world, slot));
        let trials = measured(&world, slot);
        assert_eq!(trials.len(), 10);
        runs.push((start(trials[0]), start(trials[9]) + WINDOW_SECONDS));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(runs[0].1 < runs[1].0, "{runs:?}");
    assert_ne!(
        run_of(&world.slots[0].benchmark),
        run_of(&world.slots[1].benchmark)
    );
}

#[test]
fn namespaces_take_turns() {
    let named = |namespace: &str, name: &str| {
        let mut benchmark = two();
        benchmark.metadata.namespace = Some(namespace.into());
        benchmark.metadata.name = Some(name.into());
        benchmark.metadata.uid = Some(format!("{name}-uid"));
        benchmark
    };
    let all = [
        named("busy", "busy-1"),
        named("busy", "busy-2"),
        named("busy", "busy-3"),
        named("calm", "calm"),
    ];
    let mut world = World::new(all);
    world.run_to_end();
    let mut begins: Vec<_> = (0..4)
        .map(|slot| (start(measured(&world, slot)[0]), slot))
        .collect();
    begins.sort_by(|a, b| a.0.total_cmp(&b.0));
    let order: Vec<_> = begins.into_iter().map(|(_, slot)| slot).collect();
    assert_eq!(order, [0, 3, 1, 2]);
}

#[test]
fn a_waiting_benchmark_names_the_benchmark_ahead() {
    let mut world = World::new([two(), second()]);
    world.run_until("a trial", |world| {
        world.slots.iter().any(|slot| !slot.trials.is_empty())
    });
    world.run_until("a pass of the other benchmark", |world| {
        world.now > crate::common::T0 + 60.0
    });
    let texts: Vec<String> = (0..2)
        .map(|slot| summary::of_status(status(&world, slot)))
        .collect();
    insta::assert_snapshot!("two_at_once", texts.join("---\n"));
}

/// `fixtures/two.yaml` with a database that the operator runs itself.
fn standalone() -> FrugalityBenchmark {
    two_with(&[("/database/provider", json!("Standalone"))])
}

#[test]
fn a_standalone_database_gives_the_same_figures_in_a_cluster_without_cloudnativepg() {
    let mut world = World::new([standalone()]);
    world.manner.cloud_native_pg = false;
    let mut made = Vec::new();
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.pass(slot);
        let ours = plan
            .create
            .iter()
            .filter(|child| label(child, LABEL_TRIAL).is_none());
        made.extend(ours.map(ChildObject::kind));
    }
    assert_truth(status(&world, 0));
    assert_eq!(
        status(&world, 0).progress.as_ref().unwrap().void_attempts,
        0
    );
    // The plan creates each object once, and the login before the pod that needs it. Then it creates a Job
    // before the first attempt and after each attempt.
    assert_eq!(made.len(), 3 + 11);
    made.truncate(4);
    assert_eq!(
        made,
        [
            ChildKind::Service,
            ChildKind::Secret,
            ChildKind::Deployment,
            ChildKind::Job
        ]
    );
    for trial in measured(&world, 0) {
        let record = trial.status.as_ref().unwrap();
        assert_eq!(record.database_pods.len(), 1);
        let energy = record.energy.as_ref().unwrap();
        assert!(energy.attributed.as_ref().unwrap().database_joules > Some(0.0));
    }
}

#[test]
fn a_standalone_database_that_lost_its_pod_is_filled_again() {
    let mut world = World::new([standalone()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    world.replace_pod(0, Role::Database);
    let mut seeds = 0;
    while !world.is_over() {
        let slot = world.wait();
        // An attempt with figures needs the database no more.
        let needs_database = |trial: &FrugalityTrial| {
            let status = trial.status.as_ref();
            status.is_none_or(|it| it.outcome.is_none() && it.energy.is_none())
        };
        let open = world.slots[0].trials.iter().any(needs_database);
        let plan = world.pass(slot);
        let seed = |child: &ChildObject| child.name().contains("-seed");
        if plan.create.iter().any(seed) {
            assert!(
                !open,
                "an attempt is open on a database that is being filled"
            );
            seeds += 1;
        }
    }
    // A seed follows every attempt, also the void attempt.
    assert_eq!(seeds, 11);
    assert_truth(status(&world, 0));
    assert_eq!(
        status(&world, 0).progress.as_ref().unwrap().void_attempts,
        1
    );
}

#[test]
fn the_run_waits_for_the_pod_of_a_new_seed() {
    let mut world = World::new([standalone()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    world.replace_pod(0, Role::Database);
    let seed = |child: &ChildObject| child.name().contains("-seed");
    loop {
        let slot = world.wait();
        if world.pass(slot).create.iter().any(seed) {
            break;
        }
    }
    let without_pod = |world: &World| {
        let mut observed = world.observed(0);
        observed.pods.retain(|pod| pod.role != Role::Seed.as_str());
        let benchmark = &world.slots[0].benchmark;
        let plan = plan(benchmark, &observed, &world.config, world.now);
        plan.status.columns.unwrap().reason.unwrap()
    };
    world.wait();
    assert_eq!(without_pod(&world), Reason::Seeding.as_str());
    // Kubernetes may remove the pods. Their Job stays.
    let before = world.slots[0].trials.len();
    world.run_until("another attempt", |world| {
        world.slots[0].trials.len() > before
    });
    world.wait();
    assert_ne!(without_pod(&world), Reason::Seeding.as_str());
}

#[test]
fn a_standalone_database_without_its_service_is_created_again_with_its_login() {
    let mut world = World::new([standalone()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    let address = format!("two-{}-db-rw", run_of(&world.slots[0].benchmark));
    world.delete(0, ChildKind::Service, &address);
    world.run_to_end();
    // The world stops the test if a database starts without its login.
    assert_truth(status(&world, 0));
}
