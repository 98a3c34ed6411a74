//! The runner as a process, as in a candidate's container.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use frugality_measure::batch::{Execution, OUTPUT_LIMIT_BYTES};

const RUNNER: &str = env!("CARGO_BIN_EXE_frugality-runner");
const PATIENCE: Duration = Duration::from_secs(10);

struct Runner {
    process: Child,
    port: u16,
}

impl Runner {
    /// Starts a runner of `program` and waits until it answers.
    fn of(program: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new(RUNNER)
            .args(["serve", &format!("--port={port}"), "--"])
            .args(program)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let runner = Self { process, port };
        until("the runner answers", || {
            ureq::get(runner.url("/healthz")).call().is_ok()
        });
        runner
    }

    /// Starts a runner of a shell script.
    fn script(text: &str) -> Self {
        Self::of(&["sh", "-c", text])
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn post(&self) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        let mut answer = agent.post(self.url("/executions")).send_empty().unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), text)
    }

    fn execution(&self) -> Execution {
        let (status, text) = self.post();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the process exists and is not a zombie.
fn runs(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"));
    stat.is_ok_and(|text| !text.contains(") Z "))
}

#[test]
fn each_post_is_one_execution_and_returns_all_output_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!(
        "echo one; echo two >&2; echo three; echo again >> {}; sleep 0.3; exit 4",
        log.display()
    );
    let runner = Runner::script(&script);
    assert!(!log.exists(), "executed before the first POST");
    for _ in 0..2 {
        let execution = runner.execution();
        assert_eq!(execution.exit_code, Some(4));
        assert_eq!(execution.output, "one\ntwo\nthree\n");
        assert!(
            (0.3..3.0).contains(&execution.duration_seconds),
            "{execution:?}"
        );
    }
    assert_eq!(fs::read_to_string(log).unwrap(), "again\nagain\n");
}

#[test]
fn there_is_one_execution_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!(
        "echo begin >> {0}; sleep 0.3; echo end >> {0}",
        log.display()
    );
    let runner = Runner::script(&script);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(runner.execution().exit_code, Some(0)));
        }
    });
    assert_eq!(fs::read_to_string(log).unwrap(), "begin\nend\n".repeat(3));
}

#[test]
fn the_end_of_long_output_is_kept() {
    let runner = Runner::script("seq 1 100000");
    let output = runner.execution().output;
    assert_eq!(output.len(), OUTPUT_LIMIT_BYTES);
    assert!(output.ends_with("99999\n100000\n"));
}

#[test]
fn a_signal_is_no_exit_code() {
    let runner = Runner::script("kill -9 $$");
    assert_eq!(runner.execution().exit_code, None);
}

#[test]
fn the_runner_waits_for_a_program_that_closes_its_output() {
    let runner = Runner::script("echo said; exec >&- 2>&-; sleep 0.5; exit 7");
    let execution = runner.execution();
    assert_eq!(execution.exit_code, Some(7));
    assert_eq!(execution.output, "said\n");
    assert!(execution.duration_seconds >= 0.5);
}

#[test]
fn a_missing_program_is_reported() {
    let runner = Runner::of(&["/no/such/program"]);
    let (status, text) = runner.post();
    assert_eq!(status, 500);
    assert!(
        text.starts_with("cannot execute /no/such/program: No such file"),
        "{text}"
    );
}

#[test]
fn processes_that_the_program_left_running_delay_nothing_and_are_killed() {
    let runner = Runner::script("sleep 300 & echo $!");
    let execution = runner.execution();
    assert!(execution.duration_seconds < 5.0);
    let left = execution.output.trim();
    until("the end of what was left", || !runs(left));
}

#[test]
fn an_execution_whose_connection_is_closed_is_killed_with_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    let script = format!("sleep 300 & echo $$ $! > {}; wait", ids.display());
    let runner = Runner::script(&script);
    let mut connection = TcpStream::connect(("127.0.0.1", runner.port)).unwrap();
    connection
        .write_all(b"POST /executions HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .unwrap();
    let reported = || fs::read_to_string(&ids).unwrap_or_default();
    until("the execution begins", || reported().ends_with('\n'));
    drop(connection);
    for id in reported().split_whitespace() {
        until("the end of the execution", || !runs(id));
    }
}

#[test]
fn sigterm_ends_the_runner() {
    let mut runner = Runner::script("true");
    let id = runner.process.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    let mut status = None;
    until("the end of the runner", || {
        status = runner.process.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success());
}

#[test]
fn install_writes_a_program_that_all_users_may_execute() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/runner");
    // Twice, because a restarted pod keeps its volume.
    for _ in 0..2 {
        let installed = Command::new(RUNNER).arg("install").arg(&file).status();
        assert!(installed.unwrap().success());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
        let version = Command::new(&file).arg("--version").output().unwrap();
        assert!(version.status.success());
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut process = Command::new(RUNNER)
        .args(["serve", "--port", &port, "--", "true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = process.wait().unwrap();
    let mut said = String::new();
    let mut stderr = process.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!status.success(), "{said}");
    assert!(
        said.contains(&format!("cannot listen on port {port}")),
        "{said}"
    );
}
