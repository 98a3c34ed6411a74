//! Annotations for GitHub: workflow commands on standard output
//! (docs.github.com, "Workflow commands for GitHub Actions").

use frugality_operator::{api::BudgetOutcome, text};

use super::GateReport;

/// A runner shows at most ten annotations of a kind per step. The verdict takes one.
const MOST_BUDGETS: usize = 9;

/// One line for the verdict, then one for each budget that is not met.
#[must_use]
pub(in crate::gate) fn annotations(report: &GateReport<'_>) -> String {
    let kind = if report.outcome().is_open() {
        "notice"
    } else {
        "error"
    };
    let unmet = report
        .budgets()
        .iter()
        .filter(|budget| budget.outcome != BudgetOutcome::Met)
        .take(MOST_BUDGETS);
    let lines = unmet.map(|budget| line("error", &text::limit(budget), &budget.message));
    let verdict = line(kind, &report.heading(), &report.ended.message);
    std::iter::once(verdict).chain(lines).collect()
}

fn line(kind: &str, title: &str, message: &str) -> String {
    let message = escaped(message);
    let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={title}::{message}\n")
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
