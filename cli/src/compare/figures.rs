//! The figures of two benchmarks side by side, without a ratio.

use frugality_operator::{
    api::{CandidateResult, DecidingFigure, Figure},
    load::units::Units,
    text,
};

use super::side::Side;
use crate::table::{Grid, Table, dash};

/// A line of the table.
struct Row {
    point: String,
    candidate: String,
    figure: String,
    cells: [String; 2],
}

/// The table. A figure that was withheld is a dash.
pub(super) fn table(one: &Side, other: &Side, [left, right]: [String; 2]) -> Option<Grid> {
    let results = [one, other].map(|side| {
        let status = side.benchmark.current_status();
        status.map(|it| it.results.clone()).unwrap_or_default()
    });
    let units = results.each_ref().map(|it| Units::of_results(it));
    if units[0] != units[1] {
        return None;
    }
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for result in results.iter().flatten() {
        let key = (result.point.as_str(), result.candidate.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let has_several_points = keys.iter().any(|(point, _)| *point != keys[0].0);
    let rows = keys.iter().flat_map(|(point, candidate)| {
        let of = |all: &[CandidateResult]| {
            let is_it = |it: &&CandidateResult| it.point == *point && it.candidate == *candidate;
            all.iter().find(is_it).cloned()
        };
        let pair = results.each_ref().map(|it| of(it));
        rows(point, candidate, &pair, &units[0])
    });
    let mut table = Table::of(rows);
    if has_several_points {
        table = table.text("POINT", |it: &Row| it.point.clone());
    }
    table
        .text("CANDIDATE", |it: &Row| it.candidate.clone())
        .text("FIGURE", |it: &Row| it.figure.clone())
        .right(left, |it: &Row| it.cells[0].clone())
        .right(right, |it: &Row| it.cells[1].clone())
        .grid()
}

type Get = fn(&CandidateResult) -> Option<Figure>;

fn rows(
    point: &str,
    candidate: &str,
    pair: &[Option<CandidateResult>; 2],
    units: &Units,
) -> Vec<Row> {
    let (one, whole) = (&units.one, units.whole);
    let joules = |kind: DecidingFigure| format!("{} mJ/{one}", kind.word());
    let figures: [(String, f64, Get); 6] = [
        (format!("{one}s/s"), 1.0, |it| it.requests_per_second),
        (format!("ms/{whole}"), 1.0, |it| it.milliseconds_per_request),
        (format!("CPU ms/{one}"), 1.0, |it| {
            it.cpu_milliseconds_per_request
        }),
        (joules(DecidingFigure::Gross), 1000.0, |it| {
            it.gross_joules_per_request
        }),
        (joules(DecidingFigure::Net), 1000.0, |it| {
            it.net_joules_per_request
        }),
        (joules(DecidingFigure::NetAttributed), 1000.0, |it| {
            it.net_attributed_joules_per_request
        }),
    ];
    figures
        .into_iter()
        .filter_map(|(figure, factor, get)| {
            let values = pair.each_ref().map(|it| it.as_ref().and_then(get));
            let cell =
                |it: Option<Figure>| it.map_or_else(dash, |it| text::figure(&it.times(factor)));
            values.iter().any(Option::is_some).then(|| Row {
                point: point.to_owned(),
                candidate: candidate.to_owned(),
                figure,
                cells: values.map(cell),
            })
        })
        .collect()
}
