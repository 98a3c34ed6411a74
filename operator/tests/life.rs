//! The life of a benchmark: suspend and resume, run again, deletion after its time to live, past verdicts,
//! time left and events.

use std::{collections::BTreeSet, sync::Arc};

use crate::common::{
    T0,
    expected::{assert_entries, assert_truth, measured, start, status},
    run_of, two, two_with,
    world::{Fault, World},
};
use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{
        Boundary, DecidingFigure, FrugalityBenchmark, FrugalityTrial, Outcome, PastVerdict, Reason,
        Verdict,
    },
    plan::{
        action::{ChildObject, Wait},
        facts::{ChildKind, Peer, Unreadable},
        ledger::outcome_of,
        names::measurement_id,
        placement::queue::waits,
        plan,
        report::{
            estimate::Forecast,
            history::{DecidingJoules, ShownResult, history as kept_history},
        },
    },
    time::unix_seconds,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use serde_json::{Value, json};

const SUSPEND: [(&str, Value); 1] = [("/suspend", Value::Bool(true))];
const RESUME: [(&str, Value); 1] = [("/suspend", Value::Bool(false))];

fn reason_of(world: &World, slot: usize) -> &str {
    &status(world, slot).conditions[0].reason
}

fn is_at_rest(world: &World, slot: usize) -> bool {
    let slot = &world.slots[slot];
    let uid = slot.benchmark.uid().unwrap();
    let is_mine = |lock: &frugality_operator::plan::facts::Lock| {
        lock.holder
            .as_ref()
            .is_some_and(|(holder, _)| *holder == uid)
    };
    slot.children.is_empty() && slot.pods.is_empty() && !world.locks.iter().any(is_mine)
}

fn voids(world: &World, slot: usize) -> Vec<(String, i32)> {
    let of = |trial: &FrugalityTrial| {
        let reason = trial.status.as_ref().unwrap().reason.clone().unwrap();
        (outcome_of(trial) == Some(Outcome::Void)).then_some((reason, trial.spec.block))
    };
    world.slots[slot].trials.iter().filter_map(of).collect()
}

fn second() -> FrugalityBenchmark {
    let mut benchmark = two();
    benchmark.metadata.name = Some("second".into());
    benchmark.metadata.uid = Some("second-uid".into());
    benchmark
}

// ---- suspend and resume ---------------------------------------------------------------------------

#[test]
fn a_benchmark_created_suspended_does_not_start() {
    let mut world = World::new([two_with(&SUSPEND)]);
    while world.now < T0 + 7.0 * 3600.0 {
        world.wait();
        let plan = world.pass(0);
        assert_eq!((plan.watch.as_slice(), plan.opened()), (&[][..], None));
        assert!(plan.create.is_empty() && plan.locks.is_empty());
    }
    let reported = status(&world, 0);
    let conditions: Vec<_> = reported
        .conditions
        .iter()
        .map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str()))
        .collect();
    assert_eq!(
        conditions,
        [
            ("Complete", "False", "Suspended"),
            ("Succeeded", "Unknown", "Suspended"),
            ("Ready", "False", "Suspended"),
        ]
    );
    let message = &reported.conditions[0].message;
    assert!(message.contains("set spec.suspend to false"), "{message}");
    assert_eq!(world.slots[0].trials, []);
    world.edit(0, &RESUME);
    world.run_to_end();
    assert_truth(status(&world, 0));
    assert!(status(&world, 0).notes.is_empty());
}

#[test]
fn neither_suspending_nor_a_time_to_live_is_part_of_the_run() {
    let ttl = ("/ttlAfterFinished", json!("24h"));
    for other in [two_with(&SUSPEND), two_with(&[ttl])] {
        assert_eq!(run_of(&other), run_of(&two()));
        assert_eq!(measurement_id(&other), measurement_id(&two()));
    }
}

/// Asserts that no block that counts has trials from both before and after the suspension.
#[track_caller]
fn assert_blocks_are_whole(world: &World, suspended_at: f64) {
    let counted: Vec<_> = measured(world, 0);
    for block in 1..=5 {
        let attempts = counted.iter().filter(|t| t.spec.block == block);
        let newest = attempts.clone().map(|t| t.spec.attempt).max().unwrap();
        let sides: BTreeSet<bool> = attempts
            .filter(|t| t.spec.attempt == newest)
            .map(|t| start(t) < suspended_at)
            .collect();
        assert_eq!(sides.len(), 1, "block {block}");
    }
}

/// The run pauses between the two trials of its second block, for this time.
fn paused_in_a_block(seconds: f64, pause: impl Fn(&mut World, f64)) -> World {
    let mut world = World::new([two()]);
    world.run_until("half of the second block", |world| {
        measured(world, 0).len() == 3
            && world.slots[0]
                .trials
                .iter()
                .all(|it| outcome_of(it).is_some())
    });
    let paused_at = world.now;
    pause(&mut world, paused_at + seconds);
    world.run_to_end();
    assert_truth(status(&world, 0));
    if seconds > 1800.0 {
        assert_blocks_are_whole(&world, paused_at);
    }
    world
}

