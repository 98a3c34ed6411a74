//! Verdicts that the status no longer tells: of earlier runs, and of this one before an edit.

use crate::{
    api::{DecidingFigure, FrugalityBenchmark, FrugalityBenchmarkStatus, PastVerdict, Verdict},
    time,
};

/// Verdicts that are kept; they are at most 3 kB together.
const MAX_ENTRIES: usize = 10;

/// The history of a status that is about to tell a verdict of a run, a winner and by which figure, or
/// none yet. What the status told before goes into it once it no longer stands. This alone is read from the
/// status: the ledger does not tell by which budgets a run was judged.
#[must_use]
pub fn history(
    benchmark: &FrugalityBenchmark,
    run: &str,
    verdict: Option<Verdict>,
    winner: Option<&str>,
    deciding: Option<DecidingFigure>,
) -> Vec<PastVerdict> {
    let Some(told) = benchmark.current_status() else {
        return Vec::new();
    };
    // Without an edit it is the cluster that has changed: there was no meter, say, and now there is one.
    let is_edited = benchmark.metadata.generation != told.observed_generation;
    let is_same =
        (verdict, winner, deciding) == (told.verdict, told.winner.as_deref(), told.deciding_figure);
    if told.run.as_deref() != Some(run) || (is_edited && !is_same) {
        with_told(told)
    } else {
        told.history.clone()
    }
}

/// The history with the verdict that a status tells, if it tells one of a run.
#[must_use]
pub fn with_told(told: &FrugalityBenchmarkStatus) -> Vec<PastVerdict> {
    let past = || {
        let columns = told.columns.clone().unwrap_or_default();
        let end = told.end();
        Some(PastVerdict {
            run: told.run.clone()?,
            verdict: told.verdict?,
            reason: columns.reason,
            winner: told.winner.clone(),
            ratio: columns.ratio,
            deciding_figure: told.deciding_figure,
            provenance: told.provenance.clone(),
            ended_at: end.and_then(|end| time::whole_second(end.last_transition_time.0)),
            generation: told.observed_generation,
        })
    };
    past()
        .into_iter()
        .chain(told.history.iter().cloned())
        .take(MAX_ENTRIES)
        .collect()
}
