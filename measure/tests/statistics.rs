//! The statistics compared with reference values from SciPy (tests/reference/statistics.py).

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::statistics::{
    IntervalEstimate, arithmetic_mean, geometric_mean, paired_ratio, t_quantile,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    quantiles: Vec<Quantile>,
    arithmetic_means: Vec<Mean>,
    geometric_means: Vec<Mean>,
    paired_ratios: Vec<Ratio>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Quantile {
    probability: f64,
    degrees_of_freedom: f64,
    t: f64,
}

#[derive(Deserialize)]
struct Mean {
    values: Vec<f64>,
    confidence: f64,
    estimate: IntervalEstimate,
}

#[derive(Deserialize)]
struct Ratio {
    pairs: Vec<(f64, f64)>,
    confidence: f64,
    estimate: IntervalEstimate,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference/statistics.json")).unwrap()
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64) {
    let error = (ours - theirs).abs();
    assert!(
        error <= 1e-10 * theirs.abs().max(1e-3),
        "{ours} is not {theirs}"
    );
}

#[track_caller]
fn assert_same(ours: Option<IntervalEstimate>, theirs: &IntervalEstimate) {
    let ours = ours.unwrap();
    assert_close(ours.value, theirs.value);
    assert_close(ours.lower, theirs.lower);
    assert_close(ours.upper, theirs.upper);
    assert_eq!(ours.trials, theirs.trials);
}

#[test]
fn quantiles_agree_with_scipy() {
    let quantiles = reference().quantiles;
    assert!(quantiles.len() > 200);
    for case in quantiles {
        let t = t_quantile(case.probability, case.degrees_of_freedom).unwrap();
        assert_close(t, case.t);
    }
}

#[test]
fn means_and_ratios_agree_with_scipy() {
    let reference = reference();
    for case in reference.arithmetic_means {
        assert_same(
            arithmetic_mean(&case.values, case.confidence),
            &case.estimate,
        );
    }
    for case in reference.geometric_means {
        assert_same(
            geometric_mean(&case.values, case.confidence),
            &case.estimate,
        );
    }
    for case in reference.paired_ratios {
        assert_same(paired_ratio(&case.pairs, case.confidence), &case.estimate);
    }
}

#[test]
fn no_quantile_outside_the_valid_ranges() {
    for probability in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
        assert_eq!(t_quantile(probability, 5.0), None, "{probability}");
    }
    for degrees_of_freedom in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            t_quantile(0.975, degrees_of_freedom),
            None,
            "{degrees_of_freedom}"
        );
    }
}

#[test]
fn one_trial_or_an_impossible_value_gives_no_estimate() {
    assert_eq!(geometric_mean(&[], 0.95), None);
    assert_eq!(geometric_mean(&[1.0], 0.95), None);
    assert_eq!(paired_ratio(&[(1.0, 2.0)], 0.95), None);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(geometric_mean(&[1.0, bad], 0.95), None, "{bad}");
        assert_eq!(paired_ratio(&[(1.0, 2.0), (bad, 2.0)], 0.95), None, "{bad}");
        assert_eq!(paired_ratio(&[(1.0, 2.0), (2.0, bad)], 0.95), None, "{bad}");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(arithmetic_mean(&[1.0, bad], 0.95), None, "{bad}");
    }
    for confidence in [-1.5, -0.5, 0.0, 1.0, f64::NAN] {
        assert_eq!(
            arithmetic_mean(&[1.0, 2.0], confidence),
            None,
            "{confidence}"
        );
    }
}

#[test]
fn a_mean_of_zero_or_below_is_valid() {
    let growth = arithmetic_mean(&[-1.0, 1.0], 0.95).unwrap();
    assert_close(growth.value, 0.0);
    assert!(growth.lower < -12.0 && growth.upper > 12.0);
}

#[test]
fn trials_that_agree_exactly_have_an_interval_without_width() {
    let estimate = geometric_mean(&[2.0, 2.0, 2.0], 0.95).unwrap();
    assert_close(estimate.lower, 2.0);
    assert_close(estimate.upper, 2.0);
}

#[test]
fn common_effects_of_a_block_cancel_in_the_ratio() {
    // The afternoon doubles both candidates' joules; the ratio is 1/2 in every block.
    let ratio = paired_ratio(&[(1.0, 2.0), (2.0, 4.0), (1.5, 3.0)], 0.95).unwrap();
    assert_close(ratio.value, 0.5);
    assert!(ratio.upper - ratio.lower < 1e-9);
}
