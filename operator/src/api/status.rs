//! The status of a `FrugalityBenchmark`: summaries only; raw data live in the ledger.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    batch::BatchResult,
    benchmark::{DecidingFigure, FrugalityBenchmark},
    condition,
    load::{Arrivals, MAX_POINTS},
    scenario::CycleResult,
};

/// The answer to the benchmark's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// Every budget is met.
    Pass,
    /// There are no budgets: the figures are reported, and nothing was judged. It opens no gate.
    Reported,
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
    /// Generation of the spec that this status is about. -1 until the operator has seen the benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Complete`, `Succeeded`, `Ready`, `Reconciling` and `Stalled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Pass, Reported, Fail, Inconclusive, Invalid or Error; absent while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Candidate that beats every other by an interval that excludes 1, of several points at every one. Of modelled power on
    /// every board, or on those that the stated accuracy of its watts allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// True where all candidates are shown to differ by less than `energy.tieWithin`; there is no winner
    /// then. Absent otherwise: neither winner nor tie is "not separated".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<bool>,
    /// For people: what is being done. Never read by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// ID of the run: a hash of the benchmark's UID and of the fields that affect measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Node that is measured; all of them, where candidates have nodes of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_node: Option<String>,
    /// Node that injects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injector_node: Option<String>,
    /// Whether injector and servers shared a node: gross and net joules are withheld then, because the
    /// injector's are among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_node: Option<bool>,
    /// How far the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Where the node's power came from: `Metered` or `Modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// Meter and source of the power, for example `frugality-meter 0.1.0 board-model pi-2b`; of several measured
    /// nodes, that of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// Figure that decided winner and joule budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// The look at which the run ended, and the confidence of all intervals here. Without `trials.looks`
    /// there is one look, after all blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// What the control differs from itself by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<NoiseFloor>,
    /// Runs with these very settings that are in the ledger, this one included. Above 1, the verdict is
    /// one of several tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<i32>,
    /// What a reader of the figures must know beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub notes: Vec<String>,
    /// Figures by point and candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["point", "candidate"]))]
    pub results: Vec<CandidateResult>,
    /// Of a sweep, where each candidate does best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["candidate"]))]
    pub sweep: Vec<SweepResult>,
    /// At each point the winner, or else the candidate of the least figure, against each other one, by the
    /// deciding figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub comparisons: Vec<Comparison>,
    /// What became of each limit; of several points, at the one that decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 80))]
    pub budgets: Vec<BudgetResult>,
    /// SHA-256 over the ledger entries that the figures rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_digest: Option<String>,
    /// Verdicts that no longer stand, newest first: of earlier runs, and of this run before its budgets or
    /// its deciding figure were edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<PastVerdict>,
    /// The same as text, for `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
}

impl FrugalityBenchmarkStatus {
    /// The condition that tells of the end, once there is one.
    #[must_use]
    pub fn end(&self) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|c| c.type_ == condition::COMPLETE && c.status == "True")
    }
}

/// `observedGeneration` of the status that the API server fills in until the operator writes one. Tools that
/// follow kstatus (Flux, Helm) take an object without a status for one that is ready, and this for one in progress.
pub const NOT_SEEN: i64 = -1;

impl FrugalityBenchmark {
    /// The status, if an operator wrote it.
    #[must_use]
    pub fn told(&self) -> Option<&FrugalityBenchmarkStatus> {
        let written =
            |status: &&FrugalityBenchmarkStatus| status.observed_generation != Some(NOT_SEEN);
        self.status.as_ref().filter(written)
    }

    /// Whether the spec as it is now has come to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.told().is_some_and(|status| {
            status.observed_generation == self.metadata.generation && status.end().is_some()
        })
    }
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
    /// About how many seconds of measuring are left, from the beginning of the attempt in hand; a queue
    /// is not in it. Absent after the end, and where nothing tells how long the requests take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_seconds: Option<i64>,
    /// About when the last trial ends (RFC 3339), once the run has its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_end: Option<String>,
}

/// A verdict that the status no longer tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastVerdict {
    /// ID of the run.
    #[schemars(length(max = 63))]
    pub run: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Reason code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub reason: Option<String>,
    /// Winner, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15))]
    pub winner: Option<String>,
    /// Winner's figure over the next best, with its interval, as it was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub ratio: Option<String>,
    /// Figure that decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// Where the node's power came from: `Metered` or `Modelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub provenance: Option<String>,
    /// When the run ended (RFC 3339).
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
    /// Which one, from 1.
    pub number: i32,
    /// Of how many.
    pub of: i32,
    /// Blocks that it rests on, at each point.
    pub blocks: i32,
    /// Confidence of each interval of a candidate's own figures, as a share: 0.95 for one look, more for each of several.
    pub confidence: f64,
    /// Confidence of each interval that a claim is decided on (ratios and budgets), as a share: 0.9696 for the first try
    /// and one look, more for later tries and for each of several looks.
    #[serde(default)]
    pub claim_confidence: f64,
}

