//! Lines `name=value`, as GitHub's `$GITHUB_OUTPUT` and GitLab's dotenv reports read them.

use frugality_operator::text::within_bytes;

use super::{GateReport, on_one_line};

/// Longest message. Tekton keeps 4096 bytes of results, GitLab 5 kB of variables.
const MOST_BYTES: usize = 1024;

/// The outcome, whether the gate is open, the exit code and the message, each on one line.
#[must_use]
pub(in crate::gate) fn outputs(report: &GateReport<'_>) -> String {
    let outcome = report.outcome();
    let message = within_bytes(&on_one_line(&report.ended.message), MOST_BYTES);
    format!(
        "verdict={outcome:?}\nopen={}\ncode={}\nmessage={message}\n",
        outcome.is_open(),
        outcome.exit_code()
    )
}
