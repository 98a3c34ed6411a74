//! A whole run: its end, the effect of an edit of the spec, and the objects that stay.

use std::collections::BTreeMap;

use crate::common::{
    T0, edited, run_of,
    summary::{of_plan, of_status},
    two, two_with,
    world::World,
};
use frugality_operator::{
    api::{FrugalityBenchmarkStatus, FrugalityTrial, Outcome, Reason, Verdict},
    plan::{
        action::{Action, ChildObject, LockAction, Plan},
        facts::{ChildKind, Observed, Refusal},
        ledger::outcome_of,
        plan,
    },
};
use kube::ResourceExt;
use serde_json::{Value, json};

fn status(world: &World) -> &FrugalityBenchmarkStatus {
    world.slots[0].benchmark.status.as_ref().unwrap()
}

fn changed(world: &World, age_seconds: f64, change: impl Fn(&mut Observed)) -> Plan {
    let mut observed = world.observed(0);
    change(&mut observed);
    let benchmark = &world.slots[0].benchmark;
    plan(benchmark, &observed, &world.config, T0 + age_seconds)
}

fn ended(changes: &[(&str, Value)]) -> World {
    let mut world = World::new([two_with(changes)]);
    world.run_to_end();
    world
}

fn under_load() -> World {
    let mut world = World::new([two()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    world.wait();
    world
}

#[track_caller]
fn assert_no_number(status: &FrugalityBenchmarkStatus) {
    assert!(status.results.is_empty() && status.comparisons.is_empty());
    let columns = status.columns.as_ref().unwrap();
    assert_eq!(
        (&columns.energy, &columns.rate, &columns.latency),
        (&None, &None, &None)
    );
}

#[test]
fn an_early_end_is_reported_without_figures() {
    type Fault = fn(&mut World);
    let faults: [(&str, Fault, Verdict); 6] = [
        (
            Reason::ImagePullFailed.as_str(),
            |world| {
                world.manner.server_ready = None;
                world.manner.server_waiting = Some(("ImagePullBackOff".into(), "not found".into()));
            },
            Verdict::Error,
        ),
        (
            Reason::CandidateNotReady.as_str(),
            |world| world.manner.server_ready = None,
            Verdict::Error,
        ),
        (
            Reason::NoSuccessfulRequest.as_str(),
            |world| world.manner.success_share = 0.0,
            Verdict::Error,
        ),
        (
            Reason::DatabaseFailed.as_str(),
            |world| world.manner.database_ready = None,
            Verdict::Error,
        ),
        (
            Reason::SeedFailed.as_str(),
            |world| world.manner.seeded = "3 1".into(),
            Verdict::Error,
        ),
        (
            Reason::CloudNativePgMissing.as_str(),
            |world| world.manner.cloud_native_pg = false,
            Verdict::Error,
        ),
    ];
    let mut texts = Vec::new();
    for (reason, fault, verdict) in faults {
        let mut world = World::new([two()]);
        fault(&mut world);
        world.run_to_end();
        let status = status(&world);
        assert_eq!(status.conditions[0].reason, reason);
        assert_eq!(status.verdict, Some(verdict), "{reason}");
        assert_no_number(status);
        let after = world.now - T0;
        assert!(after < 1000.0, "{reason} only after {after} s");
        texts.push(of_status(status).replace(&run_of(&world.slots[0].benchmark), "<run>"));
    }
    insta::assert_snapshot!(texts.join("----\n"));
}

#[test]
fn a_run_that_lasts_too_long_is_an_error() {
    let mut world = World::new([two_with(&[("/deadline", json!("2m"))])]);
    world.run_to_end();
    assert_eq!(status(&world).verdict, Some(Verdict::Error));
    assert_eq!(
        status(&world).conditions[0].reason,
        Reason::DeadlineExceeded.as_str()
    );
    assert_no_number(status(&world));
    assert!(world.now - T0 < 150.0);

    // The deadline counts from the start of the run. The benchmark may have waited for hours before.
    let world = under_load();
    let first = world.slots[0].children[0].facts.created_unix_seconds - T0;
    let at = |age: f64| changed(&world, first + age, |_| {});
    assert!(
        at(6.0 * 3600.0 - 1.0)
            .record()
            .is_none_or(|(_, record)| record.outcome == Some(Outcome::Void))
    );
    insta::assert_snapshot!(of_plan(&at(6.0 * 3600.0 + 1.0)));
}

#[test]
fn at_the_end_all_but_the_ledger_is_deleted_and_then_the_locks() {
    let mut world = World::new([two()]);
    let mut plans = Vec::new();
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.pass(slot);
        if plan.status.verdict.is_some() {
            plans.push(plan);
        }
    }
    insta::assert_snapshot!(of_plan(&plans[0]));
    let releases: Vec<_> = plans
        .iter()
        .map(|plan| {
            let is_release = |lock: &LockAction| matches!(lock, LockAction::Release { .. });
            plan.locks.len() == 2 && plan.locks.iter().all(is_release)
        })
        .collect();
    // The operator releases both locks once, as its last action.
    assert_eq!(releases.iter().filter(|release| **release).count(), 1);
    assert_eq!(releases.last(), Some(&true));
    assert_eq!(world.slots[0].trials.len(), 10);
    // Afterwards the operator has nothing to do.
    let rest = world.plan(0);
    assert_eq!(
        (rest.watch.as_slice(), rest.opened(), rest.record()),
        (&[][..], None, None)
    );
    assert_eq!(
        (
            rest.locks.len(),
            rest.create.len(),
            rest.delete.len(),
            rest.events.len()
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(&rest.status, status(&world));
}

#[test]
fn a_changed_budget_is_judged_on_the_same_trials() {
    let mut world = ended(&[]);
    let before = status(&world).clone();
    world.edit(
        0,
        &[(
            "/budgets",
            json!([{"candidate": "rust", "maxJoulesPerRequest": "0.001"}]),
        )],
    );
    world.wait();
    let plan = world.pass(0);
    assert_eq!(plan.status.verdict, Some(Verdict::Fail));
    assert_eq!(plan.status.run, before.run);
    assert_eq!(plan.status.ledger_digest, before.ledger_digest);
    assert_eq!(plan.status.results, before.results);
    assert_eq!(
        plan.status.observed_generation,
        before.observed_generation.map(|g| g + 1)
    );
    assert_eq!(world.slots[0].trials.len(), 10);
    assert_eq!(plan.events.len(), 1);

    for changes in [
        ("/deadline", json!("7h")),
        ("/energy/decidingFigure", json!("Net")),
        (
            "/costs",
            json!({"nodeLifetime": "43800h", "carbon": {"nodeGrams": "1", "gramsPerKilowattHour": "1"}}),
        ),
    ] {
        let run = run_of(&world.slots[0].benchmark);
        world.edit(0, &[changes]);
        assert_eq!(run_of(&world.slots[0].benchmark), run);
    }
}

#[test]
fn changes_that_affect_the_measurement_start_a_new_run() {
    let benchmark = two();
    let run = run_of(&benchmark);
    for change in [
        ("/candidates/0/image", json!("example.org/rust:2")),
        ("/candidates/0/resources/limits/cpu", json!("1")),
        ("/database/poolSize", json!(11)),
        ("/database/seed/contacts", json!(10_001)),
        ("/request/path", json!("/other")),
        ("/load/connections", json!(5)),
        ("/load/duration", json!("21s")),
        ("/load/rate", json!(100)),
        ("/trials/blocks", json!(6)),
        ("/trials/seed", json!(8)),
        ("/placement/allowSharedNode", json!(true)),
        ("/rerun", json!(2)),
    ] {
        let path = change.0;
        assert_ne!(run_of(&edited(&benchmark, &[change])), run, "{path}");
    }
    let mut other = benchmark.clone();
    other.metadata.uid = Some("another".into());
    assert_ne!(run_of(&other), run);
    let mut labelled = benchmark.clone();
    labelled.labels_mut().insert("team".into(), "shop".into());
    assert_eq!(run_of(&labelled), run);
}

#[test]
fn every_injector_of_a_sweep_has_the_connections_of_its_point() {
    let load = json!({"duration": "20s", "warmUp": "2s", "sweep": {"connections": [2, 16]}});
    let mut world = World::new([two_with(&[("/load", load)])]);
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    while !world.is_over() {
        let slot = world.wait();
        for object in world.pass(slot).create {
            let ChildObject::Job(job) = object else {
                continue;
            };
            let containers = job.spec.unwrap().template.spec.unwrap().containers;
            let args = containers[0].args.clone().unwrap_or_default();
            if let Some(connections) = args.iter().find_map(|a| a.strip_prefix("--connections=")) {
                asked.insert(job.metadata.name.unwrap(), connections.to_owned());
            }
        }
    }
    let trials = &world.slots[0].trials;
    assert_eq!((trials.len(), asked.len()), (20, 20));
    for trial in trials {
        let connections = &asked[&trial.name_any()];
        assert_eq!(trial.spec.point, format!("c{connections}-max"));
    }
    let results = &status(&world).results;
    let keys: Vec<_> = results
        .iter()
        .map(|r| (r.point.as_str(), r.trials))
        .collect();
    assert_eq!(
        keys,
        [("c2-max", 5), ("c2-max", 5), ("c16-max", 5), ("c16-max", 5)]
    );
}

#[test]
fn trials_of_an_older_run_never_count() {
    let mut world = ended(&[]);
    world.edit(0, &[("/load/connections", json!(8))]);
    world.wait();
    let first = world.plan(0);
    assert_eq!(first.status.verdict, None);
    let progress = first.status.progress.as_ref().unwrap();
    assert_eq!((progress.trials_done, progress.trials_planned), (0, 10));
    assert!(first.status.results.is_empty());
    insta::assert_snapshot!(of_plan(&first));
    world.run_to_end();
    assert_eq!(world.slots[0].trials.len(), 20);
    assert_eq!(status(&world).results[0].point, "c8-max");
    assert_eq!(status(&world).results[0].trials, 5);
}

#[test]
fn an_edit_right_after_the_first_entry_ends_it_before_another_begins() {
    let mut world = World::new([two_with(&[("/database", Value::Null)])]);
    world.run_until("the first entry", |world| !world.slots[0].trials.is_empty());
    let old = run_of(&world.slots[0].benchmark);
    world.edit(0, &[("/load/connections", json!(8))]);
    world.run_until("the next entry", |world| world.slots[0].trials.len() == 2);
    let mut trials = world.slots[0].trials.iter();
    let first = trials.find(|it| it.spec.run == old).unwrap();
    let reason = first.status.as_ref().and_then(|it| it.reason.as_deref());
    assert_eq!(reason, Some(Reason::Superseded.as_str()));
}

#[test]
fn an_edit_that_is_taken_back_makes_no_object_without_an_entry() {
    let mut world = World::new([two_with(&[("/database", Value::Null)])]);
    world.run_until("an ended attempt", |world| {
        world.slots[0]
            .trials
            .iter()
            .any(|it| outcome_of(it).is_some())
    });
    world.edit(0, &[("/load/duration", json!("21s"))]);
    // The operator is killed after it has opened the first entry of the other run.
    loop {
        let slot = world.wait();
        let plan = world.plan(slot);
        let actions = plan
            .clone()
            .actions(world.slots[slot].benchmark.current_status());
        let opens = actions.iter().position(|it| matches!(it, Action::Open(_)));
        world.apply(slot, &plan, opens.map_or(usize::MAX, |it| it + 1));
        if opens.is_some() {
            break;
        }
    }
    world.edit(0, &[("/load/duration", json!("20s"))]);
    let superseding = loop {
        let slot = world.wait();
        let plan = world.plan(slot);
        let is_superseding = plan.record().is_some_and(|(_, record)| {
            record.reason.as_deref() == Some(Reason::Superseded.as_str())
        });
        if is_superseding {
            break plan;
        }
        world.apply(slot, &plan, usize::MAX);
    };
    assert_eq!(superseding.create, []);
}

#[test]
fn an_edit_under_load_ends_the_old_run_before_the_new_one_begins() {
    let mut world = under_load();
    let old = run_of(&world.slots[0].benchmark);
    world.edit(0, &[("/load/connections", json!(8))]);
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.plan(slot);
        let observed = world.observed(slot);
        let left = observed.children.iter().any(|child| child.run == old)
            || observed.pods.iter().any(|pod| pod.run == old);
        assert!(!left || (plan.create.is_empty() && plan.opened().is_none()));
        world.apply(slot, &plan, usize::MAX);
    }
    assert_eq!(status(&world).verdict, Some(Verdict::Reported));
    assert_eq!(status(&world).results[1].trials, 5);
    // The old run's open entry is closed and does not count.
    let closed = world.slots[0].trials.iter().find(|t| t.spec.run == old);
    let record = closed.unwrap().status.as_ref().unwrap();
    assert_eq!(record.outcome, Some(Outcome::Void));
    assert_eq!(record.reason.as_deref(), Some(Reason::Superseded.as_str()));
    assert_eq!(status(&world).progress.as_ref().unwrap().void_attempts, 0);
    let open = |run: &str| {
        let of_run = world.slots[0]
            .trials
            .iter()
            .filter(|trial| trial.spec.run == run);
        of_run.filter(|trial| outcome_of(trial).is_none()).count()
    };
    assert_eq!(
        (open(&old), open(&run_of(&world.slots[0].benchmark))),
        (0, 0)
    );
}

#[test]
fn an_object_that_is_refused_ends_the_run() {
    let refuse = |observed: &mut Observed| {
        observed.refused = Some(Refusal {
            reason: Reason::NameConflict,
            message: "Service x exists and is not this benchmark's; delete or rename it".into(),
            is_entry: false,
        });
    };
    let mut world = World::new([two()]);
    world.run_until("preparation", |world| !world.slots[0].children.is_empty());
    let early = changed(&world, 10.0, refuse);
    assert_eq!(early.status.verdict, Some(Verdict::Error));
    assert_eq!(
        early.status.conditions[0].reason,
        Reason::NameConflict.as_str()
    );
    let late = changed(&under_load(), 30.0, refuse);
    let (_, record) = late.record().unwrap();
    assert_eq!(record.outcome, Some(Outcome::Failed));
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::NameConflict.as_str())
    );
}

