//! Each budget is decided on the bound of its figure, never on the figure itself.

use crate::common::{
    entries::{Trial, factor},
    judgement::{CLAIM_UPPER, assert_ended, budgets, status, usual},
    summary,
};
use frugality_operator::api::{BudgetOutcome, DecidingFigure, Reason, Verdict};
use serde_json::{Value, json};

#[test]
fn every_budget_met_is_a_pass() {
    let benchmark = budgets(&json!({
        "maxJoulesPerRequest": "0.02", "maxMillisecondsPerRequest": "11",
        "minRequestsPerSecond": "390", "maxErrorRatio": "0",
    }));
    let plan = status(&benchmark, usual);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    insta::assert_snapshot!(summary::of_plan(&plan));
}

#[test]
fn a_budget_exceeded_is_a_fail_with_numbers() {
    let benchmark = budgets(&json!({"maxJoulesPerRequest": "0.005", "maxErrorRatio": "0.1"}));
    let plan = status(&benchmark, usual);
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
    insta::assert_snapshot!(summary::of_plan(&plan));
    assert!(plan.events[0].warning);
    // A Fail shows the figures too.
    assert_eq!(plan.status.results.len(), 2);
}

#[test]
fn a_budget_within_the_interval_is_inconclusive() {
    let benchmark = budgets(&json!({"maxJoulesPerRequest": "0.01"}));
    let plan = status(&benchmark, usual);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::BudgetWithinUncertainty.as_str(),
    );
    insta::assert_snapshot!(summary::of_plan(&plan));
}

#[test]
fn one_exceeded_budget_outweighs_all_others() {
    let benchmark = budgets(&json!({
        "maxJoulesPerRequest": "0.01", "maxMillisecondsPerRequest": "5",
        "minRequestsPerSecond": "10",
    }));
    let plan = status(&benchmark, usual);
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
    let message = &plan.status.conditions[0].message;
    assert!(
        message.contains("ms/request") && !message.contains("J/request"),
        "{message}"
    );
    let outcomes: Vec<_> = plan.status.budgets.iter().map(|b| b.outcome).collect();
    assert_eq!(
        outcomes,
        [
            BudgetOutcome::Undecided,
            BudgetOutcome::Exceeded,
            BudgetOutcome::Met
        ]
    );
}

