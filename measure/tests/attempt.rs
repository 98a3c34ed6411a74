//! From the injector's report to windows and figures, and the properties of the report that make an attempt
//! void.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::attempt::{Attempt, assess, same_answers, windows};
use frugality_measure::energy::{Limits, Window};
use frugality_measure::figures::LoadSpan;
use frugality_measure::figures::RequestFigures;
use frugality_measure::fortio::{figures, parse};
use frugality_measure::k6::{self, CycleSettings};
use frugality_measure::load::LoadResult;
use frugality_measure::pace::InjectorCpu;
use frugality_measure::report::{ClockOffset, InjectionReport, REPORT_VERSION};

const SETTLE_SECONDS: f64 = 3.0;
const IDLE_SECONDS: f64 = 30.0;

/// A run of 0.662 s whose slowest answer took less than 5 ms, with 5 s before and 3 s after it.
fn report() -> InjectionReport {
    let measured = parse(include_str!("data/fortio-sample.json")).unwrap();
    let span = measured.span();
    let clock = Some(ClockOffset {
        offset_seconds: -1200.5,
        uncertainty_seconds: 0.002,
    });
    InjectionReport {
        version: REPORT_VERSION,
        histogram_dropped: false,
        asked_warm_up_seconds: 5.0,
        asked_tail_seconds: 3.0,
        warm_up: Some(LoadSpan {
            start_unix_seconds: span.start_unix_seconds - 5.02,
            duration_seconds: 5.0,
            ..span
        }),
        tail: Some(LoadSpan {
            start_unix_seconds: span.end_unix_seconds() + 0.02,
            duration_seconds: 3.0,
            ..span
        }),
        gap_before_measured_seconds: Some(0.02),
        gap_after_measured_seconds: Some(0.02),
        interrupted: None,
        clock,
        clock_after: clock,
        course: None,
        slices: None,
        cpu: None,
        measured: LoadResult::Fortio(measured),
    }
}

/// The void reason for a changed report, or `None` if it has windows.
fn reason(change: impl Fn(&mut InjectionReport)) -> Option<(&'static str, String)> {
    let mut report = report();
    change(&mut report);
    let void = windows(&report, SETTLE_SECONDS, IDLE_SECONDS).err()?;
    Some((void.reason(), void.to_string()))
}

#[track_caller]
fn assert_void(reason: Option<(&'static str, String)>, code: &str, words: &str) {
    let (found, message) = reason.unwrap();
    assert_eq!(found, code, "{message}");
    assert!(message.contains(words), "{message}");
}

#[track_caller]
fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-5, "{value} is not {expected}");
}

#[test]
fn the_windows_are_in_the_meters_clock_for_any_offset() {
    let report = report();
    let windows = windows(&report, SETTLE_SECONDS, IDLE_SECONDS).unwrap();
    let start = report.measured.span().start_unix_seconds - 1200.5;
    let end = start + report.measured.span().duration_seconds;
    assert_near(windows.measured.start_unix_seconds, start);
    assert_near(windows.measured.end_unix_seconds, end);
    assert_near(windows.warm_up.unwrap().start_unix_seconds, start - 5.02);
    let tail = windows.tail.unwrap();
    assert_near(tail.start_unix_seconds, end + 0.02);
    assert_near(
        windows.idle_after.start_unix_seconds,
        end + 0.02 + 3.0 + 3.0,
    );
    assert_near(windows.idle_after.seconds(), 30.0);
}

#[test]
fn requested_load_must_have_run() {
    let without_warm_up = |report: &mut InjectionReport| {
        report.warm_up = None;
        report.gap_before_measured_seconds = None;
    };
    assert_void(
        reason(without_warm_up),
        "LoadNotSteady",
        "the warm-up left no result",
    );
    assert_void(
        reason(|report| report.tail = None),
        "LoadNotSteady",
        "the tail left no result",
    );
    let not_asked = reason(|report| {
        without_warm_up(report);
        report.asked_warm_up_seconds = 0.0;
    });
    assert_eq!(not_asked, None);
}

#[test]
fn a_gap_in_the_load_is_void_but_a_slow_answer_is_no_gap() {
    for at in [0, 1] {
        let with_gap = |gap: f64, slowest: f64| {
            reason(|report| {
                report.measured.fortio_mut().unwrap().latency.max_seconds = slowest;
                let gaps = [
                    &mut report.gap_before_measured_seconds,
                    &mut report.gap_after_measured_seconds,
                ];
                *gaps.into_iter().nth(at).unwrap() = Some(gap);
            })
        };
        assert_eq!(with_gap(0.5, 0.0), None);
        assert_void(with_gap(0.51, 0.0), "LoadNotSteady", "0.510 s without load");
        assert_eq!(with_gap(2.4, 2.0), None);
        assert_void(with_gap(2.6, 2.0), "LoadNotSteady", "limit 2.500 s");
    }
}

#[test]
fn a_clock_that_was_stepped_is_void() {
    let moved = |seconds: f64| {
        reason(|report| {
            let clock = report.clock_after.as_mut().unwrap();
            clock.offset_seconds += seconds;
        })
    };
    for seconds in [0.099, -0.099] {
        assert_eq!(moved(seconds), None);
    }
    for seconds in [0.101, -0.101, 3600.0] {
        assert_void(moved(seconds), "ClockStepped", "changed by");
    }
    // A clock that was set back between two runs, and forward again before the last comparison.
    let overlap =
        |seconds: f64| reason(|report| report.gap_after_measured_seconds = Some(-seconds));
    assert_eq!(overlap(0.09), None);
    assert_void(overlap(0.11), "ClockStepped", "changed by 0.110 s");
}

