//! A run survives three kinds of faults: the operator dies after any write to the API server, a user wipes
//! the status, and two operators run at once.
//!
//! The whole set of cases takes minutes. Without `FRUGALITY_EXHAUSTIVE=1`, the tests try a sample.

use crate::common::{
    T0, edited,
    expected::{assert_entries, assert_truth, measured, status},
    operators::{Random, Two},
    run_of, two, two_with,
    world::{Fault, World, node},
};
use frugality_operator::{
    api::{
        FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrialStatus, Outcome, Reason,
        Verdict, condition,
    },
    plan::{
        action::LedgerWrite,
        facts::{ForeignPod, NodeFacts, Observed, Unreadable},
        plan,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

fn is_exhaustive() -> bool {
    std::env::var("FRUGALITY_EXHAUSTIVE").is_ok_and(|value| value == "1")
}

/// For each write of a benchmark, runs the benchmark to its end with this fault at that write.
fn at_every_write(fault: Fault, first: u32, stride: u32) {
    let mut world = World::new([two()]);
    let (mut runs, mut with_voids) = (0, 0);
    while !world.is_over() {
        let before = world.clone();
        let slot = world.wait();
        world.pass(slot);
        for write in before.writes + 1..=world.writes {
            if !is_exhaustive() && write % stride != first {
                continue;
            }
            let mut disturbed = before.clone();
            disturbed.fault = Some((write, fault));
            disturbed.run_to_end();
            assert_truth(status(&disturbed, 0));
            assert_entries(&disturbed, 0);
            let lost = status(&disturbed, 0)
                .progress
                .as_ref()
                .unwrap()
                .void_attempts;
            assert!(lost <= 1, "write {write}: {lost} attempts are void");
            let slot = &disturbed.slots[0];
            let begun = slot.trials.iter().filter(|it| it.spec.block > 0);
            let lacking = begun.count() - slot.traces.len();
            let most = usize::from(fault == Fault::Dies);
            assert!(lacking <= most, "write {write}: {lacking} have no course");
            with_voids += lost;
            runs += 1;
        }
    }
    println!(
        "{fault:?}: {runs} of {} writes, one run each; {with_voids} runs with a void attempt",
        world.writes
    );
    assert!(runs * stride >= world.writes - stride);
    // An operator that stays alive keeps its readings and its attempt.
    assert_eq!(with_voids > 0, fault == Fault::Dies);
}

#[test]
fn a_death_of_the_operator_after_any_write_changes_no_figure() {
    at_every_write(Fault::Dies, 0, 7);
}

#[test]
fn a_write_that_only_looks_failed_is_not_done_twice() {
    at_every_write(Fault::LooksFailed, 3, 7);
}

/// The bytes of the status without the times that only the status holds. Before the end, these are all
/// transition times. After the end, these are the times since the benchmark has been neither `Ready` nor
/// known to have `Succeeded`.
fn bytes(status: &FrugalityBenchmarkStatus) -> String {
    let mut status = status.clone();
    let has_ended = status.verdict.is_some();
    for condition in &mut status.conditions {
        let is_as_before = [
            (condition::READY, "False"),
            (condition::SUCCEEDED, "Unknown"),
        ]
        .contains(&(condition.type_.as_str(), condition.status.as_str()));
        if !has_ended || is_as_before {
            condition.last_transition_time = Time(jiff::Timestamp::UNIX_EPOCH);
        }
    }
    serde_json::to_string(&status).unwrap()
}

#[test]
fn a_status_wiped_at_any_time_comes_back_the_same() {
    let mut world = World::new([two()]);
    while !world.is_over() {
        let slot = world.wait();
        let plan = world.plan(slot);
        let mut wiped = world.clone();
        wiped.slots[slot].benchmark.status = None;
        let again = wiped.plan(slot);
        assert_eq!(bytes(&again.status), bytes(&plan.status));
        let status = plan.status.clone();
        assert_eq!(
            frugality_operator::plan::action::Plan {
                status,
                events: plan.events.clone(),
                ..again
            },
            plan
        );
        world.apply(slot, &plan, usize::MAX);
    }
}

#[test]
fn a_wiped_end_comes_back_from_the_ledger_alone_byte_by_byte() {
    let failed = two_with(&[("/deadline", json!("2m"))]);
    for benchmark in [two(), failed] {
        let mut world = World::new([benchmark]);
        world.run_to_end();
        let reported = status(&world, 0).clone();
        assert!(reported.verdict.is_some());
        // A new operator without memory derives the status hours later.
        world.slots[0].benchmark.status = None;
        world.kill_operator();
        world.advance_to(world.now + 10_000.0);
        world.pass(0);
        assert_eq!(bytes(status(&world, 0)), bytes(&reported));
    }
}

/// The harm of two operators, over all seeds.
struct Harm {
    void_attempts: i32,
    /// Loads that began while another load was still on their node.
    late_loads: u32,
    /// Runs without a winner, because all attempts of a block were void.
    runs_void_too_often: u32,
}

fn two_operators(world: &World, seeds: std::ops::Range<u64>, stale_after_seconds: f64) -> Harm {
    let (mut voids, mut overtaken, mut deaths, mut overlaps) = (0, 0, 0, 0);
    let mut void_too_often = 0;
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let mut world = world.clone();
        world.manner.overlaps = true;
        let mut both = Two::new(world, seed, stale_after_seconds);
        both.run_to_end();
        for slot in 0..both.world.slots.len() {
            let ended = status(&both.world, slot);
            let reason = ended.columns.as_ref().and_then(|it| it.reason.as_deref());
            if reason == Some("TooManyVoidAttempts") {
                assert_eq!(
                    (ended.verdict, &ended.winner),
                    (Some(Verdict::Invalid), &None)
                );
                void_too_often += 1;
            } else {
                assert_truth(ended);
            }
            assert_entries(&both.world, slot);
            voids += status(&both.world, slot)
                .progress
                .as_ref()
                .unwrap()
                .void_attempts;
        }
        overtaken += both.overtaken;
        deaths += both.deaths;
        overlaps += both.world.overlaps;
    }
    println!(
        "two operators, plans up to {stale_after_seconds} s old: {count} seeds, {overtaken} passes overtaken, {deaths} deaths, {voids} void attempts, {void_too_often} runs void too often, {overlaps} late loads"
    );
    assert!(overtaken > 0);
    Harm {
        void_attempts: voids,
        late_loads: overlaps,
        runs_void_too_often: void_too_often,
    }
}

/// An operator whose readings began later would end the idle baseline later, under load.
#[test]
fn a_record_that_comes_late_replaces_no_idle_baseline() {
    let mut world = World::new([two()]);
    let (slot, first) = loop {
        let slot = world.wait();
        let plan = world.plan(slot);
        let has_baseline = |(_, it): (_, &FrugalityTrialStatus)| it.idle_before.is_some();
        if plan.record().is_some_and(has_baseline) {
            break (slot, plan);
        }
        world.apply(slot, &plan, usize::MAX);
    };
    let mut late = first.clone();
    let Some(LedgerWrite::Record { record, .. }) = &mut late.ledger else {
        unreachable!("the baseline is a record of an entry that exists")
    };
    let idle = record.idle_before.as_mut().unwrap();
    idle.start_unix_seconds += 4.0;
    idle.end_unix_seconds += 4.0;
    world.apply(slot, &first, usize::MAX);
    world.advance_to(world.now + 5.0);
    world.apply(slot, &late, usize::MAX);
    let reported = world.slots[slot].trials[0].status.as_ref().unwrap();
    let (_, recorded) = first.record().unwrap();
    assert_eq!(reported.idle_before, recorded.idle_before);
    world.run_to_end();
    assert_truth(status(&world, slot));
    assert_entries(&world, slot);
}

fn patient() -> FrugalityBenchmark {
    two_with(&[("/trials/maxAttempts", json!(20))])
}

#[test]
fn two_operators_at_once_do_no_harm() {
    let seeds = if is_exhaustive() { 0..60 } else { 0..8 };
    let harm = two_operators(&World::new([patient()]), seeds, 10.0);
    assert_eq!(harm.runs_void_too_often, 0);
}

#[test]
fn two_operators_share_a_queue() {
    let seeds = if is_exhaustive() { 0..20 } else { 0..3 };
    let mut other = patient();
    other.metadata.name = Some("second".into());
    other.metadata.uid = Some("second-uid".into());
    let harm = two_operators(&World::new([patient(), other]), seeds, 10.0);
    assert_eq!(harm.runs_void_too_often, 0);
}

/// Operators drop old plans. If they did not, they would still notice the effects of late writes.
#[test]
fn writes_a_minute_late_make_void_attempts_and_no_wrong_figures() {
    let seeds = if is_exhaustive() {
        1000..1060
    } else {
        1000..1006
    };
    let harm = two_operators(&World::new([patient()]), seeds, 60.0);
    assert!(harm.void_attempts > 0);
    // By chance, all attempts of a block may be void. With the few seeds, this never happens.
    assert!(harm.runs_void_too_often <= if is_exhaustive() { 6 } else { 0 });
    // Late loads are too rare for a few seeds.
    if is_exhaustive() {
        assert!(harm.late_loads > 0);
    }
}

/// A short benchmark in a namespace, created `younger` seconds after [`T0`], measured on this board.
fn on(namespace: &str, name: &str, younger: f64, measured: &str) -> FrugalityBenchmark {
    let hostname = |name: &str| -> Value { json!({ "kubernetes.io/hostname": name }) };
    let mut benchmark = edited(
        &two(),
        &[
            ("/trials/blocks", json!(1)),
            ("/placement/measuredNodeSelector", hostname(measured)),
        ],
    );
    benchmark.metadata.name = Some(name.into());
    benchmark.metadata.namespace = Some(namespace.into());
    benchmark.metadata.uid = Some(format!("{namespace}-{name}-uid"));
    benchmark.metadata.creation_timestamp =
        frugality_operator::time::timestamp(T0 + younger).map(Time);
    benchmark
}

/// A cluster with this number of boards and injectors.
fn cluster(benchmarks: Vec<FrugalityBenchmark>, boards: u32, injectors: u32) -> World {
    let mut world = World::new(benchmarks);
    let injectors = (1..=injectors).map(|i| node(&format!("injector-{i}"), None));
    let boards = (1..=boards).map(|i| node(&format!("pi-{i}"), Some(&format!("10.0.0.{i}"))));
    world.nodes = injectors.chain(boards).collect();
    world
}

/// Start of the benchmark's first pod and end of its last pod.
fn span(world: &World, slot: usize) -> (f64, f64) {
    let spans = || world.spans.iter().filter(move |span| span.slot == slot);
    (
        spans().map(|span| span.begin).fold(f64::INFINITY, f64::min),
        spans().map(|span| span.end).fold(0.0, f64::max),
    )
}

#[track_caller]
fn assert_apart_on_each_node(world: &World) {
    for a in &world.spans {
        for b in &world.spans {
            let overlap =
                a.slot != b.slot && a.node == b.node && a.begin < b.end && b.begin < a.end;
            assert!(!overlap, "{a:?} {b:?}");
        }
    }
}

/// The world after all benchmarks have ended. Asserts that they never overlapped on a node.
#[track_caller]
fn carried_out(benchmarks: Vec<FrugalityBenchmark>, boards: u32, injectors: u32) -> World {
    let mut world = cluster(benchmarks, boards, injectors);
    world.run_to_end();
    assert_all_ended(&world);
    assert_apart_on_each_node(&world);
    world
}

#[track_caller]
fn assert_all_ended(world: &World) {
    for slot in 0..world.slots.len() {
        let status = status(world, slot);
        assert_eq!(status.conditions[0].reason, Reason::TooFewBlocks.as_str());
        assert_eq!(status.verdict, Some(Verdict::Inconclusive));
        assert_entries(world, slot);
    }
}

#[test]
fn three_benchmarks_in_two_namespaces_never_overlap_on_a_node_and_all_end() {
    let benchmarks = vec![
        on("shop", "a", 0.0, "pi-1"),
        on("lab", "b", 1.0, "pi-1"),
        on("lab", "c", 2.0, "pi-2"),
    ];
    let world = carried_out(benchmarks, 2, 2);
    let [a, b, c] = [0, 1, 2].map(|slot| span(&world, slot));
    assert!(a.1 < b.0, "one after the other on pi-1");
    assert!(c.0 < a.1, "at the same time on pi-2");
}

#[test]
fn benchmarks_that_share_an_injector_run_by_age() {
    let benchmarks = vec![
        on("lab", "c", 2.0, "pi-2"),
        on("lab", "b", 1.0, "pi-1"),
        on("shop", "a", 0.0, "pi-2"),
    ];
    let world = carried_out(benchmarks, 2, 1);
    let [c, b, a] = [0, 1, 2].map(|slot| span(&world, slot));
    assert!(a.1 < b.0 && b.1 < c.0);
}

/// The run that began on the removed board can continue on no other board, so it reserves none.
#[test]
fn a_run_whose_board_was_removed_delays_no_other_benchmark() {
    let anywhere = |name: &str, after: f64| {
        let mut benchmark = on("lab", name, after, "pi-1");
        benchmark.spec.placement.measured_node_selector.clear();
        benchmark
    };
    let mut world = cluster(vec![anywhere("a", 0.0)], 2, 1);
    world.run_until("a trial", |world| !measured(world, 0).is_empty());
    world.edit(0, &[("/suspend", true.into())]);
    world.run_until("rest", |world| {
        world.locks.iter().all(|it| it.holder.is_none())
    });
    let is_first = |it: &NodeFacts| it.name == "pi-1";
    let removed = world.nodes.iter().position(is_first).unwrap();
    let removed = world.nodes.remove(removed);
    world.edit(0, &[("/suspend", false.into())]);
    let second = cluster(vec![anywhere("b", 1.0)], 2, 1).slots.remove(0);
    world.slots.push(second);
    world.slots[1].next_pass = world.now;
    world.run_until("the second run's end", |world| {
        status(world, 1).end().is_some()
    });
    assert_eq!(status(&world, 1).measured_node.as_deref(), Some("pi-2"));
    assert_eq!(
        status(&world, 0).conditions[0].reason,
        Reason::NodeRemoved.as_str()
    );
    world.nodes.push(removed);
    world.run_to_end();
    assert_all_ended(&world);
    assert_eq!(status(&world, 0).measured_node.as_deref(), Some("pi-1"));
}

/// It waits for the meter instead of using up its attempts.
#[test]
fn a_run_whose_meter_is_gone_waits_and_delays_no_other_benchmark() {
    let mut world = cluster(
        vec![on("lab", "a", 0.0, "pi-1"), on("lab", "b", 1.0, "pi-1")],
        1,
        1,
    );
    world.run_until("a trial", |world| !measured(world, 0).is_empty());
    let board = world.nodes.iter().position(|it| it.name == "pi-1").unwrap();
    let meter = world.nodes[board].meter_ip.take();
    let until = world.now + 600.0;
    world.run_until("later", |world| world.now > until);
    let end = &status(&world, 0).conditions[0];
    assert_eq!(end.reason, Reason::MeterMissing.as_str());
    let voids = |world: &World| status(world, 0).progress.as_ref().unwrap().void_attempts;
    assert!(voids(&world) <= 1, "{}", voids(&world));
    // A resumed run gets no turn.
    world.edit(0, &[("/suspend", true.into())]);
    world.run_until("rest", |world| {
        world.locks.iter().all(|it| it.holder.is_none())
    });
    world.edit(0, &[("/suspend", false.into())]);
    let until = world.now + 600.0;
    world.run_until("later", |world| world.now > until);
    assert_eq!(
        status(&world, 0).conditions[0].reason,
        Reason::MeterMissing.as_str()
    );
    assert!(world.locks.iter().all(|it| it.holder.is_none()));
    world.nodes[board].meter_ip = meter;
    world.run_to_end();
    assert_all_ended(&world);
}

/// A node that injects for one run is the measured node of the next run.
#[test]
fn boards_that_inject_for_each_other_take_turns() {
    let benchmarks = vec![
        on("shop", "a", 0.0, "pi-1"),
        on("lab", "b", 1.0, "pi-2"),
        on("lab", "c", 2.0, "pi-3"),
    ];
    carried_out(benchmarks, 3, 0);
}

#[test]
fn any_queue_on_any_cluster_ends_and_never_overlaps_on_a_node() {
    let seeds = if is_exhaustive() { 0..200 } else { 0..25 };
    let mut at_once = 0;
    for seed in seeds.clone() {
        let mut random = Random(seed);
        let (boards, injectors) = *random.pick(&[(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 2)]);
        let names: Vec<String> = (1..=boards)
            .map(|i| format!("pi-{i}"))
            .chain((1..=injectors).map(|i| format!("injector-{i}")))
            .collect();
        let count = *random.pick(&[2, 3, 4]);
        let benchmarks = (0..count).map(|index| {
            let measured = random.pick(&names[..boards as usize]).clone();
            let age = *random.pick(&[0.0, 1.0, 2.0]);
            let namespace = *random.pick(&["shop", "lab"]);
            let mut benchmark = on(namespace, &format!("b{index}"), age, &measured);
            let injector = random.pick(&names);
            if random.uniform() < 0.5 && *injector != measured {
                let hostname = ("kubernetes.io/hostname".to_owned(), injector.clone());
                benchmark.spec.placement.injector_node_selector = [hostname].into();
            }
            benchmark
        });
        let world = carried_out(benchmarks.collect(), boards, injectors);
        let spans: Vec<_> = (0..count).map(|slot| span(&world, slot)).collect();
        at_once += spans
            .iter()
            .enumerate()
            .flat_map(|(index, a)| spans[..index].iter().map(move |b| (a, b)))
            .filter(|(a, b)| a.0 < b.1 && b.0 < a.1)
            .count();
    }
    println!("{seeds:?}: {at_once} pairs of runs were on at the same time, on other nodes");
    assert!(at_once > 0);
}

#[test]
fn a_waiting_benchmark_names_the_other_benchmark_and_the_node() {
    let benchmarks = vec![on("shop", "a", 0.0, "pi-1"), on("lab", "b", 1.0, "pi-1")];
    let mut world = cluster(benchmarks, 1, 1);
    world.run_until("a trial", |world| !measured(world, 0).is_empty());
    let message = &status(&world, 1).conditions[0].message;
    assert_eq!(
        message,
        "waiting for shop/a: node pi-1 runs one benchmark at a time"
    );
}

fn under_load() -> World {
    let mut world = World::new([two()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    world.wait();
    world
}

/// A pod of a benchmark that was deleted a moment ago.
fn late_pod(node: &str) -> ForeignPod {
    ForeignPod {
        name: "lab/other".into(),
        benchmark_uid: "other-uid".into(),
        node: Some(node.into()),
        deleting_since_unix_seconds: Some(T0),
        ..ForeignPod::default()
    }
}

#[test]
fn foreign_objects_end_an_open_attempt_before_they_are_removed() {
    type Change = fn(&mut Observed);
    let world = under_load();
    let changes: [(&str, Change); 3] = [
        ("lab/other", |observed| {
            observed.foreign_pods = vec![late_pod("pi-1")];
        }),
        ("of-yesterday", |observed| {
            let mut child = observed.children[0].clone();
            child.name = "of-yesterday".into();
            child.run = "12345678".into();
            observed.children.push(child);
        }),
        ("of-another-attempt", |observed| {
            let mut child = observed.children[0].clone();
            child.name = "of-another-attempt".into();
            child.trial = Some("of-another-attempt".into());
            observed.children.push(child);
        }),
    ];
    for (name, change) in changes {
        let mut observed = world.observed(0);
        change(&mut observed);
        let plan = plan(
            &world.slots[0].benchmark,
            &observed,
            &world.config,
            world.now,
        );
        let (_, record) = plan.record().unwrap();
        assert_eq!(record.outcome, Some(Outcome::Void), "{name}");
        assert_eq!(record.reason.as_deref(), Some(Reason::OtherPods.as_str()));
        assert!(record.message.as_ref().unwrap().contains(name), "{name}");
        assert!(plan.delete.is_empty() && plan.create.is_empty());
    }
    // A pod on a node outside the run does not disturb the run.
    let mut observed = world.observed(0);
    observed.foreign_pods = vec![late_pod("pi-2")];
    let plan = plan(
        &world.slots[0].benchmark,
        &observed,
        &world.config,
        world.now,
    );
    assert_eq!(plan.record(), None);
}

#[test]
fn an_entry_that_cannot_be_read_ends_the_run_and_is_named() {
    let world = under_load();
    let with_entry_of = |run: Option<String>| {
        let mut observed = world.observed(0);
        observed.unreadable = vec![Unreadable {
            name: "two-b01-rust-1".into(),
            run,
            error: "missing field `block`".into(),
        }];
        plan(
            &world.slots[0].benchmark,
            &observed,
            &world.config,
            world.now,
        )
    };
    for run in [None, Some(run_of(&world.slots[0].benchmark))] {
        let plan = with_entry_of(run);
        assert_eq!(plan.status.verdict, Some(Verdict::Error));
        let complete = &plan.status.conditions[0];
        assert_eq!(complete.reason, Reason::LedgerUnreadable.as_str());
        assert!(
            complete.message.contains("two-b01-rust-1: missing field")
                || complete
                    .message
                    .contains("two-b01-rust-1 can't be read: missing field `block`")
        );
        assert_eq!(plan.status.results, []);
        // The ledger stays unchanged, and the operator gives the nodes back.
        assert_eq!((plan.opened(), plan.record()), (None, None));
        assert_eq!(plan.delete.len(), world.slots[0].children.len());
    }
    assert_eq!(with_entry_of(Some("12345678".into())).status.verdict, None);
}
