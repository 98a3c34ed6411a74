//! The best points of a sweep and the figures over its load levels, in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{figure::Figure, load::MAX_POINTS};

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
