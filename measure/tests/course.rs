//! Latency over the time of a run: a bounded number of slices, and their drift.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::float_cmp, reason = "means are rounded to seven digits")]

use frugality_measure::{course::Course, slices::SliceRecorder};
use proptest::prelude::*;

/// One request every tenth of a second.
fn course(seconds: u32, latency_seconds: impl Fn(f64) -> f64) -> Course {
    let mut recorder = SliceRecorder::default();
    for tenth in 0..10 * seconds {
        let at = f64::from(tenth) / 10.0;
        recorder.add(at, latency_seconds(at));
    }
    recorder.slices(f64::from(seconds)).unwrap().course()
}

#[test]
fn a_run_of_any_length_has_slices_of_equal_length() {
    for (seconds, slice_seconds, slices) in [
        (4, 0.25, 16),
        (10, 1.0, 10),
        (16, 1.0, 16),
        (17, 2.0, 9),
        (600, 64.0, 10),
        (86_400, 8192.0, 11),
    ] {
        let course = course(seconds, |_| 0.002);
        assert_eq!(
            (course.slice_seconds, course.requests.len()),
            (slice_seconds, slices)
        );
        assert_eq!(course.requests.iter().sum::<u64>(), u64::from(10 * seconds));
        assert!(course.mean_seconds.iter().all(|mean| *mean == 0.002));
    }
}

#[test]
fn a_steady_rise_is_reported_and_constant_latency_has_no_drift() {
    let rising = course(3600, |at| 0.01 + 1e-6 * at);
    let drift = rising.drift_seconds_per_second().unwrap();
    assert!((drift / 1e-6 - 1.0).abs() < 0.01, "{drift}");
    let steady = course(3600, |_| 0.01);
    assert_eq!(steady.drift_seconds_per_second(), Some(0.0));
    let falling = course(3600, |at| 0.01 - 1e-6 * at);
    assert!(falling.drift_seconds_per_second().unwrap() < -0.99e-6);
}

#[test]
fn slices_without_the_whole_load_do_not_affect_the_drift() {
    // Slices of 64 s; the tenth has 24 s.
    let mut cut_off = course(600, |at| if at < 576.0 { 0.01 } else { 5.0 });
    assert_eq!(cut_off.requests.len(), 10);
    assert_eq!(cut_off.drift_seconds_per_second(), Some(0.0));
    // When connections end, the others become faster.
    cut_off = course(600, |at| if at < 500.0 { 0.01 } else { 0.001 });
    assert!(cut_off.drift_seconds_per_second().unwrap() < 0.0);
    cut_off.whole_seconds = 500.0;
    assert_eq!(cut_off.drift_seconds_per_second(), Some(0.0));
}

#[test]
fn a_slice_without_requests_does_not_affect_the_drift() {
    let mut recorder = SliceRecorder::default();
    for second in (0..4).chain(8..14) {
        let at = f64::from(second);
        recorder.add(at, 0.01 + 0.001 * at);
    }
    let course = recorder.slices(14.0).unwrap().course();
    assert_eq!(course.requests[4..8], [0; 4]);
    assert_eq!(course.mean_seconds[4], 0.0);
    let drift = course.drift_seconds_per_second().unwrap();
    assert!((drift - 0.001).abs() < 1e-6, "{drift}");
}

#[test]
fn too_few_slices_have_no_drift() {
    assert_eq!(course(1, |at| at).drift_seconds_per_second(), None);
    assert!(course(2, |at| at).drift_seconds_per_second().is_some());
}

proptest! {
    #[test]
    fn for_any_times_the_course_stays_small_and_counts_all(
        requests in prop::collection::vec((-1e6..1e18f64, 0.0..10.0f64), 1..200)
    ) {
        let mut recorder = SliceRecorder::default();
        for (at, latency) in &requests {
            recorder.add(*at, *latency);
        }
        let course = recorder.slices(1e18).unwrap().course();
        prop_assert!(course.requests.len() <= 16);
        prop_assert_eq!(course.requests.iter().sum::<u64>(), requests.len() as u64);
        let most = requests.iter().map(|(_, latency)| *latency).fold(0.0, f64::max);
        prop_assert!(course.mean_seconds.iter().all(|mean| *mean <= most * 1.000_001 + 1e-300));
        let drift = course.drift_seconds_per_second();
        prop_assert!(drift.is_none_or(f64::is_finite));
    }
}
