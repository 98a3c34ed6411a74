//! What a load achieved: its span and its figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One load: its time by the clock of the injector's node, and its counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoadSpan {
    /// Start, Unix seconds.
    pub start_unix_seconds: f64,
    /// Length, in seconds.
    pub duration_seconds: f64,
    /// The number of all requests, or of a script's cycles.
    pub requests: u64,
    /// The number of failed ones: by Fortio's definition ([`crate::fortio::is_success`]), or by the script.
    pub errors: u64,
}

impl LoadSpan {
    /// End of the load, Unix seconds.
    #[must_use]
    pub fn end_unix_seconds(&self) -> f64 {
        self.start_unix_seconds + self.duration_seconds
    }

    /// All requests divided by the length; absent without requests.
    #[must_use]
    pub fn requests_per_second(&self) -> Option<f64> {
        (self.requests > 0 && self.duration_seconds > 0.0)
            .then(|| self.requests as f64 / self.duration_seconds)
    }
}

/// Requests/s, ms/request and related figures of one run. Unknown figures are absent, never 0.
///
/// If a script was run instead of a request, each cycle (one run of the script) counts as a request. If a
/// program was executed, each execution counts, or each unit of its work if work is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestFigures {
    /// All requests that ended within the run, with any answer.
    pub requests: u64,
    /// N: answers with an expected code, or cycles without a failure.
    pub successes: u64,
    /// `requests` − `successes`.
    pub errors: u64,
    /// N / T, with the duration T of the run. If `work` is present, it replaces N. Absent if N = 0.
    pub requests_per_second: Option<f64>,
    /// Mean latency of the successes. Absent if N = 0, and if Fortio's successes differ from the expected
    /// answers: then 1000 · (`Sum_all` − `Sum_errors`) / N is not the mean of the expected answers.
    pub ms_per_request: Option<f64>,
    /// Latency percentiles of the successes in milliseconds, by name: `p50`, `p75`, `p90`, `p99`, `p99.9`.
    /// Fortio computes them over all requests. Fortio's percentiles are therefore absent with errors, and if
    /// `ms_per_request` is absent.
    pub percentiles_ms: BTreeMap<String, f64>,
    /// Cycles, or requests of an open load, that were due while no agent was free.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
    /// `errors` / `requests`, 0 to 1. Absent without requests.
    pub error_rate: Option<f64>,
    /// Share of the time that the connections waited for an answer, 0 to 1: the sum of all requests'
    /// latencies over T · connections, which is Fortio's ActualQPS × Avg ÷ NumThreads. About 1: the target
    /// sets the pace. Absent without requests, and if late requests were skipped.
    pub occupancy: Option<f64>,
    /// Share of the requested rate that was *not* reached, 0 to 1. It counts due requests that were not sent, and
    /// lateness at the end of the run. Absent at the maximum rate.
    pub shortfall: Option<f64>,
    /// Mean length of the answers' bodies, in bytes. Fortio does not separate the sizes of successes and
    /// errors. The figure is therefore absent in a run with errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_bytes: Option<f64>,
    /// Its standard error: the lengths' standard deviation over √N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_standard_error_bytes: Option<f64>,
    /// HTTP requests per cycle, including failed requests and failed cycles. Absent without a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_cycle: Option<f64>,
    /// Units of work of all successful executions together. Absent if work is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<f64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(dropped: &u64) -> bool {
    *dropped == 0
}

impl RequestFigures {
    /// The divisor of the joules: N, or the units of work.
    #[must_use]
    pub fn units(&self) -> f64 {
        self.work.unwrap_or(self.successes as f64)
    }
}
