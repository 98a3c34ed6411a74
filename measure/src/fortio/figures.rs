//! The figures of one run that may be shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FortioResult, is_success};

/// Requests/s, ms/request and their like, of one run. What cannot be known is absent, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFigures {
    /// All requests that ended within the run, with whatever answer.
    pub requests: u64,
    /// N: answers with an expected code.
    pub successes: u64,
    /// `requests` − `successes`.
    pub errors: u64,
    /// N / T, T the duration of the run. Absent where N = 0.
    pub requests_per_second: Option<f64>,
    /// 1000 · (`Sum_all` − `Sum_errors`) / N: mean latency of the successes. Absent where N = 0, and
    /// where Fortio's successes are not the expected answers, for then its two sums do not part them.
    pub ms_per_request: Option<f64>,
    /// Latency percentiles in milliseconds, by name: `p50`, `p75`, `p90`, `p99`, `p99.9`. Fortio computes
    /// them over all requests, so they are known for the successes only in a run without any error: with
    /// one, and where `ms_per_request` is absent, there are none.
    pub percentiles_ms: BTreeMap<String, f64>,
    /// `errors` / `requests`, 0 to 1. Absent where there was no request.
    pub error_rate: Option<f64>,
    /// Share of the time that the connections waited for an answer, 0 to 1: the sum of all latencies over
    /// T · connections, which is Fortio's ActualQPS × Avg ÷ NumThreads. About 1: the target sets the pace.
    /// Absent where there was no request.
    pub occupancy: Option<f64>,
    /// Share of the asked-for rate that was *not* reached, 0 to 1: 1 − ActualQPS ÷ RequestedQPS. Absent
    /// where the greatest rate was asked for.
    pub shortfall: Option<f64>,
    /// Mean length of the answers' bodies, in bytes. Fortio does not part the sizes of successes and
    /// errors, so it is absent in a run with errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_bytes: Option<f64>,
    /// Its standard error: the lengths' standard deviation over √N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_body_standard_error_bytes: Option<f64>,
}

/// The figures of `result`, where answers with a code of `expected` are successes.
#[must_use]
pub fn figures(result: &FortioResult, expected: &[u16]) -> RequestFigures {
    let is_expected = |code: i32| expected.iter().any(|expected| i32::from(*expected) == code);
    let requests = result.latency.count;
    let successes: u64 = result
        .codes
        .iter()
        .filter(|(code, _)| is_expected(**code))
        .map(|(_, count)| count)
        .sum();
    let errors = requests.saturating_sub(successes);
    let seconds = result.duration_seconds;
    let as_fortio_counts = successes > 0
        && result
            .codes
            .iter()
            .all(|(code, count)| *count == 0 || is_success(*code) == is_expected(*code));
    let percentiles_ms = if as_fortio_counts && errors == 0 {
        let named =
            |one: &super::Percentile| (format!("p{}", one.percentile), one.seconds * 1000.0);
        result.latency.percentiles.iter().map(named).collect()
    } else {
        BTreeMap::new()
    };
    let sizes = result
        .response_sizes
        .filter(|_| as_fortio_counts && errors == 0);
    RequestFigures {
        requests,
        successes,
        errors,
        requests_per_second: (successes > 0 && seconds > 0.0).then(|| successes as f64 / seconds),
        ms_per_request: as_fortio_counts.then(|| {
            let sum = result.latency.sum_seconds - result.error_latency.sum_seconds;
            1000.0 * sum / successes as f64
        }),
        percentiles_ms,
        error_rate: (requests > 0).then(|| errors as f64 / requests as f64),
        occupancy: (requests > 0 && seconds > 0.0)
            .then(|| result.latency.sum_seconds / (seconds * f64::from(result.threads))),
        shortfall: result
            .requested_rate
            .map(|rate| (1.0 - result.actual_rate / rate).max(0.0)),
        mean_body_bytes: sizes.and_then(|sizes| Some(sizes.mean_bytes - sizes.mean_header_bytes?)),
        mean_body_standard_error_bytes: sizes
            .and_then(|sizes| Some(sizes.standard_deviation_bytes? / (successes as f64).sqrt())),
    }
}
