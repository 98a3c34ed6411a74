//! The injector with the real Fortio, against a target in the test that counts the requests it receives.
//!
//! The tests need the environment variable FRUGALITY_FORTIO: the path of the program of `injector/fortio`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

mod harness;
mod target;

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use frugality_measure::fortio::{FortioResult, figures, parse};
use harness::{Ended, Injector};
use target::{Answer, Target};

const OK: Answer = Answer::Status(200);

fn fortio() -> PathBuf {
    let path = std::env::var_os("FRUGALITY_FORTIO").expect(
        "FRUGALITY_FORTIO must be the path of the program of injector/fortio: `make test` sets it; by hand, \
         `cd injector/fortio && go build -o /tmp/fortio .`, then FRUGALITY_FORTIO=/tmp/fortio",
    );
    PathBuf::from(path)
}

/// `name` must be unique among the tests. The function splits `arguments` at spaces.
fn start(name: &str, url: &str, arguments: &str) -> Injector {
    start_with(&fortio(), name, url, arguments)
}

fn start_with(fortio: &Path, name: &str, url: &str, arguments: &str) -> Injector {
    let program = ["--fortio".to_owned(), fortio.to_string_lossy().into_owned()];
    let arguments = arguments.split_whitespace().map(String::from);
    Injector::start(name, url, program.into_iter().chain(arguments))
}

/// Fortio's own JSON, the only line of standard output.
fn printed(ended: &Ended) -> FortioResult {
    let text = ended.stdout();
    assert_eq!(text.lines().count(), 1);
    parse(&text).unwrap()
}

fn run(name: &str, url: &str, arguments: &str) -> Ended {
    start(name, url, arguments).end()
}

#[test]
fn three_consecutive_runs_count_the_same_requests_as_the_target() {
    let target = Target::start(Duration::from_millis(5), OK);
    let ended = run(
        "three-runs",
        &target.url("/contacts/{uuid}"),
        "--connections 4 --warm-up-seconds 1 --duration-seconds 2 --tail-seconds 1 --labels trial",
    );
    let report = ended.report(0);
    let measured = report.measured.fortio().unwrap();
    assert_eq!(measured, &printed(&ended));
    assert!(!report.histogram_dropped);
    assert_eq!(report.interrupted, None);
    assert_eq!(measured.labels, "trial");
    assert_eq!((measured.threads, measured.sockets), (4, 4));

    // With a duration, Fortio sends one uncounted request per connection at the start of each of the three runs.
    let (warm_up, tail) = (report.warm_up.unwrap(), report.tail.unwrap());
    let counted = warm_up.requests + measured.latency.count + tail.requests;
    assert_eq!(target.requests(), counted + 3 * 4);
    // Fortio replaced {uuid} with a new UUID in each request.
    assert_eq!(target.distinct_paths(), target.requests());

    let figures = figures(measured, &[200]);
    assert_eq!(figures.errors, 0);
    // The target waits 5 ms, so 4 connections give at most 800 requests/s.
    let (rate, latency) = (
        figures.requests_per_second.unwrap(),
        figures.ms_per_request.unwrap(),
    );
    assert!(rate > 100.0 && rate <= 800.0, "{rate}");
    assert!((5.0..35.0).contains(&latency), "{latency}");
    assert!((2.0..3.9).contains(&measured.duration_seconds));

    let asked = (report.asked_warm_up_seconds, report.asked_tail_seconds);
    assert_eq!(asked, (1.0, 1.0));
    // The kernel under the test reports CPU use.
    let cpu = report.cpu.unwrap();
    let (busy, busiest) = (cpu.busy_share.unwrap(), cpu.busiest_share.unwrap());
    assert!(0.0 < busy && busy <= busiest && busiest <= 1.0, "{cpu:?}");
    assert!(cpu.cpus >= 1, "{cpu:?}");
    assert!(warm_up.end_unix_seconds() <= measured.start_unix_seconds);
    assert!(measured.end_unix_seconds() <= tail.start_unix_seconds);
    // The reported gap is the time between the end of one run and the start of the next.
    for (gap, from, to) in [
        (
            report.gap_before_measured_seconds,
            warm_up.end_unix_seconds(),
            measured.start_unix_seconds,
        ),
        (
            report.gap_after_measured_seconds,
            measured.end_unix_seconds(),
            tail.start_unix_seconds,
        ),
    ] {
        assert!((gap.unwrap() - (to - from)).abs() < 1e-4, "{gap:?}");
    }
}

