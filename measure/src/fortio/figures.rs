//! The figures of one run of Fortio for the status.

use std::collections::BTreeMap;

use super::{Amount, FortioResult, is_success};
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
        shortfall: shortfall(result),
        mean_body_bytes: sizes.and_then(|sizes| Some(sizes.mean_bytes - sizes.mean_header_bytes?)),
        mean_body_standard_error_bytes: sizes
            .and_then(|sizes| Some(sizes.standard_deviation_bytes? / (successes as f64).sqrt())),
        requests_per_cycle: None,
        work: None,
    }
}

/// The share of a requested rate that was missed: requests that were due and were not sent, and lateness at the end.
/// The time that the last requests wait for their answers is not lateness, however slow the target is at the rate.
fn shortfall(result: &FortioResult) -> Option<f64> {
    let rate = result.requested_rate?;
    let connections = f64::from(result.threads);
    // As Fortio computes both (`runQPSSetup` and `runOne` in periodic/periodic.go).
    let due = match result.requested {
        Amount::Requests(requests) => requests as f64,
        Amount::DurationSeconds(seconds) => {
            let all = (rate * seconds).floor().max(2.0);
            (all / connections).floor() * connections
        }
    };
    let stagger = if result.uniform {
        connections - 1.0
    } else {
        0.0
    };
    let seconds_due = (due + stagger) / rate;
    // The last requests end with answers that may take longer than most.
    let mut percentiles = result.latency.percentiles.iter();
    let answer_seconds = percentiles
        .find(|it| it.percentile >= 99.0)
        .map_or(result.latency.max_seconds, |it| it.seconds);
    let seconds_taken = result.duration_seconds - answer_seconds;
    let in_time = if seconds_taken > seconds_due {
        seconds_due / seconds_taken
    } else {
        1.0
    };
    (due > 0.0).then(|| (1.0 - in_time * result.latency.count as f64 / due).max(0.0))
}
