//! The fewest joules at a latency target, and the energy-delay product.

use crate::common::{
    entries::{Trial, judged, swept},
    judgement::assert_ended,
    levels::{at_levels, highest, levelled, straight},
    noise::Noise,
    sweep::{at, judged_over, saturating},
};
use frugality_measure::{
    fortio::{figures, parse},
    latency::Bucket,
};
use frugality_operator::{
    api::{BudgetOutcome, BudgetResult, FrugalityBenchmark, FrugalityTrial, Reason, Verdict},
    plan::action::Plan,
    text::limit,
};
use serde_json::json;

const SAMPLE: &str = include_str!("../../measure/tests/data/fortio-sample.json");
const CONNECTIONS: [i32; 4] = [1, 4, 8, 16];

/// A budget of Rust at this limit and target.
fn limited(limit: &str, p99_milliseconds: u32) -> FrugalityBenchmark {
    let target = json!({"p99Milliseconds": p99_milliseconds});
    let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": limit, "atMost": target}]);
    at(&CONNECTIONS, &[("/budgets", budget)])
}

/// Rust needs 25 mJ, 10 mJ, 7.5 mJ and 7.5 mJ at these points. The 99th percentile is that of `p99`, which gets point and
/// block.
fn judged_with(benchmark: &FrugalityBenchmark, p99: impl Fn(&str, i32) -> f64) -> Plan {
    let mut trials = swept(benchmark, |connections, block, _, entrant| {
        saturating(connections, block, entrant)
    });
    let round = i32::try_from(CONNECTIONS.len()).unwrap();
    for trial in &mut trials {
        let block = 1 + (trial.spec.block - 1) / round;
        let milliseconds = p99(&trial.spec.point, block);
        set_percentile(trial, milliseconds);
    }
    judged(benchmark, trials)
}

/// 99.7 % of the requests take at most so many milliseconds, and 97 % at most nine tenths of that.
fn set_percentile(trial: &mut FrugalityTrial, milliseconds: f64) {
    // As Fortio computes its ends: multiples of its resolution.
    let ends = [0.0, 0.9, 1.0, 2.0].map(|end| end * 10.0 * milliseconds * 0.0001);
    let buckets = ends.windows(2).zip([970, 27, 3]);
    let mut result = parse(SAMPLE).unwrap();
    result.latency.buckets = buckets
        .map(|(ends, count)| Bucket {
            start_seconds: ends[0],
            end_seconds: ends[1],
            count,
        })
        .collect();
    let status = trial.status.as_mut().unwrap();
    let requests = status.requests.as_mut().unwrap();
    assert_eq!(requests.successes, 1000);
    if requests.errors == 0 {
        requests.percentiles_ms = figures(&result, &[200]).percentiles_ms;
    }
    status.fortio = Some(result);
}

fn usual(point: &str, _: i32) -> f64 {
    if point == "c16-max" { 46.0 } else { 23.0 }
}

fn only(plan: &Plan) -> &BudgetResult {
    let [budget] = plan.status.budgets.as_slice() else {
        panic!("{:?}", plan.status.budgets);
    };
    budget
}

#[test]
fn a_target_judges_the_best_point_that_keeps_it() {
    let plan = judged_with(&limited("0.008", 30), usual);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    let budget = only(&plan);
    assert_eq!(budget.point, "c8-max");
    let (lower, upper) = budget.figure.unwrap().bounds();
    assert!(lower < 0.0075 && 0.0075 < upper, "{budget:?}");
    let clause =
        "Met for rust: 7.50 gross mJ/request at c8-max with p99 ≤ 30 ms (limit 0.008 J = 8 mJ).";
    assert!(budget.message.starts_with(clause), "{}", budget.message);
    // The name under which a gate reports it.
    assert_eq!(limit(budget), "maxJoulesPerRequest with p99 ≤ 30 ms");
    // Without a target the limit is for every point.
    let budgets = json!([{"candidate": "rust", "maxJoulesPerRequest": "0.008"}]);
    let everywhere = at(&CONNECTIONS, &[("/budgets", budgets)]);
    let plan = judged_with(&everywhere, usual);
    assert_eq!(only(&plan).outcome, BudgetOutcome::Exceeded);
    assert_eq!(only(&plan).point, "c1-max");
}

