//! The runs that stay in the ledger: `spec.runsToKeep`.

use std::collections::BTreeSet;

use frugality_operator::{
    api::{FrugalityTrial, Outcome, Verdict},
    plan::{action::Wait, baseline::is_frozen_entry, retention::surplus},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::common::{
    expected::{assert_truth, measured, status},
    run_of, two_with,
    world::World,
};

fn keeping(runs: i32) -> World {
    World::new([two_with(&[("/runsToKeep", json!(runs))])])
}

fn connections(number: i32) -> [(&'static str, Value); 1] {
    [("/load/connections", json!(number))]
}

/// Edits the benchmark and goes on to the end. Returns the ID of its run.
fn edited(world: &mut World, change: &[(&str, Value)]) -> String {
    world.edit(0, change);
    ended(world)
}

fn ended(world: &mut World) -> String {
    world.wait();
    world.pass(0);
    world.run_to_end();
    run_of(&world.slots[0].benchmark)
}

/// The runs with entries in the ledger. Each entry has its trace, and no trace is without its entry.
fn kept(world: &World) -> BTreeSet<String> {
    let slot = &world.slots[0];
    let traces: BTreeSet<_> = slot.traces.iter().map(ResourceExt::name_any).collect();
    let trials: BTreeSet<_> = slot.trials.iter().map(ResourceExt::name_any).collect();
    assert_eq!(trials, traces);
    let runs = slot.trials.iter().map(|trial| trial.spec.run.clone());
    runs.collect()
}

#[test]
fn the_newest_runs_stay() {
    let mut world = keeping(2);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    let second = edited(&mut world, &connections(8));
    assert_eq!(kept(&world), [first.clone(), second.clone()].into());
    // The oldest run stays until the new one has its verdict.
    world.edit(0, &connections(16));
    world.run_until("a trial of the new run", |world| {
        !measured(world, 0).is_empty()
    });
    assert!(kept(&world).contains(&first));
    let third = ended(&mut world);
    assert_eq!(kept(&world), [second.clone(), third.clone()].into());
    assert_truth(status(&world, 0));
    // The edit is taken back: the verdict stands at once, without another measurement.
    let loads = world.loads.len();
    assert_eq!(edited(&mut world, &connections(8)), second);
    assert_truth(status(&world, 0));
    assert_eq!(world.loads.len(), loads);
    assert_eq!(kept(&world), [second, third].into());
}

#[test]
fn a_run_that_was_deleted_is_measured_again() {
    let mut world = keeping(1);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    let second = edited(&mut world, &connections(8));
    assert_eq!(kept(&world), [second].into());
    let loads = world.loads.len();
    let taken_back = [("/load/connections", Value::Null)];
    assert_eq!(edited(&mut world, &taken_back), first);
    assert_eq!(world.loads.len(), loads + 10);
    assert_eq!(status(&world, 0).tries, Some(1));
    assert_truth(status(&world, 0));
}

/// Each of them makes the next one stricter.
#[test]
fn runs_with_the_same_settings_stay_and_count_as_tries() {
    let mut world = keeping(1);
    world.run_to_end();
    for number in [2, 3] {
        world.run_again(0, number);
        ended(&mut world);
    }
    assert_eq!(kept(&world).len(), 3);
    assert_eq!(status(&world, 0).tries, Some(3));
    let other = edited(&mut world, &connections(8));
    assert_eq!(kept(&world), [other].into());
}

/// Otherwise a second try would become the first one, and its verdict would change without a measurement.
#[test]
fn the_tries_before_a_run_that_stays_also_stay() {
    let mut world = keeping(2);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    world.run_again(0, 2);
    let second = ended(&mut world);
    assert_eq!(status(&world, 0).tries, Some(2));
    let other = edited(&mut world, &connections(8));
    assert_eq!(kept(&world), [first, second, other].into());
    let last = edited(&mut world, &connections(16));
    assert_eq!(kept(&world).len(), 2);
    assert!(kept(&world).contains(&last));
}

#[test]
fn an_invalid_edit_deletes_nothing() {
    let mut world = keeping(1);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    world.edit(0, &[("/load/rate", json!("fast"))]);
    ended(&mut world);
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Invalid));
    assert_eq!(kept(&world), [first].into());
}

/// The deletion stops after any number of entries, and then the edit is taken back. After an hour, the operator
/// measures half a block again.
#[test]
fn a_run_that_lost_some_entries_goes_on_where_it_was_cut() {
    for (deleted, hours) in [(1, 0), (5, 0), (10, 0), (1, 1), (2, 1)] {
        let mut world = keeping(1);
        world.run_to_end();
        let first = run_of(&world.slots[0].benchmark);
        world.edit(0, &connections(8));
        world.run_until("the deletion", |world| !world.plan(0).forget.is_empty());
        let plan = world.plan(0);
        let others = plan
            .clone()
            .actions(world.slots[0].benchmark.status.as_ref());
        let steps = others.len() - plan.forget.len() + deleted;
        world.apply(0, &plan, steps);
        let left = |world: &World| {
            let trials = world.slots[0].trials.iter();
            trials.filter(|trial| trial.spec.run == first).count()
        };
        assert_eq!(left(&world), 10 - deleted);
        let loads = world.loads.len();
        world.advance_to(world.now + 3600.0 * f64::from(hours));
        world.edit(0, &[("/load/connections", Value::Null)]);
        ended(&mut world);
        let again = if hours > 0 { deleted % 2 } else { 0 };
        assert_eq!(world.loads.len(), loads + deleted + again);
        assert_eq!(measured(&world, 0).len(), 10 + again);
        assert_truth(status(&world, 0));
    }
}

