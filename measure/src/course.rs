//! Latency over the time of a long run.

use serde::{Deserialize, Serialize};

use crate::{NUMBERS_END, significant};

/// The largest number of slices. It bounds the size of the course for any length of run.
const MOST_SLICES: usize = 16;

/// The smallest number of slices for a drift.
const LEAST_SLICES: usize = 6;

/// Mean latencies of successful requests in slices of equal length, from the first recorded request. A script
/// has cycles and a program has executions instead of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Course {
    /// Length of each slice, in seconds.
    pub slice_seconds: f64,
    /// How long all connections were in use, in seconds. If a fixed number of requests is shared out, the
    /// connections with faster answers end first. The remaining load is then different.
    pub whole_seconds: f64,
    /// Successful requests per slice: the requests that began in the slice, or the cycles of a script that
    /// ended in it.
    pub requests: Vec<u64>,
    /// Their mean latency in seconds, to seven digits; 0 for a slice without requests.
    pub mean_seconds: Vec<f64>,
}

impl Course {
    /// The course of slices with this number of successes and this sum of their latencies, in nanoseconds. If there are
    /// too many slices, each pair becomes one.
    pub(crate) fn of_sums(
        slice_seconds: f64,
        whole_seconds: f64,
        sums: impl Iterator<Item = (u64, f64)>,
    ) -> Self {
        let mut slice_seconds = slice_seconds;
        let mut slices: Vec<_> = sums.collect();
        while slices.len() > MOST_SLICES {
            slice_seconds *= 2.0;
            let sum = |pair: &[(u64, f64)]| {
                let counts = pair.iter().map(|(count, _)| count);
                (counts.sum(), pair.iter().map(|(_, sum)| sum).sum())
            };
            slices = slices.chunks(2).map(sum).collect();
        }
        let mean = |(count, sum): &(u64, f64)| significant(sum / 1e9 / (*count).max(1) as f64, 7);
        Self {
            slice_seconds,
            whole_seconds,
            requests: slices.iter().map(|(count, _)| *count).collect(),
            mean_seconds: slices.iter().map(mean).collect(),
        }
    }

    /// How fast the mean latency rises, in seconds per second: the slope by least squares. The points are the
    /// slices that lie within `whole_seconds` and have requests, each at its middle. All slices have equal
    /// weight, because the drift is a function of time. `None` with fewer than six such slices.
    #[must_use]
    pub fn drift_seconds_per_second(&self) -> Option<f64> {
        let slices = self.requests.iter().zip(&self.mean_seconds).enumerate();
        // The last slice of a script's window ends with the window, except for rounding.
        let end_seconds = self.whole_seconds * (1.0 + 1e-9);
        let points: Vec<(f64, f64)> = slices
            .take_while(|(index, _)| (index + 1) as f64 * self.slice_seconds <= end_seconds)
            .filter(|(_, (requests, _))| **requests > 0)
            .map(|(index, (_, mean))| ((index as f64 + 0.5) * self.slice_seconds, *mean))
            .collect();
        let n = points.len() as f64;
        if points.len() < LEAST_SLICES {
            return None;
        }
        let mean_of = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x_mean, y_mean) = (mean_of(|point| point.0), mean_of(|point| point.1));
        let products = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean));
        let squares = points.iter().map(|(x, _)| (x - x_mean).powi(2));
        Some(products.sum::<f64>() / squares.sum::<f64>())
    }

    /// Whether the values are possible. The course may come from any writer.
    pub(crate) fn is_possible(&self) -> bool {
        let is_number = |value: &f64| (0.0..NUMBERS_END).contains(value);
        self.requests.len() == self.mean_seconds.len()
            && self.requests.len() <= MOST_SLICES
            && self.slice_seconds > 0.0
            && is_number(&self.slice_seconds)
            && is_number(&self.whole_seconds)
            && self.mean_seconds.iter().all(is_number)
    }
}
