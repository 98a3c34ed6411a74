//! The result of a load, for every load generator.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    batch::{BatchError, BatchResult},
    fortio::{self, FortioError, FortioResult},
    k6::{K6Error, K6Result},
    latency::Histogram,
    report::LoadSpan,
};

/// An injector's observations in one measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadResult {
    /// One request, sent repeatedly.
    Fortio(FortioResult),
    /// A script, run repeatedly.
    K6(K6Result),
    /// A program that runs to completion, executed repeatedly.
    Batch(BatchResult),
}

/// Why no figures can be computed from a result.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error(transparent)]
    Fortio(#[from] FortioError),
    #[error(transparent)]
    K6(#[from] K6Error),
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl From<FortioResult> for LoadResult {
    fn from(result: FortioResult) -> Self {
        Self::Fortio(result)
    }
}

impl LoadResult {
    /// The figures for the status. `expected` are the status codes of a success. A script defines its own
    /// success.
    #[must_use]
    pub fn figures(&self, expected: &[u16]) -> RequestFigures {
        match self {
            Self::Fortio(result) => fortio::figures(result, expected),
            Self::K6(result) => result.figures(),
            Self::Batch(result) => result.figures(),
        }
    }

    /// Start, length and counts of the load.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        match self {
            Self::Fortio(result) => result.span(),
            Self::K6(result) => result.span(),
            Self::Batch(result) => result.span(),
        }
    }

    /// Whether the run ended before the requested amount.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Fortio(result) => result.is_interrupted(),
            Self::K6(result) => result.is_interrupted(),
            // This result contains whole executions only. The report says if the load was interrupted.
            Self::Batch(_) => false,
        }
    }

    /// Latencies of all requests, of a script's cycles without failure, or of a program's successful
    /// executions.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        match self {
            Self::Fortio(result) => &result.latency,
            Self::K6(result) => &result.cycles,
            Self::Batch(result) => &result.executions,
        }
    }

    /// Removes the histograms' buckets. Counts and sums stay.
    pub(crate) fn drop_buckets(&mut self) {
        let (all, failed) = match self {
            Self::Fortio(result) => (&mut result.latency, &mut result.error_latency),
            Self::K6(result) => (&mut result.cycles, &mut result.failed_cycles),
            Self::Batch(result) => (&mut result.executions, &mut result.failed_executions),
        };
        all.buckets.clear();
        failed.buckets.clear();
    }

    /// Removes the names that a script gave. Counts stay.
    pub(crate) fn drop_names(&mut self) {
        if let Self::K6(result) = self {
            result.drop_names();
        }
    }

    pub(crate) fn keep_to_limits(&mut self) {
        if let Self::K6(result) = self {
            result.keep_to_limits();
        }
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        match self {
            Self::Fortio(result) => Ok(result.check()?),
            Self::K6(result) => Ok(result.check()?),
            Self::Batch(result) => Ok(result.check()?),
        }
    }

    /// Fortio's result, if Fortio generated the load.
    #[must_use]
    pub fn fortio(&self) -> Option<&FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
    }

    /// The mutable form of [`Self::fortio`].
    pub fn fortio_mut(&mut self) -> Option<&mut FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
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
    /// `errors` / `requests`, 0 to 1. Absent without requests.
    pub error_rate: Option<f64>,
    /// Share of the time that the connections waited for an answer, 0 to 1: the sum of all requests'
    /// latencies over T · connections, which is Fortio's ActualQPS × Avg ÷ NumThreads. About 1: the target
    /// sets the pace. Absent without requests, and if late requests were skipped.
    pub occupancy: Option<f64>,
    /// Share of the requested rate that was *not* reached, 0 to 1: 1 − ActualQPS ÷ RequestedQPS. For a
    /// uniform load, the staggered ends of its connections are subtracted. Absent at the maximum rate.
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

impl RequestFigures {
    /// The divisor of the joules: N, or the units of work.
    #[must_use]
    pub fn units(&self) -> f64 {
        self.work.unwrap_or(self.successes as f64)
    }
}
