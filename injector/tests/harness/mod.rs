//! Runs an injector as its pod would, and reads its output and report.

#![allow(dead_code, reason = "each test program uses a part")]

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use frugality_measure::report::{InjectionReport, ReportError};

/// One running injector and the path of its termination log.
pub(crate) struct Injector {
    child: Child,
    log: PathBuf,
}

impl Injector {
    /// `name` must be unique among the tests.
    pub(crate) fn start(name: &str, url: &str, arguments: impl Iterator<Item = String>) -> Self {
        let log =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.termination-log"));
        File::create(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_frugality-injector"))
            .args(["run", "--url", url, "--termination-log"])
            .arg(&log)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub(crate) fn end(self) -> Ended {
        let output = self.child.wait_with_output().unwrap();
        let message = std::fs::read_to_string(&self.log).unwrap();
        assert!(message.len() <= 4096, "{} bytes", message.len());
        Ended { output, message }
    }

    pub(crate) fn terminate(&self) {
        let status = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

pub(crate) struct Ended {
    output: Output,
    message: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn report(&self, exit: i32) -> InjectionReport {
        assert_eq!(self.exit_code(), Some(exit), "{}", self.stderr());
        InjectionReport::decode(&self.message).unwrap()
    }

    #[track_caller]
    pub(crate) fn failure(&self, exit: i32) -> (String, Option<i32>, String) {
        assert_eq!(self.exit_code(), Some(exit), "{}", self.stderr());
        match InjectionReport::decode(&self.message) {
            Err(ReportError::InjectorFailed {
                message,
                exit_code,
                stderr_tail,
            }) => (message, exit_code, stderr_tail),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}