#[test]
fn a_block_that_pauses_for_long_is_measured_again() {
    let operator_is_down = |world: &mut World, until: f64| {
        world.advance_to(until);
        world.slots[0].next_pass = until;
    };
    let edited_and_back = |world: &mut World, until: f64| {
        world.edit(0, &[("/load/connections", json!(8))]);
        world.wait();
        world.pass(0);
        world.edit(0, &[("/suspend", json!(true))]);
        world.run_until("the time", |world| world.now >= until);
        world.edit(
            0,
            &[
                ("/suspend", json!(false)),
                ("/load/connections", Value::Null),
            ],
        );
    };
    for pause in [
        &operator_is_down as &dyn Fn(&mut World, f64),
        &edited_and_back,
    ] {
        let world = paused_in_a_block(3600.0, pause);
        let interrupted = Reason::PausedTooLong.as_str().to_owned();
        assert_eq!(voids(&world, 0), [(interrupted, 2)]);
        let trial = world.slots[0]
            .trials
            .iter()
            .find(|it| outcome_of(it) == Some(Outcome::Void));
        let message = trial.unwrap().status.as_ref().unwrap().message.clone();
        assert_eq!(
            message.as_deref(),
            Some("60 min passed since the trial before it in its block (limit 30 min)")
        );
        let notes = &status(&world, 0).notes;
        assert!(
            notes
                .iter()
                .any(|it| it.contains("paused 1× during a block")),
            "{notes:?}"
        );
        let short = paused_in_a_block(1200.0, pause);
        assert_eq!(voids(&short, 0), []);
    }
}

/// With a database, the entry gets its outcome after the restore for the next attempt.
#[test]
fn the_pause_counts_from_the_load_and_not_from_the_restore() {
    let mut world = World::new([two()]);
    world.run_until("figures of the first half of a block", |world| {
        let is_third = |it: &&FrugalityTrial| it.spec.block == 2 && it.spec.position == 1;
        let third = world.slots[0].trials.iter().find(is_third);
        let status = third.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| it.energy.is_some() && it.outcome.is_none())
    });
    let paused_at = world.now;
    world.advance_to(paused_at + 3600.0);
    world.run_to_end();
    assert_truth(status(&world, 0));
    let interrupted = Reason::PausedTooLong.as_str().to_owned();
    assert_eq!(voids(&world, 0), [(interrupted, 2)]);
    assert_blocks_are_whole(&world, paused_at);
}

/// A restore that takes an hour would otherwise repeat the block until the deadline.
#[test]
fn a_block_that_always_pauses_ends_the_run() {
    let mut world = World::new([two_with(&[("/trials/maxAttempts", json!(1))])]);
    world.run_until("half of a block", |world| measured(world, 0).len() == 3);
    world.advance_to(world.now + 3600.0);
    world.run_to_end();
    let status = status(&world, 0);
    assert_eq!(status.verdict, Some(Verdict::Invalid));
    let end = status.end().unwrap();
    assert_eq!(end.reason, Reason::TooManyVoidAttempts.as_str());
    assert!(end.message.contains("(limit 30 min)"), "{}", end.message);
}

/// Look 1 decides after an edit of the budgets, while a trial of a later block is open.
#[test]
fn an_attempt_that_is_open_at_the_end_gets_its_outcome() {
    let budget = |joules: f64| json!([{ "candidate": "rust", "maxJoulesPerRequest": joules }]);
    let mut world = World::new([two_with(&[
        ("/trials/blocks", json!(10)),
        ("/trials/looks", json!([5, 10])),
        ("/budgets", budget(0.0125)),
    ])]);
    world.run_until("block 7", |world| {
        world.slots[0].trials.iter().any(|it| it.spec.block == 7)
    });
    assert_eq!(status(&world, 0).verdict, None);
    world.edit(0, &[("/budgets", budget(1.0))]);
    world.run_to_end();
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Pass));
    let until = world.now + 60.0;
    world.run_until("later", |world| world.now > until);
    assert_eq!(
        voids(&world, 0),
        [(Reason::Superseded.as_str().to_owned(), 7)]
    );
    // The verdict stays.
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Pass));
}

/// A server with a long time to start may take that time between two trials.
#[test]
fn a_pause_may_be_longer_by_the_time_that_the_server_may_take() {
    let mut world = World::new([two_with(&[
        ("/candidates/0/readyWithin", json!("1h")),
        ("/candidates/1/readyWithin", json!("1h")),
    ])]);
    world.run_until("half of a block", |world| measured(world, 0).len() == 3);
    world.advance_to(world.now + 3600.0);
    world.run_to_end();
    assert_truth(status(&world, 0));
    assert_eq!(voids(&world, 0), []);
}

/// Suspends at a sample of the passes of a whole run, resumes hours later, and runs to the end.
#[test]
fn a_run_suspended_at_any_pass_ends_with_the_true_figures() {
    let mut world = World::new([two()]);
    let (mut passes, mut with_voids, mut between) = (0, 0, 0);
    while !world.is_over() {
        world.wait();
        world.pass(0);
        passes += 1;
        // A run whose trials are all measured ends, suspended or not.
        let before = measured(&world, 0).len();
        let mut trials = world.slots[0].trials.iter();
        let had_open = trials.any(|t| outcome_of(t).is_none());
        // Few passes are between two trials, so all of these are sampled.
        let is_in_a_block = before % 2 == 1 && !had_open;
        if before == 10 || (passes % 11 != 0 && !is_in_a_block) {
            continue;
        }
        let mut paused = world.clone();
        paused.edit(0, &SUSPEND);
        paused.wait();
        paused.pass(0);
        let suspended_at = paused.now;
        // The operator first makes the current block void, and soon gives the nodes back.
        if reason_of(&paused, 0) == Reason::Measuring.as_str() {
            paused.wait();
            paused.pass(0);
        }
        assert_eq!(reason_of(&paused, 0), Reason::Suspended.as_str());
        paused.run_until("rest", |world| is_at_rest(world, 0));
        assert!(paused.now - suspended_at < 10.0);
        assert!(paused.slots[0].watch.is_empty());
        assert_eq!(
            measured(&paused, 0).len(),
            before,
            "no measured trial is lost"
        );
        paused.advance_to(paused.now + 9000.0);
        paused.edit(0, &RESUME);
        paused.run_to_end();
        assert_truth(status(&paused, 0));
        assert_entries(&paused, 0);
        assert_blocks_are_whole(&paused, suspended_at);
        let voids = voids(&paused, 0);
        assert!(
            voids.len() <= 1
                && voids
                    .iter()
                    .all(|(reason, _)| reason == Reason::Suspended.as_str())
        );
        assert_eq!(
            voids.len(),
            status(&paused, 0).notes.len(),
            "a note reports the void"
        );
        with_voids += voids.len();
        between += usize::from(!voids.is_empty() && !had_open);
        // The run stays the same, so the operator measures at most one block again.
        assert!(measured(&paused, 0).len() <= 11);
    }
    println!(
        "{passes} passes, {with_voids} voids, {between} of them between two trials of a block"
    );
    assert!(with_voids > 10 && between > 0);
}

