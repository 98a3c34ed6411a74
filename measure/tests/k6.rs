//! k6: the parser of its output, the figures of a result, and the options for a load.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::figures::RequestFigures;
use frugality_measure::{
    k6::{CheckCounts, CycleSettings, CycleSettingsError, K6Error, K6Output, OTHER_CHECKS, parse},
    load::LoadResult,
    report::{InjectionReport, LIMIT_BYTES, REPORT_VERSION},
};
use rstest::rstest;
use serde_json::{Value, json};

const AGENTS: &str = include_str!("data/k6/agents.json");
const RATE: &str = include_str!("data/k6/rate.json");
const FAILING: &str = include_str!("data/k6/failing.json");

fn settings(rate: Option<f64>) -> CycleSettings {
    CycleSettings {
        url: "http://server:8080".into(),
        agents: 4,
        rate,
        warm_up_seconds: 1.0,
        ramp_up_seconds: 0.0,
        duration_seconds: 2.0,
        tail_seconds: 1.0,
        timeout_seconds: 3.0,
    }
}

fn output(json: &str, rate: Option<f64>) -> K6Output {
    parse(json, &settings(rate)).unwrap()
}

fn figures(json: &str, rate: Option<f64>) -> RequestFigures {
    LoadResult::K6(output(json, rate).measured).figures(&[])
}

#[track_caller]
fn assert_near(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    let within = 1e-9 * expected.abs().max(1.0);
    assert!(
        (value - expected).abs() <= within,
        "{value} is not {expected}"
    );
}

/// The raw JSON with one value changed.
fn damaged(path: &str, value: Value) -> String {
    let mut json: Value = serde_json::from_str(AGENTS).unwrap();
    *json.pointer_mut(path).unwrap() = value;
    json.to_string()
}

#[test]
fn a_cycle_counts_as_a_request() {
    let raw: Value = serde_json::from_str(AGENTS).unwrap();
    let number = |path: &str| raw.pointer(path).unwrap().as_f64().unwrap();
    let (count, sum) = (number("/cycles/count"), number("/cycles/sumSeconds"));
    let figures = figures(AGENTS, None);
    assert!((figures.successes as f64 - count).abs() < 0.5 && count > 1000.0);
    assert_eq!((figures.requests, figures.errors), (figures.successes, 0));
    assert_near(figures.requests_per_second, count / 2.0);
    assert_near(figures.ms_per_request, 1000.0 * sum / count);
    assert_near(figures.error_rate, 0.0);
    assert_near(
        figures.requests_per_cycle,
        number("/requests/count") / count,
    );
    // Four agents in two seconds.
    assert_near(figures.occupancy, number("/requests/waitedSeconds") / 8.0);
    assert_eq!(figures.shortfall, None);
    assert_eq!(figures.mean_body_bytes, None);
    let names: Vec<_> = figures.percentiles_ms.keys().map(String::as_str).collect();
    assert_eq!(names, ["p50", "p75", "p90", "p99", "p99.9"]);
    let [median, last] = ["p50", "p99.9"].map(|name| figures.percentiles_ms[name]);
    assert!(median < figures.ms_per_request.unwrap() && last > median);
}

#[test]
fn at_a_rate_the_shortfall_is_reported() {
    let measured = output(RATE, Some(100.0)).measured;
    let of = |change: &dyn Fn(&mut frugality_measure::k6::K6Result)| {
        let mut measured = measured.clone();
        change(&mut measured);
        LoadResult::K6(measured).figures(&[]).shortfall
    };
    assert_near(of(&|_| ()), 0.0);
    assert_near(of(&|it| it.dropped_cycles = 20), 20.0 / 200.0);
    // 2.34 cycles were due in which two have ended: the last one is open.
    let due = |ended: u64| {
        move |it: &mut frugality_measure::k6::K6Result| {
            it.rate = Some(1.17);
            (it.cycles.count, it.failed_cycles.count) = (ended, 0);
        }
    };
    assert_near(of(&due(2)), 0.0);
    assert!(of(&due(0)).unwrap() > 0.4);
    assert!(figures(RATE, Some(100.0)).occupancy.unwrap() < 0.5);
}

#[test]
fn with_dropped_cycles_the_times_are_absent() {
    let mut measured = output(RATE, Some(100.0)).measured;
    measured.dropped_cycles = 1;
    let figures = LoadResult::K6(measured).figures(&[]);
    assert_eq!(figures.ms_per_request, None);
    assert!(figures.percentiles_ms.is_empty());
    assert!(figures.requests_per_second.is_some());
}

#[test]
fn dropped_cycles_are_no_errors() {
    let mut measured = output(RATE, Some(100.0)).measured;
    let cycles = measured.all_cycles();
    measured.dropped_cycles = cycles;
    let failed = measured.failed_cycles.count;
    let figures = LoadResult::K6(measured).figures(&[]);
    assert_eq!((figures.errors, figures.dropped), (failed, cycles));
    assert_near(figures.error_rate, failed as f64 / cycles as f64);
}