/// What a candidate differs from itself by, from an A/A control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoiseFloor {
    /// Load settings; of several points, those of the greatest share.
    #[serde(default)]
    pub point: String,
    /// Candidate that took part twice.
    pub candidate: String,
    /// Its figure over its own under the hidden name, paired by block; 1 is expected.
    pub ratio: Figure,
    /// The larger distance of the interval's ends from 1, as a share: 0.02 means that ratios from 1/1.02
    /// to 1.02 can't be told from 1.
    pub share: f64,
}

/// A figure with its interval over trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Geometric mean over the trials (for the error ratio, the growth of memory and the drift of latency: arithmetic mean).
    pub value: f64,
    /// Lower end of the t-interval, of the confidence that `status.look` has.
    pub lower: f64,
    /// Upper end of the t-interval.
    pub upper: f64,
    /// For joules, the interval with what the spread between trials does not show in it. Budgets are
    /// decided on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expanded: Option<Expanded>,
}

/// The interval value·exp(±U), U² = (t·u_A)² + (2·u_B)²: u_B is what the windows' ends cost and, where the
/// meter tells it, the meter's own accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expanded {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Whether the meter's own accuracy is in it: not where the meter tells none in a trial.
    pub covers_meter: bool,
    /// True if power is modelled and the accuracy of the model is unknown. The interval then tells how well the figure would
    /// be found again on this model, and nothing about joules. Such a figure is shown as `≈x`, without an interval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeatability_only: bool,
}

impl Figure {
    /// The figure of so many times the same; above 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            lower: self.lower * factor,
            upper: self.upper * factor,
            expanded: self.expanded.map(|expanded| Expanded {
                lower: expanded.lower * factor,
                upper: expanded.upper * factor,
                ..expanded
            }),
        }
    }

    /// The same of seven digits, which is more than any meter knows: a status has little room.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            value: seven_digits(self.value),
            lower: seven_digits(self.lower),
            upper: seven_digits(self.upper),
            expanded: self.expanded.map(|expanded| Expanded {
                lower: seven_digits(expanded.lower),
                upper: seven_digits(expanded.upper),
                ..expanded
            }),
        }
    }

    /// Whether nothing is known of its accuracy, so that no interval is shown.
    #[must_use]
    pub fn is_repeatability_only(&self) -> bool {
        self.expanded.is_some_and(|e| e.repeatability_only)
    }

    /// The ends that decide: of joules with what the spread does not show, else of the spread alone.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        self.expanded
            .map_or((self.lower, self.upper), |e| (e.lower, e.upper))
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A figure has seven digits in a status.
#[must_use]
pub fn seven_digits(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
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
    /// Attempts of this candidate at this point that were void.
    pub void_attempts: i32,
    /// Successful requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Figure>,
    /// Mean milliseconds of a successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds_per_request: Option<Figure>,
    /// How its latencies are distributed, over the requests of all trials together; of cycles and executions those
    /// that succeeded. Absent where a trial of single requests had errors, for Fortio's histogram does not part them
    /// from the successes, where cycles were dropped, or where a histogram did not fit the injector's report. A
    /// percentile that fewer than ten requests lie beyond is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub latency: Vec<LatencyPercentile>,
    /// When the requests behind `latency` were sent. `Closed`: after an answer, so that what waits behind a slow request is in
    /// no percentile (coordinated omission). `Open`: when they were due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// With a scenario, what else is known of its cycles, which are what counts as requests here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CycleResult>,
    /// With a batch, what else is known of its executions. These, or the units of their work, are what counts as
    /// requests here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchResult>,
    /// Node energy in the window, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gross_joules_per_request: Option<Figure>,
    /// Gross less the idle baseline, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_joules_per_request: Option<Figure>,
    /// Share of the node's energy attributed by CPU time to the boundary's pods, per successful request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_joules_per_request: Option<Figure>,
    /// The boundary's share of net energy by CPU time above idle, per successful request. Only if it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_attributed_joules_per_request: Option<Figure>,
    /// CPU milliseconds of the boundary's pods per successful request. Its interval has what the windows' ends cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milliseconds_per_request: Option<Figure>,
    /// Share of requests without an expected answer. Its interval is the wider of the trials' and of that of all
    /// requests together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ratio: Option<Figure>,
    /// The node that it ran on, where candidates have nodes of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeResult>,
    /// Money for a million successful requests, by the node's costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<CostPerMillion>,
    /// Grams of CO₂ equivalent for a million successful requests, by `spec.costs.carbon`: the SCI of ISO/IEC
    /// 21031:2024, (E·I + M) per R, with R a million requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carbon: Option<CostPerMillion>,
    /// What of the candidate's part each of its servers took, where it has backends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub workloads: Vec<WorkloadResult>,
    /// CPU use of the candidate's pods in the idle baselines, in CPUs: the mean of the trials. Net joules are withheld
    /// above 0.03, because the baselines subtract that work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cpus: Option<f64>,
    /// Largest working set of the candidate's pods together seen in any measured window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
    /// How fast that grows in the measured window, in bytes per hour: the mean of the trials' slopes. Only where
    /// every window is of ten minutes or more, since caches fill in the first, and no container was restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_growth_bytes_per_hour: Option<Figure>,
    /// How fast its mean latency rises in the measured window, in milliseconds per hour: the mean of the trials' slopes.
    /// Only where every window is of ten minutes or more, by `load.duration` or by `load.rate`, or else of a million
    /// requests or more, and no container was restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_drift_milliseconds_per_hour: Option<Figure>,
    /// How busy the CPUs of the injector and of the measured node were, and whether the injector limited the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injector: Option<InjectorResult>,
    /// How often its containers were restarted in these trials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: i32,
    /// Why a figure is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub withheld: Vec<String>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whether the injector or the candidate set the pace: medians over the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectorResult {
    /// Share of the injector's CPU that was in use in the measured window, by the injector or by anything else there: of
    /// all of its CPUs, of the busiest one, or of its CPU limit, whichever is the largest. From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// Share of the measured node's CPUs that was in use. From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cpu_share: Option<f64>,
    /// What the injector limited; absent if it limited nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<InjectorLimits>,
}

