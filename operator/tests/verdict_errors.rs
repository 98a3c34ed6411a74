//! Comparisons that would mislead: of candidates that fail, of candidates chosen among many equal ones, and by a meter of
//! unknown accuracy.

use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{BudgetOutcome, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus, Verdict},
    plan::action::Plan,
};
use serde_json::json;

use crate::common::{
    edited,
    entries::Trial,
    judgement::{status, usual},
    two, two_with,
};

/// One sixth of the requests to rust fail.
fn failing(benchmark: &FrugalityBenchmark) -> Plan {
    status(benchmark, |block, candidate| {
        let trial = usual(block, candidate);
        Trial {
            errors: if candidate == "rust" {
                trial.successes / 5
            } else {
                0
            },
            ..trial
        }
    })
}

#[test]
fn a_candidate_whose_requests_fail_does_not_win() {
    let plan = failing(&two_with(&[("/budgets", json!([]))]));
    assert_eq!(plan.status.winner, None);
    assert!(plan.status.comparisons.is_empty());
    let note = plan
        .status
        .notes
        .iter()
        .find(|it| it.starts_with("Not compared:"));
    let note = note.expect("a note");
    assert!(
        note.contains("16.7 % of the requests of rust failed") && note.contains("(limit 1 %)"),
        "{note}"
    );
    let good = status(&two_with(&[("/budgets", json!([]))]), usual);
    assert_eq!(good.status.winner.as_deref(), Some("rust"));
}

#[test]
fn a_ratio_to_a_candidate_whose_requests_fail_is_withheld() {
    let limits = |extra: serde_json::Value| {
        two_with(&[(
            "/budgets",
            json!([
                {"candidate": "python", "maxEnergyRatio": "5", "against": "rust"},
                extra,
            ]),
        )])
    };
    let plan = failing(&limits(
        json!({"candidate": "python", "maxErrorRatio": "0.01"}),
    ));
    let ratio = &plan.status.budgets[0];
    assert_eq!(ratio.outcome, BudgetOutcome::Withheld, "{}", ratio.message);
    assert!(
        ratio.message.contains("requests of rust failed"),
        "{}",
        ratio.message
    );
    assert_eq!(plan.status.verdict, Some(Verdict::Inconclusive));
    // The user accepts so many errors.
    let accepted = failing(&limits(
        json!({"candidate": "rust", "maxErrorRatio": "0.2"}),
    ));
    assert_eq!(accepted.status.budgets[0].outcome, BudgetOutcome::Met);
}

/// Pseudo-random numbers of a normal distribution: the sum of twelve uniform ones.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        let mut uniform = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }
}

#[test]
fn the_least_of_many_equal_candidates_is_seldom_separated_from_any_other() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let candidates: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "image": format!("registry.example.org/{name}:1")}))
        .collect();
    let equal = edited(
        &two(),
        &[
            ("/candidates", json!(candidates)),
            ("/budgets", json!([])),
            ("/trials/blocks", json!(10)),
        ],
    );
    let runs = 100;
    let separated = (0..runs)
        .filter(|seed| {
            let chance = std::cell::RefCell::new(Chance(*seed));
            let plan = status(&equal, |block, _| {
                let f = (0.01 * chance.borrow_mut().next()).exp();
                Trial {
                    gross: 0.01 * f,
                    net: Some(0.006 * f),
                    attributed_candidate: Some(0.005 * f),
                    attributed_both: Some(0.005 * f),
                    ..usual(block, "rust")
                }
            });
            assert_eq!(plan.status.comparisons.len(), 7, "seed {seed}");
            plan.status.comparisons.iter().any(|it| it.separated)
        })
        .count();
    // 3 % are expected, and without the correction 35 %.
    assert!(separated <= 10, "{separated} of {runs} runs");
}

#[test]
fn an_instruments_error_is_a_larger_share_of_net_joules() {
    let of = |meter_uncertainty| {
        let unjudged = two_with(&[("/budgets", json!([]))]);
        let plan = status(&unjudged, |block, candidate| Trial {
            provenance: Provenance::Metered,
            meter_uncertainty,
            ..usual(block, candidate)
        });
        plan.status
    };
    let half = |figure: Figure| (figure.bounds().1 / figure.value).ln();
    let rust = of(Some(0.05)).results[0].clone();
    let [gross, net] =
        [rust.gross_joules_per_request, rust.net_joules_per_request].map(Option::unwrap);
    // 2 · 5 % of the gross joules, which are 1/0.6 of the net joules.
    assert!((half(gross) - 0.1).abs() < 0.01, "{gross:?}");
    assert!((half(net) - 0.1 / 0.6).abs() < 0.01, "{net:?}");
    let says = |status: &FrugalityBenchmarkStatus| {
        let message = &status.end().unwrap().message;
        message.contains("The meter reports no accuracy")
    };
    assert!(says(&of(None)) && !says(&of(Some(0.05))));
}

#[test]
fn a_ratio_budget_does_not_hide_that_the_meter_reports_no_accuracy() {
    let of = |budget: serde_json::Value| {
        let judged = two_with(&[("/budgets", json!([budget]))]);
        let plan = status(&judged, |block, candidate| Trial {
            provenance: Provenance::Metered,
            meter_uncertainty: None,
            ..usual(block, candidate)
        });
        plan.status.end().unwrap().message.clone()
    };
    let said = "The meter reports no accuracy";
    let ratio = json!({"candidate": "rust", "against": "python", "maxEnergyRatio": "5"});
    assert!(of(ratio).contains(said));
    let slow = json!({"candidate": "rust", "maxMillisecondsPerRequest": "1000"});
    assert!(of(slow).contains(said));
    // A budget of joules says it itself.
    let message = of(json!({"candidate": "rust", "maxJoulesPerRequest": "5"}));
    assert!(!message.contains(said), "{message}");
    assert!(
        message.contains("excludes the meter's accuracy"),
        "{message}"
    );
}
