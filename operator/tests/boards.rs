//! The same server on different boards. Each trial runs on its candidate's node, and ratios include the
//! accuracy of two meters.

use std::collections::BTreeSet;

use crate::common::{
    assert_near,
    entries::{Trial, factor, judged, ledger},
    expected::{assert_entries, measured},
    judgement::assert_ended,
    run_of, two_with,
    world::{World, node},
};
use frugality_measure::{energy::Window, reading::Provenance};
use frugality_operator::{
    api::{Comparison, FrugalityBenchmark, Reason, Verdict},
    plan::{
        action::Plan,
        facts::preflight,
        names::lock_name,
        settings::{Settings, SettingsError},
    },
};
use serde_json::{Value, json};

fn hostname(name: &str) -> Value {
    json!({ "kubernetes.io/hostname": name })
}

/// `rust` on pi-1 and `python` on pi-5, without a database, plus the given changes of the spec.
fn boards(changes: &[(&str, Value)]) -> FrugalityBenchmark {
    let own = [
        ("/candidates/0/measuredNodeSelector", hostname("pi-1")),
        ("/candidates/1/measuredNodeSelector", hostname("pi-5")),
        ("/database", json!(null)),
    ];
    two_with(&[&own, changes].concat())
}

/// Judges trials of such a benchmark: each trial on its candidate's board, in a window of 10 s.
fn plan(benchmark: &FrugalityBenchmark, of: impl Fn(i32, &str) -> Trial) -> Plan {
    plan_with_zones(benchmark, of, |_| "psys")
}

/// The same with the zone of each candidate's joules.
fn plan_with_zones(
    benchmark: &FrugalityBenchmark,
    of: impl Fn(i32, &str) -> Trial,
    zone_of: impl Fn(&str) -> &'static str,
) -> Plan {
    let mut trials = ledger(benchmark, of);
    for trial in &mut trials {
        if trial.spec.candidate == "python" {
            trial.spec.measured_node = "pi-5".into();
        }
        let status = trial.status.as_mut().unwrap();
        status.window = Some(Window {
            start_unix_seconds: 100.0,
            end_unix_seconds: 110.0,
        });
        status.energy.as_mut().unwrap().zone = zone_of(&trial.spec.candidate).into();
    }
    judged(benchmark, trials)
}

/// `python` takes `times` times the joules of `rust`. The ratio has a spread of 0.02. Each meter has a
/// relative standard uncertainty of 5 %.
fn dearer(times: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| {
        let (times, k) = match candidate {
            "python" => (times, -0.01),
            _ => (1.0, 0.01),
        };
        Trial {
            gross: 0.01 * times * factor(block, k),
            meter_uncertainty: Some(0.05),
            ..Trial::default()
        }
    }
}

fn only(comparisons: &[Comparison]) -> &Comparison {
    assert_eq!(comparisons.len(), 1);
    &comparisons[0]
}

#[test]
fn a_ratio_between_boards_includes_the_accuracy_of_both_meters() {
    let plan = plan(&boards(&[]), dearer(3.0));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let comparison = only(&plan.status.comparisons);
    let ratio = comparison.ratio;
    assert!(comparison.separated);
    assert_near(ratio.value, 1.0 / 3.0);
    // The spread alone gives the same interval as on one board. The expanded interval adds 2·√(0.05² +
    // 0.05²).
    assert!((ratio.upper / ratio.value - 0.046_437_8_f64.exp()).abs() < 1e-6);
    let expanded = ratio.expanded.unwrap();
    let half = 0.046_437_8_f64.hypot(2.0 * 0.05 * 2.0_f64.sqrt());
    assert!((expanded.upper / ratio.value - half.exp()).abs() < 1e-6);
    assert!((ratio.value / expanded.lower - half.exp()).abs() < 1e-6);
    assert!(expanded.covers_meter);
    assert_eq!(
        plan.status.columns.unwrap().ratio.as_deref(),
        Some("0.33 [0.29–0.39]")
    );
}

