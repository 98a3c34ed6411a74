//! The parser of Fortio's JSON: real results (tests/data/fortio/README.md), and damaged ones.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::fortio::{
    Amount, Body, FortioError, FortioResult, FortioSettingsError, LoadSettings, argv, figures,
    parse,
};
use frugality_measure::latency::{Bucket, merged_percentiles};
use rstest::rstest;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("data/fortio-sample.json");

macro_rules! real {
    ($name:literal) => {
        parse(include_str!(concat!("data/fortio/", $name, ".json"))).unwrap()
    };
}

#[track_caller]
fn assert_close(ours: Option<f64>, expected: f64) {
    let ours = ours.unwrap();
    assert!(
        (ours - expected).abs() <= 1e-9 * expected.abs(),
        "{ours} is not {expected}"
    );
}

/// The sample with the value at a JSON pointer replaced, or removed.
fn damaged(pointer: &str, replacement: Option<Value>) -> String {
    let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap();
    match replacement {
        Some(value) => parent.insert(key.to_owned(), value),
        None => parent.remove(key),
    };
    document.to_string()
}

#[test]
fn a_run_without_errors_gives_all_its_figures() {
    let result = parse(SAMPLE).unwrap();
    assert!((result.start_unix_seconds - 1_795_233_695.307_73).abs() < 1e-6);
    // Fortio's Duration is in nanoseconds.
    assert!((result.duration_seconds - 0.662_003_582).abs() < 1e-12);
    assert_eq!(result.requested, Amount::Requests(20_000));
    assert_eq!(result.requested_rate, None);
    assert!(!result.is_interrupted());

    let figures = figures(&result, &[200]);
    assert_eq!(
        (figures.requests, figures.successes, figures.errors),
        (20_000, 20_000, 0)
    );
    assert_close(figures.requests_per_second, 30_211.316_892_844_25);
    assert_close(figures.ms_per_request, 0.130_654_948_199_999_9);
    assert_close(figures.occupancy, 0.986_814_510_922_086_8);
    assert_close(figures.error_rate, 0.0);
    assert_eq!(figures.shortfall, None);
    let names: Vec<&str> = figures.percentiles_ms.keys().map(String::as_str).collect();
    assert_eq!(names, ["p50", "p75", "p90", "p99", "p99.9"]);
    assert_close(Some(figures.percentiles_ms["p99.9"]), 2.571_428_571_428_6);
}

#[test]
fn rate_and_latency_exclude_errors_and_percentiles_are_absent() {
    let figures = figures(&real!("one-in-five-fails"), &[200]);
    assert_eq!(
        (figures.requests, figures.successes, figures.errors),
        (4000, 3210, 790)
    );
    assert_close(figures.requests_per_second, 3210.0 / 0.582_175_148);
    assert_close(
        figures.ms_per_request,
        1000.0 * (2.310_696_203 - 0.454_916_5) / 3210.0,
    );
    assert_close(figures.error_rate, 0.1975);
    assert!(figures.percentiles_ms.is_empty());
}

#[rstest]
#[case::status_500(real!("every-request-fails"), 3000)]
#[case::refused(real!("connection-refused"), 5381)]
fn without_a_success_figures_are_absent_and_never_zero(
    #[case] result: FortioResult,
    #[case] errors: u64,
) {
    let figures = figures(&result, &[200]);
    assert_eq!((figures.successes, figures.errors), (0, errors));
    assert_eq!(figures.requests_per_second, None);
    assert_eq!(figures.ms_per_request, None);
    assert!(figures.percentiles_ms.is_empty());
    assert_close(figures.error_rate, 1.0);
}

#[test]
fn an_unexpected_success_of_fortio_is_an_error_without_latency() {
    let result = real!("unexpected-success");
    let only_200 = figures(&result, &[200]);
    assert_eq!((only_200.successes, only_200.errors), (1518, 482));
    assert_close(only_200.requests_per_second, 1518.0 / 0.181_166_927);
    assert_eq!(only_200.ms_per_request, None);
    assert!(only_200.percentiles_ms.is_empty());

    let both = figures(&result, &[200, 201]);
    assert_eq!((both.successes, both.errors), (2000, 0));
    assert_close(both.ms_per_request, 1000.0 * 0.713_024_08 / 2000.0);
    assert!(!both.percentiles_ms.is_empty());
}

