//! Earlier verdicts: of earlier runs, and of this run before an edit.

use crate::{
    api::{DecidingFigure, FrugalityBenchmark, FrugalityBenchmarkStatus, PastVerdict, Verdict},
    time,
};

/// Most verdicts kept. They are at most 3 kB together.
const MAX_ENTRIES: usize = 10;

/// The history of a new status with this run, verdict, winner and deciding figure. The verdict of the current status joins the
/// history if it no longer stands. Only this is read from the status, because the ledger does not hold the budgets by which a
/// run was judged.
#[must_use]
pub fn history(
    benchmark: &FrugalityBenchmark,
    run: &str,
    verdict: Option<Verdict>,
    winner: Option<&str>,
    deciding: Option<DecidingFigure>,
) -> Vec<PastVerdict> {
    let Some(current) = benchmark.current_status() else {
        return Vec::new();
    };
    // Without an edit, the cluster has changed: for example, a meter was added.
    let is_edited = benchmark.metadata.generation != current.observed_generation;
    let is_same = (verdict, winner, deciding)
        == (
            current.verdict,
            current.winner.as_deref(),
            current.deciding_figure,
        );
    if current.run.as_deref() != Some(run) || (is_edited && !is_same) {
        with_current(current)
    } else {
        current.history.clone()
    }
}

/// The history with the verdict of the current status, if that status has a verdict of a run.
#[must_use]
pub fn with_current(current: &FrugalityBenchmarkStatus) -> Vec<PastVerdict> {
    let past = || {
        let columns = current.columns.clone().unwrap_or_default();
        let end = current.end();
        Some(PastVerdict {
            run: current.run.clone()?,
            verdict: current.verdict?,
            reason: columns.reason,
            winner: current.winner.clone(),
            ratio: columns.ratio,
            deciding_figure: current.deciding_figure,
            provenance: current.provenance.clone(),
            ended_at: end.and_then(|end| time::whole_second(end.last_transition_time.0)),
            generation: current.observed_generation,
        })
    };
    past()
        .into_iter()
        .chain(current.history.iter().cloned())
        .take(MAX_ENTRIES)
        .collect()
}
