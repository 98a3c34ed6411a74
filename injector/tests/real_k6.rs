//! The injector with the real k6 and its output `cycles`, against a target in the test.
//!
//! The tests need the environment variable FRUGALITY_K6: the path of the k6 that `injector/k6` builds.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

mod harness;
mod target;

use std::{
    thread,
    time::{Duration, Instant},
};

use frugality_measure::{k6::K6Result, load::LoadResult, report::InjectionReport};
use harness::Injector;
use target::{Answer, Target, refusing_url};

const OK: Answer = Answer::Status(200);

/// A cycle of two requests and a check.
const SCRIPT: &str = "import http from 'k6/http';
import { check } from 'k6';
export default function () {
  http.get(`${__ENV.URL}/one`);
  const answer = http.get(`${__ENV.URL}/two`);
  check(answer, { 'is 200': (answer) => answer.status === 200 });
}";

fn start(name: &str, url: &str, script: &str, arguments: &str) -> Injector {
    let k6 = std::env::var("FRUGALITY_K6").expect(
        "FRUGALITY_K6 must be the path of the k6 of injector/k6: `make test` sets it; by hand, \
         bash -c '. hack/common.sh; go_program k6 build/k6', then FRUGALITY_K6=$PWD/build/k6",
    );
    let own = ["--k6", &k6, "--script", script].map(String::from);
    let arguments = arguments.split_whitespace().map(String::from);
    Injector::start(name, url, own.into_iter().chain(arguments))
}

fn k6(report: &InjectionReport) -> &K6Result {
    match &report.measured {
        LoadResult::K6(result) => result,
        other => panic!("not the result of a script: {other:?}"),
    }
}

#[test]
fn one_load_without_a_gap_counts_the_same_requests_as_the_target() {
    let target = Target::start(Duration::from_millis(5), OK);
    let began = Instant::now();
    let ended = start(
        "k6-cycles",
        &target.url(""),
        SCRIPT,
        "--connections 4 --warm-up-seconds 1 --duration-seconds 2 --tail-seconds 1 --course",
    )
    .end();
    let whole = began.elapsed().as_secs_f64();
    let report = ended.report(0);
    let result = k6(&report);
    assert_eq!(ended.stdout().lines().count(), 1);
    assert_eq!(result.version, "v1.8.1");
    assert!((result.duration_seconds - 2.0).abs() < 1e-6);
    let (warm_up, tail) = (report.warm_up.unwrap(), report.tail.unwrap());
    assert!((warm_up.end_unix_seconds() - result.start_unix_seconds).abs() < 1e-4);
    assert!((tail.start_unix_seconds - report.measured.span().end_unix_seconds()).abs() < 1e-4);
    assert!((1.0..2.5).contains(&tail.duration_seconds), "{tail:?}");
    assert!((5.0..15.0).contains(&whole), "{whole}");

    let course = report.course.as_ref().unwrap();
    let counted: u64 = course.requests.iter().sum();
    assert_eq!(
        (course.requests.len(), counted),
        (16, report.measured.span().requests)
    );
    let of_slices = course.requests.iter().zip(&course.mean_seconds);
    let sum: f64 = of_slices.map(|(count, mean)| *count as f64 * mean).sum();
    assert!(
        (sum / result.cycles.sum_seconds - 1.0).abs() < 1e-5,
        "{course:?}"
    );

    // Each cycle waits for two answers of 5 ms. At an end of the window each agent has at most one open cycle.
    let figures = report.measured.figures(&[]);
    assert_eq!((figures.errors, result.dropped_cycles), (0, 0));
    let milliseconds = figures.ms_per_request.unwrap();
    assert!((10.0..40.0).contains(&milliseconds), "{milliseconds}");
    let expected = 4.0 * 2000.0 / milliseconds;
    let cycles = figures.successes as f64;
    assert!(
        cycles <= 1.05 * expected + 4.0 && cycles > 0.5 * expected,
        "{cycles} of {expected}"
    );
    let per_cycle = figures.requests_per_cycle.unwrap();
    assert!((per_cycle - 2.0).abs() < 0.1, "{per_cycle}");
    assert!(
        (0.5..1.0).contains(&figures.occupancy.unwrap()),
        "{figures:?}"
    );
    let [median, tail_ms] = ["p50", "p99.9"].map(|name| figures.percentiles_ms[name]);
    assert!(median >= 10.0 && tail_ms >= median, "{figures:?}");
    let check = result.checks["is 200"];
    assert_eq!(check.failed, 0);
    assert!(check.passed.abs_diff(figures.successes) <= 4);

    // The target received the requests of all cycles, plus the requests of cycles that the end of the load cut off.
    let cycles = warm_up.requests + figures.requests + tail.requests;
    let seen = target.requests();
    assert!(
        (2 * cycles..=2 * cycles + 8).contains(&seen),
        "{cycles} cycles, {seen} requests"
    );
    assert!(result.cpu_seconds > 0.0 && result.cpus > 0);
}