/// The run ends in time, although its ledger has no room for the end.
#[test]
fn a_quota_without_room_for_an_entry_keeps_no_node_from_others() {
    let mut world = World::new([two()]);
    world.run_until("a trial", |world| {
        world.slots[0]
            .trials
            .iter()
            .any(|trial| outcome_of(trial) == Some(Outcome::Measured))
    });
    let refuse = |observed: &mut Observed| {
        observed.refused = Some(Refusal {
            reason: Reason::QuotaExceeded,
            message: "the API server refused FrugalityTrial x: exceeded quota: small".into(),
            is_entry: true,
        });
        // Deleted by an earlier pass.
        (observed.children, observed.pods) = (Vec::new(), Vec::new());
    };
    let end = changed(&world, 24.0 * 3600.0, refuse);
    assert_eq!(end.status.verdict, Some(Verdict::Error));
    let complete = &end.status.conditions[0];
    assert_eq!(complete.reason, Reason::DeadlineExceeded.as_str());
    assert!(
        complete.message.contains("exceeded quota"),
        "{}",
        complete.message
    );
    assert_no_number(&end.status);
    assert!(!end.events.is_empty());
    // The entry is tried again, and all locks are released.
    assert!(end.opened().is_some());
    assert_eq!(end.locks.len(), world.locks.len());
    // The turn is over. The end stays until the quota has room.
    world.slots[0].benchmark.status = Some(end.status.clone());
    world.locks.clear();
    let later = changed(&world, 25.0 * 3600.0, refuse);
    assert_eq!(later.status.verdict, Some(Verdict::Error));
    assert!(later.opened().is_some());
    // As after an edit.
    let edited = changed(&world, 25.0 * 3600.0, |observed| {
        refuse(observed);
        observed.refused = None;
    });
    assert_eq!(edited.status.verdict, None);

    // A suspended run that has measured a part of a block.
    world.slots[0].benchmark =
        self::edited(&world.slots[0].benchmark, &[("/suspend", json!(true))]);
    let suspended = changed(&world, 100.0, refuse);
    assert!(suspended.opened().is_some());
    assert_eq!(
        suspended.status.conditions[0].reason,
        Reason::Suspended.as_str()
    );
}