#[test]
fn a_suspension_uses_up_no_attempt() {
    let mut world = World::new([two_with(&[("/trials/maxAttempts", json!(1))])]);
    for pause in 1..=3 {
        world.run_until("a load", |world| world.loads.len() >= pause);
        world.edit(0, &SUSPEND);
        world.run_until("rest", |world| is_at_rest(world, 0));
        world.edit(0, &RESUME);
    }
    world.run_to_end();
    assert_truth(status(&world, 0));
    let reasons = voids(&world, 0);
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    let notes = status(&world, 0).notes.concat();
    assert!(notes.contains("paused 3×"), "{notes}");
}

#[test]
fn a_void_of_another_cause_still_counts_after_a_suspension() {
    let mut world = World::new([two_with(&[("/trials/maxAttempts", json!(1))])]);
    world.run_until("a load", |world| !world.loads.is_empty());
    world.edit(0, &SUSPEND);
    world.run_until("rest", |world| is_at_rest(world, 0));
    world.edit(0, &RESUME);
    world.run_until("a load", |world| world.loads.len() == 2);
    world.wait();
    world.replace_pod(0, frugality_operator::api::Role::Candidate);
    world.run_to_end();
    assert_eq!(reason_of(&world, 0), Reason::TooManyVoidAttempts.as_str());
    let message = &status(&world, 0).conditions[0].message;
    assert!(message.contains("was void 1 times"), "{message}");
}

#[test]
fn other_benchmarks_run_while_one_is_suspended() {
    let mut world = World::new([two(), second()]);
    let uid = |slot: usize| world.slots[slot].benchmark.uid().unwrap();
    let uids = [uid(0), uid(1)];
    world.run_until("a load", |world| !world.loads.is_empty());
    let holder = world.locks[0].holder.clone().unwrap().0;
    let first = usize::from(holder == uids[1]);
    let other = 1 - first;
    world.edit(first, &SUSPEND);
    world.run_until("the other's end", |world| {
        status(world, other).verdict.is_some()
    });
    assert_truth(status(&world, other));
    assert_eq!(reason_of(&world, first), Reason::Suspended.as_str());
    world.edit(first, &RESUME);
    world.run_to_end();
    assert_truth(status(&world, first));
    assert_entries(&world, first);
}

/// A run that has begun, was suspended, and waits in the queue behind another run that has the nodes now. Its number, and the
/// other's.
fn begun_without_nodes(world: &mut World) -> (usize, usize) {
    world.run_until("a figure", |world| {
        (0..2).any(|slot| !measured(world, slot).is_empty())
    });
    let first = (0..2)
        .find(|slot| !measured(world, *slot).is_empty())
        .unwrap();
    world.edit(first, &SUSPEND);
    world.run_until("the other's load", |world| {
        !measured(world, 1 - first).is_empty()
    });
    world.edit(first, &RESUME);
    world.run_until("the queue", |world| {
        reason_of(world, first) == Reason::Queued.as_str()
    });
    (first, 1 - first)
}

#[test]
fn a_begun_run_that_waits_for_its_turn_rests_until_the_queue_calls_it() {
    let mut world = World::new([two(), second()]);
    let (first, other) = begun_without_nodes(&mut world);
    let plan = world.plan(first);
    let benchmark = &world.slots[first].benchmark;
    assert!(
        plan.changes_nothing(benchmark.current_status()),
        "{plan:#?}"
    );
    assert!(matches!(plan.wait, Wait::Turn { .. }), "{:?}", plan.wait);
    // The look at the queue finds the same, so it does not wake the benchmark for nothing.
    let peers: Vec<_> = world
        .slots
        .iter()
        .map(|slot| Arc::new(Peer::of(&slot.benchmark)))
        .collect();
    let looked = waits(&peers, &world.locks, &world.nodes);
    let uid = benchmark.uid().unwrap();
    assert_eq!(looked, [(uid.as_str(), plan.wait.clone())]);
    world.run_until("the other's end", |world| is_at_rest(world, other));
    world.run_to_end();
    assert_truth(status(&world, first));
}

#[test]
fn a_begun_run_whose_node_is_gone_rests_until_the_cluster_changes() {
    let mut world = World::new([two(), second()]);
    let (first, _) = begun_without_nodes(&mut world);
    let mut observed = world.observed(first);
    observed.nodes.retain(|node| node.name != "pi-1");
    let mut benchmark = world.slots[first].benchmark.clone();
    let mut plan_after = |seconds: f64| {
        let reason = Reason::NodeRemoved.as_str().to_owned();
        observed.waiting_since = Some((reason, world.now - seconds));
        let plan = plan(&benchmark, &observed, &world.config, world.now);
        let rests = plan.changes_nothing(benchmark.current_status());
        benchmark.status = Some(plan.status);
        (plan.wait, rests)
    };
    assert_eq!(plan_after(10.0), (Wait::Time, false));
    assert_eq!(plan_after(10.0), (Wait::Time, true));
    assert_eq!(plan_after(61.0), (Wait::Cluster, true));
    let status = benchmark.status.unwrap();
    let columns = status.columns.as_ref().unwrap();
    assert_eq!(columns.reason.as_deref(), Some("NodeRemoved"));
}