#[test]
fn at_a_rate_cycles_begin_even_if_others_have_not_ended() {
    let target = Target::start(Duration::from_millis(100), OK);
    let script = "import http from 'k6/http'; export default () => http.get(__ENV.URL);";
    let arguments = "--rate 50 --warm-up-seconds 1 --ramp-up-seconds 1 --duration-seconds 2";
    let of = |name: &str, agents: &str| {
        let arguments = format!("{arguments} --connections {agents}");
        let ended = start(name, &target.url("/"), script, &arguments).end();
        ended.report(0)
    };
    // Fifty cycles per second of 100 ms each are five at a time.
    let enough = of("k6-rate", "200");
    let figures = enough.measured.figures(&[]);
    assert_eq!(k6(&enough).dropped_cycles, 0);
    assert!(figures.shortfall.unwrap() < 0.2, "{figures:?}");
    let milliseconds = figures.ms_per_request.unwrap();
    assert!((100.0..190.0).contains(&milliseconds), "{milliseconds}");

    let too_few = of("k6-rate-missed", "2");
    let figures = too_few.measured.figures(&[]);
    assert!(
        (0.5..0.95).contains(&figures.shortfall.unwrap()),
        "{figures:?}"
    );
    // Each agent waits for the next cycle that is due.
    assert!(figures.occupancy.unwrap() > 0.5, "{figures:?}");
    assert_eq!(
        figures.ms_per_request, None,
        "no latency without the dropped cycles"
    );
    let dropped = k6(&too_few).dropped_cycles;
    let all = dropped + figures.requests;
    assert!(
        (70..=105).contains(&all),
        "{all} were due, {dropped} dropped"
    );
}

#[test]
fn a_rate_may_have_decimals() {
    let target = Target::start(Duration::ZERO, OK);
    let script = "import http from 'k6/http'; export default () => http.get(__ENV.URL);";
    for (name, rate, due) in [("k6-7.5", "7.5", 30), ("k6-0.75", "0.75", 3)] {
        let arguments = format!("--rate {rate} --connections 4 --duration-seconds 4");
        let report = start(name, &target.url("/"), script, &arguments)
            .end()
            .report(0);
        let figures = report.measured.figures(&[]);
        assert!(
            figures.requests.abs_diff(due) <= 1,
            "{} cycles at {rate} per second",
            figures.requests
        );
        assert!(figures.shortfall.is_some(), "{figures:?}");
    }
}

#[test]
fn an_open_load_sends_each_request_when_due_with_method_header_and_body() {
    let target = Target::start(Duration::from_millis(100), OK);
    let k6_program = std::env::var("FRUGALITY_K6").unwrap();
    let arguments = [
        "--k6",
        &k6_program,
        "--open",
        "--rate=50",
        "--connections=50",
        "--warm-up-seconds=1",
        "--duration-seconds=2",
        "--method=PUT",
        "--header=X-Trial: $(one)",
        "--body={uuid} 'quoted' ${x}",
        "--expected-status=200",
    ];
    let ended = Injector::start(
        "k6-open",
        &target.url("/contacts/{uuid}?a=b"),
        arguments.into_iter().map(String::from),
    )
    .end();
    let report = ended.report(0);
    let figures = report.measured.figures(&[]);
    assert_eq!((figures.errors, k6(&report).dropped_cycles), (0, 0));
    assert!(figures.shortfall.unwrap() < 0.2, "{figures:?}");
    let milliseconds = figures.ms_per_request.unwrap();
    assert!((100.0..190.0).contains(&milliseconds), "{milliseconds}");
    assert_eq!(figures.requests_per_cycle, Some(1.0));
    assert!(target.distinct_paths() > 50, "each has its own UUID");
    let request = target.last_request();
    assert!(request.starts_with("PUT /contacts/"), "{request}");
    assert!(request.contains("?a=b HTTP/1.1\r\n"), "{request}");
    assert!(
        request.to_lowercase().contains("x-trial: $(one)\r\n"),
        "{request}"
    );
    assert!(!request.contains("{uuid}"), "{request}");
    assert!(request.ends_with(" 'quoted' ${x}"), "{request}");
}