#[test]
fn a_target_that_no_point_keeps_has_no_figure() {
    let plan = judged_with(&limited("0.008", 10), usual);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::FigureWithheld.as_str(),
    );
    let budget = only(&plan);
    assert_eq!(budget.outcome, BudgetOutcome::Withheld);
    assert_eq!(budget.figure, None);
    assert!(
        budget.message.ends_with("no point meets p99 ≤ 10 ms."),
        "{}",
        budget.message
    );
}

#[test]
fn a_point_that_keeps_the_target_in_some_trials_widens_the_interval() {
    // At 8 connections one of five trials is beyond the target.
    let p99 = |point: &str, block: i32| match point {
        "c8-max" if block == 2 => 40.0,
        _ => usual(point, block),
    };
    let outcome = |limit: &str| {
        let plan = judged_with(&limited(limit, 30), p99);
        let budget = only(&plan).clone();
        (budget.outcome, budget.figure.unwrap())
    };
    let (undecided, figure) = outcome("0.008");
    assert_eq!(undecided, BudgetOutcome::Undecided);
    // 10 mJ at 4 connections, and 7.5 mJ at 8.
    assert!((figure.value - 0.01).abs() < 1e-4, "{figure:?}");
    let (lower, upper) = figure.bounds();
    assert!(lower < 0.0075 && upper > 0.01, "{figure:?}");
    assert_eq!(outcome("0.012").0, BudgetOutcome::Met);
    assert_eq!(outcome("0.006").0, BudgetOutcome::Exceeded);
}

#[test]
fn a_bucket_that_contains_the_target_decides_nothing() {
    // At 8 connections 97 % take at most 28 ms, and 99.7 % at most 31 ms.
    let p99 = |point: &str, block: i32| match point {
        "c8-max" => 31.0,
        _ => usual(point, block),
    };
    let plan = judged_with(&limited("0.008", 30), p99);
    let budget = only(&plan);
    assert_eq!(budget.outcome, BudgetOutcome::Undecided);
    assert_eq!(budget.point, "c4-max");
    let plan = judged_with(&limited("0.008", 31), p99);
    assert_eq!(only(&plan).outcome, BudgetOutcome::Met);
}

/// The result with so many failed requests in each trial.
fn with_errors(errors: u64) -> BudgetResult {
    let benchmark = limited("0.008", 30);
    let mut trials = swept(&benchmark, |connections, block, _, entrant| Trial {
        errors,
        ..saturating(connections, block, entrant)
    });
    for trial in &mut trials {
        set_percentile(trial, 20.0);
    }
    only(&judged(&benchmark, trials)).clone()
}

#[test]
fn failed_requests_do_not_keep_the_target() {
    // 997 of 1,000 are fast enough. Failed requests may be among them.
    let met = with_errors(3);
    assert_eq!(met.outcome, BudgetOutcome::Met);
    assert!(
        met.message.contains("The latency is from a closed loop"),
        "{}",
        met.message
    );
    let undecided = with_errors(8);
    assert_eq!(undecided.outcome, BudgetOutcome::Withheld);
    assert!(
        undecided.message.contains("no point is shown to meet"),
        "{}",
        undecided.message
    );
    let failed = with_errors(20);
    assert!(
        failed.message.ends_with("no point meets p99 ≤ 30 ms."),
        "{}",
        failed.message
    );
}

#[test]
fn a_target_at_the_end_of_a_bucket_is_decided() {
    // Fortio's end for 30 ms is 0.030000000000000002 s.
    for milliseconds in [9.0, 30.0, 60.0, 90.0] {
        let target = format!("{milliseconds}").parse().unwrap();
        let plan = judged_with(&limited("0.008", target), |_, _| milliseconds);
        assert_eq!(only(&plan).outcome, BudgetOutcome::Met, "{milliseconds}");
    }
}