/// Asserts the outcomes of four limits: just outside and just inside each end of the interval.
#[track_caller]
fn assert_bounds(limit: &str, value: f64, outcomes: [BudgetOutcome; 4]) {
    let (lower, upper) = (value / CLAIM_UPPER, value * CLAIM_UPPER);
    let limits = [
        lower * 0.9999,
        lower * 1.0001,
        upper * 0.9999,
        upper * 1.0001,
    ];
    for (number, expected) in limits.into_iter().zip(outcomes) {
        let plan = status(&budgets(&json!({ limit: format!("{number:.9}") })), usual);
        let found = &plan.status.budgets[0];
        assert_eq!(
            found.outcome, expected,
            "{limit} of {number}: {}",
            found.message
        );
        let verdict = match expected {
            BudgetOutcome::Met => Verdict::Pass,
            BudgetOutcome::Exceeded => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        assert_eq!(plan.status.verdict, Some(verdict));
    }
}

#[test]
fn budgets_are_decided_on_the_bound() {
    use BudgetOutcome::{Exceeded, Met, Undecided};
    let most = [Exceeded, Undecided, Undecided, Met];
    assert_bounds("maxJoulesPerRequest", 0.01, most);
    assert_bounds("maxMillisecondsPerRequest", 10.0, most);
    assert_bounds(
        "minRequestsPerSecond",
        400.0,
        [Met, Undecided, Undecided, Exceeded],
    );
}

#[test]
fn an_error_ratio_is_decided_on_the_bound_too() {
    // Of 1000 requests 8, 9, 10, 11 and 12 fail. The interval of the trials is 0.01 ± 0.002321889. The
    // interval of 50 errors in 5000 requests alone is 0.007197084 to 0.01350965 (Clopper and Pearson), which
    // is wider.
    let failing = |block: i32, candidate: &str| {
        let errors = 7 + u64::try_from(block).unwrap();
        Trial {
            errors,
            successes: 1000 - errors,
            ..usual(block, candidate)
        }
    };
    for (limit, expected) in [
        ("0.007197", BudgetOutcome::Exceeded),
        ("0.007198", BudgetOutcome::Undecided),
        ("0.013509", BudgetOutcome::Undecided),
        ("0.013510", BudgetOutcome::Met),
    ] {
        let plan = status(&budgets(&json!({ "maxErrorRatio": limit })), failing);
        assert_eq!(plan.status.budgets[0].outcome, expected, "{limit}");
    }
    // One error per 1000 requests in each trial gives no spread. It does not show that the true share is no
    // larger.
    let one = |block: i32, candidate: &str| Trial {
        errors: 1,
        successes: 999,
        ..usual(block, candidate)
    };
    for (limit, expected) in [
        ("0.0011", BudgetOutcome::Undecided),
        ("0.0025", BudgetOutcome::Met),
    ] {
        let plan = status(&budgets(&json!({ "maxErrorRatio": limit })), one);
        assert_eq!(plan.status.budgets[0].outcome, expected, "{limit}");
    }
    // If the trials differ by more than chance, their interval is the wider one: 2, 4, 6, 8 and 10 errors per
    // 100 000 requests give 0.00006 ± 0.0000464378 (t₄ · √10 · 10⁻⁵ / √5). The 30 errors in 500 000 requests
    // alone give 0.0000388 to 0.0000885.
    let differing = |block: i32, candidate: &str| Trial {
        errors: 2 * u64::try_from(block).unwrap(),
        successes: 100_000 - 2 * u64::try_from(block).unwrap(),
        ..usual(block, candidate)
    };
    for (limit, expected) in [
        ("0.0000135", BudgetOutcome::Exceeded),
        ("0.0000136", BudgetOutcome::Undecided),
        ("0.0001064", BudgetOutcome::Undecided),
        ("0.0001065", BudgetOutcome::Met),
    ] {
        let plan = status(&budgets(&json!({ "maxErrorRatio": limit })), differing);
        assert_eq!(plan.status.budgets[0].outcome, expected, "{limit}");
    }
    let none = status(&budgets(&json!({"maxErrorRatio": "0"})), usual);
    assert_eq!(none.status.verdict, Some(Verdict::Pass));
}

/// The message about a limit on rust, for trials that differ from the usual ones.
fn reported(limit: &Value, of: impl Fn(i32, Trial) -> Trial) -> String {
    let plan = status(&budgets(limit), |block, candidate| {
        of(block, usual(block, candidate))
    });
    plan.status.budgets[0].message.clone()
}

#[test]
fn each_number_of_a_message_is_on_its_side_of_the_limit() {
    let rate = |block, trial| Trial {
        requests_per_second: 10_040.0 / factor(block, 0.0006),
        ..trial
    };
    assert_eq!(
        reported(&json!({"minRequestsPerSecond": "10020"}), rate),
        "Met for rust: 10040 requests/s (minimum 10020 requests/s)."
    );
    let time = |block, trial| Trial {
        milliseconds: 10.46 * factor(block, 0.0005),
        ..trial
    };
    assert_eq!(
        reported(&json!({"maxMillisecondsPerRequest": "10.48"}), time),
        "Met for rust: 10.46 ms/request (limit 10.48 ms)."
    );
    // The claim's interval is the mean times exp(±2.321889 · spread).
    let joules = |mean: f64, spread: f64| {
        let limit = json!({"maxJoulesPerRequest": "0.02002"});
        reported(&limit, |block, trial| Trial {
            gross: mean * factor(block, spread),
            ..trial
        })
    };
    let message = joules(0.022, 0.0402);
    assert!(
        message.starts_with(
            "Exceeded for rust: 22.00 [20.04–24.15] gross mJ/request (limit 0.02002 J = 20.02 mJ). The interval excludes"
        ),
        "{message}"
    );
    let message = joules(0.018_993, 0.023_115);
    assert!(
        message.starts_with(
            "Undecided for rust: the interval 18.00–20.04 gross mJ/request contains the limit 0.02002 J = 20.02 mJ."
        ),
        "{message}"
    );
    // What met the limit shows no interval.
    assert_eq!(
        joules(0.018, 0.01),
        "Met for rust: 18.0 gross mJ/request (limit 0.02002 J = 20.02 mJ). The decision excludes the meter's accuracy, which the meter does not report."
    );
}

#[test]
fn a_limit_has_the_same_digits_in_both_units() {
    let message = reported(
        &json!({"maxJoulesPerRequest": "0.0200212345"}),
        |_, trial| trial,
    );
    assert!(
        message.contains("(limit 0.0200212345 J = 20.0212345 mJ)"),
        "{message}"
    );
}

#[test]
fn errors_within_their_limit_are_shown_by_their_upper_bound() {
    // None of 5000 requests failed. 1 − 0.015198^(1/5000) = 0.08370 %, with the error of one side of the first try.
    for (limit, words) in [
        ("0.001", "errors at most 0.084 % (limit 0.001 = 0.1 %)"),
        (
            "0.00084",
            "errors at most 0.0837 % (limit 0.00084 = 0.084 %)",
        ),
        ("0", "errors 0 % (limit 0)"),
    ] {
        let none = |_, trial| Trial {
            successes: 1000,
            errors: 0,
            ..trial
        };
        assert_eq!(
            reported(&json!({ "maxErrorRatio": limit }), none),
            format!("Met for rust: {words}.")
        );
    }
}

#[test]
fn a_figure_that_one_trial_lacks_is_withheld() {
    let without_net = |block: i32, candidate: &str| {
        let mut trial = usual(block, candidate);
        if (block, candidate) == (4, "rust") {
            trial.net = None;
        }
        trial
    };
    let mut benchmark = budgets(&json!({"maxJoulesPerRequest": "0.02"}));
    benchmark.spec.energy.deciding_figure = Some(DecidingFigure::Net);
    let plan = status(&benchmark, without_net);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::FigureWithheld.as_str(),
    );
    assert_eq!(plan.status.results[0].net_joules_per_request, None);
    assert_eq!(
        plan.status.results[0].withheld,
        ["net joules missing in 1 of 5 trials: net energy of 0.1 J cannot be distinguished from 0"]
    );
    assert!(plan.status.results[1].net_joules_per_request.is_some());
    assert_eq!(plan.status.comparisons, []);
    assert_eq!(plan.status.winner, None);
    insta::assert_snapshot!(summary::of_plan(&plan));
}
