//! What shows only in time: growing memory, and containers that end.

use crate::common::{
    entries::{Trial, factor, judged, ledger},
    judgement::table,
    two,
};
use frugality_operator::api::FrugalityBenchmarkStatus;

fn status(of: impl Fn(i32, &str) -> Trial) -> FrugalityBenchmarkStatus {
    let benchmark = two();
    judged(&benchmark, ledger(&benchmark, of)).status
}

/// Bytes per second of a pod that grows by so many MiB in an hour.
fn growing(mebibytes_per_hour: f64) -> f64 {
    mebibytes_per_hour * 1_048_576.0 / 3600.0
}

#[test]
fn growth_of_memory_is_the_mean_of_the_trials_with_an_interval() {
    let status = status(|block, name| Trial {
        // 10, 11, 12, 13 and 14: 12 with t·s/√n = 2.776 · 1.5811 / 2.2361 = 1.963.
        memory_growth: (name == "rust").then(|| growing(f64::from(9 + block))),
        ..Trial::default()
    });
    let growth = status.results[0].memory_growth_bytes_per_hour.unwrap();
    let mebibytes = [growth.value, growth.lower, growth.upper].map(|it| it / 1_048_576.0);
    for (told, expected) in mebibytes.into_iter().zip([12.0, 10.0367, 13.9633]) {
        assert!((told - expected).abs() < 1e-3, "{mebibytes:?}");
    }
    assert_eq!(status.results[1].memory_growth_bytes_per_hour, None);
    let told = table(&two(), status);
    assert!(
        told.contains("memory of rust grows by 12.0 [10.0–14.0] MiB/h"),
        "{told}"
    );
    assert!(!told.contains("memory of python"), "{told}");
}

#[test]
fn memory_that_may_shrink_is_told_as_that() {
    let status = status(|block, _| Trial {
        memory_growth: Some(growing(factor(block, 1.0).ln())),
        ..Trial::default()
    });
    let growth = status.results[0].memory_growth_bytes_per_hour.unwrap();
    assert!(growth.lower < 0.0 && growth.upper > 0.0, "{growth:?}");
}

#[test]
fn growth_that_is_unknown_in_one_trial_is_not_told() {
    let status = status(|block, _| Trial {
        memory_growth: (block != 2).then(|| growing(1.0)),
        ..Trial::default()
    });
    assert_eq!(status.results[0].memory_growth_bytes_per_hour, None);
}

#[test]
fn containers_that_ended_under_load_are_told_of() {
    let status = status(|block, name| Trial {
        restarts: Some(if name == "rust" && block > 3 { 2 } else { 0 }),
        ..Trial::default()
    });
    assert_eq!(
        (status.results[0].restarts, status.results[1].restarts),
        (4, 0)
    );
    let message = status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("the containers of rust were restarted 4×, in 2 of 5 trials"),
        "{message}"
    );
    assert!(!message.contains("python were restarted"), "{message}");
}
