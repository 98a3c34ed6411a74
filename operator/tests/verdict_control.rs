//! The A/A control, and the ratio budgets that it limits.

use crate::common::{
    assert_near,
    entries::{Trial, factor, judged, ordered_ledger},
    judgement::{CLAIM_HALF, UPPER, assert_ended, status, usual},
    two_with,
    world::World,
};
use frugality_operator::{
    api::{BudgetOutcome, DecidingFigure, FrugalityBenchmark, Outcome, Reason, Verdict},
    plan::{
        action::Plan,
        settings::{Settings, SettingsError},
    },
};
use serde_json::json;

fn ratio_budget(limit: &str, control: bool) -> FrugalityBenchmark {
    let budget = json!([{"candidate": "rust", "maxEnergyRatio": limit, "against": "python"}]);
    let mut changes = vec![("/budgets", budget)];
    if control {
        changes.push(("/trials/control", json!("rust")));
    }
    two_with(&changes)
}

/// Rust has 1.02 times python's figure. The control has `own` times rust's mean, and their ratio has a spread
/// of 0.01.
fn run(benchmark: &FrugalityBenchmark, own: f64) -> Plan {
    let trials = ordered_ledger(benchmark, |block, _, entrant| Trial {
        gross: match entrant {
            "rust" => 0.0102 * factor(block, 0.01),
            "python" => 0.01 * factor(block, 0.008),
            _ => 0.0102 * own,
        },
        ..Trial::default()
    });
    judged(benchmark, trials)
}

#[test]
fn the_control_is_measured_and_neither_shown_nor_judged() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let hidden = &settings.control.as_ref().unwrap().hidden;
    assert!(!hidden.contains("rust") && hidden.len() <= 15, "{hidden}");
    // The control takes almost nothing and does not win. Its noise floor hides the other candidates, which do
    // not win either.
    let plan = run(&benchmark, 0.001);
    assert_eq!(plan.status.winner, None);
    let shown: Vec<_> = plan.status.results.iter().map(|r| &r.candidate).collect();
    assert_eq!(shown, ["rust", "python"]);
    assert!(
        !serde_json::to_string(&plan.status.comparisons)
            .unwrap()
            .contains(hidden.as_str())
    );
    let columns = plan.status.columns.unwrap();
    assert_eq!(columns.trials.as_deref(), Some("15/15"));
}

#[test]
fn the_noise_floor_is_the_far_end_of_the_controls_interval() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let floor = run(&benchmark, 1.0).status.noise_floor.unwrap();
    assert_eq!(floor.candidate, "rust");
    assert_near(floor.ratio.value, 1.0);
    assert_near(1.0 + floor.share, UPPER);
    // The control is off by 3 %. The far end of its interval counts, and a note reports the difference.
    let plan = run(&benchmark, 1.0 / 1.03);
    assert_near(1.0 + plan.status.noise_floor.unwrap().share, 1.03 * UPPER);
    assert!(
        plan.status
            .notes
            .iter()
            .any(|n| n.contains("The control differs from itself")),
        "{:?}",
        plan.status.notes
    );
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("The control differs from itself"),
        "{message}"
    );
}

#[test]
fn a_ratio_budget_is_decided_on_the_bound() {
    // ln rust − ln python has a spread of 0.002. The interval is therefore 1.02 · exp(±2.321889 · 0.002).
    let end = (CLAIM_HALF * 0.002).exp();
    for (limit, outcome) in [
        (1.02 / end - 1e-5, BudgetOutcome::Exceeded),
        (1.02 / end + 1e-5, BudgetOutcome::Undecided),
        (1.02 * end - 1e-5, BudgetOutcome::Undecided),
        (1.02 * end + 1e-5, BudgetOutcome::Met),
    ] {
        let plan = run(&ratio_budget(&format!("{limit:.7}"), false), 1.0);
        assert_eq!(plan.status.budgets[0].outcome, outcome, "{limit}");
    }
    let plan = run(&ratio_budget("1.05", false), 1.0);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    let message = &plan.status.budgets[0].message;
    assert_eq!(
        message,
        "Met for rust: 1.02 of python's gross joules (limit 1.05). The noise floor is not known, because trials.control is not set."
    );
}

