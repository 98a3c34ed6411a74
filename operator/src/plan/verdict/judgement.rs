//! How a run ended, with its figures.

use crate::{
    api::{
        self, BudgetResult, CandidateResult, Comparison, DecidingFigure, Figure, NoiseFloor,
        SweepResult, Verdict,
    },
    plan::verdict::not_compared::NotCompared,
    text,
};
use frugality_measure::{model::LinearModel, reading::Provenance};

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reason code.
    pub reason: String,
    /// For people, with numbers.
    pub message: String,
    /// The figures, unless the verdict withholds them.
    pub figures: Option<Box<Figures>>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By point and candidate.
    pub results: Vec<CandidateResult>,
    /// At each point the winner, or else the candidate of the least figure, against each other one.
    pub comparisons: Vec<Comparison>,
    /// By limit.
    pub budgets: Vec<BudgetResult>,
    /// Candidate that beats every other at every point.
    pub winner: Option<String>,
    /// Whether different candidates are shown to win at different points.
    pub depends_on_load: bool,
    /// Whether it is the board that decides who wins, in one point at least.
    pub depends_on_board: bool,
    /// How many of the results are judged, from the first.
    pub judged: usize,
    /// Whether all candidates are shown to be equal at every point.
    pub tie: bool,
    /// Where each candidate does best, of several points.
    pub sweep: Vec<SweepResult>,
    /// Why candidates were not compared, if they were not.
    pub not_compared: Option<NotCompared>,
    /// The look that the figures are of.
    pub look: Option<api::Look>,
    /// What the control differs from itself by.
    pub noise_floor: Option<NoiseFloor>,
    /// Runs that measured the same, this one included.
    pub tries: usize,
    /// What a reader must know beside the figures.
    pub notes: Vec<String>,
    /// Figure that decides: the spec's, or net attributed joules if the injector shared the node.
    pub deciding: Option<DecidingFigure>,
    /// Where the power came from: the worst of all trials.
    pub provenance: Option<Provenance>,
    /// Meter and source.
    pub meter: Option<String>,
    /// The model of the power, if all trials have one and the same.
    pub model: Option<LinearModel>,
    /// SHA-256 over the entries that count.
    pub ledger_digest: String,
}

impl Figures {
    /// Where something is; at one point only, that goes without saying.
    #[must_use]
    pub fn at(&self, point: &str) -> String {
        let is_elsewhere = |result: &CandidateResult| result.point != point;
        text::at(point, self.results.iter().any(is_elsewhere))
    }

    /// The results that are judged: all, but for the point at which errors ended a sweep.
    #[must_use]
    pub fn judged(&self) -> &[CandidateResult] {
        &self.results[..self.judged.min(self.results.len())]
    }

    /// A candidate without the figure that decides. If the injector limited it, budgets that it keeps to all the same,
    /// or that are withheld, say more.
    pub(super) fn undecidable(&self) -> Option<&CandidateResult> {
        let deciding = self.deciding?;
        self.judged().iter().find(|result| {
            let is_told_otherwise =
                is_limited(result) && (!self.budgets.is_empty() || self.not_compared.is_some());
            deciding_figure(result, deciding).is_none() && !is_told_otherwise
        })
    }
}

/// An end without figures.
#[must_use]
pub fn without_figures(
    verdict: Verdict,
    reason: impl AsRef<str>,
    message: impl Into<String>,
) -> Judgement {
    Judgement {
        verdict,
        reason: reason.as_ref().to_owned(),
        message: message.into(),
        figures: None,
    }
}

/// The figure that decides.
#[must_use]
pub fn deciding_figure(result: &CandidateResult, deciding: DecidingFigure) -> Option<Figure> {
    match deciding {
        DecidingFigure::Gross => result.gross_joules_per_request,
        DecidingFigure::Net => result.net_joules_per_request,
        DecidingFigure::Attributed => result.attributed_joules_per_request,
        DecidingFigure::NetAttributed => result.net_attributed_joules_per_request,
    }
}

/// Whether the injector limited a candidate's figures.
pub(super) fn is_limited(result: &CandidateResult) -> bool {
    let injector = result.injector.as_ref();
    injector.is_some_and(|injector| injector.limits.is_some())
}
