//! The report as Markdown, for a pipeline's summary page.

use frugality_operator::{api::BudgetResult, text};

use super::{GateReport, on_one_line, word};
use crate::summarize::summary;

/// Characters with a meaning in Markdown or HTML.
const SPECIAL: [char; 12] = ['\\', '`', '*', '_', '[', ']', '<', '>', '|', '#', '@', '~'];

/// Heading, message, budgets, warnings, and all figures folded away.
pub(in crate::gate) fn markdown(report: &GateReport<'_>) -> String {
    let [heading, message] = [&report.heading(), &report.ended.message].map(|it| plain(it));
    let head = format!("### {heading}\n\n{message}\n");
    let figures = report.benchmark().map(|benchmark| {
        // Indented text can't end the block.
        let figures = summary(benchmark);
        let lines: Vec<_> = figures.lines().map(on_one_line).collect();
        let figures = lines.join("\n    ");
        format!("\n<details><summary>All figures</summary>\n\n    {figures}\n\n</details>\n")
    });
    [head, budgets(report.budgets()), list(&report.warnings())]
        .into_iter()
        .chain(figures)
        .collect()
}

fn budgets(budgets: &[BudgetResult]) -> String {
    let row = |budget: &BudgetResult| {
        let outcome = word(budget.outcome);
        let cells = [
            &budget.candidate,
            &text::limit(budget),
            outcome,
            &budget.message,
        ];
        let cells = cells.map(plain);
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
    let items: Vec<_> = items.iter().map(|item| plain(item)).collect();
    format!("\n- {}\n", items.join("\n- "))
}

/// The text on one line, without a meaning in Markdown.
fn plain(text: &str) -> String {
    let escaped = |character: char| {
        let escape = SPECIAL.contains(&character).then_some('\\');
        escape.into_iter().chain([character])
    };
    on_one_line(text).chars().flat_map(escaped).collect()
}
