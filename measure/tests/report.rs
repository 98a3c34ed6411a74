//! The injector's report: complete in the termination message, within its limit, and distinguished from every
//! other text.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    course::Course,
    fortio::{FortioResult, parse},
    latency::{Bucket, Percentile},
    pace::InjectorCpu,
    report::{ClockOffset, Failure, InjectionReport, LIMIT_BYTES, REPORT_VERSION, ReportError},
    slices::{MOST_SLICES, Slices},
};
use proptest::prelude::*;

fn report(measured: FortioResult) -> InjectionReport {
    let span = measured.span();
    InjectionReport {
        version: REPORT_VERSION,
        measured: measured.into(),
        histogram_dropped: false,
        asked_warm_up_seconds: 5.0,
        asked_tail_seconds: 3.0,
        warm_up: Some(LoadSpan {
            start_unix_seconds: span.start_unix_seconds - 5.1,
            ..span
        }),
        tail: Some(LoadSpan {
            start_unix_seconds: span.end_unix_seconds() + 0.02,
            ..span
        }),
        gap_before_measured_seconds: Some(0.017_384_25),
        gap_after_measured_seconds: Some(0.019_284_31),
        interrupted: None,
        clock: Some(ClockOffset {
            offset_seconds: -0.001_23,
            uncertainty_seconds: 0.000_35,
        }),
        clock_after: Some(ClockOffset {
            offset_seconds: -0.001_27,
            uncertainty_seconds: 0.000_31,
        }),
        course: Some(Course {
            slice_seconds: 64.0,
            whole_seconds: 1011.125,
            requests: (0..16).map(|index| 381_234 + 777 * index).collect(),
            mean_seconds: (0..16)
                .map(|index| 0.001_234 + 1e-6 * f64::from(index))
                .collect(),
        }),
        slices: Some(slices(span)),
        cpu: Some(InjectorCpu {
            cpus: 4,
            limit_cpus: Some(0.5),
            used_seconds: Some(9.876_543_21),
            throttled_seconds: Some(0.012_345),
            busy_share: Some(0.876_543_2),
            busiest_share: Some(0.987_654_3),
        }),
    }
}

/// The requests of a load in all slices, with latencies that cannot be compressed.
fn slices(load: LoadSpan) -> Slices {
    let spread = |all: u64| {
        let each = all / MOST_SLICES as u64;
        let mut slices = vec![each; MOST_SLICES];
        slices[0] += all - each * MOST_SLICES as u64;
        slices
    };
    let successes = spread(load.requests - load.errors);
    let mut noise = noise();
    let mut latencies = |most: u64, digits: u64| {
        let of = successes.iter();
        let of = of.map(|count| (*count > 0).then(|| noise() % most / digits * digits));
        of.collect::<Vec<_>>()
    };
    Slices {
        slice_seconds: load.duration_seconds / MOST_SLICES as f64,
        whole_seconds: 0.98 * load.duration_seconds,
        mean_nanoseconds: latencies(10_000_000, 1),
        p99_nanoseconds: latencies(100_000_000, 10_000),
        errors: spread(load.errors),
        successes,
    }
}

/// Pseudo-random digits, which cannot be compressed.
fn noise() -> impl FnMut() -> u64 {
    let mut state = 20_261_121_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    }
}

/// All 64 buckets that Fortio can have, in both histograms, each with its own count: hours of a target whose
/// latencies range from 20 µs to the timeout.
fn long_tailed() -> InjectionReport {
    let mut report = report(parse(include_str!("data/fortio-sample.json")).unwrap());
    let mut noise = noise();
    let result = report.measured.fortio_mut().unwrap();
    for (histogram, most) in [
        (&mut result.latency, 10_000_000),
        (&mut result.error_latency, 1_000_000),
    ] {
        let mut start_seconds = 0.000_018_587;
        histogram.buckets = (0..64)
            .map(|_| {
                let end_seconds = start_seconds * 1.17;
                let bucket = Bucket {
                    start_seconds,
                    end_seconds,
                    count: noise() % most,
                };
                start_seconds = end_seconds;
                bucket
            })
            .collect();
        histogram.count = histogram.buckets.iter().map(|bucket| bucket.count).sum();
        histogram.percentiles = [50.0, 75.0, 90.0, 99.0, 99.9]
            .map(|percentile| Percentile {
                percentile,
                seconds: noise() as f64 / 1e17,
            })
            .to_vec();
    }
    let failed = result.error_latency.count;
    result.codes = [(200, result.latency.count - failed), (500, failed)].into();
    report.slices = None;
    report
}