/// Both boards may have their watts from one table, so the two models may be wrong in opposite directions by one cause.
#[test]
fn the_uncertainties_of_two_models_add_up() {
    let plan = plan(&boards(&[]), |block, candidate| Trial {
        provenance: Provenance::Modelled,
        model: None,
        ..dearer(3.0)(block, candidate)
    });
    let ratio = only(&plan.status.comparisons).ratio;
    let half = 0.046_437_8_f64.hypot(2.0 * (0.05 + 0.05));
    let upper = ratio.expanded.unwrap().upper;
    assert!((upper / ratio.value - half.exp()).abs() < 1e-6, "{upper}");
}

#[test]
fn a_difference_within_the_accuracy_of_two_meters_has_no_winner() {
    // On one board, a difference of 10 % has a winner.
    let on_one = judged(
        &two_with(&[]),
        ledger(&two_with(&[]), |block, candidate| {
            dearer(1.1)(block, candidate)
        }),
    );
    assert_eq!(on_one.status.winner.as_deref(), Some("rust"));
    assert_eq!(only(&on_one.status.comparisons).ratio.expanded, None);
    let apart = plan(&boards(&[]), dearer(1.1));
    assert_eq!(apart.status.winner, None);
    assert!(!only(&apart.status.comparisons).separated);
    assert_eq!(
        apart.status.columns.unwrap().winner.as_deref(),
        Some("rust, python")
    );
}

#[test]
fn a_tie_between_boards_needs_accurate_meters() {
    let tie = |within: &str| {
        let benchmark = boards(&[("/energy", json!({"tieWithin": within}))]);
        plan(&benchmark, dearer(1.0)).status
    };
    // 2·√(0.05² + 0.05²) is 14 %, so equality can be shown within 25 %, but not within 10 %.
    assert_eq!(tie("0.1").tie, None);
    assert_eq!(tie("0.25").tie, Some(true));
}

#[test]
fn a_ratio_budget_between_boards_includes_the_accuracy_of_their_meters() {
    let budget = |limit: &str| {
        let budget = json!([{"candidate": "rust", "maxEnergyRatio": limit, "against": "python"}]);
        plan(&boards(&[("/budgets", budget)]), dearer(1.0))
    };
    assert_ended(&budget("1.2"), Verdict::Pass, Reason::BudgetsMet.as_str());
    let close = budget("1.1");
    assert_ended(
        &close,
        Verdict::Inconclusive,
        Reason::BudgetWithinUncertainty.as_str(),
    );
    let message = &close.status.budgets[0].message;
    assert!(
        message.ends_with("the error of the meter and of the window's edges is too large."),
        "{message}"
    );
}

#[test]
fn boards_whose_meters_report_no_accuracy_are_not_compared() {
    let of = |block, candidate: &str| Trial {
        meter_uncertainty: (candidate == "rust").then_some(0.01),
        ..dearer(3.0)(block, candidate)
    };
    let plan = plan(&boards(&[]), of);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::MeterAccuracyUnknown.as_str(),
    );
    assert_eq!(
        (plan.status.winner, plan.status.comparisons.len()),
        (None, 0)
    );
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("rust on pi-1 and python on pi-5. The meter on pi-5 reports no accuracy"),
        "{message}"
    );
    // Each candidate keeps its figures.
    assert!(
        plan.status
            .results
            .iter()
            .all(|r| r.gross_joules_per_request.is_some())
    );
}