#[test]
fn an_expected_code_that_fortio_calls_an_error_has_a_rate_but_no_latency() {
    let figures = figures(&real!("every-request-fails"), &[500]);
    assert_eq!((figures.successes, figures.errors), (3000, 0));
    assert_close(figures.requests_per_second, 3000.0 / 0.571_756_916);
    assert_eq!(figures.ms_per_request, None);
    assert!(figures.percentiles_ms.is_empty());
}

#[test]
fn shortfall_and_occupancy_distinguish_a_slow_target_from_an_idle_injector() {
    let slow = figures(&real!("rate-not-reached"), &[200]);
    // 90 of 400 requests.
    assert_close(slow.shortfall, 0.775);
    assert!(slow.occupancy.unwrap() > 0.99);

    let easy = figures(&real!("rate-reached"), &[200]);
    assert!(easy.shortfall.unwrap() < 0.001);
    assert!(easy.occupancy.unwrap() < 0.01);
}

#[rstest]
#[case::count(real!("interrupted-count"), Amount::Requests(100_000_000), true)]
#[case::duration(real!("interrupted-duration"), Amount::DurationSeconds(65.0), true)]
#[case::whole_duration(real!("connection-refused"), Amount::DurationSeconds(0.5), false)]
#[case::whole_count(real!("one-in-five-fails"), Amount::Requests(4000), false)]
#[case::whole_at_a_rate(real!("rate-reached"), Amount::DurationSeconds(2.0), false)]
#[case::whole_below_its_rate(real!("rate-not-reached"), Amount::DurationSeconds(2.0), false)]
fn an_interrupted_run_is_detected(
    #[case] result: FortioResult,
    #[case] requested: Amount,
    #[case] interrupted: bool,
) {
    assert_eq!(result.requested, requested);
    assert_eq!(result.is_interrupted(), interrupted);
}

#[rstest]
#[case("1h2m3.5s", 3723.5)]
#[case("500ms", 0.5)]
#[case("1m0s", 60.0)]
#[case("250µs", 0.000_25)]
fn durations_are_read_as_go_writes_them(#[case] text: &str, #[case] seconds: f64) {
    let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
    document["Exactly"] = json!(0);
    document["RequestedDuration"] = json!(text);
    let result = parse(&document.to_string()).unwrap();
    assert_eq!(result.requested, Amount::DurationSeconds(seconds));
}

#[test]
fn absent_percentiles_and_null_data_are_accepted() {
    let json = damaged("/DurationHistogram/Percentiles", None);
    assert!(
        figures(&parse(&json).unwrap(), &[200])
            .percentiles_ms
            .is_empty()
    );
    assert_eq!(parse(SAMPLE).unwrap().error_latency.buckets, []);
}

#[test]
fn a_start_with_an_offset_from_utc_is_the_same_moment() {
    let json = damaged(
        "/StartTime",
        Some(json!("2026-11-21T05:01:35.307730153+01:00")),
    );
    assert_eq!(
        parse(&json).unwrap().start_unix_seconds.to_bits(),
        parse(SAMPLE).unwrap().start_unix_seconds.to_bits()
    );
}

#[rstest]
#[case::start_time("/StartTime")]
#[case::duration("/ActualDuration")]
#[case::threads("/NumThreads")]
#[case::rate("/ActualQPS")]
#[case::latencies("/DurationHistogram")]
#[case::sum("/DurationHistogram/Sum")]
#[case::errors("/ErrorsDurationHistogram")]
#[case::codes("/RetCodes")]
fn a_missing_field_is_refused(#[case] pointer: &str) {
    assert!(parse(&damaged(pointer, None)).is_err());
}