#[test]
fn a_ratio_budget_closer_to_one_than_the_noise_floor_is_refused() {
    for (limit, verdict, reason) in [
        (
            "1.0197",
            Verdict::Inconclusive,
            Reason::BudgetBelowNoiseFloor.as_str(),
        ),
        (
            "1",
            Verdict::Inconclusive,
            Reason::BudgetBelowNoiseFloor.as_str(),
        ),
        (
            "0.981",
            Verdict::Inconclusive,
            Reason::BudgetBelowNoiseFloor.as_str(),
        ),
        ("0.98", Verdict::Fail, Reason::BudgetExceeded.as_str()),
        ("1.05", Verdict::Pass, Reason::BudgetsMet.as_str()),
    ] {
        let plan = run(&ratio_budget(limit, true), 1.0);
        assert_ended(&plan, verdict, reason);
    }
    let plan = run(&ratio_budget("1", true), 1.0);
    let found = &plan.status.budgets[0];
    assert_eq!(found.outcome, BudgetOutcome::BelowNoiseFloor);
    let words = "less than the noise floor of 1.98 %";
    assert!(found.message.contains(words), "{}", found.message);
}

#[test]
fn a_winner_must_clear_the_noise_floor() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    // The control's spread of 0.01 gives a noise floor of 1.98 %. The candidates differ, and their pairs have
    // no spread.
    let run = |ratio: f64| {
        let trials = ordered_ledger(&benchmark, |block, _, entrant| Trial {
            gross: match entrant {
                "python" => 0.01 * ratio * factor(block, 0.01),
                "rust" => 0.01 * factor(block, 0.01),
                _ => 0.01,
            },
            ..Trial::default()
        });
        judged(&benchmark, trials).status
    };
    let within = run(1.0197);
    assert_eq!(within.winner, None);
    assert!(!within.comparisons[0].separated);
    assert!(
        within
            .notes
            .iter()
            .any(|n| n.contains("closer to 1 than the noise floor")),
        "{:?}",
        within.notes
    );
    let beyond = run(1.0199);
    assert_eq!(beyond.winner.as_deref(), Some("rust"));
    assert!(beyond.comparisons[0].separated);
}

#[test]
fn without_a_figure_of_the_control_no_candidate_wins() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let trials = ordered_ledger(&benchmark, |block, _, entrant| Trial {
        net: (block > 1 || ["rust", "python"].contains(&entrant)).then_some(0.006),
        ..usual(block, entrant)
    });
    let mut net = benchmark.clone();
    net.spec.energy.deciding_figure = Some(DecidingFigure::Net);
    let status = judged(&net, trials).status;
    assert_eq!(status.noise_floor, None);
    assert_eq!(status.winner, None);
}

#[test]
fn the_control_must_be_a_candidate_and_a_ratio_needs_another() {
    let refused =
        |path: &str, value| Settings::parse(&two_with(&[(path, value)]).spec).unwrap_err();
    assert_eq!(
        refused("/trials/control", json!("go")),
        SettingsError::NoCandidate {
            field: "trials.control",
            name: "go".into()
        }
    );
    for against in ["go", "rust"] {
        let budget = json!([{"candidate": "rust", "maxEnergyRatio": "1", "against": against}]);
        assert_eq!(
            refused("/budgets", budget),
            SettingsError::NoCandidate {
                field: "budgets.against",
                name: against.into()
            }
        );
    }
}

#[test]
fn modelled_joules_need_permission_to_decide_a_ratio() {
    let modelled = |block: i32, candidate: &str| Trial {
        provenance: frugality_measure::reading::Provenance::Modelled,
        ..usual(block, candidate)
    };
    let plan = status(&ratio_budget("1.05", false), modelled);
    assert_ended(
        &plan,
        Verdict::Invalid,
        Reason::ModelledPowerNotAllowed.as_str(),
    );
}

#[test]
fn a_whole_run_measures_the_control_as_another_candidate() {
    let benchmark = two_with(&[("/trials/control", json!("python"))]);
    let mut world = World::new([benchmark]);
    world.run_until("a verdict", |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        status.is_some_and(|status| status.verdict.is_some())
    });
    let slot = &world.slots[0];
    let status = slot.benchmark.status.as_ref().unwrap();
    assert_eq!(status.winner.as_deref(), Some("rust"));
    let measured = slot
        .trials
        .iter()
        .filter(|t| t.status.as_ref().unwrap().outcome == Some(Outcome::Measured))
        .count();
    assert_eq!(measured, 15);
    // The control works exactly like python.
    let floor = status.noise_floor.as_ref().unwrap();
    assert_near(floor.ratio.value, 1.0);
    assert!(floor.share < 1e-3, "{}", floor.share);
}
