//! A benchmark's status as text for a terminal or a report.

mod costs;
mod notes;
mod tables;
mod view;

use frugality_operator::{api::FrugalityBenchmark, load::units::Units};

use self::view::View;
use crate::table::paragraphs;

/// The status as text: the verdict, tables of figures, comparisons and budgets. A figure that was withheld is a dash,
/// and a line below has the reason.
#[must_use]
pub fn summary(benchmark: &FrugalityBenchmark) -> String {
    let name = benchmark.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = benchmark.current_status() else {
        return format!("{name}: not seen by the operator yet\n");
    };
    let columns = status.columns.clone().unwrap_or_default();
    let verdict = status
        .verdict
        .map_or_else(|| "running".to_owned(), |verdict| format!("{verdict:?}"));
    let reason = columns.reason.unwrap_or_default();
    let heading = format!("{name}: {verdict} ({reason})\n");
    let heading = heading + &paragraphs(columns.message);
    if status.results.is_empty() {
        return heading;
    }
    let units = Units::of_results(&status.results);
    let view = View::of(status, &units);
    let tables = tables::all(&view).chain(costs::tables(&view));
    let notes = notes::all(&view).into_iter().chain(costs::note(&view));
    let parts: Vec<String> = std::iter::once(heading)
        .chain(tables)
        .chain([paragraphs(notes)])
        .collect();
    parts.join("\n")
}
