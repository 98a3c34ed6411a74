//! Whole runs in a world whose truth is known: from the first pass to the verdict, undisturbed, with
//! the operator killed at every possible moment, and beside another benchmark.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

mod common;

use common::{
    assert_near, run_of, summary,
    truth::{self, WINDOW_SECONDS, Work},
    two, two_with,
    world::World,
};
use frugality_operator::{
    api::{
        CandidateResult, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial,
        Outcome, Verdict, reason,
    },
    plan::ledger::outcome_of,
};
use kube::ResourceExt;
use serde_json::json;

/// The two-sided 95 % quantile of Student's t with 4 degrees of freedom (NIST/SEMATECH 1.3.6.7.2).
const T_FOUR: f64 = 2.776_445_105;

/// Geometric mean and 95 % interval over the five blocks, by the definition.
fn expected(of_block: impl Fn(i32) -> f64) -> Figure {
    let logarithms: Vec<f64> = (1..=5).map(|block| of_block(block).ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / 5.0;
    let variance = logarithms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0;
    let half = T_FOUR * (variance / 5.0).sqrt();
    Figure {
        value: mean.exp(),
        lower: (mean - half).exp(),
        upper: (mean + half).exp(),
        expanded: None,
    }
}

#[track_caller]
fn assert_figure(found: Option<Figure>, expected: Figure) {
    let found = found.unwrap();
    assert_near(found.value, expected.value);
    assert_near(found.lower, expected.lower);
    assert_near(found.upper, expected.upper);
}

fn status(world: &World, slot: usize) -> &FrugalityBenchmarkStatus {
    world.slots[slot].benchmark.status.as_ref().unwrap()
}

#[track_caller]
fn assert_truth(status: &FrugalityBenchmarkStatus) {
    assert_eq!(status.verdict, Some(Verdict::Pass));
    assert_eq!(status.winner.as_deref(), Some("rust"));
    assert_eq!(status.results.len(), 2);
    for result in &status.results {
        assert_result(result);
    }
    for comparison in &status.comparisons {
        let of = |candidate: &str, block| Work::of(candidate, block).gross_joules();
        assert_figure(
            Some(comparison.ratio),
            expected(|block| of(&comparison.candidate, block) / of(&comparison.against, block)),
        );
    }
}

#[track_caller]
fn assert_result(result: &CandidateResult) {
    let expect =
        |figure: fn(Work) -> f64| expected(|block| figure(Work::of(&result.candidate, block)));
    assert_eq!(result.trials, 5);
    assert!(result.withheld.is_empty(), "{:?}", result.withheld);
    assert_figure(
        result.requests_per_second,
        expect(Work::requests_per_second),
    );
    assert_figure(
        result.milliseconds_per_request,
        expect(|work| work.milliseconds),
    );
    assert_figure(result.gross_joules_per_request, expect(Work::gross_joules));
    assert_figure(result.net_joules_per_request, expect(Work::net_joules));
    assert_figure(
        result.attributed_joules_per_request,
        expect(Work::attributed_joules),
    );
    assert_figure(
        result.cpu_milliseconds_per_request,
        expect(Work::cpu_milliseconds),
    );
    assert_near(
        result.peak_memory_bytes.unwrap() as f64,
        truth::WORKING_SET_BYTES,
    );
    // No error in n requests says that the share is below 3/n.
    let errors = result.error_ratio.unwrap();
    assert!(errors.value == 0.0 && errors.upper > 0.0 && errors.upper < 1e-3);
}

/// Entries that count, in the order in which they were measured.
fn measured(world: &World, slot: usize) -> Vec<&FrugalityTrial> {
    let mut trials: Vec<_> = world.slots[slot]
        .trials
        .iter()
        .filter(|trial| outcome_of(trial) == Some(Outcome::Measured))
        .collect();
    trials.sort_by(|a, b| start(a).total_cmp(&start(b)));
    trials
}

fn start(trial: &FrugalityTrial) -> f64 {
    trial
        .status
        .as_ref()
        .unwrap()
        .window
        .unwrap()
        .start_unix_seconds
}

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
            reason::WAITING,
            reason::QUEUED,
            reason::STARTING_DATABASE,
            reason::SEEDING,
            reason::MEASURING,
            reason::NO_BUDGETS
        ]
    );
    insta::assert_snapshot!("end_of_a_run", summary::of_status(status(&world, 0)));
}

#[test]
fn the_windows_are_fortios_on_the_meters_clock() {
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
        // Times near 1.8e9 s are known to a quarter of a microsecond.
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
fn the_order_is_the_seeded_one() {
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
fn a_wiped_status_is_written_again_in_every_pass() {
    let mut world = World::new([two()]);
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.plan(slot);
        let mut wiped = world.clone();
        wiped.slots[slot].benchmark.status = None;
        let again = wiped.plan(slot);
        assert_eq!(without_times(&again.status), without_times(&plan.status));
        assert_eq!(
            (
                again.lock,
                again.open,
                again.record,
                again.create,
                again.delete
            ),
            (
                plan.lock.clone(),
                plan.open.clone(),
                plan.record.clone(),
                plan.create.clone(),
                plan.delete.clone()
            )
        );
        world.apply(slot, &plan, usize::MAX);
    }
}

fn without_times(status: &FrugalityBenchmarkStatus) -> FrugalityBenchmarkStatus {
    let mut status = status.clone();
    for condition in &mut status.conditions {
        condition.last_transition_time.0 = jiff::Timestamp::UNIX_EPOCH;
    }
    status
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
fn passes_at_any_time_change_nothing() {
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
    // Ahead, the operator would begin the load within the idle baseline, which net rests on.
    for ahead in [-9.0, 2.5, 4.0, 9.0] {
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

/// Runs a benchmark to its end once for every moment at which the operator can be killed: before
/// each action of each pass whose number leaves `remainder`.
fn kill_at_every_moment(remainder: usize) {
    let mut world = World::new([two()]);
    let (mut passes, mut kills, mut voids) = (0, 0, 0);
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.plan(slot);
        let mut undisturbed = world.clone();
        let actions = undisturbed.apply(slot, &plan, usize::MAX);
        if passes % 2 == remainder {
            // A plan of two actions only goes on reading and writes the status.
            let moments = if actions == 2 { 1 } else { actions };
            for done in 0..moments {
                let mut killed = world.clone();
                killed.apply(slot, &plan, done);
                killed.kill_operator();
                killed.run_to_end();
                assert_truth(status(&killed, 0));
                let lost = status(&killed, 0).progress.as_ref().unwrap().void_attempts;
                assert!(lost <= 1, "one kill made {lost} attempts void");
                voids += lost;
                kills += 1;
            }
        }
        world = undisturbed;
        passes += 1;
    }
    assert!(kills > 100 && voids > 10, "{kills} kills, {voids} voids");
}

#[test]
fn an_operator_killed_in_any_even_pass_never_gives_another_number() {
    kill_at_every_moment(0);
}

#[test]
fn an_operator_killed_in_any_odd_pass_never_gives_another_number() {
    kill_at_every_moment(1);
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
    // That no two trials are open and no two loads on is asserted by the world.
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
fn the_one_that_waits_says_for_whom() {
    let mut world = World::new([two(), second()]);
    world.run_until("a trial", |world| {
        world.slots.iter().any(|slot| !slot.trials.is_empty())
    });
    world.run_until("a look of the other", |world| world.now > common::T0 + 60.0);
    let texts: Vec<String> = (0..2)
        .map(|slot| summary::of_status(status(&world, slot)))
        .collect();
    insta::assert_snapshot!("two_at_once", texts.join("---\n"));
}
