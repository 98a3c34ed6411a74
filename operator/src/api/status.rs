//! The status of a `FrugalityBenchmark`: summaries only; raw data live in the ledger.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DecidingFigure;

/// The answer to the benchmark's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// Every budget is met, or there are none.
    Pass,
    /// A budget is exceeded.
    Fail,
    /// The data do not decide; more blocks might.
    Inconclusive,
    /// The experiment as written can't give a trustworthy figure.
    Invalid,
    /// Something did not work: image, database, candidate, injector.
    Error,
}

/// What the operator knows about the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrugalityBenchmarkStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Complete`, `Succeeded`, `Ready`, `Reconciling` and `Stalled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Pass, Fail, Inconclusive, Invalid or Error; absent while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Candidate that beats every other by an interval that excludes 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// For people: what is being done. Never read by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// ID of the run: a hash of the benchmark's UID and of the fields that affect measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Node that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_node: Option<String>,
    /// Node that injects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injector_node: Option<String>,
    /// Whether injector and servers shared a node: gross and net joules then include the injector's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_node: Option<bool>,
    /// How far the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Where the node's power came from: `Metered` or `Modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// Meter and source of the power, for example `frugality-meter 0.1.0 board-model pi-2b`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// Figure that decided winner and joule budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// Figures by point and candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["point", "candidate"]))]
    pub results: Vec<CandidateResult>,
    /// The winner, or else the candidate of the least figure, against each other one, by the deciding figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub comparisons: Vec<Comparison>,
    /// What became of each limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub budgets: Vec<BudgetResult>,
    /// SHA-256 over the ledger entries that the figures rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_digest: Option<String>,
    /// The same as text, for `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Valid trials so far.
    pub trials_done: i32,
    /// Trials that the verdict needs.
    pub trials_planned: i32,
    /// Void attempts so far, over all candidates.
    pub void_attempts: i32,
    /// The attempt in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// A figure with its 95 % interval over trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Geometric mean over the trials (for the error ratio: arithmetic mean).
    pub value: f64,
    /// Lower end of the 95 % t-interval.
    pub lower: f64,
    /// Upper end of the 95 % t-interval.
    pub upper: f64,
}

/// Figures of one candidate at one point. A figure that can't be trusted is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateResult {
    /// Load settings, for example `c4-max`.
    pub point: String,
    /// Candidate.
    pub candidate: String,
    /// Trials that the figures rest on.
    pub trials: i32,
    /// Attempts of this candidate that were void.
    pub void_attempts: i32,
    /// Successful requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Figure>,
    /// Mean milliseconds of a successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds_per_request: Option<Figure>,
    /// Node energy in the window, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gross_joules_per_request: Option<Figure>,
    /// Gross less the idle baseline, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_joules_per_request: Option<Figure>,
    /// Share of the node's energy attributed by CPU time to the boundary's pods, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_joules_per_request: Option<Figure>,
    /// CPU milliseconds of candidate and database per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milliseconds_per_request: Option<Figure>,
    /// Share of requests without an expected answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ratio: Option<Figure>,
    /// Largest working set of the candidate's pod seen in any measured window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
    /// Why a figure is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub withheld: Vec<String>,
}

/// One candidate against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Load settings.
    pub point: String,
    /// Candidate.
    pub candidate: String,
    /// The other.
    pub against: String,
    /// Candidate's figure over the other's, paired by block: below 1 is less energy.
    pub ratio: Figure,
    /// Whether the interval excludes 1.
    pub separated: bool,
}

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetOutcome {
    /// The whole interval keeps to the limit.
    Met,
    /// The whole interval breaks the limit.
    Exceeded,
    /// The limit lies inside the interval.
    Undecided,
    /// There is no trustworthy figure to compare.
    Withheld,
}

/// One limit and the figure beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResult {
    /// Candidate.
    pub candidate: String,
    /// Name of the limit's field.
    pub limit: String,
    /// The limit as a number, in the unit of its name.
    pub limit_value: f64,
    /// The figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// What became of it.
    pub outcome: BudgetOutcome,
    /// The same as a sentence with numbers.
    pub message: String,
}

/// Texts for `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Columns {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
