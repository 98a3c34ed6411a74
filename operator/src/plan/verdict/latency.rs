//! The distribution of a candidate's latencies over all trials.

use frugality_measure::{
    latency::{Bucket, PERCENTAGES, merged_percentiles},
    significant,
};

use crate::{
    api::{Arrivals, FrugalityTrialStatus, LatencyPercentile, TrialLoad},
    plan::verdict::evidence::Evidence,
};

/// Fewest requests beyond a percentile in every trial. With fewer requests a percentile depends on chance.
pub(super) const REQUESTS_BEYOND: f64 = 10.0;

/// The latencies of a trial's successes. `None` if they are not known, or mixed with errors or with waiting in the injector.
pub(super) fn distribution(trial: &FrugalityTrialStatus) -> Option<&[Bucket]> {
    // A trial has percentiles only if its histogram holds only successes.
    trial
        .requests
        .as_ref()
        .filter(|r| !r.percentiles_ms.is_empty())?;
    Some(&trial.load()?.latency().buckets)
}

/// Milliseconds with four digits. A bucket is not finer, and a status has little room.
fn milliseconds(seconds: f64) -> f64 {
    significant(1000.0 * seconds, 4)
}

impl Evidence<'_> {
    /// Whether the times at this point include waiting if those at the other points do. At the highest rate of an open load
    /// they do not.
    pub(super) fn has_comparable_times(&self) -> bool {
        !self.settings.mixes_times() || self.point.level.is_some()
    }

    /// Whether the requests behind the latencies were sent in an open or a closed loop.
    pub(super) fn arrivals(&self, candidate: &str) -> Option<Arrivals> {
        (!self.latency(candidate).is_empty()).then(|| {
            if self.has_closed_loop(candidate) {
                Arrivals::Closed
            } else {
                Arrivals::Open
            }
        })
    }

    /// Whether requests of a trial at this point waited for the answers before them.
    pub(super) fn has_closed_loop(&self, candidate: &str) -> bool {
        let is_open = |trial: &&FrugalityTrialStatus| trial.load().is_some_and(TrialLoad::is_open);
        !self.trials(candidate).iter().all(is_open)
    }

    /// Percentiles over the requests of all trials, with the range of the single trials' percentiles. Empty if a trial lacks its
    /// histogram, or if its histogram also holds errors (as Fortio's does) or waiting in the injector.
    pub(super) fn latency(&self, candidate: &str) -> Vec<LatencyPercentile> {
        if self.limited_by_injector(candidate).is_some() {
            return Vec::new();
        }
        let runs: Option<Vec<&[Bucket]>> = self
            .trials(candidate)
            .into_iter()
            .map(distribution)
            .collect();
        runs.and_then(|runs| {
            // The status also shows each trial's percentiles, so the smallest trial decides which are known.
            let requests = |run: &&[Bucket]| run.iter().map(|bucket| bucket.count).sum::<u64>();
            let fewest = runs.iter().map(requests).min()? as f64;
            let known: Vec<f64> = PERCENTAGES
                .into_iter()
                .filter(|p| fewest * (100.0 - p) / 100.0 >= REQUESTS_BEYOND)
                .collect();
            let merged = merged_percentiles(&runs, &known)?;
            let single: Vec<Vec<f64>> = runs
                .iter()
                .map(|run| merged_percentiles(&[run], &known))
                .collect::<Option<_>>()?;
            let numbered = known.iter().zip(&merged).enumerate();
            let percentiles = numbered.map(|(index, (percentage, seconds))| {
                let of_trials = || single.iter().map(|trial| trial[index]);
                LatencyPercentile {
                    percentile: *percentage,
                    milliseconds: milliseconds(*seconds),
                    least_milliseconds: milliseconds(of_trials().fold(f64::INFINITY, f64::min)),
                    most_milliseconds: milliseconds(of_trials().fold(0.0, f64::max)),
                }
            });
            Some(percentiles.collect())
        })
        .unwrap_or_default()
    }
}