#[test]
fn clocks_must_be_known_before_and_after() {
    let clocks: [fn(&mut InjectionReport) -> &mut Option<ClockOffset>; 2] =
        [|report| &mut report.clock, |report| &mut report.clock_after];
    for clock in clocks {
        let known_to = |seconds: f64| {
            reason(|report| clock(report).as_mut().unwrap().uncertainty_seconds = seconds)
        };
        assert_eq!(known_to(0.1), None);
        assert_void(known_to(0.11), "ClockOffsetUnknown", "only within 0.110 s");
        let unknown = reason(|report| *clock(report) = None);
        assert_void(unknown, "ClockOffsetUnknown", "could not compare");
    }
}

#[test]
fn fortio_that_was_interrupted_has_no_windows() {
    let interrupted = reason(|report| report.interrupted = Some("tail: SIGTERM".into()));
    assert_void(interrupted, "LoadInterrupted", "tail: SIGTERM");
}

/// The void reason for the figures of a changed report. Without readings there always is one.
fn reason_of_figures(change: impl Fn(&mut InjectionReport)) -> &'static str {
    let mut report = report();
    change(&mut report);
    let windows = windows(&report, SETTLE_SECONDS, IDLE_SECONDS).unwrap();
    let end_unix_seconds = windows.warm_up.unwrap().start_unix_seconds - 3.0;
    let none = BTreeSet::new();
    let void = assess(&Attempt {
        report: &report,
        windows: &windows,
        idle_before: Window {
            start_unix_seconds: end_unix_seconds - IDLE_SECONDS,
            end_unix_seconds,
        },
        readings: &[],
        candidate_pods: &none,
        workloads: &BTreeMap::new(),
        database_pods: &none,
        restarted_pods: &none,
        injector_pods: &none,
        expected_status: &[200],
        limits: Limits::new(12.0),
        ramp_up_seconds: 0.0,
    });
    void.unwrap_err().reason()
}

/// The load of a script. k6 used `cpu_share` of its two CPUs.
fn scripted(cpu_share: f64) -> LoadResult {
    let settings = CycleSettings {
        url: "http://server".into(),
        agents: 4,
        rate: None,
        warm_up_seconds: 1.0,
        ramp_up_seconds: 0.0,
        duration_seconds: 2.0,
        tail_seconds: 1.0,
        timeout_seconds: 3.0,
    };
    let text = include_str!("data/k6/agents.json");
    let mut measured = k6::parse(text, &settings).unwrap().measured;
    measured.cpu_seconds = cpu_share * measured.duration_seconds * 2.0;
    LoadResult::K6(measured)
}

#[test]
fn a_slow_injector_is_no_reason_to_discard_a_trial() {
    // The fastest trials need most of the injector's CPU. All trials together decide whether the injector
    // limited them.
    let starve = |report: &mut InjectionReport| {
        report.measured.fortio_mut().unwrap().latency.sum_seconds /= 2.0;
    };
    let throttle = |report: &mut InjectionReport| {
        report.cpu = Some(InjectorCpu {
            throttled_seconds: Some(0.3),
            busy_share: Some(1.0),
            ..InjectorCpu::default()
        });
    };
    let busy = |report: &mut InjectionReport| report.measured = scripted(0.99);
    // Without readings, the next check fails.
    assert_eq!(reason_of_figures(starve), "MeterMissing");
    assert_eq!(reason_of_figures(throttle), "MeterMissing");
    assert_eq!(reason_of_figures(busy), "MeterMissing");
}

#[test]
fn the_size_of_a_body_excludes_the_headers() {
    let of = |text: &str| figures(&parse(text).unwrap(), &[200]);
    // The echo server answers without a body.
    let empty = of(include_str!("data/fortio-sample.json"));
    assert_eq!(empty.mean_body_bytes, Some(0.0));
    // The sizes include the errors' sizes.
    let failing = of(include_str!("data/fortio/one-in-five-fails.json"));
    assert_eq!(failing.mean_body_bytes, None);
}

fn answers(mean: f64, standard_error: f64) -> RequestFigures {
    RequestFigures {
        mean_body_bytes: Some(mean),
        mean_body_standard_error_bytes: Some(standard_error),
        ..figures(
            &parse(include_str!("data/fortio-sample.json")).unwrap(),
            &[200],
        )
    }
}

#[test]
fn answers_of_another_length_are_void() {
    let earlier = answers(1000.0, 0.0);
    assert_eq!(same_answers(&answers(1010.0, 0.0), &earlier), Ok(()));
    for mean in [1010.1, 989.9, 0.0] {
        let void = same_answers(&answers(mean, 0.0), &earlier).unwrap_err();
        assert_eq!(void.reason(), "ResponsesDiffer");
    }
    // Few answers with different lengths: 3·√(10² + 10²) = 42.4.
    let (few, other) = (answers(1000.0, 10.0), answers(1042.0, 10.0));
    assert_eq!(same_answers(&other, &few), Ok(()));
    assert!(same_answers(&answers(1043.0, 10.0), &few).is_err());
    // An unknown length cannot be compared.
    let unknown = RequestFigures {
        mean_body_bytes: None,
        ..answers(0.0, 0.0)
    };
    assert_eq!(same_answers(&unknown, &earlier), Ok(()));
}
