//! The tables of a summary, each with its declared columns.

use frugality_operator::{
    api::{CheckResult, DecidingFigure, LatencyPercentile},
    text,
};

use super::view::{View, memory, milli};
use crate::table::{Grid, Table, dash};

/// All tables of results that have rows.
pub(crate) fn all(view: &View<'_>) -> impl Iterator<Item = Grid> {
    let tables = [
        work(view),
        energy(view),
        nodes(view),
        workloads(view),
        executions(view),
        checks(view),
        latencies(view),
    ];
    tables.into_iter().flatten()
}

/// Each candidate's rates, times, CPU and memory.
fn work(view: &View<'_>) -> Option<Grid> {
    let [unit, whole] = [view.unit, view.whole].map(str::to_uppercase);
    view.table_of_results()
        .figure(format!("{unit}S/S"), |(it, ())| it.requests_per_second)
        .figure(format!("MS/{whole}"), |(it, ())| {
            it.milliseconds_per_request
        })
        .figure(format!("CPU MS/{unit}"), |(it, ())| {
            it.cpu_milliseconds_per_request
        })
        .number("IDLE CPUS", |(it, ())| it.idle_cpus)
        .right("PEAK MEMORY", |(it, ())| memory(it.peak_memory_bytes))
        .right("TRIALS", |(it, ())| it.trials.to_string())
        .right("VOID", |(it, ())| it.void_attempts.to_string())
        .grid()
}

fn energy(view: &View<'_>) -> Option<Grid> {
    let heading = |figure| format!("{figure} mJ/{}", view.unit.to_uppercase());
    let mut table = view
        .table_of_results()
        .figure(heading("GROSS"), |(it, ())| {
            milli(it.gross_joules_per_request)
        })
        .figure(heading("NET"), |(it, ())| milli(it.net_joules_per_request))
        .figure(heading("ATTRIBUTED"), |(it, ())| {
            milli(it.attributed_joules_per_request)
        });
    if view.status.deciding_figure == Some(DecidingFigure::NetAttributed) {
        let heading = heading("NET ATTRIBUTED");
        table = table.figure(heading, |(it, ())| {
            milli(it.net_attributed_joules_per_request)
        });
    }
    table.grid()
}

/// What the node of each candidate draws, if candidates have nodes of their own.
fn nodes(view: &View<'_>) -> Option<Grid> {
    let nodes = view
        .results
        .iter()
        .filter_map(|it| Some((it, it.node.as_ref()?)));
    view.table(nodes)
        .text("NODE", |(_, node)| node.name.clone())
        .figure("IDLE W", |(_, node)| node.idle_watts)
        .figure("W UNDER LOAD", |(_, node)| node.load_watts)
        .grid()
}

/// What each of a candidate's servers took, if a candidate has several.
fn workloads(view: &View<'_>) -> Option<Grid> {
    let unit = view.unit.to_uppercase();
    let workloads = view
        .results
        .iter()
        .flat_map(|it| it.workloads.iter().map(move |of| (it, of)));
    view.table(workloads)
        .text("WORKLOAD", |(_, it)| it.name.clone())
        .figure(format!("ATTRIBUTED mJ/{unit}"), |(_, it)| {
            milli(it.attributed_joules_per_request)
        })
        .figure(format!("CPU MS/{unit}"), |(_, it)| {
            it.cpu_milliseconds_per_request
        })
        .right("PEAK MEMORY", |(_, it)| memory(it.peak_memory_bytes))
        .grid()
}

/// The executions of each candidate, if programs were executed.
fn executions(view: &View<'_>) -> Option<Grid> {
    let batches = || {
        view.results
            .iter()
            .filter_map(|it| Some((it, it.batch.as_ref()?)))
    };
    let mut table = view
        .table(batches())
        .right("EXECUTIONS", |(_, it)| it.executions.to_string());
    if let Some(unit) = &view.units.score {
        table = table
            .number(format!("SCORE ({unit})"), |(_, it)| {
                Some(it.score.as_ref()?.mean)
            })
            .number("STANDARD DEVIATION", |(_, it)| {
                it.score.as_ref()?.standard_deviation
            });
    }
    if let Some(unit) = &view.units.work {
        let heading = format!("{}S/EXECUTION", unit.to_uppercase());
        table = table.number(heading, |(_, it)| it.work_per_execution);
    }
    let heading = format!("{} J/EXECUTION", view.deciding.to_uppercase());
    table
        .figure(heading, |(_, it)| it.joules_per_execution)
        .grid()
}

/// How often each check of a script did not hold.
fn checks(view: &View<'_>) -> Option<Grid> {
    let cycles = view
        .results
        .iter()
        .filter_map(|it| Some((it, it.cycles.as_ref()?)));
    let checks = cycles.flat_map(|(it, cycles)| cycles.checks.iter().map(move |check| (it, check)));
    let all = |check: &CheckResult| check.passed.saturating_add(check.failed);
    view.table(checks)
        .text("CHECK", |(_, check)| check.name.clone())
        .right("FAILED", |(_, check)| check.failed.to_string())
        .right("OF", move |(_, check)| all(check).to_string())
        .number("SHARE", move |(_, check)| {
            Some(check.failed as f64 / all(check).max(1) as f64)
        })
        .grid()
}

/// What each candidate costs at part load, over all load levels.
pub(crate) fn load_curves(view: &View<'_>) -> Option<Grid> {
    let unit = view.unit.to_uppercase();
    let curves = view.status.sweep.iter();
    let curves = curves.filter_map(|it| Some((it, it.load_curve.as_ref()?)));
    Table::of(curves)
        .text("CANDIDATE", |(it, _)| it.candidate.clone())
        .figure(format!("{unit}S/J AT ALL LEVELS"), |(_, it)| {
            it.requests_per_joule
        })
        .figure(format!("MARGINAL mJ/{unit}"), |(_, it)| {
            milli(it.marginal_joules_per_request)
        })
        .figure("IDLE W", |(_, it)| it.idle_watts)
        .figure("IDLE SHARE", |(_, it)| it.idle_share)
        .figure("PROPORTIONALITY", |(_, it)| it.proportionality)
        .grid()
}

/// The percentiles of each candidate's latency, each with the range of the single trials.
fn latencies(view: &View<'_>) -> Option<Grid> {
    let results = view.results.iter().filter(|it| !it.latency.is_empty());
    // A candidate of fewer requests has fewer percentiles. They begin with the same ones.
    let most = results.clone().max_by_key(|it| it.latency.len())?;
    let mut table = view.table(results.map(|it| (it, ())));
    for (index, percentile) in most.latency.iter().enumerate() {
        let heading = format!("P{} ms", percentile.percentile);
        let cell =
            move |latency: &[LatencyPercentile]| latency.get(index).map_or_else(dash, with_range);
        table = table.right(heading, move |(it, ())| cell(&it.latency));
    }
    table.grid()
}

fn with_range(it: &LatencyPercentile) -> String {
    let [value, least, most] =
        [it.milliseconds, it.least_milliseconds, it.most_milliseconds].map(text::number);
    format!("{value} ({least}–{most})")
}
