//! Percentiles of the latency over the requests of all trials.

use crate::common::{
    assert_near,
    entries::{Trial, judged, ledger},
    two,
};
use frugality_measure::fortio::{FortioResult, figures, parse};
use frugality_operator::api::FrugalityTrial;

const SAMPLE: &str = include_str!("../../measure/tests/data/fortio-sample.json");

/// A ledger with a real result in each trial. `change` edits the results by block and candidate.
fn with_results(change: impl Fn(i32, &str, &mut FortioResult)) -> Vec<FrugalityTrial> {
    let mut trials = ledger(&two(), |_, _| Trial::default());
    for trial in &mut trials {
        let mut result = parse(SAMPLE).unwrap();
        change(trial.spec.block, &trial.spec.candidate, &mut result);
        let status = trial.status.as_mut().unwrap();
        status.requests = Some(figures(&result, &[200]));
        status.fortio = Some(result);
    }
    trials
}

#[test]
fn a_slow_trial_weighs_as_much_as_it_has_requests() {
    let sample = parse(SAMPLE).unwrap();
    let median = sample.latency.percentiles[0];
    assert_near(median.percentile, 50.0);
    let trials = with_results(|block, candidate, result| {
        // One of five trials is ten times as slow.
        if block == 1 && candidate == "python" {
            for bucket in &mut result.latency.buckets {
                bucket.start_seconds *= 10.0;
                bucket.end_seconds *= 10.0;
            }
        }
    });
    let status = judged(&two(), trials).status;
    let [rust, python] = status.results.as_slice() else {
        panic!("{:?}", status.results);
    };
    let percentages: Vec<f64> = rust.latency.iter().map(|p| p.percentile).collect();
    assert_eq!(percentages, [50.0, 75.0, 90.0, 99.0, 99.9]);
    // Five equal trials have the distribution of one trial.
    let half = rust.latency[0];
    assert!(
        (half.milliseconds - 1000.0 * median.seconds).abs() < 0.01,
        "{half:?}"
    );
    assert_near(half.least_milliseconds, half.milliseconds);
    assert_near(half.most_milliseconds, half.milliseconds);
    // A fifth of all requests is slow. The median moves little, and the 90th percentile is one of the slow
    // requests.
    let [half, ninety] = [python.latency[0], python.latency[2]];
    assert!(half.milliseconds < 2000.0 * median.seconds, "{half:?}");
    assert!(
        (half.most_milliseconds - 10_000.0 * median.seconds).abs() < 0.1,
        "{half:?}"
    );
    assert!(ninety.milliseconds > 5000.0 * median.seconds, "{ninety:?}");
}

#[test]
fn a_trial_with_errors_removes_the_percentiles() {
    let trials = with_results(|block, candidate, result| {
        if block == 3 && candidate == "rust" {
            let answers = result.codes.get_mut(&200).unwrap();
            *answers -= 1;
            result.codes.insert(503, 1);
        }
    });
    let status = judged(&two(), trials).status;
    assert!(status.results[0].latency.is_empty());
    assert_eq!(status.results[1].latency.len(), 5);
    // The percentiles are also absent if a trial's histogram did not fit the report.
    let trials = with_results(|block, _, result| {
        if block == 2 {
            result.latency.buckets.clear();
        }
    });
    let status = judged(&two(), trials).status;
    assert!(
        status
            .results
            .iter()
            .all(|result| result.latency.is_empty())
    );
}

#[test]
fn a_candidate_with_fewer_requests_has_fewer_percentiles() {
    let trials = with_results(|_, candidate, result| {
        if candidate == "rust" {
            for bucket in &mut result.latency.buckets {
                bucket.count = bucket.count.div_ceil(20);
            }
        }
    });
    let status = judged(&two(), trials).status;
    let [rust, python] = [0, 1].map(|index| status.results[index].latency.len());
    assert!(0 < rust && rust < python, "{rust} {python}");
}