#[test]
fn an_answer_that_is_not_expected_makes_an_open_request_fail() {
    let target = Target::start(Duration::ZERO, Answer::Status(404));
    let k6_program = std::env::var("FRUGALITY_K6").unwrap();
    let of = |name: &str, expected: &str| {
        let own = ["--k6", &k6_program, "--open", "--expected-status", expected];
        let load = "--rate 50 --connections 10 --duration-seconds 1".split_whitespace();
        let arguments = own.into_iter().chain(load).map(String::from);
        let report = Injector::start(name, &target.url("/"), arguments)
            .end()
            .report(0);
        report.measured.figures(&[]).error_rate
    };
    assert_eq!(of("k6-open-404", "200"), Some(1.0));
    assert_eq!(of("k6-open-expected", "404"), Some(0.0));
}

#[test]
fn a_failure_within_a_cycle_makes_the_cycle_fail() {
    let target = Target::start(Duration::ZERO, OK);
    let script = "import http from 'k6/http';
import { check, fail } from 'k6';
let cycle = 0;
export default async function () {
  cycle += 1;
  http.get(__ENV.URL);
  if (cycle % 5 === 0) check(cycle, { 'is no fifth': () => false });
  if (cycle % 5 === 1) fail('the first of five');
  if (cycle % 5 === 2) await Promise.reject(new Error('the second of five'));
}";
    let arguments = "--connections 2 --duration-seconds 2 --warm-up-seconds 1";
    let ended = start("k6-failing", &target.url("/"), script, arguments).end();
    let report = ended.report(0);
    let figures = report.measured.figures(&[]);
    let share = figures.error_rate.unwrap();
    assert!((share - 0.6).abs() < 0.01, "{share}");
    let failures = &k6(&report).first_failures;
    assert_eq!(failures, &["the first of five", "the second of five"]);

    let refused = start("k6-refused", &refusing_url(), SCRIPT, arguments).end();
    let report = refused.report(0);
    let figures = report.measured.figures(&[]);
    assert_eq!(figures.successes, 0);
    assert_eq!(figures.ms_per_request, None);
    assert!(k6(&report).requests.codes["0"] > 0);
}

#[test]
fn a_cycle_that_takes_too_long_has_failed() {
    let target = Target::start(Duration::from_millis(60), OK);
    let arguments = "--connections 1 --duration-seconds 1 --timeout-seconds 0.1";
    let ended = start("k6-late", &target.url("/"), SCRIPT, arguments).end();
    let figures = ended.report(0).measured.figures(&[]);
    assert_eq!(figures.successes, 0);
    assert!(figures.errors >= 2, "{figures:?}");
}

#[test]
fn a_cycle_that_never_ends_has_failed_and_its_agent_has_waited() {
    let target = Target::start(Duration::ZERO, Answer::Never);
    let arguments =
        "--connections 3 --warm-up-seconds 1 --duration-seconds 2 --timeout-seconds 0.5";
    let ended = start("k6-never", &target.url(""), SCRIPT, arguments).end();
    let report = ended.report(0);
    let figures = report.measured.figures(&[]);
    assert_eq!((figures.successes, figures.errors), (0, 3));
    assert_eq!(figures.ms_per_request, None);
    let occupancy = figures.occupancy.unwrap();
    assert!((0.99..1.01).contains(&occupancy), "{occupancy}");
}

