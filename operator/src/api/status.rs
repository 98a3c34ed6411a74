//! The status of a `FrugalityBenchmark`. It has summaries only; the ledger has the raw data.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    budget_result::BudgetResult,
    candidate_result::CandidateResult,
    comparison::{Comparison, NoiseFloor},
    condition,
    figure::{Boundary, DecidingFigure, Figure},
    sweep_result::SweepResult,
};

/// The result of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// Every budget is met.
    Pass,
    /// There are no budgets. The figures are reported, nothing is judged, and no gate opens.
    Reported,
    /// At least one budget is exceeded.
    Fail,
    /// The data do not decide. More blocks might.
    Inconclusive,
    /// The experiment as specified can't give a trustworthy figure.
    Invalid,
    /// Something did not work: image, database, candidate or injector.
    Error,
}

/// State and figures of the benchmark, written by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrugalityBenchmarkStatus {
    /// Generation of the spec that this status describes. -1 until the operator has seen the benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the types `Complete`, `Succeeded`, `Ready`, `Reconciling` and `Stalled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Verdict: Pass, Reported, Fail, Inconclusive, Invalid or Error; absent while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Name of the candidate that beats every other candidate at every point, with intervals that exclude 1. With
    /// modelled power this holds on every board, or on every board that the stated accuracy of the watts allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// True if all candidates are shown to differ by less than `energy.tieWithin`. There is then no winner. Absent
    /// otherwise. If winner and tie are both absent, no candidate is shown to be better than all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<bool>,
    /// Current activity, for people. The operator never reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// ID of the run: a hash of the benchmark's UID and of the fields that affect measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of the measured node; of all measured nodes, if candidates have their own nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_node: Option<String>,
    /// Name of the node that runs the injector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injector_node: Option<String>,
    /// Whether injector and servers shared a node. If true, gross and net joules are withheld, because they
    /// include the injector's energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_node: Option<bool>,
    /// Progress of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Source of the node's power: `Metered` or `Modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// Meter and source of the power, for example `frugality-meter 0.1.0 board-model pi-2b`. With several measured
    /// nodes, it lists each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// Kind of joules that decided winner and joule budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// `Candidate` if the joules that decided leave out the run's database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    /// Look at which the run ended, with the confidence of all intervals in this status. Without `trials.looks`
    /// there is one look, after all blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// Difference of the control from itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<NoiseFloor>,
    /// Number of runs with the same settings in the ledger, this run included. Above 1, the verdict is one of
    /// several tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<i32>,
    /// Notes that a reader of the figures must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub notes: Vec<String>,
    /// Figures by point and candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["point", "candidate"]))]
    pub results: Vec<CandidateResult>,
    /// Points of a sweep at which each candidate does best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["candidate"]))]
    pub sweep: Vec<SweepResult>,
    /// Comparisons by the deciding figure. At each point, the winner against each other candidate; without a
    /// winner, the candidate with the lowest figure against each other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub comparisons: Vec<Comparison>,
    /// Result of each limit. In a sweep, the result at the point that decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 178))]
    pub budgets: Vec<BudgetResult>,
    /// Comparison with the release before, if the spec asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineResult>,
    /// SHA-256 over the ledger entries that the figures come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_digest: Option<String>,
    /// Verdicts that are no longer valid, newest first. They come from earlier runs, or from this run before an
    /// edit of its budgets or deciding figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<PastVerdict>,
    /// Texts of the columns in `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

impl FrugalityBenchmarkStatus {
    /// Whether the shown ratios have more than the confidence of claims: without a winner, each of several has a part of the
    /// error.
    #[must_use]
    pub fn has_stricter_ratios(&self) -> bool {
        let names: BTreeSet<&str> = self
            .results
            .iter()
            .map(|it| it.candidate.as_str())
            .collect();
        self.winner.is_none() && names.len() > 2
    }

    /// The condition for the end of the run, if the run has ended.
    #[must_use]
    pub fn end(&self) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|c| c.type_ == condition::COMPLETE && c.status == "True")
    }
}

