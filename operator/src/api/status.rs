//! The status of a `FrugalityBenchmark`. It has summaries only; the ledger has the raw data.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    batch::BatchResult,
    condition,
    figure::{DecidingFigure, Figure, seven_digits},
    load::{Arrivals, MAX_POINTS},
    scenario::CycleResult,
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
    /// otherwise. If winner and tie are both absent, the candidates are "not separated".
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
    #[schemars(length(max = 16))]
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
    /// Ratio of the winner's figure to the next best, with its interval, as shown then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub ratio: Option<String>,
    /// Kind of joules that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
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

/// Difference of a candidate from itself, from an A/A control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoiseFloor {
    /// Load settings; in a sweep, the point with the greatest share.
    #[serde(default)]
    pub point: String,
    /// Name of the candidate that took part twice.
    pub candidate: String,
    /// Ratio of the candidate's figure to its figure under the hidden name, paired by block. The expected value is
    /// 1.
    pub ratio: Figure,
    /// Distance from 1 to the farther end of the interval, as a share. With 0.02, ratios from 1/1.02 to 1.02 can't
    /// be distinguished from 1.
    pub share: f64,
}

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

/// The cost per million successful requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostPerMillion {
    /// Unit of all three costs: the currency, or `gCO2e`.
    #[serde(default)]
    pub unit: String,
    /// Total cost: energy and node. Its interval comes from the sums of the single trials.
    pub total: Figure,
    /// Cost of energy: gross joules per request × cost per joule. For carbon: E·I, the operational part.
    pub energy: f64,
    /// Cost of the node: its time × its cost over its lifetime. Each request takes 1/(requests/s) of the time. For
    /// carbon: M, the embodied part, for a node without other work.
    pub node: f64,
    /// Factors of the costs of energy and node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<CostTerms>,
}

/// The factors of a cost: kilowatt-hours × price per kilowatt-hour, and cost of the node × share of its lifetime.
/// ISO/IEC 21031:2024 names them E, I, TE and TS, with RS = 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostTerms {
    /// Gross energy of a million successful requests, in kilowatt-hours: E.
    pub kilowatt_hours: f64,
    /// Cost per kilowatt-hour from the spec. For carbon: its intensity, I.
    pub per_kilowatt_hour: f64,
    /// Cost of the node from the spec. For carbon: all its embodied carbon, TE.
    pub node: f64,
    /// Share of the node's lifetime that a million successful requests take, from 0: TS.
    pub lifetime_share: f64,
}

impl CostTerms {
    /// Cost of energy.
    #[must_use]
    pub fn of_energy(self) -> f64 {
        self.kilowatt_hours * self.per_kilowatt_hour
    }

    /// Cost of the node.
    #[must_use]
    pub fn of_node(self) -> f64 {
        self.node * self.lifetime_share
    }

    /// Cost of energy and node.
    #[must_use]
    pub fn sum(self) -> f64 {
        self.of_energy() + self.of_node()
    }

    /// The factors with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            kilowatt_hours: seven_digits(self.kilowatt_hours),
            lifetime_share: seven_digits(self.lifetime_share),
            ..self
        }
    }
}

impl CostPerMillion {
    /// The costs with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            total: self.total.rounded(),
            energy: seven_digits(self.energy),
            node: seven_digits(self.node),
            terms: self.terms.map(CostTerms::rounded),
            ..self
        }
    }
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

/// Points of a sweep at which a candidate does best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepResult {
    /// Name of the candidate.
    pub candidate: String,
    /// Point with the most successful requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_requests_per_second: Option<Optimum>,
    /// Point with the most successful requests per joule, by the deciding figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_requests_per_joule: Option<Optimum>,
    /// Knee: point with the most requests/s over ms/request. Beyond it, waiting grows faster than throughput (L.
    /// Kleinrock, ICC 1979, 43.1.1–43.1.10, calls this ratio power).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<Optimum>,
    /// Point with the least energy-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_energy_delay: Option<Optimum>,
    /// What the candidate costs at part load, with `load.sweep.levels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_curve: Option<LoadCurveResult>,
}

/// What a candidate costs at part load: the node's power over the rate, at all load levels together. Each figure is the
/// mean over the blocks. An untrustworthy figure is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadCurveResult {
    /// Successful requests per joule: the sum of the rates at all levels, divided by the sum of the node's watts at all
    /// levels and without load. Results are comparable only for equal levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_joule: Option<Figure>,
    /// Joules of one more request: the slope of the node's watts over the rate, by least squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marginal_joules_per_request: Option<Figure>,
    /// Mean power of the node in the idle baselines, in watts. The candidate is up and gets no requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_watts: Option<Figure>,
    /// Power without load as a share of the power at the level 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<Figure>,
    /// Energy proportionality: 1 if power is proportional to the rate, 0 if power does not depend on the rate (F.
    /// Ryckbosch, S. Polfliet and L. Eeckhout, Computer 44 (9), 2011, 69–72).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proportionality: Option<Figure>,
    /// Reasons why figures are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub withheld: Vec<String>,
}