/// What the injector limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InjectorLimits {
    /// The rate, and with it all that depends on it: the candidate may do more.
    Rate,
    /// The times of requests at a fixed rate that was reached: they include waiting in the injector.
    Times,
}

/// What one of a candidate's servers took of what the candidate took; with a database in the boundary, that
/// is in none of them. A figure that can't be trusted is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadResult {
    /// The candidate's name for the server that is asked, else the backend's.
    pub name: String,
    /// Share of the node's energy attributed by CPU time to its pods, per successful request of the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributed_joules_per_request: Option<Figure>,
    /// CPU milliseconds of its pods per successful request of the candidate. Its interval has what the windows' ends cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milliseconds_per_request: Option<Figure>,
    /// Largest working set of its pods together seen in any measured window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
}

/// The node of a candidate, where candidates have nodes of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Name.
    pub name: String,
    /// Its mean power in the idle baselines, in watts: the candidate is up, and nobody asks it anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_watts: Option<Figure>,
    /// Its mean power in the measured windows, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_watts: Option<Figure>,
}

/// What a million successful requests cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostPerMillion {
    /// What all three numbers are in: the currency, or `gCO2e`.
    #[serde(default)]
    pub unit: String,
    /// All of it: energy and node. Its interval is that of the trials' own sums.
    pub total: Figure,
    /// For energy: gross joules per request × what a joule costs. Of carbon E·I, the operational part.
    pub energy: f64,
    /// For the node: its time, of which each request takes 1/(requests/s), × its cost over its lifetime. Of
    /// carbon M, the embodied part, of a node that does nothing else.
    pub node: f64,
    /// What these two are products of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<CostTerms>,
}

/// What a cost is made of: kilowatt-hours × what one costs, and what the node costs × the share of its life. By the
/// names of ISO/IEC 21031:2024 E, I, TE and TS, with RS = 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostTerms {
    /// Gross energy of a million successful requests, in kilowatt-hours: E.
    pub kilowatt_hours: f64,
    /// What one costs, by the spec: of carbon its intensity, I.
    pub per_kilowatt_hour: f64,
    /// What the node costs, by the spec: of carbon all that is embodied in it, TE.
    pub node: f64,
    /// The share of the node's lifetime for which a million successful requests keep it, from 0: TS.
    pub lifetime_share: f64,
}

impl CostTerms {
    /// For energy.
    #[must_use]
    pub fn of_energy(self) -> f64 {
        self.kilowatt_hours * self.per_kilowatt_hour
    }

    /// For the node.
    #[must_use]
    pub fn of_node(self) -> f64 {
        self.node * self.lifetime_share
    }