#[rstest]
#[case("/ActualDuration", json!(-1))]
#[case("/ActualDuration", json!(0))]
#[case("/ActualQPS", json!(-1.0))]
#[case("/RequestedQPS", json!("NaN"))]
#[case("/RequestedQPS", json!("0"))]
#[case("/StartTime", json!("yesterday"))]
#[case("/NumThreads", json!(0))]
#[case("/DurationHistogram/Sum", json!(-0.1))]
#[case::milliseconds_would_overflow("/DurationHistogram/Sum", json!(1e308))]
#[case("/SocketCount", json!(u64::MAX))]
#[case("/DurationHistogram/Sum", json!(null))]
#[case("/DurationHistogram/Count", json!(-20000))]
#[case("/ErrorsDurationHistogram/Sum", json!(3.0))]
#[case("/RetCodes", json!({"ok": 20000}))]
fn an_impossible_value_is_refused(#[case] pointer: &str, #[case] value: Value) {
    let error = parse(&damaged(pointer, Some(value))).unwrap_err();
    assert!(
        matches!(error, FortioError::Value { .. } | FortioError::Json(_)),
        "{error}"
    );
}

#[rstest]
#[case::codes("/RetCodes", json!({"200": 19999}))]
#[case::count("/DurationHistogram/Count", json!(19999))]
#[case::failures("/RetCodes", json!({"200": 19999, "-1": 1}))]
#[case::buckets("/DurationHistogram/Data", json!(null))]
#[case::sum_beyond_any_count("/RetCodes", json!({"200": u64::MAX, "-1": 20001}))]
fn counts_that_do_not_add_up_are_refused(#[case] pointer: &str, #[case] value: Value) {
    let error = parse(&damaged(pointer, Some(value))).unwrap_err();
    assert!(
        matches!(error, FortioError::CountsDisagree { .. }),
        "{error}"
    );
}

#[test]
fn a_run_that_fortio_reports_as_failed_is_refused_with_its_message() {
    let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
    document["error"] = json!(true);
    document["message"] = json!("Aborted before even starting");
    let error = parse(&document.to_string()).unwrap_err();
    assert!(error.to_string().contains("Aborted before even starting"));
    for text in ["", "null", "[]", "{", "{\"NumThreads\": NaN}"] {
        assert!(matches!(parse(text), Err(FortioError::Json(_))), "{text}");
    }
}

fn settings() -> LoadSettings {
    LoadSettings {
        url: "http://server.ns.svc:8080/contacts/{uuid}".into(),
        connections: 4,
        amount: Amount::DurationSeconds(60.0),
        rate: None,
        catch_up: true,
        timeout_seconds: 3.0,
        method: "GET".into(),
        headers: vec![("Accept".into(), "text/vcard".into())],
        body: None,
        labels: "trial a".into(),
    }
}

#[test]
fn the_arguments_for_a_load_by_duration_at_the_greatest_rate() {
    let expected = "load -json - -loglevel critical -c 4 -httpbufferkb 4096 -t 60s -qps 0 -r 0.0001 \
        -p 50,75,90,99,99.9 -resolve-ip-type ip -timeout 3s -X GET -H Accept:text/vcard -labels trial␣a \
        -httpccch -allow-initial-errors -log-errors=false -no-reresolve http://server.ns.svc:8080/contacts/{uuid}";
    let arguments = argv(&settings(), "-", None);
    assert_eq!(arguments.join(" "), expected.replace('␣', " "));
    assert!(arguments.contains(&"trial a".to_owned()));
}

