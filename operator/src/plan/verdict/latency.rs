//! How a candidate's latencies are distributed over all its trials.

use frugality_measure::fortio::{Bucket, merged_percentiles};

use super::evidence::Evidence;
use crate::api::LatencyPercentile;

/// Percentages of the requests whose latency is told.
const PERCENTAGES: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

impl Evidence<'_> {
    /// Percentiles over the requests of all trials, and the range of the single trials' own. Nothing where a
    /// trial had errors (Fortio's histogram holds theirs too) or lacks its histogram.
    pub(super) fn latency(&self, candidate: &str) -> Vec<LatencyPercentile> {
        let runs: Option<Vec<&[Bucket]>> = self
            .trials(candidate)
            .into_iter()
            .map(|trial| {
                // Percentiles are there where all requests were successes.
                trial
                    .requests
                    .as_ref()
                    .filter(|r| !r.percentiles_ms.is_empty())?;
                Some(trial.fortio.as_ref()?.latency.buckets.as_slice())
            })
            .collect();
        runs.and_then(|runs| {
            let merged = merged_percentiles(&runs, &PERCENTAGES)?;
            let single: Vec<Vec<f64>> = runs
                .iter()
                .map(|run| merged_percentiles(&[run], &PERCENTAGES))
                .collect::<Option<_>>()?;
            let told = PERCENTAGES.iter().zip(&merged).enumerate();
            let told = told.map(|(index, (percentage, seconds))| {
                let of_trials = || single.iter().map(|trial| trial[index]);
                LatencyPercentile {
                    percentile: *percentage,
                    milliseconds: 1000.0 * seconds,
                    least_milliseconds: 1000.0 * of_trials().fold(f64::INFINITY, f64::min),
                    most_milliseconds: 1000.0 * of_trials().fold(0.0, f64::max),
                }
            });
            Some(told.collect())
        })
        .unwrap_or_default()
    }
}