/// `observedGeneration` of the status that the API server fills in until the operator writes one. Tools that
/// follow kstatus (Flux, Helm) treat an object without a status as ready, and an object with this status as in
/// progress.
pub const NOT_SEEN: i64 = -1;

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Number of valid trials so far.
    pub trials_done: i32,
    /// Number of trials that the verdict needs.
    pub trials_planned: i32,
    /// Number of void attempts so far, over all candidates.
    pub void_attempts: i32,
    /// The current attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Estimated seconds of measuring left, from the beginning of the current attempt, without time in the queue.
    /// Absent after the end, and while the time of the requests is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_seconds: Option<i64>,
    /// Estimated end of the last trial (RFC 3339). Present if the run has its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_end: Option<String>,
}

/// A verdict that is no longer the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastVerdict {
    /// ID of the run.
    #[schemars(length(max = 63))]
    pub run: String,
    /// Verdict of the run.
    pub verdict: Verdict,
    /// Reason code of the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub reason: Option<String>,
    /// Name of the winner, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15))]
    pub winner: Option<String>,
    /// True if all candidates were shown to differ by less than `energy.tieWithin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<bool>,
    /// Ratio of the winner's figure to the next best, with its interval, as shown then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub ratio: Option<String>,
    /// Kind of joules that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// `Candidate` if the joules that decided left out the run's database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    /// Source of the node's power: `Metered` or `Modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub provenance: Option<String>,
    /// Time when the run ended (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ended_at: Option<String>,
    /// Generation of the spec that was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

/// One of the numbers of blocks after which a run is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// Number of the look, from 1.
    pub number: i32,
    /// Number of looks planned.
    pub of: i32,
    /// Number of blocks at each point that the look uses.
    pub blocks: i32,
    /// Confidence of each interval of a candidate's own figures, as a share. 0.95 for one look, more for each of
    /// several looks.
    pub confidence: f64,
    /// Confidence of each interval that decides a claim (a ratio or a budget), as a share. 0.9696 for the first
    /// try with one look, more for later tries and for each of several looks.
    #[serde(default)]
    pub claim_confidence: f64,
}

/// The comparison with the release before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaselineResult {
    /// Candidate that is compared.
    #[schemars(length(max = 15))]
    pub candidate: String,
    /// The baseline.
    pub baseline: ReleaseRatio,
    /// The anchor, if the spec names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<ReleaseRatio>,
    /// State of the promotion, if the spec asks for it and the verdict is Pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionState>,
    /// Why the candidate was not promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub not_promoted_because: Option<String>,
}

/// A release, and the candidate's figure divided by the release's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRatio {
    /// Name of the FrugalityBaseline.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Image of the release. Absent if there was no FrugalityBaseline of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Ratio of the candidate's deciding figure to the release's figure, paired by block. Its interval has the
    /// confidence `look.claimConfidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_ratio: Option<Figure>,
    /// The margin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_energy_ratio: Option<f64>,
}

/// State of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PromotionState {
    /// The operator is writing the FrugalityBaseline.
    Pending,
    /// The candidate has become the baseline.
    Promoted,
    /// The operator did not change the FrugalityBaseline.
    NotPromoted,
}

/// Texts of the columns in `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Columns {
    /// The verdict; while running the reason code of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The winner's name. Without a winner: `tie`, `depends on load`, `depends on board`, or all candidates that no
    /// comparison shows to be beaten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// The leading candidate's energy divided by that of the next best candidate that `winner` does not name, with its
    /// interval. If `winner` names all candidates, by that of the second of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<String>,
    /// Energy per successful request, with the kind of joules. `~` marks modelled energy without an interval. With
    /// several candidates, the first figure of the row, usually this one, begins with the name of its candidate. The
    /// winner's name is left out. In a sweep, the name of the candidate that `winner` names first is left out too. The
    /// figure then ends with the point, such as `@c16`, and gross energy has no kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<String>,
    /// Successful requests per second, or cycles, executions or units of work. `energy` names the unit; without it,
    /// this text does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Mean milliseconds per successful request. With a unit if it is not per request, and `/exec` if the other figures
    /// are per unit of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// The source of the node's power: `metered` or `modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<String>,
    /// Valid trials and planned trials, while running with the time left: `3/20 ~25m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<String>,
    /// The candidate of the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The point of a sweep at which the figures were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// CPU milliseconds per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// About how much time of measuring is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Reason code of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The state in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