#[test]
fn setup_is_no_part_of_the_load() {
    let target = Target::start(Duration::ZERO, OK);
    let script = "import http from 'k6/http';
export function setup() {
  for (let request = 0; request < 50; request++) http.get(`${__ENV.URL}/setup`);
  return { path: '/made-by-setup' };
}
export default (data) => http.get(__ENV.URL + data.path);";
    let arguments = "--connections 20 --rate 10 --duration-seconds 1";
    let ended = start("k6-setup", &target.url(""), script, arguments).end();
    let report = ended.report(0);
    let requests = k6(&report).requests.count;
    assert!((5..=11).contains(&requests), "{requests}");
}

#[test]
fn a_script_that_cannot_run_is_reported_with_the_reason() {
    let target = Target::start(Duration::ZERO, OK);
    for (name, script, words) in [
        (
            "k6-syntax",
            "export default function (",
            "Unexpected end of input",
        ),
        (
            "k6-no-cycle",
            "export const options = {}; // export default",
            "export default function () { … }",
        ),
        (
            "k6-options",
            "export const options = { vus: 3 }; export default () => {};",
            "options set vus, which is the benchmark's to say (spec.load): leave it out",
        ),
        (
            "k6-teardown",
            "export function teardown() {} export default () => {};",
            "exports teardown, which would not run: leave it out",
        ),
        (
            "k6-setup-throws",
            "export function setup() { throw new Error('no data'); } export default () => {};",
            "no data",
        ),
    ] {
        let ended = start(
            name,
            &target.url("/"),
            script,
            "--connections 1 --duration-seconds 1",
        )
        .end();
        let (message, exit_code, _) = ended.failure(1);
        assert!(message.contains(words), "{name}: {message}");
        assert!(message.contains("the script could not be run"), "{message}");
        assert_eq!(exit_code, Some(107), "{name}");
    }
}

#[test]
fn a_load_that_ends_early_keeps_its_results_and_reports_the_interruption() {
    let target = Target::start(Duration::from_millis(5), OK);
    let arguments = "--connections 2 --duration-seconds 60";
    let injector = start("k6-ended", &target.url(""), SCRIPT, arguments);
    while target.requests() < 100 {
        thread::sleep(Duration::from_millis(20));
    }
    injector.terminate();
    let report = injector.end().report(3);
    assert!(report.measured.is_interrupted());
    assert!(report.measured.figures(&[]).successes > 0);
    let interrupted = report.interrupted.unwrap();
    assert!(interrupted.contains("SIGTERM"), "{interrupted}");

    let script = "import exec from 'k6/execution'; import http from 'k6/http';
export default () => { http.get(__ENV.URL); if (exec.vu.iterationInScenario > 5) exec.test.abort('enough'); };";
    let ended = start("k6-aborts", &target.url("/"), script, arguments).end();
    let interrupted = ended.report(3).interrupted.unwrap();
    assert!(interrupted.contains("enough"), "{interrupted}");
}

