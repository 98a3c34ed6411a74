//! Lines `name=value`, as GitHub's `$GITHUB_OUTPUT` and GitLab's dotenv reports read them.

use super::Report;

/// The outcome, whether the gate is open, the exit code and the message, each on one line.
#[must_use]
pub(in crate::gate) fn outputs(report: &Report<'_>) -> String {
    let outcome = report.outcome();
    let message = report.ended.message.replace(['\r', '\n'], " ");
    format!(
        "verdict={outcome:?}\nopen={}\ncode={}\nmessage={message}\n",
        outcome.is_open(),
        outcome.exit_code()
    )
}