    /// For both.
    #[must_use]
    pub fn sum(self) -> f64 {
        self.of_energy() + self.of_node()
    }

    /// The same of seven digits.
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
    /// The same of seven digits.
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

/// The latency that a share of the requests stayed below. The ledger has the whole histogram of each trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyPercentile {
    /// The share, in percent: 50 for the median.
    pub percentile: f64,
    /// The latency in milliseconds, over the requests of all trials, interpolated in their histograms' buckets. A
    /// request is timed from its sending; `arrivals` says what that leaves out.
    pub milliseconds: f64,
    /// The least of the single trials.
    pub least_milliseconds: f64,
    /// The most of the single trials.
    pub most_milliseconds: f64,
}

/// Where over the points of a sweep a candidate does best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepResult {
    /// Candidate.
    pub candidate: String,
    /// Its most successful requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_requests_per_second: Option<Optimum>,
    /// Its most successful requests per joule, of the deciding figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_requests_per_joule: Option<Optimum>,
    /// Its knee: the most requests/s over ms/request. Beyond it, waiting grows faster than throughput (L.
    /// Kleinrock, ICC 1979, 43.1.1–43.1.10, calls this ratio power).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<Optimum>,
}

/// The point at which something is greatest; `results` has the figures there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Optimum {
    /// Load settings, for example `c64-max`.
    pub point: String,
    /// All points that may be the best, this one included: of the points that were tried, the true best is
    /// among them with the confidence of all intervals here.
    #[schemars(length(max = MAX_POINTS))]
    pub among: Vec<String>,
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
    /// Candidate's figure over the other's, paired by block: below 1 is less energy. Its interval has
    /// `look.claimConfidence`. Of modelled power, by this node's watts; its `expanded` interval then has every board in it,
    /// or every one that the stated accuracy of the watts allows.
    pub ratio: Figure,
    /// Whether the interval that decides excludes 1, and the ratio is farther from 1 than the noise floor.
    pub separated: bool,
    /// Whether the ratio is shown to be within `energy.tieWithin` of 1; absent without that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<bool>,
    /// For gross or attributed joules of modelled power, the extremes of the ratio over all boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<BoardRange>,
    /// For which boards the ratio is on one side of 1. Absent for measured power, for net joules, in which the board cancels,
    /// and where no board is shown to tell the two apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardVerdict>,
}

/// For which boards one candidate needs less energy than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BoardVerdict {
    /// On every board whose power is a straight line of CPU use: both extremes exclude 1, on the same side.
    EveryBoard,
    /// On this board, by the stated accuracy of its watts.
    StatedAccuracy,
    /// It depends on the board: an extreme excludes 1, and the other one does not, or on the other side.
    DependsOnBoard,
}

/// The extremes of a ratio of modelled joules. On any board of the form idle watts + watts per CPU × CPUs in use, with both
/// watts at least 0, the ratio lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardRange {
    /// On a board that draws idle watts only: for gross joules the ratio of the times per request.
    pub idle_only: Figure,
    /// On a board that draws for CPU time only: for gross joules the ratio of the node's CPU times per request.
    pub cpu_only: Figure,
}

impl BoardRange {
    /// The extremes, the smaller first.
    #[must_use]
    pub fn values(&self) -> (f64, f64) {
        let (idle, cpu) = (self.idle_only.value, self.cpu_only.value);
        (idle.min(cpu), idle.max(cpu))
    }

    /// The ends of an interval that has those of both extremes in it.
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

    /// Whether there is a board on which it is.
    #[must_use]
    pub fn is_separated_somewhere(&self) -> bool {
        [self.idle_only, self.cpu_only].iter().any(|extreme| {
            let (lower, upper) = extreme.bounds();
            upper < 1.0 || lower > 1.0
        })
    }

    /// The same of seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            idle_only: self.idle_only.rounded(),
            cpu_only: self.cpu_only.rounded(),
        }
    }
}

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetOutcome {
    /// The whole interval keeps to the limit.
    Met,
    /// The whole interval breaks the limit.
    Exceeded,
    /// The limit lies inside the interval, or is broken too narrowly to be told among several limits.
    Undecided,
    /// The limit is closer to 1 than the noise floor.
    BelowNoiseFloor,
    /// There is no trustworthy figure to compare.
    Withheld,
}

/// One limit and the figure beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResult {
    /// Load settings at which it is decided.
    #[serde(default)]
    pub point: String,
    /// Candidate.
    pub candidate: String,
    /// Name of the limit's field.
    pub limit: String,
    /// The limit as a number, in the unit of its name.
    pub limit_value: f64,
    /// The figure. Its interval has `look.claimConfidence`.
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
    pub left: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
