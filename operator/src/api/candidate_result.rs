//! The figures of one candidate in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    batch::BatchResult,
    cost_result::CostPerMillion,
    figure::{DecidingFigure, Figure},
    load::Arrivals,
    scenario::CycleResult,
};

/// Figures of one candidate at one point. An untrustworthy figure is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateResult {
    /// Load settings, for example `c4-max`.
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Number of trials that the figures come from.
    pub trials: i32,
    /// Number of void attempts of this candidate at this point.
    pub void_attempts: i32,
    /// Successful requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Figure>,
    /// Mean time of a successful request, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds_per_request: Option<Figure>,
    /// Distribution of the latencies, over the requests of all trials; of cycles and executions only the
    /// successful ones. Absent if a trial of single requests had errors, because Fortio's histogram does not
    /// separate errors from successes. Also absent if cycles were dropped, or if a histogram did not fit into the
    /// injector's report. A percentile with fewer than ten requests beyond it is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub latency: Vec<LatencyPercentile>,
    /// When the requests behind `latency` were sent. `Closed`: after an answer. No percentile includes the time
    /// that requests wait behind a slow one (coordinated omission). `Open`: when they were due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Results of the cycles, with a scenario. The other figures count each cycle as a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CycleResult>,
    /// Results of the executions, with a batch. The other figures count each execution, or each unit of its work,
    /// as a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchResult>,
    /// Gross joules per successful request: node energy in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gross_joules_per_request: Option<Figure>,
    /// Net joules per successful request: gross minus the idle baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_joules_per_request: Option<Figure>,
    /// Attributed joules per successful request: share of the node's energy for the boundary's pods, by CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_joules_per_request: Option<Figure>,
    /// Net attributed joules per successful request: the boundary's share of net energy, by CPU time above idle.
    /// Present only if it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_attributed_joules_per_request: Option<Figure>,
    /// Energy-delay product, in joule-seconds: joules per successful request, by the deciding figure, times mean seconds
    /// per request. Only with `load.sweep.levels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_delay_joule_seconds: Option<Figure>,
    /// CPU time of the boundary's pods per successful request, in milliseconds. The interval includes the timing
    /// error at the window's edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milliseconds_per_request: Option<Figure>,
    /// Share of requests without an expected answer, from 0 to 1. Its interval is the wider of two: over the
    /// trials, or over all requests together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ratio: Option<Figure>,
    /// Node of the candidate, if candidates have their own nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeResult>,
    /// Money per million successful requests, by the costs of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<CostPerMillion>,
    /// Grams of CO₂ equivalent per million successful requests, by `spec.costs.carbon`: the SCI of ISO/IEC
    /// 21031:2024, (E·I + M) per R, with R a million requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carbon: Option<CostPerMillion>,
    /// Part of each server in the candidate's figures, if the candidate has backends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub workloads: Vec<WorkloadResult>,
    /// CPU use of the candidate's pods in the idle baselines, in CPUs: mean of the trials. Above 0.03, net joules
    /// are withheld, because the baselines would subtract this work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cpus: Option<f64>,
    /// Largest working set of all the candidate's pods together in any measured window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
    /// Growth of the candidate's working set in the measured window, in bytes per hour: mean of the trials'
    /// slopes. Present only if every window has at least ten minutes, because caches fill in the first ten, and no
    /// container was restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_growth_bytes_per_hour: Option<Figure>,
    /// Growth of the candidate's mean latency in the measured window, in milliseconds per hour: mean of the
    /// trials' slopes. Present only if every window has at least ten minutes and no container was restarted. Also,
    /// the spec must announce a long window: ten minutes by `load.duration`, ten minutes by `load.requests` over
    /// `load.rate`, or a million requests at `Max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_drift_milliseconds_per_hour: Option<Figure>,
    /// CPU use of the injector and of the measured node, and whether the injector limited the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injector: Option<InjectorResult>,
    /// Number of restarts of the candidate's containers in these trials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: i32,
    /// Reasons why figures are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub withheld: Vec<String>,
}

impl CandidateResult {
    /// Joules per request of this kind.
    #[must_use]
    pub fn joules(&self, kind: DecidingFigure) -> Option<Figure> {
        match kind {
            DecidingFigure::Gross => self.gross_joules_per_request,
            DecidingFigure::Net => self.net_joules_per_request,
            DecidingFigure::Attributed => self.attributed_joules_per_request,
            DecidingFigure::NetAttributed => self.net_attributed_joules_per_request,
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whether the injector or the candidate limited the rate. Values are medians over the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectorResult {
    /// Share of the injector's CPU in use in the measured window, by the injector or by other programs, from 0 to
    /// 1. It is the largest of three shares: all of the injector's CPUs, the busiest one, and its CPU limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// Share of the measured node's CPUs in use, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cpu_share: Option<f64>,
    /// What the injector limited; absent if it limited nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<InjectorLimits>,
}

/// What the injector limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InjectorLimits {
    /// The rate, and every figure that depends on it. The candidate may reach a higher rate.
    Rate,
    /// The times of requests at a fixed rate that was reached. They include waiting in the injector.
    Times,
}

/// Part of one server in the candidate's figures. If the boundary includes a database, the database is in no part.
/// An untrustworthy figure is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadResult {
    /// Name of the server: the candidate's name for its own server, else the backend's name.
    pub name: String,
    /// Attributed joules of the server's pods per successful request of the candidate: share of the node's energy,
    /// by CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_joules_per_request: Option<Figure>,
    /// CPU time of the server's pods per successful request of the candidate, in milliseconds. The interval
    /// includes the timing error at the window's edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milliseconds_per_request: Option<Figure>,
    /// Largest working set of all the server's pods together in any measured window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
}

/// The node of a candidate, if candidates have their own nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Name of the node.
    pub name: String,
    /// Mean power of the node in the idle baselines, in watts. The candidate is up and gets no requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_watts: Option<Figure>,
    /// Mean power of the node in the measured windows, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_watts: Option<Figure>,
}

/// A latency that a given share of the requests stayed below. The ledger has the whole histogram of each trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyPercentile {
    /// Share of the requests, in percent: 50 for the median.
    pub percentile: f64,
    /// Latency in milliseconds, over the requests of all trials, interpolated in the histograms' buckets. The time
    /// of a request begins when it is sent. `arrivals` shows what this excludes.
    pub milliseconds: f64,
    /// Lowest value of a single trial, in milliseconds.
    pub least_milliseconds: f64,
    /// Highest value of a single trial, in milliseconds.
    pub most_milliseconds: f64,
}
