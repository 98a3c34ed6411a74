//! The report as Markdown, for a pipeline's summary page.

use frugality_operator::api::BudgetResult;

use super::{Report, word};
use crate::summarize::summary;

/// Heading, message, budgets, warnings, and all figures folded away.
pub(in crate::gate) fn markdown(report: &Report<'_>) -> String {
    let head = format!("### {}\n\n{}\n", report.heading(), report.ended.message);
    let figures = report.benchmark().map(|benchmark| {
        let figures = summary(benchmark);
        format!("\n<details><summary>All figures</summary>\n\n```\n{figures}```\n\n</details>\n")
    });
    [head, budgets(report.budgets()), list(&report.warnings())]
        .into_iter()
        .chain(figures)
        .collect()
}

fn budgets(budgets: &[BudgetResult]) -> String {
    let row = |budget: &BudgetResult| {
        let outcome = word(budget.outcome);
        let cells = [&budget.candidate, &budget.limit, outcome, &budget.message];
        let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        [&cells.join(" | "), " |\n"].concat()
    };
    let rows: Vec<_> = budgets.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = "\n| candidate | limit | result | |\n|---|---|---|---|\n| ";
    [head, &rows.join("| ")].concat()
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("\n- {}\n", items.join("\n- "))
}
