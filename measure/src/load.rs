//! What a load came to, whoever put it on.

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

/// What an injector observed in one measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadResult {
    /// Of one request, sent again and again.
    Fortio(FortioResult),
    /// Of a script, run again and again.
    K6(K6Result),
    /// Of a program that runs to completion, again and again.
    Batch(BatchResult),
}

/// Why no figures can be made of a result.
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
    /// The figures that may be shown. `expected` are the status codes of a success; a script says itself what
    /// it expects.
    #[must_use]
    pub fn figures(&self, expected: &[u16]) -> RequestFigures {
        match self {
            Self::Fortio(result) => fortio::figures(result, expected),
            Self::K6(result) => result.figures(),
            Self::Batch(result) => result.figures(),
        }
    }

    /// When the load was on.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        match self {
            Self::Fortio(result) => result.span(),
            Self::K6(result) => result.span(),
            Self::Batch(result) => result.span(),
        }
    }

    /// Whether the run ended before the amount that was asked for.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Fortio(result) => result.is_interrupted(),
            Self::K6(result) => result.is_interrupted(),
            // It has whole executions alone; whoever gave the others up says so in the report.
            Self::Batch(_) => false,
        }
    }

    /// How long all requests took; of a script, the cycles of which nothing failed; of a program, the executions
    /// that succeeded.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        match self {
            Self::Fortio(result) => &result.latency,
            Self::K6(result) => &result.cycles,
            Self::Batch(result) => &result.executions,
        }
    }

    /// Leaves out where the latencies lie: counts and sums stay.
    pub(crate) fn drop_buckets(&mut self) {
        let (all, failed) = match self {
            Self::Fortio(result) => (&mut result.latency, &mut result.error_latency),
            Self::K6(result) => (&mut result.cycles, &mut result.failed_cycles),
            Self::Batch(result) => (&mut result.executions, &mut result.failed_executions),
        };
        all.buckets.clear();
        failed.buckets.clear();
    }

    /// Leaves out what a script named: counts stay.
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

    /// Fortio's, if it is.
    #[must_use]
    pub fn fortio(&self) -> Option<&FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn fortio_mut(&mut self) -> Option<&mut FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
    }
}

/// Requests/s, ms/request and their like, of one run. What cannot be known is absent, never 0. Where a script
/// was run instead of one request sent, each cycle, a run of the script, counts as a request; where a program was
/// executed, each execution, or where work is counted, each unit of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFigures {
    /// All requests that ended within the run, with whatever answer.
    pub requests: u64,
    /// N: answers with an expected code; cycles of which nothing failed.
    pub successes: u64,
    /// `requests` − `successes`.
    pub errors: u64,
    /// N / T, T the duration of the run; with `work` that instead of N. Absent where N = 0.
    pub requests_per_second: Option<f64>,
    /// Mean latency of the successes. Absent where N = 0, and where Fortio's successes are not the expected
    /// answers, for then 1000 · (`Sum_all` − `Sum_errors`) / N is not theirs.
    pub ms_per_request: Option<f64>,
    /// Latency percentiles in milliseconds, by name: `p50`, `p75`, `p90`, `p99`, `p99.9`; of the successes.
    /// Fortio computes them over all requests, so with an error, and where `ms_per_request` is absent, it has
    /// none.
    pub percentiles_ms: BTreeMap<String, f64>,
    /// `errors` / `requests`, 0 to 1. Absent where there was no request.
    pub error_rate: Option<f64>,
    /// Share of the time that the connections waited for an answer, 0 to 1: the sum of all requests' latencies
    /// over T · connections, which is Fortio's ActualQPS × Avg ÷ NumThreads. About 1: the target sets the pace.
    /// Absent where there was no request, and where late requests were skipped.
    pub occupancy: Option<f64>,
    /// Share of the asked-for rate that was *not* reached, 0 to 1: 1 − ActualQPS ÷ RequestedQPS; of a uniform load,
    /// without what its connections' staggered ends take. Absent where the greatest rate was asked for.
    pub shortfall: Option<f64>,
    /// Mean length of the answers' bodies, in bytes. Fortio does not part the sizes of successes and
    /// errors, so it is absent in a run with errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_bytes: Option<f64>,
    /// Its standard error: the lengths' standard deviation over √N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_standard_error_bytes: Option<f64>,
    /// HTTP requests for each cycle, those that failed in both; absent where no script was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_cycle: Option<f64>,
    /// Units of work of the successful executions together; absent where it is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<f64>,
}

impl RequestFigures {
    /// What joules are divided by: N, or the units of work.
    #[must_use]
    pub fn units(&self) -> f64 {
        self.work.unwrap_or(self.successes as f64)
    }
}
