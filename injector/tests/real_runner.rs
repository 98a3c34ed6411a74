//! The injector with the real runner, which executes shell scripts.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod harness;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use frugality_measure::{batch::ExecutionsResult, load::LoadResult, report::InjectionReport};
use harness::Injector;

/// A runner of a shell script, killed on drop.
struct Runner {
    process: Child,
    url: String,
}

impl Runner {
    fn of(script: &str) -> Self {
        // Cargo builds all programs of the workspace into the same folder.
        let program: PathBuf =
            Path::new(env!("CARGO_BIN_EXE_frugality-injector")).with_file_name("frugality-runner");
        assert!(program.exists(), "no runner: build the whole workspace");
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new(program)
            .args(["serve", &format!("--port={port}"), "--", "sh", "-c", script])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let end = Instant::now() + Duration::from_secs(10);
        while ureq::get(&url).call().is_err() {
            assert!(Instant::now() < end, "no answer from the runner");
            thread::sleep(Duration::from_millis(20));
        }
        Self { process, url }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(name: &str, url: &str, arguments: &[&str]) -> Injector {
    let own = ["--batch", "--connections", "1"];
    let all = own.iter().chain(arguments).map(|it| (*it).to_owned());
    Injector::start(name, url, all)
}

fn batch(report: &InjectionReport) -> &ExecutionsResult {
    match &report.measured {
        LoadResult::Batch(result) => result,
        other => panic!("not the result of a batch: {other:?}"),
    }
}

#[test]
fn whole_executions_one_after_another_with_score_and_work() {
    let runner = Runner::of("sleep 0.4; echo score: 42; echo work: 1000 >&2");
    let arguments = [
        "--warm-up-seconds=0.5",
        "--duration-seconds=1.5",
        "--tail-seconds=1",
        "--score-pattern=score: ([0-9]+)",
        "--work-pattern=work: ([0-9]+)",
        "--course",
    ];
    let ended = start("batch-executions", &runner.url, &arguments).end();
    let report = ended.report(0);
    let result = batch(&report);
    // All begin within 1.5 s. The last one may end later.
    assert!((1..=4).contains(&result.executions.count), "{result:?}");
    assert_eq!(result.failed_executions.count, 0);
    assert!(result.executions.min_seconds >= 0.4);
    let course = report.course.as_ref().unwrap();
    let counted: u64 = course.requests.iter().sum();
    assert_eq!(counted, result.executions.count);
    let of_slices = course.requests.iter().zip(&course.mean_seconds);
    let sum: f64 = of_slices.map(|(count, mean)| *count as f64 * mean).sum();
    let of_all = result.executions.sum_seconds;
    assert!((sum / of_all - 1.0).abs() < 1e-5, "{course:?}");
    let idle = result.duration_seconds - result.executions.sum_seconds;
    assert!((0.0..1.5).contains(&idle), "{idle} s without an execution");
    assert!((result.score.unwrap().mean - 42.0).abs() < 1e-9);
    assert!((result.work.unwrap().sum() - 1000.0 * result.executions.count as f64).abs() < 1e-6);
    let (warm_up, tail) = (report.warm_up.unwrap(), report.tail.unwrap());
    assert!((1..=2).contains(&warm_up.requests), "{warm_up:?}");
    // The injector cuts off the tail's last execution.
    assert!(tail.requests <= 2, "{tail:?}");
    assert!((1.0..3.0).contains(&tail.duration_seconds), "{tail:?}");
    for gap in [
        report.gap_before_measured_seconds,
        report.gap_after_measured_seconds,
    ] {
        assert!((0.0..2.0).contains(&gap.unwrap()), "{gap:?}");
    }
    assert_eq!(ended.stdout().lines().count(), 1);
    assert!(ended.stderr().contains("measured run: an execution in "));
}

#[test]
fn a_run_with_a_number_of_executions_ends_after_the_last_one() {
    let runner = Runner::of("sleep 0.1");
    let report = start("batch-number", &runner.url, &["--requests=5"])
        .end()
        .report(0);
    assert_eq!(batch(&report).executions.count, 5);
    assert!(batch(&report).score.is_none() && batch(&report).work.is_none());
    assert!(report.warm_up.is_none() && report.tail.is_none());
}

#[test]
fn failed_executions_are_counted_and_their_reason_is_reported() {
    // The first execution prints a score. All others print nothing.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("batch-failing");
    let _ = std::fs::remove_file(&folder);
    let script = format!("[ -e {0} ] || echo score 1; touch {0}", folder.display());
    let runner = Runner::of(&script);
    let arguments = ["--requests=3", "--score-pattern=score ([0-9]+)"];
    let report = start("batch-failing", &runner.url, &arguments)
        .end()
        .report(0);
    let result = batch(&report);
    let counts = (result.executions.count, result.failed_executions.count);
    assert_eq!(counts, (1, 2));
    let reported = "batch.score is not in what the program printed: it printed nothing";
    assert_eq!(result.first_failures, [reported]);
}

#[test]
fn an_execution_that_takes_too_long_is_killed_and_has_failed() {
    let runner = Runner::of("sleep 300");
    let arguments = ["--requests=1", "--timeout-seconds=0.5"];
    let began = Instant::now();
    let report = start("batch-overdue", &runner.url, &arguments)
        .end()
        .report(0);
    assert!(began.elapsed() < Duration::from_secs(10));
    let reported = "did not end within 0.5 s, and was killed";
    assert_eq!(batch(&report).first_failures, [reported]);
}

#[test]
fn the_injector_pauses_after_an_immediate_failure() {
    // The runner ends with this statement: the port has no listener.
    let url = Runner::of("true").url.clone();
    let report = start("batch-nobody", &url, &["--duration-seconds=2.5"])
        .end()
        .report(0);
    let result = batch(&report);
    assert!(
        (2..=4).contains(&result.failed_executions.count),
        "{result:?}"
    );
    let [reported] = result.first_failures.as_slice() else {
        panic!("{result:?}");
    };
    assert!(
        reported.starts_with("no answer from the runner: "),
        "{reported}"
    );
}

#[test]
fn a_signal_ends_the_injector_during_an_execution() {
    let runner = Runner::of("sleep 1");
    let injector = start("batch-signal", &runner.url, &["--requests=100"]);
    thread::sleep(Duration::from_millis(2500));
    injector.terminate();
    let report = injector.end().report(3);
    assert_eq!(report.interrupted.as_deref(), Some("measured run: SIGTERM"));
    assert!((1..=3).contains(&batch(&report).executions.count));
}

#[test]
fn invalid_batch_arguments_are_refused() {
    for (name, arguments, message) in [
        (
            "batch-pattern",
            &["--requests=1", "--score-pattern=score"][..],
            "--score-pattern: it has 0 groups, and needs one",
        ),
        (
            "batch-amount",
            &["--requests=1", "--work-amount=0"],
            "--work-amount must be above 0, not 0",
        ),
        (
            "batch-at-once",
            &["--requests=1", "--connections=2"],
            "--connections must be 1, not 2",
        ),
    ] {
        let own = ["--batch"].iter().chain(arguments);
        let one = ["--connections=1"];
        let is_given = arguments.iter().any(|it| it.starts_with("--connections"));
        let rest = one.iter().filter(|_| !is_given);
        let all = own.chain(rest).map(|it| (*it).to_owned());
        let (error, _, _) = Injector::start(name, "http://127.0.0.1:1", all)
            .end()
            .failure(2);
        assert!(error.contains(message), "{error}");
    }
}
