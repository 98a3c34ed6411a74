//! A script that is run instead of one request.

// The derives repeat the types in a private scope of their own.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::HumanDuration;

/// A script for k6 that is run again and again, by `load.connections` agents. Each run is a cycle, such as creating
/// something, looking at it, changing it and deleting it again, and counts where a request does: requests/s,
/// joules per request and budgets are those of cycles. A cycle has failed that takes longer than `load.timeout`,
/// in which the script threw, a check did not hold, or a request had no expected answer.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The script, a JavaScript module for k6 that exports the cycle as its default function. It finds the
    /// candidate as `__ENV.URL`, for example `http://name:8080`. With a `load.rate`, that many cycles begin each
    /// second, whether or not earlier ones have ended. It may export `setup`, run once before the load, and such
    /// `options` as `noConnectionReuse`, which do not say what the load is. Answers of 200 to 399 are expected
    /// unless `http.setResponseCallback` or a request's `responseCallback` says otherwise. The first 16 names of checks
    /// are told by themselves, the rest together as `(others)`. All of the script is here: it can't import from the
    /// network. Metrics of its own need names that k6 has not, such as `iteration_duration`.
    #[schemars(length(min = 1, max = 65_536))]
    #[x_kube(validation = Rule::new("self.contains('export default')").message("scenario.script has no cycle: it must export a default function; write for example import http from 'k6/http'; export default function () { http.get(__ENV.URL); }"))]
    #[x_kube(validation = Rule::new("!self.matches('(from|import|require)[[:space:]]*[(]?[[:space:]]*[\\'\"`]https?://')").message("scenario.script imports from the network: what comes from there may be another text each time, and is no part of the benchmark; write all of it into scenario.script"))]
    pub script: String,
    /// For how long, at the beginning of `load.warmUp`, agents join one after another (or the rate rises to
    /// `load.rate`); for example `5s`. Absent: all begin at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('10m')").message("scenario.rampUp must be from 1s to 10m"))]
    pub ramp_up: Option<HumanDuration>,
    /// Whether candidates are compared though a cycle makes more requests to one than to another, by more than
    /// 1 % and the share of cycles that failed. Judges the same trials anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests_may_differ: bool,
    /// Whether candidates are compared though their cycles differ by more than a tenth in the number of the
    /// database's transactions. Judges the same trials anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queries_may_differ: bool,
}

/// What is told of a candidate's cycles, beside what is told of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CycleResult {
    /// HTTP requests for each cycle, over all trials.
    pub requests_per_cycle: f64,
    /// The script's checks by name, over all trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 17))]
    pub checks: Vec<CheckResult>,
}

/// How often a check of the script held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Its name in the script; one of more than 128 characters is cut, and ends with a digest.
    #[schemars(length(max = 128))]
    pub name: String,
    /// How often it held.
    pub passed: i64,
    /// How often it did not.
    pub failed: i64,
}