/// As [`long_tailed`], with a URL of this many hexadecimal digits, as in a long signed query.
fn long_tailed_with_url_of(digits: usize) -> InjectionReport {
    let mut report = long_tailed();
    let mut noise = noise();
    report.measured.fortio_mut().unwrap().url = (0..digits / 13).fold(String::new(), |url, _| {
        let part = noise();
        format!("{url}{part:013x}")
    });
    report
}

#[test]
fn real_results_come_through_whole() {
    for json in [
        include_str!("data/fortio-sample.json"),
        include_str!("data/fortio/connection-refused.json"),
        include_str!("data/fortio/one-in-five-fails.json"),
        include_str!("data/fortio/interrupted-duration.json"),
    ] {
        let report = report(parse(json).unwrap());
        let message = report.encode().unwrap();
        assert!(message.len() <= LIMIT_BYTES, "{}", message.len());
        assert!(message.is_ascii());
        assert_eq!(
            InjectionReport::decode(&format!("{message}\n")).unwrap(),
            report
        );
    }
}

#[test]
fn the_longest_histograms_that_fortio_writes_come_through_whole() {
    let report = long_tailed();
    let message = report.encode().unwrap();
    assert!(message.len() <= LIMIT_BYTES, "{}", message.len());
    assert!(message.len() > 3000, "not a hard case: {}", message.len());
    assert!(InjectionReport::decode(&message).unwrap() == report);
}

#[test]
fn the_slices_go_before_the_course_does() {
    let mut report = long_tailed();
    report.slices = Some(slices(report.measured.span()));
    let message = report.encode().unwrap();
    let mut expected = report;
    expected.slices = None;
    assert!(InjectionReport::decode(&message).unwrap() == expected);
}

#[test]
fn impossible_slices_and_slices_of_other_requests_are_refused() {
    for damage in [
        |slices: &mut Slices| slices.successes.truncate(31),
        |slices: &mut Slices| slices.successes[3] += 1,
        |slices: &mut Slices| slices.errors[3] += 1,
        |slices: &mut Slices| slices.slice_seconds = 0.0,
        |slices: &mut Slices| slices.whole_seconds = -1.0,
        |slices: &mut Slices| slices.mean_nanoseconds[3] = Some(u64::MAX / 2),
        |slices: &mut Slices| slices.mean_nanoseconds[3] = None,
        |slices: &mut Slices| slices.p99_nanoseconds.truncate(31),
        |slices: &mut Slices| {
            slices.successes[0] += slices.successes[3];
            slices.successes[3] = 0;
        },
    ] {
        let mut report = report(parse(include_str!("data/fortio-sample.json")).unwrap());
        damage(report.slices.as_mut().unwrap());
        let error = InjectionReport::decode(&report.encode().unwrap()).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("slices") || error.contains("too large"),
            "{error}"
        );
    }
}

#[test]
fn slices_of_unexpected_answers_are_not_used_for_figures() {
    let report = report(parse(include_str!("data/fortio/one-in-five-fails.json")).unwrap());
    assert!(report.slices_of_figures(&[200]).is_some());
    assert_eq!(report.slices_of_figures(&[404]), None);
    assert_eq!(report.slices_of_figures(&[200, 503]), None);
}

#[test]
fn the_course_goes_before_any_bucket_does() {
    let report = long_tailed_with_url_of(LIMIT_BYTES / 8);
    let message = report.encode().unwrap();
    let mut expected = report;
    expected.course = None;
    assert!(InjectionReport::decode(&message).unwrap() == expected);
}

#[test]
fn an_impossible_course_is_refused() {
    for damage in [
        |course: &mut Course| course.requests.truncate(15),
        |course: &mut Course| course.slice_seconds = 0.0,
        |course: &mut Course| course.mean_seconds[3] = -1.0,
        |course: &mut Course| course.whole_seconds = -1.0,
    ] {
        let mut report = report(parse(include_str!("data/fortio-sample.json")).unwrap());
        damage(report.course.as_mut().unwrap());
        let error = InjectionReport::decode(&report.encode().unwrap()).unwrap_err();
        assert!(error.to_string().contains("course"), "{error}");
    }
}