#[test]
fn edits_that_are_taken_back_use_up_no_attempt() {
    let mut world = World::new([two()]);
    let own = run_of(&world.slots[0].benchmark);
    let load = json!(world.slots[0].benchmark.spec.load);
    let of_own = |world: &World, is_meant: fn(&FrugalityTrial) -> bool| {
        let trials = world.slots[0].trials.iter();
        trials
            .filter(|it| it.spec.run == own && is_meant(it))
            .count()
    };
    // One more than spec.trials.maxAttempts.
    for number in 1..=4 {
        world.run_until("an attempt", |world| {
            of_own(world, |it| outcome_of(it).is_none()) == 1
        });
        world.edit(0, &[("/load/connections", json!(8))]);
        world.run_until("its end", |world| {
            of_own(world, |it| outcome_of(it) == Some(Outcome::Void)) == number
        });
        world.edit(0, &[("/load", load.clone())]);
    }
    assert_eq!(run_of(&world.slots[0].benchmark), own);
    world.run_to_end();
    let status = status(&world);
    assert_eq!(status.verdict, Some(Verdict::Reported));
    let is_pause = |note: &String| note.contains("The run paused 4× during a block.");
    assert!(status.notes.iter().any(is_pause), "{:?}", status.notes);
}

#[test]
fn a_run_that_has_begun_keeps_its_nodes_and_waits_for_them() {
    let world = under_load();
    let moved = changed(&world, 30.0, |observed| {
        let mut better = observed.nodes[1].clone();
        better.name = "a-better-node".into();
        better
            .labels
            .insert("frugality.dev/role".into(), "measured".into());
        observed.nodes.insert(0, better);
    });
    assert_eq!(moved.status.measured_node.as_deref(), Some("pi-1"));
    assert_eq!(moved.watch[0].node, "pi-1");
    // The measured node is cordoned between two attempts.
    let mut world = under_load();
    world.run_until("an outcome", |world| {
        outcome_of(&world.slots[0].trials[0]).is_some()
    });
    let at = |age_seconds| {
        changed(&world, age_seconds, |observed| {
            observed.children.retain(|child| child.trial.is_none());
            observed.pods.retain(|pod| pod.trial.is_none());
            observed.nodes[1].schedulable = false;
        })
    };
    let lost = at(3000.0);
    assert_eq!((lost.status.verdict, lost.opened()), (None, None));
    insta::assert_snapshot!(of_plan(&lost));
    // The wait ends at the deadline, because other benchmarks wait for the lock.
    let plan = at(7.0 * 3600.0);
    let (_, record) = plan.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::DeadlineExceeded.as_str())
    );
}