#[test]
fn a_database_that_is_new_after_a_suspension_is_filled_by_the_job_that_the_runbook_names() {
    let mut world = World::new([two()]);
    world.run_until("a figure", |world| !measured(world, 0).is_empty());
    world.edit(0, &SUSPEND);
    world.run_until("rest", |world| is_at_rest(world, 0));
    world.edit(0, &RESUME);
    let seeding = Reason::Seeding.as_str();
    world.run_until("the filling", |world| {
        let jobs = &world.slots[0].children;
        reason_of(world, 0) == seeding && jobs.iter().any(|it| it.facts.kind == ChildKind::Job)
    });
    let benchmark = &world.slots[0].benchmark;
    let expected = format!("{}-{}-seed", benchmark.name_any(), run_of(benchmark));
    let jobs = world.slots[0].children.iter();
    let jobs = jobs.filter(|it| it.facts.kind == ChildKind::Job);
    let names: Vec<_> = jobs.map(|it| it.facts.name.clone()).collect();
    assert_eq!(names, [expected]);
}

#[test]
fn a_suspended_benchmark_in_the_queue_blocks_no_other() {
    let mut world = World::new([two(), second()]);
    world.run_until("a queue", |world| {
        (0..2).all(|slot| world.slots[slot].benchmark.current_status().is_some())
            && (0..2).any(|slot| reason_of(world, slot) == Reason::Measuring.as_str())
    });
    let waits = (0..2).find(|slot| reason_of(&world, *slot) == Reason::Queued.as_str());
    let waits = waits.unwrap();
    world.edit(waits, &SUSPEND);
    world.run_until("the other's end", |world| {
        status(world, 1 - waits).verdict.is_some()
    });
    world.run_until("the other's nodes", |world| is_at_rest(world, 1 - waits));
    assert_eq!(reason_of(&world, waits), Reason::Suspended.as_str());
    assert_eq!(world.slots[waits].trials, []);
    world.edit(waits, &RESUME);
    world.run_to_end();
    assert_truth(status(&world, waits));
}

#[test]
fn the_deadline_starts_again_after_a_suspension() {
    let mut world = World::new([two()]);
    world.run_until("some trials", |world| measured(world, 0).len() == 4);
    world.edit(0, &SUSPEND);
    world.run_until("rest", |world| is_at_rest(world, 0));
    world.advance_to(world.now + 7.0 * 3600.0);
    world.pass(0);
    assert_eq!(reason_of(&world, 0), Reason::Suspended.as_str());
    world.edit(0, &RESUME);
    world.run_to_end();
    assert_truth(status(&world, 0));
}

/// A pipeline edits the image late in a run. The new run is not judged by the time of the old one.
#[test]
fn an_edit_in_an_attempt_gives_the_new_run_its_whole_deadline() {
    let mut world = World::new([two()]);
    world.run_until("the fifth load", |world| world.loads.len() == 5);
    let seconds = world.slots[0].benchmark.spec.deadline.seconds().unwrap();
    // The new run takes longer than the minute that is left.
    world.advance_to(world.loads[0].start + seconds - 60.0);
    world.edit(0, &[("/load/connections", json!(7))]);
    world.run_to_end();
    let status = status(&world, 0);
    assert_ne!(status.end().unwrap().reason, "DeadlineExceeded");
    assert_truth(status);
}

#[test]
fn an_ended_run_stays_ended() {
    let mut world = World::new([two()]);
    world.run_to_end();
    world.edit(0, &SUSPEND);
    world.wait();
    world.pass(0);
    assert_truth(status(&world, 0));
    let plan = world.plan(0);
    assert!(plan.changes_nothing(world.slots[0].benchmark.status.as_ref()));
    assert_eq!((plan.wait, plan.due_seconds), (Wait::Benchmark, None));
}

/// CloudNativePG's cluster is gone before its pod. The run has its verdict and holds its nodes.
#[test]
fn a_benchmark_that_holds_a_lock_does_not_rest() {
    let mut world = World::new([two()]);
    world.run_until("the verdict", |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        status.is_some_and(|it| it.verdict.is_some())
    });
    let mut observed = world.observed(0);
    observed.children.clear();
    assert!(!observed.pods.is_empty());
    for pod in &mut observed.pods {
        pod.deleting = true;
    }
    let benchmark = &world.slots[0].benchmark;
    let plan = plan(benchmark, &observed, &world.config, world.now);
    assert!(plan.changes_nothing(benchmark.status.as_ref()), "{plan:#?}");
    assert_eq!((plan.wait, plan.requeue_seconds), (Wait::Time, 1.0));
}

/// A user may resume before all objects are gone. The operator must not measure next to objects that still
/// terminate.
#[test]
fn a_quick_resume_waits_until_the_old_objects_are_gone() {
    let mut world = World::new([two()]);
    world.run_until("some trials", |world| measured(world, 0).len() == 3);
    world.run_until("a load", |world| world.loads.len() == 4);
    for seconds in [0.0, 0.3, 1.0, 1.3, 1.6, 2.5] {
        let mut world = world.clone();
        world.edit(0, &SUSPEND);
        world.wait();
        world.pass(0);
        world.wait();
        world.pass(0);
        world.advance_to(world.now + seconds);
        world.edit(0, &RESUME);
        world.run_to_end();
        assert_truth(status(&world, 0));
        assert_entries(&world, 0);
    }
}