#[test]
fn a_target_that_becomes_slower_has_a_drift() {
    let answer = Answer::Slower {
        milliseconds_per_second: 20.0,
    };
    let target = Target::start(Duration::from_millis(5), answer);
    let arguments = "--connections 4 --duration-seconds 9 --warm-up-seconds 1 --course";
    let report = run("slower", &target.url("/"), arguments).report(0);
    let course = report.course.unwrap();
    let counted: u64 = course.requests.iter().sum();
    assert_eq!(counted, report.measured.span().requests);
    let slices = report.slices.unwrap();
    assert_eq!(slices.successes.len(), 32);
    assert_eq!(slices.successes.iter().sum::<u64>(), counted);
    assert!((slices.slice_seconds - 9.0 / 32.0).abs() < 1e-9);
    let sums = course.requests.iter().zip(&course.mean_seconds);
    let sum: f64 = sums.map(|(count, mean)| *count as f64 * mean).sum();
    let of_all = report.measured.latency().sum_seconds;
    assert!((sum / of_all - 1.0).abs() < 1e-3, "{sum} of {of_all}");
    assert!((8.0..9.5).contains(&course.whole_seconds), "{course:?}");
    let drift = course.drift_seconds_per_second().unwrap();
    assert!((0.005..0.05).contains(&drift), "{drift}: {course:?}");
}

#[test]
fn the_course_has_successes_only_and_is_absent_unless_requested_and_the_slices_have_errors() {
    let target = Target::start(Duration::ZERO, Answer::Status(500));
    let arguments = "--connections 2 --duration-seconds 1";
    let report = run(
        "course-500",
        &target.url("/"),
        &format!("{arguments} --course"),
    )
    .report(0);
    assert_eq!(report.course, None);
    let slices = report.slices.unwrap();
    let errors: u64 = slices.errors.iter().sum();
    assert_eq!(errors, report.measured.span().errors);
    assert_eq!(slices.mean_nanoseconds, [None; 32]);
    let target = Target::start(Duration::ZERO, OK);
    let report = run("no-course", &target.url("/"), arguments).report(0);
    assert_eq!(report.course, None);
}