#[test]
fn boards_whose_meters_measure_different_parts_are_not_compared() {
    let zone_of = |candidate: &str| {
        if candidate == "rust" {
            "package"
        } else {
            "psys"
        }
    };
    let plan = plan_with_zones(&boards(&[]), dearer(3.0), zone_of);
    assert_ended(&plan, Verdict::Inconclusive, Reason::ZonesDiffer.as_str());
    assert_eq!(
        plan.status.notes,
        [
            "The meter of node pi-1 measures the zone package: the processors without the rest of the node.",
            "Not compared: rust was measured on pi-1 in the zone package, and python on pi-5 in the zone psys. Connect meters that measure the same part of both nodes.",
        ]
    );
    // Joules of the processors are comparable with joules of the processors.
    let same = plan_with_zones(&boards(&[]), dearer(3.0), |_| "package");
    assert_eq!(same.status.winner.as_deref(), Some("rust"));
    let [note] = &same.status.notes[..] else {
        panic!("{:?}", same.status.notes);
    };
    assert!(note.contains("pi-1") && note.contains("pi-5"), "{note}");
}

#[test]
fn the_watts_of_each_board_are_shown() {
    let benchmark = boards(&[]);
    let status = plan(&benchmark, dearer(3.0)).status;
    let nodes: Vec<_> = status
        .results
        .iter()
        .map(|r| r.node.clone().unwrap())
        .collect();
    assert_eq!([&nodes[0].name, &nodes[1].name], ["pi-1", "pi-5"]);
    // 10 J and 30 J in 10 s, and 2 W in all baselines.
    assert_near(nodes[0].load_watts.unwrap().value, 1.0);
    assert_near(nodes[1].load_watts.unwrap().value, 3.0);
    let idle = nodes[1].idle_watts.unwrap();
    assert_near(idle.value, 2.0);
    // All trials are equal, so only the meter's accuracy is left.
    assert!((idle.bounds().1 / idle.value - 0.1_f64.exp()).abs() < 1e-6);
    assert_eq!(status.measured_node.as_deref(), Some("pi-1, pi-5"));
    assert_eq!(
        status.meter.as_deref(),
        Some("frugality-meter 0.1.0 hwmon on pi-1 and frugality-meter 0.1.0 hwmon on pi-5")
    );
    // On one board the results name no node.
    let alone = judged(&two_with(&[]), ledger(&two_with(&[]), dearer(3.0)));
    assert!(alone.status.results.iter().all(|r| r.node.is_none()));
}

#[test]
fn each_board_has_its_own_costs() {
    let costs = |price: &str| {
        json!({
            "nodeLifetime": "43800h",
            "money": {"currency": "EUR", "node": price, "perKilowattHour": "0"},
        })
    };
    let benchmark = boards(&[
        ("/costs", costs("90")),
        ("/candidates/1/costs", costs("180")),
    ]);
    let status = plan(&benchmark, dearer(1.0)).status;
    let of = |index: usize| status.results[index].money.clone().unwrap().total.value;
    assert_near(of(1), 2.0 * of(0));
    // Costs do not change the run, so the operator judges the same trials.
    assert_eq!(run_of(&benchmark), run_of(&boards(&[])));
}

#[test]
fn specs_that_admission_did_not_see_are_refused_too() {
    let of = |changes: &[(&str, Value)]| Settings::parse(&two_with(changes).spec).unwrap_err();
    assert_eq!(
        of(&[("/candidates/0/measuredNodeSelector", hostname("pi-5"))]),
        SettingsError::DatabaseOnOneNode
    );
    let costs = json!({
        "nodeLifetime": "43800h",
        "carbon": {"nodeGrams": "1", "gramsPerKilowattHour": "1"},
    });
    assert_eq!(
        of(&[("/candidates/1/costs", costs)]),
        SettingsError::CostsWithoutNode("python".into())
    );
    let in_currency = |currency: &str| {
        json!({
            "nodeLifetime": "43800h",
            "money": {"currency": currency, "node": "1", "perKilowattHour": "1"},
        })
    };
    let mixed = boards(&[
        ("/costs", in_currency("EUR")),
        ("/candidates/1/costs", in_currency("USD")),
    ]);
    assert_eq!(
        Settings::parse(&mixed.spec).unwrap_err(),
        SettingsError::Currencies("EUR".into(), "USD".into())
    );
}