#[test]
fn failed_cycles_are_errors_and_do_not_affect_the_times() {
    let output = output(FAILING, None);
    let figures = figures(FAILING, None);
    let measured = &output.measured;
    assert_eq!(figures.errors, measured.failed_cycles.count);
    assert_eq!(figures.requests, figures.successes + figures.errors);
    // Of 70 cycles, 7 + 10 − 1 fail.
    let share = figures.error_rate.unwrap();
    assert!((share - 16.0 / 70.0).abs() < 0.003, "{share}");
    let mean = measured.cycles.sum_seconds / measured.cycles.count as f64;
    assert_near(figures.ms_per_request, 1000.0 * mean);
    assert!(!figures.percentiles_ms.is_empty());
    assert!(measured.checks["is no tenth"].failed > 0);
    assert_eq!(measured.first_failures, ["every seventh"]);
}

#[test]
fn warm_up_window_and_tail_follow_one_another() {
    let output = output(AGENTS, None);
    let span = output.measured.span();
    assert_near(
        Some(output.warm_up.end_unix_seconds()),
        span.start_unix_seconds,
    );
    assert_near(
        Some(output.tail.start_unix_seconds),
        span.end_unix_seconds(),
    );
    assert!(output.warm_up.requests > 0 && output.tail.requests > 0);
    assert!(!output.measured.is_interrupted());
}

#[test]
fn a_window_that_ended_early_is_reported() {
    let text = damaged("/durationSeconds", json!(1.99));
    let output = parse(&text, &settings(None)).unwrap();
    assert!(output.measured.is_interrupted());
}

#[test]
fn a_report_of_cycles_comes_through_whole() {
    for (json, rate) in [(AGENTS, None), (RATE, Some(100.0)), (FAILING, None)] {
        let K6Output {
            measured,
            warm_up,
            tail,
            slices,
        } = output(json, rate);
        let report = InjectionReport {
            version: REPORT_VERSION,
            measured: LoadResult::K6(measured),
            histogram_dropped: false,
            asked_warm_up_seconds: 1.0,
            asked_tail_seconds: 1.0,
            warm_up: Some(warm_up),
            tail: Some(tail),
            gap_before_measured_seconds: Some(0.0),
            gap_after_measured_seconds: Some(0.0),
            interrupted: None,
            clock: None,
            clock_after: None,
            course: None,
            slices,
            cpu: None,
        };
        let message = report.encode().unwrap();
        assert!(message.len() <= LIMIT_BYTES, "{}", message.len());
        assert_eq!(InjectionReport::decode(&message).unwrap(), report);
    }
}

#[test]
fn the_slices_of_the_window_are_read() {
    assert_eq!(output(AGENTS, None).slices, None);
    let mut json: Value = serde_json::from_str(AGENTS).unwrap();
    json["slices"] = json!({
        "sliceSeconds": 0.5,
        "wholeSeconds": 1.0,
        "successes": [3, 4],
        "errors": [0, 1],
        "meanNanoseconds": [10_000_000, 20_000_000],
        "p99Nanoseconds": [null, null],
    });
    let slices = parse(&json.to_string(), &settings(None)).unwrap().slices;
    let course = slices.unwrap().course();
    assert_eq!(course.requests, [3, 4]);
    assert!((course.mean_seconds[1] - 0.02).abs() < 1e-12);
}

#[rstest]
#[case::nothing("")]
#[case::words_only("time=\"…\" level=error msg=\"no\"")]
fn without_a_line_of_the_output_there_is_no_result(#[case] text: &str) {
    let error = parse(text, &settings(None)).unwrap_err();
    assert!(matches!(error, K6Error::NoResult), "{error}");
}

#[test]
fn other_lines_around_the_result_are_ignored() {
    let text = format!("Flag --x has been deprecated\n{AGENTS}");
    assert_eq!(parse(&text, &settings(None)).unwrap(), output(AGENTS, None));
}

#[rstest]
#[case::time("/startUnixSeconds", json!(-1.0))]
#[case::length("/durationSeconds", json!(0.0))]
#[case::hardly_a_length("/durationSeconds", json!(1e-308))]
#[case::length_that_is_none("/durationSeconds", json!(null))]
#[case::sum("/cycles/sumSeconds", json!(1e300))]
#[case::count("/cycles/count", json!(3))]
#[case::negative_count("/cycles/count", json!(-3))]
#[case::bucket("/cycles/buckets/0/endSeconds", json!(-0.5))]
#[case::codes("/requests/codes", json!({"200": 3}))]
#[case::failed("/requests/failed", json!(1_000_000_000))]
#[case::check("/checks/is 200/passed", json!(u64::MAX))]
#[case::cpus("/cpus", json!(0))]
#[case::cpu("/cpuSeconds", json!(-1.0))]
fn an_impossible_result_is_refused(#[case] path: &str, #[case] value: Value) {
    let text = damaged(path, value);
    assert!(parse(&text, &settings(None)).is_err(), "{path}");
}

