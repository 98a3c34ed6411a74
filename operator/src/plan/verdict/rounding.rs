//! The figures as the status shows them.

use crate::{
    api::{BoardRange, CostPerMillion, Figure, LoadCurveResult},
    plan::verdict::judgement::Figures,
};

/// The figures with the digits of a status. Nothing is decided after this.
pub(super) fn rounded(mut figures: Figures) -> Figures {
    for result in &mut figures.results {
        for figure in [
            &mut result.requests_per_second,
            &mut result.milliseconds_per_request,
            &mut result.gross_joules_per_request,
            &mut result.net_joules_per_request,
            &mut result.attributed_joules_per_request,
            &mut result.net_attributed_joules_per_request,
            &mut result.energy_delay_joule_seconds,
            &mut result.cpu_milliseconds_per_request,
            &mut result.error_ratio,
            &mut result.memory_growth_bytes_per_hour,
            &mut result.latency_drift_milliseconds_per_hour,
        ] {
            *figure = figure.map(Figure::rounded);
        }
        if let Some(node) = &mut result.node {
            for figure in [&mut node.idle_watts, &mut node.load_watts] {
                *figure = figure.map(Figure::rounded);
            }
        }
        if let Some(batch) = &mut result.batch {
            batch.joules_per_execution = batch.joules_per_execution.map(Figure::rounded);
        }
        for workload in &mut result.workloads {
            for figure in [
                &mut workload.attributed_joules_per_request,
                &mut workload.cpu_milliseconds_per_request,
            ] {
                *figure = figure.map(Figure::rounded);
            }
        }
        for cost in [&mut result.money, &mut result.carbon] {
            *cost = cost.take().map(CostPerMillion::rounded);
        }
    }
    for sweep in &mut figures.sweep {
        sweep.load_curve = sweep.load_curve.take().map(LoadCurveResult::rounded);
    }
    for comparison in &mut figures.comparisons {
        comparison.ratio = comparison.ratio.rounded();
        comparison.boards = comparison.boards.map(BoardRange::rounded);
    }
    for budget in &mut figures.budgets {
        budget.figure = budget.figure.map(Figure::rounded);
    }
    figures
}
