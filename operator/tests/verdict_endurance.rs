//! Effects that show only over time: growing memory, drifting latency, and containers that end.

use frugality_operator::api::FrugalityBenchmarkStatus;
use serde_json::{Value, json};

use crate::common::{
    edited,
    entries::{Trial, factor, judged, ledger},
    injector_pod, two,
};

fn status(of: impl Fn(i32, &str) -> Trial) -> FrugalityBenchmarkStatus {
    let benchmark = two();
    judged(&benchmark, ledger(&benchmark, of)).status
}

/// Bytes per second of a pod that grows by so many MiB per hour.
fn growing(mebibytes_per_hour: f64) -> f64 {
    mebibytes_per_hour * 1_048_576.0 / 3600.0
}

#[test]
fn growth_of_memory_is_the_mean_of_the_trials_with_an_interval() {
    let status = status(|block, name| Trial {
        // The values are 10, 11, 12, 13 and 14: mean 12, half interval t·s/√n = 2.776 · 1.5811 / 2.2361 = 1.963.
        memory_growth: (name == "rust").then(|| growing(f64::from(9 + block))),
        ..Trial::default()
    });
    let growth = status.results[0].memory_growth_bytes_per_hour.unwrap();
    let mebibytes = [growth.value, growth.lower, growth.upper].map(|it| it / 1_048_576.0);
    for (reported, expected) in mebibytes.into_iter().zip([12.0, 10.0367, 13.9633]) {
        assert!((reported - expected).abs() < 1e-3, "{mebibytes:?}");
    }
    assert_eq!(status.results[1].memory_growth_bytes_per_hour, None);
}

#[test]
fn the_interval_of_memory_growth_may_contain_0() {
    let status = status(|block, _| Trial {
        memory_growth: Some(growing(factor(block, 1.0).ln())),
        ..Trial::default()
    });
    let growth = status.results[0].memory_growth_bytes_per_hour.unwrap();
    assert!(growth.lower < 0.0 && growth.upper > 0.0, "{growth:?}");
}

#[test]
fn growth_that_is_unknown_in_one_trial_is_absent() {
    let status = status(|block, _| Trial {
        memory_growth: (block != 2).then(|| growing(1.0)),
        ..Trial::default()
    });
    assert_eq!(status.results[0].memory_growth_bytes_per_hour, None);
}

#[test]
fn drift_of_latency_is_the_mean_of_the_trials_with_an_interval() {
    let drifting = |block: i32, name: &str, seconds: f64| Trial {
        // The values are 10, 11, 12, 13 and 14, as for the memory above.
        latency_drift: (name == "rust").then(|| f64::from(9 + block)),
        seconds,
        ..Trial::default()
    };
    let of_ten_minutes = status(|block, name| drifting(block, name, 600.0));
    let drift = of_ten_minutes.results[0].latency_drift_milliseconds_per_hour;
    let drift = drift.unwrap();
    for (reported, expected) in [
        (drift.value, 12.0),
        (drift.lower, 10.04),
        (drift.upper, 13.96),
    ] {
        assert!((reported - expected).abs() < 1e-2, "{drift:?}");
    }
    let python = &of_ten_minutes.results[1];
    assert_eq!(python.latency_drift_milliseconds_per_hour, None);
    // In shorter windows the drift is not known.
    let shorter = status(|block, name| drifting(block, name, 590.0));
    assert_eq!(shorter.results[0].latency_drift_milliseconds_per_hour, None);
}

#[test]
fn drift_that_is_unknown_in_one_trial_is_absent() {
    let status = status(|block, _| Trial {
        latency_drift: (block != 5).then_some(1.0),
        seconds: 600.0,
        ..Trial::default()
    });
    let drift = status.results[0].latency_drift_milliseconds_per_hour;
    assert_eq!(drift, None);
}

#[test]
fn drift_is_absent_after_a_restart_or_without_expected_answers() {
    let benchmark = two();
    let mut trials = ledger(&benchmark, |_, _| Trial {
        latency_drift: Some(3.6),
        seconds: 600.0,
        ..Trial::default()
    });
    let trial = trials[0].status.as_mut().unwrap();
    let drift = trial.latency_drift_seconds_per_second().unwrap();
    assert!((drift - 1e-6).abs() < 1e-9, "{drift}");
    trial.restarts = Some(1);
    assert_eq!(trial.latency_drift_seconds_per_second(), None);
    trial.restarts = Some(0);
    trial.requests.as_mut().unwrap().ms_per_request = None;
    assert_eq!(trial.latency_drift_seconds_per_second(), None);
}

#[test]
fn the_injector_records_the_course_of_long_windows() {
    let asks = |changes: &[(&str, Value)]| {
        let pod = injector_pod(&edited(&two(), changes), 8);
        let args = pod.containers[0].args.clone().unwrap();
        args.contains(&"--course".to_owned())
    };
    assert!(!asks(&[("/load/duration", json!("599s"))]));
    assert!(asks(&[("/load/duration", json!("600s"))]));
    // At the greatest rate the length of the window is unknown, so the number of requests decides.
    assert!(!asks(&[("/load/requests", json!(999_999))]));
    assert!(asks(&[("/load/requests", json!(1_000_000))]));
    assert!(!asks(&[
        ("/load/requests", json!(1_000_000)),
        ("/load/rate", json!(2000))
    ]));
    assert!(asks(&[
        ("/load/requests", json!(60_000)),
        ("/load/rate", json!(100))
    ]));
}

#[test]
fn restarts_under_load_are_reported() {
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
        message.contains("The containers of rust were restarted 4×, in 2 of 5 trials"),
        "{message}"
    );
    assert!(!message.contains("python were restarted"), "{message}");
}