#[test]
fn an_operator_that_dies_while_it_suspends_does_no_harm() {
    let mut world = World::new([two()]);
    world.run_until("a load", |world| world.loads.len() == 3);
    world.edit(0, &SUSPEND);
    let first = world.writes + 1;
    let mut undisturbed = world.clone();
    undisturbed.run_until("rest", |world| is_at_rest(world, 0));
    assert!(undisturbed.writes > first + 5);
    for write in first..=undisturbed.writes {
        for fault in [Fault::Dies, Fault::LooksFailed] {
            let mut world = world.clone();
            world.fault = Some((write, fault));
            world.run_until("rest", |world| is_at_rest(world, 0));
            world.edit(0, &RESUME);
            world.run_to_end();
            assert_truth(status(&world, 0));
            assert_entries(&world, 0);
            assert_eq!(voids(&world, 0).len(), 1, "write {write} {fault:?}");
        }
    }
}

// ---- time to live ---------------------------------------------------------------------------------

#[test]
fn an_ended_benchmark_is_deleted_after_its_time_and_not_before() {
    let mut world = World::new([two_with(&[("/ttlAfterFinished", json!("10m"))])]);
    world.run_to_end();
    let complete = status(&world, 0).conditions[0].clone();
    let ended = unix_seconds(complete.last_transition_time.0);
    // The operator comes back in time, although nothing changes.
    let plan = world.plan(0);
    let deleted_at = world.now + plan.due_seconds.unwrap();
    assert_eq!(
        (plan.wait, (deleted_at - ended).round()),
        (Wait::Benchmark, 600.0)
    );
    world.run_until("the deletion", |world| world.slots[0].gone);
    let age = world.now - ended;
    assert!((600.0..602.0).contains(&age), "{age}");
    assert!(is_at_rest(&world, 0));
}

/// The last ledger entry gives the time of the end. The operator may report the end much later.
#[test]
fn a_late_verdict_stays_readable_for_a_minute() {
    let mut world = World::new([two_with(&[("/ttlAfterFinished", json!("1m"))])]);
    world.run_to_end();
    world.slots[0].benchmark.status = None;
    world.kill_operator();
    world.advance_to(world.now + 10_000.0);
    world.pass(0);
    let reported = world.now;
    world.run_until("the deletion", |world| world.slots[0].gone);
    let read_for = world.now - reported;
    assert!((60.0..70.0).contains(&read_for), "{read_for}");
}

#[test]
fn a_benchmark_without_a_time_to_live_is_kept() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let end = world.now;
    world.run_until("a while", |world| {
        world.now > end + 10_000.0 || world.slots[0].gone
    });
    assert!(!world.slots[0].gone);
}

#[test]
fn running_and_suspended_benchmarks_are_not_deleted() {
    let mut world = World::new([two_with(&[("/ttlAfterFinished", json!("1m"))])]);
    world.run_until("some trials", |world| measured(world, 0).len() == 4);
    world.edit(0, &SUSPEND);
    let suspended = world.now;
    world.run_until("a while", |world| world.now > suspended + 900.0);
    assert!(!world.slots[0].gone);
    world.edit(0, &RESUME);
    world.run_until("the end", |world| world.slots[0].gone);
    // The status showed the verdict before the deletion.
    assert_truth(status(&world, 0));
}

#[test]
fn an_edit_at_the_last_moment_prevents_the_deletion() {
    let mut world = World::new([two_with(&[("/ttlAfterFinished", json!("10m"))])]);
    world.run_to_end();
    let late = loop {
        world.wait();
        let plan = world.plan(0);
        if plan.expire {
            break plan;
        }
        world.pass(0);
    };
    let seen = world.slots[0].benchmark.clone();
    world.edit(0, &[("/load/connections", json!(8))]);
    for action in late.actions(seen.status.as_ref()) {
        world.act(0, &seen, &action, &mut None);
    }
    assert!(!world.slots[0].gone);
}

#[test]
fn a_benchmark_whose_ledger_cannot_be_read_is_kept() {
    let mut world = World::new([two_with(&[("/ttlAfterFinished", json!("1m"))])]);
    world.run_to_end();
    let at = world.now + 3600.0;
    let mut observed = world.observed(0);
    let benchmark = &world.slots[0].benchmark;
    assert!(plan(benchmark, &observed, &world.config, at).expire);
    observed.unreadable = vec![Unreadable {
        name: "two-b01-rust-1".into(),
        run: Some("of another run".into()),
        error: "missing field `block`".into(),
    }];
    assert!(!plan(benchmark, &observed, &world.config, at).expire);
}

// ---- history --------------------------------------------------------------------------------------

fn history(world: &World) -> &[PastVerdict] {
    &status(world, 0).history
}

fn rerun(world: &mut World, token: i64) {
    world.run_again(0, token);
    world.wait();
    world.pass(0);
    world.run_to_end();
}

/// Makes the run end early with an error.
fn failing(world: &mut World) {
    world.manner.success_share = 0.0;
}

#[test]
fn a_new_run_keeps_the_verdict_of_the_one_before() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    let reported = status(&world, 0).clone();
    failing(&mut world);
    world.run_again(0, 2);
    world.wait();
    world.pass(0);
    assert_eq!(status(&world, 0).verdict, None);
    assert_eq!(
        history(&world),
        [PastVerdict {
            run: first.clone(),
            verdict: Verdict::Reported,
            reason: Some(Reason::NoBudgets.as_str().into()),
            winner: Some("rust".into()),
            tie: None,
            ratio: reported.columns.unwrap().ratio,
            deciding_figure: Some(DecidingFigure::Gross),
            boundary: None,
            provenance: Some("Metered".into()),
            ended_at: Some(reported.conditions[0].last_transition_time.0.to_string()),
            generation: Some(1),
        }]
    );
    world.run_to_end();
    world.kill_operator();
    world.edit(0, &[("/load/connections", json!(8))]);
    world.wait();
    world.pass(0);
    let runs: Vec<_> = history(&world).iter().map(|past| past.verdict).collect();
    assert_eq!(runs, [Verdict::Error, Verdict::Reported]);
    assert_eq!(history(&world)[1].run, first);
}