#[test]
fn a_node_cordoned_during_an_attempt_is_still_read() {
    for index in [0, 1] {
        let mut world = under_load();
        world.nodes[index].schedulable = false;
        world.run_until("the attempt's end", |world| {
            outcome_of(&world.slots[0].trials[0]).is_some()
        });
        let record = world.slots[0].trials[0].status.clone().unwrap();
        assert_eq!(record.outcome, Some(Outcome::Measured), "{record:?}");
        // The next attempt waits for the node.
        let until = world.now + 100.0;
        world.run_until("later", |world| world.now > until);
        assert_eq!(world.slots[0].trials.len(), 1);
        let complete = &status(&world).conditions[0];
        let wanted = [
            Reason::NoInjectorNode.as_str(),
            Reason::NoMeasuredNode.as_str(),
        ][index];
        assert_eq!(complete.reason, wanted);
        assert!(complete.message.contains("cordoned"), "{complete:?}");
        world.nodes[index].schedulable = true;
        world.run_to_end();
        assert_eq!(status(&world).verdict, Some(Verdict::Reported));
        assert_eq!(status(&world).progress.as_ref().unwrap().void_attempts, 0);
    }
}

#[test]
fn pods_that_wait_for_a_cordoned_node_are_no_fault_of_the_candidate() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    world.run_until("an attempt", |world| !world.slots[0].trials.is_empty());
    world.run_until("its pods", |world| {
        let pods = &world.slots[0].pods;
        pods.iter().any(|pod| pod.facts.trial.is_some())
    });
    world.nodes[1].schedulable = false;
    world.run_until("the attempt's end", |world| {
        outcome_of(&world.slots[0].trials[0]).is_some()
    });
    let record = world.slots[0].trials[0].status.clone().unwrap();
    assert_eq!(record.outcome, Some(Outcome::Void));
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::NoMeasuredNode.as_str())
    );
}