impl LoadCurveResult {
    /// Its figures, with the digits of a status.
    #[must_use]
    pub fn rounded(self) -> Self {
        let rounded = |figure: Option<Figure>| figure.map(Figure::rounded);
        Self {
            requests_per_joule: rounded(self.requests_per_joule),
            marginal_joules_per_request: rounded(self.marginal_joules_per_request),
            idle_watts: rounded(self.idle_watts),
            idle_share: rounded(self.idle_share),
            proportionality: rounded(self.proportionality),
            withheld: self.withheld,
        }
    }
}

/// The point at which a figure is greatest; `results` has the figures there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Optimum {
    /// Load settings of the point, for example `c64-max`.
    pub point: String,
    /// All points that may be the best, this one included. The true best of the measured points is among them,
    /// with the confidence of all intervals in this status.
    #[schemars(length(max = MAX_POINTS))]
    pub among: Vec<String>,
}

/// Comparison of one candidate with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Load settings of the point, for example `c4-max`.
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Name of the other candidate.
    pub against: String,
    /// Ratio of the candidate's figure to the other's, paired by block. Below 1 means less energy. Its interval
    /// has the confidence `look.claimConfidence`. With modelled power, the ratio is by this node's watts. Its
    /// `expanded` interval then covers every board, or every board that the stated accuracy of the watts allows.
    pub ratio: Figure,
    /// Whether the deciding interval excludes 1 and the ratio is farther from 1 than the noise floor.
    pub separated: bool,
    /// Whether the ratio is shown to be within `energy.tieWithin` of 1; absent if the spec does not set
    /// `tieWithin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<bool>,
    /// Extremes of the ratio over all boards, for gross or attributed joules of modelled power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<BoardRange>,
    /// Boards for which the ratio is on one side of 1. Absent for measured power, and for net joules, in which the
    /// board cancels. Also absent if no board is shown to separate the two candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardVerdict>,
}

/// Boards on which one candidate needs less energy than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BoardVerdict {
    /// On every board whose power is a straight line of CPU use: both extremes exclude 1, on the same side.
    EveryBoard,
    /// On this board, by the stated accuracy of its watts.
    StatedAccuracy,
    /// It depends on the board: one extreme excludes 1, and the other does not, or excludes it on the other side.
    DependsOnBoard,
}

/// The extremes of a ratio of modelled joules. They bound the ratio on any board with the power idle watts + watts
/// per CPU × CPUs in use, with both watts at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardRange {
    /// Ratio on a board that draws only idle watts. For gross joules it is the ratio of the times per request.
    pub idle_only: Figure,
    /// Ratio on a board that draws power only for CPU time. For gross joules it is the ratio of the node's CPU
    /// times per request.
    pub cpu_only: Figure,
}

impl BoardRange {
    /// The extremes, the smaller first.
    #[must_use]
    pub fn values(&self) -> (f64, f64) {
        let (idle, cpu) = (self.idle_only.value, self.cpu_only.value);
        (idle.min(cpu), idle.max(cpu))
    }

    /// Ends of an interval that contains the intervals of both extremes.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let (idle, cpu) = (self.idle_only.bounds(), self.cpu_only.bounds());
        (idle.0.min(cpu.0), idle.1.max(cpu.1))
    }

    /// Whether the ratio is on one side of 1 on every board.
    #[must_use]
    pub fn is_separated(&self) -> bool {
        let (lower, upper) = self.bounds();
        upper < 1.0 || lower > 1.0
    }

    /// Whether the ratio is on one side of 1 on at least one board.
    #[must_use]
    pub fn is_separated_somewhere(&self) -> bool {
        [self.idle_only, self.cpu_only].iter().any(|extreme| {
            let (lower, upper) = extreme.bounds();
            upper < 1.0 || lower > 1.0
        })
    }

    /// The extremes with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            idle_only: self.idle_only.rounded(),
            cpu_only: self.cpu_only.rounded(),
        }
    }
}

/// Result of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetOutcome {
    /// The whole interval is within the limit.
    Met,
    /// The whole interval is beyond the limit.
    Exceeded,
    /// The limit lies inside the interval, or the excess is too small to count among several limits.
    Undecided,
    /// The limit is closer to 1 than the noise floor.
    BelowNoiseFloor,
    /// There is no trustworthy figure to compare.
    Withheld,
}

/// A limit and its figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResult {
    /// Load settings of the point at which the limit is decided. Empty for a figure of all load levels, and for a
    /// limit with `atMost` whose figure is withheld.
    #[serde(default)]
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Name of the limit's field in the budget.
    pub limit: String,
    /// Name of the other candidate of a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15))]
    pub against: Option<String>,
    /// Value of the limit, in the unit of its field.
    pub limit_value: f64,
    /// `atMost.p99Milliseconds` of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_milliseconds: Option<f64>,
    /// Figure that the limit applies to. Its interval has the confidence `look.claimConfidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// Result of the limit.
    pub outcome: BudgetOutcome,
    /// Result as a sentence with numbers.
    pub message: String,
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
    /// several candidates, the first figure of the row, usually this one, begins with the name of its candidate, unless
    /// that is the winner. In a sweep it ends with the point, such as `@c16`, and gross energy has no kind.
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
