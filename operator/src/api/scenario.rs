//! A script that agents run, instead of one request.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::HumanDuration;

/// A k6 script that `load.connections` agents run again and again. Each run is a cycle, for example: create
/// something, look at it, change it and delete it. Figures are per cycle instead of per request: requests/s,
/// joules per request and budgets. A cycle has failed if it takes longer than `load.timeout`, the script throws, a
/// check does not hold, or a request has no expected answer.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Text of the script, a JavaScript module for k6 that exports the cycle as its default function. `__ENV.URL`
    /// is the candidate's address, for example `http://name:8080`. With a `load.rate`, that many cycles begin per
    /// second, even if earlier cycles have not ended. The module may export `setup`, which runs once before the
    /// load. It may export `options` such as `noConnectionReuse`, but no options that set the load. Answers of 200
    /// to 399 are expected, unless `http.setResponseCallback` or a request's `responseCallback` changes this. The
    /// status lists the first 16 names of checks, and the rest together as `(others)`. The script must be
    /// complete, because it can't import from the network. The script's own metrics need other names than k6's
    /// metrics, such as `iteration_duration`.
    #[schemars(length(min = 1, max = 65_536))]
    #[x_kube(validation = Rule::new("self.contains('export default')").message("scenario.script has no cycle: it must export a default function; write for example import http from 'k6/http'; export default function () { http.get(__ENV.URL); }"))]
    #[x_kube(validation = Rule::new("!self.matches('(from|import|require)[[:space:]]*[(]?[[:space:]]*[\\'\"`]https?://')").message("scenario.script imports from the network, and the imported code may change between runs: write all code into scenario.script"))]
    pub script: String,
    /// Time at the beginning of `load.warmUp` in which agents start one after another, or the rate rises to
    /// `load.rate`. For example `5s`. If absent, all agents start at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('10m')").message("scenario.rampUp must be from 1s to 10m"))]
    pub ramp_up: Option<HumanDuration>,
    /// Whether candidates are compared even if a cycle makes more requests to one candidate than to another. The
    /// limit without this field is 1 % plus the share of failed cycles. Default: false. After a change the
    /// operator judges the same trials again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests_may_differ: bool,
    /// Whether candidates are compared even if their cycles differ by more than a tenth in the number of database
    /// transactions. Default: false. After a change the operator judges the same trials again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queries_may_differ: bool,
}

/// Results of a candidate's cycles, in addition to the results per request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CycleResult {
    /// HTTP requests per cycle, over all trials.
    pub requests_per_cycle: f64,
    /// Results of the script's checks by name, over all trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 17))]
    pub checks: Vec<CheckResult>,
}

/// How often a check of the script held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Name of the check in the script. A name of more than 128 characters is cut and ends with a digest.
    #[schemars(length(max = 128))]
    pub name: String,
    /// Number of times the check held.
    pub passed: i64,
    /// Number of times the check did not hold.
    pub failed: i64,
}
