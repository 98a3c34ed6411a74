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
    let is_edited = benchmark.metadata.generation != current.observed_generation;
    // Without an edit, another release of the operator judges, or a user changed the ledger. A run without figures has
    // another end if the cluster changes: for example, a meter was added.
    let is_judged_again =
        verdict.is_some() && current.verdict.is_some_and(|it| it != Verdict::Invalid);
    let is_same = (verdict, winner, deciding)
        == (
            current.verdict,
            current.winner.as_deref(),
            current.deciding_figure,
        );
    if current.run.as_deref() != Some(run) || ((is_edited || is_judged_again) && !is_same) {
        with_current(current)
    } else {
        current.history.clone()
    }
}

/// The note that the deciding figure was chosen after the trials were judged by another one. Several figures are several
/// tries, but the level of the intervals counts only runs.
#[must_use]
pub fn another_figure_note(
    history: &[PastVerdict],
    run: &str,
    deciding: Option<DecidingFigure>,
) -> Option<String> {
    let now = deciding?;
    let of_run = history.iter().filter(|past| past.run == run);
    let mut figures = of_run.filter_map(|past| past.deciding_figure);
    let before = figures.find(|before| *before != now)?;
    Some(format!(
        "The trials were also judged by {} joules before they were judged by {} joules. The confidence of the intervals does not count this as another try.",
        before.word(),
        now.word()
    ))
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
