//! Judges ledgers, and asserts the properties that every judgement must have.

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityBenchmarkStatus, Verdict},
    plan::action::Plan,
};
use serde_json::{Value, json};

use super::{
    entries::{Trial, factor, judged, ledger},
    two_with,
};

/// exp(1.963243 · 0.01): the upper end of the interval divided by the mean, for figures with a spread of
/// 0.01.
pub(crate) const UPPER: f64 = 1.019_826;

/// Half of the interval that decides the claims of a first try, for a spread of 1: t₄ · √2.5 / √5 with t₄ =
/// 3.283647 for a two-sided error of 5 % · 6/π² = 3.0396 %.
pub(crate) const CLAIM_HALF: f64 = 2.321_889;

/// exp(2.321889 · 0.01): the end of the claims' interval divided by the mean, for figures with a spread of
/// 0.01.
pub(crate) const CLAIM_UPPER: f64 = 1.023_490_5;

/// All figures have a spread of 0.01. Both candidates have the same figures, except that python takes three
/// times the energy.
pub(crate) fn usual(block: i32, candidate: &str) -> Trial {
    let f = factor(block, 0.01);
    let times = if candidate == "python" { 3.0 } else { 1.0 };
    // The energies of the candidates vary in opposite directions, because the ratio of a pair must have a
    // spread too.
    let g = factor(block, if candidate == "python" { -0.01 } else { 0.01 });
    Trial {
        gross: 0.01 * times * g,
        net: Some(0.006 * times * g),
        attributed_candidate: Some(0.003 * times * g),
        attributed_both: Some(0.005 * times * g),
        milliseconds: 10.0 * f,
        requests_per_second: 400.0 / f,
        ..Trial::default()
    }
}

pub(crate) fn budgets(limits: &Value) -> FrugalityBenchmark {
    let mut budget = limits.clone();
    budget["candidate"] = json!("rust");
    two_with(&[("/budgets", json!([budget]))])
}

pub(crate) fn status(benchmark: &FrugalityBenchmark, of: impl Fn(i32, &str) -> Trial) -> Plan {
    judged(benchmark, ledger(benchmark, of))
}

/// Rounds floating-point numbers, because the last digits of logarithms differ between machines.
pub(crate) fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.8e}", number.as_f64().unwrap());
            json!(text.parse::<f64>().unwrap())
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| (name, rounded(field)))
            .collect(),
        other => other,
    }
}

pub(crate) fn conditions(status: &FrugalityBenchmarkStatus) -> Vec<(String, String, String)> {
    status
        .conditions
        .iter()
        .map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone()))
        .collect()
}

/// Asserts the conditions that the table in docs/architecture.md (Conditions) lists for this verdict.
#[track_caller]
pub(crate) fn assert_ended(plan: &Plan, verdict: Verdict, reason: &str) {
    let status = &plan.status;
    assert_eq!(status.verdict, Some(verdict));
    let passed = verdict == Verdict::Pass;
    let yes_no = |yes: bool| if yes { "True" } else { "False" };
    let succeeded = match verdict {
        Verdict::Reported => "Unknown",
        _ => yes_no(passed),
    };
    let mut table = vec![
        ("Complete", "True"),
        ("Succeeded", succeeded),
        ("Ready", yes_no(passed)),
    ];
    if !passed {
        table.push(("Stalled", "True"));
    }
    let table: Vec<_> = table
        .into_iter()
        .map(|(kind, status)| (kind.to_owned(), status.to_owned(), reason.to_owned()))
        .collect();
    assert_eq!(conditions(status), table);
    for condition in &status.conditions {
        assert_eq!(condition.observed_generation, status.observed_generation);
        assert!(!condition.message.is_empty());
    }
    let columns = status.columns.as_ref().unwrap();
    assert_eq!(columns.reason.as_deref(), Some(reason));
}

#[track_caller]
pub(crate) fn assert_no_number(plan: &Plan) {
    let status = &plan.status;
    assert!(status.results.is_empty() && status.comparisons.is_empty());
    assert!(status.budgets.is_empty());
    assert_eq!(
        (status.winner.as_ref(), status.ledger_digest.as_ref()),
        (None, None)
    );
    let columns = status.columns.as_ref().unwrap();
    let figures = [
        &columns.winner,
        &columns.ratio,
        &columns.energy,
        &columns.rate,
        &columns.latency,
        &columns.power,
    ];
    assert_eq!(figures, [&None; 6]);
}