#[test]
fn a_rerun_is_another_generation_and_another_try() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let first = status(&world, 0).clone();
    assert_eq!(first.tries, Some(1));
    world.run_again(0, 2);
    // `kubectl wait` ignores a condition of an earlier generation.
    let benchmark = &world.slots[0].benchmark;
    let complete = first.end().unwrap();
    assert!(complete.observed_generation < benchmark.metadata.generation);
    assert!(!benchmark.is_complete());
    world.wait();
    world.pass(0);
    world.run_to_end();
    let again = status(&world, 0);
    assert_eq!(again.tries, Some(2));
    assert_ne!(again.run, first.run);
    assert_eq!(world.slots[0].trials.len(), 20);
}

#[test]
fn a_run_that_never_ended_has_no_verdict_to_keep() {
    let mut world = World::new([two()]);
    world.run_until("a trial", |world| !measured(world, 0).is_empty());
    world.edit(0, &[("/load/connections", json!(8))]);
    world.run_to_end();
    assert_eq!(history(&world), []);
}

#[test]
fn a_verdict_that_other_budgets_changed_is_kept() {
    let budget = |joules: &str| {
        let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": joules}]);
        [("/budgets", budget)]
    };
    let mut world = World::new([two_with(&budget("0.001"))]);
    world.run_to_end();
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Fail));
    // An edit that does not change the verdict adds nothing.
    for (joules, verdict, past) in [
        ("0.0011", Verdict::Fail, 0),
        ("9", Verdict::Pass, 1),
        ("8", Verdict::Pass, 1),
    ] {
        world.edit(0, &budget(joules));
        world.wait();
        world.pass(0);
        assert_eq!(status(&world, 0).verdict, Some(verdict), "{joules}");
        assert_eq!(history(&world).len(), past, "{joules}");
    }
    assert_eq!(history(&world)[0].verdict, Verdict::Fail);
    assert_eq!(history(&world)[0].generation, Some(3));
}

#[test]
fn the_history_keeps_the_last_ten_verdicts() {
    let mut world = World::new([two()]);
    failing(&mut world);
    let mut runs = Vec::new();
    for token in 1..14 {
        rerun(&mut world, token);
        runs.push(run_of(&world.slots[0].benchmark));
    }
    runs.reverse();
    let kept: Vec<_> = history(&world)
        .iter()
        .map(|past| past.run.clone())
        .collect();
    assert_eq!(kept, runs[1..11]);
    let bytes = serde_json::to_string(history(&world)).unwrap().len();
    assert!(bytes < 3000, "{bytes}");
}

#[test]
fn the_history_keeps_a_verdict_that_an_edit_changes_or_removes() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let mut benchmark = world.slots[0].benchmark.clone();
    let run = run_of(&benchmark);
    let joules = |figure| Some(DecidingJoules::of(figure, &two().spec));
    let (reported, other) = (
        joules(DecidingFigure::Gross),
        joules(DecidingFigure::Attributed),
    );
    let shown = |verdict, winner, deciding| ShownResult {
        verdict,
        winner,
        tie: None,
        deciding,
    };
    let tie = ShownResult {
        tie: Some(true),
        ..shown(Some(Verdict::Reported), None, reported)
    };
    benchmark.metadata.generation = Some(2);
    assert_eq!(
        kept_history(&benchmark, &run, &tie)[0].winner.as_deref(),
        Some("rust")
    );
    for (generation, verdict, winner, deciding, kept) in [
        (2, Some(Verdict::Reported), Some("rust"), reported, 0),
        (2, Some(Verdict::Reported), Some("rust"), other, 1),
        (2, Some(Verdict::Reported), Some("python"), reported, 1),
        (2, Some(Verdict::Reported), None, reported, 1),
        (2, None, None, None, 1),
        (1, None, None, None, 0),
        // Another release of the operator judges the same trials.
        (1, Some(Verdict::Reported), Some("rust"), reported, 0),
        (1, Some(Verdict::Reported), None, reported, 1),
    ] {
        benchmark.metadata.generation = Some(generation);
        let history = kept_history(&benchmark, &run, &shown(verdict, winner, deciding));
        assert_eq!(history.len(), kept, "{generation} {verdict:?} {winner:?}");
    }
}

#[test]
fn a_deciding_figure_that_was_chosen_afterwards_is_noted() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let notes = |world: &World| status(world, 0).notes.clone();
    assert_eq!(notes(&world), Vec::<String>::new());
    world.edit(0, &[("/energy/decidingFigure", json!("Net"))]);
    world.wait();
    world.pass(0);
    let note = "The trials were also judged by gross joules before they were judged by net joules. The confidence of the intervals does not count this as another try.";
    assert_eq!(notes(&world), [note]);
}

#[test]
fn a_boundary_that_was_chosen_afterwards_is_noted() {
    let mut world = World::new([two_with(&[("/energy/decidingFigure", json!("Attributed"))])]);
    world.run_to_end();
    assert_eq!(status(&world, 0).boundary, None);
    world.edit(0, &[("/energy/boundary", json!("Candidate"))]);
    world.wait();
    world.pass(0);
    assert_eq!(status(&world, 0).boundary, Some(Boundary::Candidate));
    let note = "The trials were also judged by attributed joules before they were judged by attributed joules without the database. The confidence of the intervals does not count this as another try.";
    let of_boundary = "Attributed joules and CPU time cover the candidate's pods, and leave out the database (energy.boundary).";
    assert_eq!(status(&world, 0).notes, [of_boundary, note]);
}