#[test]
fn the_name_of_the_target_is_resolved_once_and_not_for_each_connection() {
    for rate in [None, Some(50.0)] {
        let arguments = argv(&LoadSettings { rate, ..settings() }, "-", None);
        assert!(
            arguments.contains(&"-no-reresolve".to_owned()),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_fixed_rate_is_spread_over_the_connections_and_caught_up_unless_that_is_unwanted() {
    let of = |rate: Option<f64>, catch_up: bool| {
        let arguments = argv(
            &LoadSettings {
                rate,
                catch_up,
                ..settings()
            },
            "-",
            None,
        );
        ["-uniform", "-nocatchup"].map(|flag| arguments.contains(&flag.to_owned()))
    };
    assert_eq!(of(Some(50.0), true), [true, false]);
    assert_eq!(of(Some(50.0), false), [true, true]);
    // Without a rate no request is due.
    assert_eq!(of(None, false), [false, false]);
}

/// The result of a run at 5/s on 4 connections for 20 s. It sent `requests`, the last one `late` seconds late. Each answer
/// took `seconds`.
fn at_five_per_second(requests: u64, late: f64, seconds: f64) -> FortioResult {
    let mut result = real!("rate-reached");
    // 25 requests per connection.
    result.uniform = true;
    result.threads = 4;
    result.requested_rate = Some(5.15);
    result.requested = Amount::DurationSeconds(103.5 / 5.15);
    result.latency.count = requests;
    result.latency.sum_seconds = requests as f64 * seconds;
    result.latency.max_seconds = seconds;
    for percentile in &mut result.latency.percentiles {
        percentile.seconds = seconds;
    }
    result.duration_seconds = 20.0 + late + seconds;
    result.actual_rate = requests as f64 / result.duration_seconds;
    result
}

#[test]
fn a_slow_answer_to_the_last_request_is_not_a_missed_rate() {
    let shortfall = |requests, late, seconds| {
        let result = at_five_per_second(requests, late, seconds);
        figures(&result, &[200]).shortfall.unwrap()
    };
    for seconds in [0.000_1, 0.25, 0.75] {
        assert!(shortfall(100, 0.0, seconds) < 1e-9, "{seconds}");
    }
    assert!((shortfall(95, 0.0, 0.25) - 0.05).abs() < 1e-9);
    assert!((shortfall(100, 1.0, 0.25) - 1.0 / 21.0).abs() < 1e-9);
    // All requests of a given number are sent, so a missed rate is lateness.
    let mut counted = at_five_per_second(100, 5.0, 0.25);
    counted.requested = Amount::Requests(100);
    let missed = figures(&counted, &[200]).shortfall.unwrap();
    assert!((missed - 0.2).abs() < 1e-9, "{missed}");
    // One answer in the middle of the run took long.
    counted.latency.max_seconds = 5.0;
    assert_eq!(figures(&counted, &[200]).shortfall, Some(missed));
}

/// The value of one of Fortio's options.
fn option(arguments: &[String], name: &str) -> Option<f64> {
    let at = arguments.iter().position(|argument| argument == name)?;
    let text = arguments[at + 1].trim_end_matches('s');
    Some(text.parse().unwrap())
}

/// The schedule of Fortio's own code for these arguments: requests, and seconds from the first to the last of them.
fn as_fortio_schedules(arguments: &[String]) -> [f64; 2] {
    let option = |name: &str| option(arguments, name);
    let rate = option("-qps").unwrap();
    let calls = option("-n").unwrap_or_else(|| (rate * option("-t").unwrap()).floor());
    let connections = option("-c").unwrap();
    assert!(2.0 * connections <= calls, "Fortio uses fewer connections");
    let of_each = (calls / connections).floor();
    // Of the calls 0 to n − 1 of a connection, the last one is due n intervals after the first.
    let seconds = of_each / (rate / connections) + (connections - 1.0) / rate;
    [of_each * connections, seconds]
}

#[rstest]
#[case::whole_rounds(5.0, 4, Amount::DurationSeconds(20.0), 100)]
#[case::many_connections(20.0, 64, Amount::DurationSeconds(20.0), 448)]
#[case::one_connection(7.0, 1, Amount::DurationSeconds(20.0), 140)]
#[case::a_hundredth(0.39, 4, Amount::DurationSeconds(60.0), 24)]
#[case::fewer_requests_than_two_per_connection(2.0, 16, Amount::DurationSeconds(3.5), 9)]
#[case::less_than_one_request(0.05, 16, Amount::DurationSeconds(1.4), 2)]
#[case::a_number_of_requests(50.0, 64, Amount::Requests(6400), 6400)]
fn a_fixed_rate_is_sent_and_not_a_lower_one(
    #[case] rate: f64,
    #[case] connections: u32,
    #[case] amount: Amount,
    #[case] requests: u64,
) {
    let given = LoadSettings {
        rate: Some(rate),
        connections,
        amount,
        ..settings()
    };
    let arguments = argv(&given, "-", None);
    let [sent, seconds] = as_fortio_schedules(&arguments);
    assert!((sent - requests as f64).abs() < 0.5, "{sent}");
    let sent_rate = sent / seconds;
    assert!((sent_rate / rate - 1.0).abs() < 1e-9, "{sent_rate}");
    let schedule = given.schedule().unwrap();
    assert_eq!(schedule.requests, requests);
    assert!((schedule.seconds - seconds).abs() < 1e-9 * seconds);
    if let Amount::DurationSeconds(asked) = amount {
        assert!(seconds > asked - 1e-9, "{seconds}");
        // A late connection stops after this time, and the window must not be shorter than asked for.
        assert!(option(&arguments, "-t").unwrap() > asked, "{seconds}");
    }
}

#[test]
fn at_a_rate_each_connection_sends_as_many_requests_as_the_others() {
    let given = |rate, requests| LoadSettings {
        rate,
        connections: 64,
        amount: Amount::Requests(requests),
        ..settings()
    };
    let refused = given(Some(100.0), 1000).check().unwrap_err().to_string();
    assert_eq!(
        refused,
        "at a rate, requests must be a multiple of the connections, not 1000 on 64 connections"
    );
    assert_eq!(given(Some(100.0), 6400).check(), Ok(()));
    assert_eq!(given(None, 1000).check(), Ok(()));
}

#[test]
fn without_catch_up_there_is_no_occupancy() {
    let mut result = real!("rate-not-reached");
    assert!(figures(&result, &[200]).occupancy.is_some());
    result.skips_late = true;
    assert_eq!(figures(&result, &[200]).occupancy, None);
}

#[test]
fn the_arguments_for_a_count_at_a_rate_with_a_body() {
    let settings = LoadSettings {
        amount: Amount::Requests(500),
        rate: Some(12.5),
        timeout_seconds: 0.25,
        method: "PUT".into(),
        headers: Vec::new(),
        body: Some(Body::Text("BEGIN:VCARD".into())),
        ..settings()
    };
    let line = argv(&settings, "/tmp/out.json", Some("/tmp/log")).join(" ");
    for part in [
        "-json /tmp/out.json",
        "-n 500",
        "-qps 12.5",
        "-timeout 0.25s",
        "-X PUT",
        "-payload BEGIN:VCARD",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains("-t "));
    let from_file = LoadSettings {
        body: Some(Body::File("/body".into())),
        ..settings
    };
    assert!(
        argv(&from_file, "-", None)
            .join(" ")
            .contains("-payload-file /body")
    );
}

#[rstest]
#[case(LoadSettings { url: "ftp://host/".into(), ..settings() }, FortioSettingsError::Url("ftp://host/".into()))]
#[case(LoadSettings { url: "http:///path".into(), ..settings() }, FortioSettingsError::Url("http:///path".into()))]
#[case(LoadSettings { connections: 0, ..settings() }, FortioSettingsError::Connections)]
#[case(LoadSettings { amount: Amount::Requests(0), ..settings() }, FortioSettingsError::Requests)]
#[case(
    LoadSettings { amount: Amount::DurationSeconds(0.0), ..settings() },
    FortioSettingsError::Duration(0.0)
)]
#[case(LoadSettings { rate: Some(0.0), ..settings() }, FortioSettingsError::Rate(0.0))]
#[case(LoadSettings { timeout_seconds: 0.0, ..settings() }, FortioSettingsError::Timeout(0.0))]
#[case(LoadSettings { method: "head".into(), ..settings() }, FortioSettingsError::Head)]
#[case(LoadSettings { method: "GET /".into(), ..settings() }, FortioSettingsError::Method("GET /".into()))]
#[case(
    LoadSettings { headers: vec![("a".into(), "b\r\nc: d".into())], ..settings() },
    FortioSettingsError::Header("a:b\r\nc: d".into())
)]
fn settings_that_fortio_cannot_run_are_refused(
    #[case] settings: LoadSettings,
    #[case] error: FortioSettingsError,
) {
    assert_eq!(settings.check(), Err(error));
}