#[test]
fn invalid_settings_are_refused_before_any_load() {
    let target = Target::start(Duration::ZERO, OK);
    for (name, arguments, words) in [
        (
            "k6-no-agent",
            "--connections 0 --duration-seconds 1",
            "at least 1 agent",
        ),
        (
            "k6-rate-of-thousandths",
            "--connections 1 --duration-seconds 1 --rate 0.505",
            "at most two decimals",
        ),
        (
            "k6-long-ramp",
            "--connections 1 --duration-seconds 1 --warm-up-seconds 1 --ramp-up-seconds 2",
            "must not be longer than the warm-up",
        ),
    ] {
        let ended = start(name, &target.url("/"), SCRIPT, arguments).end();
        let (message, _, _) = ended.failure(2);
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(target.requests(), 0);
}

/// k6 ends such a cycle early and counts it as a whole one.
#[test]
fn a_script_that_loses_an_error_is_refused() {
    let target = Target::start(Duration::from_millis(1), OK);
    for (name, cycle) in [
        (
            "k6-promise",
            "async function cycle() { http.get(__ENV.URL); throw new Error('lost'); } cycle();",
        ),
        (
            "k6-then",
            "http.asyncRequest('GET', __ENV.URL).then(() => { throw new Error('lost'); });",
        ),
        (
            "k6-timer",
            "http.get(__ENV.URL); setTimeout(() => { throw new Error('lost'); }, 1);",
        ),
    ] {
        let script =
            format!("import http from 'k6/http'; export default function () {{ {cycle} }}");
        let arguments = "--connections 2 --duration-seconds 5";
        let ended = start(name, &target.url("/"), &script, arguments).end();
        let (error, exit_code, _) = ended.failure(1);
        assert!(
            error.contains("does not await or return a promise"),
            "{name}: {error}"
        );
        assert!(error.contains("lost"), "{name}: {error}");
        assert_eq!(exit_code, Some(107), "{name}");
    }
}

#[test]
fn requests_at_the_same_time_wait_once() {
    let target = Target::start(Duration::from_millis(10), OK);
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
export default () => { http.batch([1, 2, 3, 4].map(() => ['GET', __ENV.URL])); sleep(0.03); };";
    let arguments = "--connections 2 --duration-seconds 2";
    let report = start("k6-batch", &target.url("/"), script, arguments)
        .end()
        .report(0);
    let figures = report.measured.figures(&[]);
    assert!(
        (3.5..4.5).contains(&figures.requests_per_cycle.unwrap()),
        "{figures:?}"
    );
    // 10 ms of 40 ms, or a little more.
    assert!(
        (0.15..0.6).contains(&figures.occupancy.unwrap()),
        "{figures:?}"
    );
}

#[test]
fn a_script_that_adds_to_a_metric_of_k6_is_refused() {
    let target = Target::start(Duration::from_millis(1), OK);
    let script = "import http from 'k6/http';
import { Trend } from 'k6/metrics';
const mine = new Trend('iteration_' + 'duration', true);
export default function () { http.get(__ENV.URL); for (let i = 0; i < 9; i += 1) mine.add(0.001); }";
    let (error, exit_code, _) = start(
        "k6-forged",
        &target.url("/"),
        script,
        "--connections 2 --duration-seconds 5",
    )
    .end()
    .failure(1);
    let expected = "the script adds to the metric iteration_duration, which is k6's own";
    assert!(error.contains(expected), "{error}");
    assert_eq!(exit_code, Some(107));
}

#[test]
fn a_cycle_hidden_by_tags_is_counted() {
    let target = Target::start(Duration::from_millis(1), OK);
    let script = "import http from 'k6/http';
import exec from 'k6/execution';
export default function () { exec.vu.tags.scenario = 'other'; http.get(__ENV.URL); }";
    let report = start(
        "k6-hidden",
        &target.url("/"),
        script,
        "--connections 2 --warm-up-seconds 1 --duration-seconds 1 --tail-seconds 1",
    )
    .end()
    .report(0);
    let figures = report.measured.figures(&[]);
    let beside = report.warm_up.unwrap().requests + report.tail.unwrap().requests;
    let counted = figures.requests + beside;
    assert!(counted.abs_diff(target.requests()) <= 4, "{counted}");
    let per_cycle = figures.requests_per_cycle.unwrap();
    assert!((per_cycle - 1.0).abs() < 0.1, "{per_cycle}");
}

#[test]
fn nothing_is_imported_from_the_network() {
    let script = "import 'https://127.0.0.1:1/a.js'; export default function () {}";
    let (error, exit_code, _) = start(
        "k6-import",
        "http://127.0.0.1:1/",
        script,
        "--connections 1 --duration-seconds 1",
    )
    .end()
    .failure(1);
    assert!(error.contains("import from the network"), "{error}");
    assert_eq!(exit_code, Some(107));
}

#[test]
fn names_of_checks_and_thrown_texts_are_shortened() {
    let target = Target::start(Duration::from_millis(1), OK);
    let script = "import http from 'k6/http';
import { check } from 'k6';
export default function () {
  const long = 'x'.repeat(30000);
  check(http.get(__ENV.URL), { [long]: () => true });
  throw new Error(long);
}";
    let report = start(
        "k6-long",
        &target.url("/"),
        script,
        "--connections 1 --duration-seconds 1",
    )
    .end()
    .report(0);
    let result = k6(&report);
    assert!(
        result.checks.keys().all(|name| name.chars().count() == 128),
        "{result:?}"
    );
    assert!(
        result
            .first_failures
            .iter()
            .all(|text| text.chars().count() <= 200)
    );
}