/// A user who edits until the verdict pleases leaves a trace, although the run continues.
#[test]
fn a_verdict_that_an_edit_removed_is_kept() {
    let mut world = World::new([two()]);
    world.manner.meter = None;
    world.run_to_end();
    let missing = reason_of(&world, 0).to_owned();
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Invalid));
    let mut put_right = world.clone();
    put_right.manner.meter = Some(Provenance::Metered);
    put_right.run_to_end();
    put_right.run_until("a verdict", |world| {
        status(world, 0).verdict == Some(Verdict::Reported)
    });
    assert_eq!(
        history(&put_right),
        [],
        "the cluster has changed, not the spec"
    );
    world.edit(0, &SUSPEND);
    world.wait();
    world.pass(0);
    assert_eq!(status(&world, 0).verdict, None);
    let [past] = history(&world) else {
        panic!("{:?}", history(&world));
    };
    assert_eq!(past.reason, Some(missing));
    assert_eq!((&past.ratio, &past.provenance), (&None, &None));
}

// ---- how long it goes on --------------------------------------------------------------------------

#[test]
fn the_estimate_of_the_time_left_improves() {
    let mut world = World::new([two()]);
    world.wait();
    world.pass(0);
    let first = status(&world, 0).clone();
    // Ten attempts: 2 s warm-up, 20 s window, 1 s tail, and two idle baselines of 5 s, after 2 s and 1.6 s of
    // rest. Each attempt also needs 4.5 s for its pods and 7 s for the database. The database takes a minute to
    // start.
    assert_eq!(first.progress.unwrap().remaining_seconds, Some(60 + 481));
    assert_eq!(first.columns.unwrap().left.as_deref(), Some("about 9 min"));
    // The command line prints the same from the file alone.
    let forecast = Forecast::of(&two()).unwrap();
    assert_eq!(forecast.whole.seconds, Some(541.0));
    assert_eq!((forecast.entrants, forecast.blocks), (2, 5));
    let mut ends: Vec<(i32, f64)> = Vec::new();
    let mut left = Vec::new();
    while !world.is_over() {
        world.wait();
        world.pass(0);
        let progress = status(&world, 0).progress.clone().unwrap();
        if let Some(end) = &progress.estimated_end {
            let end = unix_seconds(end.parse().unwrap());
            ends.push((progress.trials_done, end));
        }
        left.extend(progress.remaining_seconds);
    }
    let last = measured(&world, 0)[9].status.clone().unwrap();
    let ended = unix_seconds(last.finished_at.unwrap().parse().unwrap());
    for (done, end) in &ends {
        let error = (end - ended).abs();
        let allowed = if *done == 0 { 200.0 } else { 30.0 };
        assert!(error < allowed, "{error} s off after {done} trials");
    }
    assert!(left.windows(2).all(|pair| pair[0] >= pair[1]), "{left:?}");
    // The operator writes the estimate when the ledger changes, not in every pass.
    ends.dedup_by_key(|(_, end)| *end);
    assert!(ends.len() < 30, "{}", ends.len());
    let status = status(&world, 0);
    let progress = status.progress.clone().unwrap();
    assert_eq!(
        (progress.remaining_seconds, progress.estimated_end),
        (None, None)
    );
    assert_eq!(status.columns.as_ref().unwrap().left, None);
}

#[test]
fn a_forecast_has_the_control_the_releases_and_the_first_look() {
    let all = [
        ("/trials/control", json!("python")),
        ("/trials/looks", json!([5, 10])),
        ("/trials/blocks", json!(10)),
        (
            "/baseline",
            json!({"name": "shop", "candidate": "rust", "maxEnergyRatio": 1.05}),
        ),
    ];
    let forecast = Forecast::of(&two_with(&all)).unwrap();
    assert_eq!((forecast.entrants, forecast.whole.trials), (4, 40));
    let (blocks, first) = forecast.first_look.unwrap();
    assert_eq!((blocks, first.trials), (5, 20));
    assert!(Forecast::of(&two_with(&[("/load/rate", json!("Most"))])).is_err());
}

#[test]
fn a_number_of_requests_is_estimated_once_a_trial_was_measured() {
    let requests = [
        ("/load/duration", Value::Null),
        ("/load/requests", json!(8000)),
    ];
    let mut world = World::new([two_with(&requests)]);
    world.wait();
    world.pass(0);
    let columns = status(&world, 0).columns.clone().unwrap();
    assert_eq!(columns.left, None);
    let at_a_rate = [
        requests[0].clone(),
        requests[1].clone(),
        ("/load/rate", json!(100)),
    ];
    let mut rated = World::new([two_with(&at_a_rate)]);
    rated.wait();
    rated.pass(0);
    let progress = status(&rated, 0).progress.clone().unwrap();
    assert_eq!(progress.remaining_seconds, Some(60 + 481 + 10 * (80 - 20)));
}