#[test]
fn the_load_is_one_scenario_as_long_as_all_its_parts() {
    let closed = settings(None).options();
    assert_eq!(
        closed,
        json!({ "scenarios": { "cycles": {
            "executor": "constant-vus", "vus": 4, "duration": "5.000s", "gracefulStop": "0s",
        }}})
    );
    let open = CycleSettings {
        ramp_up_seconds: 0.5,
        ..settings(Some(50.0))
    };
    assert_eq!(
        open.options(),
        json!({ "scenarios": { "cycles": {
            "executor": "ramping-arrival-rate", "startRate": 1, "timeUnit": "1s",
            "stages": [
                { "duration": "0.500s", "target": 50 }, { "duration": "4.500s", "target": 50 },
            ],
            "preAllocatedVUs": 4, "maxVUs": 4, "gracefulStop": "0s",
        }}})
    );
    // k6 takes whole numbers only.
    let decimals = settings(Some(7.55)).options();
    let scenario = &decimals["scenarios"]["cycles"];
    assert_eq!(scenario["executor"], "constant-arrival-rate");
    assert_eq!(
        (&scenario["rate"], &scenario["timeUnit"]),
        (&json!(755), &json!("100s"))
    );
}

#[rstest]
#[case::no_host(|s: &mut CycleSettings| s.url = "http://".into(), "name a host")]
#[case::no_agent(|s: &mut CycleSettings| s.agents = 0, "at least 1 agent")]
#[case::no_rate(|s: &mut CycleSettings| s.rate = Some(0.0), "from 0.01 to 1000000 cycles per second")]
#[case::no_window(|s: &mut CycleSettings| s.duration_seconds = 0.0, "the duration must be more than 0")]
#[case::no_number(|s: &mut CycleSettings| s.tail_seconds = f64::NAN, "the tail must be 0")]
#[case::endless(|s: &mut CycleSettings| s.warm_up_seconds = 86_400.0, "less than a day")]
#[case::no_time(|s: &mut CycleSettings| s.timeout_seconds = 0.0, "the timeout must be more than 0")]
#[case::steep(|s: &mut CycleSettings| s.ramp_up_seconds = 1.5, "not be longer than the warm-up")]
fn settings_that_k6_cannot_run_are_refused(
    #[case] change: fn(&mut CycleSettings),
    #[case] words: &str,
) {
    let mut settings = settings(None);
    assert_eq!(settings.check(), Ok(()));
    change(&mut settings);
    let error: CycleSettingsError = settings.check().unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

/// A report of this load. Its script has checks with these names.
fn report_with(names: impl Iterator<Item = String>) -> InjectionReport {
    let mut measured = output(AGENTS, None).measured;
    let counts = CheckCounts {
        passed: 2,
        failed: 1,
    };
    measured.checks = names.map(|name| (name, counts)).collect();
    measured.first_failures = vec!["f".repeat(3000); 20];
    InjectionReport {
        version: REPORT_VERSION,
        measured: LoadResult::K6(measured),
        histogram_dropped: false,
        asked_warm_up_seconds: 1.0,
        asked_tail_seconds: 1.0,
        warm_up: None,
        tail: None,
        gap_before_measured_seconds: None,
        gap_after_measured_seconds: None,
        interrupted: None,
        clock: None,
        clock_after: None,
        course: None,
        slices: None,
        cpu: None,
    }
}

#[test]
fn a_report_contains_only_short_names_and_not_too_many() {
    let names = (0..40).map(|number| format!("{number:02} {}", "a".repeat(3000)));
    let message = report_with(names).encode().unwrap();
    let LoadResult::K6(read) = InjectionReport::decode(&message).unwrap().measured else {
        panic!("not of a script");
    };
    assert_eq!(read.checks.len(), 17);
    assert!(read.checks.keys().all(|name| name.chars().count() <= 128));
    let sum: u64 = read.checks.values().map(|counts| counts.passed).sum();
    assert_eq!(sum, 40 * 2);
    assert_eq!(read.first_failures.len(), 8);
    assert!(
        read.first_failures
            .iter()
            .all(|text| text.chars().count() == 200)
    );
}

#[test]
fn a_report_without_room_for_names_has_the_checks_together() {
    // Incompressible text.
    let mut state: u32 = 1;
    let mut character = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x4e00 + (state >> 16) % 20_000).unwrap()
    };
    let names: Vec<String> = (0..17)
        .map(|_| (0..128).map(|_| character()).collect())
        .collect();
    let message = report_with(names.into_iter()).encode().unwrap();
    assert!(message.len() <= LIMIT_BYTES);
    let LoadResult::K6(read) = InjectionReport::decode(&message).unwrap().measured else {
        panic!("not of a script");
    };
    let counts = read.checks[OTHER_CHECKS];
    assert_eq!(
        (read.checks.len(), counts.passed, counts.failed),
        (1, 34, 17)
    );
}