/// A cluster with pi-1, pi-5 and injector-1.
fn cluster(benchmark: FrugalityBenchmark) -> World {
    let mut world = World::new([benchmark]);
    world.nodes.push(node("pi-5", Some("10.0.0.5")));
    world
}

#[test]
fn every_trial_is_on_its_candidates_board() {
    let mut world = cluster(boards(&[]));
    world.run_until("all three nodes are held", |world| world.locks.len() == 3);
    let held: BTreeSet<String> = world.locks.iter().map(|lock| lock.name.clone()).collect();
    assert_eq!(held, ["pi-1", "pi-5", "injector-1"].map(lock_name).into());
    world.run_to_end();
    assert_entries(&world, 0);
    let trials = measured(&world, 0);
    assert_eq!(trials.len(), 10);
    for trial in trials {
        let board = if trial.spec.candidate == "rust" {
            "pi-1"
        } else {
            "pi-5"
        };
        assert_eq!(trial.spec.measured_node, board);
        assert_eq!(trial.spec.injector_node, "injector-1");
    }
    let status = world.slots[0].benchmark.status.as_ref().unwrap();
    assert_eq!(status.measured_node.as_deref(), Some("pi-1, pi-5"));
    assert!(world.locks.iter().all(|lock| lock.holder.is_none()));
}

#[test]
fn the_control_is_on_the_board_of_its_candidate() {
    let mut world = cluster(boards(&[("/trials/control", json!("python"))]));
    world.run_to_end();
    let trials = measured(&world, 0);
    assert_eq!(trials.len(), 15);
    let on_pi_1 = trials.iter().filter(|t| t.spec.measured_node == "pi-1");
    assert!(on_pi_1.clone().all(|trial| trial.spec.candidate == "rust"));
    assert_eq!(on_pi_1.count(), 5);
}

#[test]
fn a_suspension_before_a_board_was_used_does_not_put_its_candidate_on_another() {
    let mut world = cluster(boards(&[]));
    world.run_until("the first trial is measured", |world| {
        measured(world, 0).len() == 1
    });
    world.edit(0, &[("/suspend", json!(true))]);
    world.run_until("all nodes are given back", |world| {
        world.locks.iter().all(|lock| lock.holder.is_none())
    });
    world.edit(0, &[("/suspend", json!(false))]);
    world.run_to_end();
    for trial in measured(&world, 0) {
        let board = if trial.spec.candidate == "rust" {
            "pi-1"
        } else {
            "pi-5"
        };
        assert_eq!(trial.spec.measured_node, board, "{}", trial.spec.candidate);
    }
    // The operator measures the first trial again, with its whole block.
    assert_eq!(measured(&world, 0).len(), 11);
}

#[test]
fn a_run_begins_once_the_meters_of_all_boards_answer() {
    let mut world = cluster(boards(&[]));
    world.nodes[2].meter_ip = None;
    for _ in 0..5 {
        world.wait();
    }
    let waiting = world.plan(0);
    assert_eq!(
        waiting.status.columns.unwrap().reason.as_deref(),
        Some(Reason::MeterMissing.as_str())
    );
    assert!(world.slots[0].trials.is_empty());
    world.nodes[2].meter_ip = Some("10.0.0.5".into());
    world.run_until("both meters are read", |world| {
        world.slots[0].watch.len() == 2
    });
    let read: Vec<&str> = world.slots[0]
        .watch
        .iter()
        .map(|w| w.trial.as_str())
        .collect();
    assert_eq!(read, [preflight("pi-1"), preflight("pi-5")]);
    world.run_to_end();
    assert_eq!(measured(&world, 0).len(), 10);
}

#[test]
fn a_board_is_never_shared_with_the_injector() {
    let changes = [("/placement/allowSharedNode", json!(true))];
    let mut world = cluster(boards(&changes));
    world.nodes.remove(0);
    let plan = world.pass(0);
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("no ready, untainted node other than pi-1 and pi-5"),
        "{message}"
    );
    assert!(!message.contains("allowSharedNode"), "{message}");
}
