//! The figures of one run of Fortio for the status.

use std::collections::BTreeMap;

use super::{FortioResult, is_success};
use crate::figures::RequestFigures;
use crate::latency::Percentile;

/// The figures of `result`. Answers with a code of `expected` are successes.
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
        let named = |one: &Percentile| (format!("p{}", one.percentile), one.seconds * 1000.0);
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
        dropped: 0,
        error_rate: (requests > 0).then(|| errors as f64 / requests as f64),
        // A connection that skips late requests may be idle although the target is slow.
        occupancy: (requests > 0 && seconds > 0.0 && !result.skips_late)
            .then(|| result.latency.sum_seconds / (seconds * f64::from(result.threads))),
        shortfall: result
            .requested_rate
            .map(|rate| (1.0 - (result.actual_rate + staggered(result)) / rate).max(0.0)),
        mean_body_bytes: sizes.and_then(|sizes| Some(sizes.mean_bytes - sizes.mean_header_bytes?)),
        mean_body_standard_error_bytes: sizes
            .and_then(|sizes| Some(sizes.standard_deviation_bytes? / (successes as f64).sqrt())),
        requests_per_cycle: None,
        work: None,
    }
}

/// Requests per second that a uniform load lacks without being late. Connection k of n begins k intervals of
/// the whole rate after the first, and ends as much later. The run is therefore n − 1 intervals longer than
/// its requests take.
fn staggered(result: &FortioResult) -> f64 {
    if result.uniform && result.duration_seconds > 0.0 {
        f64::from(result.threads.saturating_sub(1)) / result.duration_seconds
    } else {
        0.0
    }
}