#[test]
fn a_run_sends_the_given_number_of_requests_with_method_header_and_body() {
    let target = Target::start(Duration::ZERO, OK);
    let arguments =
        "--connections 2 --requests 100 --method PUT --header X-Trial:one --body BEGIN:VCARD";
    let report = run("count", &target.url("/x"), arguments).report(0);
    assert_eq!(report.measured.span().requests, 100);
    assert_eq!(target.requests(), 100);
    assert_eq!((report.warm_up, report.tail), (None, None));
    assert_eq!(report.gap_before_measured_seconds, None);
    let request = target.last_request();
    assert!(request.starts_with("PUT /x HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("X-Trial: one\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nBEGIN:VCARD"), "{request}");
}

#[test]
fn a_run_sends_at_the_given_rate() {
    let target = Target::start(Duration::ZERO, OK);
    let report = run(
        "rate",
        &target.url("/"),
        "--connections 16 --duration-seconds 2 --rate 40",
    )
    .report(0);
    // Five on each connection. Without a correction, Fortio would send them in 2.375 s.
    assert_eq!(report.measured.span().requests, 80);
    let figures = report.measured.figures(&[200]);
    let rate = figures.requests_per_second.unwrap();
    assert!((rate / 40.0 - 1.0).abs() < 0.02, "{rate}");
    assert!(figures.shortfall.unwrap() < 0.02, "{figures:?}");
    let measured = report.measured.fortio().unwrap();
    assert_eq!((measured.uniform, measured.skips_late), (true, false));
}

#[test]
fn a_connection_that_is_late_catches_up_or_skips_as_asked() {
    // 20 requests/s of 100 ms each on one connection, which can send 10 per second.
    let target = Target::start(Duration::from_millis(100), OK);
    let arguments = "--connections 1 --duration-seconds 2 --rate 20 --skip-late";
    let report = run("skip-late", &target.url("/"), arguments).report(0);
    let measured = report.measured.fortio().unwrap();
    assert!(measured.skips_late);
    assert_eq!(report.interrupted, None);
    let figures = report.measured.figures(&[200]);
    assert_eq!(figures.occupancy, None);
    assert!(figures.shortfall.unwrap() > 0.3, "{figures:?}");
}

#[test]
fn a_target_that_always_answers_500_is_an_outcome() {
    let target = Target::start(Duration::ZERO, Answer::Status(500));
    let arguments = "--connections 2 --warm-up-seconds 0.5 --duration-seconds 1 --tail-seconds 0.5";
    let report = run("always-500", &target.url("/"), arguments).report(0);
    let figures = report.measured.figures(&[200]);
    assert!(figures.errors > 0);
    assert_eq!((figures.successes, figures.requests_per_second), (0, None));
    let warm_up = report.warm_up.unwrap();
    assert_eq!(warm_up.errors, warm_up.requests);
    assert!(report.tail.is_some());
}

#[test]
fn a_target_that_refuses_connections_is_an_outcome() {
    let url = target::refusing_url();
    let arguments = "--connections 2 --warm-up-seconds 0.5 --duration-seconds 1 --tail-seconds 0.5";
    let report = run("refused", &url, arguments).report(0);
    let codes: Vec<i32> = report
        .measured
        .fortio()
        .unwrap()
        .codes
        .keys()
        .copied()
        .collect();
    assert_eq!(codes, [-1]);
    assert_eq!(report.measured.figures(&[200]).ms_per_request, None);
}

/// Fortio sends such a request again, and by its own count it has no error.
#[test]
fn a_request_without_an_answer_in_time_is_an_error_although_a_second_one_is_answered() {
    let target = Target::start(Duration::from_millis(1), Answer::NeverEach(50));
    let arguments = "--connections 2 --duration-seconds 3 --timeout-seconds 0.2";
    let report = run("late", &target.url("/"), arguments).report(0);
    let figures = report.measured.figures(&[200]);
    let share = figures.error_rate.unwrap();
    assert!((0.012..0.03).contains(&share), "{share}");
    let slices = report.slices.unwrap();
    assert_eq!(slices.errors.iter().sum::<u64>(), figures.errors);
    // The times of the errors are not among the successes' times.
    assert!(figures.ms_per_request.unwrap() < 50.0, "{figures:?}");
}

/// Many late answers are the candidate's failure, and not a server that closes its connections.
#[test]
fn many_answers_after_the_timeout_are_an_outcome() {
    let target = Target::start(Duration::from_millis(1), Answer::NeverEach(2));
    let arguments = "--connections 1 --requests 20 --timeout-seconds 0.1";
    let report = run("mostly-late", &target.url("/"), arguments).report(0);
    let share = report.measured.figures(&[200]).error_rate.unwrap();
    assert!(share > 0.45, "{share}");
}

#[test]
fn answers_longer_than_fortios_usual_buffer_are_read_as_a_whole() {
    let target = Target::start(Duration::ZERO, Answer::Bytes(200_000));
    let arguments = "--connections 2 --duration-seconds 1";
    let report = run("large", &target.url("/"), arguments).report(0);
    let figures = report.measured.figures(&[200]);
    assert_eq!(figures.errors, 0);
    assert_eq!(figures.mean_body_bytes, Some(200_000.0));
    assert_eq!(report.measured.fortio().unwrap().sockets, 2);
}

#[test]
fn answers_that_fortio_would_cut_leave_no_result() {
    let target = Target::start(Duration::ZERO, Answer::Bytes(5_000_000));
    let ended = run(
        "too-large",
        &target.url("/"),
        "--connections 1 --requests 5",
    );
    let (message, ..) = ended.failure(1);
    assert!(message.contains("longer than the 4096 KiB"), "{message}");
}

fn run_against(answer: Answer, name: &str) -> Ended {
    let target = Target::start(Duration::ZERO, answer);
    run(name, &target.url("/"), "--connections 2 --requests 500")
}

/// By Fortio's own count, such a run has no error.
#[test]
fn a_request_on_a_closed_connection_is_an_error_unless_the_connection_was_idle() {
    let target = Target::start(Duration::ZERO, Answer::CloseEach(50));
    let report = run("closed", &target.url("/"), "--connections 2 --requests 500").report(0);
    // The second try is a request of the target, too.
    let errors = report.measured.span().errors;
    assert_eq!(target.requests(), 500 + errors);
    assert!((9..=11).contains(&errors), "{errors}");
    assert_eq!(report.measured.fortio().unwrap().codes[&-1], errors);
    assert_eq!(report.slices.unwrap().errors.iter().sum::<u64>(), errors);

    // A connection that the target announces to close is used no more.
    let target = Target::start(Duration::ZERO, Answer::AnnounceEach(50));
    let report = run(
        "announced",
        &target.url("/"),
        "--connections 2 --requests 500",
    )
    .report(0);
    assert_eq!((report.measured.span().errors, target.requests()), (0, 500));
    let ended = run_against(Answer::CloseAlways, "unannounced");
    let (message, ..) = ended.failure(1);
    assert!(message.contains("without announcing it"), "{message}");

    let target = Target::start(
        Duration::ZERO,
        Answer::CloseIdle(Duration::from_millis(1_500)),
    );
    let idle = "--connections 1 --rate 0.5 --requests 3 --limit-seconds 20";
    let report = run("idle", &target.url("/"), idle).report(0);
    assert_eq!(report.measured.span().errors, 0);
    assert_eq!(report.measured.fortio().unwrap().sockets, 3);
}

#[test]
fn chunks_are_read_as_a_whole_or_leave_no_result() {
    let target = Target::start(Duration::ZERO, Answer::Chunks(20));
    let report = run("chunks", &target.url("/"), "--connections 1 --requests 20").report(0);
    assert_eq!(report.measured.span().errors, 0);
    let target = Target::start(Duration::ZERO, Answer::Chunks(160));
    let ended = run(
        "many-chunks",
        &target.url("/"),
        "--connections 1 --requests 5",
    );
    let (message, ..) = ended.failure(1);
    assert!(message.contains("longer than"), "{message}");
}

/// Fortio counts such answers as successes. A 204 has no body, but Fortio closes its connection, too.
#[test]
fn answers_without_a_length_leave_no_result() {
    for (name, answer) in [("endless", Answer::Endless), ("204", Answer::NoContent)] {
        let target = Target::start(Duration::ZERO, answer);
        let ended = run(name, &target.url("/"), "--connections 2 --requests 50");
        let (message, ..) = ended.failure(1);
        let expected = "50 answers have neither Content-Length nor chunks";
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_target_that_hangs_longer_than_the_timeout_is_an_outcome_in_bounded_time() {
    let target = Target::start(Duration::ZERO, Answer::Never);
    let begin = Instant::now();
    let arguments =
        "--connections 2 --warm-up-seconds 0.5 --duration-seconds 1 --timeout-seconds 0.4";
    let report = run("hangs", &target.url("/"), arguments).report(0);
    assert!(begin.elapsed() < Duration::from_secs(10));
    let figures = report.measured.figures(&[200]);
    assert_eq!((figures.successes, figures.error_rate), (0, Some(1.0)));
    assert!(report.measured.latency().min_seconds >= 0.39);
    // The uncounted request on each connection waits for its timeout before the measured run begins.
    assert!(report.gap_before_measured_seconds.unwrap() >= 0.39);
}

#[test]
fn sigterm_in_the_measured_run_keeps_its_result_is_reported_and_ends_the_load() {
    let target = Target::start(Duration::from_millis(2), OK);
    let arguments = "--connections 2 --warm-up-seconds 0.2 --duration-seconds 30 --tail-seconds 30";
    let injector = start("sigterm-measured", &target.url("/"), arguments);
    target.wait_for(600);
    let reported = Instant::now();
    injector.terminate();
    let ended = injector.end();
    assert!(reported.elapsed() < Duration::from_secs(5));
    let report = ended.report(3);
    assert_eq!(report.interrupted.as_deref(), Some("measured run: SIGTERM"));
    assert!(report.measured.is_interrupted());
    assert!(report.measured.span().requests > 0);
    assert_eq!(report.tail, None);

    let requests = target.requests();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(target.requests(), requests);
}

#[test]
fn sigterm_while_requests_hang_still_ends_soon() {
    let target = Target::start(Duration::ZERO, Answer::Never);
    let arguments = "--connections 2 --duration-seconds 60 --timeout-seconds 1";
    let injector = start("sigterm-hang", &target.url("/"), arguments);
    thread::sleep(Duration::from_millis(2500));
    let reported = Instant::now();
    injector.terminate();
    let report = injector.end().report(3);
    assert!(reported.elapsed() < Duration::from_secs(5));
    assert_eq!(report.measured.figures(&[200]).successes, 0);
}

#[test]
fn sigterm_in_the_warm_up_leaves_a_failure_and_no_measured_run() {
    let target = Target::start(Duration::from_millis(2), OK);
    let arguments = "--connections 2 --warm-up-seconds 30 --duration-seconds 30";
    let injector = start("sigterm-warm-up", &target.url("/"), arguments);
    target.wait_for(100);
    injector.terminate();
    let ended = injector.end();
    let (message, ..) = ended.failure(1);
    assert!(
        message.contains("SIGTERM before the measured run"),
        "{message}"
    );
    assert!(ended.stdout().is_empty());
}

#[test]
fn sigterm_in_the_tail_keeps_the_whole_measured_run_and_is_reported() {
    let target = Target::start(Duration::from_millis(2), OK);
    let arguments = "--connections 2 --requests 200 --tail-seconds 30";
    let injector = start("sigterm-tail", &target.url("/"), arguments);
    target.wait_for(400);
    injector.terminate();
    let report = injector.end().report(3);
    assert_eq!(report.interrupted.as_deref(), Some("tail: SIGTERM"));
    assert!(!report.measured.is_interrupted());
    assert_eq!(report.measured.span().requests, 200);
    assert!(report.tail.unwrap().requests > 0);
}

#[test]
fn an_overdue_measured_run_is_interrupted() {
    let target = Target::start(Duration::from_millis(2), OK);
    let arguments = "--connections 2 --requests 1000000 --limit-seconds 1 --tail-seconds 5";
    let report = run("overdue", &target.url("/"), arguments).report(3);
    assert_eq!(
        report.interrupted.as_deref(),
        Some("measured run: did not end within 1 s")
    );
    assert!(report.measured.is_interrupted());
    assert_eq!(report.tail, None);
}

#[test]
fn a_measured_run_without_a_result_reports_fortios_error() {
    let arguments = "--connections 2 --duration-seconds 1 --warm-up-seconds 1";
    let ended = run("no-such-host", "http://no-such-host.invalid/", arguments);
    let (message, exit_code, stderr_tail) = ended.failure(1);
    assert!(
        message.contains("no result of the measured run"),
        "{message}"
    );
    assert_eq!(exit_code, Some(1));
    assert!(
        stderr_tail.contains("no-such-host.invalid"),
        "{stderr_tail}"
    );
    // The warm-up failed in the same way. The injector still tried the measured run.
    assert!(
        ended.stderr().contains("warm-up: no result"),
        "{}",
        ended.stderr()
    );
}

#[test]
fn a_missing_fortio_is_a_failure() {
    let arguments = "--connections 1 --warm-up-seconds 1 --duration-seconds 1";
    let missing = Path::new("/does/not/exist");
    let ended = start_with(missing, "no-fortio", "http://127.0.0.1:9/", arguments).end();
    let (message, ..) = ended.failure(1);
    assert!(
        message.contains("cannot start /does/not/exist"),
        "{message}"
    );
}

#[test]
fn the_clocks_are_compared_before_the_load_and_after_it() {
    let target = Target::start(Duration::from_millis(1), OK);
    let clock_url = target.url("/time");
    let arguments = format!("--connections 1 --requests 20 --clock-url {clock_url}");
    let ended = run("clock", &target.url("/"), &arguments);
    let report = ended.report(0);
    for clock in [report.clock, report.clock_after] {
        let clock = clock.unwrap();
        let error = (clock.offset_seconds - target::CLOCK_OFFSET_SECONDS).abs();
        assert!(error <= clock.uncertainty_seconds + 1e-5, "{clock:?}");
        assert!((0.0..0.1).contains(&clock.uncertainty_seconds), "{clock:?}");
    }
    assert_eq!(target.clock_requests(), 16);
}

#[test]
fn a_meter_that_does_not_answer_leaves_the_offset_unknown() {
    let target = Target::start(Duration::ZERO, OK);
    for (name, url) in [
        ("clock-refused", target::refusing_url()),
        ("clock-nonsense", target.url("/not-the-time")),
    ] {
        let arguments = format!("--connections 1 --requests 20 --clock-url {url}");
        let ended = run(name, &target.url("/"), &arguments);
        let report = ended.report(0);
        assert_eq!((report.clock, report.clock_after), (None, None));
        assert!(
            ended.stderr().contains("clock: not compared"),
            "{}",
            ended.stderr()
        );
    }
}

#[test]
fn wrong_arguments_are_refused_before_any_load_with_the_reason() {
    let target = Target::start(Duration::ZERO, OK);
    for (name, arguments, reason) in [
        (
            "head",
            "--connections 1 --duration-seconds 1 --method HEAD",
            "HEAD",
        ),
        (
            "rate-0",
            "--connections 1 --duration-seconds 1 --rate 0",
            "rate",
        ),
        (
            "connections-0",
            "--connections 0 --duration-seconds 1",
            "connections",
        ),
        (
            "endless",
            "--connections 1 --duration-seconds 0",
            "duration",
        ),
        (
            "header",
            "--connections 1 --duration-seconds 1 --header nocolon",
            "NAME:VALUE",
        ),
        (
            "body",
            "--connections 1 --duration-seconds 1 --body-file /does/not/exist",
            "/does/not/exist",
        ),
        (
            "tail",
            "--connections 1 --duration-seconds 1 --tail-seconds NaN",
            "tail-seconds",
        ),
    ] {
        let (message, ..) = run(name, &target.url("/"), arguments).failure(2);
        assert!(message.contains(reason), "{message}");
    }
    let neither = run("no-amount", &target.url("/"), "--connections 1");
    assert_eq!(neither.exit_code(), Some(2));
    assert!(
        neither.stderr().contains("--duration-seconds"),
        "{}",
        neither.stderr()
    );
    assert_eq!(target.requests(), 0);
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_before_any_load() {
    let target = Target::start(Duration::ZERO, OK);
    let output = Command::new(env!("CARGO_BIN_EXE_frugality-injector"))
        .args([
            "run",
            "--url",
            &target.url("/"),
            "--connections",
            "1",
            "--requests",
            "10",
        ])
        .args(["--termination-log", "/does/not/exist"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/does/not/exist"));
    assert_eq!(target.requests(), 0);
}