/// The entry with the frozen releases belongs to its run.
#[test]
fn a_run_against_a_baseline_loses_the_entry_of_its_releases_too() {
    let baseline = json!({ "name": "shop", "maxEnergyRatio": 1.03 });
    let mut world = World::new([two_with(&[
        ("/runsToKeep", json!(1)),
        (
            "/candidates",
            json!([{ "name": "rust", "image": "example.org/rust:1" }]),
        ),
        ("/baseline", baseline),
    ])]);
    world.set_baseline(
        "shop",
        &json!({ "candidate": { "name": "baseline", "image": "example.org/rust:0" } }),
    );
    world.run_to_end();
    let frozen = |world: &World| {
        let trials = world.slots[0].trials.iter();
        trials.filter(|trial| is_frozen_entry(trial)).count()
    };
    assert_eq!(frozen(&world), 1);
    let before: Vec<_> = world.slots[0]
        .trials
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    edited(&mut world, &connections(8));
    assert_eq!(frozen(&world), 1);
    let mut after = world.slots[0].trials.iter().map(ResourceExt::name_any);
    assert!(after.all(|name| !before.contains(&name)));
}

/// Such a run has an entry for its preparation only, and no verdict that a reader could miss.
#[test]
fn a_run_whose_preparation_failed_deletes_nothing() {
    let mut world = keeping(1);
    world.run_to_end();
    let first = run_of(&world.slots[0].benchmark);
    world.manner.database_ready = None;
    world.edit(0, &connections(8));
    ended(&mut world);
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Error));
    let runs: BTreeSet<_> = world.slots[0]
        .trials
        .iter()
        .map(|it| it.spec.run.clone())
        .collect();
    assert_eq!(runs.len(), 2);
    assert!(runs.contains(&first));
}

/// An entry of a run, created at this second.
fn entry(run: &str, number: usize, second: usize, outcome: Option<Outcome>) -> FrugalityTrial {
    let mut world = keeping(1);
    world.run_until("a trial", |world| !world.slots[0].trials.is_empty());
    let mut entry = world.slots[0].trials[0].clone();
    entry.metadata.name = Some(format!("{run}-{number:03}"));
    entry.spec.run = run.into();
    let labels = entry.labels_mut();
    labels.insert("frugality.dev/measurement".into(), run.into());
    let time = jiff::Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
    entry.metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
    entry.status = Some(entry.status.unwrap_or_default());
    entry.status.as_mut().unwrap().outcome = outcome;
    entry
}

#[test]
fn a_pass_deletes_some_entries_the_oldest_run_first_and_its_last_attempt_first() {
    let void = Some(Outcome::Void);
    let template = entry("old", 0, 5, void);
    let mut trials: Vec<_> = (0..150)
        .map(|number| {
            let mut entry = template.clone();
            entry.metadata.name = Some(format!("old-{number:03}"));
            entry.spec.block = number;
            entry
        })
        .collect();
    trials.extend([
        entry("oldest", 0, 1, void),
        entry("open", 0, 2, void),
        entry("open", 1, 3, None),
        entry("now", 0, 9, void),
    ]);
    let forgotten = surplus("now", &trials, 1);
    assert_eq!(forgotten.len(), 50);
    let names: Vec<_> = forgotten.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names[..3], ["oldest-000", "old-149", "old-148"]);
    assert!(surplus("none of these", &trials, 1).is_empty());
    assert_eq!(surplus("now", &trials, 2)[0].name, "oldest-000");
    assert_eq!(surplus("now", &trials, 2).len(), 1);
}

#[test]
fn an_ended_benchmark_rests_when_the_last_of_many_old_entries_is_deleted() {
    let mut world = keeping(1);
    world.run_to_end();
    let run = run_of(&world.slots[0].benchmark);
    let rests = |world: &World| {
        let plan = world.plan(0);
        let current = world.slots[0].benchmark.current_status();
        assert!(plan.changes_nothing(current), "{plan:#?}");
        (plan.wait == Wait::Benchmark, plan.forget.len())
    };
    assert_eq!(rests(&world), (true, 0));
    let old = entry("old", 0, 5, Some(Outcome::Void));
    world.slots[0].trials.push(old.clone());
    assert_eq!(rests(&world), (true, 1));
    let many = (1..60).map(|number| {
        let mut entry = old.clone();
        entry.metadata.name = Some(format!("old-{number:03}"));
        entry
    });
    world.slots[0].trials.extend(many);
    assert_eq!(rests(&world), (false, 50));
    let before = world.now;
    world.run_until("the last deletion", |world| {
        let trials = &world.slots[0].trials;
        trials.iter().all(|it| it.spec.run == run)
    });
    assert!(world.now - before < 65.0, "two passes");
    assert_eq!(rests(&world), (true, 0));
}
