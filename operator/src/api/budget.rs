//! Limits that a candidate must keep.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::Decimal;

/// Limits for one candidate. Each limit is met only if the figure's whole interval is within it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.maxJoulesPerRequest) || has(self.maxMillisecondsPerRequest) || has(self.minRequestsPerSecond) || has(self.maxErrorRatio) || has(self.maxEnergyRatio) || has(self.maxEnergyDelayJouleSeconds) || has(self.loadCurve)").message("a budget needs at least one of maxJoulesPerRequest, maxMillisecondsPerRequest, minRequestsPerSecond, maxErrorRatio, maxEnergyRatio, maxEnergyDelayJouleSeconds and loadCurve"),
    validation = Rule::new("!has(self.atMost) || has(self.maxJoulesPerRequest)").message("a budget's atMost goes with maxJoulesPerRequest: the limit then holds at the point with the fewest joules of those that keep the latency"),
    validation = Rule::new("has(self.maxEnergyRatio) == has(self.against)").message("maxEnergyRatio and against go together: the ratio is the candidate's figure over the figure of against"),
)]
pub struct Budget {
    /// Name of the candidate that must keep the limits.
    #[schemars(length(min = 1, max = 15))]
    pub candidate: String,
    /// Most joules per successful request, by the deciding figure, for example `0.005`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_joules_per_request: Option<Decimal>,
    /// Longest mean time of a successful request, in milliseconds, for example `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_milliseconds_per_request: Option<Decimal>,
    /// Fewest successful requests per second, for example `500`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_requests_per_second: Option<Decimal>,
    /// Largest share of requests without an expected answer, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) <= 1.0").message("maxErrorRatio is a share from 0 to 1, for example 0.01"))]
    pub max_error_ratio: Option<Decimal>,
    /// Largest ratio of the candidate's deciding figure to the figure of `against`, paired by block. For example,
    /// `1.05` allows at most 5 % more energy than the previous release. A limit closer to 1 than the noise floor
    /// of `trials.control` is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("maxEnergyRatio must be above 0, for example 1.05"))]
    pub max_energy_ratio: Option<Decimal>,
    /// Name of the other candidate of `maxEnergyRatio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub against: Option<String>,
    /// Largest energy-delay product: joules per successful request, by the deciding figure, times mean seconds per
    /// request. For example `0.00002` allows 5 mJ in 4 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_energy_delay_joule_seconds: Option<Decimal>,
    /// Limits on the figures of `load.sweep.levels`, over all levels together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_curve: Option<LoadCurveBudget>,
    /// A latency for `maxJoulesPerRequest`. Without it, that limit holds at every point of a sweep. With it, that limit
    /// holds at the point with the fewest joules of those that keep this latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<LatencyTarget>,
}

/// Limits on what a candidate costs at part load. `.status.sweep[].loadCurve` has the figures.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.minRequestsPerJoule) || has(self.maxMarginalJoulesPerRequest) || has(self.maxIdleWatts) || has(self.maxIdleShare) || has(self.minProportionality)").message("a budget's loadCurve needs at least one of minRequestsPerJoule, maxMarginalJoulesPerRequest, maxIdleWatts, maxIdleShare and minProportionality"),
)]
pub struct LoadCurveBudget {
    /// Fewest successful requests per joule over all levels and the idle node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_requests_per_joule: Option<Decimal>,
    /// Most joules that one more request may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_marginal_joules_per_request: Option<Decimal>,
    /// Most watts of the node without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_idle_watts: Option<Decimal>,
    /// Largest share of power without requests in the power at level 100, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) <= 1.0").message("maxIdleShare is a share from 0 to 1, for example 0.5"))]
    pub max_idle_share: Option<Decimal>,
    /// Least energy proportionality. 1 is power in proportion to the rate, and 0 is constant power.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) <= 1.0").message("minProportionality is 1 or less, for example 0.4"))]
    pub min_proportionality: Option<Decimal>,
}

/// A latency that a candidate must keep.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyTarget {
    /// Latency within which 99 % of all requests, or of a script's cycles, must succeed, in milliseconds, for example
    /// `50`. A point keeps it if each of its trials does. A latency within one of the injector's buckets may stay
    /// undecided. With `load.arrivals: Open` the latency includes waiting.
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("atMost.p99Milliseconds must be above 0, for example 50"))]
    pub p99_milliseconds: Decimal,
}