#[test]
fn a_removed_node_ends_the_attempt_and_the_run_waits_for_the_node() {
    for index in [0, 1] {
        let mut world = under_load();
        let removed = world.nodes.remove(index);
        let slot = world.wait();
        world.pass(slot);
        let record = world.slots[0].trials[0].status.clone().unwrap();
        assert_eq!(record.outcome, Some(Outcome::Void));
        assert_eq!(record.reason.as_deref(), Some(Reason::NodeRemoved.as_str()));
        let until = world.now + 100.0;
        world.run_until("later", |world| world.now > until);
        let complete = &status(&world).conditions[0];
        assert_eq!(complete.reason, Reason::NodeRemoved.as_str());
        assert!(complete.message.contains("was removed"), "{complete:?}");
        // The node comes back.
        world.nodes.insert(index, removed);
        world.run_to_end();
        assert_eq!(status(&world).verdict, Some(Verdict::Reported));
    }
}

#[test]
fn a_void_attempt_repeats_its_whole_block() {
    let mut world = World::new([two()]);
    world.run_until("the second load", |world| world.loads.len() == 2);
    let name = world.loads[1].trial.clone();
    world.delete(0, ChildKind::Job, &name);
    world.run_to_end();
    let mut attempts: Vec<_> = world.slots[0]
        .trials
        .iter()
        .filter(|trial| trial.spec.block == 1)
        .map(|trial| {
            let outcome = trial.status.as_ref().unwrap().outcome.unwrap();
            (trial.spec.attempt, trial.spec.position, outcome)
        })
        .collect();
    attempts.sort_by_key(|(attempt, position, _)| (*attempt, *position));
    assert_eq!(
        attempts,
        [
            (1, 1, Outcome::Measured),
            (1, 2, Outcome::Void),
            (2, 1, Outcome::Measured),
            (2, 2, Outcome::Measured),
        ]
    );
    assert_eq!(status(&world).progress.as_ref().unwrap().void_attempts, 1);
    assert!(
        status(&world)
            .results
            .iter()
            .all(|result| result.trials == 5)
    );
}

#[test]
fn a_benchmark_without_a_database_runs_too() {
    let mut benchmark = two();
    benchmark.spec.database = None;
    let mut world = World::new([benchmark]);
    world.run_to_end();
    assert_eq!(status(&world).verdict, Some(Verdict::Reported));
    let result = &status(&world).results[0];
    assert!(
        result.attributed_joules_per_request.is_some(),
        "{:?}",
        result.withheld
    );
    assert!(
        world
            .reasons
            .iter()
            .all(|(_, reason)| reason != Reason::StartingDatabase.as_str())
    );
}