#[test]
fn settings_that_fortio_can_run_are_accepted() {
    assert_eq!(settings().check(), Ok(()));
}

#[test]
fn a_result_survives_the_ledger_unchanged() {
    let result = real!("one-in-five-fails");
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<FortioResult>(&text).unwrap(), result);
}

/// Fortio's percentiles of its own histograms, from which Fortio first removes the shortest latency.
#[test]
fn the_percentiles_of_one_run_equal_fortios() {
    for result in [parse(SAMPLE).unwrap(), real!("rate-reached")] {
        let latency = &result.latency;
        let percentages: Vec<f64> = latency.percentiles.iter().map(|p| p.percentile).collect();
        let ours = merged_percentiles(&[&latency.buckets], &percentages).unwrap();
        assert!(!ours.is_empty());
        for (ours, fortio) in ours.iter().zip(&latency.percentiles) {
            let shortest = latency.max_seconds / latency.count as f64;
            assert!(
                (ours - fortio.seconds).abs() <= shortest,
                "{ours} is not {fortio:?}"
            );
        }
    }
}

#[test]
fn requests_are_merged_and_not_percentiles() {
    let bucket = |start_seconds, end_seconds, count| Bucket {
        start_seconds,
        end_seconds,
        count,
    };
    let fast = [bucket(0.0, 1.0, 990), bucket(1.0, 2.0, 10)];
    let slow = [bucket(10.0, 20.0, 100)];
    let of = |percentages: &[f64]| merged_percentiles(&[&fast, &slow], percentages).unwrap();
    // 1,100 requests: 990 below 1 s, 10 more below 2 s, and 100 evenly from 10 to 20 s.
    let found = of(&[0.0, 45.0, 90.0, 95.0, 99.9, 100.0]);
    let expected = [0.0, 0.5, 1.0, 14.5, 19.89, 20.0];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }
    // Overlapping buckets of different widths add up.
    let wide = [bucket(0.0, 4.0, 100)];
    let narrow = [bucket(1.0, 2.0, 100)];
    let median = merged_percentiles(&[&wide, &narrow], &[50.0]).unwrap()[0];
    assert!((median - 1.6).abs() < 1e-9, "{median}");
    // Next to equal latencies there is no latency in between.
    let same = [bucket(3.0, 3.0, 5)];
    let near = [bucket(1.0, 2.0, 10)];
    let found = merged_percentiles(&[&near, &same], &[60.0, 80.0]).unwrap();
    assert!(
        (found[0] - 1.9).abs() < 1e-9 && (found[1] - 3.0).abs() < 1e-9,
        "{found:?}"
    );
    // Equal latencies.
    assert_eq!(
        merged_percentiles(&[&[bucket(3.0, 3.0, 5)]], &[50.0]),
        Some(vec![3.0])
    );
}

#[test]
fn missing_latencies_have_no_percentiles() {
    let bucket = |start_seconds, end_seconds, count| Bucket {
        start_seconds,
        end_seconds,
        count,
    };
    let whole = [bucket(0.0, 1.0, 10)];
    assert_eq!(merged_percentiles(&[], &[50.0]), None);
    assert_eq!(merged_percentiles(&[&whole, &[]], &[50.0]), None);
    assert_eq!(merged_percentiles(&[&[bucket(0.0, 1.0, 0)]], &[50.0]), None);
    assert_eq!(merged_percentiles(&[&whole], &[101.0]), None);
    assert_eq!(merged_percentiles(&[&whole], &[f64::NAN]), None);
    assert_eq!(
        merged_percentiles(&[&[bucket(2.0, 1.0, 10)]], &[50.0]),
        None
    );
    assert_eq!(
        merged_percentiles(&[&[bucket(0.0, f64::INFINITY, 10)]], &[50.0]),
        None
    );
}