#[test]
fn the_highest_rate_of_an_open_load_is_left_out() {
    let target = json!({"p99Milliseconds": 30});
    let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": 1, "atMost": target}]);
    let of = |arrivals: &str| {
        let more = [
            ("/load/arrivals", json!(arrivals)),
            ("/budgets", budget.clone()),
        ];
        let benchmark = at_levels(&[100, 50], &more);
        let mut trials = levelled(&benchmark, highest, |candidate, rate, _| {
            straight(candidate, rate)
        });
        for trial in &mut trials {
            // Only the highest rate keeps the latency.
            let is_highest = trial.spec.rate_per_second.is_none();
            set_percentile(trial, if is_highest { 20.0 } else { 60.0 });
        }
        only(&judged(&benchmark, trials)).clone()
    };
    assert_eq!(of("Closed").point, "c4-max");
    assert_eq!(of("Open").outcome, BudgetOutcome::Withheld);
}

#[test]
fn a_closed_loop_is_named_next_to_the_latency() {
    let plan = judged_with(&limited("0.008", 30), usual);
    let message = &only(&plan).message;
    assert!(
        message.contains("The latency is from a closed loop"),
        "{message}"
    );
}

#[test]
fn a_percentile_that_is_not_known_keeps_no_target() {
    let benchmark = limited("0.008", 30);
    // These entries have no histograms.
    let plan = judged_over(&benchmark, saturating);
    assert_eq!(only(&plan).outcome, BudgetOutcome::Withheld);
    let message = &only(&plan).message;
    assert!(message.contains("no point is shown to meet"), "{message}");
}

#[test]
fn the_interval_contains_the_fewest_joules_as_often_as_promised() {
    // All points need 10 mJ, so chance alone chooses the point.
    let target = json!({"p99Milliseconds": 30});
    let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": "0.01", "atMost": target}]);
    let benchmark = at(&[1, 2, 3, 4, 5, 6, 7, 8], &[("/budgets", budget)]);
    let mut noise = Noise(11);
    let (runs, mut held) = (300, 0);
    for _ in 0..runs {
        let cell = std::cell::RefCell::new(&mut noise);
        let mut trials = swept(&benchmark, |_, _, _, _| Trial {
            gross: 0.01 * (0.02 * cell.borrow_mut().next()).exp(),
            ..Trial::default()
        });
        for trial in &mut trials {
            set_percentile(trial, 20.0);
        }
        let plan = judged(&benchmark, trials);
        let (lower, upper) = only(&plan).figure.unwrap().bounds();
        held += i32::from(lower <= 0.01 && 0.01 <= upper);
    }
    // At least 95 %, less three standard errors of 300 runs. With whole errors at eight points it would be 82 %.
    assert!(
        f64::from(held) >= (0.95 - 0.038) * f64::from(runs),
        "{held} of {runs}"
    );
}

#[test]
fn the_energy_delay_product_has_its_best_point_and_its_limit() {
    let budget = |limit: &str| {
        let budgets = json!([{"candidate": "rust", "maxEnergyDelayJouleSeconds": limit}]);
        at(&CONNECTIONS, &[("/budgets", budgets)])
    };
    // 25 mJ in 10 ms, 10 mJ in 10 ms, 7.5 mJ in 10 ms, and 7.5 mJ in 20 ms.
    let plan = judged_over(&budget("0.0003"), saturating);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    assert_eq!(only(&plan).point, "c1-max");
    assert!(
        only(&plan)
            .message
            .contains(" gross mJ·s/request at c1-max (limit 0.0003 J·s = 0.3 mJ·s)"),
        "{}",
        only(&plan).message
    );
    let sweep = plan.status.sweep.iter().find(|it| it.candidate == "rust");
    let least = sweep.unwrap().least_energy_delay.as_ref().unwrap();
    assert_eq!((least.point.as_str(), least.among.len()), ("c8-max", 1));
    let plan = judged_over(&budget("0.0002"), saturating);
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
}
