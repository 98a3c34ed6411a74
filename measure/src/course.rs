//! Latency over the time of a long run.

use serde::{Deserialize, Serialize};

use crate::{NUMBERS_END, significant};

/// The largest number of slices. It bounds the size of the course for any length of run.
const MOST_SLICES: usize = 16;

/// The smallest number of slices for a drift.
const LEAST_SLICES: usize = 6;

/// The shortest slice, and the initial length of all slices.
const FIRST_SLICE_SECONDS: f64 = 1.0;

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

/// Makes a [`Course`] of a run of unknown length, in constant memory: if there are too many slices, each pair
/// becomes one slice.
#[derive(Clone, Debug)]
pub struct CourseRecorder {
    slice_seconds: f64,
    slices: Vec<Slice>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    requests: u64,
    sum_seconds: f64,
}

impl Default for CourseRecorder {
    fn default() -> Self {
        Self {
            slice_seconds: FIRST_SLICE_SECONDS,
            slices: Vec::with_capacity(MOST_SLICES),
        }
    }
}

impl CourseRecorder {
    /// Records a successful request that began `at_seconds` after the first one. A negative time counts in
    /// the first slice.
    pub fn add(&mut self, at_seconds: f64, latency_seconds: f64) {
        if !(at_seconds.is_finite() && latency_seconds.is_finite()) {
            return;
        }
        while at_seconds >= self.slice_seconds * MOST_SLICES as f64 {
            self.widen();
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to the number of slices"
        )]
        let index = (at_seconds / self.slice_seconds).max(0.0) as usize;
        if index >= self.slices.len() {
            self.slices.resize(index + 1, Slice::default());
        }
        let slice = &mut self.slices[index];
        slice.requests += 1;
        slice.sum_seconds += latency_seconds;
    }

    fn widen(&mut self) {
        self.slice_seconds *= 2.0;
        let pairs = self.slices.chunks(2);
        self.slices = pairs
            .map(|pair| Slice {
                requests: pair.iter().map(|slice| slice.requests).sum(),
                sum_seconds: pair.iter().map(|slice| slice.sum_seconds).sum(),
            })
            .collect();
    }

    /// The recorded course of a load that was whole for `whole_seconds`; `None` if no request was recorded.
    #[must_use]
    pub fn course(&self, whole_seconds: f64) -> Option<Course> {
        let mean = |slice: &Slice| significant(slice.sum_seconds / slice.requests.max(1) as f64, 7);
        (!self.slices.is_empty()).then(|| Course {
            slice_seconds: self.slice_seconds,
            whole_seconds,
            requests: self.slices.iter().map(|slice| slice.requests).collect(),
            mean_seconds: self.slices.iter().map(mean).collect(),
        })
    }
}
