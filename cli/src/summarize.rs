//! A benchmark's status as text for a terminal or a report.

mod costs;
pub(crate) mod notes;
mod tables;
pub(crate) mod view;

use std::collections::BTreeSet;

use frugality_operator::{api::FrugalityBenchmark, load::units::Units};
use kube::ResourceExt;

use self::view::View;
use crate::table::{Grid, TableStyle, paragraphs};

/// The status as text: the verdict, tables of figures, comparisons and budgets. A figure that was withheld is a dash,
/// and a line below has the reason.
#[must_use]
pub fn summary(benchmark: &FrugalityBenchmark) -> String {
    let name = benchmark.metadata.name.clone().unwrap_or_default();
    of(benchmark, &name, TableStyle::default())
}

/// The summaries of some benchmarks, with tables in this style. Names of several namespaces have their namespace.
#[must_use]
pub fn summaries(benchmarks: &[FrugalityBenchmark], style: TableStyle) -> String {
    let namespaces: BTreeSet<_> = benchmarks.iter().map(ResourceExt::namespace).collect();
    let named = |benchmark: &FrugalityBenchmark| {
        let name = benchmark.name_any();
        match benchmark.namespace() {
            Some(namespace) if namespaces.len() > 1 => format!("{namespace}/{name}"),
            _ => name,
        }
    };
    let all: Vec<String> = benchmarks
        .iter()
        .map(|benchmark| of(benchmark, &named(benchmark), style))
        .collect();
    all.join("\n")
}

fn of(benchmark: &FrugalityBenchmark, name: &str, style: TableStyle) -> String {
    let Some(status) = benchmark.current_status() else {
        return format!("{name}: not seen by the operator yet\n");
    };
    let columns = status.columns.clone().unwrap_or_default();
    let verdict = status
        .verdict
        .map_or_else(|| "running".to_owned(), |verdict| format!("{verdict:?}"));
    let reason = columns.reason.unwrap_or_default();
    let heading = format!("{name}: {verdict} ({reason})\n");
    let heading = heading + &paragraphs(outdated(benchmark).into_iter().chain(columns.message));
    if status.results.is_empty() {
        return heading;
    }
    let units = Units::of_results(&status.results);
    let view = View::of(status, &units);
    let parts: Vec<String> = std::iter::once(heading)
        .chain(
            grids(&view)
                .chain(load_curves(&view))
                .map(|grid| grid.print(style)),
        )
        .chain([paragraphs(notes(&view))])
        .collect();
    parts.join("\n")
}

/// What to say about a status that the operator wrote for an earlier spec. `None` if it is about the current one.
pub(crate) fn outdated(benchmark: &FrugalityBenchmark) -> Option<String> {
    let of_status = benchmark.current_status()?.observed_generation?;
    let of_spec = benchmark.metadata.generation?;
    (of_status != of_spec).then(|| {
        format!(
            "This is the status of generation {of_status} of the spec. The spec now has generation {of_spec}, and the operator has not seen it yet."
        )
    })
}

/// All tables of results that have rows.
pub(crate) fn grids(view: &View<'_>) -> impl Iterator<Item = Grid> {
    tables::all(view).chain(costs::tables(view))
}

/// The table of load curves, if there are load levels.
pub(crate) fn load_curves(view: &View<'_>) -> Option<Grid> {
    tables::load_curves(view)
}

/// What a reader of the tables must know.
pub(crate) fn notes(view: &View<'_>) -> impl Iterator<Item = String> {
    notes::all(view).into_iter().chain(costs::note(view))
}
