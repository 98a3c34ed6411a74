//! Requests and latencies over the time of a run: a bounded number of slices, whose sums are the totals.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::{
    figures::LoadSpan,
    slices::{MOST_SLICES, SliceRecorder},
};
use proptest::prelude::*;

#[test]
fn a_request_belongs_to_the_slice_in_which_it_began() {
    let mut recorder = SliceRecorder::default();
    recorder.add(0.0, 1.3);
    recorder.add(1.3, 0.2);
    recorder.add(1.49, 0.4);
    recorder.add_error(1.9, 0.1);
    let slices = recorder.slices(2.0).unwrap();
    assert_eq!(slices.successes, [1, 0, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(slices.errors, [0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(slices.mean_nanoseconds[0], Some(1_300_000_000));
    assert_eq!(slices.mean_nanoseconds[5], Some(300_000_000));
    assert_eq!(slices.mean_nanoseconds[7], None);
    assert_eq!(slices.p99_nanoseconds, [None; 9]);
}

#[test]
fn nothing_recorded_has_no_slices() {
    assert_eq!(SliceRecorder::default().slices(1.0), None);
}

#[test]
fn a_stall_at_the_end_has_slices_without_requests() {
    let mut recorder = SliceRecorder::default();
    recorder.add(0.0, 0.1);
    recorder.add(0.1, 3.1);
    let slices = recorder.slices(3.2).unwrap();
    assert_eq!(slices.successes.len(), 13);
    assert_eq!(slices.successes[1..], [0; 12]);
}

#[test]
fn quantities_are_all_lists_by_the_names_of_their_fields() {
    let mut recorder = SliceRecorder::default();
    recorder.add(0.0, 0.1);
    let slices = recorder.slices(1.0).unwrap();
    let object = serde_json::to_value(&slices).unwrap();
    let lists = object.as_object().unwrap().values();
    assert_eq!(lists.filter(|value| value.is_array()).count(), 4);
    for (name, values) in slices.quantities() {
        assert_eq!(object[name], serde_json::json!(values), "{name}");
    }
}

proptest! {
    #[test]
    fn sums_over_the_slices_are_the_totals(
        requests in prop::collection::vec((0.0..1e6f64, 0.0..10.0f64, any::<bool>()), 1..200)
    ) {
        let mut recorder = SliceRecorder::default();
        let (mut successes, mut seconds) = (0, 0.0);
        for (at, latency, ok) in &requests {
            if *ok {
                recorder.add(*at, *latency);
                successes += 1;
                seconds += latency;
            } else {
                recorder.add_error(*at, *latency);
            }
        }
        let slices = recorder.slices(1e6).unwrap();
        prop_assert!(slices.successes.len() <= MOST_SLICES);
        let load = LoadSpan {
            start_unix_seconds: 0.0,
            duration_seconds: 1e6,
            requests: requests.len() as u64,
            errors: requests.len() as u64 - successes,
        };
        let more = LoadSpan { errors: load.errors + 1, ..load };
        prop_assert!(slices.is_of(load));
        prop_assert!(!slices.is_of(more));
        let sums = slices.successes.iter().zip(&slices.mean_nanoseconds);
        let sum: f64 = sums.map(|(count, mean)| *count as f64 * mean.unwrap_or(0) as f64).sum();
        prop_assert!((sum / 1e9 - seconds).abs() < 1e-6, "{sum} ns of {seconds} s");
        // Merging pairs for the drift loses nothing.
        let course = slices.course();
        prop_assert!(course.requests.len() <= 16);
        prop_assert_eq!(course.requests.iter().sum::<u64>(), successes);
    }
}
