//! A benchmark's status as a table for a terminal or a report.

// Writing to a String can't fail, so the results of `writeln!` below are not looked at.
use std::fmt::Write as _;

use crate::{
    api::{CandidateResult, Expanded, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus},
    plan::text,
};

/// The status as text: the verdict, a row for each candidate, the comparisons and the budgets. A
/// figure that was withheld is a dash, and the reason stands below.
#[must_use]
pub fn summary(benchmark: &FrugalityBenchmark) -> String {
    let name = benchmark.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &benchmark.status else {
        return format!("{name}: not seen by the operator yet\n");
    };
    let columns = status.columns.clone().unwrap_or_default();
    let mut text = format!(
        "{name}: {} ({})\n",
        status
            .verdict
            .map_or_else(|| "running".to_owned(), |verdict| format!("{verdict:?}")),
        columns.reason.unwrap_or_default()
    );
    if let Some(message) = columns.message {
        let _ = writeln!(text, "  {message}");
    }
    if status.results.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&table(&rows(status)));
    text.push('\n');
    for line in notes(status) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn rows(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let power = status.provenance.clone().unwrap_or_default();
    let header = [
        "CANDIDATE",
        "REQUESTS/S",
        "MS/REQUEST",
        "GROSS MJ/REQUEST",
        "NET MJ/REQUEST",
        "ATTRIBUTED MJ/REQUEST",
        "CPU MS/REQUEST",
        "PEAK MEMORY",
        "POWER",
        "TRIALS",
        "VOID",
    ];
    let header = header.map(|title| title.replace("MJ", "mJ")).to_vec();
    let rows = status.results.iter().map(|result| row(result, &power));
    std::iter::once(header).chain(rows).collect()
}

fn row(result: &CandidateResult, power: &str) -> Vec<String> {
    let dash = || "–".to_owned();
    let plain = |figure: &Option<Figure>| figure.as_ref().map_or_else(dash, text::figure);
    let milli = |figure: &Option<Figure>| {
        figure.map_or_else(dash, |f| {
            text::figure(&Figure {
                value: f.value * 1000.0,
                lower: f.lower * 1000.0,
                upper: f.upper * 1000.0,
                expanded: f.expanded.map(|e| Expanded {
                    lower: e.lower * 1000.0,
                    upper: e.upper * 1000.0,
                    ..e
                }),
            })
        })
    };
    vec![
        result.candidate.clone(),
        plain(&result.requests_per_second),
        plain(&result.milliseconds_per_request),
        milli(&result.gross_joules_per_request),
        milli(&result.net_joules_per_request),
        milli(&result.attributed_joules_per_request),
        plain(&result.cpu_milliseconds_per_request),
        result.peak_memory_bytes.map_or_else(dash, |bytes| {
            format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
        }),
        power.to_owned(),
        result.trials.to_string(),
        result.void_attempts.to_string(),
    ]
}

fn notes(status: &FrugalityBenchmarkStatus) -> Vec<String> {
    let mut notes = Vec::new();
    let deciding = status.deciding_figure.map_or("", |figure| figure.word());
    match &status.winner {
        Some(winner) => notes.push(format!(
            "winner: {winner}, by {deciding} joules per request"
        )),
        None if status.tie == Some(true) => notes.push(format!(
            "a tie: shown to be equal by {deciding} joules per request"
        )),
        None if status.results.len() > 1 && status.comparisons.is_empty() => {
            notes.push("no winner: not compared".into());
        }
        None if status.results.len() > 1 => {
            notes.push(format!(
                "no winner: not separated by {deciding} joules per request"
            ));
        }
        None => {}
    }
    notes.extend(
        status
            .comparisons
            .iter()
            .filter(|c| {
                status
                    .winner
                    .as_ref()
                    .is_none_or(|winner| c.candidate == *winner)
            })
            .map(|c| format!("{} / {}: {}", c.candidate, c.against, text::ratio(&c.ratio))),
    );
    notes.extend(
        status
            .budgets
            .iter()
            .map(|b| format!("budget {:?}: {}", b.outcome, b.message)),
    );
    for result in &status.results {
        notes.extend(
            result
                .withheld
                .iter()
                .map(|why| format!("withheld for {}: {why}", result.candidate)),
        );
    }
    if let Some(floor) = &status.noise_floor {
        notes.push(format!(
            "noise floor {} %: {} against itself is {}",
            text::number(100.0 * floor.share),
            floor.candidate,
            text::ratio(&floor.ratio)
        ));
    }
    notes.push(intervals(status));
    if let Some(meter) = &status.meter {
        notes.push(format!(
            "power: {} by {meter} on node {}; load from node {}{}",
            status.provenance.as_deref().unwrap_or("unknown"),
            status.measured_node.as_deref().unwrap_or("?"),
            status.injector_node.as_deref().unwrap_or("?"),
            if status.shared_node == Some(true) {
                " (the same node: gross and net joules are withheld)"
            } else {
                ""
            }
        ));
    }
    notes
}

/// What the intervals are.
fn intervals(status: &FrugalityBenchmarkStatus) -> String {
    let confidence = status.look.map_or(0.95, |look| look.confidence);
    let percent = (confidence * 1000.0).round() / 10.0;
    let of_joules = status.results.iter().find_map(|result| {
        result
            .gross_joules_per_request
            .or(result.net_joules_per_request)
            .or(result.attributed_joules_per_request)?
            .expanded
    });
    let covers = match of_joules {
        Some(e) if e.covers_meter => {
            "; those of joules cover the meter's own accuracy and what the windows' ends cost too, and ratios have no need to"
        }
        Some(_) => {
            "; those of joules cover what the windows' ends cost too, but not the meter's own accuracy, which it does not tell"
        }
        None => "",
    };
    format!("± and [ ] are {percent} % t-intervals over trials{covers}")
}

/// Columns as wide as their widest cell, two spaces apart.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}
