//! Earlier verdicts: of earlier runs, and of this run before an edit.

use crate::{
    api::{
        Boundary, DecidingFigure, FrugalityBenchmark, FrugalityBenchmarkSpec,
        FrugalityBenchmarkStatus, PastVerdict, Verdict,
    },
    time,
};

/// Most verdicts kept. They are at most 3 kB together.
const MAX_ENTRIES: usize = 10;

/// The joules that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidingJoules {
    /// Their kind.
    pub figure: DecidingFigure,
    /// [`Boundary::Candidate`] if they leave out the run's database.
    pub boundary: Option<Boundary>,
}

impl DecidingJoules {
    /// The joules of this kind in a benchmark with this spec.
    #[must_use]
    pub fn of(figure: DecidingFigure, spec: &FrugalityBenchmarkSpec) -> Self {
        let is_of_pods = matches!(
            figure,
            DecidingFigure::Attributed | DecidingFigure::NetAttributed
        );
        let has_choice = is_of_pods && spec.database.is_some();
        let boundary = Some(spec.energy.boundary).filter(|it| *it == Boundary::Candidate);
        Self {
            figure,
            boundary: boundary.filter(|_| has_choice),
        }
    }

    fn current(status: &FrugalityBenchmarkStatus) -> Option<Self> {
        Some(Self {
            figure: status.deciding_figure?,
            boundary: status.boundary,
        })
    }

    fn past(verdict: &PastVerdict) -> Option<Self> {
        Some(Self {
            figure: verdict.deciding_figure?,
            boundary: verdict.boundary,
        })
    }

    fn words(self) -> String {
        let without = self.boundary.map_or("", |_| " without the database");
        format!("{} joules{without}", self.figure.word())
    }
}

/// What a status shows of a run's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownResult<'a> {
    /// Verdict.
    pub verdict: Option<Verdict>,
    /// Name of the winner.
    pub winner: Option<&'a str>,
    /// Whether all candidates are shown to be equal.
    pub tie: Option<bool>,
    /// The joules that decided.
    pub deciding: Option<DecidingJoules>,
}

/// The history of a new status that shows this of this run. The result of the current status joins the history if it no
/// longer stands. Only this is read from the status, because the ledger does not hold the budgets by which a run was judged.
#[must_use]
pub fn history(
    benchmark: &FrugalityBenchmark,
    run: &str,
    shown: &ShownResult<'_>,
) -> Vec<PastVerdict> {
    let Some(current) = benchmark.current_status() else {
        return Vec::new();
    };
    let is_edited = benchmark.metadata.generation != current.observed_generation;
    // Without an edit, another release of the operator judges, or a user changed the ledger. A run without figures has
    // another end if the cluster changes: for example, a meter was added.
    let is_judged_again =
        shown.verdict.is_some() && current.verdict.is_some_and(|it| it != Verdict::Invalid);
    let before = ShownResult {
        verdict: current.verdict,
        winner: current.winner.as_deref(),
        tie: current.tie,
        deciding: DecidingJoules::current(current),
    };
    if current.run.as_deref() != Some(run) || ((is_edited || is_judged_again) && before != *shown) {
        with_current(current)
    } else {
        current.history.clone()
    }
}

/// The note that the deciding joules were chosen after the trials were judged by others. Several figures are several
/// tries, but the level of the intervals counts only runs.
#[must_use]
pub fn other_joules_note(
    history: &[PastVerdict],
    run: &str,
    deciding: Option<DecidingJoules>,
) -> Option<String> {
    let now = deciding?;
    let of_run = history.iter().filter(|past| past.run == run);
    let mut joules = of_run.filter_map(DecidingJoules::past);
    let before = joules.find(|before| *before != now)?;
    Some(format!(
        "The trials were also judged by {} before they were judged by {}. The confidence of the intervals does not count this as another try.",
        before.words(),
        now.words()
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
            tie: current.tie,
            ratio: columns.ratio,
            deciding_figure: current.deciding_figure,
            boundary: current.boundary,
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
