//! The end of a run, with its figures.

use crate::{
    api::{
        self, BudgetResult, CandidateResult, Comparison, DecidingFigure, Figure, InjectorLimits,
        NoiseFloor, Reason, SweepResult, Verdict,
    },
    plan::verdict::not_compared::NotCompared,
    text,
};
use frugality_measure::{model::LinearModel, reading::Provenance};

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reason code. It is a text, because an entry of the ledger may have the code of another version.
    pub reason: String,
    /// For people, with numbers.
    pub message: String,
    /// The figures, unless the verdict withholds them.
    pub figures: Option<Box<Figures>>,
}

/// Parts of the sentence about one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetText {
    /// The figure and the limit: `0.643 gross mJ/request (limit 0.02 J = 20 mJ)`.
    pub clause: String,
    /// What follows from it, in sentences.
    pub remarks: Vec<String>,
    /// Whether the injector limited the figure.
    pub is_by_injector: bool,
}

/// The candidate that a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Candidate.
    pub candidate: String,
    /// Load settings, if the message is about one point.
    pub point: Option<String>,
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The candidate that the message names first.
    pub about: Option<Subject>,
    /// By point and candidate.
    pub results: Vec<CandidateResult>,
    /// At each point: the winner against each other candidate. Without a winner, the candidate of the least figure.
    pub comparisons: Vec<Comparison>,
    /// By limit.
    pub budgets: Vec<BudgetResult>,
    /// The words for each of [`Self::budgets`].
    pub budget_texts: Vec<BudgetText>,
    /// Candidate that beats every other at every point.
    pub winner: Option<String>,
    /// Whether different candidates are shown to win at different points.
    pub depends_on_load: bool,
    /// Whether the winner depends on the board, at one point at least.
    pub depends_on_board: bool,
    /// Number of judged results, from the first.
    pub judged: usize,
    /// Whether all candidates are shown to be equal at every point.
    pub tie: bool,
    /// The best point of each candidate, if there are several points.
    pub sweep: Vec<SweepResult>,
    /// Why candidates were not compared.
    pub not_compared: Option<NotCompared>,
    /// The look that gave the figures.
    pub look: Option<api::Look>,
    /// The difference of the control from itself.
    pub noise_floor: Option<NoiseFloor>,
    /// Runs with the same settings, including this one.
    pub tries: usize,
    /// Facts that a reader of the figures needs.
    pub notes: Vec<String>,
    /// The sentence of the message that says that power is modelled, if it is.
    pub caveat: Option<String>,
    /// Deciding figure: from the spec, or net attributed joules if the injector shared the node.
    pub deciding: Option<DecidingFigure>,
    /// Source of the power: the worst of all trials.
    pub provenance: Option<Provenance>,
    /// Meter and source.
    pub meter: Option<String>,
    /// The model of the power, if all trials have the same.
    pub model: Option<LinearModel>,
    /// SHA-256 over the ledger entries behind the figures.
    pub ledger_digest: String,
}

impl Figures {
    /// The point as ` at POINT`; empty if there is only one point.
    #[must_use]
    pub fn at(&self, point: &str) -> String {
        let is_elsewhere = |result: &CandidateResult| result.point != point;
        text::at(point, self.results.iter().any(is_elsewhere))
    }

    /// The judged results: all except the results of the point at which errors ended a sweep.
    #[must_use]
    pub fn judged(&self) -> &[CandidateResult] {
        &self.results[..self.judged.min(self.results.len())]
    }

    /// A candidate without the deciding figure. If the injector limited the candidate's rate and there are budgets, the
    /// budgets' results say more.
    pub(super) fn undecidable(&self) -> Option<&CandidateResult> {
        let deciding = self.deciding?;
        self.judged().iter().find(|result| {
            let is_said_elsewhere = is_rate_limited(result)
                && (!self.budgets.is_empty() || self.not_compared.is_some());
            deciding_figure(result, deciding).is_none() && !is_said_elsewhere
        })
    }
}

/// An end of a run without figures.
#[must_use]
pub fn without_figures(verdict: Verdict, reason: Reason, message: impl Into<String>) -> Judgement {
    Judgement {
        verdict,
        reason: reason.as_str().to_owned(),
        message: message.into(),
        figures: None,
    }
}

/// The deciding figure.
#[must_use]
pub fn deciding_figure(result: &CandidateResult, deciding: DecidingFigure) -> Option<Figure> {
    result.joules(deciding)
}

/// Whether the injector limited a candidate's rate, and with it the joules. A limit of the times alone withholds no joules.
pub(super) fn is_rate_limited(result: &CandidateResult) -> bool {
    let injector = result.injector.as_ref();
    injector.is_some_and(|injector| injector.limits == Some(InjectorLimits::Rate))
}