#[test]
fn a_waiting_or_suspended_run_has_no_estimated_end() {
    let mut world = World::new([two(), second()]);
    world.run_until("a trial", |world| {
        world.slots.iter().any(|s| !s.trials.is_empty())
    });
    let waits = (0..2).find(|slot| reason_of(&world, *slot) == Reason::Queued.as_str());
    let waiting = status(&world, waits.unwrap()).progress.clone().unwrap();
    assert_eq!(waiting.estimated_end, None);
    assert!(waiting.remaining_seconds.is_some());
    let works = 1 - waits.unwrap();
    assert!(
        status(&world, works)
            .progress
            .as_ref()
            .unwrap()
            .estimated_end
            .is_some()
    );
    world.edit(works, &SUSPEND);
    world.run_until("rest", |world| is_at_rest(world, works));
    let resting = status(&world, works).progress.clone().unwrap();
    assert_eq!(resting.estimated_end, None);
    assert!(resting.remaining_seconds.is_some());
}

// ---- events ---------------------------------------------------------------------------------------

fn log(world: &World, slot: usize) -> String {
    let benchmark = &world.slots[slot].benchmark;
    let lines = world.slots[slot].events.iter().map(|(_, event)| {
        let kind = if event.warning { "Warning" } else { "Normal" };
        format!("{kind:<8} {:<18} {}\n", event.reason, event.note)
    });
    lines
        .collect::<String>()
        .replace(&run_of(benchmark), "<run>")
}

#[test]
fn the_events_read_like_a_log_of_the_experiment() {
    let mut world = World::new([two()]);
    world.run_until("a load", |world| world.loads.len() == 3);
    world.edit(0, &SUSPEND);
    world.run_until("rest", |world| is_at_rest(world, 0));
    world.edit(0, &RESUME);
    world.run_to_end();
    insta::assert_snapshot!(log(&world, 0));
}

#[test]
fn an_event_reports_that_a_benchmark_waits() {
    let mut world = World::new([two(), second()]);
    world.run_to_end();
    let logs = log(&world, 0) + &log(&world, 1);
    assert_eq!(logs.matches("waiting for shop/").count(), 1, "{logs}");
}

#[test]
fn an_operator_that_was_restarted_repeats_no_event() {
    let mut world = World::new([two()]);
    while !world.is_over() {
        world.wait();
        let before = world.slots[0].events.len();
        world.pass(0);
        // The test does not kill the operator in an attempt, because the attempt would become void. Before
        // the first attempt, a new operator reads the meter again and publishes an event about it.
        let trials = &world.slots[0].trials;
        let is_between = !trials.is_empty() && trials.iter().all(|t| outcome_of(t).is_some());
        if is_between && world.slots[0].events.len() > before {
            world.kill_operator();
        }
    }
    let mut undisturbed = World::new([two()]);
    undisturbed.run_to_end();
    let reasons = |world: &World| {
        let events = world.slots[0].events.iter();
        events
            .map(|(_, event)| event.reason.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(&world), reasons(&undisturbed));
}

#[test]
fn a_fault_is_a_warning_event() {
    let mut world = World::new([two()]);
    world.manner.meter = None;
    world.run_to_end();
    let events = &world.slots[0].events;
    let is_warning = |reason: &str| {
        let found = events.iter().find(|(_, event)| event.reason == reason);
        found.unwrap().1.warning
    };
    assert!(is_warning(Reason::MeterMissing.as_str()));
    assert!(!is_warning(Reason::Waiting.as_str()));
}

/// The images of all objects that the operator creates until the run's end.
fn images_until_the_end(world: &mut World) -> BTreeSet<String> {
    let mut images = BTreeSet::new();
    loop {
        let slot = world.wait();
        for child in world.pass(slot).create {
            let child = match &child {
                ChildObject::Deployment(it) => serde_json::to_value(it),
                ChildObject::Service(it) => serde_json::to_value(it),
                ChildObject::Job(it) => serde_json::to_value(it),
                ChildObject::Secret(it) => serde_json::to_value(it),
                ChildObject::Cluster(it) => serde_json::to_value(it),
            };
            let child = child.unwrap();
            images.extend(values_of("image", &child));
            images.extend(values_of("imageName", &child));
        }
        if world.is_over() {
            return images;
        }
    }
}

/// All strings under this key, at any depth.
fn values_of(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if name == key => vec![text.clone()],
                _ => values_of(key, value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|it| values_of(key, it)).collect(),
        _ => Vec::new(),
    }
}

/// The chart's resources of the injector change in the middle of a run. Its figures are never mixed.
#[test]
fn a_run_whose_injector_gets_other_resources_ends_without_figures() {
    let mut world = World::new([two()]);
    world.run_until("two blocks", |world| measured(world, 0).len() == 4);
    let limits = [("cpu".to_owned(), Quantity("1".into()))];
    world.config.pods.injector_resources.limits = Some(limits.into());
    world.run_to_end();
    let status = status(&world, 0);
    assert_eq!(status.end().unwrap().reason, "TooManyVoidAttempts");
    assert_eq!(measured(&world, 0).len(), 4);
}

#[test]
fn a_run_keeps_its_images_when_the_operator_is_upgraded() {
    let upgrade = |world: &mut World| {
        world.config.injector_image = "example.org/injector:2".into();
        world.config.injector_k6_image = "example.org/injector-k6:2".into();
        world.config.database_image = "example.org/postgresql:16".into();
    };
    let of_the_operator = |images: BTreeSet<String>| -> Vec<String> {
        let is_own = |image: &String| image.contains("injector") || image.contains("postgresql");
        images.into_iter().filter(is_own).collect()
    };
    let mut world = World::new([two()]);
    world.run_until("its first attempt", |world| {
        !world.slots[0].trials.is_empty()
    });
    upgrade(&mut world);
    assert_eq!(
        of_the_operator(images_until_the_end(&mut world)),
        ["example.org/injector:1", "example.org/postgresql:15"]
    );
    // The next run has the new images.
    world.run_again(0, 1);
    assert_eq!(
        of_the_operator(images_until_the_end(&mut world)),
        ["example.org/injector:2", "example.org/postgresql:16"]
    );
}