#[test]
fn a_report_that_is_too_long_drops_its_buckets_and_records_this() {
    let report = long_tailed_with_url_of(2000);
    let message = report.encode().unwrap();
    assert!(message.len() <= LIMIT_BYTES, "{}", message.len());

    let mut expected = report;
    expected.course = None;
    expected.histogram_dropped = true;
    expected
        .measured
        .fortio_mut()
        .unwrap()
        .latency
        .buckets
        .clear();
    expected
        .measured
        .fortio_mut()
        .unwrap()
        .error_latency
        .buckets
        .clear();
    assert!(InjectionReport::decode(&message).unwrap() == expected);
}

#[test]
fn a_report_that_cannot_fit_is_an_error() {
    let result = long_tailed_with_url_of(6000).encode();
    assert!(matches!(result, Err(ReportError::TooLong(bytes)) if bytes > LIMIT_BYTES));
}

#[test]
fn an_injectors_failure_is_distinguished_from_a_report() {
    let failure = Failure {
        error: "Fortio ended without a result".into(),
        exit_code: Some(1),
        stderr_tail: "Aborting because of lookup nosuch: no such host".into(),
    };
    match InjectionReport::decode(&failure.encode()).unwrap_err() {
        ReportError::InjectorFailed {
            message,
            exit_code,
            stderr_tail,
        } => {
            assert_eq!(message, failure.error);
            assert_eq!(exit_code, Some(1));
            assert_eq!(stderr_tail, failure.stderr_tail);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_failure_fits_the_limit_and_keeps_the_end_of_fortios_output() {
    for stderr_tail in [
        "\u{1b}[0m\"é".repeat(4000) + "the end",
        "x".repeat(9000) + "the end",
    ] {
        let failure = Failure {
            error: "é".repeat(8000),
            exit_code: None,
            stderr_tail: stderr_tail.clone(),
        };
        assert!(failure.encode().len() <= LIMIT_BYTES);
        let failure = Failure {
            error: "short".into(),
            exit_code: None,
            stderr_tail,
        };
        let message = failure.encode();
        assert!(message.len() <= LIMIT_BYTES);
        assert!(message.contains("the end") && message.contains("short"));
    }
}

#[test]
fn other_texts_are_refused_with_their_beginning() {
    assert!(matches!(
        InjectionReport::decode(" \n"),
        Err(ReportError::Empty)
    ));
    for text in [
        "exec /usr/bin/frugality-injector: no such file",
        "{}",
        "{\"a\":",
        "aGVsbG8=",
        "H4sI",
    ] {
        match InjectionReport::decode(text) {
            Err(ReportError::NotAReport {
                text: beginning, ..
            }) => assert_eq!(beginning, text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_report_cut_short_is_refused() {
    let message = report(parse(include_str!("data/fortio-sample.json")).unwrap())
        .encode()
        .unwrap();
    let cut = &message[..message.len() - 100];
    assert!(matches!(
        InjectionReport::decode(cut),
        Err(ReportError::NotAReport { .. })
    ));
}

#[test]
fn a_report_of_another_version_is_refused_as_such() {
    let mut report = report(parse(include_str!("data/fortio-sample.json")).unwrap());
    report.version = 99;
    let message = report.encode().unwrap();
    assert!(matches!(
        InjectionReport::decode(&message),
        Err(ReportError::Version(99))
    ));
}

/// A report with every field that no injector writes: figures would divide by 0 or overflow.
#[test]
fn a_report_without_possible_figures_is_refused() {
    let whole = report(parse(include_str!("data/fortio-sample.json")).unwrap());
    let damaged: [fn(&mut InjectionReport); 6] = [
        |report| report.measured.fortio_mut().unwrap().threads = 0,
        |report| report.measured.fortio_mut().unwrap().duration_seconds = 0.0,
        |report| report.measured.fortio_mut().unwrap().requested_rate = Some(0.0),
        |report| report.measured.fortio_mut().unwrap().latency.count += 1,
        |report| report.measured.fortio_mut().unwrap().latency.sum_seconds = 1e308,
        |report| {
            report.tail = report.tail.map(|tail| LoadSpan {
                start_unix_seconds: -1e300,
                ..tail
            });
        },
    ];
    for damage in damaged {
        let mut report = whole.clone();
        damage(&mut report);
        let decoded = InjectionReport::decode(&report.encode().unwrap());
        assert!(
            matches!(decoded, Err(ReportError::NotAReport { .. })),
            "{decoded:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_decoding_panic(text in ".*") {
        prop_assert!(InjectionReport::decode(&text).is_err());
    }
}
